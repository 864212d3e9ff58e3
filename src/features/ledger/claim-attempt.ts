import type { AcquireRequest, Grant, LedgerSay } from "../../coordinator/contract";
import { CotenantError, errorFrom } from "../../errors/cotenant-error";
import { isWithinReach } from "../../kernel/bounds";
import type { LeaseId, Ulid } from "../../kernel/ids";
import { issueKeyOf, type LeaseKey } from "../../kernel/keys";
import { isGiven, mayEvict, needsOthers } from "../../kernel/policy";
import { needsApproval, needsReason, notAllowedToEvict } from "../../kernel/words";
import { issueOfLease } from "./confirmations";
import type { Claim, Ledger } from "./ledger";
import { claimedByOtherClone, noteOffline } from "./offline-claims";
import { type ClaimRecord, unreadableClaim } from "./record";
import {
  type ClaimRef,
  isUnreachable,
  type MadeUpdate,
  type PushOutcome,
  type RemoteClaims,
  tokenOf,
  updateTo,
} from "./remote";
import { backoffMs, freeAtMs, isBeatDue, isOver, judge } from "./rules";
import {
  exhausted,
  finishedElsewhere,
  heldElsewhere,
  heldWhenLastSeen,
  hidden,
  isHidden,
  outOfReach,
  subjectIn,
} from "./words";

/** How often somebody who waits looks again; each time is an exchange with the remote. */
const LOOK_AGAIN_MS = 3_000;

/** What reached the remote, or may have. */
interface Sent {
  readonly record: ClaimRecord;
  readonly oid: string;
}

/**
 * One acquire of claims: look, decide, grant here, push. The grant here comes first, because what is in the log can be
 * found again after a crash; it counts for nothing between machines until the push is confirmed.
 */
export class Claiming {
  readonly #ids: readonly Ulid[];
  #grant: Grant | null = null;
  #retries = 0;
  /** Pushed, or being pushed, and no answer yet. */
  #unclear: readonly Sent[] = [];
  #taking: Promise<Grant> | null = null;
  #isGivenUp = false;
  /** How many grants of this call came to nothing. */
  #ended = 0;

  constructor(
    private readonly ledger: Ledger,
    private readonly request: AcquireRequest,
  ) {
    this.#ids = issuesIn(request.keys);
  }

  async run(): Promise<Grant> {
    const { interrupted } = this.request;
    const over = new AbortController();
    try {
      if (interrupted === undefined) return await this.#run();
      return await Promise.race([this.#run(), this.#whenInterrupted(interrupted, over.signal)]);
    } catch (error) {
      // Whoever is refused holds nothing, wherever it was refused.
      await this.#undo(error instanceof Error ? error.message : "the ledger could not be used");
      throw error;
    } finally {
      // An interrupt that comes later means something else: what was granted stays granted.
      over.abort();
      // Also what only led to a refusal was heard.
      await this.ledger.parts.remote.settle();
    }
  }

  #whenInterrupted(signal: AbortSignal, over: AbortSignal): Promise<never> {
    return new Promise((_, reject) => {
      const giveUp = () => void this.#giveUp().then(reject, reject);
      if (signal.aborted) giveUp();
      else signal.addEventListener("abort", giveUp, { once: true, signal: over });
    });
  }

  /** What was granted here ends; what is on its way to the remote is remembered, and the next contact takes it back. */
  async #giveUp(): Promise<CotenantError> {
    this.#isGivenUp = true;
    await this.#taking?.catch(() => {});
    const mayBeThere = this.#unclear.length > 0;
    await this.#undo("interrupted");
    const what = this.#ids.length === 1 ? `issue ${this.#ids[0]}` : `${this.#ids.length} issues`;
    const rest = mayBeThere ? "; if it has reached the remote, the next contact takes it back" : "";
    return new CotenantError("E_RETRIES_EXHAUSTED", `interrupted: the claim on ${what} was given up${rest}`, {
      hint: "'cotenant sync' settles it now",
      data: { issue_ids: this.#ids.slice(0, 20) },
    });
  }

  #refuseGivenUp(): void {
    if (this.#isGivenUp) throw new CotenantError("E_RETRIES_EXHAUSTED", "interrupted");
  }

  async #run(): Promise<Grant> {
    const { isPushedAtOnce, platform } = this.ledger.parts;
    const startedMs = platform.clock.monotonicMs();
    await this.#waitForOtherClones(startedMs);
    if (this.request.isOffline === true || !isPushedAtOnce) return this.#offline(null);
    const tried = await this.#tryFromMemory();
    if (tried !== null) return tried;
    for (;;) {
      let look: RemoteClaims;
      try {
        look = await this.ledger.look(this.request.actor, this.#ids);
      } catch (error) {
        return this.#withoutRemote(error);
      }
      const obstacle = await this.#obstacle(look);
      if (obstacle !== null) {
        await this.#undo(obstacle.message, obstacle.code === "E_LOCK_CONFLICT");
        await this.#waitFor(obstacle, look, startedMs);
        continue;
      }
      const why = await this.#attempt(look);
      if (typeof why !== "string") return why;
      if (isHidden(why)) throw hidden(this.#ids, why);
      if (++this.#retries > this.ledger.parts.retries) throw exhausted(this.#ids, this.#retries - 1, why);
      await this.ledger.pause(backoffMs(this.#retries - 1, this.ledger.chance()));
    }
  }

  /**
   * What was last heard may do: if all of it was free then, the push itself shows whether it still is, in one exchange
   * instead of two. Null when the remote has to be looked at.
   */
  async #tryFromMemory(): Promise<Grant | null> {
    const { remote, local } = this.ledger.parts;
    const memory = this.request.steal ? null : await remote.recall(this.#ids);
    const here = await local.highestToken();
    const isFree =
      memory !== null &&
      [...memory.claims.values()].every(
        (ref) => isGivenBack(recordAt(ref)) && isWithinReach(tokenOf(ref), here),
      );
    if (!isFree) return null;
    const why = await this.#attempt(memory);
    return typeof why === "string" ? null : why;
  }

  /** The grant, once the remote has it; else why it has not. */
  async #attempt(look: RemoteClaims): Promise<Grant | string> {
    try {
      const why = await this.#push(await this.#take(look), look);
      return why ?? this.#say({ isOffline: false, isDegraded: false, warnings: [] });
    } catch (error) {
      return this.#withoutRemote(error);
    }
  }

  async #withoutRemote(error: unknown): Promise<Grant> {
    if (isUnreachable(error)) return this.#offline(error as CotenantError);
    throw error;
  }

  // --- deciding -------------------------------------------------------------------------------------------

  async #obstacle(look: RemoteClaims): Promise<CotenantError | null> {
    const { parts } = this.ledger;
    const cloneId = await this.ledger.cloneId(this.request.actor);
    for (const id of this.#ids) {
      const reading = look.claims.get(id)?.reading;
      if (reading === undefined) continue;
      if (!("record" in reading)) return unreadableClaim(id, reading);
      const { record } = reading;
      const verdict = judge(record, cloneId, this.ledger.nowMs, parts.rules);
      if (verdict.kind === "held") {
        const refused = this.request.steal ? this.#maySteal(record) : heldElsewhere(record, parts.rules);
        if (refused !== null) return refused;
      }
      if (verdict.kind === "free" && isOver(record.issue)) {
        const here = (await parts.known([id])).get(id)?.mark?.version ?? 0;
        if (record.issue!.version > here) return finishedElsewhere(id, record);
      }
    }
    return null;
  }

  /** What another clone of this machine has claimed offline is its own, whether the remote can be asked or not. */
  async #waitForOtherClones(startedMs: number): Promise<void> {
    const nothingSeen: RemoteClaims = { claims: new Map(), highestToken: 0 };
    for (;;) {
      const other = await claimedByOtherClone(this.ledger, this.#ids);
      if (other === null) return;
      // Nobody can agree to it: no ledger knows of it.
      const isAlone = this.ledger.parts.policy.approvers === 0;
      const refused = this.request.steal && isAlone ? this.#maySteal() : other;
      if (refused === null) return;
      await this.#waitFor(refused, nothingSeen, startedMs);
    }
  }

  #maySteal(record: ClaimRecord | null = null): CotenantError | null {
    const { actor, reason } = this.request;
    const { policy } = this.ledger.parts;
    if (!isGiven(reason)) return errorFrom(needsReason("ending somebody's live lease"));
    if (!mayEvict(actor.agentId, policy)) return errorFrom(notAllowedToEvict(actor.agentId, policy));
    return record !== null && needsOthers(record, actor, policy)
      ? errorFrom(needsApproval([subjectIn(record)], policy))
      : null;
  }

  /** For as long as the caller is willing to; what does not end by waiting is thrown at once. */
  async #waitFor(obstacle: CotenantError, look: RemoteClaims, startedMs: number): Promise<void> {
    const { wait } = this.request;
    if (wait === null || obstacle.code !== "E_LOCK_CONFLICT") throw obstacle;
    const { clock } = this.ledger.parts.platform;
    const leftMs = wait.timeoutMs - (clock.monotonicMs() - startedMs);
    if (leftMs <= 0 || wait.signal?.aborted === true)
      throw new CotenantError(
        "E_WAIT_TIMEOUT",
        `waited ${Math.round(wait.timeoutMs / 1000)} s: ${obstacle.message}`,
        {
          data: { ...obstacle.data },
        },
      );
    wait.onWait?.({ ahead: 0, message: obstacle.message });
    const freeMs = this.#ids.flatMap((id) => {
      const reading = look.claims.get(id)?.reading;
      const at =
        reading !== undefined && "record" in reading
          ? freeAtMs(reading.record, this.ledger.parts.rules)
          : null;
      return at === null || at <= this.ledger.nowMs ? [] : [at - this.ledger.nowMs + 1];
    });
    await this.ledger.pause(Math.min(leftMs, LOOK_AGAIN_MS, ...freeMs));
  }

  // --- granting here --------------------------------------------------------------------------------------

  /** The leases of this clone, each with a token above what the remote has of its issue (PROTOCOL 23). */
  async #take(look: RemoteClaims): Promise<Claim[]> {
    const grant = await this.#acquire(look.claims, look.highestToken);
    const claims = claimsOf(grant);
    const low = claims.filter(({ issueId, lease }) => {
      const ref = look.claims.get(issueId);
      return !isOf(ref, lease.leaseId) && lease.fencingToken <= tokenOf(ref);
    });
    if (low.length === 0) return claims;
    // Held from before others had it: a claim of now needs a token of now.
    await this.ledger.overrule(
      this.request.actor,
      low.map(({ lease }) => lease),
      "others have held it since: its token is too low",
    );
    this.#ended++;
    return claimsOf(await this.#acquire(look.claims, look.highestToken, true));
  }

  async #acquire(claims: ReadonlyMap<Ulid, ClaimRef>, highest: number, isAgain = false): Promise<Grant> {
    const { local } = this.ledger.parts;
    const requestId = isAgain ? null : this.request.requestId;
    const aboveToken = await this.#tokensSeen(claims, claims.size < this.#ids.length ? highest : 0);
    const elsewhere = await this.#takenOver(claims);
    this.#refuseGivenUp();
    const leaseIds = this.#freshIds();
    this.#taking = local.acquire({ ...this.request, leaseIds, requestId, aboveToken, elsewhere });
    const grant = await this.#taking;
    // Who retries finds its own lease; that it was given to us is news all the same.
    this.#grant =
      this.#grant === null
        ? grant
        : {
            ...grant,
            changed: grant.changed || this.#grant.changed,
            ended: [...this.#grant.ended, ...grant.ended],
          };
    return this.#grant;
  }

  /** Of a lease that ended, no other has the id: those who saw it would take the two for one. */
  #freshIds(): readonly LeaseId[] {
    const { keys, leaseIds } = this.request;
    const fresh = leaseIds.slice(this.#ended * keys.length);
    if (fresh.length < keys.length)
      throw exhausted(this.#ids, Math.max(0, this.#retries - 1), "others were faster each time");
    return fresh;
  }

  /** PROTOCOL 23: of the claims, of the issues' stamps, and of what is known of claims that are gone. */
  async #tokensSeen(claims: ReadonlyMap<Ulid, ClaimRef>, ofAll: number): Promise<number> {
    const { local, known } = this.ledger.parts;
    const here = await local.highestToken();
    const refs = [...claims].map(([id, ref]) => ({
      id,
      what: "the claim at the remote",
      token: tokenOf(ref),
    }));
    const stamps = [...(await known(this.#ids))].map(([id, { token }]) => ({ id, what: "the stamp", token }));
    const mad = [...refs, ...stamps].find(({ token }) => !isWithinReach(token, here));
    if (mad !== undefined) throw outOfReach(mad.id, mad.what, mad.token, here);
    const floor = await this.ledger.tokenFloor();
    // What the branch says of all claims together is no reason to refuse one of them.
    const others = [ofAll, floor, this.request.aboveToken ?? 0].filter((token) => isWithinReach(token, here));
    return Math.max(...refs.map(({ token }) => token), ...stamps.map(({ token }) => token), ...others, 0);
  }

  /** Whose claims on other machines a grant takes the place of. */
  async #takenOver(claims: ReadonlyMap<Ulid, ClaimRef>): Promise<NonNullable<AcquireRequest["elsewhere"]>> {
    const { rules } = this.ledger.parts;
    const cloneId = await this.ledger.cloneId(this.request.actor);
    return [...claims].flatMap(([id, ref]) => {
      const verdict = judge(recordAt(ref), cloneId, this.ledger.nowMs, rules);
      if (verdict.kind !== "held" && verdict.kind !== "lapsed") return [];
      const { leaseId, agentId } = verdict.record;
      return [{ key: issueKeyOf(id), leaseId, agentId, why: verdict.kind === "held" ? "forced" : "expired" }];
    });
  }

  /**
   * What was granted here for this call ends: nobody was told of it. `isLost`: also what was held from before, for
   * somebody else has it.
   */
  async #undo(reason: string, isLost = false): Promise<void> {
    if (this.#grant === null) return;
    const { actor, leaseIds } = this.request;
    const made = this.#grant.leases.filter((lease) => leaseIds.includes(lease.leaseId));
    const lost = this.#grant.leases.filter(
      (lease) => isLost && !made.includes(lease) && issueOfLease(lease) !== null,
    );
    this.#grant = null;
    if (made.length > 0) this.#ended++;
    await this.ledger.overrule(actor, made, reason, true);
    await this.ledger.overrule(actor, lost, reason);
    const given = new Set([...made, ...lost].map(({ leaseId }) => leaseId));
    const left = this.#unclear.filter(({ record }) => given.has(record.leaseId));
    await this.ledger.remember(actor, "withdraw", left);
  }

  // --- telling the remote ---------------------------------------------------------------------------------

  /** Null when the remote has them all; else why not. */
  async #push(claims: readonly Claim[], look: RemoteClaims): Promise<string | null> {
    const { rules } = this.ledger.parts;
    const { actor } = this.request;
    const pushedAtMs = this.ledger.nowMs;
    const known = await this.ledger.confirmations(this.#ids);
    const there: (Sent & { pushedAtMs: number })[] = [];
    const todo: { readonly record: ClaimRecord; readonly expected: string | null }[] = [];
    for (const claim of claims) {
      const ref = look.claims.get(claim.issueId);
      const record = await this.ledger.record(claim, actor);
      const confirmation = known.get(claim.issueId);
      const isSame = ref !== undefined && isOf(ref, claim.lease.leaseId);
      if (!isSame) todo.push({ record, expected: ref?.oid ?? null });
      else if (
        confirmation?.oid === ref.oid &&
        isBeatDue(confirmation, record.expiresAtMs, pushedAtMs, rules)
      )
        todo.push({ record, expected: ref.oid });
      else if (confirmation?.oid !== ref.oid || confirmation.state !== "confirmed")
        there.push({ record: recordAt(ref)!, oid: ref.oid, pushedAtMs });
    }
    const updates = todo.map(({ record, expected }) => updateTo(record, expected));
    const made = todo.length === 0 ? [] : await this.ledger.prepare(actor, updates);
    this.#refuseGivenUp();
    const before = this.#unclear;
    this.#unclear = [...before, ...made];
    const outcomes = made.length === 0 ? [] : await this.#sent(made, before);
    // Whoever has given up meanwhile has it on record that these are to be taken back.
    this.#refuseGivenUp();
    this.#unclear = [...before, ...made.filter((_, i) => outcomes[i]!.kind === "unclear")];
    const missing = outcomes.find(({ kind }) => kind !== "done");
    if (missing !== undefined && missing.kind !== "done") return missing.why;
    await this.ledger.confirm(actor, [
      ...there,
      ...made.map(({ record, oid }) => ({ record, oid, pushedAtMs })),
    ]);
    return null;
  }

  async #sent(made: readonly MadeUpdate[], before: readonly Sent[]): Promise<readonly PushOutcome[]> {
    try {
      return await this.ledger.parts.remote.push(made, made.length > 1);
    } catch (error) {
      // Nothing has left this machine.
      this.#unclear = before;
      throw error;
    }
  }

  // --- without the remote ---------------------------------------------------------------------------------

  /** `cause` null: the caller did not want it to be asked. */
  async #offline(cause: CotenantError | null): Promise<Grant> {
    const { offlineMode, remote, rules } = this.ledger.parts;
    const { actor } = this.request;
    if (cause !== null && offlineMode === "fail") throw cause;
    const seen = await remote.seen(this.#ids);
    const cloneId = await this.ledger.cloneId(actor);
    for (const id of this.#ids) {
      const record = recordAt(seen.get(id));
      if (record !== null && judge(record, cloneId, this.ledger.nowMs, rules).kind === "held")
        throw heldWhenLastSeen(record, cause);
    }
    const highest = [...seen.values()].map(tokenOf).reduce((a, b) => Math.max(a, b), 0);
    const claims = claimsOf(await this.#acquire(seen, highest));
    await noteOffline(this.ledger, claims);
    await this.ledger.remember(actor, "unsettled", this.#unclear);
    const reason = cause === null ? "the ledger was not asked" : cause.message;
    return this.#say({
      isOffline: true,
      isDegraded: cause !== null,
      warnings: [
        `the claim is provisional: ${reason}; 'cotenant sync --reconcile' confirms it, or says who has it`,
      ],
    });
  }

  #say(say: Omit<LedgerSay, "claimedBy" | "retries">): Grant {
    const claimedBy = this.request.actor.agentId;
    return { ...this.#grant!, ledger: { claimedBy, retries: this.#retries, ...say } };
  }
}

export function issuesIn(keys: readonly { readonly key: LeaseKey }[]): Ulid[] {
  return [...new Set(keys.map((wanted) => issueOfLease(wanted)).filter((id) => id !== null))];
}

export function claimsOf({ leases }: Pick<Grant, "leases">): Claim[] {
  return leases.flatMap((lease) => {
    const issueId = issueOfLease(lease);
    return issueId === null ? [] : [{ issueId, lease }];
  });
}

export function recordAt(ref: ClaimRef | undefined): ClaimRecord | null {
  return ref !== undefined && "record" in ref.reading ? ref.reading.record : null;
}

/** Free when it was last seen, and not because the issue is finished. */
function isGivenBack(record: ClaimRecord | null): boolean {
  return record !== null && !record.isHeld && !isOver(record.issue);
}

/** PROTOCOL 25: the same lease, never the same name. */
function isOf(ref: ClaimRef | undefined, leaseId: Ulid): boolean {
  const record = recordAt(ref);
  return record?.isHeld === true && record.leaseId === leaseId;
}
