import type {
  AcquireRequest,
  Change,
  Coordinator,
  EvictRequest,
  Grant,
  HeldRequest,
  HolderRequest,
  LedgerSay,
  ReleaseRequest,
  RenewRequest,
  StopRequest,
  TransferRequest,
} from "../../coordinator/contract";
import { ForwardingCoordinator } from "../../coordinator/forwarding";
import { CotenantError, errorFrom } from "../../errors/cotenant-error";
import type { Actor } from "../../kernel/commands";
import type { Ulid } from "../../kernel/ids";
import type { Lease } from "../../kernel/lease";
import { heldBy } from "../../kernel/words";
import { presentOn } from "../../platform/present";
import { Claiming, claimsOf, issuesIn, recordAt } from "./claim-attempt";
import { isConfirmed, issueOfLease } from "./confirmations";
import { evictClaims } from "./eviction";
import { followUp, NOT_ASKED, tell, withdraw } from "./follow-up";
import { isGone, type Ledger } from "./ledger";
import { reconcileInPassing } from "./reconcile";
import type { ClaimRecord } from "./record";
import { idsOf } from "./record";
import { isUnreachable } from "./remote";
import { isBeatDue } from "./rules";
import { onlyThere } from "./words";

/**
 * The local engine with the ledger in front of it: what concerns claims is agreed with the other machines, everything
 * else goes through as it is. Reads ask nobody.
 */
export class LedgerCoordinator extends ForwardingCoordinator {
  readonly #open: () => Promise<Ledger>;
  readonly #onContact: () => Promise<void>;
  readonly #warnings: () => readonly string[];
  #ledger: Promise<Ledger> | null = null;
  #inPassing: Promise<readonly string[]> | null = null;

  /**
   * `open` is called once, and only for what concerns claims; `onContact` when the ledger has confirmed one; `warnings` are
   * told to whoever is answered next.
   */
  constructor(
    local: Coordinator,
    open: () => Promise<Ledger>,
    onContact: () => Promise<void> = async () => {},
    warnings: () => readonly string[] = () => [],
  ) {
    super(local);
    this.#open = open;
    this.#onContact = onContact;
    this.#warnings = warnings;
  }

  ledger(): Promise<Ledger> {
    this.#ledger ??= this.#open();
    return this.#ledger;
  }

  override async acquire(request: AcquireRequest): Promise<Grant> {
    if (issuesIn(request.keys).length === 0) return this.behind.acquire(request);
    const ledger = await this.ledger();
    await this.#refuseHeldHere(ledger, request);
    const grant = await new Claiming(ledger, request).run();
    if (grant.ledger?.isOffline === false) await this.#onContact();
    return this.#afterContact(grant, request.actor);
  }

  override async held(request: HeldRequest): Promise<readonly Lease[] | null> {
    const leases = await this.behind.held(request);
    if (leases === null) return null;
    const claims = claimsOf({ leases });
    if (claims.length === 0) return leases;
    const ledger = await this.ledger();
    const now = ledger.nowMs;
    const cloneId = await ledger.cloneId(request.actor);
    const known = await ledger.confirmations(idsOf(claims));
    const isSettled = claims.every(({ issueId, lease }) => {
      const confirmation = known.get(issueId);
      return (
        isConfirmed(lease, confirmation, cloneId, now) &&
        !isBeatDue(confirmation, lease.expiresAt?.wallMs ?? null, now, ledger.parts.rules)
      );
    });
    return isSettled ? leases : null;
  }

  override async renew(request: RenewRequest): Promise<Change> {
    return this.#followed(await this.behind.renew(request), request.actor);
  }

  override async heartbeat(request: HolderRequest): Promise<Change> {
    return this.#followed(await this.behind.heartbeat(request), request.actor);
  }

  override async release(request: ReleaseRequest): Promise<Change> {
    const change = await this.behind.release(request);
    const ended = claimsOf(change).map(({ issueId, lease }) => ({ issueId, leaseId: lease.leaseId }));
    if (ended.length === 0) return change;
    return this.#told(change, request.actor, (ledger) => withdraw(ledger, request.actor, ended));
  }

  override async transfer(request: TransferRequest): Promise<Change> {
    const change = await this.behind.transfer(request).catch(async (error: unknown) => {
      const isUnknown = error instanceof CotenantError && error.code === "E_NOT_FOUND";
      throw (isUnknown ? await this.#heldThere(request) : null) ?? error;
    });
    const claims = claimsOf(change);
    if (claims.length === 0) return change;
    return this.#told(change, request.actor, async (ledger) => {
      const known = await ledger.confirmations(idsOf(claims));
      return tell(ledger, request.actor, claims, known);
    });
  }

  /** Also what another machine holds: there is no lease here then, only a claim there. */
  override async evict(request: EvictRequest): Promise<Change> {
    const ids = request.leases.flatMap(({ key }) => (key === null ? [] : (issueOfLease({ key }) ?? [])));
    if (ids.length === 0 || request.isOverruled === true) return this.behind.evict(request);
    const here = await this.#evictHere(request);
    const there = await this.#evictThere(request, ids, here !== null);
    if (here === null && there.ended.length === 0) return this.behind.evict(request);
    return { leases: [], changed: true, replayed: false, ...here, ledger: there.say };
  }

  /** What activity renews here is news to others as well, when it is due. Nothing fails because they cannot be told. */
  override async upkeep(request: StopRequest): Promise<Change> {
    const change = await this.behind.upkeep(request);
    const claims = claimsOf(change);
    if (claims.length > 0) await followUp(await this.ledger(), request.actor, claims).catch(() => {});
    return change;
  }

  // --- inside -----------------------------------------------------------------------------------------------

  /** Somebody else in this clone has it: the remote need not be asked for that. */
  async #refuseHeldHere(ledger: Ledger, { keys, actor, steal, wait }: AcquireRequest): Promise<void> {
    if (steal || wait !== null) return;
    const standing = await ledger.standing(issuesIn(keys));
    for (const lease of standing.values()) {
      const isOwn =
        lease.agentId === actor.agentId &&
        lease.worktreeId === actor.worktreeId &&
        (lease.sessionId === actor.sessionId || lease.secretHash === null);
      if (isOwn) continue;
      throw errorFrom(heldBy([lease], presentOn(ledger.parts.platform), undefined, actor));
    }
  }

  async #followed(change: Change, actor: Actor): Promise<Change> {
    const claims = claimsOf(change);
    if (claims.length === 0) return change;
    return this.#told(change, actor, (ledger) => followUp(ledger, actor, claims, true));
  }

  /** What is done here is done: that the ledger cannot even be found, such as when its remote has another name now, is said. */
  async #told(change: Change, actor: Actor, tellIt: (ledger: Ledger) => Promise<LedgerSay>): Promise<Change> {
    let ledger: Ledger;
    try {
      ledger = await this.ledger();
    } catch (error) {
      if (!(error instanceof CotenantError) || error.code !== "E_LEDGER_NOT_CONFIGURED") throw error;
      const warning = `others were not told: ${error.message}; it is done here, and they know the claim as it was last pushed; ${error.hint}, then 'cotenant sync' tells them`;
      return { ...change, ledger: { ...NOT_ASKED, isOffline: true, isDegraded: true, warnings: [warning] } };
    }
    return this.#afterContact({ ...change, ledger: await tellIt(ledger) }, actor);
  }

  async #afterContact<C extends Change>(change: C, actor: Actor): Promise<C> {
    const { ledger: say } = change;
    if (say === undefined || say.isOffline) return change;
    // Everything is looked at for it. Those whose claims went in one push need not each do so.
    this.#inPassing ??= this.ledger()
      .then((ledger) => reconcileInPassing(ledger, actor))
      .finally(() => {
        this.#inPassing = null;
      });
    const words = [...this.#warnings(), ...(await this.#inPassing)];
    return words.length === 0
      ? change
      : { ...change, ledger: { ...say, warnings: [...say.warnings, ...words] } };
  }

  /** A claim of another machine, as it was last seen: only there it can be handed over. */
  async #heldThere({ actor, lease: { key } }: TransferRequest): Promise<CotenantError | null> {
    const id = key === null ? null : issueOfLease({ key });
    if (id === null) return null;
    const ledger = await this.ledger();
    const record = recordAt((await ledger.parts.remote.seen([id])).get(id));
    const isTheirs = record?.isHeld === true && record.cloneId !== (await ledger.cloneId(actor));
    return isTheirs ? onlyThere(record) : null;
  }

  async #evictHere(request: EvictRequest): Promise<Change | null> {
    try {
      return await this.behind.evict(request);
    } catch (error) {
      if (isGone(error)) return null;
      throw error;
    }
  }

  async #evictThere(
    { actor, reason, proposalId }: EvictRequest,
    ids: readonly Ulid[],
    isDoneHere: boolean,
  ): Promise<{ ended: readonly ClaimRecord[]; say: LedgerSay }> {
    try {
      const ended = await evictClaims(await this.ledger(), actor, ids, reason, proposalId);
      const endedThere = ended.map(({ issueId, leaseId, agentId, host }) => ({
        issueId,
        leaseId,
        agentId,
        host,
      }));
      return { ended, say: { ...NOT_ASKED, endedThere } };
    } catch (error) {
      if (!isDoneHere || !isUnreachable(error)) throw error;
      const warning = `ended here only: ${(error as CotenantError).message}; the remote hears of it with the next contact`;
      return { ended: [], say: { ...NOT_ASKED, isOffline: true, isDegraded: true, warnings: [warning] } };
    }
  }
}
