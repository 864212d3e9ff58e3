import { isVoid, type Ticket } from "../kernel/tickets";
import type { Instant, Now } from "../kernel/time";
import type { Platform } from "../platform/platform";
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
const UNFINISHED = /^\d{10}\.json\.new$/;

/** The waiters' tickets, one small file each. Changed only under the mutex; never logged, never synced. */
export class TicketQueue {
  readonly #platform: Platform;
  readonly #layout: Layout;
  readonly #modes: Modes;

  constructor(platform: Platform, layout: Layout, modes: Modes) {
    this.#platform = platform;
    this.#layout = layout;
    this.#modes = modes;
  }

  /** Live tickets in their order, and the numbers of those that have become void. */
  async load(now: Now): Promise<{ live: Ticket[]; void: number[] }> {
    const { files, digest, processes } = this.#platform;
    const live: Ticket[] = [];
    const voided: number[] = [];
    for (const name of ((await files.readDirectory(this.#layout.queue)) ?? []).sort()) {
      const number = Number(TICKET.exec(name)?.[1] ?? Number.NaN);
      if (Number.isNaN(number)) continue;
      const bytes = await files.readFile(this.#path(number));
      const value = bytes === null ? null : unseal(digest, bytes);
      const ticket = value === null ? null : decode(number, value);
      if (ticket === null || isVoid(ticket, now, await processes.liveness(ticket.holder)))
        voided.push(number);
      else live.push(ticket);
    }
    return { live, void: voided };
  }

  async write(ticket: Ticket): Promise<void> {
    const { files, digest } = this.#platform;
    const path = this.#path(ticket.number);
    await files.unlink(`${path}.new`);
    const fd = await files.open(`${path}.new`, "create", this.#modes.file);
    try {
      const bytes = seal(digest, encode(ticket));
      // Half a ticket is none, and whoever holds it would wait for ever.
      if ((await files.writeAt(fd, bytes, 0)) !== bytes.length)
        throw Object.assign(new Error("short write"), { code: "ENOSPC" });
      await files.rename(`${path}.new`, path);
    } catch (error) {
      await files.unlink(`${path}.new`);
      throw error;
    } finally {
      await files.close(fd);
    }
  }

  /** Under the mutex nobody is writing a ticket: whoever began one did not live to finish it. */
  async sweep(): Promise<void> {
    const { files } = this.#platform;
    for (const name of (await files.readDirectory(this.#layout.queue)) ?? [])
      if (UNFINISHED.test(name)) await files.unlink(`${this.#layout.queue}/${name}`);
  }

  async remove(number: number): Promise<void> {
    await this.#platform.files.unlink(this.#path(number));
  }

  #path(number: number): string {
    return `${this.#layout.queue}/${String(number).padStart(10, "0")}.json`;
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

export function withFreeSince(ticket: Ticket, freeSince: Instant | null): Ticket {
  return { ...ticket, freeSince };
}
