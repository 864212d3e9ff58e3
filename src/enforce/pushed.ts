import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import type { Git, GitOptions } from "../platform/git";
import { type PathChange, parseRaw } from "./changes";
import { parseTrailers, type Trailers } from "./trailers";

/** A commit that changes what is guarded: issues, and what concerns everybody. */
export interface GuardedCommit {
  readonly oid: string;
  readonly authoredAtMs: number;
  readonly committedAtMs: number;
  readonly trailers: Trailers;
  readonly changes: readonly PathChange[];
}

/** Commits, as `git rev-list` takes them. */
export interface Revisions {
  readonly names: readonly string[];
  /** `--not --remotes=… --not`, before the names. */
  readonly options: readonly string[];
}

export type Place = Pick<GitOptions, "cwd" | "env">;

const GUARDED = [".cotenant/issues", ".cotenant/config.toml", ".cotenant/gates/registry.json"];
/** More than this in one push is looked at only so far, and that is said. */
export const MOST_COMMITS = 2_000;

/**
 * The commits among these revisions that change something guarded, oldest first. Merges are left out: what they bring is
 * in the commits that they merge.
 */
export async function guardedCommits(git: Git, place: Place, revisions: Revisions): Promise<GuardedCommit[]> {
  const listed = await lines(git, place, [
    "rev-list",
    "--no-merges",
    "--reverse",
    ...revisions.options,
    "--end-of-options",
    ...revisions.names,
    "--",
    ...GUARDED,
  ]);
  if (listed.length === 0) return [];
  if (listed.length > MOST_COMMITS)
    throw new CotenantError(
      "E_LIMIT",
      `${listed.length} commits change issues or settings; ${MOST_COMMITS} can be looked at`,
      {
        hint: "push them in parts",
      },
    );
  const [facts, changes] = [await describe(git, place, listed), await changesOf(git, place, listed)];
  return listed.map((oid) => ({ oid, ...facts.get(oid)!, changes: changes.get(oid) ?? [] }));
}

async function describe(
  git: Git,
  place: Place,
  oids: readonly string[],
): Promise<Map<string, Omit<GuardedCommit, "oid" | "changes">>> {
  const format = "--format=%H%x00%at%x00%ct%x00%(trailers:only=true,unfold=true)%x00%x00";
  const text = await output(
    git,
    place,
    ["log", "--no-walk=unsorted", "--stdin", format],
    `${oids.join("\n")}\n`,
  );
  const found = new Map<string, Omit<GuardedCommit, "oid" | "changes">>();
  for (const record of text.split("\0\0")) {
    const [oid = "", authored = "", committed = "", trailers = ""] = record.trimStart().split("\0");
    if (oid === "") continue;
    found.set(oid, {
      authoredAtMs: Number(authored) * 1000,
      committedAtMs: Number(committed) * 1000,
      trailers: parseTrailers(trailers),
    });
  }
  return found;
}

async function changesOf(
  git: Git,
  place: Place,
  oids: readonly string[],
): Promise<Map<string, PathChange[]>> {
  const args = [
    "diff-tree",
    "--stdin",
    "-r",
    "--root",
    "--raw",
    "-z",
    "--no-renames",
    "--no-abbrev",
    "--",
    ...GUARDED,
  ];
  const text = await output(git, place, args, `${oids.join("\n")}\n`);
  const found = new Map<string, PathChange[]>();
  // `<oid>` and the changes of that commit, all ended by NUL.
  for (const part of text.split(/(?:^|\0|\n)(?=[0-9a-f]{40,64}(?:\0|\n))/)) {
    const end = part.search(/[\0\n]/);
    if (end > 0) found.set(part.slice(0, end), parseRaw(part.slice(end + 1)));
  }
  return found;
}

async function lines(git: Git, place: Place, args: readonly string[]): Promise<string[]> {
  return (await output(git, place, args)).split("\n").filter((line) => line !== "");
}

async function output(git: Git, place: Place, args: readonly string[], input = ""): Promise<string> {
  const { status, stdout, stderr } = await git.run(args, { ...place, input, timeoutMs: 60_000 });
  if (status === 0) return new TextDecoder().decode(stdout);
  throw new CotenantError("E_GIT", `Git cannot list the commits: ${printable(stderr.trim(), 300)}`, {
    hint: "look at the range: both ends must be here ('git fetch')",
  });
}
