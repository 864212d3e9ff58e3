import type { Actor, LeaseRef } from "../kernel/commands";
import { type AgentId, type LeaseId, makeUlid, type Ulid, type WorktreeId } from "../kernel/ids";
import type { LeaseKey } from "../kernel/keys";
import { type Bind, type Lease, type Reach, sameParty } from "../kernel/lease";
import { elapsedMs, remainingMs } from "../kernel/time";
import type { Platform } from "../platform/platform";
import { escapeSegment, type Layout } from "../store/layout";
import type { Possession, SessionSecrets } from "../store/secrets";
import type { Change, Coordinator, Grant, LeaseStatus, Wait } from "./contract";

export interface AcquireOptions {
  readonly ttlSecs: number;
  readonly bind?: Bind;
  readonly reason?: string | null;
  readonly note?: string | null;
  readonly steal?: boolean;
  readonly wait?: Wait | null;
  readonly requestId?: Ulid | null;
}

/** What a caller may show instead of what the session has kept: a secret handed to it by file or environment. */
export interface Proof {
  readonly secret?: string | null;
  readonly requestId?: Ulid | null;
}

/** Above this many kept secrets, those that prove nothing any more are thrown away. */
const PRUNE_ABOVE = 200;

/**
 * One agent's session in one worktree, on top of any engine: makes the secrets, keeps them, finds them again,
 * and keeps the session's leases renewed while it is active.
 */
export class Session {
  readonly actor: Actor;
  readonly coordinator: Coordinator;
  readonly #platform: Platform;
  readonly #secrets: SessionSecrets;
  /** The secret made by the last acquire, for callers that were asked to show it. */
  lastSecret: string | null = null;
  #nextUpkeepMs = 0;
  #pruneAbove = PRUNE_ABOVE;

  constructor(platform: Platform, coordinator: Coordinator, actor: Actor, secrets: SessionSecrets) {
    this.#platform = platform;
    this.coordinator = coordinator;
    this.actor = actor;
    this.#secrets = secrets;
  }

  async acquire(keys: readonly { key: LeaseKey; reach: Reach }[], options: AcquireOptions): Promise<Grant> {
    const { actor, coordinator } = this;
    const owned = await this.#proofsFor(keys.map(({ key }) => key));
    const secrets = owned.map(({ secret }) => secret);
    if (options.requestId == null && options.steal !== true && secrets.length > 0) {
      const leases = await coordinator.held({ actor, keys, secrets });
      if (leases !== null) {
        await this.#upkeep();
        this.lastSecret = owned.find((p) => p.leaseId === leases[0]?.leaseId)?.secret ?? null;
        return { leases, changed: false, replayed: false, ended: [], waitedMs: 0 };
      }
    }
    const { secret, secretHash } = this.#makeSecret();
    const leaseIds = keys.map(() => this.#ulid());
    await this.#keep(
      secret,
      keys.map(({ key, reach }, i) => ({ leaseId: leaseIds[i]!, key, reach })),
    );
    const request = {
      actor,
      keys,
      secrets,
      secretHash,
      leaseIds,
      ttlSecs: options.ttlSecs,
      bind: options.bind ?? "ttl",
      reason: options.reason ?? null,
      note: options.note ?? null,
      steal: options.steal ?? false,
      wait: options.wait ?? null,
      requestId: options.requestId ?? null,
    };
    const grant = await this.#active(() => coordinator.acquire(request));
    await this.#remember(grant, secret, leaseIds);
    this.#nextUpkeepMs = Math.min(
      this.#nextUpkeepMs,
      this.#platform.clock.monotonicMs() + options.ttlSecs * 500,
    );
    return grant;
  }

  async renew(
    refs: readonly LeaseRef[],
    options: Proof & { ttlSecs: number | null; overrideMax: boolean; reason: string | null },
  ): Promise<Change> {
    return this.#asHolder(refs, options, (holding) =>
      this.coordinator.renew({
        ...holding,
        ttlSecs: options.ttlSecs,
        overrideMax: options.overrideMax,
        reason: options.reason,
      }),
    );
  }

  async heartbeat(refs: readonly LeaseRef[], options: Proof = {}): Promise<Change> {
    return this.#asHolder(refs, options, (holding) => this.coordinator.heartbeat(holding));
  }

  async release(
    refs: readonly LeaseRef[],
    options: Proof & { reason?: string | null } = {},
  ): Promise<Change> {
    const reason = options.reason ?? null;
    const change = await this.#asHolder(refs, options, (holding) =>
      this.coordinator.release({ ...holding, reason }),
    );
    for (const lease of change.leases) this.#secrets.forget(lease);
    if ((await this.#secrets.count()) > this.#pruneAbove) await this.prune();
    return change;
  }

  async transfer(
    ref: LeaseRef,
    options: Proof & {
      toAgent: AgentId;
      toWorktree: WorktreeId;
      toBranch: string | null;
      reason: string | null;
    },
  ): Promise<Change> {
    const { toAgent, toWorktree, toBranch, reason } = options;
    const newLeaseId = this.#ulid();
    return this.#asHolder([ref], options, ({ leases, ...holding }) =>
      this.coordinator.transfer({
        ...holding,
        lease: leases[0]!,
        toAgent,
        toWorktree,
        toBranch,
        reason,
        newLeaseId,
      }),
    );
  }

  /** By name alone: whoever holds it now. */
  async evict(
    leases: readonly LeaseRef[],
    options: { reason: string | null; requestId?: Ulid | null },
  ): Promise<Change> {
    const { actor } = this;
    return this.coordinator.evict({
      actor,
      leases,
      reason: options.reason,
      requestId: options.requestId ?? null,
    });
  }

  /** Marks everything this session holds as stopped. */
  async stop(): Promise<Change> {
    const owned = await this.#possessions();
    return this.coordinator.stop({
      actor: this.actor,
      leases: owned,
      secrets: owned.map(({ secret }) => secret),
    });
  }

  /** What this session holds now, whatever its standing. */
  async mine(): Promise<LeaseStatus[]> {
    const owned = await this.#possessions();
    if (owned.length === 0) return [];
    const found = await this.coordinator.find(owned.map(({ key, leaseId }) => ({ key, leaseId })));
    return found.filter(({ lease }) => sameParty(lease, this.actor));
  }

  /** Throws away secrets that prove nothing any more. */
  async prune(): Promise<void> {
    const owned = await this.#possessions();
    const refs = owned.map(({ key, leaseId }) => ({ key, leaseId }));
    const standing = (await this.coordinator.find(refs)).map(({ lease }) => lease.leaseId);
    // Taken from us: the secret is still needed to be told so.
    const taken = (await this.coordinator.endings(refs)).map(({ leaseId }) => leaseId);
    const useful = new Set<LeaseId>([...standing, ...taken]);
    const recent = this.#platform.clock.wallMs() - 60_000;
    await this.#secrets.prune(
      (entry) => entry.madeAtMs > recent || entry.leases.some(({ leaseId }) => useful.has(leaseId)),
    );
    this.#pruneAbove = PRUNE_ABOVE + 2 * (await this.#secrets.count());
  }

  /** A sign of life for people and other programs to read. No lease depends on it. */
  async writeHeartbeat(layout: Layout, intervalSecs: number): Promise<void> {
    const { files, clock, digest } = this.#platform;
    const { agentId, sessionId, worktreeId, branch, holder } = this.actor;
    const path = `${layout.heartbeat}/${escapeSegment(agentId, (t) => digest.sha256(t))}.json`;
    const record = {
      schema_version: 1,
      agent_id: agentId,
      session_id: sessionId,
      worktree_id: worktreeId,
      branch,
      pid: holder.pid,
      last_beat: new Date(clock.wallMs()).toISOString(),
      interval_secs: intervalSecs,
    };
    await files.unlink(`${path}.new`);
    const fd = await files.open(`${path}.new`, "create", 0o600);
    try {
      await files.writeAt(fd, new TextEncoder().encode(`${JSON.stringify(record)}\n`), 0);
    } finally {
      await files.close(fd);
    }
    await files.rename(`${path}.new`, path);
  }

  // --- inside -----------------------------------------------------------------------------------------------

  async #asHolder(
    refs: readonly LeaseRef[],
    options: Proof,
    act: (holding: {
      actor: Actor;
      leases: LeaseRef[];
      secrets: string[];
      secretHash: string;
      requestId: Ulid | null;
    }) => Promise<Change>,
  ): Promise<Change> {
    const { actor } = this;
    const { refs: leases, secrets } = await this.#believed(refs, options.secret == null);
    if (options.secret != null) secrets.push(options.secret);
    const { secret, secretHash } = this.#makeSecret();
    await this.#prepareAdoption(leases, secrets, secret);
    const holding = { actor, leases, secrets, secretHash, requestId: options.requestId ?? null };
    return this.#active(() => act(holding));
  }

  /** Whatever comes of it, the session has shown that it is alive. */
  async #active<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } finally {
      await this.#upkeep().catch(() => {});
    }
  }

  /**
   * What the caller means by a name: the lease this session has on record for it, so that a successor's lease
   * on the same key is never taken for our own. Without a record, the name as it is.
   */
  async #believed(
    refs: readonly LeaseRef[],
    withSecrets: boolean,
  ): Promise<{ refs: LeaseRef[]; secrets: string[] }> {
    const secrets: string[] = [];
    const believed: LeaseRef[] = [];
    for (const ref of refs) {
      const candidates = await this.#candidates(ref);
      if (withSecrets) secrets.push(...candidates.map(({ secret }) => secret));
      if (ref.leaseId !== null) believed.push({ leaseId: ref.leaseId, key: candidates[0]?.key ?? ref.key });
      else if (candidates.length < 2)
        believed.push({ key: ref.key, leaseId: candidates[0]?.leaseId ?? null });
      else believed.push(await this.#latest(ref, candidates));
    }
    return { refs: believed, secrets };
  }

  async #candidates(ref: LeaseRef): Promise<Possession[]> {
    if (ref.leaseId !== null) return (await this.#possessions()).filter((p) => p.leaseId === ref.leaseId);
    const owned = ref.key === null ? [] : await this.#secrets.on(ref.key);
    return owned.filter((p) => p.worktreeId === this.actor.worktreeId);
  }

  /** Of several leases on one key that this session asked for, the one that stands, else the last one granted. */
  async #latest(ref: LeaseRef, candidates: readonly Possession[]): Promise<LeaseRef> {
    const found = await this.coordinator.find([{ key: ref.key, leaseId: null }]);
    const standing = found.find(({ lease }) => candidates.some((p) => p.leaseId === lease.leaseId));
    if (standing !== undefined) return { key: ref.key, leaseId: standing.lease.leaseId };
    // Handed over to us, and not yet adopted: not on record, but ours by name.
    const ours = found.find(({ lease }) => lease.secretHash === null && lease.agentId === this.actor.agentId);
    if (ours !== undefined) return { key: ref.key, leaseId: ours.lease.leaseId };
    return { key: ref.key, leaseId: candidates[0]!.leaseId };
  }

  /** A lease handed over to this agent takes our secret with the first call that names it; keep it first. */
  async #prepareAdoption(
    refs: readonly LeaseRef[],
    secrets: readonly string[],
    secret: string,
  ): Promise<void> {
    if (secrets.length > 0) return;
    const { agentId, worktreeId } = this.actor;
    const found = (await this.coordinator.find(refs)).map(({ lease }) => lease);
    const handedOver = found.filter(
      (lease) => lease.secretHash === null && lease.agentId === agentId && lease.worktreeId === worktreeId,
    );
    if (handedOver.length > 0) await this.#keep(secret, handedOver);
  }

  #keep(secret: string, leases: readonly { leaseId: LeaseId; key: LeaseKey; reach: Reach }[]): Promise<void> {
    return this.#secrets.add({
      secret,
      madeAtMs: this.#platform.clock.wallMs(),
      worktreeId: this.actor.worktreeId,
      leases: leases.map(({ leaseId, key, reach }) => ({ leaseId, key, reach })),
    });
  }

  /** A grant may hold leases that were ours already, or adopted ones: their ids are not the ones we proposed. */
  async #remember(grant: Grant, secret: string, proposed: readonly LeaseId[]): Promise<void> {
    this.lastSecret = secret;
    if (grant.leases.every((lease) => proposed.includes(lease.leaseId))) return;
    const owned = await this.#possessions();
    this.lastSecret = (grant.leases[0] && this.#secretOf(grant.leases[0], owned)) ?? secret;
    const fresh = grant.leases.filter(
      (lease) => !proposed.includes(lease.leaseId) && this.#secretOf(lease, owned) === undefined,
    );
    if (fresh.length > 0) await this.#keep(secret, fresh);
  }

  #secretOf(lease: Lease, owned: readonly Possession[]): string | undefined {
    return owned.find((p) => p.leaseId === lease.leaseId && this.#proves(p.secret, lease))?.secret;
  }

  #proves(secret: string, lease: Lease): boolean {
    return this.#platform.digest.sha256(secret) === lease.secretHash;
  }

  /** Renews what is below half. Costs nothing until something can be due. */
  async #upkeep(): Promise<void> {
    const { clock } = this.#platform;
    if (clock.monotonicMs() < this.#nextUpkeepMs) return;
    const statuses = await this.mine();
    let nextMs = 60_000;
    const due: LeaseStatus[] = [];
    const now = { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs(), clockId: clock.clockId() };
    for (const status of statuses) {
      if (status.standing !== "valid") continue;
      const { lease } = status;
      const dueInMs =
        lease.expiresAt === null
          ? 60_000 - elapsedMs(lease.lastBeat, now)
          : remainingMs(lease.expiresAt, now) - lease.ttlSecs * 500;
      if (dueInMs <= 0 || lease.stopIdleAt !== null) due.push(status);
      else nextMs = Math.min(nextMs, dueInMs);
    }
    this.#nextUpkeepMs = clock.monotonicMs() + nextMs;
    if (due.length === 0) return;
    const owned = await this.#possessions();
    const ids = new Set(due.map(({ lease }) => lease.leaseId));
    const secrets = owned.filter((p) => ids.has(p.leaseId)).map(({ secret }) => secret);
    const leases = due.map(({ lease: { key, leaseId } }) => ({ key, leaseId }));
    await this.coordinator.upkeep({ actor: this.actor, leases, secrets });
  }

  async #proofsFor(keys: readonly LeaseKey[]): Promise<Possession[]> {
    const owned = await Promise.all(keys.map((key) => this.#secrets.on(key)));
    return owned.flat();
  }

  #possessions(): Promise<Possession[]> {
    return this.#secrets.possessions();
  }

  #makeSecret(): { secret: string; secretHash: string } {
    const secret = base64url(this.#platform.random.bytes(32));
    return { secret, secretHash: this.#platform.digest.sha256(secret) };
  }

  #ulid(): Ulid {
    return makeUlid(this.#platform.clock.wallMs(), this.#platform.random.bytes(10));
  }
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

function base64url(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const [a, b = 0, c = 0] = [bytes[i]!, bytes[i + 1], bytes[i + 2]];
    const group = (a << 16) | (b << 8) | c;
    const digits = Math.min(4, Math.ceil(((bytes.length - i) * 8) / 6));
    for (let d = 0; d < digits; d++) text += ALPHABET[(group >> (18 - 6 * d)) & 63];
  }
  return text;
}
