import { CotenantError } from "../../errors/cotenant-error";
import { type ByteText, byteTextOf, toByteText } from "../../git/byte-text";
import type { ObjectId } from "../../git/object-name";
import { printable } from "../../kernel/ids";
import type { GitProcess } from "../../platform/git";
import type { Contents, KeptFile } from "./contents";
import type { SnapshotMachine } from "./snapshot-context";

const TIMEOUT_MS = 10 * 60_000;
/** How many objects are asked for before the first answer is read. */
const AHEAD = 256;
const CHUNK = 1 << 20;

/** Writes files into an empty place, byte for byte: no filter, no line endings, no umask has a say. */
export async function fill(
  machine: SnapshotMachine,
  commonDir: string,
  root: string,
  contents: Contents,
): Promise<void> {
  const { trees } = machine;
  const at = (path: ByteText) => `${toByteText(root)}/${path}`;
  for (const path of contents.directories.keys()) await trees.makeDirectory(at(path), 0o700);
  await writeFiles(machine, commonDir, contents.files, async (file) => at(file.path));
  // Last, and from the inside out: what may not be written could not be filled.
  for (const [path, mode] of [...contents.directories].reverse())
    if (mode !== 0o700) await trees.chmod(at(path), mode);
}

/** Each file to where `target` says, which must be free; null: not at all. */
export async function writeFiles(
  machine: SnapshotMachine,
  commonDir: string,
  files: readonly KeptFile[],
  target: (file: KeptFile) => Promise<ByteText | null>,
  pulse: () => Promise<void> = async () => {},
): Promise<void> {
  const { trees, git } = machine;
  const plain = files.filter(({ kind }) => kind !== "repository");
  for (const file of files) {
    if (file.kind !== "repository") continue;
    const path = await target(file);
    if (path !== null) await trees.makeDirectory(path, 0o755);
  }
  const env = { GIT_NO_REPLACE_OBJECTS: "1" };
  const reader = git.start(["cat-file", "--batch"], { cwd: commonDir, env, timeoutMs: TIMEOUT_MS });
  try {
    for (let from = 0; from < plain.length; from += AHEAD) {
      const some = plain.slice(from, from + AHEAD);
      reader.write(some.map(({ oid }) => `${oid}\n`).join(""));
      for (const file of some) await writeOne(machine, reader, file, await target(file));
      await pulse();
    }
  } finally {
    reader.kill();
  }
}

async function writeOne(
  { trees }: SnapshotMachine,
  reader: GitProcess,
  file: KeptFile,
  path: ByteText | null,
): Promise<void> {
  const size = await sizeOf(reader, file.oid);
  if (path === null) {
    for (let left = size; left > 0; ) left -= (await chunk(reader, left)).length;
  } else if (file.kind === "symlink") {
    await trees.makeLink(byteTextOf(await chunk(reader, size, size)), path);
  } else {
    const fd = await trees.create(path, file.mode);
    try {
      for (let left = size; left > 0; ) {
        const part = await chunk(reader, left);
        await trees.write(fd, part);
        left -= part.length;
      }
    } finally {
      await trees.close(fd);
    }
  }
  // The line's end after each object.
  await chunk(reader, 1);
}

async function sizeOf(reader: GitProcess, oid: ObjectId): Promise<number> {
  const line = await reader.readLine();
  const found = /^([0-9a-f]+) blob (\d+)$/.exec(line ?? "");
  if (found !== null && found[1] === oid) return Number(found[2]);
  throw new CotenantError("E_PARTIAL_SNAPSHOT", `object ${oid} of the snapshot cannot be read`, {
    data: { object: oid, git: printable(line ?? "", 200) },
  });
}

async function chunk(reader: GitProcess, left: number, most = CHUNK): Promise<Uint8Array> {
  const part = await reader.read(Math.min(left, most));
  if (part !== null) return part;
  throw new CotenantError("E_GIT", "Git stopped reading objects");
}
