import type { LedgerSay } from "../../coordinator/contract";
import { CotenantError } from "../../errors/cotenant-error";
import type { Actor } from "../../kernel/commands";
import type { Ulid } from "../../kernel/ids";
import { recordAt } from "./claim-attempt";
import { type Confirmation, isConfirmed } from "./confirmations";
import { DamagedCopy } from "./copy";
import type { Claim, Ledger } from "./ledger";
import { noteOffline } from "./offline-claims";
import type { ClaimEnd, ClaimRecord } from "./record";
import { idsOf } from "./record";
import { type ClaimUpdate, isUnreachable, type PushOutcome, type RemoteClaims, updateTo } from "./remote";
import { backoffMs, isBeatDue, judge, tombstone } from "./rules";
import { lost, whyLost } from "./words";

/** What a change of leases here came to at the remote. */
export const NOT_ASKED: LedgerSay = {
  claimedBy: null,
  retries: 0,
  isOffline: false,
  isDegraded: false,
  warnings: [],
};

type Sent = ClaimUpdate & { readonly oid: string };

/** Pushes until each is done or can be seen not to be: a remote that says no is looked at, and asked again. */
async function pushThrough(
  ledger: Ledger,
  actor: Actor,
  first: readonly ClaimUpdate[],
  again: (update: ClaimUpdate, look: RemoteClaims) => ClaimUpdate | null,
  /** What was pushed without an answer is added here, whatever comes of it. */
  unclear: Sent[] = [],
): Promise<{ done: Sent[]; given: ClaimUpdate[]; retries: number }> {
  const { retries: most } = ledger.parts;
  const done: Sent[] = [];
  const given: ClaimUpdate[] = [];
  let todo = [...first];
  for (let retries = 0; ; retries++) {
    const outcomes: readonly PushOutcome[] = await ledger.push(actor, todo, false);
    const open: ClaimUpdate[] = [];
    for (const [i, update] of todo.entries()) {
      const outcome = outcomes[i]!;
      if (outcome.kind === "done") done.push({ ...update, oid: outcome.oid });
      else open.push(update);
      if (outcome.kind === "unclear") unclear.push({ ...update, oid: outcome.oid });
    }
    if (open.length === 0 || retries >= most) return { done, given: [...given, ...open], retries };
    await ledger.pause(backoffMs(retries, ledger.chance()));
    const look = await ledger.look(actor, idsOf(open));
    todo = [];
    for (const update of open) {
      const landed = unclear.find(
        ({ issueId, oid }) => issueId === update.issueId && look.claims.get(issueId)?.oid === oid,
      );
      const next = landed === undefined ? again(update, look) : null;
      if (landed !== undefined) done.push(landed);
      else if (next === null) given.push(update);
      else todo.push(next);
    }
  }
}

/**
 * After a renewal or a sign of life: others hear of it, but at most every third of the time for which they would wait. In
 * between, with `isAsked`, the remote is asked whether the claim still stands: what was lost is never confirmed. Throws when
 * somebody else has the claim; the lease here has ended then.
 */
export async function followUp(
  ledger: Ledger,
  actor: Actor,
  claims: readonly Claim[],
  isAsked = false,
): Promise<LedgerSay> {
  const { rules } = ledger.parts;
  const now = ledger.nowMs;
  const cloneId = await ledger.cloneId(actor);
  const known = await ledger.confirmations(idsOf(claims));
  const due = claims.filter(({ issueId, lease }) => {
    const confirmation = known.get(issueId);
    return (
      !isConfirmed(lease, confirmation, cloneId, now) ||
      isBeatDue(confirmation, lease.expiresAt?.wallMs ?? null, now, rules)
    );
  });
  const others = isAsked ? claims.filter((claim) => !due.includes(claim)) : [];
  const said = others.length === 0 ? NOT_ASKED : await ask(ledger, actor, others);
  return due.length === 0 || said.isOffline ? said : tell(ledger, actor, due, known);
}

/** Whether these still stand at the remote. */
async function ask(ledger: Ledger, actor: Actor, claims: readonly Claim[]): Promise<LedgerSay> {
  try {
    const look = await ledger.look(actor, idsOf(claims));
    const gone = await endTaken(ledger, actor, claims, look);
    if (gone !== null) throw gone;
    return { ...NOT_ASKED, claimedBy: claims[0]?.lease.agentId ?? null };
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    const warnings = [
      `not asked at the ledger: ${(error as CotenantError).message}; it is done here, and others know the claim as it was last pushed`,
    ];
    return { ...NOT_ASKED, isOffline: true, isDegraded: true, warnings };
  } finally {
    await ledger.parts.remote.settle();
  }
}

/** Pushes these leases as they stand here. */
export async function tell(
  ledger: Ledger,
  actor: Actor,
  claims: readonly Claim[],
  known: ReadonlyMap<Ulid, Confirmation>,
): Promise<LedgerSay> {
  const { remote } = ledger.parts;
  const pushedAtMs = ledger.nowMs;
  const unclear: Sent[] = [];
  // Of a claim that was confirmed, what is known is still true; of another, that it may be there must not be forgotten.
  const rememberUnclear = (done: readonly Sent[]) =>
    ledger.remember(
      actor,
      "unsettled",
      unclear.filter(
        ({ issueId }) => !known.has(issueId) && !done.some((update) => update.issueId === issueId),
      ),
    );
  try {
    const strangers = claims.filter(({ issueId }) => !known.has(issueId));
    const look = strangers.length === 0 ? null : await ledger.look(actor, idsOf(strangers));
    const updates = await Promise.all(
      claims.map(async (claim): Promise<ClaimUpdate> => {
        const record = await ledger.record(claim, actor);
        const expected = known.get(claim.issueId)?.oid ?? look?.claims.get(claim.issueId)?.oid ?? null;
        return updateTo(record, expected);
      }),
    );
    const foreign = updates.filter(
      ({ issueId, record }) =>
        look !== null && !mayFollow(ledger, recordAt(look.claims.get(issueId)), record),
    );
    const own = updates.filter((update) => !foreign.includes(update));
    const goOn = (update: ClaimUpdate, seen: RemoteClaims) => {
      const ref = seen.claims.get(update.issueId);
      return mayFollow(ledger, recordAt(ref), update.record)
        ? { ...update, expected: ref?.oid ?? null }
        : null;
    };
    const { done, given, retries } = await pushThrough(ledger, actor, own, goOn, unclear);
    await rememberUnclear(done);
    await ledger.confirm(
      actor,
      done.map(({ record, oid }) => ({ record, oid, pushedAtMs })),
    );
    await refuseLost(ledger, actor, claims, [...foreign, ...given]);
    await remote.settle();
    return { ...NOT_ASKED, claimedBy: claims[0]?.lease.agentId ?? null, retries };
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    await rememberUnclear([]);
    // Other clones of this machine read there until when it is held. One that has it by now keeps it.
    const provisional = claims.filter(({ issueId }) => !known.has(issueId));
    if (provisional.length > 0) await noteOffline(ledger, provisional).catch(() => {});
    const warnings = [
      `not pushed to the ledger: ${(error as CotenantError).message}; it is done here, and follows with the next contact`,
    ];
    return { ...NOT_ASKED, isOffline: true, isDegraded: true, warnings };
  }
}

/** This clone's own claim goes on; so does one that is anybody's to take, and whose token ours is above. */
export function mayFollow(ledger: Ledger, there: ClaimRecord | null, record: ClaimRecord): boolean {
  if (there === null) return true;
  const { kind } = judge(there, record.cloneId, ledger.nowMs, ledger.parts.rules);
  if (kind === "held") return false;
  return there.leaseId === record.leaseId ? there.isHeld : record.token > there.token;
}

async function refuseLost(
  ledger: Ledger,
  actor: Actor,
  claims: readonly Claim[],
  given: readonly ClaimUpdate[],
): Promise<void> {
  const [first] = given;
  if (first === undefined) return;
  const look = await ledger.look(actor, idsOf(given));
  const ids = new Set(idsOf(given));
  const gone = await endTaken(
    ledger,
    actor,
    claims.filter(({ issueId }) => ids.has(issueId)),
    look,
  );
  await ledger.parts.remote.settle();
  if (gone !== null) throw gone;
  throw new CotenantError(
    "E_RETRIES_EXHAUSTED",
    `the claim on issue ${first.issueId} is renewed here, and the remote rejected it`,
    {
      data: { issue_ids: idsOf(given).slice(0, 20) },
    },
  );
}

/** Ends here what somebody else has at the remote, or has ended there; answers what its holder is to be told. */
async function endTaken(
  ledger: Ledger,
  actor: Actor,
  claims: readonly Claim[],
  look: RemoteClaims,
): Promise<CotenantError | null> {
  let first: CotenantError | null = null;
  for (const claim of claims) {
    const there = recordAt(look.claims.get(claim.issueId));
    if (mayFollow(ledger, there, await ledger.record(claim, actor))) continue;
    const gone = lost(claim.issueId, there);
    await ledger.forget(actor, [{ issueId: claim.issueId, leaseId: claim.lease.leaseId }]);
    await ledger.overrule(actor, [claim.lease], whyLost(there));
    first ??= gone;
  }
  return first;
}

/**
 * Gives claims back at the remote, after they were given back here. What cannot be told now is remembered, and told with
 * the next contact; others wait for the expiry at the longest.
 */
export async function withdraw(
  ledger: Ledger,
  actor: Actor,
  leases: readonly { readonly issueId: Ulid; readonly leaseId: Ulid }[],
  how: ClaimEnd = "released",
): Promise<LedgerSay & { readonly ended: readonly Ulid[] }> {
  const known = await ledger.confirmations(idsOf(leases));
  const there = leases.filter(({ issueId, leaseId }) => known.get(issueId)?.leaseId === leaseId);
  // Other clones of this machine are not to take for held what has ended here, whatever the remote has heard.
  await ledger.parts.book.strike(
    leases.map(({ leaseId }) => leaseId),
    false,
  );
  if (there.length === 0) return { ...NOT_ASKED, ended: [] };
  const marks = await ledger.parts.known(idsOf(there));
  const ended = { how, by: actor.agentId, atMs: ledger.nowMs };
  try {
    const look = await ledger.look(actor, idsOf(there));
    const records = there.map(({ issueId }) => recordAt(look.claims.get(issueId)));
    const written = await ledger.writtenUnder(records.filter((record) => record !== null));
    const updateFor = (issueId: Ulid, leaseId: Ulid, seen: RemoteClaims): ClaimUpdate | null => {
      const ref = seen.claims.get(issueId);
      const record = recordAt(ref);
      if (ref === undefined || record === null || !record.isHeld || record.leaseId !== leaseId) return null;
      const over = tombstone(record, ended, marks.get(issueId)?.mark ?? null, {
        written: written.get(issueId) ?? [],
      });
      return updateTo(over, ref.oid);
    };
    const first = there
      .map(({ issueId, leaseId }) => updateFor(issueId, leaseId, look))
      .filter((update) => update !== null);
    const { done, given, retries } = await pushThrough(ledger, actor, first, ({ issueId, record }, seen) =>
      updateFor(issueId, record.leaseId, seen),
    );
    // Of those that were given up, nothing of ours is there any more, or it was rejected too often: then it stays to be told.
    const after = given.length === 0 ? null : await ledger.look(actor, idsOf(given));
    const stuck = given.filter(({ issueId, record }) => updateFor(issueId, record.leaseId, after!) !== null);
    await ledger.forget(
      actor,
      there.filter(({ issueId }) => !stuck.some((update) => update.issueId === issueId)),
    );
    await ledger.remember(
      actor,
      "withdraw",
      stuck.map(({ issueId, record }) => ({ record, oid: known.get(issueId)!.oid })),
    );
    await ledger.parts.remote.settle();
    const warnings =
      stuck.length === 0
        ? []
        : ["the remote rejected it: others see the claim until it expires, or until the next sync"];
    return { ...NOT_ASKED, retries, warnings, ended: idsOf(done) };
  } catch (error) {
    // Here it is given back, whatever is wrong on the way to the remote.
    if (!isUnreachable(error) && !(error instanceof DamagedCopy)) throw error;
    await rememberWithdrawal(ledger, actor, there, known);
    return {
      ...NOT_ASKED,
      ended: [],
      isOffline: true,
      isDegraded: true,
      warnings: [
        `given back here; others see the claim until it expires, or until the next contact (${(error as CotenantError).message})`,
      ],
    };
  }
}

async function rememberWithdrawal(
  ledger: Ledger,
  actor: Actor,
  leases: readonly { readonly issueId: Ulid; readonly leaseId: Ulid }[],
  known: ReadonlyMap<Ulid, Confirmation>,
): Promise<void> {
  await ledger.rememberAs(
    actor,
    leases.map(({ issueId }) => ({ ...known.get(issueId)!, state: "withdraw" as const })),
  );
}
