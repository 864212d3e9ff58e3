import { AGENT_KEYS, checkAgentValue, isAgentKey } from "../../config/agent-file";
import { committedConfig, committedIn } from "../../config/committed";
import { removeKey, setKey } from "../../config/edit";
import { readJoinedLedger } from "../../config/joined-ledger";
import { type Config, type ConfigQuestion, inspectConfig, userConfigDirectory } from "../../config/load";
import { nearest } from "../../config/nearest";
import type { ConfigProblem } from "../../config/problem";
import {
  CONFIG_KEYS,
  type ConfigKey,
  type ConfigValue,
  isConfigKey,
  nameInSection,
  sectionOf,
  settingOf,
} from "../../config/schema";
import { NO_TRUST, readTrust, type Trust } from "../../config/trust";
import { isWrong, tomlOf, valueFromText } from "../../config/values";
import { remarksOnRules } from "../../coordinator/path-rules";
import type { Surroundings, Whereabouts } from "../../coordinator/workspace";
import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { findRepository, type Repository } from "../../identity/repository";
import { prepareDataDirectory, refuseLink } from "../../identity/worktree-file";
import { printable } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import type { Platform } from "../../platform/platform";
import { stageFile } from "../../platform/replace-file";
import { changeForAll } from "./shared-change";
import { trustKeys } from "./trust";

/** The configuration around the caller, broken or not, in a repository or outside of one. */
export interface Surveyed {
  readonly platform: Platform;
  readonly question: ConfigQuestion;
  readonly repository: Repository | null;
  readonly trust: Trust;
  readonly config: Config;
  readonly problems: readonly ConfigProblem[];
}

export async function survey({ platform, env, cwd, home, git }: Surroundings): Promise<Surveyed> {
  let repository: Repository | null = null;
  try {
    repository = await findRepository(platform, cwd, env, git);
  } catch (error) {
    if (!(error instanceof CotenantError) || error.code !== "E_NOT_A_REPO") throw error;
  }
  const trust = repository === null ? NO_TRUST : await readTrust(platform, repository.controlDir);
  const worktreeRoot = repository?.worktreeRoot ?? null;
  const joined = repository === null ? null : await readJoinedLedger(platform, repository.controlDir);
  const committed = repository === null ? {} : { committed: committedIn(git, repository, env) };
  const question = { platform, env, home, worktreeRoot, trust, joined, ...committed };
  return { platform, question, repository, trust, ...(await inspectConfig(question)) };
}

export function knownKey(text: string): ConfigKey {
  if (isConfigKey(text)) return text;
  throw unknownKey(text, [...CONFIG_KEYS, ...AGENT_KEYS]);
}

function unknownKey(text: string, known: readonly string[]): CotenantError {
  const near = nearest(text, known) ?? known.find((key) => nameInSection(key) === text) ?? null;
  return new CotenantError("E_USAGE", `there is no key "${printable(text, 100)}"`, {
    hint: near === null ? "see 'cotenant config show'" : `did you mean ${near}?`,
    data: { key: text, nearest: near },
  });
}

/** A file to change, and what to change in it. */
interface Target {
  readonly file: string;
  readonly path: readonly [section: string, name: string];
  /** Null for keys of `agent.toml`. */
  readonly key: ConfigKey | null;
}

/** `command` as it was typed, for whoever left out --global. */
function targetOf(
  surveyed: Surveyed,
  text: string,
  isGlobal: boolean,
  command: readonly ["set", string] | readonly ["reset"],
): Target {
  const path = [sectionOf(text), nameInSection(text)] as const;
  if (isAgentKey(text)) {
    const [verb, ...value] = command;
    if (!isGlobal)
      throw new CotenantError("E_USAGE", `${text} is about you, not about the repository`, {
        hint: `add --global: cotenant config ${verb} --global ${[text, ...value].map(shellWord).join(" ")}`,
      });
    return { file: `${homeFor(surveyed)}/agent.toml`, path, key: null };
  }
  if (!isConfigKey(text)) throw unknownKey(text, [...CONFIG_KEYS, ...AGENT_KEYS]);
  if (isGlobal) return { file: `${homeFor(surveyed)}/config.toml`, path, key: text };
  const root = surveyed.repository?.worktreeRoot;
  if (root === undefined)
    throw new CotenantError("E_NOT_A_REPO", "there is no repository here whose configuration could change", {
      hint: "go into a repository, or add --global for your own configuration",
    });
  return { file: `${root}/.cotenant/config.toml`, path, key: text };
}

function homeFor({ question }: Surveyed): string {
  const directory = userConfigDirectory(question);
  if (directory !== null) return directory;
  throw new CotenantError("E_CONFIG", "there is no home directory to keep personal configuration in", {
    hint: "set HOME or XDG_CONFIG_HOME",
  });
}

/** The value as its file will have it, in TOML. */
function checkedValue({ key, path }: Target, text: string): { value: ConfigValue; toml: string } {
  const name = path.join(".");
  const value = key === null ? checkAgentValue(name, text) : valueFromText(settingOf(key), text);
  if (!isWrong(value)) return { value, toml: tomlOf(value) };
  const otherwise =
    value.forms === undefined ? `see 'cotenant config show ${name}'` : `write it as ${value.forms}`;
  throw new CotenantError("E_CONFIG", `${name} ${value.wrong}`, {
    hint: value.nearest === undefined ? otherwise : `did you mean ${value.nearest}?`,
    data: { key: name, value: printable(text, 200), nearest: value.nearest ?? null },
  });
}

/** How to write the new content beside the old one, and then put it in place. Null where the file says so already. */
async function planChange(
  { platform, repository, question }: Surveyed,
  { file, path }: Target,
  toml: string | null,
): Promise<(() => Promise<() => Promise<void>>) | null> {
  const inRepository = repository !== null && file.startsWith(`${repository.worktreeRoot}/`);
  try {
    if (inRepository) {
      await refuseLink(platform, `${repository.worktreeRoot}/.cotenant`, "directory");
      await refuseLink(platform, file, "file");
    }
    if ((await platform.files.stat(file))?.kind === "other") throw notAFile(file);
    const { committed } = question;
    const there = await platform.files.readFile(file);
    // What is committed and not checked out goes on counting.
    const bytes = there ?? (inRepository && committed ? await committedConfig(platform, committed) : null);
    const before = bytes === null ? "" : new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const after = toml === null ? removeKey(before, path) : setKey(before, path, toml);
    if (after === before && (there !== null || before === "")) return null;
    return async () => {
      let mode = ((await platform.files.stat(file))?.mode ?? 0) & 0o777;
      if (inRepository) mode ||= (await prepareDataDirectory(platform, repository.worktreeRoot)).file;
      else await makePath(platform, file.slice(0, file.lastIndexOf("/")));
      return stageFile(platform, file, after, mode || 0o600);
    };
  } catch (error) {
    if (error instanceof CotenantError) throw error;
    if (error instanceof TypeError || (error as Error).name === "ParseError" || isTomlError(error)) {
      throw new CotenantError("E_CONFIG", `${file} is not valid TOML, so nothing in it can be changed`, {
        hint: "mend it with an editor: 'cotenant config validate' says where",
        data: { file },
        cause: error,
      });
    }
    throw fileFailure(error, "changing the configuration", file);
  }
}

function notAFile(file: string): CotenantError {
  return new CotenantError("E_CONFIG", `${file} is a device or a pipe, not a file`, {
    hint: "put a real file in its place",
    data: { file },
  });
}

function isTomlError(error: unknown): boolean {
  return (
    typeof (error as { lineNumber?: unknown }).lineNumber === "number" ||
    (error as Error).name === "TomlError"
  );
}

export interface SettingRequest {
  readonly key: string;
  readonly isGlobal: boolean;
}

/** What became of a setting. */
export interface SettingChange {
  readonly file: string;
  readonly hasChanged: boolean;
}

/** Takes it out of the file, so that the next source decides. */
export async function resetSetting(
  place: Whereabouts,
  { key, isGlobal }: SettingRequest,
): Promise<SettingChange> {
  const surveyed = await survey(place.surroundings());
  const target = targetOf(surveyed, key, isGlobal, ["reset"]);
  return { file: target.file, hasChanged: await change(place, surveyed, target, isGlobal, null) };
}

/** What the new value comes to: whether this clone trusts what needs trust, and what stands above it. */
export interface SettingSet extends SettingChange {
  readonly value: ConfigValue;
  readonly toml: string;
  readonly trust: "not-needed" | "given" | "waits";
  readonly overruledBy: string | null;
}

export async function setSetting(
  place: Whereabouts,
  { key: name, isGlobal, text }: SettingRequest & { readonly text: string },
): Promise<SettingSet> {
  const surveyed = await survey(place.surroundings());
  const target = targetOf(surveyed, name, isGlobal, ["set", text]);
  const { value, toml } = checkedValue(target, text);
  const { key, file } = target;
  const hasChanged = await change(place, surveyed, target, isGlobal, toml);
  const done = { file, hasChanged, value, toml, trust: "not-needed", overruledBy: null } as const;
  if (key === null) return done;
  const after = await survey(place.surroundings());
  if (!isGlobal && after.config.untrusted.some((entry) => entry.key === key)) {
    const trusted = await trustKeys(await place.workspace(), after, [key]);
    return { ...done, trust: trusted.length > 0 ? "given" : "waits" };
  }
  // Where every source adds its own, none stands above another.
  const above = settingOf(key).tighten === "adding" ? file : after.config.origin(key).place;
  return { ...done, overruledBy: above === file ? null : above };
}

/** Answers whether anything changed. What concerns everybody is changed by one at a time, on top of the main branch. */
async function change(
  place: Whereabouts,
  surveyed: Surveyed,
  target: Target,
  isGlobal: boolean,
  toml: string | null,
): Promise<boolean> {
  const { key } = target;
  try {
    if (!isGlobal && key !== null) return await changeShared(place, surveyed, target, key, toml);
    const stage = await planChange(surveyed, target, toml);
    await (await stage?.())?.();
    return stage !== null;
  } catch (error) {
    throw fileFailure(error, "changing the configuration", target.file);
  }
}

async function changeShared(
  place: Whereabouts,
  surveyed: Surveyed,
  target: Target,
  key: ConfigKey,
  toml: string | null,
): Promise<boolean> {
  const scope = sectionOf(key) === "types" ? "types" : "config";
  const workspace = await place.workspace();
  const hasChanged = await changeForAll(workspace, scope, async () => {
    const stage = await planChange(surveyed, target, toml);
    return { answer: stage !== null, stage, payload: { scope, key, value: toml } };
  });
  if (key === "policy.paths")
    workspace.warnings.push(
      ...(await remarksOnRules(workspace, (await survey(place.surroundings())).config)),
    );
  return hasChanged;
}

async function makePath(platform: Platform, directory: string): Promise<void> {
  if ((await platform.files.stat(directory)) !== null) return;
  await makePath(platform, directory.slice(0, directory.lastIndexOf("/")) || "/");
  await platform.files.makeDirectory(directory, 0o700);
}
