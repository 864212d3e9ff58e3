import type { CotenantError } from "../../errors/cotenant-error";
import type { Actor } from "../../kernel/commands";
import type { Ulid } from "../../kernel/ids";
import { recordAt } from "./claim-attempt";
import { isConfirmed, issueOfLease } from "./confirmations";
import { mayFollow, withdraw } from "./follow-up";
import type { Claim, Ledger } from "./ledger";
import { type ClaimRecord, idsOf, unreadableClaim } from "./record";
import { isUnreachable, type RemoteClaims, updateTo } from "./remote";
import { backoffMs, lapse, tombstone } from "./rules";
import { whoHadIt, whoHasIt } from "./words";

export interface Conflict {
  readonly issueId: Ulid;
  /** Whose claim it was here. */
  readonly agentId: string;
  /** Who has it, or had it meanwhile; null where that cannot be told. */
  readonly record: ClaimRecord | null;
  readonly why: string;
}

export interface Reconciled {
  readonly confirmed: readonly Claim[];
  readonly conflicts: readonly Conflict[];
  /** Claims of this clone that were still at the remote, and are not any more. */
  readonly withdrawn: readonly Ulid[];
  /** Neither: rejected as often as it was tried. */
  readonly pending: readonly Claim[];
}

/** How many are settled in one exchange. */
const BATCH = 100;

export interface ReconcileOptions {
  /** In passing: at most so many, and none that its own process may still be telling of. Null: all. */
  readonly most: number | null;
  /** All claims at the remote, for whoever has just looked: also confirmed ones are held against it then. */
  readonly look?: RemoteClaims;
  readonly onProgress?: (done: number, all: number) => void;
}

/**
 * Makes the remote and this clone agree: provisional claims are confirmed, or end here because somebody else was first;
 * what was given back here is given back there.
 */
export async function reconcile(
  ledger: Ledger,
  actor: Actor,
  options: ReconcileOptions,
): Promise<Reconciled> {
  const { open, leftovers } = await findOpen(ledger, actor, options.look ?? null, options.most !== null);
  const work =
    options.most === null ? open : (await withoutThoseOnTheirWay(ledger, open)).slice(0, options.most);
  const all = work.length + leftovers.length;
  const total: Reconciled[] = [];
  for (let at = 0; at < work.length; at += BATCH) {
    options.onProgress?.(at, all);
    const tries = options.most === null ? ledger.parts.retries : 0;
    total.push(await confirmAll(ledger, actor, work.slice(at, at + BATCH), tries));
  }
  const withdrawn: Ulid[] = [];
  for (let at = 0; at < leftovers.length; at += BATCH) {
    options.onProgress?.(work.length + at, all);
    const some = leftovers.slice(at, at + BATCH);
    const { ended } = await withdraw(ledger, actor, some, "withdrawn");
    withdrawn.push(...ended);
  }
  if (all > 0) options.onProgress?.(all, all);
  return {
    confirmed: total.flatMap(({ confirmed }) => confirmed),
    conflicts: total.flatMap(({ conflicts }) => conflicts),
    pending: total.flatMap(({ pending }) => pending),
    withdrawn,
  };
}

/** What this clone and the remote may disagree about, as far as this clone knows. */
async function findOpen(
  ledger: Ledger,
  actor: Actor,
  look: RemoteClaims | null,
  isInPassing: boolean,
): Promise<{ open: Claim[]; leftovers: { issueId: Ulid; leaseId: Ulid }[] }> {
  const { local, book, controlDir } = ledger.parts;
  const cloneId = await ledger.cloneId(actor);
  const known = await ledger.confirmations("all");
  const standing = new Map<Ulid, Claim>();
  for (const { lease } of await local.list({ kinds: ["issue"] })) {
    const issueId = issueOfLease(lease);
    if (issueId !== null) standing.set(issueId, { issueId, lease });
  }
  // In the order in which they were taken: so they are told, and so those that waited longest come first.
  const open = [...standing.values()]
    .filter(
      ({ issueId, lease }) =>
        !isConfirmed(lease, known.get(issueId), cloneId, ledger.nowMs) ||
        isContradicted(look, issueId, lease.leaseId),
    )
    .sort((a, b) => a.lease.fencingToken - b.lease.fencingToken);
  const leftovers = [...known.values()]
    .filter(({ issueId }) => !standing.has(issueId))
    // Whoever has given one back here may just be telling the remote: in passing, only what is known to be left.
    .filter(({ state }) => !isInPassing || state !== "confirmed")
    .map(({ issueId, leaseId }) => ({ issueId, leaseId }));
  // Of this clone, written down, and ended since: there is nothing left to confirm.
  const stale = (await book.list()).filter(
    ({ clone, leaseId, issueId }) => clone === controlDir && standing.get(issueId)?.lease.leaseId !== leaseId,
  );
  if (stale.length > 0)
    await book.strike(
      stale.map(({ leaseId }) => leaseId),
      false,
    );
  return { open, leftovers };
}

/** Longer than a claim takes from its grant here to its answer from the remote. */
const ON_ITS_WAY_MS = 120_000;

async function withoutThoseOnTheirWay(ledger: Ledger, claims: readonly Claim[]): Promise<Claim[]> {
  if (claims.length === 0) return [];
  const noted = new Set((await ledger.parts.book.list()).map(({ leaseId }) => leaseId));
  return claims.filter(
    ({ lease }) => noted.has(lease.leaseId) || ledger.nowMs - lease.acquiredAt.wallMs > ON_ITS_WAY_MS,
  );
}

/** Evicted there, taken over, or lost with a ledger that was taken anew: confirmed as it was, it is not any more. */
function isContradicted(look: RemoteClaims | null, issueId: Ulid, leaseId: Ulid): boolean {
  if (look === null) return false;
  const record = recordAt(look.claims.get(issueId));
  return record === null ? !look.claims.has(issueId) : !(record.isHeld && record.leaseId === leaseId);
}

/** What the remote rejects is looked at, and asked again. */
async function confirmAll(
  ledger: Ledger,
  actor: Actor,
  claims: readonly Claim[],
  tries: number,
): Promise<Reconciled> {
  const confirmed: Claim[] = [];
  const conflicts: Conflict[] = [];
  for (let left = claims, retries = 0; ; retries++) {
    const some = await confirmSome(ledger, actor, left);
    confirmed.push(...some.confirmed);
    conflicts.push(...some.conflicts);
    left = some.pending;
    if (left.length === 0 || retries >= tries) return { confirmed, conflicts, pending: left, withdrawn: [] };
    await ledger.pause(backoffMs(retries, ledger.chance()));
  }
}

async function confirmSome(ledger: Ledger, actor: Actor, claims: readonly Claim[]): Promise<Reconciled> {
  const { remote, known } = ledger.parts;
  const look = await ledger.look(actor, idsOf(claims));
  const issues = await known(idsOf(claims));
  const conflicts: Conflict[] = [];
  const todo: { claim: Claim; record: ClaimRecord; expected: string | null }[] = [];
  const there: { record: ClaimRecord; oid: string; pushedAtMs: number }[] = [];
  const confirmed: Claim[] = [];
  for (const claim of claims) {
    const conflict = await conflictOf(ledger, actor, claim, look);
    if (conflict !== null) conflicts.push(conflict);
    else if (issues.get(claim.issueId)?.mark?.isDeleted === true)
      conflicts.push({
        issueId: claim.issueId,
        agentId: claim.lease.agentId,
        record: null,
        why: "the issue was deleted",
      });
    else {
      const ref = look.claims.get(claim.issueId);
      const record = await ledger.record(claim, actor);
      const same = recordAt(ref);
      const isThere =
        same?.isHeld && same.leaseId === record.leaseId && same.expiresAtMs === record.expiresAtMs;
      if (isThere) {
        there.push({ record, oid: ref!.oid, pushedAtMs: ledger.nowMs });
        confirmed.push(claim);
      } else todo.push({ claim, record, expected: ref?.oid ?? null });
    }
  }
  const pushedAtMs = ledger.nowMs;
  const outcomes =
    todo.length === 0
      ? []
      : await ledger.push(
          actor,
          todo.map(({ record, expected }) => updateTo(record, expected)),
          false,
        );
  const pending: Claim[] = [];
  const unclear: { record: ClaimRecord; oid: string }[] = [];
  for (const [i, { claim, record }] of todo.entries()) {
    const outcome = outcomes[i]!;
    if (outcome.kind === "unclear") unclear.push({ record, oid: outcome.oid });
    if (outcome.kind !== "done") pending.push(claim);
    else {
      there.push({ record, oid: outcome.oid, pushedAtMs });
      confirmed.push(claim);
    }
  }
  await ledger.confirm(actor, there);
  // Whoever gives it back before the next contact has to know that it may be there.
  await ledger.remember(actor, "unsettled", unclear);
  await endConflicts(ledger, actor, claims, conflicts);
  await remote.settle();
  return { confirmed, conflicts, pending, withdrawn: [] };
}

async function conflictOf(
  ledger: Ledger,
  actor: Actor,
  claim: Claim,
  look: RemoteClaims,
): Promise<Conflict | null> {
  const { issueId, lease } = claim;
  const reading = look.claims.get(issueId)?.reading;
  const about = { issueId, agentId: lease.agentId };
  if (reading === undefined) return null;
  if (!("record" in reading))
    return { ...about, record: null, why: unreadableClaim(issueId, reading).message };
  const { record } = reading;
  if (mayFollow(ledger, record, await ledger.record(claim, actor))) return null;
  // Its own end is nobody else's claim.
  if (record.leaseId === lease.leaseId && !record.isHeld)
    return { ...about, record: null, why: whoHasIt(record) };
  return { ...about, record, why: record.isHeld ? whoHasIt(record) : whoHadIt(record, lease) };
}

/** The lease here ends: whoever worked under it hears so at the next write, and can claim it again. */
async function endConflicts(
  ledger: Ledger,
  actor: Actor,
  claims: readonly Claim[],
  conflicts: readonly Conflict[],
): Promise<void> {
  for (const { issueId, why } of conflicts) {
    const { lease } = claims.find((claim) => claim.issueId === issueId)!;
    await ledger.write(actor, "sync.conflict", [issueId], new Map(), {
      lease_id: lease.leaseId,
      agent_id: lease.agentId,
      why,
    });
    await ledger.forget(actor, [{ issueId, leaseId: lease.leaseId }]);
    await ledger.overrule(actor, [lease], `the ledger did not confirm it: ${why}`);
  }
}

export interface Released {
  readonly issueId: Ulid;
  /** Who held it. */
  readonly agentId: string;
}

/**
 * Claims without expiry of whoever has not been heard of for `sync.claim_timeout_hours` are released, by a commit that
 * names the old owner. Two machines may do so at once: one of them is second, and sees it done.
 */
export async function releaseStale(ledger: Ledger, actor: Actor, look: RemoteClaims): Promise<Released[]> {
  const { rules } = ledger.parts;
  const now = ledger.nowMs;
  const cloneId = await ledger.cloneId(actor);
  const stale = [...look.claims.values()].flatMap((ref) => {
    const record = recordAt(ref);
    const isStale = record?.isHeld && record.cloneId !== cloneId && lapse(record, now, rules) === "stale";
    if (!isStale) return [];
    const over = tombstone(record, { how: "stale", by: actor.agentId, atMs: now }, null);
    return [updateTo(over, ref.oid)];
  });
  if (stale.length === 0) return [];
  const outcomes = await ledger.push(actor, stale, false);
  const released = stale.filter((_, i) => outcomes[i]!.kind === "done");
  if (released.length > 0)
    await ledger.write(actor, "sync.released", idsOf(released), new Map(), {
      claims: released.map(({ issueId, record }) => ({
        issue_id: issueId,
        lease_id: record.leaseId,
        agent_id: record.agentId,
      })),
    });
  return released.map(({ issueId, record }) => ({ issueId, agentId: record.agentId }));
}

/**
 * Claims at the remote that this clone's store knows nothing of any more: pushed by a process that was killed, or whose
 * lease ran out. They are given back.
 */
export async function withdrawOrphans(ledger: Ledger, actor: Actor, look: RemoteClaims): Promise<Ulid[]> {
  const { local } = ledger.parts;
  const cloneId = await ledger.cloneId(actor);
  const ours = [...look.claims].flatMap(([issueId, ref]) => {
    const record = recordAt(ref);
    return record?.isHeld && record.cloneId === cloneId ? [{ issueId, ref, record }] : [];
  });
  if (ours.length === 0) return [];
  const standing = new Set((await local.list({ kinds: ["issue"] })).map(({ lease }) => issueOfLease(lease)));
  const orphans = ours.filter(({ issueId }) => !standing.has(issueId));
  if (orphans.length === 0) return [];
  const marks = await ledger.parts.known(idsOf(orphans));
  const ended = { how: "withdrawn", by: actor.agentId, atMs: ledger.nowMs } as const;
  const contents = await ledger.writtenUnder(orphans.map(({ record }) => record));
  const updates = orphans.map(({ issueId, ref, record }) => {
    const written = contents.get(issueId) ?? [];
    return updateTo(tombstone(record, ended, marks.get(issueId)?.mark ?? null, { written }), ref.oid);
  });
  const outcomes = await ledger.push(actor, updates, false);
  const done = updates.filter((_, i) => outcomes[i]!.kind === "done");
  await ledger.forget(
    actor,
    done.map(({ issueId, record }) => ({ issueId, leaseId: record.leaseId })),
  );
  return idsOf(done);
}

/** For whoever has just reached the remote for another reason: what is left open is settled on the way, if it is little. */
export async function reconcileInPassing(ledger: Ledger, actor: Actor): Promise<string[]> {
  try {
    const { confirmed, conflicts } = await reconcile(ledger, actor, { most: IN_PASSING });
    return [
      ...(confirmed.length === 0
        ? []
        : [
            confirmed.length === 1
              ? "1 provisional claim was confirmed"
              : `${confirmed.length} provisional claims were confirmed`,
          ]),
      ...conflicts.map(
        ({ issueId, agentId, why }) =>
          `the provisional claim of ${agentId} on issue ${issueId} is no more: ${why}`,
      ),
    ];
  } catch (error) {
    // It was not what was asked for.
    return isUnreachable(error)
      ? []
      : [`provisional claims could not be settled: ${(error as CotenantError).message}`];
  }
}

const IN_PASSING = 20;
