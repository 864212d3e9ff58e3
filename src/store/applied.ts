import { fencingToken } from "../kernel/ids";
import type { Descriptor, Digest, FileStat, Files } from "../platform/platform";
import type { CensusName } from "./census";
import type { Layout, Modes } from "./layout";
import type { Head } from "./replay";
import { refuseNewer, SCHEMA_VERSION } from "./schema";
import { seal, unseal } from "./sealed";
import { count, object, text } from "./wire";

/**
 * How far into the log the index reaches, in which boot, and what the log's file looked like when one of us last wrote to
 * it, which may be further on. As long as nothing but growth has happened to the file since, the chain below need not be
 * read again (PROTOCOL 6).
 */
export interface Applied {
  readonly bootId: string;
  readonly head: Head;
  readonly inode: number;
  readonly size: number;
  readonly mtimeMs: number;
  /** Which build of the index it speaks of. */
  readonly census: CensusName;
}

/** Null when it cannot be read; throws when a newer version wrote it. */
export function decodeApplied(digest: Digest, bytes: Uint8Array | null): Applied | null {
  const value = bytes === null ? null : unseal(digest, bytes);
  if (value === null) return null;
  refuseNewer(value["schema_version"], "the index");
  try {
    const census = object(value["census"]);
    return {
      bootId: text(value, "boot_id"),
      head: {
        segment: count(value, "segment"),
        offset: count(value, "offset"),
        sequence: count(value, "sequence"),
        sum: text(value, "sum"),
        nextToken: fencingToken(count(value, "next_token")),
        checkpointEnd: count(value, "checkpoint_end"),
      },
      inode: count(value, "inode", Number.MAX_SAFE_INTEGER),
      size: count(value, "size", Number.MAX_SAFE_INTEGER),
      mtimeMs: Number(value["mtime_ms"]),
      census: { build: text(census, "build"), capacity: count(census, "capacity") },
    };
  } catch {
    return null;
  }
}

/** However long its numbers become: it is overwritten in place, and must not be shorter than it was. */
const APPLIED_BYTES = 1024;

function encodeApplied(digest: Digest, applied: Applied): Uint8Array {
  const { head } = applied;
  const value = {
    schema_version: SCHEMA_VERSION,
    boot_id: applied.bootId,
    segment: head.segment,
    offset: head.offset,
    sequence: head.sequence,
    sum: head.sum,
    next_token: head.nextToken,
    checkpoint_end: head.checkpointEnd,
    inode: applied.inode,
    size: applied.size,
    mtime_ms: applied.mtimeMs,
    census: applied.census,
  };
  return seal(digest, value, APPLIED_BYTES);
}

/** Nothing but growth has happened to the file since. */
export function isContinued(applied: Applied, stat: FileStat, bootId: string): boolean {
  if (applied.bootId !== bootId || applied.inode !== stat.inode) return false;
  return stat.size === applied.size ? stat.mtimeMs === applied.mtimeMs : stat.size > applied.size;
}

/** A file of fixed size that is rewritten in place, kept open between writes. */
export class SmallFile {
  #fd: Descriptor | null = null;

  constructor(
    private readonly files: Files,
    private readonly path: string,
    private readonly mode: number,
  ) {}

  async write(bytes: Uint8Array): Promise<void> {
    this.#fd ??= await this.files.open(this.path, "update-or-create", this.mode);
    const written = await this.files.writeAt(this.#fd, bytes, 0);
    if (written !== bytes.length) throw Object.assign(new Error("short write"), { code: "ENOSPC" });
  }

  /** The path may name another file by now, or none. */
  async reopen(): Promise<void> {
    if (this.#fd !== null) await this.files.close(this.#fd);
    this.#fd = null;
  }
}

/** `applied`, remembering what it last said: mostly it says the same as before. */
export class AppliedFile {
  readonly #path: string;
  readonly #file: SmallFile;
  #last: { bytes: Uint8Array; applied: Applied } | null = null;

  constructor(
    private readonly files: Files,
    private readonly digest: Digest,
    layout: Layout,
    modes: Modes,
  ) {
    this.#path = layout.applied;
    this.#file = new SmallFile(files, layout.applied, modes.file);
  }

  async read(): Promise<Applied | null> {
    const bytes = await this.files.readFile(this.#path);
    return bytes === null ? null : this.decode(bytes);
  }

  /** What these bytes of it say. */
  decode(bytes: Uint8Array): Applied | null {
    if (this.#last !== null && sameBytes(bytes, this.#last.bytes)) return this.#last.applied;
    const applied = decodeApplied(this.digest, bytes);
    this.#last = applied === null ? null : { bytes, applied };
    return applied;
  }

  async write(applied: Applied): Promise<void> {
    const bytes = encodeApplied(this.digest, applied);
    this.#last = null;
    await this.#file.write(bytes);
    this.#last = { bytes, applied };
  }

  reopen(): Promise<void> {
    return this.#file.reopen();
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
