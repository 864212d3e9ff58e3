import type { Actor } from "../kernel/commands";
import { contendersIn, type Escalated, escalatedAmong } from "../kernel/escalation";
import { type FactName, factName } from "../kernel/facts";
import type { LeaseId } from "../kernel/ids";
import { extentsOf, type Ticket } from "../kernel/tickets";
import { elapsedMs } from "../kernel/time";
import { type Coordinator, WITHOUT_LEASE } from "./contract";
import type { LocalCoordinator } from "./local";

/** Facts about leases that are on record as held and contended for too long. */
const ESCALATION = "escalation";
/** How many of those who wait a record names. */
const MOST_NAMED = 20;

function escalationName(leaseId: LeaseId): FactName {
  return factName(ESCALATION, leaseId.toLowerCase());
}

/** Puts each of them on record, once, by whoever notices first: decided under the mutex. */
export async function recordEscalated(
  coordinator: Pick<Coordinator, "facts" | "write">,
  actor: Actor,
  escalated: readonly Escalated[],
): Promise<void> {
  if (escalated.length === 0) return;
  const names = escalated.map(({ lease }) => escalationName(lease.leaseId));
  const known = await coordinator.facts({ names });
  for (const [i, { lease, contenders }] of escalated.entries()) {
    const name = names[i]!;
    if (known.has(name)) continue;
    const { leaseId, key, agentId, acquiredAt } = lease;
    await coordinator.write({
      actor,
      ...WITHOUT_LEASE,
      about: key,
      facts: [name],
      isOnlyLogged: true,
      body: async ({ facts, now }) => {
        if (facts.has(name)) return null;
        return {
          type: "lease.escalated",
          payload: {
            lease_id: leaseId,
            key,
            agent_id: agentId,
            held_since: new Date(acquiredAt.wallMs).toISOString(),
            waiting: contenders.slice(0, MOST_NAMED).map((contender) => ({
              agent_id: contender.agentId,
              since: new Date(contender.since.wallMs).toISOString(),
            })),
          },
          facts: new Map([[name, { lease_id: leaseId, key, at: new Date(now.wallMs).toISOString() }]]),
          answer: true,
        };
      },
    });
  }
}

/** For `gc`: those that have ended need not be remembered. */
export async function forgetEscalated(coordinator: LocalCoordinator, actor: Actor): Promise<void> {
  const facts = await coordinator.facts({ kinds: [ESCALATION] });
  if (facts.size === 0) return;
  const standing = new Set((await coordinator.list()).map(({ lease }) => escalationName(lease.leaseId)));
  const over = [...facts].filter(([name]) => !standing.has(name));
  if (over.length === 0) return;
  await coordinator.write({
    actor,
    ...WITHOUT_LEASE,
    about: "leases that were held for long",
    facts: over.map(([name]) => name),
    isOnlyLogged: true,
    body: async ({ facts: known }) => {
      const gone = over.filter(([name]) => known.has(name));
      if (gone.length === 0) return null;
      return {
        type: "lease.settled",
        payload: { lease_ids: gone.map(([, { value }]) => String(value["lease_id"])) },
        facts: new Map(gone.map(([name]) => [name, null])),
        answer: true,
      };
    },
  });
}

/** What a waiter does at each look: once it has waited for long, those who keep it waiting go on record. */
export function noticing(coordinator: LocalCoordinator, actor: Actor): (mine: Ticket) => Promise<void> {
  const { escalateAfterSecs } = coordinator.policy;
  const recorded = new Set<LeaseId>();
  return async (mine) => {
    const now = coordinator.store.now();
    if (elapsedMs(mine.joinedAt, now) < escalateAfterSecs * 1000) return;
    try {
      const around = await coordinator.overlapping(extentsOf(mine));
      const valid = around.filter(({ standing }) => standing === "valid").map(({ lease }) => lease);
      const fresh = valid.filter(({ leaseId }) => !recorded.has(leaseId));
      const isDue = (tickets: readonly Ticket[]) =>
        escalatedAmong(fresh, contendersIn(tickets, fresh), now, escalateAfterSecs);
      // Where many wait, each of them reads the whole queue at most once for a lease.
      if (isDue([mine]).length === 0) return;
      const due = isDue(await coordinator.waiters());
      await recordEscalated(coordinator, actor, due);
      for (const { lease } of due) recorded.add(lease.leaseId);
    } catch {
      // Nobody's wait ends because people could not be told of it.
    }
  };
}
