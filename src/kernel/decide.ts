import type {
  Acquire,
  Actor,
  Command,
  Evict,
  Gc,
  Heartbeat,
  LeaseRef,
  Release,
  Renew,
  Stop,
  Transfer,
  Upkeep,
} from "./commands";
import { conflict } from "./conflicts";
import { type FencingToken, type LeaseId, printable } from "./ids";
import { kindOf } from "./keys";
import {
  type EndCause,
  type Ended,
  effectiveReach,
  endedRecord,
  isIndefinite,
  type Lease,
  sameParty,
  slotOf,
} from "./lease";
import { checkIndefinite, checkText, checkTtl, LIMITS, mayEvict, type Policy } from "./policy";
import { isRefusal, type Refusal, refuse } from "./refusal";
import { type Ticket, ticketsAhead } from "./tickets";
import { elapsedMs, type Instant, instantOf, later, type Now, remainingMs } from "./time";
import { type Liveness, type Standing, standing } from "./validity";
import type { ClaimEvent, ClaimEventType, View } from "./view";

/** Everything outside the log that a decision may depend on, gathered in the same critical section. */
export interface Circumstances {
  readonly now: Now;
  readonly policy: Policy;
  readonly liveness: ReadonlyMap<LeaseId, Liveness>;
  /** Live tickets only. */
  readonly tickets: readonly Ticket[];
}

export interface Decision {
  /** Null when there is nothing to write: an idempotent repetition. */
  readonly event: ClaimEvent | null;
  /** The leases the command was about, as they stand after it; for a release, as they were. */
  readonly leases: readonly Lease[];
}

export function decide(view: View, command: Command, at: Circumstances): Decision | Refusal {
  switch (command.kind) {
    case "acquire":
      return decideAcquire(view, command, at);
    case "renew":
      return decideRenew(view, command, at);
    case "heartbeat":
      return decideHeartbeat(view, command, at);
    case "release":
      return decideRelease(view, command, at);
    case "transfer":
      return decideTransfer(view, command, at);
    case "evict":
      return decideEvict(view, command, at);
    case "stop":
      return decideStop(view, command, at);
    case "gc":
      return decideGc(view, command, at);
    case "upkeep":
      return decideUpkeep(view, command, at);
  }
}

export function standingOf(lease: Lease, at: Circumstances): Standing {
  return standing(lease, at.now, at.liveness.get(lease.leaseId) ?? "unknown", at.policy);
}

function event(
  type: ClaimEventType,
  leases: readonly Lease[],
  ended: readonly Ended[],
  reason: string | null,
): ClaimEvent {
  return { type, leases, ended, reason };
}

// --- acquire ------------------------------------------------------------------------------------------

function decideAcquire(view: View, command: Acquire, at: Circumstances): Decision | Refusal {
  const { actor, policy } = { actor: command.actor, policy: at.policy };
  const unfit = checkAcquire(command, policy);
  if (unfit !== null) return unfit;

  const valid: Lease[] = [];
  const lapsed: { lease: Lease; why: EndCause }[] = [];
  for (const lease of view.leases.values()) {
    const state = standingOf(lease, at);
    if (state === "valid") valid.push(lease);
    else lapsed.push({ lease, why: state });
  }

  const held: Lease[] = [];
  const wanted: { key: Lease["key"]; reach: Lease["reach"]; leaseId: LeaseId }[] = [];
  const seen = new Set<string>();
  command.keys.forEach((asked, i) => {
    const reach = effectiveReach(asked.key, asked.reach);
    const slot = slotOf({ key: asked.key, reach, worktreeId: actor.worktreeId });
    if (seen.has(slot)) return;
    seen.add(slot);
    const own = valid.find((lease) => slotOf(lease) === slot && isOwn(lease, actor));
    if (own !== undefined) held.push(own);
    else wanted.push({ key: asked.key, reach, leaseId: command.leaseIds[i]! });
  });

  if (command.ttlSecs === 0 && command.bind === "ttl" && wanted.length > 0) {
    const refused = checkIndefinite(
      wanted.map((w) => w.key),
      actor.agentId,
      command.reason,
      valid,
      policy,
    );
    if (refused !== null) return refused;
  }

  const blockers = valid.filter(
    (lease) =>
      !isOwn(lease, actor) && wanted.some((w) => conflict({ ...w, worktreeId: actor.worktreeId }, lease)),
  );
  if (blockers.length > 0) {
    const refused = command.steal ? checkSteal(command, blockers, policy) : heldByOthers(blockers, at.now);
    if (refused !== null) return refused;
  }
  if (!command.steal && wanted.length > 0) {
    const asker = { ...actor, keys: wanted, ticket: command.ticket };
    const ahead = ticketsAhead(asker, at.tickets, valid);
    if (ahead.length > 0) return queued(ahead);
  }

  const renewed = held.map((lease) => keepHeld(lease, command, at.now)).filter((lease) => lease !== null);
  if (wanted.length === 0 && renewed.length === 0) return { event: null, leases: inOrder(command, held) };

  const granted: Lease[] = [];
  const ended: Ended[] = [];
  let token = view.nextToken;
  for (const want of wanted) {
    const extent = { ...want, worktreeId: actor.worktreeId };
    const replaced = [
      ...blockers
        .filter((lease) => conflict(extent, lease))
        .map((lease) => ({ lease, why: "forced" as EndCause })),
      ...lapsed.filter(({ lease }) => conflict(extent, lease)),
    ];
    granted.push(
      newLease(
        command,
        want,
        token,
        at.now,
        policy,
        replaced.map(({ lease, why }) => ({ leaseId: lease.leaseId, agentId: lease.agentId, why })),
      ),
    );
    // PROTOCOL 10: a grant ends what it replaces, in its own line, or a lapsed lease could come back beside it.
    for (const { lease, why } of replaced) {
      if (!ended.some((gone) => gone.leaseId === lease.leaseId))
        ended.push(endedRecord(lease, why, want.leaseId));
    }
    token = (token + 1) as FencingToken;
  }
  const untouched = held.filter((lease) => !renewed.some((r) => r.leaseId === lease.leaseId));
  return {
    event:
      wanted.length === 0
        ? event("claim.renewed", renewed, [], null)
        : event("claim.acquired", [...granted, ...renewed], ended, command.reason),
    leases: inOrder(command, [...granted, ...renewed, ...untouched]),
  };
}

function checkAcquire(command: Acquire, policy: Policy): Refusal | null {
  if (command.keys.length === 0) return refuse("E_USAGE", "name at least one thing to lease");
  if (command.keys.length > LIMITS.keysPerOperation) {
    return refuse(
      "E_LIMIT",
      `${command.keys.length} keys in one operation; the limit is ${LIMITS.keysPerOperation}`,
      {
        hint: "lease a directory that contains them (--dir), or take them in parts",
      },
    );
  }
  const unfit = checkText(command.reason, "reason") ?? checkText(command.note, "note");
  if (unfit !== null) return unfit;
  return command.bind === "process" ? null : checkTtl(command.ttlSecs, command.actor.agentId, policy);
}

function isOwn(lease: Lease, actor: Actor): boolean {
  return sameParty(lease, actor) || awaitsAdoption(lease, actor);
}

/** PROTOCOL 16: a transferred lease has no secret until its new agent calls from its new worktree. */
function awaitsAdoption(lease: Lease, actor: Actor): boolean {
  return (
    lease.secretHash === null && lease.agentId === actor.agentId && lease.worktreeId === actor.worktreeId
  );
}

function checkSteal(command: Acquire, blockers: readonly Lease[], policy: Policy): Refusal | null {
  if (command.reason === null) {
    return refuse("E_USAGE", "ending somebody's live lease needs a reason", {
      hint: 'add --reason "…"; it is logged',
    });
  }
  if (!mayEvict(command.actor.agentId, policy)) return notAllowedToEvict(command.actor, policy);
  const writer = blockers.find((lease) => kindOf(lease.key) === "worktree");
  if (writer === undefined) return null;
  return refuse(
    "E_LOCK_CONFLICT",
    `the writer lock of ${nameOfHolder(writer)} is live and cannot be stolen`,
    {
      hint: "wait for it to expire, or ask its holder to release it",
      data: { holders: [leaseSummary(writer)] },
    },
  );
}

function notAllowedToEvict(actor: Actor, policy: Policy): Refusal {
  return refuse("E_POLICY", `${actor.agentId} may not end somebody else's live lease`, {
    hint: `only ${policy.evict.join(", ") || "nobody"} may (policy.evict); wait with --wait, or ask the holder`,
    data: { agent_id: actor.agentId, allowed: policy.evict },
  });
}

function newLease(
  command: Acquire,
  want: { key: Lease["key"]; reach: Lease["reach"]; leaseId: LeaseId },
  token: FencingToken,
  now: Now,
  policy: Policy,
  stoleFrom: Lease["stoleFrom"],
): Lease {
  const at = instantOf(now);
  const { actor } = command;
  const finite = command.bind === "ttl" && command.ttlSecs > 0;
  return {
    leaseId: want.leaseId,
    key: want.key,
    agentId: actor.agentId,
    sessionId: actor.sessionId,
    worktreeId: actor.worktreeId,
    branch: actor.branch,
    holder: actor.holder,
    ttlSecs: command.bind === "process" ? 0 : command.ttlSecs,
    acquiredAt: at,
    renewedAt: at,
    expiresAt: finite ? later(at, command.ttlSecs * 1000) : null,
    lastBeat: at,
    maxTotalSecs: finite ? Math.max(policy.maxTotalSecs, command.ttlSecs) : null,
    fencingToken: token,
    secretHash: command.secretHash,
    reason: command.reason,
    note: command.note,
    stopIdleAt: null,
    bind: command.bind,
    reach: want.reach,
    stoleFrom,
  };
}

/** A lease asked for again: the same one, renewed only when half of its time has gone, re-keyed if the secret was lost. */
function keepHeld(lease: Lease, command: Acquire, now: Now): Lease | null {
  const proven = lease.secretHash !== null && command.proofs.includes(lease.secretHash);
  const kept = proven ? lease : adopt(lease, command.actor, command.secretHash, now);
  const upkept = upkeep(kept, now) ?? kept;
  return upkept === lease ? null : upkept;
}

function adopt(lease: Lease, actor: Actor, secretHash: string, now: Now): Lease {
  return {
    ...lease,
    sessionId: actor.sessionId,
    branch: actor.branch,
    holder: actor.holder,
    secretHash,
    lastBeat: instantOf(now),
  };
}

function heldByOthers(blockers: readonly Lease[], now: Now): Refusal {
  const first = blockers[0]!;
  const others = blockers.length > 1 ? ` and ${blockers.length - 1} more` : "";
  return refuse(
    "E_LOCK_CONFLICT",
    `${printable(first.key)} is held by ${nameOfHolder(first)}${others}, ${describeExpiry(first, now)}`,
    {
      data: { holders: blockers.slice(0, 20).map(leaseSummary) },
    },
  );
}

function queued(ahead: readonly Ticket[]): Refusal {
  return refuse("E_QUEUED", `${ahead[0]!.agentId} waits for it already (${ahead.length} ahead of you)`, {
    hint: "join the queue with --wait --timeout 300",
    data: { ahead: ahead.length, waiting: ahead.slice(0, 20).map((t) => t.agentId) },
  });
}

function inOrder(command: Acquire, leases: readonly Lease[]): Lease[] {
  const found: Lease[] = [];
  for (const asked of command.keys) {
    const lease = leases.find((l) => l.key === asked.key);
    if (lease !== undefined && !found.includes(lease)) found.push(lease);
  }
  return found;
}

// --- renew, heartbeat, release, transfer, stop ----------------------------------------------------------

function decideRenew(view: View, command: Renew, at: Circumstances): Decision | Refusal {
  const unfit = checkText(command.reason, "reason");
  if (unfit !== null) return unfit;
  const renewed: Lease[] = [];
  for (const ref of command.leases) {
    const lease = provenAndValid(view, ref, command, at);
    if (isRefusal(lease)) return lease;
    const after = renew(lease, command, at);
    if (isRefusal(after)) return after;
    renewed.push(after);
  }
  return { event: event("claim.renewed", renewed, [], command.reason), leases: renewed };
}

function renew(lease: Lease, command: Renew, at: Circumstances): Lease | Refusal {
  const now = instantOf(at.now);
  const beaten = { ...lease, renewedAt: now, lastBeat: now, stopIdleAt: null };
  if (lease.expiresAt === null) {
    if (command.ttlSecs === null || command.ttlSecs === 0 || lease.bind === "process") return beaten;
  } else if (command.ttlSecs === 0) {
    return refuse("E_USAGE", "a lease with an expiry cannot be renewed into one without", {
      hint: 'release it and acquire it with --ttl 0 --reason "…"',
    });
  }
  const ttlSecs = command.ttlSecs ?? lease.ttlSecs;
  const unfit = checkTtl(ttlSecs, lease.agentId, at.policy);
  if (unfit !== null) return unfit;
  const asked = later(now, ttlSecs * 1000);
  const end = lease.maxTotalSecs === null ? null : later(lease.acquiredAt, lease.maxTotalSecs * 1000);
  if (end !== null && !command.overrideMax && isAfter(asked, end, at.now)) {
    const left = Math.max(0, Math.floor(remainingMs(end, at.now) / 1000));
    return refuse(
      "E_LIMIT",
      `${printable(lease.key)} may be held for ${lease.maxTotalSecs} s in all; ${left} s of that are left`,
      {
        hint:
          left > 0
            ? `renew with --ttl ${left} or less, or with --override-max --reason "…"`
            : 'release it, or renew with --override-max --reason "…"',
        data: { lease_id: lease.leaseId, max_total_secs: lease.maxTotalSecs, left_secs: left },
      },
    );
  }
  if (command.overrideMax && command.reason === null) {
    return refuse("E_USAGE", "--override-max needs a reason", { hint: 'add --reason "…"; it is logged' });
  }
  const expiresAt =
    lease.expiresAt !== null && isAfter(lease.expiresAt, asked, at.now) ? lease.expiresAt : asked;
  return { ...beaten, ttlSecs, expiresAt };
}

function decideHeartbeat(view: View, command: Heartbeat, at: Circumstances): Decision | Refusal {
  const beaten: Lease[] = [];
  for (const ref of command.leases) {
    const lease = provenAndValid(view, ref, command, at);
    if (isRefusal(lease)) return lease;
    beaten.push({ ...lease, lastBeat: instantOf(at.now) });
  }
  return { event: event("claim.heartbeat", beaten, [], null), leases: beaten };
}

function decideRelease(view: View, command: Release, at: Circumstances): Decision | Refusal {
  const unfit = checkText(command.reason, "reason");
  if (unfit !== null) return unfit;
  const released: Lease[] = [];
  for (const ref of command.leases) {
    // Not asked for validity: giving back what expired but was not taken is fine.
    const lease = proven(view, ref, command, at);
    if (isRefusal(lease)) return lease;
    released.push(lease);
  }
  return {
    event: event(
      "claim.released",
      [],
      released.map((lease) => endedRecord(lease, "released")),
      command.reason,
    ),
    leases: released,
  };
}

function decideTransfer(view: View, command: Transfer, at: Circumstances): Decision | Refusal {
  if (command.reason === null)
    return refuse("E_USAGE", "a transfer needs a reason", { hint: 'add --reason "…"; it is logged' });
  const unfit = checkText(command.reason, "reason");
  if (unfit !== null) return unfit;
  const lease = provenAndValid(view, command.lease, command, at);
  if (isRefusal(lease)) return lease;
  const now = instantOf(at.now);
  // A process-bound lease becomes TTL-bound: the new holder's process is not known yet.
  const ttlSecs = lease.bind === "process" ? at.policy.defaultTtlSecs : lease.ttlSecs;
  const expiresAt = isIndefinite(lease) ? null : later(now, ttlSecs * 1000);
  const moved: Lease = {
    ...lease,
    leaseId: command.newLeaseId,
    agentId: command.toAgent,
    worktreeId: command.toWorktree,
    branch: command.toBranch,
    fencingToken: view.nextToken,
    secretHash: null,
    acquiredAt: now,
    renewedAt: now,
    lastBeat: now,
    ttlSecs,
    expiresAt,
    maxTotalSecs: expiresAt === null ? null : Math.max(at.policy.maxTotalSecs, ttlSecs),
    reason: command.reason,
    stopIdleAt: null,
    bind: "ttl",
    stoleFrom: [],
  };
  const old = endedRecord(lease, "transferred", moved.leaseId);
  return { event: event("claim.transferred", [moved], [old], command.reason), leases: [moved] };
}

function decideStop(view: View, command: Stop, at: Circumstances): Decision | Refusal {
  const stopped: Lease[] = [];
  for (const ref of command.leases) {
    const lease = findLease(view, ref, command.actor);
    if (lease === undefined || !shows(command.proofs, lease) || standingOf(lease, at) !== "valid") continue;
    if (lease.stopIdleAt === null) stopped.push({ ...lease, stopIdleAt: instantOf(at.now) });
  }
  return { event: stopped.length === 0 ? null : event("claim.stopped", stopped, [], null), leases: stopped };
}

function decideUpkeep(view: View, command: Upkeep, at: Circumstances): Decision {
  const kept: Lease[] = [];
  for (const ref of command.leases) {
    const lease = findLease(view, ref, command.actor);
    if (lease === undefined || !shows(command.proofs, lease) || standingOf(lease, at) !== "valid") continue;
    const after = upkeep(lease, at.now);
    if (after !== null) kept.push(after);
  }
  return { event: kept.length === 0 ? null : event("claim.renewed", kept, [], null), leases: kept };
}

/** Null when nothing is due. Never past the lease's total lifetime. */
function upkeep(lease: Lease, now: Now): Lease | null {
  const at = instantOf(now);
  const cleared = lease.stopIdleAt === null ? lease : { ...lease, stopIdleAt: null, lastBeat: at };
  if (lease.expiresAt === null) {
    return isBeatDue(lease, now) ? { ...cleared, lastBeat: at } : cleared === lease ? null : cleared;
  }
  if (remainingMs(lease.expiresAt, now) > lease.ttlSecs * 500) return cleared === lease ? null : cleared;
  const asked = later(at, lease.ttlSecs * 1000);
  const end = later(lease.acquiredAt, (lease.maxTotalSecs ?? LIMITS.ttlSecs) * 1000);
  const expiresAt = isAfter(asked, end, now) ? end : asked;
  if (!isAfter(expiresAt, lease.expiresAt, now)) return cleared === lease ? null : cleared;
  return { ...cleared, renewedAt: at, lastBeat: at, expiresAt };
}

/** Leases without a clock of their own still show signs of life, but not with every keystroke. */
const BEAT_EVERY_MS = 60_000;

function isBeatDue(lease: Lease, now: Now): boolean {
  return elapsedMs(lease.lastBeat, now) >= BEAT_EVERY_MS;
}

function isAfter(a: Instant, b: Instant, now: Now): boolean {
  return remainingMs(a, now) > remainingMs(b, now);
}

// --- evict, gc ------------------------------------------------------------------------------------------

function decideEvict(view: View, command: Evict, at: Circumstances): Decision | Refusal {
  if (command.reason === null)
    return refuse("E_USAGE", "ending somebody's lease needs a reason", {
      hint: 'add --reason "…"; it is logged',
    });
  const unfit = checkText(command.reason, "reason");
  if (unfit !== null) return unfit;
  const evicted: Lease[] = [];
  const ended: Ended[] = [];
  for (const ref of command.leases) {
    const lease = findLease(view, ref, command.actor);
    if (lease === undefined) return gone(view, ref);
    const state = standingOf(lease, at);
    if (state === "valid" && !mayEvict(command.actor.agentId, at.policy))
      return notAllowedToEvict(command.actor, at.policy);
    evicted.push(lease);
    ended.push(endedRecord(lease, state === "valid" ? "forced" : state));
  }
  return { event: event("claim.evicted", [], ended, command.reason), leases: evicted };
}

function decideGc(view: View, _command: Gc, at: Circumstances): Decision {
  const swept: Lease[] = [];
  const ended: Ended[] = [];
  for (const lease of view.leases.values()) {
    const state = standingOf(lease, at);
    if (state === "valid") continue;
    swept.push(lease);
    ended.push(endedRecord(lease, state));
    if (swept.length === LIMITS.keysPerOperation) break;
  }
  return { event: swept.length === 0 ? null : event("claim.evicted", [], ended, null), leases: swept };
}

// --- whose lease is it ----------------------------------------------------------------------------------

interface Proving {
  readonly actor: Actor;
  readonly proofs: readonly string[];
  readonly secretHash: string;
}

function provenAndValid(view: View, ref: LeaseRef, command: Proving, at: Circumstances): Lease | Refusal {
  const lease = proven(view, ref, command, at);
  if (isRefusal(lease)) return lease;
  const state = standingOf(lease, at);
  if (state === "valid") return lease;
  if (state === "expired" || state === "stop_idle") return expired(lease.key, lease.leaseId);
  return mismatch(lease.key, lease.leaseId, "its process has died");
}

function proven(view: View, ref: LeaseRef, command: Proving, at: Circumstances): Lease | Refusal {
  const lease = findLease(view, ref, command.actor);
  if (lease === undefined) return gone(view, ref);
  if (shows(command.proofs, lease)) return lease;
  if (awaitsAdoption(lease, command.actor)) return adopt(lease, command.actor, command.secretHash, at.now);
  // The caller names a key only: it may have held it once, or never.
  return refuse(
    "E_LOCK_NOT_HELD",
    `${printable(lease.key)} is held by ${nameOfHolder(lease)}, not by this caller`,
    {
      hint: sameParty(lease, command.actor)
        ? "its secret is not here; 'acquire' it again from the same agent, session and worktree"
        : "only its holder can do that; 'cotenant status' shows who holds what",
      data: { holders: [leaseSummary(lease)] },
    },
  );
}

function shows(proofs: readonly string[], lease: Lease): boolean {
  return lease.secretHash !== null && proofs.includes(lease.secretHash);
}

function findLease(view: View, ref: LeaseRef, actor: Actor): Lease | undefined {
  const named: Lease[] = [];
  for (const lease of view.leases.values()) {
    if (ref.leaseId !== null ? lease.leaseId === ref.leaseId : lease.key === ref.key) named.push(lease);
  }
  // A key may have one lease per worktree: the caller's own first.
  return (
    named.find((l) => isOwn(l, actor)) ?? named.find((l) => l.worktreeId === actor.worktreeId) ?? named[0]
  );
}

/** PROTOCOL and SPEC §3: what the former holder of a lease that is no more is told. */
function gone(view: View, ref: LeaseRef): Refusal {
  const ending = ref.leaseId === null ? undefined : view.endings.get(ref.leaseId);
  if (ending === undefined) {
    return refuse(
      "E_NOT_FOUND",
      `no lease ${ref.leaseId === null ? `on ${printable(ref.key ?? "")}` : ref.leaseId}`,
      {
        data: { lease_id: ref.leaseId, key: ref.key },
      },
    );
  }
  if (ending.how === "transferred") return mismatch(ending.key, ending.leaseId, "it was handed over");
  if (ending.successor !== null) return mismatch(ending.key, ending.leaseId, "it was taken over");
  if (ending.how === "expired" || ending.how === "stop_idle") return expired(ending.key, ending.leaseId);
  return mismatch(
    ending.key,
    ending.leaseId,
    ending.how === "forced" ? "it was evicted" : "its process has died",
  );
}

function expired(key: Lease["key"], leaseId: LeaseId): Refusal {
  return refuse("E_LOCK_EXPIRED", `the lease on ${printable(key)} has expired`, {
    data: { lease_id: leaseId, key },
  });
}

function mismatch(key: Lease["key"], leaseId: LeaseId, why: string): Refusal {
  return refuse("E_FENCING_MISMATCH", `the lease on ${printable(key)} is no longer yours: ${why}`, {
    data: { lease_id: leaseId, key },
  });
}

// --- words ----------------------------------------------------------------------------------------------

export function leaseSummary(lease: Lease): Record<string, unknown> {
  return {
    lease_id: lease.leaseId,
    key: lease.key,
    agent_id: lease.agentId,
    worktree_id: lease.worktreeId,
    expires_at: lease.expiresAt === null ? null : new Date(lease.expiresAt.wallMs).toISOString(),
    reason: lease.reason,
  };
}

function nameOfHolder(lease: Lease): string {
  return `${lease.agentId} (${lease.worktreeId})`;
}

function describeExpiry(lease: Lease, now: Now): string {
  if (lease.bind === "process") return "until its process ends";
  if (lease.expiresAt === null) return "without expiry";
  return `until ${new Date(lease.expiresAt.wallMs).toISOString()} (${Math.max(0, Math.ceil(remainingMs(lease.expiresAt, now) / 1000))} s left)`;
}
