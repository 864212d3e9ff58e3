import { sameParty } from "../kernel/lease";
import { type Ticket, wantsSame } from "../kernel/tickets";
import type { Now } from "../kernel/time";
import { sameTicket, type TicketQueue } from "./queue";

/**
 * Those before a waiter, as it knows them, without the mutex. Nobody comes in between, and what a ticket wants never
 * changes: each is read once, and afterwards only those are read again whose turn is in question.
 */
export class Predecessors {
  readonly #queue: TicketQueue;
  readonly #mine: Ticket;
  #known: Ticket[] | null = null;

  constructor(queue: TicketQueue, mine: Ticket) {
    this.#queue = queue;
    this.#mine = mine;
  }

  /** The waiter's own ticket as it is now; null once it has lost its place. */
  async mine(): Promise<Ticket | null> {
    return this.#current(this.#mine);
  }

  /** Whose tickets are there and want some of the same, first come first. Some may be void. */
  async all(): Promise<readonly Ticket[]> {
    const before = (await this.#queue.numbers()).filter((number) => number < this.#mine.number);
    if (this.#known !== null) {
      const there = new Set(before);
      this.#known = this.#known.filter(({ number }) => there.has(number));
      return this.#known;
    }
    const known: Ticket[] = [];
    for (const number of before) {
      const ticket = await this.#queue.read(number);
      if (ticket !== null && !sameParty(ticket, this.#mine) && wantsSame(ticket, this.#mine))
        known.push(ticket);
    }
    this.#known = known;
    return known;
  }

  /** Whether the nearest of them waits on. One that does not is forgotten. */
  async isNearestWaiting(now: Now): Promise<boolean> {
    const nearest = this.#known?.at(-1);
    return nearest !== undefined && (await this.waiting(nearest, now)) !== null;
  }

  /** As it is now; null, and forgotten, once it is gone or void. */
  async waiting(ticket: Ticket, now: Now): Promise<Ticket | null> {
    const current = await this.#current(ticket);
    if (current !== null && (await this.#queue.isLive(current, now))) return current;
    this.#known = this.#known?.filter(({ number }) => number !== ticket.number) ?? null;
    return null;
  }

  async #current(ticket: Ticket): Promise<Ticket | null> {
    const current = await this.#queue.read(ticket.number);
    return current !== null && sameTicket(current, ticket) ? current : null;
  }
}
