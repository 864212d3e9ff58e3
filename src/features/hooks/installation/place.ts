import { below, isAbsolute, joinPath } from "../../../identity/path-text";
import type { Repository } from "../../../identity/repository";
import { listWorktrees } from "../../../identity/worktree-list";
import type { Git } from "../../../platform/git";
import type { Files, Platform } from "../../../platform/platform";
import { standingsOf } from "../../installer/files";

/** What is known of a repository before its hooks are looked for. */
export interface HooksHome {
  readonly files: Files;
  readonly git: Git;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly gitDir: string;
  readonly commonDir: string;
  /** Null in a bare repository. */
  readonly worktreeRoot: string | null;
  /** All worktrees, with the directory that Git has for each. */
  readonly worktrees: readonly { readonly root: string; readonly gitDir: string }[];
}

/** The clone around a caller. */
export async function hooksHome(
  { platform, git, env }: { readonly platform: Platform; readonly git: Git; readonly env: HooksHome["env"] },
  repository: Repository,
): Promise<HooksHome> {
  const { gitDir, commonDir, worktreeRoot } = repository;
  const all = await listWorktrees(platform, git, repository);
  const worktrees = all
    .filter(({ exists }) => exists)
    .map(({ root, gitDir: own }) => ({ root, gitDir: own }));
  // A main worktree that Git does not record is one all the same.
  if (!worktrees.some(({ root }) => root === worktreeRoot)) worktrees.push({ root: worktreeRoot, gitDir });
  return { files: platform.files, git, env, gitDir, commonDir, worktreeRoot, worktrees };
}

/** `core.hooksPath`, and which of Git's files says so. */
export interface HooksPath {
  readonly value: string;
  readonly scope: string;
}

/** Where Git looks for hooks, and to whom that belongs. */
export interface HooksPlace {
  readonly directory: string;
  readonly exists: boolean;
  readonly setting: HooksPath | null;
  /**
   * `private`: below the Git directory, for this clone alone. `worktree`: among the project's files. `outside`: where other
   * repositories may look too. `nowhere`: Git is told to run no hooks.
   */
  readonly whose: "private" | "worktree" | "outside" | "nowhere";
  /** Other worktrees have a directory of their own, since a relative path is seen from each. */
  readonly isOneOfMany: boolean;
}

/** Where people may have put configuration that our own Git calls do not see otherwise. */
const CONFIG_VARIABLES = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];

export async function hooksPlace(home: HooksHome): Promise<HooksPlace> {
  const setting = await hooksPath(home);
  const directory = directoryOf(home, setting);
  if (directory === null)
    return { directory: "", exists: false, setting, whose: "nowhere", isOneOfMany: false };
  return placeAt(home, directory, setting);
}

/** A directory that may have hooks in it, whether Git looks there or not. */
async function placeAt(home: HooksHome, directory: string, setting: HooksPath | null): Promise<HooksPlace> {
  const stat = await home.files.stat(directory);
  if (stat !== null && stat.kind !== "directory")
    return { directory, exists: false, setting, whose: "nowhere", isOneOfMany: false };
  const real = (stat === null ? null : await home.files.realPath(directory)) ?? directory;
  const whose = ownerOf(home, real);
  const isOneOfMany =
    whose === "worktree" && setting !== null && !isAbsolute(setting.value) && home.worktrees.length > 1;
  return { directory: real, exists: stat !== null, setting, whose, isOneOfMany };
}

/**
 * Every directory in which hooks of ours may be: where Git looks from each worktree, where it looks unless told otherwise,
 * and where it looked once.
 */
export async function everyPlace(home: HooksHome, recorded: readonly string[]): Promise<HooksPlace[]> {
  const places: HooksPlace[] = [await hooksPlace(home)];
  for (const { root, gitDir } of home.worktrees)
    places.push(await hooksPlace({ ...home, worktreeRoot: root, gitDir }));
  for (const directory of [joinPath(home.commonDir, "hooks"), ...recorded])
    places.push(await placeAt(home, directory, null));
  // The first of a name counts: it knows why Git looks there.
  const byDirectory = new Map(places.reverse().map((place) => [place.directory, place]));
  return [...byDirectory.values()].filter(({ exists }) => exists);
}

/** The last one counts. Our own calls set it to run no hooks, which is not the user's word. */
async function hooksPath({ git, env, gitDir, worktreeRoot }: HooksHome): Promise<HooksPath | null> {
  const variables: Record<string, string> = { GIT_DIR: gitDir };
  for (const name of CONFIG_VARIABLES) if (env[name] !== undefined) variables[name] = env[name];
  const { status, stdout } = await git.run(
    ["config", "--null", "--show-scope", "--type=path", "--get-all", "core.hooksPath"],
    { cwd: worktreeRoot ?? gitDir, env: variables },
  );
  if (status !== 0) return null;
  const fields = new TextDecoder().decode(stdout).split("\0");
  let found: HooksPath | null = null;
  for (let at = 0; at + 1 < fields.length; at += 2)
    if (fields[at] !== "command") found = { scope: fields[at]!, value: fields[at + 1]! };
  return found;
}

/** A relative one is seen from where hooks run: the worktree's root, or a bare repository itself. */
function directoryOf({ commonDir, gitDir, worktreeRoot }: HooksHome, setting: HooksPath | null) {
  if (setting === null) return joinPath(commonDir, "hooks");
  if (setting.value === "") return null;
  const path = isAbsolute(setting.value)
    ? setting.value
    : joinPath(worktreeRoot ?? gitDir, setting.value.replace(/^(?:\.\/+)+/, ""));
  return path.replace(/(?<=.)\/+$/, "");
}

function ownerOf({ commonDir, gitDir, worktrees }: HooksHome, directory: string): HooksPlace["whose"] {
  if (below(directory, commonDir) !== null || below(directory, gitDir) !== null) return "private";
  return worktrees.some(({ root }) => below(directory, root) !== null) ? "worktree" : "outside";
}

/** Which of these Git has, and which it has or would take with the next `git add .`: whatever it does not ignore. */
export async function versionedAmong(
  { git, worktrees, commonDir }: HooksHome,
  paths: readonly string[],
): Promise<{ readonly tracked: Set<string>; readonly versioned: Set<string> }> {
  const found = { tracked: new Set<string>(), versioned: new Set<string>() };
  const outside = paths.filter((path) => below(path, commonDir) === null);
  for (const worktree of worktrees)
    for (const [path, standing] of await standingsOf(git, worktree, outside, false)) {
      if (standing === "tracked") found.tracked.add(path);
      if (standing !== "ignored") found.versioned.add(path);
    }
  return found;
}
