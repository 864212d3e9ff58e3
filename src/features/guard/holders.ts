import type { Coordinator, LeaseStatus, LoggedEvent } from "../../coordinator/contract";
import type { Workspace } from "../../coordinator/workspace";
import { keysConflict } from "../../kernel/conflicts";
import { type Fact, type FactName, factName } from "../../kernel/facts";
import type { AgentId } from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import { belongsTo, type Holder, type Lease, type Party, type Reach, sameProcess } from "../../kernel/lease";
import { leaseFromWire } from "../../store/wire";
import { type Contention, isReported, type Owner, ownerOf, withoutHarness } from "./contention";
import { type GuardedWorktree, sessionOf } from "./worktree";
import type { WriteTarget } from "./write-target";

/** Who is in the way of what; and leases that would be, had they not ended by death, expiry or idleness. */
export interface InTheWay extends Map<LeaseKey, Owner> {
  readonly lapsed: readonly LeaseStatus[];
}

/** The party that wants something. */
export interface Wanting extends Party {
  /** Its harness's process. */
  readonly holder: Holder;
  /** How far what it would take reaches. */
  readonly reach: Reach;
}

/** Of one directory; there may be thousands. */
const MOST_OWNERS = 20;

/**
 * Who holds a thing now, and so is in the way of whoever wants it. The one answer for the check itself, its retry, the
 * reports and every list: leases of the same party, of its twin under another harness's name, and of those of its session
 * that give way to it do not count.
 */
export async function holdersNow(
  coordinator: Pick<Coordinator, "overlapping" | "facts">,
  wanting: Wanting,
  keys: readonly LeaseKey[],
): Promise<InTheWay> {
  const others = await othersOn(coordinator, wanting, keys);
  const counting = await withoutYielding(coordinator, wanting, others);
  const map = new Map<LeaseKey, Owner>();
  for (const key of keys) {
    const held = counting.filter(({ lease }) => keysConflict(key, lease.key)).map(({ lease }) => lease);
    const [first, ...also] = held.sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, MOST_OWNERS);
    if (first !== undefined)
      map.set(key, { ...ownerOf(first), ...(also.length === 0 ? {} : { also: also.map(ownerOf) }) });
  }
  return Object.assign(map, { lapsed: others.filter(({ standing }) => standing !== "valid") });
}

/**
 * Whether whoever stopped an agent is still in its way: the very same lease. An agent that is over is not stopped by those
 * who take the file later.
 */
export async function isStillInTheWay(
  coordinator: Pick<Coordinator, "overlapping" | "facts">,
  contention: Contention,
  reach: Reach,
): Promise<boolean> {
  if (!isReported(contention.state)) return false;
  const wanting = { ...contention, reach };
  const held = await withoutYielding(
    coordinator,
    wanting,
    await othersOn(coordinator, wanting, [contention.key]),
  );
  const { leaseId } = contention.owner;
  return held.some(({ lease }) => leaseId === null || lease.leaseId === leaseId);
}

/** Those that are valid, and not of an agent that would give way. */
export async function withoutYielding(
  coordinator: Pick<Coordinator, "facts">,
  wanting: Kin,
  others: readonly LeaseStatus[],
): Promise<LeaseStatus[]> {
  const valid = others.filter(({ standing }) => standing === "valid");
  const leases = valid.map(({ lease }) => lease);
  const yielding = await yieldingTo(coordinator, wanting, leases);
  return valid.filter(({ lease }) => !(yielding.get(lease.agentId)?.includes(lease) ?? false));
}

/** Leases of others on these files, valid or lapsed. */
export async function othersOn(
  coordinator: Pick<Coordinator, "overlapping">,
  wanting: Wanting,
  keys: readonly LeaseKey[],
): Promise<LeaseStatus[]> {
  const { reach, worktreeId } = wanting;
  const found =
    keys.length === 0 ? [] : await coordinator.overlapping(keys.map((key) => ({ key, reach, worktreeId })));
  return found.filter(({ lease }) => !belongsTo(lease, wanting) && !isTwin(lease, wanting));
}

export function obstacles(place: GuardedWorktree, targets: readonly WriteTarget[]): Promise<InTheWay> {
  return holdersNow(
    place.coordinator,
    wantingIn(place),
    targets.map(({ key }) => key),
  );
}

export function wantingIn({ session, who, settings }: GuardedWorktree): Wanting {
  return { ...session.actor, holder: who.holder, reach: reachOf(settings.acrossWorktrees) };
}

/** How far a lease of the guard's reaches. */
export function reachOf(acrossWorktrees: "off" | "warn" | "enforce"): Reach {
  return acrossWorktrees === "enforce" ? "repository" : "worktree";
}

export function reachIn({ config }: Pick<Workspace, "config">): Reach {
  return reachOf(config.values["guard.across_worktrees"]);
}

/**
 * What is left to be taken, once those of the session's own have given way that only look like others, and the very same
 * agent under the name that another harness's settings gave it.
 */
export async function giveWay(
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
): Promise<WriteTarget[]> {
  const { coordinator, session, worktreeId } = place;
  const found = await coordinator.overlapping(
    targets.map(({ key }) => ({ key, reach: "worktree" as const, worktreeId })),
  );
  const held = found
    .filter(({ lease, standing }) => standing === "valid" && !belongsTo(lease, session.actor))
    .map(({ lease }) => lease);
  for (const [agentId, leases] of await yieldingTo(coordinator, session.actor, held)) {
    const refs = leases.map(({ key, leaseId }) => ({ key, leaseId }));
    const reason = `${session.actor.agentId} of the same session goes on with it`;
    await sessionOf(place, agentId).release(refs, { reason });
  }
  const twins = held.filter((lease) => isTwin(lease, wantingIn(place)));
  return targets.filter(({ key }) => !twins.some((lease) => lease.key === key));
}

/** Two hooks of one edit: one agent, one session, one process, under two harnesses' names. */
function isTwin(lease: Lease, wanting: Wanting): boolean {
  return (
    lease.sessionId === wanting.sessionId &&
    lease.worktreeId === wanting.worktreeId &&
    lease.agentId !== wanting.agentId &&
    withoutHarness(lease.agentId) === withoutHarness(wanting.agentId) &&
    sameProcess(lease.holder, wanting.holder)
  );
}

export const SUBAGENT = "subagent";

export function subagentName(agentId: AgentId): FactName {
  return factName(SUBAGENT, agentId);
}

type Kin = Pick<Party, "sessionId" | "agentId">;

/**
 * Of one session, who gives way to whom: an agent and the one that started it to each other, for one waits for the other,
 * or has told it what to do; and a subagent that has finished to everybody. Subagents that work side by side do not.
 */
async function yieldingTo(
  coordinator: Pick<Coordinator, "facts">,
  wanting: Kin,
  held: readonly Lease[],
): Promise<Map<AgentId, Lease[]>> {
  const byAgent = new Map<AgentId, Lease[]>();
  for (const lease of held) {
    if (lease.sessionId !== wanting.sessionId) continue;
    const known = byAgent.get(lease.agentId);
    if (known === undefined) byAgent.set(lease.agentId, [lease]);
    else known.push(lease);
  }
  const others = [...byAgent.keys()].filter((agentId) => !isInLine(agentId, wanting.agentId));
  if (others.length === 0) return byAgent;
  const facts = await coordinator.facts({ names: others.map(subagentName) });
  for (const agentId of others) {
    const done = facts.get(subagentName(agentId));
    const leases = byAgent
      .get(agentId)!
      .filter((lease) => done !== undefined && isFinished(done.value, lease));
    if (leases.length > 0) byAgent.set(agentId, leases);
    else byAgent.delete(agentId);
  }
  return byAgent;
}

/** Whether a subagent was done with a file when it finished. One that was sent on since takes its files anew. */
export function isFinished(done: Fact, { acquiredAt }: Lease): boolean {
  return Date.parse(String(done["at"])) >= acquiredAt.wallMs;
}

/** Whether one of them has started the other: a subagent's name goes on where its parent's ends. */
function isInLine(a: AgentId, b: AgentId): boolean {
  return a.startsWith(`${b}.`) || b.startsWith(`${a}.`);
}

/**
 * Who has held it since somebody was denied, in order, the one of the denial first. The record of a denial knows only that
 * one; others may have had it, and given it back, before anybody looked again.
 */
export async function holdersSince(
  coordinator: Pick<Coordinator, "history">,
  contention: Contention,
  reach: Reach,
): Promise<[Owner, ...Owner[]]> {
  const { owner, key, worktreeId, agentId, deniedAt } = contention;
  const found: [Owner, ...Owner[]] = [owner];
  for await (const event of coordinator.history({ from: { timeMs: deniedAt.wallMs } }))
    for (const lease of leasesIn(event)) {
      const isSame =
        keysConflict(key, lease.key) &&
        (lease.worktreeId === worktreeId || lease.reach === "repository" || reach === "repository");
      if (!isSame || lease.agentId === agentId) continue;
      // One that had it twice counts by the second time.
      const at = found.findIndex((earlier) => earlier.agentId === lease.agentId);
      if (at > 0) found.splice(at, 1);
      if (at !== 0 || found.length > 1) found.push(ownerOf(lease));
    }
  return found;
}

function leasesIn({ payload }: LoggedEvent): Lease[] {
  const { leases } = payload;
  if (!Array.isArray(leases)) return [];
  try {
    return leases.map(leaseFromWire);
  } catch {
    // Of a newer version.
    return [];
  }
}
