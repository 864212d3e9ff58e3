import { CotenantError } from "../../errors/cotenant-error";
import { bytesOf, byteTextOf, toByteText } from "../../git/byte-text";
import { nameOf } from "../../git/pack-writer";
import type { WorktreeId } from "../../kernel/ids";
import { COLUMN, KINDS, ROW } from "../../platform/trees";
import { makeWorktree } from "../worktrees/construction";
import { ask, LONG_MS } from "../worktrees/git-calls";
import { type Contents, partial, readContents } from "./contents";
import type { Descriptor } from "./descriptor";
import { fill } from "./file-writer";
import { Hasher } from "./hasher";
import type { TreePlace } from "./listing";
import { digestLine, digestOf } from "./parts";
import { modeAt } from "./picture";
import type { SnapshotContext, SnapshotMachine } from "./snapshot-context";

export interface Restored {
  readonly worktreeId: WorktreeId;
  readonly root: string;
  readonly files: number;
}

/** A new worktree with exactly what the snapshot holds. Needs no lock: nothing that is there is touched. */
export async function restoreAnew(
  context: SnapshotContext,
  descriptor: Descriptor,
  wanted: { readonly place: string; readonly branch: string | null },
): Promise<Restored> {
  const { machine, place, session } = context;
  const contents = await readContents(machine, place, descriptor);
  // Without a commit a branch is only a name, which HEAD has.
  const branch = descriptor.head === null ? null : wanted.branch;
  const { worktreeId } = await makeWorktree(context, {
    place: wanted.place,
    branch,
    isNewBranch: branch !== null,
    commit: descriptor.head ?? descriptor.commit,
    record: { agentId: session.actor.agentId, issueId: null, snapshotId: descriptor.snapshot_id },
    fill: async (root) => {
      await fill(machine, place.commonDir, root, contents);
      await checkFilled(machine, { ...place, root }, contents, descriptor);
      await restoreIndex(context, descriptor, root, wanted.branch);
      await machine.trees.syncAll(toByteText(root));
    },
  });
  const root = (await machine.platform.files.realPath(wanted.place)) ?? wanted.place;
  return { worktreeId, root, files: contents.files.length };
}

/** Reads everything back from the disk: a restored worktree is equal, file by file, or it is none. */
async function checkFilled(
  machine: SnapshotMachine,
  place: TreePlace,
  contents: Contents,
  descriptor: Descriptor,
): Promise<void> {
  const { trees, platform, git, format } = machine;
  const root = toByteText(place.root);
  const files = contents.files.filter(({ kind }) => kind !== "repository");
  const paths = files.map(({ path }) => path);
  const rows = new Float64Array(paths.length * ROW);
  await trees.lookAll(root, paths, rows);
  const hasher = new Hasher(trees, root, async (type, content) => nameOf(platform, format, type, content));
  const oids: string[] = [];
  for (const [i, path] of paths.entries()) oids.push(await hasher.hash(path, rows, i));
  for (const [i, oid] of await hasher.large(git, place, paths, rows, null)) oids[i] = oid;
  const lines = paths.map((path, i) => {
    const kind = KINDS[rows[i * ROW + COLUMN.kind]!] ?? "nothing";
    return digestLine(kind, kind === "file" ? modeAt(rows, i) : 0, oids[i]!, path);
  });
  for (const { path, kind, oid } of contents.files)
    if (kind === "repository") lines.push(digestLine("directory", 0, oid, path));
  for (const path of contents.directories.keys()) {
    const entry = await trees.look(`${root}/${path}`);
    lines.push(digestLine(entry?.kind ?? "nothing", entry?.mode ?? 0, "", path));
  }
  if (digestOf(platform, lines) !== descriptor.digest)
    throw partial(descriptor, "what was written does not equal what was kept");
}

/** The user's index as it was; the files are there already. */
async function restoreIndex(
  { machine }: SnapshotContext,
  descriptor: Descriptor,
  root: string,
  branch: string | null,
): Promise<void> {
  const { git } = machine;
  const call = (args: readonly string[], input?: Uint8Array) =>
    ask(
      git,
      args,
      { cwd: root, timeoutMs: LONG_MS, ...(input === undefined ? {} : { input }) },
      "restoring the index",
    );
  if (descriptor.head === null) {
    const name = branch ?? `restored/${descriptor.snapshot_id.slice(10, 18).toLowerCase()}`;
    await call(["symbolic-ref", "HEAD", `refs/heads/${name}`]);
  }
  const tree = descriptor.index ?? (descriptor.head === null ? null : `${descriptor.head}^{tree}`);
  await call(tree === null ? ["read-tree", "--empty"] : ["read-tree", tree]);
  if (descriptor.stages !== null) {
    const listed = await call(["ls-tree", "-r", "-z", "--full-tree", descriptor.stages]);
    await call(["update-index", "-z", "--index-info"], stagesInput(listed));
  }
  if (descriptor.skipped !== null) {
    const names = await call(["cat-file", "blob", descriptor.skipped]);
    await call(["update-index", "-z", "--skip-worktree", "--stdin"], names);
  }
  // Only spares the next `git status` the work; it complains about every file that differs.
  await git.run(["update-index", "-q", "--refresh"], { cwd: root, timeoutMs: LONG_MS });
}

/** `mode type oid\t2/path` as `mode oid 2\tpath`. */
function stagesInput(listed: Uint8Array): Uint8Array {
  const lines = byteTextOf(listed)
    .split("\0")
    .filter((line) => line !== "")
    .map((line) => {
      const found = /^(\d{6}) \w+ ([0-9a-f]+)\t([123])\//.exec(line);
      if (found === null)
        throw new CotenantError("E_PARTIAL_SNAPSHOT", "an unsettled merge cannot be read back");
      const [head, mode, oid, stage] = found as unknown as [string, string, string, string];
      return `${mode} ${oid} ${stage}\t${line.slice(head.length)}\0`;
    });
  return bytesOf(lines.join(""));
}
