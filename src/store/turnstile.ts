import type { Acquire } from "../kernel/commands";
import { type Circumstances, type Decision, standingOf } from "../kernel/decide";
import type { Lease } from "../kernel/lease";
import { LIMITS } from "../kernel/policy";
import { isRefusal, type Refusal, refuse } from "../kernel/refusal";
import { inTheWay, type Ticket, ticketsAhead, wantsSame } from "../kernel/tickets";
import { type Instant, instantOf, type Now } from "../kernel/time";
import type { View } from "../kernel/view";
import type { Platform } from "../platform/platform";
import { nextNumber, sameTicket, type TicketQueue, withFreeSince } from "./queue";

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

/** First come, first served: everything that happens to tickets inside the critical section (PROTOCOL 15). */
export class Turnstile {
  readonly #platform: Platform;
  readonly #queue: TicketQueue;

  constructor(platform: Platform, queue: TicketQueue) {
    this.#platform = platform;
    this.#queue = queue;
  }

  /** Live tickets; the void ones are cleared away. */
  async load(now: Now): Promise<Ticket[]> {
    const found = await this.#queue.load(now);
    for (const number of found.void) await this.#queue.remove(number);
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
      if (scene.place !== null) await this.#queue.remove(scene.place.number);
      return null;
    }
    await this.#watchTurns(command, scene);
    const canBeCured = decision.code === "E_LOCK_CONFLICT" || decision.code === "E_QUEUED";
    if (!canBeCured && scene.place !== null) await this.#queue.remove(scene.place.number);
    if (scene.wish === null || !canBeCured) return null;
    const ticket = scene.place ?? (await this.#join(command, scene, scene.wish.until));
    if (isRefusal(ticket)) return ticket;
    return { until: scene.wish.until, ticket, ahead: countAhead(ticket, scene) };
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
      holder: this.#platform.processes.self(),
      joinedAt: instantOf(now),
      expiresAt: until,
      freeSince: null,
    };
    await this.#queue.write(ticket);
    return ticket;
  }

  /** Starts, and stops, the clock of whoever could take its keys now but does not. */
  async #watchTurns(command: Acquire, scene: Scene): Promise<void> {
    const { at, view } = scene;
    const rivals = at.tickets.filter(
      (t) => t !== scene.place && wantsSame(t, { keys: command.keys, worktreeId: command.actor.worktreeId }),
    );
    if (rivals.length === 0) return;
    const valid = [...view.leases.values()].filter((lease) => standingOf(lease, at) === "valid");
    for (const rival of rivals) {
      const couldGo = inTheWay(rival, valid).length === 0 && aheadOf(rival, at.tickets, valid).length === 0;
      if (couldGo && rival.freeSince === null)
        await this.#queue.write(withFreeSince(rival, instantOf(at.now)));
      else if (!couldGo && rival.freeSince !== null) await this.#queue.write(withFreeSince(rival, null));
    }
  }
}

function countAhead(ticket: Ticket, scene: Scene): number {
  const valid = [...scene.view.leases.values()].filter((lease) => standingOf(lease, scene.at) === "valid");
  return aheadOf(ticket, scene.at.tickets, valid).length;
}

function aheadOf(ticket: Ticket, tickets: readonly Ticket[], valid: readonly Lease[]): Ticket[] {
  return ticketsAhead({ ...ticket, ticket: ticket.number }, tickets, valid);
}
