import { sharesClaims } from "../../config/shared-claims";
import type { Workspace } from "../../coordinator/workspace";
import { NOBODYS_ID, type Ulid } from "../../kernel/ids";
import type { Lease } from "../../kernel/lease";
import { recordAt } from "./claim-attempt";
import { readCloneId } from "./clone-id";
import { type Confirmation, isConfirmed, issueOfLease, readConfirmations } from "./confirmations";
import { openLedger } from "./open";
import type { ClaimRecord } from "./record";
import type { ClaimRef } from "./remote";
import { type ClaimRules, isOver, judge, rulesOf } from "./rules";

/** What is known of claims without asking anybody: this clone's own, and what was last heard of others. */
export interface ClaimsView {
  /** Claims of other clones and machines that stood when they were last heard of. */
  readonly others: ReadonlyMap<Ulid, ClaimRecord>;
  /** Issues that whoever held them last has finished or deleted, as far as it was heard. */
  readonly over: ReadonlyMap<Ulid, ClaimRecord>;
  /** When this machine last read all claims; null where it never has. */
  readonly asOf: string | null;
  /** Whether the ledger has confirmed a lease; null for what it has nothing to do with. */
  standing(lease: Pick<Lease, "leaseId" | "key">): "confirmed" | "provisional" | null;
}

/** Null where there is no ledger. Writes nothing. */
export async function claimsView(workspace: Workspace): Promise<ClaimsView | null> {
  const { config, coordinator, repository, surroundings } = workspace;
  if (!sharesClaims(config)) return null;
  const { platform } = surroundings;
  const cloneId = await readCloneId(platform, coordinator, repository.controlDir);
  const known = await readConfirmations(coordinator, "all");
  const nowMs = platform.clock.wallMs();
  const { seen, asOf } = await lastSeen(workspace);
  const heard = heardOf(seen, cloneId, nowMs, rulesOf(config.values));
  return { ...heard, asOf, standing: (lease) => standingOf(lease, known, cloneId, nowMs) };
}

/** What claims that were seen at the remote say of other clones. */
export function heardOf(
  seen: ReadonlyMap<Ulid, ClaimRef>,
  cloneId: Ulid | null,
  nowMs: number,
  rules: ClaimRules,
): Pick<ClaimsView, "others" | "over"> {
  const others = new Map<Ulid, ClaimRecord>();
  const over = new Map<Ulid, ClaimRecord>();
  for (const [id, ref] of seen) {
    const record = recordAt(ref);
    if (record === null || record.cloneId === cloneId) continue;
    if (judge(record, cloneId ?? NOBODYS_ID, nowMs, rules).kind === "held") others.set(id, record);
    else if (!record.isHeld && isOver(record.issue)) over.set(id, record);
  }
  return { others, over };
}

/** A ledger that cannot be read is no reason why a look at claims fails. */
async function lastSeen(
  workspace: Workspace,
): Promise<{ seen: ReadonlyMap<Ulid, ClaimRef>; asOf: string | null }> {
  try {
    const { remote, state } = await openLedger(workspace);
    const seen = await remote.seen("all");
    return { seen, asOf: (await state.read()).state.lastPullAt };
  } catch {
    return { seen: new Map(), asOf: null };
  }
}

function standingOf(
  lease: Pick<Lease, "leaseId" | "key">,
  known: ReadonlyMap<Ulid, Confirmation>,
  cloneId: Ulid | null,
  nowMs: number,
): "confirmed" | "provisional" | null {
  const issueId = issueOfLease(lease);
  if (issueId === null) return null;
  return isConfirmed(lease, known.get(issueId), cloneId, nowMs) ? "confirmed" : "provisional";
}
