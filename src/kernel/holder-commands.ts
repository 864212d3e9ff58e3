import { type Circumstances, type Decision, standingOf } from "./circumstances";
import type { Heartbeat, LeaseRef, Prove, Release, Renew, Stop, Upkeep } from "./commands";
import { type LeaseId, printable } from "./ids";
import { kindOf } from "./keys";
import { awaitsAdoption, endedRecord, type Lease, slotOf } from "./lease";
import { checkCount, checkText, checkTtl, isGiven, LIMITS } from "./policy";
import { type Caller, meantByHolder, NamedLeases, proven, provenAndValid, shows } from "./proof";
import { isRefusal, type Refusal, refuse } from "./refusal";
import { adopt, endOfLifetime, upkeep } from "./renewal";
import { instantOf, later, remainingMs } from "./time";
import { isStale, timeLeftMs } from "./validity";
import type { ClaimEventType, View } from "./view";
import { needsReason } from "./words";

export function decideRenew(view: View, command: Renew, at: Circumstances): Decision | Refusal {
  if (command.overrideMax && !isGiven(command.reason)) return needsReason("--override-max");
  const unfit = checkText(command.reason, "reason") ?? checkCount(command.leases.length, "leases");
  if (unfit !== null) return unfit;
  const named = new NamedLeases(view, command.leases);
  const renewed = eachOnce(command.leases, (ref) => {
    const lease = provenAndValid(view, named, ref, command, at);
    return isRefusal(lease) ? lease : renew(lease, command, at);
  });
  return isRefusal(renewed) ? renewed : changed("claim.renewed", renewed, command.reason);
}

function renew(lease: Lease, command: Renew, at: Circumstances): Lease | Refusal {
  const ttlSecs = command.ttlSecs ?? lease.ttlSecs;
  const unfit = checkTtl(ttlSecs, lease.agentId, at.policy);
  if (unfit !== null) return unfit;
  const now = instantOf(at.now);
  // Whoever renews a lease by name counts on it from now on. To others a TTL-bound lease does not depend on a process.
  const holder = lease.bind === "ttl" ? command.actor.holder : lease.holder;
  const beaten = { ...lease, holder, renewedAt: now, lastBeat: now, stopIdleAt: null };
  // max(old, now + ttl): a lease that never expires goes on never expiring.
  if (lease.expiresAt === null) return beaten;
  if (ttlSecs === 0) {
    return refuse("E_USAGE", "a lease with an expiry cannot be renewed into one without", {
      hint: "release it and acquire it with --ttl 0 --reason <why>",
    });
  }
  const lifetimeLeftMs = remainingMs(endOfLifetime(lease), at.now);
  if (ttlSecs * 1000 > lifetimeLeftMs && !command.overrideMax) return tooLong(lease, lifetimeLeftMs);
  const forMs = Math.max(ttlSecs * 1000, timeLeftMs(lease, at.now));
  return { ...beaten, ttlSecs, expiresAt: later(now, forMs) };
}

function tooLong(lease: Lease, lifetimeLeftMs: number): Refusal {
  const left = Math.max(0, Math.floor(lifetimeLeftMs / 1000));
  return refuse(
    "E_LIMIT",
    `${printable(lease.key)} may be held for ${lease.maxTotalSecs} s in all; ${left} s of that are left`,
    {
      hint:
        left > 0
          ? `renew with --ttl ${left} or less, or with --override-max --reason <why>`
          : "release it, or renew with --override-max --reason <why>",
      data: {
        lease_id: lease.leaseId,
        max_total_secs: lease.maxTotalSecs,
        left_secs: left,
        setting: "coordination.max_total_secs",
      },
    },
  );
}

export function decideHeartbeat(view: View, command: Heartbeat, at: Circumstances): Decision | Refusal {
  const unfit = checkCount(command.leases.length, "leases");
  if (unfit !== null) return unfit;
  const named = new NamedLeases(view, command.leases);
  const beaten = eachOnce(command.leases, (ref) => {
    const lease = notStale(provenAndValid(view, named, ref, command, at), at);
    return isRefusal(lease) ? lease : { ...lease, lastBeat: instantOf(at.now) };
  });
  return isRefusal(beaten) ? beaten : changed("claim.heartbeat", beaten);
}

export function decideRelease(view: View, command: Release, at: Circumstances): Decision | Refusal {
  const unfit = checkText(command.reason, "reason") ?? checkCount(command.leases.length, "leases");
  if (unfit !== null) return unfit;
  const named = new NamedLeases(view, command.leases);
  // Not asked for validity: giving back what expired but was not taken is fine.
  const released = eachOnce(command.leases, (ref) => proven(view, named, ref, command, at));
  if (isRefusal(released)) return released;
  if (released.length === 0) return { event: null, leases: [] };
  const ended = released.map((lease) => endedRecord(lease, "released"));
  return {
    event: { type: "claim.released", leases: [], ended, reason: command.reason },
    leases: released,
  };
}

/** Valid now, and not stale. Only a lease that is adopted by it leaves a trace. */
export function decideProve(view: View, command: Prove, at: Circumstances): Decision | Refusal {
  const unfit = checkCount(command.leases.length, "leases");
  if (unfit !== null) return unfit;
  const named = new NamedLeases(view, command.leases);
  const held = eachOnce(command.leases, (ref) => notStale(provenAndValid(view, named, ref, command, at), at));
  if (isRefusal(held)) return held;
  const adopted = held.filter((lease) => view.leases.get(slotOf(lease)) !== lease);
  return { ...changed("claim.renewed", adopted), leases: held };
}

/** Nothing but a renewal ends staleness, neither a beat nor a second try. */
function notStale(lease: Lease | Refusal, at: Circumstances): Lease | Refusal {
  if (isRefusal(lease) || !isStale(lease, at.now, at.policy)) return lease;
  const { staleThresholdSecs } = at.policy;
  return refuse(
    "E_LOCK_EXPIRED",
    `${printable(lease.key)} has no expiry and showed no sign of life for more than ${staleThresholdSecs} s: it is stale until it is renewed, and nothing may be written under it`,
    {
      hint: `'cotenant ${kindOf(lease.key) === "issue" ? "claim" : "lock"} renew ${lease.leaseId}', if it is still wanted`,
      data: { lease_id: lease.leaseId, key: lease.key, setting: "coordination.stale_threshold_secs" },
    },
  );
}

export function decideStop(view: View, command: Stop, at: Circumstances): Decision | Refusal {
  const unfit = checkCount(command.leases.length, "leases");
  if (unfit !== null) return unfit;
  const stopped = ownAndValid(view, command, at)
    .filter((lease) => shows(command, lease) && lease.stopIdleAt === null)
    .map((lease) => ({ ...lease, stopIdleAt: instantOf(at.now) }));
  return changed("claim.stopped", stopped);
}

export function decideUpkeep(view: View, command: Upkeep, at: Circumstances): Decision {
  const kept: Lease[] = [];
  for (const lease of ownAndValid(view, command, at)) {
    const own = shows(command, lease)
      ? lease
      : command.secretHash === undefined
        ? null
        : adopt(lease, command.actor, command.secretHash, at);
    if (own === null) continue;
    const after = upkeep(own, command.actor, at) ?? own;
    if (after !== lease) kept.push(after);
    // The rest is due again with the next sign of life.
    if (kept.length === LIMITS.keysPerOperation) break;
  }
  return changed("claim.renewed", kept);
}

/** Those of the named leases that are valid and either proved by the caller or handed to it; others are passed over. */
function ownAndValid(
  view: View,
  command: Caller & { readonly leases: readonly LeaseRef[] },
  at: Circumstances,
): Lease[] {
  const named = new NamedLeases(view, command.leases);
  const own = new Map<LeaseId, Lease>();
  for (const ref of command.leases) {
    const lease = meantByHolder(named.of(ref), command, at);
    if (lease === undefined || standingOf(lease, at) !== "valid") continue;
    if (shows(command, lease) || awaitsAdoption(lease, command.actor)) own.set(lease.leaseId, lease);
  }
  return [...own.values()];
}

/** All or nothing; a lease that is named twice counts once. */
function eachOnce(refs: readonly LeaseRef[], settle: (ref: LeaseRef) => Lease | Refusal): Lease[] | Refusal {
  const settled = new Map<LeaseId, Lease>();
  for (const ref of refs) {
    const lease = settle(ref);
    if (isRefusal(lease)) return lease;
    settled.set(lease.leaseId, lease);
  }
  return [...settled.values()];
}

function changed(type: ClaimEventType, leases: readonly Lease[], reason: string | null = null): Decision {
  return { event: leases.length === 0 ? null : { type, leases, ended: [], reason }, leases };
}
