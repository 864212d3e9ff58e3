import type { Command, Context } from "../../../cli/grammar/command";
import { refuseRuledFiles } from "../../../coordinator/path-rules";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, fileFailure } from "../../../errors/cotenant-error";
import { DATA_PLANE_LINES, withLines } from "../../../identity/data-plane";
import { HARNESS_NAMES } from "../../../identity/harness";
import { PROVISIONAL_GITIGNORE, refuseLink } from "../../../identity/worktree-file";
import { printable } from "../../../kernel/ids";
import { requireRecentGit } from "../../../platform/git";
import type { Platform } from "../../../platform/platform";
import { replaceFile } from "../../../platform/replace-file";
import { MergeDriver } from "../../issues/merge-driver";
import { ENFORCE_MODES, initialConfig } from "./scaffold";
import { addTrust, trustKeys } from "./trusting";

export const command: Command = {
  usage: "init [--agents <names>] [--hooks] [--enforce off|warn|strict]",
  about:
    "Prepares this repository: makes .cotenant/ with a commented config.toml, .gitignore and .gitattributes, the\ncontrol plane below the Git directory, and tells Git how to merge issues in this clone. Doing it again changes nothing.",
  flags: {
    enforce: {
      value: "<mode>",
      choices: ENFORCE_MODES,
      meaning: "how strictly issue writes need a lease: off, warn or strict",
    },
    hooks: { meaning: "also have Git call cotenant at commits and pushes, as 'hooks install' does" },
    agents: {
      value: "<names>",
      choices: HARNESS_NAMES,
      meaning: "also have these harnesses ask before each write: claude,codex as in 'agent install', or all",
    },
  },
  examples: ["cotenant init", "cotenant init --enforce warn", "cotenant init --agents claude,codex --hooks"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const enforce = parsed.text("enforce");
    if (enforce !== undefined && !ENFORCE_MODES.includes(enforce)) {
      throw new CotenantError("E_USAGE", `--enforce cannot be "${printable(enforce)}"`, {
        hint: `use one of ${ENFORCE_MODES.join(", ")}`,
      });
    }
    const workspace = await context.workspace();
    // Before anything is written: a refusal leaves no trace.
    const hooks = parsed.has("hooks") ? await hooksFor(context, workspace) : null;
    const agents = await agentsFor(context, workspace, parsed.text("agents"));
    const { platform, git } = workspace.surroundings;
    const { worktreeRoot } = workspace.repository;
    await requireRecentGit(git, worktreeRoot);
    const data = `${worktreeRoot}/.cotenant`;
    await refuseLink(platform, data, "directory");
    for (const name of ["config.toml", ".gitignore", ".gitattributes"])
      await refuseLink(platform, `${data}/${name}`, "file");
    const made: string[] = [];
    const note = (path: string, changed: boolean) => {
      if (changed) made.push(path.slice(worktreeRoot.length + 1));
    };
    try {
      const changes = [
        await missing(platform, `${data}/config.toml`, initialConfig(enforce)),
        await lacking(platform, `${data}/.gitignore`, DATA_PLANE_LINES[".gitignore"], PROVISIONAL_GITIGNORE),
        await lacking(platform, `${data}/.gitattributes`, DATA_PLANE_LINES[".gitattributes"], null),
      ].filter((change) => change !== null);
      await refuseRuledFiles(
        workspace,
        changes.map(({ path }) => path),
      );
      note(`${data}/`, await platform.files.makeDirectory(data, 0o755));
      for (const { path, content, mode } of changes) {
        await replaceFile(platform, path, content, mode);
        note(path, true);
      }
    } catch (error) {
      throw fileFailure(error, "writing the data plane", data);
    }
    const { identity } = await workspace.worktree("write");
    await workspace.store.prepare();
    const installation = { node: process.execPath, program: context.program };
    const driver = new MergeDriver(git, workspace.repository.commonDir);
    const hasRegistered = await driver.register(installation, platform.timers);
    const { allowNetwork } = workspace.store.layout;
    if (enforce !== undefined && made.includes(".cotenant/config.toml"))
      await addTrust(workspace, [{ key: "worktree.enforce_leases", value: enforce }], "init");
    else if (enforce !== undefined) note(`${data}/config.toml`, await enforceAs(context, workspace, enforce));
    if (parsed.has("allow-network-fs") && (await platform.files.stat(allowNetwork)) === null)
      await replaceFile(platform, allowNetwork, "", workspace.store.options.modes.file);
    const installed = hooks === null ? null : await hooks.install();
    const asked = agents === null ? null : await agents.install();
    const isNew =
      made.length > 0 || hasRegistered || installed?.hasChanged === true || asked?.changed === true;
    const text = [
      isNew ? `initialised: ${made.join(", ") || "this clone"}` : "already initialised; nothing changed",
      ...(hasRegistered ? ["  Git's configuration: issues are merged field by field"] : []),
      ...(installed?.hasChanged ? [`  hooks in ${installed.directory}`] : []),
      ...(asked?.changed ? asked.shown.map((name) => `  ${name}: asks before each write`) : []),
      ...[...(installed?.remarks ?? []), ...(asked?.remarks ?? [])].map((remark) => `  note: ${remark}`),
      `  worktree ${identity.worktreeId}`,
      "",
      "next:",
      ...(made.length === 0
        ? []
        : [step("git add .cotenant && git commit -m 'Use cotenant' .cotenant", "for everybody")]),
      step("cotenant issue create --title <title>", "write down work"),
      step("cotenant lock acquire <file>", "lease a file"),
      step("cotenant status", "who holds what"),
    ].join("\n");
    return {
      data: {
        created: made,
        worktree: { worktree_id: identity.worktreeId, root: identity.root },
        merge_driver: hasRegistered,
        hooks: installed === null ? null : { directory: installed.directory, changed: installed.hasChanged },
        agents: asked === null ? null : { changed: asked.changed, paths: asked.paths },
        control_directory: workspace.repository.controlDir,
      },
      text: context.quiet ? "" : text,
    };
  },
};

function step(command: string, meaning: string): string {
  return `  ${command.padEnd(59)}  ${meaning}`;
}

/** In a configuration that is there already, as 'config set' would. */
async function enforceAs(context: Context, workspace: Workspace, mode: string): Promise<boolean> {
  const key = "worktree.enforce_leases";
  if (workspace.config.values[key] === mode) return false;
  const { checkedValue, survey, targetOf } = await import("./configuring");
  const { changeSetting } = await import("./config-set");
  const surveyed = await survey(context);
  const target = targetOf(surveyed, key, false, ["set", mode]);
  const hasChanged = await changeSetting(context, surveyed, target, false, checkedValue(target, mode).toml);
  // Somebody else's configuration is no longer ours to trust: a person may, an agent may not.
  const after = await survey(context);
  if (after.config.untrusted.some((entry) => entry.key === key)) await trustKeys(workspace, after, [key]);
  return hasChanged;
}

async function hooksFor(context: Context, workspace: Workspace) {
  const { hooksOf, installHooks } = await import("../../hooks/operations");
  const desk = await hooksOf(workspace);
  const how = { shared: false, force: false, program: { node: process.execPath, program: context.program } };
  await installHooks(desk, { ...how, isDry: true });
  const install = async () => {
    const { plan, directory } = await installHooks(desk, { ...how, isDry: false });
    const hasChanged = plan.hooks.some(({ write }) => write !== null);
    return { directory, hasChanged, remarks: plan.remarks };
  };
  return { install };
}

async function agentsFor(context: Context, workspace: Workspace, names: string | undefined) {
  if (names === undefined) return null;
  const { harnessNamed, installAgents, planAgents, projectDesk } = await import("../../harnesses/operations");
  const harnesses =
    names === "all" ? HARNESS_NAMES : [...new Set(names.split(",").map((name) => harnessNamed(name.trim())))];
  const desk = projectDesk(workspace);
  const how = { program: { node: process.execPath, program: context.program }, shared: false, via: null };
  await planAgents(desk, harnesses, how);
  const install = async () => {
    const plans = await installAgents(desk, harnesses, how);
    const changed = plans.filter(({ after }) => after !== null);
    return {
      changed: changed.length > 0,
      paths: plans.map(({ file }) => file.path),
      shown: changed.map(({ site }) => site.shown),
      remarks: [...new Set(changed.flatMap(({ remarks }) => remarks))],
    };
  };
  return { install };
}

interface Change {
  readonly path: string;
  readonly content: string | Uint8Array;
  readonly mode: number;
}

/** Null for a file that is there. */
async function missing({ files }: Platform, path: string, content: string): Promise<Change | null> {
  return (await files.stat(path)) === null ? { path, content, mode: 0o644 } : null;
}

/** Null for a file that has all of these lines; `provisional` is a text of ours that may go altogether. */
async function lacking(
  { files }: Platform,
  path: string,
  lines: readonly string[],
  provisional: string | null,
): Promise<Change | null> {
  const bytes = (await files.readFile(path)) ?? new Uint8Array();
  const isOurs = provisional !== null && new TextDecoder().decode(bytes) === provisional;
  const content = withLines(isOurs ? new Uint8Array() : bytes, lines);
  const mode = ((await files.stat(path))?.mode ?? 0o644) & 0o777;
  return content === null ? null : { path, content, mode };
}
