import type { Context, Flag, Parsed } from "../../../cli/grammar/command";
import { nearest } from "../../../config/nearest";
import type { Workspace } from "../../../coordinator/workspace";
import { hookPlace } from "../../../daemon/hook-place";
import { CotenantError } from "../../../errors/cotenant-error";
import { HARNESS_NAMES, type HarnessName } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { isInUse } from "../../guard/worktree";
import { type AgentsDesk, findIn, projectDesk, userDesk } from "../desk";
import type { InstallHow } from "../installing";
import type { Found } from "../plan";
import { type SiteState, stateOf } from "../state";

export const WHERE: Readonly<Record<string, Flag>> = {
  all: { meaning: "every harness" },
  user: { meaning: "in your own settings, for all your projects" },
  shared: { meaning: "in settings that are committed, for everybody" },
};

/** What settings start: the program that runs now. */
export function installedFrom({ program }: Pick<Context, "program">): NonNullable<InstallHow["program"]> {
  return { node: process.execPath, program };
}

export async function deskFor(context: Context, parsed: Parsed): Promise<AgentsDesk> {
  if (!parsed.has("user")) return projectDesk(await context.workspace());
  if (parsed.has("shared"))
    throw new CotenantError("E_USAGE", "--user and --shared contradict each other", {
      hint: "--user is for you in all projects, --shared for everybody in this one",
    });
  const desk = userDesk(context.surroundings());
  if (desk !== null) return desk;
  throw new CotenantError("E_USAGE", "--user needs a home directory, and there is none", {
    hint: "set HOME, or install in the project without --user",
  });
}

export function harnessesFrom(parsed: Parsed): readonly HarnessName[] {
  const { words } = parsed;
  if (parsed.has("all")) {
    if (words.length === 0) return HARNESS_NAMES;
    throw new CotenantError("E_USAGE", "--all names every harness already", {
      hint: `leave out --all, or "${printable(words.join(" "), 100)}"`,
    });
  }
  if (words.length === 0)
    throw new CotenantError("E_USAGE", "which harness?", {
      hint: `name one or more of ${HARNESS_NAMES.join(", ")}, or give --all`,
    });
  return [...new Set(words.map(harnessNamed))];
}

/** Those that were named, or every one. */
export function harnessesOrAll({ words }: Parsed): readonly HarnessName[] {
  return words.length === 0 ? HARNESS_NAMES : [...new Set(words.map(harnessNamed))];
}

export function harnessNamed(word: string): HarnessName {
  const found = HARNESS_NAMES.find((name) => name === word.toLowerCase());
  if (found !== undefined) return found;
  const near = nearest(word.toLowerCase(), [...HARNESS_NAMES]);
  throw new CotenantError("E_USAGE", `there is no harness "${printable(word, 60)}"`, {
    hint: `${near === null ? "" : `did you mean ${near}? `}use one of ${HARNESS_NAMES.join(", ")}`,
  });
}

/** One file, and how it stands. */
export interface Seen {
  readonly found: Found;
  readonly state: SiteState;
  /** False when our lines name a program that is gone. */
  readonly isProgramThere: boolean;
  /** False when they ask a daemon of another place, as after the repository was moved. */
  readonly isDaemonHere: boolean;
}

/** Whoever wrote into a file of ours has to look after it, whatever it starts. */
export function stateSeen({ state: { state }, isProgramThere, isDaemonHere }: Seen): SiteState["state"] {
  return (isProgramThere && isDaemonHere) || state === "changed" ? state : "outdated";
}

/** Every file of these harnesses, of this worktree if there is one, and of the user. */
export async function lookAround(context: Context, harnesses: readonly HarnessName[]) {
  const surroundings = context.surroundings();
  const { platform, home, env } = surroundings;
  const workspace = await workspaceOrNull(context);
  const desks = [workspace === null ? null : projectDesk(workspace), userDesk(surroundings)];
  const hooks = workspace === null ? null : hookPlace(workspace.repository.controlDir, surroundings);
  const seen: Seen[] = [];
  for (const desk of desks) {
    if (desk === null) continue;
    for (const found of await findIn(desk, ...harnesses)) {
      const state = stateOf(found, (text) => platform.digest.sha256(text));
      const named = state.program === null ? [] : [state.program.node, state.program.program];
      const stats = await Promise.all(named.map((path) => platform.files.stat(path)));
      const isDaemonHere = state.via === null || state.via.daemon === hooks?.base;
      seen.push({ found, state, isProgramThere: stats.every((stat) => stat !== null), isDaemonHere });
    }
  }
  const grounds = { root: workspace?.repository.worktreeRoot ?? null, home, env };
  return { seen, grounds, platform, workspace, surroundings };
}

/** What has to be done besides for the guard to do anything at all, where these settings count. */
export async function setUpRemarks(
  context: Context,
  { level }: Pick<AgentsDesk, "level">,
  isShared: boolean,
): Promise<string[]> {
  const workspace = await workspaceOrNull(context);
  if (level === "user") {
    const isHere = workspace !== null && !(await isInUse(workspace.surroundings, workspace.repository));
    return [
      `the guard lets everything pass in repositories where cotenant was never used${isHere ? ", as in this one" : ""}: run 'cotenant init' there`,
    ];
  }
  if (!isShared || workspace === null) return [];
  const { files } = workspace.surroundings.platform;
  return (await files.stat(`${workspace.repository.worktreeRoot}/.cotenant/config.toml`)) === null
    ? ["in other clones the guard lets everything pass: run 'cotenant init', and commit .cotenant/ as well"]
    : [];
}

async function workspaceOrNull(context: Context): Promise<Workspace | null> {
  try {
    return await context.workspace();
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_NOT_A_REPO") return null;
    throw error;
  }
}
