import type { LeaseStatus } from "../coordinator/contract";
import { keysConflict } from "../kernel/conflicts";
import type { FactName } from "../kernel/facts";
import type { AgentId } from "../kernel/ids";
import type { LeaseKey } from "../kernel/keys";
import { belongsTo, type Lease, sameProcess } from "../kernel/lease";
import { type Owner, ownerOf, withoutHarness } from "./contention";
import { type Place, sessionOf } from "./place";
import type { Target } from "./target";

/** Who is in the way of what; and leases that would be, had they not ended by death, expiry or idleness. */
export interface InTheWay extends Map<LeaseKey, Owner> {
  readonly lapsed: readonly LeaseStatus[];
}

/** What others have on record of these files, whatever it still counts for. */
export async function othersOn(place: Place, targets: readonly Target[]): Promise<LeaseStatus[]> {
  const { coordinator, session, worktreeId, settings } = place;
  const reach = settings.acrossWorktrees === "enforce" ? "repository" : "worktree";
  const found =
    targets.length === 0
      ? []
      : await coordinator.overlapping(targets.map(({ key }) => ({ key, reach, worktreeId })));
  return found.filter(({ lease }) => !belongsTo(lease, session.actor) && !isTwin(lease, place));
}

export async function obstacles(place: Place, targets: readonly Target[]): Promise<InTheWay> {
  const others = await othersOn(place, targets);
  const map = new Map<LeaseKey, Owner>();
  for (const { key } of targets) {
    const held = others.find(({ lease, standing }) => standing === "valid" && keysConflict(key, lease.key));
    if (held !== undefined) map.set(key, ownerOf(held.lease));
  }
  return Object.assign(map, { lapsed: others.filter(({ standing }) => standing !== "valid") });
}

/**
 * What is left to be taken, once those of the session's own have given way that only look like others: subagents that
 * have finished, whose files go to whoever of the session wants them next, and the very same agent under the name
 * that another harness's settings gave it.
 */
export async function giveWay(place: Place, targets: readonly Target[]): Promise<Target[]> {
  const { coordinator, session, worktreeId } = place;
  const found = await coordinator.overlapping(
    targets.map(({ key }) => ({ key, reach: "worktree" as const, worktreeId })),
  );
  const held = found
    .filter(({ lease, standing }) => standing === "valid" && !belongsTo(lease, session.actor))
    .map(({ lease }) => lease);
  const finished = await finishedSubagents(place, held);
  for (const [agentId, leases] of finished) {
    const refs = leases.map(({ key, leaseId }) => ({ key, leaseId }));
    await sessionOf(place, agentId).release(refs, { reason: "its subagent has finished" });
  }
  const twins = held.filter((lease) => isTwin(lease, place));
  return targets.filter(({ key }) => !twins.some((lease) => lease.key === key));
}

/** Two hooks of one edit: one agent, one session, one process, under two harnesses' names. */
export function isTwin(lease: Lease, { session, who }: Place): boolean {
  const { actor } = session;
  return (
    lease.sessionId === actor.sessionId &&
    lease.worktreeId === actor.worktreeId &&
    lease.agentId !== actor.agentId &&
    withoutHarness(lease.agentId) === withoutHarness(actor.agentId) &&
    sameProcess(lease.holder, who.holder)
  );
}

export const SUBAGENT = "subagent";

export function subagentName(agentId: AgentId): FactName {
  return `${SUBAGENT}:${agentId}` as FactName;
}

async function finishedSubagents(
  { coordinator, who }: Place,
  held: readonly Lease[],
): Promise<Map<AgentId, Lease[]>> {
  const byAgent = new Map<AgentId, Lease[]>();
  for (const lease of held) {
    if (lease.sessionId !== who.sessionId) continue;
    const known = byAgent.get(lease.agentId);
    if (known === undefined) byAgent.set(lease.agentId, [lease]);
    else known.push(lease);
  }
  if (byAgent.size === 0) return byAgent;
  const facts = await coordinator.facts({ names: [...byAgent.keys()].map(subagentName) });
  for (const agentId of [...byAgent.keys()]) if (!facts.has(subagentName(agentId))) byAgent.delete(agentId);
  return byAgent;
}
