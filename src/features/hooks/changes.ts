import type { CotenantError } from "../../errors/cotenant-error";
import { byteTextOf } from "../../git/byte-text";
import { type PathChange, parseBatch, parseChanges } from "../../git/commit-text";
import type { Git, GitPlace } from "../../platform/git";
import { gitFailed } from "../../platform/git-answers";

/** A repository may tell Git not to look at a submodule: what moves it is a change all the same. */
const SUBMODULES_TOO = "--ignore-submodules=none";

/** How Git is asked for it. */
export function stagedArguments(against: string): string[] {
  return ["diff-index", "--cached", "--raw", "-z", "--no-renames", SUBMODULES_TOO, against, "--"];
}

/**
 * The last word of a comparison that somebody else has asked Git for. It changes with the question: lines of an older version
 * in a hook ("whole": without some submodules) have not asked this one.
 */
export const END = "all";

/** Null when it is not all there. */
export function givenChanges(bytes: Uint8Array): PathChange[] | null {
  const at = bytes.length - END.length - 1;
  if (at < 0 || new TextDecoder().decode(bytes.subarray(at)) !== `${END}\0`) return null;
  return parseChanges(bytes.subarray(0, at));
}

/** What the index would commit. `against` is HEAD, or another parent of a merge. */
export async function stagedChanges(git: Git, place: GitPlace, against: string): Promise<PathChange[]> {
  try {
    return await rawDiff(git, place, stagedArguments(against));
  } catch (error) {
    // Seldom asked, so asked last: a branch without a commit has nothing to compare with.
    if (await isThere(git, place, against)) throw error;
    return rawDiff(git, place, stagedArguments(await emptyTree(git, place)));
  }
}

async function isThere(git: Git, place: GitPlace, name: string): Promise<boolean> {
  const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
  return (await git.run(args, place)).status === 0;
}

/** What a commit changed, against its first parent. */
export function committedChanges(git: Git, place: GitPlace, commit: string): Promise<PathChange[]> {
  return rawDiff(git, place, [
    "diff-tree",
    "-r",
    "--root",
    "--no-commit-id",
    "--raw",
    "-z",
    "--no-renames",
    "--no-abbrev",
    SUBMODULES_TOO,
    "-m",
    "--first-parent",
    "--end-of-options",
    commit,
  ]);
}

/** What is in these objects, by their names. */
export async function blobs(
  git: Git,
  place: GitPlace,
  oids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const wanted = [...new Set(oids)];
  if (wanted.length === 0) return new Map();
  const { status, stdout, stderr } = await git.run(["cat-file", "--batch"], {
    ...place,
    env: { ...place.env, GIT_NO_REPLACE_OBJECTS: "1" },
    input: `${wanted.join("\n")}\n`,
  });
  const found = status === 0 ? parseBatch(stdout, wanted) : null;
  if (found === null) throw failed("reading what is committed", stderr);
  return new Map(found.map(({ oid, content }) => [oid, textOf(content)]));
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

/** Different bytes are different texts: nothing is left out, and nothing stands for what is no Unicode. */
function textOf(content: Uint8Array): string {
  try {
    return utf8.decode(content);
  } catch {
    return byteTextOf(content);
  }
}

async function rawDiff(git: Git, place: GitPlace, args: readonly string[]): Promise<PathChange[]> {
  const { status, stdout, stderr } = await git.run(args, place);
  const changes = status === 0 ? parseChanges(stdout) : null;
  if (changes === null) throw failed("comparing what is committed", stderr);
  return changes;
}

async function emptyTree(git: Git, place: GitPlace): Promise<string> {
  const { stdout } = await git.run(["hash-object", "-t", "tree", "--stdin"], { ...place, input: "" });
  return new TextDecoder().decode(stdout).trim();
}

function failed(doing: string, stderr: string): CotenantError {
  return gitFailed(`${doing} failed`, stderr);
}
