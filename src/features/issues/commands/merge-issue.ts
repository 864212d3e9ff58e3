import type { Command, Context, Output } from "../../../cli/grammar/command";
import type { Surroundings } from "../../../coordinator/workspace";
import { CotenantError, fileFailure } from "../../../errors/cotenant-error";
import { resolveFrom } from "../../../identity/path-text";
import { printable } from "../../../kernel/ids";
import type { Marks } from "../merge/conflict-file";
import { type MergedFile, mergeIssueFiles } from "../merge/files";
import type { Pair } from "../merge/values";
import type { Issue } from "../model";

/** What Git's own marks have. */
const MARK = 7;
/** How much of a value is told; all of it is in the file. */
const EXCERPT = 80;

export const command: Command = {
  usage: "merge-issue [--marker-size <n>] -- <base> <ours> <theirs> [<path> [<our name> <their name>]]",
  about:
    "For Git, which runs it as the merge driver that 'init' registers: merges three versions of an issue.json field by\nfield into <ours>. Exits 0 when that is done, and 1 when it left marks for a person.",
  flags: { "marker-size": { value: "<n>", meaning: "how long conflict marks are" } },
  examples: ["cotenant merge-issue -- base.json ours.json theirs.json"],
  words: { min: 3, max: 6 },
  remindsOfExpiry: false,
  async run(context, parsed) {
    const [base, ours, theirs, path = ours, left = "", right = ""] = parsed.words as [string, string, string];
    const marks: Marks = {
      left: label(left, "ours"),
      right: label(right, "theirs"),
      size: Math.min(Math.max(parsed.whole("marker-size") ?? MARK, MARK), 1_000),
    };
    const surroundings = context.surroundings();
    const [from, mine, yours] = await Promise.all(
      [base, ours, theirs].map((name) => read(surroundings, name)),
    );
    const { digest } = surroundings.platform;
    const merged = mergedOrWhy(() =>
      mergeIssueFiles(textOf(from!), textOf(mine!), textOf(yours!), marks, (text) => digest.sha256(text)),
    );
    // Of common ancestors among themselves nobody has to hear.
    const say =
      marks.size === MARK
        ? (line: string) => context.note(`cotenant: ${printable(path, 300)}: ${line}`)
        : () => {};
    if ("why" in merged) {
      say(`merged as text, because it is not possible field by field: ${printable(merged.why, 300)}`);
      return mergeAsText(context, { base, ours, theirs }, marks);
    }
    await write(surroundings, ours, merged.text);
    const { conflicts } = merged;
    for (const name of conflicts)
      say(`both sides changed ${printable(name)}: ${bothValues(merged.merged, name, marks)}`);
    return answer(conflicts, conflicts.length > 0);
  },
};

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

function answer(conflicts: readonly string[], isConflict: boolean): Output {
  return { data: { conflicts }, text: "", exit: isConflict ? 1 : 0 };
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
  context: Context,
  { base, ours, theirs }: Readonly<Record<"base" | "ours" | "theirs", string>>,
  { left, right, size }: Marks,
): Promise<Output> {
  const { git, cwd } = context.surroundings();
  const labels = [left, "base", right].flatMap((name) => ["-L", name]);
  const args = ["merge-file", "-q", `--marker-size=${size}`, ...labels, "--", ours, base, theirs];
  const { status } = await git.run(args, { cwd });
  return answer([], status !== 0);
}

async function read({ platform, cwd }: Surroundings, name: string): Promise<Uint8Array> {
  const bytes = await attempt(name, () => platform.files.readFile(resolveFrom(cwd, name)));
  if (bytes !== null) return bytes;
  throw new CotenantError("E_NOT_FOUND", `there is no file ${printable(name, 300)}`, {
    hint: "this is Git's to call: see 'cotenant merge-issue --help'",
    data: { path: name },
  });
}

/** In place: the file is Git's own temporary one. */
async function write({ platform, cwd }: Surroundings, name: string, text: string): Promise<void> {
  const { files } = platform;
  const bytes = new TextEncoder().encode(text);
  await attempt(name, async () => {
    const fd = await files.open(resolveFrom(cwd, name), "update");
    try {
      for (let at = 0; at < bytes.length; ) at += await files.writeAt(fd, bytes.subarray(at), at);
      await files.truncate(fd, bytes.length);
    } finally {
      await files.close(fd);
    }
  });
}

async function attempt<T>(name: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw fileFailure(error, "merging an issue", name);
  }
}
