import { fileFailure } from "../errors/cotenant-error";
import type { Descriptor, Platform } from "../platform/platform";
import { encodeLine, type LogActor } from "./envelope";
import type { Layout, Modes } from "./layout";
import {
  type EndingRecord,
  type Head,
  isRemembered,
  MEMORY_MS,
  NOWHERE,
  type Replay,
  type RequestRecord,
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
  readonly #platform: Platform;
  readonly #layout: Layout;
  readonly #modes: Modes;

  constructor(platform: Platform, layout: Layout, modes: Modes) {
    this.#platform = platform;
    this.#layout = layout;
    this.#modes = modes;
  }

  /**
   * PROTOCOL 8: write and sync the new segment, keep the old one in the archive, put the new one in its
   * place by rename, sync both directories. At every instant one whole segment has the log's name.
   */
  async replace(checkpoint: Checkpoint, actor: LogActor, oldName: string | null): Promise<void> {
    const { files } = this.#platform;
    try {
      await this.#writeNext(async (fd) => this.#writeCheckpoint(fd, checkpoint, actor));
      if (oldName !== null) await this.#keepOld(oldName);
      await files.rename(this.#layout.nextLog, this.#layout.log);
      await files.syncDirectory(this.#layout.root);
    } catch (error) {
      throw fileFailure(error, "starting a new log segment", this.#layout.log);
    }
  }

  /** PROTOCOL 7: a failed sync is never retried on the same file. The same lines, in a file that holds them. */
  async copy(fd: Descriptor, head: Head, oldName: string): Promise<void> {
    const { files } = this.#platform;
    await this.#writeNext(async (next) => {
      for (let at = 0; at < head.offset; ) {
        const bytes = await files.read(fd, at, Math.min(1 << 20, head.offset - at));
        if (bytes.length === 0) throw Object.assign(new Error("the log became shorter"), { code: "EIO" });
        await this.#writeAll(next, bytes);
        at += bytes.length;
      }
    });
    await this.#keepOld(oldName);
    await files.rename(this.#layout.nextLog, this.#layout.log);
    await files.syncDirectory(this.#layout.root);
  }

  async #writeNext(fill: (fd: Descriptor) => Promise<void>): Promise<void> {
    const { files } = this.#platform;
    await files.unlink(this.#layout.nextLog);
    const fd = await files.open(this.#layout.nextLog, "append", this.#modes.file);
    try {
      await fill(fd);
      await files.sync(fd);
    } finally {
      await files.close(fd);
    }
  }

  async #keepOld(name: string): Promise<void> {
    const { files } = this.#platform;
    const kept = `${this.#layout.archive}/${name}`;
    // Left there by a rotation that died before its rename.
    await files.unlink(kept);
    await files.link(this.#layout.log, kept);
    await files.syncDirectory(this.#layout.archive);
  }

  async #writeCheckpoint(fd: Descriptor, checkpoint: Checkpoint, actor: LogActor): Promise<void> {
    const { replay } = checkpoint;
    const nowMs = this.#platform.clock.wallMs();
    const leases = [...replay.leases.values()].map(leaseToWire);
    const endings = [...replay.endings.values()].filter((e) => e.atMs > nowMs - MEMORY_MS).map(endingToWire);
    const requests = [...replay.requests.values()]
      .filter((r) => isRemembered(r.requestId, nowMs))
      .map(requestToWire);
    const longest = Math.max(leases.length, endings.length, requests.length, 1);
    const parts = Math.ceil(longest / RECORDS_PER_PART);
    let { sum: prev, sequence } = replay.head;
    for (let part = 0; part < parts; part++) {
      const slice = <T>(all: T[]) => all.slice(part * RECORDS_PER_PART, (part + 1) * RECORDS_PER_PART);
      sequence++;
      const line = encodeLine(
        this.#platform.digest,
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
            ...checkpoint.extra,
          },
        },
        { sequence, wallMs: nowMs, synced: replay.head.sequence, prev },
      );
      prev = line.sum;
      await this.#writeAll(fd, new TextEncoder().encode(line.text));
    }
  }

  async #writeAll(fd: Descriptor, bytes: Uint8Array): Promise<void> {
    let written = 0;
    while (written < bytes.length) {
      const taken = await this.#platform.files.append(fd, bytes.subarray(written));
      if (taken === 0) throw Object.assign(new Error("nothing was written"), { code: "ENOSPC" });
      written += taken;
    }
  }
}

export function segmentName(segment: number): string {
  return `claims-${String(segment).padStart(6, "0")}.jsonl`;
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
    event_type: record.type,
    timestamp: record.timestamp,
    leases: record.leases.map(leaseToWire),
    ended: record.ended.map(endedToWire),
  };
}
