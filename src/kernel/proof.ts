import { type Circumstances, standingOf } from "./circumstances";
import type { Actor, LeaseRef } from "./commands";
import { type LeaseId, printable } from "./ids";
import type { LeaseKey } from "./keys";
import { awaitsAdoption, belongsTo, type EndCause, type Lease, sameParty } from "./lease";
import { isRefusal, type Refusal, refuse } from "./refusal";
import { adopt } from "./renewal";
import type { View } from "./view";
import {
  expired,
  handedOver,
  isOtherSession,
  isOwnElsewhere,
  leaseSummary,
  mismatch,
  nameOfHolder,
  ownElsewhereHint,
  sessionWord,
  takenAway,
  takingCommand,
} from "./words";

/** A caller and the secrets it can show. */
export interface Caller {
  readonly actor: Actor;
  readonly proofs: readonly string[];
}

export interface Proving extends Caller {
  /** Becomes the secret of a lease that the call adopts. */
  readonly secretHash: string;
}

export function shows(caller: Caller, lease: Lease): boolean {
  return lease.secretHash !== null && caller.proofs.includes(lease.secretHash);
}

/** The leases that some refs may mean, found in one pass however many refs and leases there are. */
export class NamedLeases {
  readonly #byId = new Map<LeaseId, Lease>();
  readonly #byKey = new Map<LeaseKey, Lease[]>();

  constructor(view: View, refs: readonly LeaseRef[]) {
    const ids = new Set(refs.map((ref) => ref.leaseId));
    const keys = new Set(refs.map((ref) => ref.key));
    for (const lease of view.leases.values()) {
      if (ids.has(lease.leaseId)) this.#byId.set(lease.leaseId, lease);
      if (!keys.has(lease.key)) continue;
      const same = this.#byKey.get(lease.key);
      if (same === undefined) this.#byKey.set(lease.key, [lease]);
      else same.push(lease);
    }
  }

  /** An id means one lease, a key all that stand on it: one per worktree and one for the repository. */
  of(ref: LeaseRef): readonly Lease[] {
    if (ref.leaseId === null) return ref.key === null ? [] : (this.#byKey.get(ref.key) ?? []);
    const lease = this.#byId.get(ref.leaseId);
    return lease === undefined || (ref.key !== null && ref.key !== lease.key) ? [] : [lease];
  }
}

/** Which of the leases on a key its holder means: what the caller can prove, then what is nearest to it. */
export function meantByHolder(
  candidates: readonly Lease[],
  caller: Caller,
  at: Circumstances,
): Lease | undefined {
  return nearest(candidates, at, (lease) => {
    if (shows(caller, lease)) return 0;
    if (belongsTo(lease, caller.actor)) return 1;
    return lease.worktreeId === caller.actor.worktreeId ? 2 : 3;
  });
}

/** The lowest by `distance`; then the valid, the far-reaching, the newest: the order of the view never decides. */
export function nearest(
  candidates: readonly Lease[],
  at: Circumstances,
  distance: (lease: Lease) => number,
): Lease | undefined {
  if (candidates.length < 2) return candidates[0];
  const ranked = candidates.map((lease) => ({
    lease,
    rank: [
      distance(lease),
      standingOf(lease, at) === "valid" ? 0 : 1,
      lease.reach === "repository" ? 0 : 1,
      -lease.fencingToken,
    ],
  }));
  ranked.sort((a, b) => a.rank.map((r, i) => r - b.rank[i]!).find((difference) => difference !== 0) ?? 0);
  return ranked[0]!.lease;
}

/** The lease a holder names, as its own; adopted if it was handed to the caller. Not asked for validity. */
export function proven(
  view: View,
  named: NamedLeases,
  ref: LeaseRef,
  caller: Proving,
  at: Circumstances,
): Lease | Refusal {
  const lease = meantByHolder(named.of(ref), caller, at);
  if (lease === undefined) return gone(view, ref);
  if (shows(caller, lease)) return lease;
  if (awaitsAdoption(lease, caller.actor)) return adopt(lease, caller.actor, caller.secretHash, at);
  const state = standingOf(lease, at);
  const { says, hint } =
    state === "valid" ? notProven(lease, caller) : heldByNobody(lease, state, caller.actor);
  return refuse("E_LOCK_NOT_HELD", `${printable(lease.key)} ${says}`, {
    hint,
    data: { holders: [leaseSummary(lease)] },
  });
}

/** The end of a lease that has lapsed may not be logged yet: it is in nobody's way all the same. */
function heldByNobody(
  lease: Lease,
  state: EndCause,
  actor: Actor,
): { readonly says: string; readonly hint: string } {
  const whose = sameParty(lease, actor) ? "your lease" : `the lease of ${nameOfHolder(lease, actor)}`;
  const how = state === "dead" ? "ended with its process" : "has expired";
  const taking = takingCommand(lease.key);
  return {
    says: `is held by nobody: ${whose} ${how}`,
    hint: taking === null ? "acquire it: nobody is in the way" : `to have it: ${taking}`,
  };
}

/** Without an id the caller may have held it once, or never: it is told who holds it now. */
function notProven(
  lease: Lease,
  { actor, proofs }: Caller,
): { readonly says: string; readonly hint: string } {
  if (isOwnElsewhere(lease, actor))
    return {
      says: `is held by you from ${lease.worktreeId}, not from this worktree`,
      hint: ownElsewhereHint(lease),
    };
  if (!sameParty(lease, actor))
    return {
      says: `is held by ${nameOfHolder(lease, actor)}, not by this caller`,
      hint: isOtherSession(lease, actor)
        ? `only its holder can do that: if that session is yours, name it with --session ${sessionWord(lease)}`
        : "only its holder can do that; 'cotenant status' shows who holds what",
    };
  const again = "'acquire' it again from the same agent, session and worktree";
  return proofs.length === 0
    ? { says: "is held by you, and its secret is not here", hint: again }
    : {
        says: "is held by you, but no secret that was shown is its own",
        hint: `show the secret of this lease, or none: the session keeps its own; if it is lost, ${again}`,
      };
}

export function provenAndValid(
  view: View,
  named: NamedLeases,
  ref: LeaseRef,
  caller: Proving,
  at: Circumstances,
): Lease | Refusal {
  const lease = proven(view, named, ref, caller, at);
  if (isRefusal(lease)) return lease;
  const state = standingOf(lease, at);
  if (state === "valid") return lease;
  return state === "dead" ? mismatch(lease.key, lease.leaseId, "dead") : expired(lease.key, lease.leaseId);
}

/** What is said of a lease that is no more, by how it ended. */
export function gone(view: Pick<View, "endings">, ref: LeaseRef): Refusal {
  const ending = ref.leaseId === null ? undefined : view.endings.get(ref.leaseId);
  if (ending === undefined || (ref.key !== null && ref.key !== ending.key)) {
    const what = ref.leaseId === null ? `on ${printable(ref.key ?? "")}` : ref.leaseId;
    return refuse("E_NOT_FOUND", `no lease ${what}`, { data: { lease_id: ref.leaseId, key: ref.key } });
  }
  const { key, leaseId, how } = ending;
  if (how === "transferred") {
    const why = ending.why ?? (ending.toAgent === undefined ? null : `handed to ${ending.toAgent}`);
    // Lines of older versions do not say to whom.
    return why === null ? mismatch(key, leaseId, "handed_over") : handedOver(key, leaseId, why);
  }
  if (how === "forced" && ending.why !== undefined) return takenAway(key, leaseId, ending.why);
  if (ending.successor !== null) return mismatch(key, leaseId, "taken_over");
  if (how === "expired" || how === "stop_idle") return expired(key, leaseId);
  return mismatch(key, leaseId, how === "forced" ? "evicted" : "dead");
}
