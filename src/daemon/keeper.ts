import type { LeaseStatus, LoggedEvent, Subscription } from "../coordinator/contract";
import type { Workspace } from "../coordinator/workspace";
import type { Actor } from "../kernel/commands";
import type { Lease, Party } from "../kernel/lease";
import { endOfLifetime } from "../kernel/renewal";
import { remainingMs } from "../kernel/time";
import type { Platform, Sleep } from "../platform/platform";
import type { Feed } from "./feed";
import type { Journal } from "./journal";
import { partyName, type SessionPlace, type Sessions } from "./sessions";

/** Where leases are kept: as much of a workspace as it takes. */
export type KeptPlace = SessionPlace & Pick<Workspace, "config" | "coordinator">;

/** Renewed when this much of its time is left. */
const RENEW_AT = 0.2;
/** Sessions whose last sign of life is remembered, and leases whose last renewal is. */
const MOST_REMEMBERED = 10_000;
/** The longest that timers take. */
const LONGEST_SLEEP_MS = 3_600_000;
/** After a renewal that failed. */
const TRY_AGAIN_MS = 1_000;

/**
 * Keeps leases of sessions that are alive, so that nobody has to renew by hand. A session is alive whose process is, or that
 * has done something since its lease was last renewed; a lease of anybody else ends when its time is up, as always (promise 6).
 */
export class Keeper {
  readonly #platform: Pick<Platform, "timers" | "processes">;
  readonly #workspace: () => Promise<KeptPlace>;
  readonly #journal: Pick<Journal, "note">;
  /** By party: the line of the log with which it last did something. */
  readonly #signs = new Bounded();
  /** By lease: the line with which it was granted, or last renewed. */
  readonly #renewals = new Bounded();
  #lastLine = 0;
  #subscription: Promise<Subscription> | null = null;
  #sleep: Sleep | null = null;
  #turn: Promise<void> = Promise.resolve();
  /** A look is to come that will see whatever happens until it begins. */
  #isAwaited = false;
  #isClosed = false;
  /** As they were at the last look. */
  #kept: readonly Lease[] = [];
  #renewed = 0;

  constructor(
    platform: Pick<Platform, "timers" | "processes">,
    workspace: () => Promise<KeptPlace>,
    private readonly sessions: Sessions,
    private readonly feed: Feed,
    journal: Pick<Journal, "note">,
  ) {
    this.#platform = platform;
    this.#workspace = workspace;
    this.#journal = journal;
  }

  /** While it has leases to keep, the daemon stays. */
  get isBusy(): boolean {
    return this.#kept.length > 0;
  }

  /** `living`: those that would be renewed now; the others are left to run out. */
  async status(): Promise<object> {
    const kept = this.#kept;
    let living = 0;
    for (const lease of kept) if (await this.#isAlive(lease)) living++;
    return { leases: kept.length, living, renewed: this.#renewed };
  }

  start(): void {
    this.#subscription = this.feed.subscribe((event) => this.#hear(event));
    this.#subscription.catch((error: Error) =>
      this.#journal.note("cannot follow the log", { error: error.message }),
    );
    this.#wake();
  }

  close(): void {
    this.#isClosed = true;
    this.#rest(null);
    void this.#subscription?.then(
      (subscription) => subscription.close(),
      () => {},
    );
  }

  /** The settings may have changed. */
  reconsider(): void {
    this.#wake();
  }

  /** Whoever asks for something is alive, also if nothing comes of it. */
  seen(actor: Actor): void {
    this.#signs.set(partyName(actor), this.#lastLine + 0.5);
  }

  #hear({ type, actor, sequence, payload }: LoggedEvent): void {
    this.#lastLine = sequence;
    for (const { lease_id } of (payload["leases"] ?? []) as { lease_id: string }[])
      this.#renewals.set(lease_id, sequence);
    // What the daemon does for a session is no sign of its life.
    if (actor.pid !== this.#platform.processes.self().pid)
      this.#signs.set(partyName(actor as unknown as Party), sequence);
    // Trust changes what the settings come to.
    if (type.startsWith("claim.") || type.startsWith("policy.")) this.#wake();
  }

  /** Looks now, or once more after the look that is under way. */
  #wake(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    this.#turn = this.#turn.then(async () => {
      this.#isAwaited = false;
      if (this.#isClosed) return;
      this.#rest(null);
      let nextMs = TRY_AGAIN_MS;
      try {
        nextMs = await this.#look();
      } catch (error) {
        this.#journal.note("cannot look after leases", { error: (error as Error).message });
      }
      if (!this.#isClosed && Number.isFinite(nextMs))
        this.#rest(Math.min(Math.max(nextMs, 1), LONGEST_SLEEP_MS));
    });
  }

  /** Until the next look; null: no more. */
  #rest(ms: number | null): void {
    const before = this.#sleep;
    const sleep = ms === null ? null : this.#platform.timers.sleep(ms);
    this.#sleep = sleep;
    before?.wake();
    void sleep?.done.then(() => {
      if (this.#sleep === sleep) this.#wake();
    });
  }

  /** Renews what is due; answers when the next one will be. */
  async #look(): Promise<number> {
    const workspace = await this.#workspace();
    if (!workspace.config.values["coordination.auto_renew_leases"]) {
      this.#kept = [];
      return Number.POSITIVE_INFINITY;
    }
    const all = (await workspace.coordinator.list()).filter(({ lease }) => isKept(lease));
    this.#kept = all.map(({ lease }) => lease);
    let nextMs = Number.POSITIVE_INFINITY;
    for (const status of all) {
      const dueMs = (status.remainingMs ?? Number.POSITIVE_INFINITY) - status.lease.ttlSecs * 1000 * RENEW_AT;
      if (dueMs > 0) nextMs = Math.min(nextMs, dueMs);
      else if (await this.#isAlive(status.lease))
        nextMs = Math.min(nextMs, await this.#renew(workspace, status));
      // Nobody says when it has run out.
      else nextMs = Math.min(nextMs, (status.remainingMs ?? LONGEST_SLEEP_MS) + 1);
    }
    return nextMs;
  }

  async #isAlive(lease: Lease): Promise<boolean> {
    if (this.#signs.get(partyName(lease)) > Math.max(this.#renewals.get(lease.leaseId), 0)) return true;
    return (await this.#platform.processes.liveness(lease.holder)) === "alive";
  }

  /** Answers when it should be looked at again. */
  async #renew(workspace: KeptPlace, { lease }: LeaseStatus): Promise<number> {
    const leftMs = remainingMs(endOfLifetime(lease), workspace.store.now());
    const ttlSecs = Math.floor(Math.min(lease.ttlSecs, leftMs / 1000));
    if (ttlSecs < 1) return Number.POSITIVE_INFINITY;
    try {
      const session = await this.sessions.of(workspace, lease);
      await session.renew([{ key: lease.key, leaseId: lease.leaseId }], {
        ttlSecs,
        overrideMax: false,
        reason: null,
      });
      this.#renewed++;
      return ttlSecs * 1000 * (1 - RENEW_AT);
    } catch (error) {
      const { message, code } = error as Error & { code?: string };
      this.#journal.note("could not renew", {
        lease_id: lease.leaseId,
        key: lease.key,
        code,
        error: message,
      });
      return code === "E_LOCK_NOT_HELD" ? Number.POSITIVE_INFINITY : TRY_AGAIN_MS;
    }
  }
}

function isKept({ bind, expiresAt, stopIdleAt }: Lease): boolean {
  return bind === "ttl" && expiresAt !== null && stopIdleAt === null;
}

/** Lines of the log by name; of too many, those that were told of last. */
class Bounded {
  readonly #lines = new Map<string, number>();

  /** Before all lines, where none is known. */
  get(name: string): number {
    return this.#lines.get(name) ?? -1;
  }

  set(name: string, line: number): void {
    this.#lines.delete(name);
    this.#lines.set(name, line);
    for (const oldest of this.#lines.keys()) {
      if (this.#lines.size <= MOST_REMEMBERED) break;
      this.#lines.delete(oldest);
    }
  }
}
