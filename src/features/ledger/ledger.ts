import { type Coordinator, type LoggedEvent, WITHOUT_LEASE } from "../../coordinator/contract";
import { CotenantError } from "../../errors/cotenant-error";
import { isCount } from "../../kernel/bounds";
import type { Actor } from "../../kernel/commands";
import { type Fact, type FactName, factName } from "../../kernel/facts";
import { trusted, type Ulid } from "../../kernel/ids";
import { issueKeyOf, issueOf } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import { LIMITS, type Policy } from "../../kernel/policy";
import type { Platform } from "../../platform/platform";
import { ensureCloneId, readCloneId, renewCloneId } from "./clone-id";
import { type Confirmation, confirmationName, confirmationToFact, readConfirmations } from "./confirmations";
import { type ClaimRecord, type IssueMark, idsOf, MOST_WRITTEN } from "./record";
import type { ClaimUpdate, LedgerRemote, MadeUpdate, PushOutcome, RemoteClaims } from "./remote";
import { type ClaimRules, recordOf } from "./rules";
import { noteSent, twinsIn } from "./sent";
import type { OfflineClaim } from "./state";

/** Where claims that were made offline are written down for the whole machine. */
export interface OfflineBook {
  list(): Promise<readonly OfflineClaim[]>;
  /** On the disk when it returns. `check` may refuse it, and sees what is noted while nobody else can add to it. */
  note(claims: readonly OfflineClaim[], check: (noted: readonly OfflineClaim[]) => void): Promise<void>;
  /** These are settled, one way or the other. */
  strike(leaseIds: readonly Ulid[], isPushed: boolean): Promise<void>;
}

const FLOOR = factName("ledger-token", "floor");

/** What this clone knows of an issue: its last write, and the highest token that any copy has. */
export interface Known {
  readonly mark: IssueMark | null;
  readonly token: number;
}

export interface LedgerParts {
  readonly platform: Platform;
  readonly local: Coordinator;
  readonly policy: Policy;
  readonly remote: LedgerRemote;
  readonly book: OfflineBook;
  readonly rules: ClaimRules;
  readonly controlDir: string;
  readonly retries: number;
  readonly offlineMode: "local" | "fail";
  readonly isPushedAtOnce: boolean;
  readonly known: (ids: readonly Ulid[]) => Promise<ReadonlyMap<Ulid, Known>>;
}

/** A lease on an issue, with the issue. */
export interface Claim {
  readonly issueId: Ulid;
  readonly lease: Lease;
}

/** One clone's dealings with the claims that all machines share. */
export class Ledger {
  constructor(readonly parts: LedgerParts) {}

  get nowMs(): number {
    return this.parts.platform.clock.wallMs();
  }

  /** Asks the remote. Whoever else is at work there under this clone's id is noticed here. */
  async look(actor: Actor, ids: readonly Ulid[] | "all"): Promise<RemoteClaims> {
    const look = await this.parts.remote.look(ids);
    const twins = await twinsIn(this, look);
    if (twins.length > 0) throw await this.#metTwin(actor, twins);
    return look;
  }

  async push(
    actor: Actor,
    updates: readonly ClaimUpdate[],
    isAtomic: boolean,
  ): Promise<readonly PushOutcome[]> {
    if (updates.length === 0) return [];
    return this.parts.remote.push(await this.prepare(actor, updates), isAtomic);
  }

  /** PROTOCOL 26b: what this clone pushes it has on record before, or nobody could tell it from a twin's. */
  async prepare(actor: Actor, updates: readonly ClaimUpdate[]): Promise<readonly MadeUpdate[]> {
    const made = await this.parts.remote.make(updates);
    await noteSent(this.parts.local, actor, made);
    return made;
  }

  /** It goes on as somebody else: nobody can tell which of the two is the copy. */
  async #metTwin(actor: Actor, twins: readonly ClaimRecord[]): Promise<CotenantError> {
    const { platform, local, controlDir } = this.parts;
    const old = await this.cloneId(actor);
    const ids = idsOf(twins);
    await renewCloneId(platform, local, controlDir, actor, { old, ids });
    return new CotenantError(
      "E_FENCING_MISMATCH",
      `another copy of this clone is at work under the same id, on issue ${ids.slice(0, 5).join(", ")}: this one has taken a new id`,
      {
        hint: "run it again; claims from before are provisional now, and 'cotenant sync --reconcile' says whose they are",
        data: { issue_ids: ids.slice(0, 20), was: old },
      },
    );
  }

  /** Always as it is now: another process of this clone may have changed it. */
  cloneId(actor: Actor): Promise<Ulid> {
    const { platform, local, controlDir } = this.parts;
    return ensureCloneId(platform, local, controlDir, actor);
  }

  /** Null where it has none yet: then nothing at the remote can be under it. */
  knownCloneId(): Promise<Ulid | null> {
    const { platform, local, controlDir } = this.parts;
    return readCloneId(platform, local, controlDir);
  }

  confirmations(ids: readonly Ulid[] | "all"): Promise<Map<Ulid, Confirmation>> {
    return readConfirmations(this.parts.local, ids);
  }

  async record({ issueId, lease }: Claim, actor: Actor): Promise<ClaimRecord> {
    const cloneId = await this.cloneId(actor);
    return recordOf(lease, { issueId, cloneId, host: this.parts.platform.processes.host() });
  }

  /** What was written to each issue since its claim was granted: the contents, by digest, as the log of this clone has them. */
  async writtenUnder(records: readonly ClaimRecord[]): Promise<ReadonlyMap<Ulid, readonly string[]>> {
    const found = new Map<Ulid, string[]>(records.map(({ issueId }) => [issueId, []]));
    if (records.length === 0) return found;
    const sinceMs = new Map(records.map(({ issueId, acquiredAtMs }) => [issueId, acquiredAtMs]));
    const from = { timeMs: Math.min(...sinceMs.values()) };
    const where = ({ type }: LoggedEvent) => type === "issue.written";
    for await (const { payload, timestamp } of this.parts.local.history({ from, where })) {
      const { digest } = payload;
      const id = trusted<Ulid>(String(payload["issue_id"]));
      if (typeof digest !== "string" || Date.parse(timestamp) < (sinceMs.get(id) ?? Infinity)) continue;
      found.get(id)?.push(digest);
    }
    return new Map([...found].map(([id, digests]) => [id, digests.slice(-MOST_WRITTEN)]));
  }

  /** The remote has them: from here on they count between machines. On the disk when it returns. */
  async confirm(
    actor: Actor,
    claims: readonly { readonly record: ClaimRecord; readonly oid: string; readonly pushedAtMs: number }[],
  ): Promise<void> {
    if (claims.length === 0) return;
    const names = claims.map(({ record }) => confirmationName(record.issueId));
    await this.parts.local.write({
      actor,
      ...WITHOUT_LEASE,
      about: names.length === 1 ? `issue:${claims[0]!.record.issueId}` : `${names.length} issues`,
      facts: names,
      body: async ({ facts }) => {
        // Whoever was stopped for a while must not write over what was confirmed of a later lease.
        const news = claims.filter(
          ({ record }) => tokenIn(facts.get(confirmationName(record.issueId))?.value) <= record.token,
        );
        if (news.length === 0) return null;
        return {
          type: "sync.confirmed",
          payload: {
            issue_ids: news.map(({ record }) => record.issueId),
            claims: news.map(({ record, oid }) => ({
              issue_id: record.issueId,
              lease_id: record.leaseId,
              fencing_token: record.token,
              commit: oid,
            })),
          },
          facts: new Map(
            news.map(({ record, oid, pushedAtMs }) => [
              confirmationName(record.issueId),
              confirmationToFact(confirmed(record, oid, pushedAtMs)),
            ]),
          ),
          answer: true,
        };
      },
    });
    await this.parts.book.strike(
      claims.map(({ record }) => record.leaseId),
      true,
    );
  }

  /** PROTOCOL 27: what may have reached the remote, for the next contact to settle. */
  async remember(
    actor: Actor,
    state: "unsettled" | "withdraw",
    claims: readonly { readonly record: ClaimRecord; readonly oid: string }[],
  ): Promise<void> {
    await this.rememberAs(
      actor,
      claims.map(({ record, oid }) => ({ ...confirmed(record, oid, this.nowMs), state })),
    );
  }

  async rememberAs(actor: Actor, confirmations: readonly Confirmation[]): Promise<void> {
    if (confirmations.length === 0) return;
    const facts = new Map<FactName, Fact | null>(
      confirmations.map((confirmation) => [
        confirmationName(confirmation.issueId),
        confirmationToFact(confirmation),
      ]),
    );
    const ids = idsOf(confirmations);
    await this.write(actor, "sync.unsettled", ids, facts, { outcome: confirmations[0]!.state });
  }

  /** Nothing of this clone's is left at the remote. Only if it still is about that lease. */
  async forget(
    actor: Actor,
    claims: readonly { readonly issueId: Ulid; readonly leaseId: Ulid }[],
  ): Promise<void> {
    const known = await this.confirmations(idsOf(claims));
    const own = claims.filter(({ issueId, leaseId }) => known.get(issueId)?.leaseId === leaseId);
    const facts = new Map<FactName, Fact | null>(own.map(({ issueId }) => [confirmationName(issueId), null]));
    if (own.length > 0) await this.write(actor, "sync.withdrawn", idsOf(own), facts);
    await this.parts.book.strike(
      claims.map(({ leaseId }) => leaseId),
      true,
    );
  }

  /** Somebody else has it at the remote: the lease here ends, and whoever held it hears so at the next write. */
  async overrule(actor: Actor, leases: readonly Lease[], reason: string, isTakenBack = false): Promise<void> {
    for (const lease of leases) {
      try {
        await this.parts.local.evict({
          actor,
          leases: [{ key: lease.key, leaseId: lease.leaseId }],
          reason: reason.slice(0, LIMITS.textLength),
          isOverruled: true,
          isTakenBack,
          requestId: null,
        });
      } catch (error) {
        // It has ended by itself meanwhile.
        if (!isGone(error)) throw error;
      }
    }
    await this.parts.book.strike(
      leases.map(({ leaseId }) => leaseId),
      false,
    );
  }

  async write(
    actor: Actor,
    type: string,
    ids: readonly Ulid[],
    facts: ReadonlyMap<FactName, Fact | null>,
    payload: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    await this.parts.local.write({
      actor,
      ...WITHOUT_LEASE,
      about: ids.length === 1 ? `issue:${ids[0]}` : `${ids.length} issues`,
      facts: [],
      body: async () => ({ type, payload: { issue_ids: ids, ...payload }, facts, answer: true }),
    });
  }

  /** Tokens that were seen before the ledger was taken anew: whatever comes is above them (PROTOCOL 26). */
  async tokenFloor(): Promise<number> {
    const token = (await this.parts.local.facts({ names: [FLOOR] })).get(FLOOR)?.value["token"];
    return isCount(token) ? token : 0;
  }

  async raiseFloor(actor: Actor, token: number, payload: Readonly<Record<string, unknown>>): Promise<void> {
    const floor = Math.max(token, await this.tokenFloor());
    await this.write(actor, "sync.resynced", [], new Map([[FLOOR, { token: floor }]]), payload);
  }

  /** The valid lease on each of these issues, whosever it is. */
  async standing(ids: readonly Ulid[]): Promise<Map<Ulid, Lease>> {
    const refs = ids.map((id) => ({ key: issueKeyOf(id), leaseId: null }));
    const found = await this.parts.local.find(refs);
    const standing = new Map<Ulid, Lease>();
    for (const { lease, standing: how } of found)
      if (how === "valid") standing.set(issueOf(lease.key), lease);
    return standing;
  }

  chance(): number {
    const [a = 0, b = 0] = this.parts.platform.random.bytes(2);
    return (a * 256 + b) / 65_535;
  }

  async pause(ms: number): Promise<void> {
    await this.parts.platform.timers.sleep(ms).done;
  }
}

function confirmed(record: ClaimRecord, oid: string, pushedAtMs: number): Confirmation {
  return {
    issueId: record.issueId,
    leaseId: record.leaseId,
    token: record.token,
    oid,
    pushedAtMs,
    expiresAtMs: record.expiresAtMs,
    cloneId: record.cloneId,
    state: "confirmed",
  };
}

function tokenIn(fact: Fact | undefined): number {
  const token = fact?.["fencing_token"];
  return isCount(token) ? token : 0;
}

export function isGone(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return code === "E_NOT_FOUND" || code === "E_FENCING_MISMATCH" || code === "E_LOCK_EXPIRED";
}
