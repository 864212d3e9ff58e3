import { bytesOf, byteTextOf, toByteText } from "../../git/byte-text";
import { decode } from "../../identity/path-text";
import type { WorktreeEntry } from "../../identity/worktree-list";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import type { Trees } from "../../platform/trees";
import { ask, gitFailure, LONG_MS, quotedPath } from "./git-calls";
import { machineOf, type Yard } from "./place";
import { gitState, isDirty } from "./survey";

/** What would be gone with a worktree, besides files. */
export interface AtRisk {
  readonly isDirty: boolean;
  /** Commits that only this worktree's HEAD or its history lead to. */
  readonly tips: readonly string[];
  /** Something that Git is in the middle of. */
  readonly underWay: string | null;
}

const UNDER_WAY: Readonly<Record<string, string>> = {
  "rebase-merge": "a rebase",
  "rebase-apply": "a rebase",
  MERGE_HEAD: "a merge",
  CHERRY_PICK_HEAD: "a cherry-pick",
  REVERT_HEAD: "a revert",
  BISECT_LOG: "a bisection",
};

export async function atRisk(yard: Yard, worktree: WorktreeEntry): Promise<AtRisk> {
  const { git, platform } = machineOf(yard);
  return {
    isDirty: !(await isAsCommitted({ git, trees: yard.trees }, worktree)),
    tips: await loneCommits(yard, worktree),
    underWay: await underWayIn(platform, worktree.gitDir),
  };
}

/** What Git is in the middle of there; null where it is nothing. */
export async function underWayIn({ files }: Platform, gitDir: string): Promise<string | null> {
  let underWay: string | null = null;
  for (const [name, what] of Object.entries(UNDER_WAY))
    if ((await files.lstat(`${gitDir}/${name}`)) !== null) underWay ??= what;
  return underWay;
}

/** Refs that each worktree has for itself, and that go with it. */
const OWN_REFS = ["refs/worktree/", "refs/bisect/", "refs/rewritten/"];

/** What HEAD was on, here, or a ref of this worktree's own is, and no branch, tag or remote leads to. */
export async function loneCommits(yard: Yard, { root, gitDir, exists }: WorktreeEntry): Promise<string[]> {
  const { git } = machineOf(yard);
  const options = { cwd: exists ? root : gitDir, timeoutMs: LONG_MS };
  const place = exists ? ["--git-dir", gitDir, "--work-tree", root] : ["--git-dir", gitDir];
  const listed = async (...args: string[]) => decode((await git.run([...place, ...args], options)).stdout);
  const mentioned = [
    await listed("rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
    // A branch without a commit has none, and Git then says nothing of what HEAD was on before: its file does.
    await listed("log", "--walk-reflogs", "--format=%H", "HEAD", "--"),
    await reflogOf(yard, gitDir),
    await listed("for-each-ref", "--format=%(objectname)", ...OWN_REFS),
  ];
  const commits = new Set(mentioned.join("\n").match(/^[0-9a-f]{40,64}$/gm));
  if (commits.size === 0) return [];
  const input = `${[...commits].join("\n")}\n`;
  const args = ["rev-list", "--ignore-missing", "--parents", "--stdin"];
  const others = ["--not", "--branches", "--tags", "--remotes"];
  const lone = await git.run([...place, ...args, ...others], { ...options, input });
  if (lone.status !== 0) throw gitFailure(args, { cwd: root, ...lone }, "finding commits that only it has");
  return tipsOf(decode(lone.stdout));
}

/** Of commits with their parents, one line each: those that no other one leads to. */
export function tipsOf(text: string): string[] {
  const lines = text.split("\n").filter(Boolean);
  const parents = new Set(lines.flatMap((line) => line.split(" ").slice(1)));
  return lines.map((line) => line.split(" ", 1)[0]!).filter((commit) => !parents.has(commit));
}

/** What HEAD has been on, a line each. Git keeps it elsewhere where refs are no files. */
async function reflogOf(yard: Yard, gitDir: string): Promise<string> {
  const bytes = await machineOf(yard).platform.files.readFile(`${gitDir}/logs/HEAD`);
  if (bytes === null) return "";
  const lines = decode(bytes).match(/^[0-9a-f]{40,64} [0-9a-f]{40,64}/gm) ?? [];
  return lines
    .flatMap((line) => line.split(" "))
    .filter((commit) => !/^0+$/.test(commit))
    .join("\n");
}

/** Whether all of its files are in its commit, but for those that Git ignores. */
export async function isAsCommitted(
  at: { readonly git: Git; readonly trees: Trees },
  worktree: WorktreeEntry,
): Promise<boolean> {
  const state = await gitState(at.git, worktree, null);
  return state !== null && !isDirty(state.dirt) && !(await hasHidden(at, worktree));
}

/** Whether files differ that Git was told not to look at (`assume-unchanged`, `skip-worktree`): its status is silent. */
export async function hasHidden(
  { git, trees }: { readonly git: Git; readonly trees: Trees },
  { root, gitDir }: WorktreeEntry,
): Promise<boolean> {
  const place = ["--git-dir", gitDir, "--work-tree", root];
  const options = { cwd: root, timeoutMs: LONG_MS, env: { GIT_OPTIONAL_LOCKS: "0" } };
  const doing = "finding files that Git does not look at";
  const staged = byteTextOf(await ask(git, [...place, "ls-files", "-z", "-s", "-v"], options, doing));
  const hidden: { readonly path: string; readonly oid: string }[] = [];
  for (const [, oid, path] of staged.matchAll(/(?:^|\0)[a-zS] \d{6} ([0-9a-f]+) \d\t([^\0]+)/g)) {
    const entry = await trees.look(`${toByteText(root)}/${path}`);
    if (entry === null || entry.kind === "directory") continue;
    // A link is not compared with anything: keeping one too many harms nobody.
    if (entry.kind !== "file") return true;
    hidden.push({ path: path!, oid: oid! });
  }
  if (hidden.length === 0) return false;
  const input = bytesOf(hidden.map(({ path }) => `${quotedPath(path)}\n`).join(""));
  const args = [...place, "hash-object", "--stdin-paths"];
  const names = decode(await ask(git, args, { ...options, input }, doing)).split("\n");
  return hidden.some(({ oid }, i) => names[i] !== oid);
}
