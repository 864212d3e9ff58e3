import { ERRORS } from "../errors/registry";
import type { Acquire } from "../kernel/commands";
import { type Circumstances, decide, standingOf } from "../kernel/decide";
import { printable } from "../kernel/ids";
import { belongsTo, type Lease } from "../kernel/lease";
import { PAUSE_FACT } from "../kernel/pause";
import type { Policy } from "../kernel/policy";
import { isCuredByWaiting, isRefusal } from "../kernel/refusal";
import { inTheWay, type Ticket, ticketsAhead } from "../kernel/tickets";
import { remainingMs } from "../kernel/time";
import { EVERYTHING, livenessOf, needsOf } from "../store/gather";
import type { Predecessors } from "../store/predecessors";
import type { Reader } from "../store/reader";
import type { Store } from "../store/store";

/** What a look without the mutex tells a waiter. */
export interface QueueLook {
  /**
   * `settled`: it would be granted now, or refused for something that waiting does not cure. `unattended`: somebody before
   * it could go and has not been told, so that nobody counts the time it has to do so.
   */
  readonly state: "settled" | "unattended" | "waiting";
  /** How many are served before it now, and what it waits for, in words. */
  readonly ahead: number;
  readonly message: string;
  /** When what it waits for ends by itself. */
  readonly nextExpiryMs: number | null;
}

/** Whether there is anything to wait for, without the mutex and without writing. */
export async function lookAtQueue(
  store: Store,
  reader: Reader,
  policy: Policy,
  command: Acquire,
  mine: Ticket,
  before: Predecessors,
): Promise<QueueLook> {
  const now = store.now();
  const all = await before.all();
  const placed = { ...command, ticket: mine.number };
  const snapshot = await reader.snapshot(needsOf(placed, all, now, policy));
  const liveness = await livenessOf(store.platform, snapshot.leases.values());
  const { facts } = snapshot;
  const at: Circumstances = { now: store.now(), policy, liveness, tickets: [], facts };
  const valid = [...snapshot.leases.values()].filter((lease) => standingOf(lease, at) === "valid");

  const ahead = ticketsAhead({ ...mine, ticket: mine.number }, [...all, mine], valid);
  const { first, gone } = await firstWaiting(ahead, before, at);
  const tickets = first === null ? [mine] : [first, mine];
  const decision = decide({ ...snapshot, nextToken: snapshot.head.nextToken }, placed, { ...at, tickets });
  const isCurable = isRefusal(decision) && isCuredByWaiting(decision);
  const isUnattended =
    !facts.has(PAUSE_FACT) && first?.freeSince === null && inTheWay(first, valid).length === 0;
  return {
    state: !isCurable ? "settled" : isUnattended ? "unattended" : "waiting",
    ahead: ahead.length - gone,
    message: isRefusal(decision) ? decision.message : "",
    nextExpiryMs: nextExpiryMs(valid, at),
  };
}

/** Why somebody still waits. */
export interface Why {
  readonly message: string;
  readonly hint?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * What is in the way now, by a look at everything: for whoever gives up. Two who wait for each other wait for ever, and
 * neither of them can see that from what it waits for alone.
 */
export async function whyWaiting(
  store: Store,
  reader: Reader,
  policy: Policy,
  command: Acquire,
  mine: Ticket,
): Promise<Why> {
  const snapshot = await reader.snapshot({ ...EVERYTHING, facts: [PAUSE_FACT] });
  const liveness = await livenessOf(store.platform, snapshot.leases.values());
  const { live: tickets } = await store.queue.load(store.now());
  const { facts } = snapshot;
  const at: Circumstances = { now: store.now(), policy, liveness, tickets, facts };
  const placed = { ...command, ticket: mine.number };
  const decision = decide({ ...snapshot, nextToken: snapshot.head.nextToken }, placed, at);
  if (!isRefusal(decision)) return { message: "it has become free only now", data: {} };
  const { message, data } = decision;
  if (decision.code === "E_PAUSED") return { message, hint: ERRORS.E_PAUSED.hint, data };
  const valid = [...snapshot.leases.values()].filter((lease) => standingOf(lease, at) === "valid");
  const blockers = inTheWay(mine, valid);
  for (const other of tickets) {
    const theirs = blockers.find((lease) => belongsTo(lease, other));
    const ours = inTheWay(other, valid).find((lease) => belongsTo(lease, mine));
    if (theirs === undefined || ours === undefined) continue;
    return {
      message: `${message}; ${other.agentId} waits for ${printable(ours.key)}, which you hold: neither goes on until one gives up`,
      hint: `give ${printable(ours.key)} back, or ask ${other.agentId} to give ${printable(theirs.key)} back`,
      data: { ...data, deadlock: { agent_id: other.agentId, holds: theirs.key, waits_for: ours.key } },
    };
  }
  return { message, data };
}

/** One that waits is enough to know that it is not this waiter's turn; those before it are gone. */
async function firstWaiting(ahead: readonly Ticket[], before: Predecessors, { now }: Circumstances) {
  for (const [gone, ticket] of ahead.entries()) {
    const first = await before.waiting(ticket, now);
    if (first !== null) return { first, gone };
  }
  return { first: null, gone: ahead.length };
}

function nextExpiryMs(leases: readonly Lease[], { now }: Circumstances): number | null {
  const left = leases.flatMap(({ expiresAt }) => (expiresAt === null ? [] : remainingMs(expiresAt, now)));
  const future = left.filter((ms) => ms > 0);
  return future.length === 0 ? null : Math.min(...future);
}
