import { CotenantError } from "../errors/cotenant-error";
import type { Git, GitOptions } from "../platform/git";
import { gitWords } from "../platform/git-answers";

/** One path that a commit, or the index, changes. */
export interface PathChange {
  readonly path: string;
  readonly status: "added" | "changed" | "deleted";
  /** Of the new content; null where it is deleted. */
  readonly oid: string | null;
}

type Place = Pick<GitOptions, "cwd" | "env">;

/** How Git is asked for it. */
export function stagedArguments(against: string): string[] {
  return ["diff-index", "--cached", "--raw", "-z", "--no-renames", against, "--"];
}

/** The last word of a comparison that somebody else has asked Git for. */
export const END = "whole";

/** Null when it is not all there. */
export function givenChanges(text: string): PathChange[] | null {
  return text.endsWith(`${END}\0`) ? parseRaw(text.slice(0, -(END.length + 1))) : null;
}

/** What the index would commit. `against` is HEAD, or another parent of a merge. */
export async function stagedChanges(git: Git, place: Place, against: string): Promise<PathChange[]> {
  try {
    return await rawDiff(git, place, stagedArguments(against));
  } catch (error) {
    // Seldom asked, so asked last: a branch without a commit has nothing to compare with.
    if (await isThere(git, place, against)) throw error;
    return rawDiff(git, place, stagedArguments(await emptyTree(git, place)));
  }
}

async function isThere(git: Git, place: Place, name: string): Promise<boolean> {
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
  return (await git.run(args, place)).status === 0;
}

/** What a commit changed, against its first parent. */
export function committedChanges(git: Git, place: Place, commit: string): Promise<PathChange[]> {
  return rawDiff(git, place, [
    "diff-tree",
    "-r",
    "--root",
    "--no-commit-id",
    "--raw",
    "-z",
    "--no-renames",
    "-m",
    "--first-parent",
    "--end-of-options",
    commit,
  ]);
}

export async function blobs(git: Git, place: Place, oids: readonly string[]): Promise<Map<string, string>> {
  if (oids.length === 0) return new Map();
  const { status, stdout, stderr } = await git.run(["cat-file", "--batch"], {
    ...place,
    input: `${oids.join("\n")}\n`,
  });
  if (status !== 0) throw failed("reading what is committed", stderr);
  const found = new Map<string, string>();
  const decoder = new TextDecoder();
  for (let at = 0; at < stdout.length; ) {
    const end = stdout.indexOf(10, at);
    if (end === -1) break;
    const head = /^([0-9a-f]{40,64}) blob (\d+)$/.exec(decoder.decode(stdout.subarray(at, end)));
    at = end + 1;
    if (head === null) continue;
    const size = Number(head[2]);
    found.set(head[1]!, decoder.decode(stdout.subarray(at, at + size)));
    at += size + 1;
  }
  return found;
}

async function rawDiff(git: Git, place: Place, args: readonly string[]): Promise<PathChange[]> {
  const { status, stdout, stderr } = await git.run(args, place);
  if (status !== 0) throw failed("comparing what is committed", stderr);
  return parseRaw(new TextDecoder().decode(stdout));
}

/** `:100644 100644 <old> <new> M\0path\0`, one after the other. */
export function parseRaw(text: string): PathChange[] {
  const parts = text.split("\0");
  const changes = new Map<string, PathChange>();
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const head = /^:\d+ \d+ [0-9a-f]+ ([0-9a-f]+) ([A-Z])\d*$/.exec(parts[at]!);
    const path = parts[at + 1]!;
    if (head === null) continue;
    const status = head[2] === "A" ? "added" : head[2] === "D" ? "deleted" : "changed";
    changes.set(path, { path, status, oid: status === "deleted" ? null : head[1]! });
  }
  return [...changes.values()];
}

async function emptyTree(git: Git, place: Place): Promise<string> {
  const { stdout } = await git.run(["hash-object", "-t", "tree", "--stdin"], { ...place, input: "" });
  return new TextDecoder().decode(stdout).trim();
}

function failed(doing: string, stderr: string): CotenantError {
  return new CotenantError("E_GIT", `${doing} failed: ${gitWords(stderr)}`);
}
