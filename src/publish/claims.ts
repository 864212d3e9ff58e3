import type { ClaimFence } from "../coordinator/fence";
import type { Session } from "../coordinator/session";
import type { Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import type { Ulid } from "../kernel/ids";
import { type Lease, sameParty } from "../kernel/lease";

/** Opened only where a publish is made under claims at all. Null: they are shared with nobody. */
export type OpenFence = () => Promise<ClaimFence | null>;

const isClaim = ({ key }: Pick<Lease, "key">) => key.startsWith("issue:");

/**
 * The claims that a publish is made under, where claims are shared between machines: those that cover what it changes, and
 * every other that its session holds. Files are leased here only; who works on the issue is what other machines know.
 */
export class ClaimsUnder {
  readonly #workspace: Workspace;
  readonly #session: Session;
  readonly #open: OpenFence;
  #fence: Promise<ClaimFence | null> | null = null;

  constructor(workspace: Workspace, session: Session, open: OpenFence) {
    this.#workspace = workspace;
    this.#session = session;
    this.#open = open;
  }

  /** SPEC §13: refuses those that only this clone knows of, before anything is written. */
  async confirmed(covering: readonly Lease[]): Promise<readonly Lease[]> {
    if (!this.#isShared) return [];
    const claims = await this.#held(covering.filter(isClaim));
    if (claims.length > 0) await (await this.#theFence())?.requireConfirmed(claims);
    return claims;
  }

  /** Whether a push to this remote can be fenced, before there is anything to push. */
  async refuseUnfenced(claims: readonly Lease[], remote: string): Promise<void> {
    if (claims.length > 0) await (await this.#theFence())?.requireFenced(remote);
  }

  /** What has to be pushed along; null where nothing has to. */
  async fence(claims: readonly Lease[], remote: string) {
    return claims.length === 0 ? null : ((await (await this.#theFence())?.fence(claims, remote)) ?? null);
  }

  /** Of a publish that was done earlier: the claims that it was made under must still stand. */
  async again(leaseIds: readonly Ulid[]): Promise<readonly Lease[]> {
    if (!this.#isShared) return [];
    const refs = leaseIds.map((leaseId) => ({ key: null, leaseId }));
    const found = refs.length === 0 ? [] : await this.#workspace.coordinator.find(refs);
    const standing = found.filter(({ standing: how }) => how === "valid").map(({ lease }) => lease);
    const gone = leaseIds.find((id) => !standing.some(({ leaseId }) => leaseId === id));
    if (gone !== undefined)
      throw new CotenantError("E_FENCING_MISMATCH", `it was published under claim ${gone}, which has ended`, {
        data: { lease_id: gone },
      });
    return this.#held(standing);
  }

  get #isShared(): boolean {
    return this.#workspace.config.values["sync.ledger_branch"] !== null;
  }

  #theFence(): Promise<ClaimFence | null> {
    this.#fence ??= this.#open();
    return this.#fence;
  }

  async #held(known: readonly Lease[]): Promise<Lease[]> {
    const all = new Map(known.map((lease) => [lease.leaseId, lease]));
    for (const { lease, standing } of await this.#workspace.coordinator.list({ kinds: ["issue"] }))
      if (standing === "valid" && sameParty(lease, this.#session.actor)) all.set(lease.leaseId, lease);
    return [...all.values()];
  }
}
