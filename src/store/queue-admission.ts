import type { Acquire } from "../kernel/commands";
import { type Extent, ExtentIndex } from "../kernel/conflicts";
import { type Circumstances, type Decision, standingOf } from "../kernel/decide";
import type { Lease } from "../kernel/lease";
import { LIMITS } from "../kernel/policy";
import { isCuredByWaiting, isRefusal, type Refusal, refuse } from "../kernel/refusal";
import { extentsOf, isItsTurn, meets, type Ticket, ticketsAhead } from "../kernel/tickets";
import { type Instant, instantOf, type Now } from "../kernel/time";
import type { ClaimEvent, View } from "../kernel/view";
import type { Platform } from "../platform/platform";
import { nextNumber, sameTicket, type TicketQueue } from "./queue";

/** A waiter's side of the queue: its ticket, once it has one, and until when it wants to wait. */
export interface Place {
  readonly until: Instant;
  readonly ticket: Ticket | null;
  /** How many are served before it. */
  readonly ahead: number;
}

interface Scene {
  readonly view: View;
  readonly at: Circumstances;
  readonly place: Ticket | null;
  readonly wish: Place | null;
}

/**
 * First come, first served: everything that happens to tickets inside one critical section (PROTOCOL 15). It remembers
 * what the section may have freed, or taken, and at its end tells those whose turn has come, and nobody else.
 */
export class QueueAdmission {
  #tickets: Ticket[] | null = null;
  readonly #freed: Extent[] = [];
  readonly #taken: Extent[] = [];
  readonly #joined: Ticket[] = [];

  constructor(
    private readonly platform: Platform,
    private readonly queue: TicketQueue,
  ) {}

  /** Live tickets; the void ones are cleared away. */
  async tickets(now: Now): Promise<readonly Ticket[]> {
    if (this.#tickets !== null) return this.#tickets;
    const found = await this.queue.load(now);
    for (const number of found.void) await this.queue.remove(number);
    for (const ticket of found.lapsed) this.#freed.push(...extentsOf(ticket));
    this.#tickets = found.live;
    return found.live;
  }

  /** The caller's ticket, if it still has its place. */
  placeOf(wish: Place | null, tickets: readonly Ticket[]): Ticket | null {
    const mine = wish?.ticket ?? null;
    return mine === null ? null : (tickets.find((ticket) => sameTicket(ticket, mine)) ?? null);
  }

  /** Leaves the queue on a grant; joins it, or stays, on a refusal that waiting can cure. */
  async settle(
    command: Acquire,
    decision: Decision | Refusal,
    scene: Scene,
  ): Promise<Place | null | Refusal> {
    if (!isRefusal(decision)) {
      if (scene.place !== null) await this.#remove(scene.place);
      return null;
    }
    // What it wants may be free by now, and the one whose turn it is may be stopped: its clock must run.
    this.#freed.push(...extentsOf({ keys: command.keys, worktreeId: command.actor.worktreeId }));
    const canBeCured = isCuredByWaiting(decision);
    if (!canBeCured && scene.place !== null) await this.#remove(scene.place);
    if (scene.wish === null || !canBeCured) return null;
    const ticket = scene.place ?? (await this.#join(command, scene, scene.wish.until));
    if (isRefusal(ticket)) return ticket;
    return { until: scene.wish.until, ticket, ahead: countAhead(ticket, scene) };
  }

  /** For a waiter that gives up. */
  async leave(place: Place, now: Now): Promise<void> {
    const mine = this.placeOf(place, await this.tickets(now));
    if (mine === null) return;
    await this.#remove(mine);
    this.#freed.push(...extentsOf(mine));
  }

  /** What an event means to those who wait. */
  note({ type, leases, ended }: ClaimEvent): void {
    this.#freed.push(...ended);
    if (type === "claim.acquired" || type === "claim.transferred") this.#taken.push(...leases);
  }

  /**
   * Wakes every waiter that may go now, by writing since when into its ticket, and takes that back from those that may not
   * after all. Whoever is told and does not go loses its place. `validOn` answers with every valid lease
   * that conflicts with one of the extents; null while the repository is paused: nobody may go, and nobody's time runs.
   */
  async wake(
    now: Now,
    validOn: (extents: readonly Extent[]) => Promise<readonly Lease[] | null>,
  ): Promise<void> {
    if (this.#freed.length === 0 && this.#taken.length === 0) return;
    const tickets = await this.tickets(now);
    if (tickets.length === 0) return;
    const freed = new ExtentIndex(this.#freed);
    const taken = new ExtentIndex(this.#taken);
    const concerned = tickets.filter(
      (ticket) => meets(freed, ticket) || (ticket.freeSince !== null && meets(taken, ticket)),
    );
    if (concerned.length === 0) return;
    const wanted = new ExtentIndex(concerned.flatMap(extentsOf));
    const valid = await validOn(tickets.filter((ticket) => meets(wanted, ticket)).flatMap(extentsOf));
    for (const ticket of concerned) {
      const mayGo = valid !== null && isItsTurn(ticket, tickets, valid);
      if (mayGo !== (ticket.freeSince !== null)) await this.queue.mark(ticket, mayGo ? instantOf(now) : null);
    }
  }

  async #join(command: Acquire, scene: Scene, until: Instant): Promise<Ticket | Refusal> {
    const { tickets, now } = scene.at;
    if (tickets.length >= LIMITS.waiters) {
      return refuse("E_LIMIT", `${tickets.length} others wait already; that is the limit`, {
        hint: "try again later",
      });
    }
    const ticket: Ticket = {
      number: nextNumber(tickets),
      agentId: command.actor.agentId,
      sessionId: command.actor.sessionId,
      worktreeId: command.actor.worktreeId,
      keys: command.keys,
      // The waiting process itself, whatever process the lease will be bound to.
      holder: this.platform.processes.self(),
      joinedAt: instantOf(now),
      expiresAt: until,
      freeSince: null,
    };
    await this.queue.write(ticket);
    this.#tickets?.push(ticket);
    this.#joined.push(ticket);
    return ticket;
  }

  /** Where nothing of this section was written: who joined may wait for what nobody got, and is told of no place. */
  async takeBack(): Promise<void> {
    // One that cannot be removed loses its place by itself.
    for (const ticket of this.#joined) await this.#remove(ticket).catch(() => {});
  }

  async #remove(ticket: Ticket): Promise<void> {
    await this.queue.remove(ticket.number);
    this.#tickets = this.#tickets?.filter((other) => other !== ticket) ?? null;
  }
}

function countAhead(ticket: Ticket, scene: Scene): number {
  const valid = [...scene.view.leases.values()].filter((lease) => standingOf(lease, scene.at) === "valid");
  return ticketsAhead({ ...ticket, ticket: ticket.number }, scene.at.tickets, valid).length;
}
