import { CotenantError } from "../errors/cotenant-error";
import type { Actor, LeaseRef } from "../kernel/commands";
import { type AgentId, type LeaseId, printable, type Ulid, type WorktreeId } from "../kernel/ids";
import type { LeaseKey } from "../kernel/keys";
import {
  type Bind,
  type Ended,
  type Holder,
  type Lease,
  type Reach,
  sameParty,
  sameProcess,
} from "../kernel/lease";
import { LIMITS } from "../kernel/policy";
import { newUlid } from "../platform/new-ulid";
import type { Platform } from "../platform/platform";
import { writeNew } from "../platform/write-new";
import type { Intention, Written } from "../store/guarded-write";
import { escapeName, type Layout, type Modes } from "../store/layout";
import type { SessionSecrets } from "../store/secrets";
import type { Change, Coordinator, Grant, LeaseStatus, Wait, WriteRequest } from "./contract";
import { Keyring, type Made } from "./keyring";

export interface AcquireOptions {
  readonly ttlSecs: number;
  readonly bind?: Bind;
  /** Of a process-bound lease: how long it lasts at most without a sign of life. */
  readonly atMostSecs?: number;
  readonly reason?: string | null;
  readonly note?: string | null;
  readonly steal?: boolean;
  readonly wait?: Wait | null;
  readonly requestId?: Ulid | null;
  /** False for a caller that sees to the session's signs of life itself, less often than it asks. */
  readonly upkeep?: boolean;
  /** Claims that are shared between machines: without asking the others. */
  readonly isOffline?: boolean;
  /** The highest token that these keys are known to have had, from what was written under it (PROTOCOL 23). */
  readonly aboveToken?: number;
  /** Which process the lease is said to be held by; the session's own, unless it only runs a command for another. */
  readonly holder?: Holder;
  readonly interrupted?: AbortSignal;
}

export interface Acquired extends Grant {
  /** Some of it was free until now. */
  readonly isNew: boolean;
  /** What was. */
  readonly fresh: readonly Lease[];
  /** What proves the leases, for callers that keep it themselves. */
  readonly secret: string | null;
}

/** What a caller may show instead of what the session has kept: a secret handed to it by file or environment. */
export interface Proof {
  readonly secret?: string | null;
  /** One that is shown besides what the session has kept, for leases of others among its own. */
  readonly besides?: string | null;
  readonly requestId?: Ulid | null;
}

/**
 * One agent's session in one worktree, on top of any engine: makes the secrets, keeps them, finds them again,
 * and keeps the session's leases renewed while it is active.
 */
export class Session {
  readonly #keyring: Keyring;
  readonly #mayTake: (key: LeaseKey) => void;
  #nextUpkeepMs = 0;

  constructor(
    private readonly platform: Platform,
    readonly coordinator: Coordinator,
    readonly actor: Actor,
    private readonly secrets: SessionSecrets /** Throws where a key is not to be taken from here, whoever holds it. */,
    mayTake: (key: LeaseKey) => void = () => {},
  ) {
    this.#mayTake = mayTake;
    this.#keyring = new Keyring(platform, coordinator, actor, secrets);
  }

  /** The same agent's session as it is in another worktree: one file has the secrets of both. */
  elsewhere({ worktreeId, branch }: Pick<Actor, "worktreeId" | "branch">): Session {
    const actor = { ...this.actor, worktreeId, branch };
    return new Session(this.platform, this.coordinator, actor, this.secrets);
  }

  /** What another process of this session holds is granted as well, and with a new secret if this one has none. */
  async acquire(
    keys: readonly { key: LeaseKey; reach: Reach }[],
    options: AcquireOptions,
  ): Promise<Acquired> {
    const { coordinator } = this;
    for (const { key } of keys) this.#mayTake(key);
    const actor = { ...this.actor, holder: options.holder ?? this.actor.holder };
    const owned = await this.#keyring.on(keys.map(({ key }) => key));
    const secrets = owned.map(({ secret }) => secret);
    const { ttlSecs, bind = "ttl" } = options;
    if (options.requestId == null && options.steal !== true && secrets.length > 0) {
      const leases = await coordinator.held({ actor, keys, secrets, ttlSecs, bind });
      if (leases !== null && !(await this.#areLeftBehind(leases, actor.holder))) {
        if (options.upkeep !== false) await this.#showLife();
        const secret = owned.find((p) => p.leaseId === leases[0]?.leaseId)?.secret ?? null;
        const grant = { leases, changed: false, replayed: false, ended: [], waitedMs: 0 };
        return { ...grant, isNew: false, fresh: [], secret };
      }
    }
    const made = this.#keyring.make();
    const proposed: { key: LeaseKey; reach: Reach; leaseId: LeaseId }[] = [];
    /** Leases that may come of it: their secret is on record before they are asked for. */
    const propose = async () => {
      const isClaim = keys.some(({ key }) => key.startsWith("issue:"));
      const named = Array.from({ length: isClaim ? LIMITS.grantsOfOneClaim : 1 }, () => keys)
        .flat()
        .map(({ key, reach }) => ({ key, reach, leaseId: this.#ulid() }));
      await this.#keyring.keep(made, named);
      proposed.push(...named);
      return named.map(({ leaseId }) => leaseId);
    };
    const request = {
      actor,
      keys,
      secrets,
      secretHash: made.secretHash,
      leaseIds: await propose(),
      ttlSecs,
      bind,
      ...(options.atMostSecs === undefined ? {} : { atMostSecs: options.atMostSecs }),
      reason: options.reason ?? null,
      note: options.note ?? null,
      steal: options.steal ?? false,
      wait: options.wait ?? null,
      requestId: options.requestId ?? null,
      isOffline: options.isOffline ?? false,
      aboveToken: options.aboveToken ?? 0,
      ...(options.interrupted === undefined ? {} : { interrupted: options.interrupted }),
    };
    let wasGranted = false;
    try {
      const ask = async () => {
        const grant = await coordinator.acquire(request);
        const isLeft = request.requestId === null && (await this.#areLeftBehind(grant.leases, actor.holder));
        if (!isLeft) return grant;
        try {
          // What was granted may have lapsed again by now: a new lease never has the id of one that ended.
          const leaseIds = await propose();
          const again = { ...request, leaseIds, follows: true, wait: null };
          const { leases, changed } = await coordinator.acquire(again);
          return { ...grant, leases, changed: grant.changed || changed };
        } catch (error) {
          if (!grant.changed) throw error;
          wasGranted = true;
          await this.#keyring.remember(made, proposed, grant.leases);
          throw grantedBefore(error);
        }
      };
      const grant = await (options.upkeep === false ? ask() : this.#active(ask));
      const secret = await this.#keyring.remember(made, proposed, grant.leases);
      this.#nextUpkeepMs = Math.min(
        this.#nextUpkeepMs,
        this.platform.clock.monotonicMs() + (options.atMostSecs ?? options.ttlSecs) * 500,
      );
      const ids = new Set(proposed.map(({ leaseId }) => leaseId));
      const fresh = grant.leases.filter(({ leaseId }) => ids.has(leaseId));
      return { ...grant, isNew: fresh.length > 0, fresh, secret };
    } catch (error) {
      // Refused, and for certain: what was never granted needs no proof, and must not be shown with all that follows.
      const isRefused = error instanceof CotenantError && REFUSED.includes(error.code);
      if (isRefused && !wasGranted && request.wait === null && request.requestId === null)
        this.#keyring.overlook(proposed);
      throw error;
    } finally {
      // Also a session that is only ever refused must not keep every secret it has made.
      await this.#keyring.pruneIfLarge();
    }
  }

  async renew(
    refs: readonly LeaseRef[],
    options: Proof & {
      ttlSecs: number | null;
      overrideMax: boolean;
      reason: string | null;
      /** See `AcquireOptions`. */
      holder?: Holder;
    },
  ): Promise<Change> {
    return this.#asHolder(refs, options, (holding) =>
      this.coordinator.renew({
        ...holding,
        actor: { ...holding.actor, holder: options.holder ?? holding.actor.holder },
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
    this.#keyring.forget(change.leases);
    await this.#keyring.pruneIfLarge();
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
    options: { reason: string | null; requestId?: Ulid | null; proposalId?: Ulid },
  ): Promise<Change> {
    return this.coordinator.evict({ actor: this.actor, leases, requestId: null, ...options });
  }

  /**
   * A write that rests on leases of this session, by name; with none, one that needs no lease. Whether it may go on
   * without them is for `body` to say, which hears why they could not be proved.
   */
  async write<T>(
    refs: readonly LeaseRef[],
    options: Proof & Pick<WriteRequest<T>, "about" | "facts" | "factKinds" | "body" | "isOnlyLogged">,
  ): Promise<Written<T>> {
    const { about, facts, factKinds = [], body, isOnlyLogged = false } = options;
    return this.#asHolder(refs, options, (holding) =>
      this.coordinator.write({ ...holding, about, facts, factKinds, isOnlyLogged, body }),
    );
  }

  /** A line of the log that rests on no lease, with the facts that it changes. */
  async log(
    about: string,
    line: Pick<Intention<null>, "type" | "payload"> & Partial<Pick<Intention<null>, "facts">>,
  ): Promise<void> {
    const body = async () => ({ facts: new Map(), ...line, answer: null });
    await this.write<null>([], { about, facts: [], body });
  }

  /**
   * A secret that is shown must be right, also where the session could do without it: whoever shows one means the lease
   * that it proves. Null: none is shown.
   */
  refuseWrong(secret: string | null, leases: readonly Lease[]): void {
    if (secret === null) return;
    const hash = this.platform.digest.sha256(secret);
    if (leases.some(({ secretHash }) => secretHash === hash)) return;
    const keys = leases.slice(0, 5).map(({ key }) => printable(key));
    throw new CotenantError(
      "E_LOCK_NOT_HELD",
      keys.length === 0
        ? "a secret was shown, but this rests on no lease"
        : `the secret that was shown is not that of ${keys.join(", ")}`,
      { hint: "show the secret of the lease, or none: the session keeps its own", data: { keys } },
    );
  }

  /** Marks what this session holds as stopped; where told, only some of it. */
  async stop(which: (lease: Lease) => boolean = () => true): Promise<Change> {
    const held = (await this.mine()).filter(({ lease }) => which(lease));
    const changes: Change[] = [];
    for (let at = 0; at < held.length; at += LIMITS.keysPerOperation) {
      const part = await this.#proving(held.slice(at, at + LIMITS.keysPerOperation));
      changes.push(await this.coordinator.stop({ actor: this.actor, ...part }));
    }
    const leases = changes.flatMap((change) => change.leases);
    return { leases, changed: changes.some(({ changed }) => changed), replayed: false };
  }

  /** A sign of life and nothing else: what is below half is renewed, what was stopped goes on. */
  showLife(): Promise<void> {
    return this.#showLife();
  }

  /** What this session holds now, whatever its standing. */
  async mine(among: readonly LeaseStatus[] | null = null): Promise<LeaseStatus[]> {
    const owned = await this.#keyring.possessions();
    if (owned.length === 0) return [];
    const ids = new Set(owned.map(({ leaseId }) => leaseId));
    const found = among ?? (await this.coordinator.find(owned.map(({ key, leaseId }) => ({ key, leaseId }))));
    return found.filter(({ lease }) => ids.has(lease.leaseId) && sameParty(lease, this.actor));
  }

  /** How leases of this session's on these keys ended that it has not given back itself. */
  async endings(keys: readonly LeaseKey[]): Promise<readonly Ended[]> {
    const owned = await this.#keyring.on(keys);
    if (owned.length === 0) return [];
    return this.coordinator.endings(owned.map(({ key, leaseId }) => ({ key, leaseId })));
  }

  /** What was lost on these keys is known to whoever has taken them again: nobody needs to be told once more. */
  async forgetLosses(keys: readonly LeaseKey[]): Promise<void> {
    const lost = await this.endings(keys);
    if (lost.length === 0) return;
    this.#keyring.forget(lost);
    await this.#keyring.prune();
  }

  /** Throws away secrets that prove nothing any more. */
  prune(): Promise<void> {
    return this.#keyring.prune();
  }

  /** A sign of life for people and other programs to read, and when they can expect the next. No lease depends on it. */
  async writeHeartbeat(layout: Layout, modes: Modes, intervalSecs = 30): Promise<void> {
    const { files, clock, digest } = this.platform;
    const { agentId, sessionId, worktreeId, branch, holder } = this.actor;
    const path = `${layout.heartbeat}/${escapeName(agentId, (t) => digest.sha256(t))}.json`;
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
    await files.makeDirectory(layout.heartbeat, modes.directory);
    await files.unlink(`${path}.new`);
    await writeNew(files, `${path}.new`, `${JSON.stringify(record)}\n`, modes.file);
    await files.rename(`${path}.new`, path);
  }

  // --- inside -----------------------------------------------------------------------------------------------

  /** Whether the process by which one of them is held has ended: a daemon would let it run out, though its session goes on here. */
  async #areLeftBehind(leases: readonly Lease[], holder: Holder): Promise<boolean> {
    for (const lease of leases)
      if (lease.bind === "ttl" && sameParty(lease, this.actor) && !sameProcess(lease.holder, holder))
        if ((await this.platform.processes.liveness(lease.holder)) === "dead") return true;
    return false;
  }

  async #asHolder<T>(
    refs: readonly LeaseRef[],
    options: Proof,
    act: (holding: {
      actor: Actor;
      leases: LeaseRef[];
      secrets: string[];
      secretHash: string;
      requestId: Ulid | null;
    }) => Promise<T>,
  ): Promise<T> {
    const { actor } = this;
    const { refs: leases, secrets } = await this.#keyring.believed(refs, options.secret == null);
    if (options.secret != null) secrets.push(options.secret);
    if (options.besides != null) secrets.push(options.besides);
    const made = this.#keyring.make();
    await this.#keyring.prepareAdoption(leases, made);
    const { secretHash } = made;
    const holding = { actor, leases, secrets, secretHash, requestId: options.requestId ?? null };
    return this.#active(async () => {
      try {
        return await act(holding);
      } catch (error) {
        const handed = await this.#handedBack(error, refs, made);
        if (handed === null) throw error;
        return act({ ...holding, leases: handed });
      }
    });
  }

  /** What we had on record is gone; but the same key may have been handed to us since. */
  async #handedBack(error: unknown, refs: readonly LeaseRef[], made: Made): Promise<LeaseRef[] | null> {
    const { code } = error as { code?: unknown };
    const isGone = code === "E_NOT_FOUND" || code === "E_FENCING_MISMATCH";
    if (!isGone || refs.some((ref) => ref.leaseId !== null)) return null;
    const handed = await this.#keyring.prepareAdoption(refs, made);
    return refs.every((ref) => handed.some((lease) => lease.key === ref.key)) ? [...refs] : null;
  }

  /** Whatever comes of it, the session has shown that it is alive. */
  async #active<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } finally {
      await this.#showLife();
    }
  }

  /** Never the reason why something else fails. */
  async #showLife(): Promise<void> {
    try {
      await this.#upkeep();
    } catch {
      // It is due again with the next sign of life.
      this.#nextUpkeepMs = 0;
    }
  }

  /** Renews what is below half. Costs nothing until something can be due. */
  async #upkeep(): Promise<void> {
    const { clock } = this.platform;
    if (clock.monotonicMs() < this.#nextUpkeepMs) return;
    const valid = (await this.mine()).filter(({ standing }) => standing === "valid");
    const due = valid.filter(({ upkeepDueInMs }) => upkeepDueInMs <= 0);
    const later = valid.filter(({ upkeepDueInMs }) => upkeepDueInMs > 0);
    // What is renewed now is due again at half of its time.
    const nextMs = Math.min(
      LOOK_EVERY_MS,
      ...later.map(({ upkeepDueInMs }) => upkeepDueInMs),
      ...due.map(({ lease }) => (lease.ttlSecs * 1000) / 2),
    );
    this.#nextUpkeepMs = clock.monotonicMs() + nextMs;
    if (due.length > 0) await this.coordinator.upkeep({ actor: this.actor, ...(await this.#proving(due)) });
  }

  /** The leases by name, with what proves them. */
  async #proving(statuses: readonly LeaseStatus[]): Promise<{ leases: LeaseRef[]; secrets: string[] }> {
    const ids = new Set(statuses.map(({ lease }) => lease.leaseId));
    const owned = (await this.#keyring.possessions()).filter((p) => ids.has(p.leaseId));
    return {
      leases: statuses.map(({ lease: { key, leaseId } }) => ({ key, leaseId })),
      secrets: owned.map(({ secret }) => secret),
    };
  }

  #ulid(): Ulid {
    return newUlid(this.platform);
  }
}

/** Nothing came of it, for certain. */
const REFUSED: readonly string[] = ["E_LOCK_CONFLICT", "E_PAUSED"];
/** Another process of the session may have taken a lease that this one does not know of. */
const LOOK_EVERY_MS = 60_000;

/** What was asked for is on record as granted, and then not all of it could be bound to the asking process. */
function grantedBefore(error: unknown): unknown {
  if (!(error instanceof CotenantError)) return error;
  const { code, message, hint, data } = error;
  return new CotenantError(
    code,
    `${message}; it had been granted before, but not all of it could be bound to this process`,
    {
      hint: REFUSED.includes(code)
        ? `${hint}; 'cotenant status' shows what you still hold`
        : "run the same command again: what you still hold comes back as it is",
      data: { ...data, outcome: "unknown" },
      cause: error,
    },
  );
}
