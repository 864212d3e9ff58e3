import { createHash } from "node:crypto";
import { keysMeet } from "./key-rules";
import type { Verdict } from "./verdict";

/**
 * Reads the log once more, by docs/FORMATS.md alone: nothing here is shared with the store, so that a mistake in
 * the store cannot hide itself. What it finds is what a careful person with `jq` and `sha256sum` would find.
 */
export class LogCheck {
  /** Every lease that was ever granted, by its fencing token. */
  readonly byToken = new Map<number, Known>();
  readonly byId = new Map<string, Known>();
  readonly open = new Map<string, Known>();
  readonly counts = new Map<string, number>();
  readonly endings = new Map<string, number>();
  sequence = 0;
  #sum = "";
  #highestToken = 0;
  #checkpoint: string[] = [];
  readonly #verdict: Verdict;
  readonly #isDead: (pid: number) => boolean;

  constructor(verdict: Verdict, isDead: (pid: number) => boolean = () => true) {
    this.#verdict = verdict;
    this.#isDead = isDead;
  }

  take(text: string): void {
    const line = this.#whole(text);
    if (line === null) return;
    const v = this.#verdict;
    const at = `line ${line.sequence}`;
    v.expect(
      "the chain of sums is whole",
      line.prev === this.#sum,
      () => `${at} does not follow the one before`,
    );
    v.expect(
      "sequence numbers have no gaps",
      line.sequence === this.sequence + 1,
      () => `${line.sequence} follows ${this.sequence}`,
    );
    v.expect("no secret is in the log", !/"secret":/.test(text), () => at);
    this.sequence = line.sequence;
    this.#sum = line.sum;
    this.counts.set(line.event_type, (this.counts.get(line.event_type) ?? 0) + 1);
    if (line.event_type === "log.checkpoint") this.#checkpointed(line);
    else if (line.event_type.startsWith("claim.")) this.#changed(line);
  }

  #whole(text: string): WireLine | null {
    const sum = /,"sum":"([0-9a-f]{32})"\}$/.exec(text)?.[1];
    const body = `${text.slice(0, -',"sum":""}'.length - 32)}}`;
    const whole = sum !== undefined && sum === createHash("sha256").update(body).digest("hex").slice(0, 32);
    const known = this.#verdict.expect(
      "every line has the sum it names",
      whole,
      () => `the line after ${this.sequence} is torn or altered`,
    );
    return known ? (JSON.parse(text) as WireLine) : null;
  }

  #changed(line: WireLine): void {
    const { leases, ended } = line.payload;
    const fresh = leases.filter((lease) => !this.byId.has(lease.lease_id));
    for (const gone of ended) this.#end(gone, line, fresh);
    for (const lease of leases.filter((l) => this.byId.has(l.lease_id))) this.#continue(lease, line);
    for (const lease of fresh.sort((a, b) => a.fencing_token - b.fencing_token)) this.#grant(lease, line);
    this.#checkSteals(fresh, line);
  }

  #grant(lease: WireLease, line: WireLine): void {
    const v = this.#verdict;
    const token = lease.fencing_token;
    v.expect(
      "only grants and transfers make leases",
      line.event_type === "claim.acquired" || line.event_type === "claim.transferred",
      () => `line ${line.sequence} (${line.event_type}) made ${lease.key} #${token}`,
    );
    v.expect(
      "fencing tokens rise",
      token > this.#highestToken,
      () => `${lease.key} got #${token} after #${this.#highestToken} was given`,
    );
    const known = knownOf(lease, line.sequence);
    for (const other of this.open.values()) {
      v.expect(
        "no two leases of different holders meet",
        !keysMeet(other.key, lease.key) || areApart(other, known) || other.party === known.party,
        () => `${lease.key} #${token} was granted beside ${other.key} #${other.token}`,
      );
    }
    this.#highestToken = Math.max(this.#highestToken, token);
    this.byToken.set(token, known);
    this.byId.set(known.leaseId, known);
    this.open.set(known.leaseId, known);
  }

  /** Renewed, beaten, adopted or kept: the same lease with the same token. */
  #continue(lease: WireLease, line: WireLine): void {
    const known = this.byId.get(lease.lease_id)!;
    const v = this.#verdict;
    v.expect(
      "a lease that ended stays ended",
      known.endedAt === null,
      () => `line ${line.sequence} (${line.event_type}) goes on with ${known.key} #${known.token}`,
    );
    v.expect(
      "a lease keeps its token",
      known.token === lease.fencing_token,
      () => `${known.key} #${known.token} became #${lease.fencing_token}`,
    );
    known.party = partyOf(lease);
    known.pids.add(lease.holder.pid);
    const expiry = lease.expires_at_clock?.monotonic_ms ?? Number.POSITIVE_INFINITY;
    known.expiresAtMs = Math.max(known.expiresAtMs, expiry);
  }

  #end(gone: WireEnded, line: WireLine, successors: readonly WireLease[]): void {
    const known = this.byId.get(gone.lease_id);
    const v = this.#verdict;
    const stood = v.expect(
      "only what stands can end",
      known !== undefined && known.endedAt === null,
      () => `line ${line.sequence} ends ${gone.key} #${gone.fencing_token}, which did not stand`,
    );
    if (!stood || known === undefined) return;
    known.endedAt = line.sequence;
    known.how = gone.cause;
    known.endedBy = line.actor.pid;
    this.open.delete(known.leaseId);
    this.endings.set(gone.cause, (this.endings.get(gone.cause) ?? 0) + 1);
    this.#checkCause(gone, known, line, successors[0]?.acquired_at_clock.monotonic_ms ?? null);
  }

  #checkCause(gone: WireEnded, known: Known, line: WireLine, nowMs: number | null): void {
    const v = this.#verdict;
    const what = `${known.key} #${known.token}`;
    if (gone.cause === "expired" && nowMs !== null)
      v.expect(
        "nobody loses a lease before its time",
        nowMs >= known.expiresAtMs,
        () => `${what} was taken ${known.expiresAtMs - nowMs} ms early`,
      );
    if (gone.cause === "dead")
      v.expect(
        "only the dead are taken for dead",
        known.bind === "process" && [...known.pids].every(this.#isDead),
        () => `${what} (${known.bind}-bound) of process ${[...known.pids].join(", ")}`,
      );
    if (gone.cause === "forced" && line.payload.overruled !== true)
      v.expect(
        "only people end live leases",
        /^(human|admin):/.test(line.actor.agent_id),
        () => `${line.actor.agent_id} ended ${what}`,
      );
  }

  /** Both ways: what a grant ended is named by a grant, and what it names it ended. */
  #checkSteals(fresh: readonly WireLease[], line: WireLine): void {
    if (fresh.length === 0) return;
    const named = new Set(fresh.flatMap((lease) => (lease.stole_from ?? []).map((from) => from.lease_id)));
    const stolen = line.payload.ended.filter((gone) => !["released", "transferred"].includes(gone.cause));
    for (const gone of stolen)
      this.#verdict.expect(
        "every steal says whom from",
        named.delete(gone.lease_id),
        () => `line ${line.sequence} took ${gone.key} #${gone.fencing_token} without a word`,
      );
    this.#verdict.expect(
      "every steal ends what it stole",
      named.size === 0,
      () => `line ${line.sequence} names ${[...named].join(", ")}`,
    );
  }

  /** A new segment starts with the whole view, perhaps in parts. */
  #checkpointed(line: WireLine): void {
    const { part = 1, parts = 1, leases, next_token: next = 0 } = line.payload;
    if (part === 1) this.#checkpoint = [];
    this.#checkpoint.push(...leases.map((lease) => lease.lease_id));
    if (part !== parts) return;
    const said = new Set(this.#checkpoint);
    this.#verdict.expect(
      "a checkpoint says what stands",
      said.size === this.open.size && [...this.open.keys()].every((id) => said.has(id)),
      () => `line ${line.sequence} lists ${said.size} leases where ${this.open.size} stand`,
    );
    this.#verdict.expect(
      "tokens never restart",
      next > this.#highestToken,
      () => `line ${line.sequence} would go on with #${next} after #${this.#highestToken}`,
    );
  }
}

/** What the log says of one lease. */
export interface Known {
  readonly leaseId: string;
  readonly key: string;
  readonly token: number;
  readonly agentId: string;
  readonly bind: string;
  /** The worktree that it is limited to; null for the whole repository. */
  readonly within: string | null;
  readonly grantedAt: number;
  /** The process that asked for it. */
  readonly pid: number;
  readonly pids: Set<number>;
  party: string;
  /** On the monotonic clock, with all renewals; infinite without one. */
  expiresAtMs: number;
  endedAt: number | null;
  how: string | null;
  /** The process that ended it. */
  endedBy: number | null;
}

function knownOf(lease: WireLease, sequence: number): Known {
  return {
    leaseId: lease.lease_id,
    key: lease.key,
    token: lease.fencing_token,
    agentId: lease.agent_id,
    bind: lease.bind,
    within: lease.reach === "worktree" ? lease.worktree_id : null,
    grantedAt: sequence,
    pid: lease.holder.pid,
    pids: new Set([lease.holder.pid]),
    party: partyOf(lease),
    expiresAtMs: lease.expires_at_clock?.monotonic_ms ?? Number.POSITIVE_INFINITY,
    endedAt: null,
    how: null,
    endedBy: null,
  };
}

/** Leases that reach one worktree each do not meet in different ones. */
function areApart(a: Known, b: Known): boolean {
  return a.within !== null && b.within !== null && a.within !== b.within;
}

function partyOf(lease: WireLease): string {
  return `${lease.agent_id} ${lease.session_id} ${lease.worktree_id}`;
}

interface WireClock {
  readonly monotonic_ms: number;
}

interface WireLease {
  readonly lease_id: string;
  readonly key: string;
  readonly agent_id: string;
  readonly session_id: string;
  readonly worktree_id: string;
  readonly fencing_token: number;
  readonly bind: string;
  readonly reach: string;
  readonly holder: { readonly pid: number };
  readonly acquired_at_clock: WireClock;
  readonly expires_at_clock?: WireClock;
  readonly stole_from?: readonly { readonly lease_id: string }[];
}

interface WireEnded {
  readonly lease_id: string;
  readonly key: string;
  readonly fencing_token: number;
  readonly cause: string;
}

interface WireLine {
  readonly sequence: number;
  readonly event_type: string;
  readonly actor: { readonly agent_id: string; readonly pid: number };
  readonly payload: {
    readonly leases: readonly WireLease[];
    readonly ended: readonly WireEnded[];
    readonly overruled?: boolean;
    readonly part?: number;
    readonly parts?: number;
    readonly next_token?: number;
  };
  readonly prev: string;
  readonly sum: string;
}
