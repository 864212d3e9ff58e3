import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { Actor } from "../../kernel/commands";
import type { Ulid } from "../../kernel/ids";
import type { Lease } from "../../kernel/lease";
import { claimsOf } from "./claim-attempt";
import { type Confirmation, isSeenByOthers, readConfirmations } from "./confirmations";
import { withdraw } from "./follow-up";
import { isLedgerOn, openLedger } from "./open";
import { idsOf } from "./record";
import { iso } from "./words";

/** What this clone still has at the remote: nobody else can give it back once the clone has forgotten. */
async function claimsThere({ coordinator, surroundings }: Workspace): Promise<Confirmation[]> {
  const nowMs = surroundings.platform.clock.wallMs();
  const known = await readConfirmations(coordinator, "all");
  return [...known.values()].filter((claim) => isSeenByOthers(claim, nowMs));
}

interface Leaving {
  /** Claims of whoever takes the control plane away. */
  readonly claims: readonly { readonly issueId: Ulid; readonly leaseId: Ulid }[];
  /** What of this clone's is at the remote. */
  readonly there: readonly Confirmation[];
}

/**
 * For a clone whose control plane goes, with `own`, the leases of whoever takes it away: gives their claims back on the
 * ledger, and tells the remote what it has not heard yet. While it cannot be asked, what is held is refused to be forgotten;
 * what was given back here already is only told. Answers what was given back: what never was there is not.
 */
export async function leaveLedger(
  workspace: Workspace,
  actorOf: () => Promise<Actor>,
  own: readonly Lease[],
): Promise<readonly Ulid[]> {
  return leaving(workspace, own, async ({ claims, there }) => {
    const actor = await actorOf();
    const { ledger } = await openLedger(workspace);
    // First whether it can be asked at all: who is refused keeps everything.
    if (there.length > 0) await ledger.look(actor, idsOf(there));
    const others = there.filter(({ leaseId }) => !claims.some((claim) => claim.leaseId === leaseId));
    const { warnings } = await withdraw(ledger, actor, [...claims, ...others]);
    workspace.warnings.push(...warnings);
  });
}

/** What `leaveLedger` would give back, or refuse: the remote is asked, and told nothing. */
export async function previewLeaving(workspace: Workspace, own: readonly Lease[]): Promise<readonly Ulid[]> {
  return leaving(workspace, own, async ({ there }) => {
    const { ledger } = await openLedger(workspace);
    if (there.length > 0) await ledger.parts.remote.look(idsOf(there));
  });
}

async function leaving(
  workspace: Workspace,
  own: readonly Lease[],
  act: (leaving: Leaving) => Promise<void>,
): Promise<readonly Ulid[]> {
  if (!isLedgerOn(workspace)) return [];
  const claims = claimsOf({ leases: own }).map(({ issueId, lease: { leaseId } }) => ({ issueId, leaseId }));
  const there = await claimsThere(workspace);
  if (claims.length + there.length === 0) return [];
  const isHeld = ({ leaseId }: Confirmation) => claims.some((claim) => claim.leaseId === leaseId);
  try {
    await act({ claims, there });
    // A provisional claim never was there.
    return idsOf(there.filter(isHeld));
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    const held = there.filter(isHeld);
    if (held.length > 0) throw notGivenBack(held, error);
    if (there.length > 0) workspace.warnings.push(`${seenByOthers(there)} (${error.message})`);
    return [];
  }
}

function seenByOthers(claims: readonly Confirmation[]): string {
  const until = claims.map(
    ({ issueId, expiresAtMs }) =>
      `${issueId} ${expiresAtMs === null ? "without end" : `until ${iso(expiresAtMs)}`}`,
  );
  return `others see as claimed: issue ${until.slice(0, 5).join(", ")}`;
}

function notGivenBack(claims: readonly Confirmation[], cause: CotenantError): CotenantError {
  const release = claims.map(({ issueId }) => `cotenant claim release ${issueId}`);
  return new CotenantError(
    cause.code,
    `the claims of this clone cannot be given back: ${cause.message}; ${seenByOthers(claims)}`,
    {
      hint: `run it again when the ledger can be used; or end them here only, so that others wait until then: ${release.slice(0, 5).join("; ")}`,
      data: { issue_ids: idsOf(claims).slice(0, 20) },
      cause,
    },
  );
}
