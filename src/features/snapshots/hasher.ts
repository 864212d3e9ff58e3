import { CotenantError } from "../../errors/cotenant-error";
import { type ByteText, bytesOf, fromByteText } from "../../git/byte-text";
import type { ObjectDatabase } from "../../git/database";
import type { ObjectId } from "../../git/object-name";
import { printable } from "../../kernel/ids";
import type { LastingGit } from "../../platform/git";
import { COLUMN, type Entry, KINDS, ROW, type Trees } from "../../platform/trees";
import { ask, LONG_MS, quotedPath } from "../worktrees/git-calls";
import { gitPlace, type TreePlace } from "./listing";
import type { Put } from "./tree-builder";

/** Larger files are Git's to read: it does not need all of one in memory. */
const LARGE = 8 << 20;

export const ODD = "neither a file nor a link";

/** Reads what is in files, and says which of them would not hold still. */
export class Hasher {
  /** Changed while they were read. */
  readonly restless: ByteText[] = [];
  /** Not part of a snapshot, and why. */
  readonly leftOut = new Map<ByteText, string>();
  readonly #large: number[] = [];
  bytes = 0;

  constructor(
    private readonly trees: Trees,
    private readonly root: ByteText,
    private readonly put: Put,
  ) {}

  /** The object of path `i`, empty where there is none to have; its row is what was seen when it was read. */
  async hash(path: ByteText, rows: Float64Array, i: number): Promise<ObjectId> {
    const kind = KINDS[rows[i * ROW + COLUMN.kind]!];
    const whole = `${this.root}/${path}`;
    if (kind === "symlink") return this.put("blob", bytesOf(await this.trees.readLink(whole)));
    if (kind === "file" && rows[i * ROW + COLUMN.size]! > LARGE) {
      this.#large.push(i);
      return "";
    }
    if (kind === "file") return this.#file(path, whole, rows, i);
    if (kind === "other") this.leftOut.set(path, ODD);
    return "";
  }

  async #file(path: ByteText, whole: ByteText, rows: Float64Array, i: number): Promise<ObjectId> {
    let fd: number;
    try {
      fd = await this.trees.open(whole);
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code === "ENOENT" || code === "ELOOP" || code === "ENOTDIR") {
        this.restless.push(path);
        return "";
      }
      if (code === "EACCES" || code === "EPERM") throw unreadable(path);
      throw error;
    }
    try {
      const before = await this.trees.lookAt(fd);
      const content = await this.#content(fd, before.size);
      const after = await this.trees.lookAt(fd);
      if (!isRow(before, rows, i) || !isSame(before, after) || content.length !== after.size)
        this.restless.push(path);
      setRow(after, rows, i);
      this.bytes += content.length;
      return await this.put("blob", content);
    } finally {
      await this.trees.close(fd);
    }
  }

  async #content(fd: number, size: number): Promise<Uint8Array> {
    const content = new Uint8Array(size);
    let filled = 0;
    while (filled < size) {
      const got = await this.trees.read(fd, content.subarray(filled));
      if (got === 0) break;
      filled += got;
    }
    return content.subarray(0, filled);
  }

  /** Those that were put off, all in one go. On the disk after the database's `flush`; without one, only named. */
  async large(
    git: LastingGit,
    place: TreePlace,
    paths: readonly ByteText[],
    rows: Float64Array,
    database: ObjectDatabase | null,
  ): Promise<Map<number, ObjectId>> {
    const oids = new Map<number, ObjectId>();
    if (this.#large.length === 0) return oids;
    const input = bytesOf(this.#large.map((i) => `${quotedPath(paths[i]!)}\n`).join(""));
    const sync = ["-c", "core.fsync=loose-object,pack,pack-metadata", "-c", "core.fsyncMethod=fsync"];
    const answer = await ask(
      git,
      [
        ...[...sync, ...gitPlace(place), "hash-object", "-t", "blob", "--no-filters", "--stdin-paths"],
        ...(database === null ? [] : ["-w"]),
      ],
      { cwd: place.root, input, timeoutMs: LONG_MS },
      "reading large files",
    );
    const lines = new TextDecoder().decode(answer).split("\n");
    for (const [n, i] of this.#large.entries()) {
      const oid = lines[n] ?? "";
      if (!/^[0-9a-f]{40,64}$/.test(oid)) throw new CotenantError("E_GIT", "Git did not name a large file");
      database?.adopt(oid);
      oids.set(i, oid);
      const entry = await this.trees.look(`${this.root}/${paths[i]!}`);
      if (entry === null || !isRow(entry, rows, i)) this.restless.push(paths[i]!);
      this.bytes += rows[i * ROW + COLUMN.size]!;
    }
    return oids;
  }
}

function isRow(entry: Entry, rows: Float64Array, i: number): boolean {
  const at = i * ROW;
  return (
    KINDS.indexOf(entry.kind) === rows[at + COLUMN.kind] &&
    entry.size === rows[at + COLUMN.size] &&
    entry.inode === rows[at + COLUMN.inode] &&
    entry.mtimeMs === rows[at + COLUMN.mtimeMs] &&
    entry.ctimeMs === rows[at + COLUMN.ctimeMs]
  );
}

function isSame(a: Entry, b: Entry): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs;
}

function setRow(entry: Entry, rows: Float64Array, i: number): void {
  const at = i * ROW;
  rows[at + COLUMN.kind] = KINDS.indexOf(entry.kind);
  rows[at + COLUMN.mode] = entry.mode;
  rows[at + COLUMN.size] = entry.size;
  rows[at + COLUMN.inode] = entry.inode;
  rows[at + COLUMN.mtimeMs] = entry.mtimeMs;
  rows[at + COLUMN.ctimeMs] = entry.ctimeMs;
}

function unreadable(path: ByteText): CotenantError {
  const name = printable(fromByteText(path), 300);
  return new CotenantError("E_PERMISSION", `${name} may not be read, so it cannot be kept`, {
    hint: "change its permissions, have Git ignore it, or let its owner take the snapshot",
    data: { path: name },
  });
}
