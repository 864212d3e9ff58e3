import { CotenantError } from "../../errors/cotenant-error";
import { type ByteText, bytesOf, byteTextOf, toByteText } from "../../git/byte-text";
import type { PathChange } from "../../git/commit-text";
import { CommitReader } from "../../git/commits";
import type { ObjectId } from "../../git/object-name";
import { MODES } from "../../git/tree";
import { decode, joinPath } from "../../identity/path-text";
import { ask, LONG_MS, quotedPath } from "../worktrees/git-calls";
import { machineOf, type Yard } from "../worktrees/place";

interface Moved {
  readonly root: string;
  readonly gitDir: string;
  readonly old: ObjectId;
  readonly new: ObjectId;
}

/**
 * Files that are just as `new` has them, or as far as a Git that was killed had written them, become as the index has them,
 * which is still that of `old`; what is new goes, and what is missing comes back. A file with any other content is
 * somebody's edit, and stays. Done twice, it has no more effect.
 */
export async function putBack(yard: Yard, move: Moved): Promise<void> {
  const { git } = machineOf(yard);
  const reader = new CommitReader(git, { cwd: yard.workspace.repository.worktreeRoot });
  const changes = await reader.difference(move.old, move.new);
  const present = await contentsOf(
    yard,
    move,
    changes.map(({ path }) => path),
  );
  const isAsNew = async ({ path, oid, mode }: PathChange) => {
    if (mode === MODES.submodule) return false;
    const found = present.get(path) ?? null;
    return found === oid || (found !== null && oid !== null && (await isCutShort(yard, move, path)));
  };
  for (const change of changes)
    if (change.status === "added" && (await isAsNew(change))) await removeFile(yard, move.root, change.path);
  const unwanted = await leftOut(yard, move);
  const restored: string[] = [];
  for (const change of changes) {
    if (change.status === "added" || unwanted.has(toByteText(change.path))) continue;
    // Git takes a file away before it writes it anew; and where it was to be a directory, that is gone by now.
    const isFit =
      (change.status === "changed" && (await isAsNew(change))) ||
      (change.mode !== MODES.submodule && (await isFree(yard, move.root, change.path)));
    if (isFit) restored.push(change.path);
  }
  if (restored.length === 0) return;
  const place = placeOf(move);
  const input = bytesOf(restored.map((path) => `${toByteText(path)}\0`).join(""));
  const args = [...place, "checkout-index", "--force", "-z", "--stdin"];
  await ask(git, args, { cwd: move.root, input, timeoutMs: LONG_MS }, "putting files of a checkout back");
}

const placeOf = ({ gitDir, root }: Moved) => ["--git-dir", gitDir, "--work-tree", root];

/** Files that a sparse checkout has no use for. */
async function leftOut(yard: Yard, move: Moved): Promise<ReadonlySet<ByteText>> {
  const { git } = machineOf(yard);
  const options = { cwd: move.root, timeoutMs: LONG_MS };
  const doing = "looking at files of a checkout";
  const listed = byteTextOf(await ask(git, [...placeOf(move), "ls-files", "-v", "-z"], options, doing));
  return new Set([...listed.matchAll(/(?:^|\0)[Ss] ([^\0]+)/g)].map(([, path]) => path!));
}

/** Whether a file is the beginning of what it was to be: Git writes files in their place. */
async function isCutShort(yard: Yard, move: Moved, path: string): Promise<boolean> {
  const { git, platform } = machineOf(yard);
  const whole = joinPath(move.root, path);
  if ((await yard.trees.look(toByteText(whole)))?.kind !== "file") return false;
  const args = [...placeOf(move), "cat-file", "--filters", `${move.new}:${path}`];
  try {
    const { status, stdout } = await git.run(args, { cwd: move.root, timeoutMs: LONG_MS });
    const found = await platform.files.readFile(whole);
    if (status !== 0 || found === null || found.length >= stdout.length) return false;
    return found.every((byte, at) => byte === stdout[at]);
  } catch (error) {
    // More than can be held: nobody knows, so it stays.
    if (error instanceof CotenantError) return false;
    throw error;
  }
}

/** Nothing is there, and nothing has taken the place of a directory on the way. */
async function isFree({ trees }: Yard, root: string, path: string): Promise<boolean> {
  const parts = path.split("/");
  for (let count = 1; count <= parts.length; count++) {
    const entry = await trees.look(`${toByteText(root)}/${toByteText(parts.slice(0, count).join("/"))}`);
    if (entry === null) return true;
    if (entry.kind !== "directory") return false;
  }
  return false;
}

/** The name that each file's content has, or would have, as an object; null where there is nothing. */
async function contentsOf(
  yard: Yard,
  { root, gitDir }: Moved,
  paths: readonly string[],
): Promise<Map<string, ObjectId | null>> {
  const { git } = machineOf(yard);
  const found = new Map<string, ObjectId | null>();
  const files: string[] = [];
  const links: { readonly path: string; readonly target: ByteText }[] = [];
  for (const path of paths) {
    const whole = `${toByteText(root)}/${toByteText(path)}`;
    const entry = await yard.trees.look(whole);
    if (entry === null) found.set(path, null);
    else if (entry.kind === "file") files.push(path);
    else if (entry.kind === "symlink")
      links.push({ path, target: (await yard.trees.readLink(whole)) as ByteText });
    else found.set(path, "");
  }
  const place = ["--git-dir", gitDir, "--work-tree", root];
  const options = { cwd: root, timeoutMs: LONG_MS };
  const doing = "looking at files of a checkout";
  if (files.length > 0) {
    const input = bytesOf(files.map((path) => `${quotedPath(toByteText(path))}\n`).join(""));
    const names = decode(
      await ask(git, [...place, "hash-object", "--stdin-paths"], { ...options, input }, doing),
    );
    for (const [at, name] of names.split("\n").slice(0, files.length).entries()) found.set(files[at]!, name);
  }
  for (const { path, target } of links) {
    const args = [...place, "hash-object", "--stdin"];
    found.set(path, decode(await ask(git, args, { ...options, input: bytesOf(target) }, doing)).trim());
  }
  return found;
}

async function removeFile({ trees }: Yard, root: string, path: string): Promise<void> {
  await trees.unlink(`${toByteText(root)}/${toByteText(path)}`);
  // Directories that came with it.
  const parts = path.split("/").slice(0, -1);
  for (; parts.length > 0; parts.pop())
    if (!(await trees.removeDirectory(`${toByteText(root)}/${toByteText(parts.join("/"))}`))) return;
}
