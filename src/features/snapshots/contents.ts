import { CotenantError } from "../../errors/cotenant-error";
import type { ByteText } from "../../git/byte-text";
import { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { isTree, MODES } from "../../git/tree";
import type { Descriptor } from "./descriptor";
import { byBytes, type TreePlace } from "./listing";
import { decodeManifest, isExecutable, type Manifest } from "./manifest";
import { digestLine, digestOf } from "./parts";
import { objectPlace, type SnapshotMachine } from "./snapshot-context";
import { isGitsOwn } from "./tree-scan";

export interface KeptFile {
  readonly path: ByteText;
  readonly kind: "file" | "symlink" | "repository";
  readonly mode: number;
  readonly oid: ObjectId;
}

/** Everything that a snapshot holds of the files, in the order of their bytes. */
export interface Contents {
  readonly files: readonly KeptFile[];
  /** Every directory, with its permissions; those above come before those in them. */
  readonly directories: ReadonlyMap<ByteText, number>;
}

/** Reads a snapshot's trees and manifest. `E_PARTIAL_SNAPSHOT` where something is missing or is not what it was. */
export async function readContents(
  machine: SnapshotMachine,
  place: TreePlace,
  descriptor: Descriptor,
): Promise<Contents> {
  const database = new ObjectDatabase(machine.platform, machine.git, objectPlace(machine, place));
  try {
    const manifest = await readManifest(database, descriptor);
    const files: KeptFile[] = [];
    const directories = new Map<ByteText, number>(manifest.unlisted);
    const visit = async (tree: ObjectId, prefix: string): Promise<void> => {
      for (const entry of await database.readTree(tree)) {
        const path = `${prefix}${entry.name}`;
        refuseName(descriptor, entry.name);
        if (isTree(entry)) {
          directories.set(path, manifest.directories.get(path) ?? manifest.usual.directory);
          await visit(entry.oid, `${path}/`);
        } else files.push(fileOf(path, entry, manifest));
      }
    };
    await visit(descriptor.tree, "");
    for (const path of manifest.unlisted.keys())
      for (const name of path.split("/")) refuseName(descriptor, name);
    files.sort((a, b) => byBytes(a.path, b.path));
    const contents = { files, directories: new Map([...directories].sort(([a], [b]) => byBytes(a, b))) };
    if (digestOfContents(machine, contents) !== descriptor.digest)
      throw partial(descriptor, "its files are not those that were kept");
    return contents;
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_GIT") throw partial(descriptor, error.message);
    throw error;
  } finally {
    await database.close();
  }
}

function digestOfContents({ platform }: Pick<SnapshotMachine, "platform">, contents: Contents): string {
  const lines = contents.files.map(({ path, kind, mode, oid }) =>
    digestLine(kind === "repository" ? "directory" : kind, kind === "file" ? mode : 0, oid, path),
  );
  for (const [path, mode] of contents.directories) lines.push(digestLine("directory", mode, "", path));
  return digestOf(platform, lines);
}

async function readManifest(database: ObjectDatabase, descriptor: Descriptor): Promise<Manifest> {
  const commit = await database.readCommit(descriptor.commit);
  const second = commit.parents.at(-1);
  if (commit.tree !== descriptor.tree || second === undefined)
    throw partial(descriptor, "its commit is not the one that was made");
  const entries = await database.readTree((await database.readCommit(second)).tree);
  const found = entries.find(({ name }) => name === "manifest");
  const manifest = found === undefined ? null : decodeManifest(await database.readBlob(found.oid));
  if (manifest === null) throw partial(descriptor, "its manifest cannot be read");
  return manifest;
}

function fileOf(
  path: ByteText,
  { mode, oid }: { readonly mode: string; readonly oid: ObjectId },
  manifest: Manifest,
): KeptFile {
  if (mode === MODES.submodule) return { path, kind: "repository", mode: 0, oid };
  if (mode === MODES.symlink) return { path, kind: "symlink", mode: 0, oid };
  const usual = mode === MODES.executable ? manifest.usual.executable : manifest.usual.file;
  const exact = manifest.files.get(path) ?? usual;
  // The tree and the manifest must agree on what can be run.
  return {
    path,
    kind: "file",
    oid,
    mode: isExecutable(exact) === (mode === MODES.executable) ? exact : usual,
  };
}

/** Whoever wrote the objects, nothing is ever written outside of the tree, or into a Git directory. */
function refuseName(descriptor: Descriptor, name: ByteText): void {
  const isName = name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name);
  if (isName && !isGitsOwn(name)) return;
  throw partial(descriptor, "it holds a name that no file can have");
}

export function partial(descriptor: Pick<Descriptor, "snapshot_id">, why: string): CotenantError {
  return new CotenantError("E_PARTIAL_SNAPSHOT", `snapshot ${descriptor.snapshot_id} is damaged: ${why}`, {
    data: { snapshot_id: descriptor.snapshot_id, why },
  });
}
