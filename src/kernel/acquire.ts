import { type Circumstances, type Decision, isLiveWriterLock, standingOf } from "./circumstances";
import type { Acquire } from "./commands";
import { type Extent, ExtentIndex } from "./conflicts";
import { type FencingToken, fencingToken, type LeaseId } from "./ids";
import {
  awaitsAdoption,
  belongsTo,
  type EndCause,
  type Ended,
  effectiveReach,
  endedRecord,
  isIndefinite,
  type Lease,
  type Slot,
  type StoleFrom,
  sameProcess,
  slotOf,
} from "./lease";
import { refusePaused } from "./pause";
import {
  checkIndefinite,
  checkText,
  checkToken,
  checkTtl,
  isGiven,
  LIMITS,
  mayEvict,
  needsOthers,
} from "./policy";
import { shows } from "./proof";
import { subjectOf } from "./proposals";
import { type Refusal, refuse } from "./refusal";
import { adopt, extended, restated, upkeep } from "./renewal";
import { ticketsAhead } from "./tickets";
import { instantOf, later } from "./time";
import { nextTokenAbove, type View } from "./view";
import {
  heldBy,
  liveWriterLock,
  needsApproval,
  needsReason,
  notAllowedToEvict,
  queued,
  takenOverBy,
} from "./words";

/** A key that the caller does not hold yet. */
interface Want extends Extent {
  readonly leaseId: LeaseId;
  readonly order: number;
}

/** A lease that meets some of what is wanted. */
interface Met {
  readonly lease: Lease;
  readonly wants: readonly Want[];
}

interface Surroundings {
  /** Valid leases of others. */
  readonly blockers: readonly Met[];
  readonly lapsed: readonly (Met & { readonly why: EndCause })[];
  /** Handed to the caller, in or around what it wants: they become its own, or another session could adopt them. */
  readonly handed: readonly Lease[];
}

export function decideAcquire(view: View, command: Acquire, at: Circumstances): Decision | Refusal {
  const unfit = checkAcquire(view, command, at);
  if (unfit !== null) return unfit;
  const { held, wants } = sortOut(view, command, at);
  const paused = refusePaused(view, wants, command.actor, at);
  if (paused !== null) return paused;
  const around = lookAround(view, wants, command, at);
  const refused = checkTaking(view, wants, around, command, at);
  if (refused !== null) return refused;

  const { granted, ended } = grant(view, wants, around, command, at);
  const handed = around.handed.filter((lease) => !held.has(slotOf(lease)));
  const kept = [...held.values(), ...handed].map((before) => ({ before, after: keep(before, command, at) }));
  const renewed = kept.filter(({ before, after }) => before !== after).map(({ after }) => after);
  const leases = askedFirst(command, [...granted, ...kept.map(({ after }) => after)]);
  if (granted.length > 0) {
    const changed = [...granted, ...renewed];
    return { event: { type: "claim.acquired", leases: changed, ended, reason: command.reason }, leases };
  }
  if (renewed.length === 0) return { event: null, leases };
  return { event: { type: "claim.renewed", leases: renewed, ended: [], reason: null }, leases };
}

function checkAcquire(view: View, command: Acquire, at: Circumstances): Refusal | null {
  if (command.keys.length === 0) return refuse("E_USAGE", "name at least one thing to lease");
  if (command.keys.length > LIMITS.keysPerOperation) {
    return refuse(
      "E_LIMIT",
      `${command.keys.length} keys in one operation; the limit is ${LIMITS.keysPerOperation}`,
      { hint: "lease a directory that contains them (--dir), or take them in parts" },
    );
  }
  if (command.leaseIds.length < command.keys.length)
    return refuse("E_USAGE", "an acquire brings a fresh lease id for each of its keys");
  const unfit =
    checkText(command.reason, "reason") ??
    checkText(command.note, "note") ??
    checkToken(view.nextToken, command.aboveToken, command.keys.length);
  if (unfit !== null) return unfit;
  const { bind, ttlSecs, atMostSecs = 0 } = command;
  return checkTtl(bind === "process" ? atMostSecs : ttlSecs, command.actor.agentId, at.policy);
}

/** What of the asked keys the caller has already, and what it still wants; a key named twice counts once. */
function sortOut(view: View, command: Acquire, at: Circumstances) {
  const held = new Map<Slot, Lease>();
  const wants = new Map<Slot, Want>();
  const { worktreeId } = command.actor;
  command.keys.forEach(({ key, reach: asked }, order) => {
    const reach = effectiveReach(key, asked);
    const slot = slotOf({ key, reach, worktreeId });
    if (held.has(slot) || wants.has(slot)) return;
    const lease = view.leases.get(slot);
    const own = lease !== undefined && belongsTo(lease, command.actor) && standingOf(lease, at) === "valid";
    if (own) held.set(slot, lease);
    else wants.set(slot, { key, reach, worktreeId, leaseId: command.leaseIds[order]!, order });
  });
  return { held, wants: [...wants.values()] };
}

function lookAround(view: View, wants: readonly Want[], command: Acquire, at: Circumstances): Surroundings {
  const index = new ExtentIndex(wants);
  const blockers: Met[] = [];
  const lapsed: (Met & { why: EndCause })[] = [];
  const handed: Lease[] = [];
  for (const lease of view.leases.values()) {
    const met = index.conflictingWith(lease);
    if (met.length === 0) continue;
    const why = standingOf(lease, at);
    if (why !== "valid") lapsed.push({ lease, wants: met, why });
    else if (!belongsTo(lease, command.actor)) blockers.push({ lease, wants: met });
    else if (awaitsAdoption(lease, command.actor)) handed.push(lease);
  }
  // The order of the view must decide nothing.
  return {
    blockers: blockers.sort(byToken),
    lapsed: lapsed.sort(byToken),
    handed: handed.sort((a, b) => a.fencingToken - b.fencingToken),
  };
}

function checkTaking(
  view: View,
  wants: readonly Want[],
  around: Surroundings,
  command: Acquire,
  at: Circumstances,
): Refusal | null {
  if (wants.length === 0) return null;
  const blockers = around.blockers.map(({ lease }) => lease);
  if (command.ttlSecs === 0 && command.bind === "ttl") {
    const ending = new Set(command.steal ? blockers : []);
    const standing = [...view.leases.values()].filter(
      (lease) => isIndefinite(lease) && !ending.has(lease) && standingOf(lease, at) === "valid",
    );
    const keys = wants.map((want) => want.key);
    const refused = checkIndefinite(keys, command.actor.agentId, command.reason, standing, at.policy);
    if (refused !== null) return refused;
  }
  if (blockers.length > 0) {
    const refused = command.steal
      ? checkSteal(command, blockers, at)
      : heldBy(blockers, at.now, undefined, command.actor);
    if (refused !== null) return refused;
  }
  return checkQueue(view, wants, command, at);
}

function checkSteal(command: Acquire, blockers: readonly Lease[], at: Circumstances): Refusal | null {
  if (!isGiven(command.reason)) return needsReason("ending somebody's live lease");
  if (!mayEvict(command.actor.agentId, at.policy)) return notAllowedToEvict(command.actor.agentId, at.policy);
  const writer = blockers.find((lease) => isLiveWriterLock(lease, at));
  if (writer !== undefined) return liveWriterLock(writer);
  const others = blockers.filter((lease) => needsOthers(lease, command.actor, at.policy));
  return others.length === 0 ? null : needsApproval(others.map(subjectOf), at.policy);
}

/** Going before others who wait takes the same right as ending a live lease. */
function checkQueue(view: View, wants: readonly Want[], command: Acquire, at: Circumstances): Refusal | null {
  const { actor } = command;
  if (at.tickets.length === 0) return null;
  if (command.steal && isGiven(command.reason) && mayEvict(actor.agentId, at.policy)) return null;
  const ofSession = [...view.leases.values()].filter(
    (lease) =>
      lease.agentId === actor.agentId &&
      lease.sessionId === actor.sessionId &&
      standingOf(lease, at) === "valid",
  );
  const ahead = ticketsAhead({ ...actor, keys: wants, ticket: command.ticket }, at.tickets, ofSession);
  return ahead.length === 0 ? null : queued(ahead);
}

/**
 * PROTOCOL 10: a grant ends what it replaces, in its own line, or a lapsed lease could come back beside it
 * (activity clearing stop-idle, a wall clock stepping back). Also the caller's own lapsed ones: they would
 * come back beside whoever the new lease is handed to.
 */
function grant(
  view: View,
  wants: readonly Want[],
  around: Surroundings,
  command: Acquire,
  at: Circumstances,
): { granted: Lease[]; ended: Ended[] } {
  const stoleFrom = new Map<LeaseId, StoleFrom[]>(
    wants.map((want) => [want.leaseId, takenElsewhere(command, want)]),
  );
  const ended: Ended[] = [];
  const forced = around.blockers.map((met) => ({ ...met, why: "forced" as const }));
  for (const { lease, wants: met, why } of [...forced, ...around.lapsed]) {
    const first = met.reduce((a, b) => (b.order < a.order ? b : a));
    const taken = takenOverBy(command.actor.agentId, command.reason);
    const record = endedRecord(lease, why, first.leaseId);
    ended.push(why === "forced" ? { ...record, why: taken } : record);
    const from = { leaseId: lease.leaseId, agentId: lease.agentId, why };
    for (const want of met) {
      const named = stoleFrom.get(want.leaseId)!;
      if (named.length < LIMITS.stoleFrom) named.push(from);
    }
  }
  const first = nextTokenAbove(view, command);
  const granted = wants.map((want, i) =>
    newLease(command, want, fencingToken(first + i), stoleFrom.get(want.leaseId)!, at),
  );
  return { granted, ended };
}

function takenElsewhere({ elsewhere = [] }: Acquire, want: Want): StoleFrom[] {
  return elsewhere
    .filter(({ key }) => key === want.key)
    .map(({ leaseId, agentId, why }) => ({ leaseId, agentId, why }));
}

function newLease(
  command: Acquire,
  want: Want,
  fencingToken: FencingToken,
  stoleFrom: readonly StoleFrom[],
  at: Circumstances,
): Lease {
  const now = instantOf(at.now);
  const { actor, bind } = command;
  const ttlSecs = bind === "process" ? (command.atMostSecs ?? 0) : command.ttlSecs;
  const finite = ttlSecs > 0;
  return {
    leaseId: want.leaseId,
    key: want.key,
    agentId: actor.agentId,
    sessionId: actor.sessionId,
    worktreeId: actor.worktreeId,
    branch: actor.branch,
    holder: actor.holder,
    ttlSecs,
    acquiredAt: now,
    renewedAt: now,
    expiresAt: finite ? later(now, ttlSecs * 1000) : null,
    lastBeat: now,
    maxTotalSecs: finite ? Math.max(at.policy.maxTotalSecs, ttlSecs) : null,
    fencingToken,
    secretHash: command.secretHash,
    reason: command.reason,
    note: command.note,
    stopIdleAt: null,
    bind,
    reach: want.reach,
    stoleFrom,
  };
}

/**
 * A lease asked for again: the same one. It gets a new secret if the caller cannot show the old one, and
 * follows its session into a new process, for that is the one that now counts on it.
 */
function keep(lease: Lease, command: Acquire, at: Circumstances): Lease {
  const { actor, secretHash } = command;
  let kept = lease;
  if (!shows(command, lease)) {
    kept =
      lease.bind === "process"
        ? { ...lease, secretHash, lastBeat: instantOf(at.now) }
        : adopt(lease, actor, secretHash, at);
  }
  const isAnother = !sameProcess(kept.holder, actor.holder);
  if (isAnother && kept.bind === "process" && command.bind === "process")
    kept = { ...kept, holder: actor.holder, lastBeat: instantOf(at.now) };
  if (isAnother && kept.bind === "ttl" && command.follows === true)
    kept = { ...kept, holder: actor.holder, expiresAt: restated(kept, at.now) };
  const looked = upkeep(kept, actor, at) ?? kept;
  return command.bind === "ttl" ? extended(looked, command.ttlSecs, actor, at) : looked;
}

/** In the order of the keys; then what was adopted along with them, for the caller must know that it has it. */
function askedFirst(command: Acquire, leases: readonly Lease[]): Lease[] {
  const rest = new Map(leases.map((lease) => [slotOf(lease), lease]));
  const asked: Lease[] = [];
  const { worktreeId } = command.actor;
  for (const { key, reach } of command.keys) {
    const slot = slotOf({ key, reach: effectiveReach(key, reach), worktreeId });
    const lease = rest.get(slot);
    if (lease !== undefined && rest.delete(slot)) asked.push(lease);
  }
  return [...asked, ...rest.values()];
}

function byToken(a: Met, b: Met): number {
  return a.lease.fencingToken - b.lease.fencingToken;
}
