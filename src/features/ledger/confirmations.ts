import type { Coordinator } from "../../coordinator/contract";
import { isCount, timeMsOf } from "../../kernel/bounds";
import { type Fact, type FactName, factId, factName } from "../../kernel/facts";
import { type Ulid, ulidIn } from "../../kernel/ids";
import { nameOf } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";

/**
 * What this clone's log knows of its claims at the remote. A claim is a local lease like any other; it counts between
 * machines only while this says so. Without a word here it is provisional: whoever dies between the local grant and the
 * push leaves nothing that anybody could take for more.
 */
export interface Confirmation {
  readonly issueId: Ulid;
  readonly leaseId: Ulid;
  readonly token: number;
  /** The claim's commit at the remote. */
  readonly oid: string;
  readonly pushedAtMs: number;
  /** As others read it. From then on it is provisional again. */
  readonly expiresAtMs: number | null;
  /** Which clone it is: a copy of the whole repository must not think that it holds this. */
  readonly cloneId: Ulid;
  readonly state:
    | "confirmed"
    /** Pushed without an answer (PROTOCOL 27): the next contact adopts it, or takes it back. */
    | "unsettled"
    /** Given back here; the remote has not heard of it. */
    | "withdraw";
}

const LEDGER_KIND = "ledger";

export function confirmationName(issueId: Ulid): FactName {
  return factName(LEDGER_KIND, issueId.toLowerCase());
}

export function confirmationToFact(c: Confirmation): Fact {
  return {
    lease_id: c.leaseId,
    fencing_token: c.token,
    oid: c.oid,
    pushed_at: new Date(c.pushedAtMs).toISOString(),
    expires_at: c.expiresAtMs === null ? null : new Date(c.expiresAtMs).toISOString(),
    clone_id: c.cloneId,
    state: c.state,
  };
}

function confirmationFrom(name: FactName, fact: Fact): Confirmation | null {
  const [issueId, leaseId, cloneId] = [factId(name), fact["lease_id"], fact["clone_id"]].map(ulidIn);
  const { fencing_token: token, oid, pushed_at: pushedAt, expires_at: expiresAt, state } = fact;
  if (issueId == null || leaseId == null || cloneId == null) return null;
  if (!isCount(token) || typeof oid !== "string" || !/^[0-9a-f]{40,64}$/.test(oid)) return null;
  return {
    issueId,
    leaseId,
    cloneId,
    token,
    oid,
    pushedAtMs: timeMsOf(pushedAt) ?? 0,
    // One that cannot be understood has run out.
    expiresAtMs: expiresAt === null ? null : (timeMsOf(expiresAt) ?? 0),
    state: state === "unsettled" || state === "withdraw" ? state : "confirmed",
  };
}

export async function readConfirmations(
  coordinator: Pick<Coordinator, "facts">,
  ids: readonly Ulid[] | "all",
): Promise<Map<Ulid, Confirmation>> {
  const facts = await coordinator.facts(
    ids === "all" ? { kinds: [LEDGER_KIND] } : { names: ids.map(confirmationName) },
  );
  const found = new Map<Ulid, Confirmation>();
  for (const [name, { value }] of facts) {
    const confirmation = confirmationFrom(name, value);
    if (confirmation !== null) found.set(confirmation.issueId, confirmation);
  }
  return found;
}

/** The one question that everything asks that needs a claim to count beyond this clone. */
export function isConfirmed(
  lease: Pick<Lease, "leaseId" | "key">,
  confirmation: Confirmation | undefined,
  cloneId: Ulid | null,
  nowMs: number,
): confirmation is Confirmation {
  return (
    confirmation?.state === "confirmed" &&
    confirmation.leaseId === lease.leaseId &&
    confirmation.cloneId === cloneId &&
    (confirmation.expiresAtMs === null || nowMs < confirmation.expiresAtMs)
  );
}

/** Whether others may still see it as held. */
export function isSeenByOthers({ expiresAtMs }: Confirmation, nowMs: number): boolean {
  return expiresAtMs === null || nowMs < expiresAtMs;
}

/** What has ended here while others may still see it as held, for `standing`, the valid leases: the next contact gives it back. */
export function giveBacks(
  known: ReadonlyMap<Ulid, Confirmation>,
  standing: readonly Pick<Lease, "key">[],
  nowMs: number,
): Confirmation[] {
  const held = new Set(standing.map(issueOfLease));
  return [...known.values()].filter((claim) => !held.has(claim.issueId) && isSeenByOthers(claim, nowMs));
}

export function issueOfLease({ key }: Pick<Lease, "key">): Ulid | null {
  return key.startsWith("issue:") ? ulidIn(nameOf(key)) : null;
}
