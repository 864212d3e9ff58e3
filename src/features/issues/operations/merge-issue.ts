import type { Surroundings } from "../../../coordinator/workspace";
import { CotenantError, fileFailure } from "../../../errors/cotenant-error";
import { resolveFrom } from "../../../identity/path-text";
import { printable } from "../../../kernel/ids";
import { overwriteFile } from "../../../platform/overwrite-file";
import type { Marks } from "../merge/conflict-file";
import { type MergedFile, mergeIssueFiles } from "../merge/files";
import type { Pair } from "../merge/values";
import type { Issue } from "../model";

export interface MergeRequest {
  /** Files with the common ancestor and the two sides. The merged issue is written into `ours`. */
  readonly base: string;
  readonly ours: string;
  readonly theirs: string;
  /** What the sides are called in marks. */
  readonly ourName?: string | undefined;
  readonly theirName?: string | undefined;
  /** How long conflict marks are; Git makes them longer where common ancestors are merged among themselves. */
  readonly markerSize?: number | undefined;
  /** Told why it was merged as text, and what both sides have changed. */
  readonly onRemark?: ((line: string) => void) | undefined;
}

export interface Merged {
  /** Fields that both sides have changed. */
  readonly conflicts: readonly string[];
  /** Whether marks are left for a person. */
  readonly isConflict: boolean;
}

/** What Git's own marks have. */
const MARK = 7;
/** How much of a value is told; all of it is in the file. */
const EXCERPT = 80;

/** Merges three versions of an issue field by field, for Git's merge driver; as text, where that is not possible. */
export async function mergeIssue(surroundings: Surroundings, request: MergeRequest): Promise<Merged> {
  const { base, ours, theirs, ourName = "", theirName = "", markerSize = MARK } = request;
  const marks: Marks = {
    left: label(ourName, "ours"),
    right: label(theirName, "theirs"),
    size: Math.min(Math.max(markerSize, MARK), 1_000),
  };
  const [from, mine, yours] = await Promise.all([base, ours, theirs].map((name) => read(surroundings, name)));
  const { digest } = surroundings.platform;
  const merged = mergedOrWhy(() =>
    mergeIssueFiles(textOf(from!), textOf(mine!), textOf(yours!), marks, (text) => digest.sha256(text)),
  );
  // Of common ancestors among themselves nobody has to hear.
  const remark = (marks.size === MARK ? request.onRemark : null) ?? (() => {});
  if ("why" in merged) {
    remark(`merged as text, because it is not possible field by field: ${printable(merged.why, 300)}`);
    return mergeAsText(surroundings, request, marks);
  }
  const { platform, cwd } = surroundings;
  // In place: the file is Git's own temporary one.
  await attempt(ours, () => overwriteFile(platform.files, resolveFrom(cwd, ours), merged.text, 0o644));
  const { conflicts } = merged;
  for (const name of conflicts)
    remark(`both sides changed ${printable(name)}: ${bothValues(merged.merged, name, marks)}`);
  return { conflicts, isConflict: conflicts.length > 0 };
}

/** In the file a long text is one long line; here is where the two begin to differ. */
function bothValues({ left, right }: Pair<Issue>, name: string, marks: Marks): string {
  const [mine, yours] = [left, right].map((issue) => {
    const value: unknown = Object.hasOwn(issue, name) ? issue[name as keyof Issue] : issue.extra[name];
    return typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
  }) as [string, string];
  let same = 0;
  while (same < mine.length && mine[same] === yours[same]) same++;
  const start = same === 0 ? 0 : mine.lastIndexOf("\n", same - 1) + 1;
  const shown = (text: string) => `"${printable(text.slice(start).split("\n")[0]!, EXCERPT)}"`;
  return `${shown(mine)} (${marks.left}), ${shown(yours)} (${marks.right})`;
}

/** Git before 2.44 does not know these names, and leaves the placeholder standing. */
function label(text: string, otherwise: string): string {
  return /^(?:%[XY])?$/.test(text) ? otherwise : printable(text, 200);
}

/** Whatever is in these files: a merge must not end without both sides. */
function mergedOrWhy(merge: () => MergedFile): MergedFile {
  try {
    return merge();
  } catch (error) {
    if (error instanceof RangeError) return { why: "it is nested too deeply" };
    // The decoder's, for bytes that are not UTF-8.
    if (error instanceof TypeError) return { why: "it is not text" };
    throw error;
  }
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

/** Git's own three-way merge, with its usual marks. Where that cannot be done either, Git's index has all versions. */
async function mergeAsText(
  { git, cwd }: Surroundings,
  { base, ours, theirs }: MergeRequest,
  { left, right, size }: Marks,
): Promise<Merged> {
  const labels = [left, "base", right].flatMap((name) => ["-L", name]);
  const args = ["merge-file", "-q", `--marker-size=${size}`, ...labels, "--", ours, base, theirs];
  const { status } = await git.run(args, { cwd });
  return { conflicts: [], isConflict: status !== 0 };
}

async function read({ platform, cwd }: Surroundings, name: string): Promise<Uint8Array> {
  const bytes = await attempt(name, () => platform.files.readFile(resolveFrom(cwd, name)));
  if (bytes !== null) return bytes;
  throw new CotenantError("E_NOT_FOUND", `there is no file ${printable(name, 300)}`, {
    hint: "this is Git's to call: see 'cotenant merge-issue --help'",
    data: { path: name },
  });
}

async function attempt<T>(name: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw fileFailure(error, "merging an issue", name);
  }
}
