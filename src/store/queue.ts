import { isVoid, type Ticket } from "../kernel/tickets";
import type { Instant, Now } from "../kernel/time";
import type { Descriptor, Platform } from "../platform/platform";
import type { Layout, Modes } from "./layout";
import { seal, unseal } from "./sealed";
import {
  agentId,
  holderFromWire,
  holderToWire,
  instant,
  instantOrNull,
  instantToWire,
  key,
  list,
  object,
  reach,
  sessionId,
  worktreeId,
} from "./wire";

const TICKET = /^(\d{10})\.json$/;
const READ_ATTEMPTS = 3;
const UNFINISHED = /^\d{10}\.json\.new$/;

/** The waiters' tickets, one small file each. Changed only under the mutex; never logged, never synced. */
export class TicketQueue {
  constructor(
    private readonly platform: Platform,
    private readonly layout: Layout,
    private readonly modes: Modes,
  ) {}

  /** Live tickets in their order; of those that have become void the numbers, and the tickets that can be read. */
  async load(now: Now): Promise<{ live: Ticket[]; void: number[]; lapsed: Ticket[] }> {
    const live: Ticket[] = [];
    const voided: number[] = [];
    const lapsed: Ticket[] = [];
    for (const number of await this.numbers()) {
      const ticket = await this.read(number);
      if (ticket !== null && (await this.isLive(ticket, now))) {
        live.push(ticket);
        continue;
      }
      voided.push(number);
      if (ticket !== null) lapsed.push(ticket);
    }
    return { live, void: voided, lapsed };
  }

  /** Of all tickets, void ones too, in their order. */
  async numbers(): Promise<number[]> {
    const names = (await this.platform.files.readDirectory(this.layout.queue)) ?? [];
    return names.sort().flatMap((name) => Number(TICKET.exec(name)?.[1] ?? []));
  }

  /** Null for one that is gone, or damaged. */
  async read(number: number): Promise<Ticket | null> {
    const { files, digest } = this.platform;
    for (let attempt = 0; ; attempt++) {
      const bytes = await files.readFile(this.path(number));
      const value = bytes === null ? null : unseal(digest, bytes);
      if (value !== null) return decode(number, value);
      // Without the mutex, one that is being marked may be seen half written.
      if (bytes === null || attempt === READ_ATTEMPTS) return null;
    }
  }

  async isLive(ticket: Ticket, now: Now): Promise<boolean> {
    // The clock first: it costs nothing.
    return (
      !isVoid(ticket, now, "unknown") &&
      !isVoid(ticket, now, await this.platform.processes.liveness(ticket.holder))
    );
  }

  async write(ticket: Ticket): Promise<void> {
    const { files } = this.platform;
    const path = this.path(ticket.number);
    await files.unlink(`${path}.new`);
    const fd = await files.open(`${path}.new`, "create", this.modes.file);
    try {
      await this.#fill(fd, ticket);
      await files.rename(`${path}.new`, path);
    } catch (error) {
      await files.unlink(`${path}.new`);
      throw error;
    } finally {
      await files.close(fd);
    }
  }

  /**
   * Says since when a waiter may go, or that it may not after all. In place: that is what its owner watches, and a new
   * file under the old name would not be.
   */
  async mark(ticket: Ticket, freeSince: Instant | null): Promise<Ticket> {
    const { files } = this.platform;
    const marked = { ...ticket, freeSince };
    const fd = await files.open(this.path(ticket.number), "update");
    try {
      await this.#fill(fd, marked);
    } finally {
      await files.close(fd);
    }
    return marked;
  }

  /** Half a ticket is none, and whoever holds it would wait for ever. */
  async #fill(fd: Descriptor, ticket: Ticket): Promise<void> {
    const { files, digest } = this.platform;
    // Marked or not, it is of one size: a mark shortens nothing, and finds its room on a full disk.
    const room = seal(digest, encode({ ...ticket, freeSince: ticket.joinedAt })).length;
    const bytes = seal(digest, encode(ticket), room);
    if ((await files.writeAt(fd, bytes, 0)) !== bytes.length)
      throw Object.assign(new Error("short write"), { code: "ENOSPC" });
  }

  /** Under the mutex nobody is writing a ticket: whoever began one did not live to finish it. */
  async sweep(): Promise<void> {
    const { files } = this.platform;
    for (const name of (await files.readDirectory(this.layout.queue)) ?? [])
      if (UNFINISHED.test(name)) await files.unlink(`${this.layout.queue}/${name}`);
  }

  async remove(number: number): Promise<void> {
    await this.platform.files.unlink(this.path(number));
  }

  path(number: number): string {
    return `${this.layout.queue}/${String(number).padStart(10, "0")}.json`;
  }
}

/** Numbers start over when the queue empties, so a number alone is not proof of a place. */
export function sameTicket(a: Ticket, b: Ticket): boolean {
  return (
    a.number === b.number &&
    a.holder.pid === b.holder.pid &&
    a.holder.startTime === b.holder.startTime &&
    a.joinedAt.monotonicMs === b.joinedAt.monotonicMs &&
    a.agentId === b.agentId
  );
}

function encode(ticket: Ticket): Record<string, unknown> {
  return {
    schema_version: 1,
    agent_id: ticket.agentId,
    session_id: ticket.sessionId,
    worktree_id: ticket.worktreeId,
    keys: ticket.keys,
    holder: holderToWire(ticket.holder),
    ...instantToWire("joined_at", ticket.joinedAt),
    ...instantToWire("expires_at", ticket.expiresAt),
    ...instantToWire("free_since", ticket.freeSince),
  };
}

function decode(number: number, value: Readonly<Record<string, unknown>>): Ticket | null {
  try {
    return {
      number,
      agentId: agentId(value),
      sessionId: sessionId(value),
      worktreeId: worktreeId(value),
      keys: list(value, "keys").map((wanted) => {
        const w = object(wanted);
        return { key: key(w), reach: reach(w) };
      }),
      holder: holderFromWire(value["holder"]),
      joinedAt: instant(value, "joined_at"),
      expiresAt: instant(value, "expires_at"),
      freeSince: instantOrNull(value, "free_since"),
    };
  } catch {
    return null;
  }
}

export function nextNumber(tickets: readonly Ticket[]): number {
  return tickets.reduce((highest, ticket) => Math.max(highest, ticket.number), 0) + 1;
}
