import { during } from "../errors/cotenant-error";
import type { Compression, Descriptor, Files, Platform } from "../platform/platform";
import { decodeLine, encodeLine, type Line, type LogActor } from "./envelope";
import { factToWire } from "./facts";
import type { Layout, Modes } from "./layout";
import {
  type EndingRecord,
  type Head,
  isRemembered,
  MEMORY_MS,
  NOWHERE,
  Replay,
  type RequestRecord,
  replayLog,
} from "./replay";
import { endedToWire, leaseToWire } from "./wire";

const RECORDS_PER_PART = 500;

/** What a new segment starts from. */
export interface Checkpoint {
  readonly replay: Replay;
  readonly segment: number;
  readonly nextToken: number;
  readonly extra: Readonly<Record<string, unknown>>;
}

export class Segments {
  constructor(
    private readonly platform: Platform,
    private readonly layout: Layout,
    private readonly modes: Modes,
  ) {}

  /**
   * PROTOCOL 8: write and sync the new segment, keep the old one in the archive, put the new one in its
   * place by rename, sync both directories. At every instant one whole segment has the log's name.
   */
  async replace(checkpoint: Checkpoint, actor: LogActor, oldName: string | null): Promise<void> {
    await during("starting a new log segment", this.layout.log, async () => {
      await this.#writeNext(async (fd) => this.#writeCheckpoint(fd, checkpoint, actor));
      if (oldName !== null) await this.#keepOld(oldName);
      await this.#install();
    });
  }

  /** PROTOCOL 7: a failed sync is never retried on the same file. The same lines, in a file that holds them. */
  async copy(fd: Descriptor, head: Head, oldName: string): Promise<void> {
    const { files } = this.platform;
    await this.#writeNext(async (next) => {
      for (let at = 0; at < head.offset; ) {
        const bytes = await files.read(fd, at, Math.min(1 << 20, head.offset - at));
        if (bytes.length === 0) throw Object.assign(new Error("the log became shorter"), { code: "EIO" });
        await this.#writeAll(next, bytes);
        at += bytes.length;
      }
    });
    if (!(await this.#isCopied(head)))
      throw Object.assign(new Error("the log changed while it was copied"), { code: "EIO" });
    await this.#keepOld(oldName);
    await this.#install();
  }

  /** Whether somebody began to rename, and did not live or manage to make the new name durable. */
  async isNameUncertain(): Promise<boolean> {
    return (await this.platform.files.stat(this.layout.renaming)) !== null;
  }

  /**
   * The new segment gets the log's name. A failed sync of the directory is like one of a file: another try
   * would succeed and mean nothing. Hence the note, which makes the next writer copy and rename once more.
   */
  async #install(): Promise<void> {
    const { files } = this.platform;
    await files.close(await files.open(this.layout.renaming, "update-or-create", this.modes.file));
    await files.rename(this.layout.nextLog, this.layout.log);
    await files.syncDirectory(this.layout.root);
    await files.unlink(this.layout.renaming);
  }

  async #writeNext(fill: (fd: Descriptor) => Promise<void>): Promise<void> {
    const { files } = this.platform;
    await files.unlink(this.layout.nextLog);
    const fd = await files.open(this.layout.nextLog, "append", this.modes.file);
    try {
      await fill(fd);
      await files.sync(fd);
    } catch (error) {
      // It would be in nobody's way, but on a full disk it takes room.
      await this.#dropNext();
      throw error;
    } finally {
      await files.close(fd);
    }
  }

  async #dropNext(): Promise<void> {
    try {
      await this.platform.files.unlink(this.layout.nextLog);
    } catch {
      // The next attempt removes it.
    }
  }

  /** Whether it is what was verified: with the cache, the old file may have lost more since then. */
  async #isCopied(head: Head): Promise<boolean> {
    const { files, digest } = this.platform;
    const fd = await files.open(this.layout.nextLog, "read");
    try {
      const copied = await replayLog(files, digest, fd, head.offset, new Replay());
      return copied.damage === null && copied.head.sum === head.sum;
    } finally {
      await files.close(fd);
    }
  }

  async #keepOld(name: string): Promise<void> {
    const { files } = this.platform;
    const kept = `${this.layout.archive}/${name}`;
    // Somebody tidy may have taken the empty directory away.
    await files.makeDirectory(this.layout.archive, this.modes.directory);
    // Left there by a rotation that died before its rename.
    await files.unlink(kept);
    await files.link(this.layout.log, kept);
    await files.syncDirectory(this.layout.archive);
  }

  async #writeCheckpoint(fd: Descriptor, checkpoint: Checkpoint, actor: LogActor): Promise<void> {
    const { replay } = checkpoint;
    const nowMs = this.platform.clock.wallMs();
    const leases = [...replay.leases.values()].map(leaseToWire);
    const endings = [...replay.endings.values()].filter((e) => e.atMs > nowMs - MEMORY_MS).map(endingToWire);
    const requests = [...replay.requests.values()]
      .filter((r) => isRemembered(r.requestId, nowMs))
      .map(requestToWire);
    const facts = [...replay.facts].map(([name, fact]) => factToWire(name, fact));
    const longest = Math.max(leases.length, endings.length, requests.length, facts.length, 1);
    const parts = Math.ceil(longest / RECORDS_PER_PART);
    let { sum: prev, sequence } = replay.head;
    for (let part = 0; part < parts; part++) {
      const slice = <T>(all: T[]) => all.slice(part * RECORDS_PER_PART, (part + 1) * RECORDS_PER_PART);
      sequence++;
      const line = encodeLine(
        this.platform.digest,
        {
          type: "log.checkpoint",
          actor,
          payload: {
            segment: checkpoint.segment,
            part: part + 1,
            parts,
            next_sequence: sequence + parts - part,
            next_token: checkpoint.nextToken,
            leases: slice(leases),
            endings: slice(endings),
            requests: slice(requests),
            facts: slice(facts),
            ...checkpoint.extra,
          },
        },
        // Not before anything that it follows, also when the clock was set back: ids are looked for by their time.
        { sequence, wallMs: Math.max(nowMs, replay.newestMs), synced: replay.head.sequence, prev },
      );
      prev = line.sum;
      await this.#writeAll(fd, new TextEncoder().encode(line.text));
    }
  }

  async #writeAll(fd: Descriptor, bytes: Uint8Array): Promise<void> {
    let written = 0;
    while (written < bytes.length) {
      const taken = await this.platform.files.append(fd, bytes.subarray(written));
      if (taken === 0) throw Object.assign(new Error("nothing was written"), { code: "ENOSPC" });
      written += taken;
    }
  }
}

export function segmentName(segment: number): string {
  return `claims-${String(segment).padStart(6, "0")}.jsonl`;
}

const ARCHIVED = /^claims-\d{6}(?:\.damaged-[\w-]+)?\.jsonl(?:\.gz)?$/;

/** Names of what is in the archive, oldest first. A segment may be there twice, plain and packed. */
export async function archivedSegments(files: Files, layout: Layout): Promise<string[]> {
  return ((await files.readDirectory(layout.archive)) ?? []).filter((name) => ARCHIVED.test(name)).sort();
}

/** Every whole line of an archived segment. It may have been packed since its name was read. */
export async function readSegment(
  platform: Platform,
  path: string,
  visit: (line: Line) => void,
): Promise<void> {
  const { files, digest, compression } = platform;
  const plain = path.endsWith(".gz") ? null : await files.readFile(path);
  const packed = plain === null ? await files.readFile(path.endsWith(".gz") ? path : `${path}.gz`) : null;
  const bytes = packed === null ? plain : await unpacked(packed, compression);
  for (const text of new TextDecoder().decode(bytes ?? new Uint8Array()).split("\n")) {
    const line = decodeLine(digest, text);
    if (line !== null) visit(line);
  }
}

/** Null when it is damaged: what cannot be read is passed over, like a damaged line. */
async function unpacked(packed: Uint8Array, compression: Compression): Promise<Uint8Array | null> {
  try {
    return await compression.unpack(packed);
  } catch {
    return null;
  }
}

export function emptyCheckpoint(replay: Replay): Checkpoint {
  return { replay, segment: 1, nextToken: NOWHERE.nextToken, extra: {} };
}

function endingToWire(record: EndingRecord): Record<string, unknown> {
  return { ...endedToWire(record.ended), ended_at: new Date(record.atMs).toISOString() };
}

function requestToWire(record: RequestRecord): Record<string, unknown> {
  return {
    request_id: record.requestId,
    agent_id: record.agentId,
    event_type: record.type,
    timestamp: record.timestamp,
    leases: record.leases.map(leaseToWire),
    ended: record.ended.map(endedToWire),
    ...(record.about === null ? {} : { about: record.about }),
    ...(record.result === null ? {} : { result: record.result }),
  };
}
