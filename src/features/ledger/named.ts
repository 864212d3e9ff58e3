import type { AcquireRequest, Coordinator, Grant } from "../../coordinator/contract";
import { ForwardingCoordinator } from "../../coordinator/forwarding";
import type { CotenantError } from "../../errors/cotenant-error";
import { issuesIn } from "./claim-attempt";
import { NOT_ASKED } from "./follow-up";

/**
 * In front of the local engine where a ledger is named and nobody of this clone has trusted it yet. Others share their claims
 * there, so one that does not ask must not pass for a claim: it is refused, or provisional for whoever wants just that.
 */
export class NamedLedger extends ForwardingCoordinator {
  readonly #refusal: () => CotenantError;

  constructor(local: Coordinator, refusal: () => CotenantError) {
    super(local);
    this.#refusal = refusal;
  }

  override async acquire(request: AcquireRequest): Promise<Grant> {
    if (issuesIn(request.keys).length === 0) return this.behind.acquire(request);
    if (request.isOffline !== true) throw this.#refusal();
    const grant = await this.behind.acquire(request);
    const warnings = [`the claim is provisional: ${this.#refusal().message}`];
    const claimedBy = request.actor.agentId;
    return { ...grant, ledger: { ...NOT_ASKED, claimedBy, isOffline: true, warnings } };
  }
}
