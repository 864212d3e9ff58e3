import type {
  AcquireRequest,
  Change,
  Coordinator,
  EvictRequest,
  Grant,
  HeldRequest,
  HolderRequest,
  ReleaseRequest,
  RenewRequest,
  StopRequest,
  TransferRequest,
} from "../../coordinator/contract";
import type { CotenantError } from "../../errors/cotenant-error";
import type { Lease } from "../../kernel/lease";
import { issuesIn } from "./claim-attempt";
import { LedgerCoordinator } from "./engine";
import { NOT_ASKED } from "./follow-up";

/**
 * In front of the local engine where a ledger is named and nobody of this clone has trusted it yet. Others share their claims
 * there, so one that does not ask must not pass for a claim: it is refused, or provisional for whoever wants just that.
 */
export class NamedLedger extends LedgerCoordinator {
  readonly #here: Coordinator;
  readonly #refusal: () => CotenantError;

  constructor(local: Coordinator, refusal: () => CotenantError) {
    super(local, async () => {
      throw refusal();
    });
    this.#here = local;
    this.#refusal = refusal;
  }

  override async acquire(request: AcquireRequest): Promise<Grant> {
    if (issuesIn(request.keys).length === 0) return this.#here.acquire(request);
    if (request.isOffline !== true) throw this.#refusal();
    const grant = await this.#here.acquire(request);
    const warnings = [`the claim is provisional: ${this.#refusal().message}`];
    const claimedBy = request.actor.agentId;
    return { ...grant, ledger: { ...NOT_ASKED, claimedBy, isOffline: true, warnings } };
  }

  override held(request: HeldRequest): Promise<readonly Lease[] | null> {
    return this.#here.held(request);
  }

  override renew(request: RenewRequest): Promise<Change> {
    return this.#here.renew(request);
  }

  override heartbeat(request: HolderRequest): Promise<Change> {
    return this.#here.heartbeat(request);
  }

  override release(request: ReleaseRequest): Promise<Change> {
    return this.#here.release(request);
  }

  override transfer(request: TransferRequest): Promise<Change> {
    return this.#here.transfer(request);
  }

  override evict(request: EvictRequest): Promise<Change> {
    return this.#here.evict(request);
  }

  override upkeep(request: StopRequest): Promise<Change> {
    return this.#here.upkeep(request);
  }
}
