import type { Actor, LeaseRef } from "../kernel/commands";
import type { LeaseId } from "../kernel/ids";
import type { LeaseKey } from "../kernel/keys";
import type { Lease, Reach } from "../kernel/lease";
import type { Platform } from "../platform/platform";
import type { Possession, SecretEntry, SessionSecrets } from "../store/secrets";
import type { Coordinator } from "./contract";

/** Above this many kept secrets, those that prove nothing any more are thrown away. */
const PRUNE_ABOVE = 200;
/** Who asked so lately may still be on the way to its grant. */
const RECENT_MS = 60_000;
/** A call that took longer than this makes sure that nobody has pruned its secret meanwhile. */
const SLOW_MS = RECENT_MS / 2;

/** One secret, made for one operation. */
export interface Made {
  readonly secret: string;
  readonly secretHash: string;
  readonly madeAtMs: number;
}

/** A session's secrets: made here, kept before they are needed, and found again by what they prove. */
export class Keyring {
  /** Granted to this very process, and not given back by it since. */
  readonly #granted = new Set<LeaseId>();
  #pruneAbove = PRUNE_ABOVE;

  constructor(
    private readonly platform: Platform,
    private readonly coordinator: Coordinator,
    private readonly actor: Actor,
    private readonly secrets: SessionSecrets,
  ) {}

  make(): Made {
    const secret = base64url(this.platform.random.bytes(32));
    return {
      secret,
      secretHash: this.platform.digest.sha256(secret),
      madeAtMs: this.platform.clock.wallMs(),
    };
  }

  possessions(): Promise<Possession[]> {
    return this.secrets.possessions();
  }

  async on(keys: readonly LeaseKey[]): Promise<Possession[]> {
    const owned = await Promise.all(keys.map((key) => this.secrets.on(key)));
    return owned.flat();
  }

  /** PROTOCOL 14: before the operation is asked for. */
  keep(made: Made, leases: readonly Named[]): Promise<void> {
    return this.secrets.add(this.#entry(made, leases));
  }

  /** Asked for, and refused for certain. */
  overlook(refused: readonly Named[]): void {
    for (const lease of refused) this.secrets.overlook(lease);
  }

  forget(leases: readonly Pick<Lease, "leaseId" | "key">[]): void {
    for (const lease of leases) {
      this.#granted.delete(lease.leaseId);
      this.secrets.forget(lease);
    }
  }

  /**
   * What the caller means by a name: the lease this session has on record for it, so that a successor's lease
   * on the same key is never taken for our own. Without a record, the name as it is.
   */
  async believed(
    refs: readonly LeaseRef[],
    withSecrets: boolean,
  ): Promise<{ refs: LeaseRef[]; secrets: string[] }> {
    const secrets: string[] = [];
    const believed: LeaseRef[] = [];
    for (const ref of refs) {
      const candidates = await this.#candidates(ref);
      if (withSecrets) secrets.push(...candidates.map(({ secret }) => secret));
      if (ref.leaseId !== null) believed.push({ leaseId: ref.leaseId, key: candidates[0]?.key ?? ref.key });
      else believed.push(await this.#meant(ref, candidates));
    }
    return { refs: believed, secrets };
  }

  /**
   * A lease handed over to this agent takes our secret with the first call that names it (PROTOCOL 16); keep
   * it first. Answers which of the named ones are such.
   */
  async prepareAdoption(refs: readonly LeaseRef[], made: Made): Promise<Lease[]> {
    // A record of it may be of a process that died before it asked: its secret is not the one the lease will take.
    const uncertain = refs.filter((ref) => ref.leaseId === null || !this.#granted.has(ref.leaseId));
    if (uncertain.length === 0) return [];
    const found = (await this.coordinator.find(uncertain)).map(({ lease }) => lease);
    const handedOver = found.filter((lease) => this.#isHandedOver(lease));
    if (handedOver.length > 0) await this.keep(made, handedOver);
    return handedOver;
  }

  /**
   * After a grant. It may hold leases that were ours already, or adopted ones: their ids are not the ones we
   * proposed. Answers the secret of the first lease, null when another session keeps it.
   */
  async remember(made: Made, proposed: readonly Named[], leases: readonly Lease[]): Promise<string | null> {
    for (const { leaseId } of leases) this.#granted.add(leaseId);
    try {
      return await this.#record(made, proposed, leases);
    } catch {
      // Granted it is, and on the disk; saying that it failed would be wrong. A secret that is not on record here is
      // one that was lost: whoever acquires again from the same session gets the lease with a new one.
      const [first] = leases;
      return first === undefined || this.#proves(made.secret, first) ? made.secret : null;
    }
  }

  async #record(made: Made, proposed: readonly Named[], leases: readonly Lease[]): Promise<string | null> {
    const ids = new Set(proposed.map(({ leaseId }) => leaseId));
    // Pruned meanwhile, or gone with an empty store that somebody took away just before the grant.
    const isSlow = this.platform.clock.wallMs() - made.madeAtMs > SLOW_MS;
    if (isSlow || !(await this.secrets.isThere())) await this.secrets.ensure(this.#entry(made, proposed));
    const others = leases.filter(({ leaseId }) => !ids.has(leaseId));
    if (others.length === 0) return made.secret;
    const owned = await this.possessions();
    const adopted = others.filter((l) => this.#proves(made.secret, l) && secretOf(l, owned) !== made.secret);
    if (adopted.length > 0) await this.keep(made, adopted);
    const [first] = leases;
    if (first === undefined || this.#proves(made.secret, first)) return made.secret;
    return owned.find((p) => p.leaseId === first.leaseId && this.#proves(p.secret, first))?.secret ?? null;
  }

  /** Throws away secrets that prove nothing any more, when there are many. Fails nobody's operation. */
  async pruneIfLarge(): Promise<void> {
    try {
      if ((await this.secrets.count()) > this.#pruneAbove) await this.prune();
    } catch {
      // There is another time.
    }
  }

  async prune(): Promise<void> {
    await this.secrets.prune(async (entries) => {
      const recent = this.platform.clock.wallMs() - RECENT_MS;
      const old = entries.filter((entry) => entry.madeAtMs <= recent);
      const refs = old.flatMap(({ leases }) => leases.map(({ key, leaseId }) => ({ key, leaseId })));
      const standing = (await this.coordinator.find(refs)).map(({ lease }) => lease.leaseId);
      // Taken from us: the secret is still needed to be told so.
      const taken = (await this.coordinator.endings(refs)).map(({ leaseId }) => leaseId);
      const useful = new Set<LeaseId>([...standing, ...taken]);
      return entries.filter(
        (entry) => entry.madeAtMs > recent || entry.leases.some(({ leaseId }) => useful.has(leaseId)),
      );
    });
    this.#pruneAbove = PRUNE_ABOVE + 2 * (await this.secrets.count());
  }

  async #candidates(ref: LeaseRef): Promise<Possession[]> {
    if (ref.leaseId !== null) return (await this.possessions()).filter((p) => p.leaseId === ref.leaseId);
    const owned = ref.key === null ? [] : await this.secrets.on(ref.key);
    return owned.filter((p) => p.worktreeId === this.actor.worktreeId);
  }

  /** Which of the leases on a key that this session ever asked for a caller means by the key. */
  async #meant(ref: LeaseRef, candidates: readonly Possession[]): Promise<LeaseRef> {
    const [only] = candidates;
    if (only === undefined) return ref;
    if (candidates.length === 1 && this.#granted.has(only.leaseId))
      return { key: ref.key, leaseId: only.leaseId };
    return this.#latest(ref, candidates);
  }

  /** The one that stands, else the last one that was taken from us. */
  async #latest(ref: LeaseRef, candidates: readonly Possession[]): Promise<LeaseRef> {
    const found = await this.coordinator.find([{ key: ref.key, leaseId: null }]);
    const standing = found.find(({ lease }) => candidates.some((p) => p.leaseId === lease.leaseId));
    if (standing !== undefined) return { key: ref.key, leaseId: standing.lease.leaseId };
    // Handed over to us, and not yet adopted: not on record, but ours by name.
    const ours = found.find(({ lease }) => this.#isHandedOver(lease));
    if (ours !== undefined) return { key: ref.key, leaseId: ours.lease.leaseId };
    const endings = await this.coordinator.endings(candidates.map(({ key, leaseId }) => ({ key, leaseId })));
    const ended = candidates.find((p) => endings.some(({ leaseId }) => leaseId === p.leaseId));
    // Given back, or never granted: whoever holds the key now is somebody else.
    return { key: ref.key, leaseId: ended?.leaseId ?? null };
  }

  #isHandedOver(lease: Lease): boolean {
    const { agentId, worktreeId } = this.actor;
    return lease.secretHash === null && lease.agentId === agentId && lease.worktreeId === worktreeId;
  }

  #entry({ secret, madeAtMs }: Made, leases: readonly Named[]): SecretEntry {
    return {
      secret,
      madeAtMs,
      worktreeId: this.actor.worktreeId,
      leases: leases.map(({ leaseId, key, reach }) => ({ leaseId, key, reach })),
    };
  }

  #proves(secret: string, lease: Lease): boolean {
    return this.platform.digest.sha256(secret) === lease.secretHash;
  }
}

interface Named {
  readonly leaseId: LeaseId;
  readonly key: LeaseKey;
  readonly reach: Reach;
}

function secretOf(lease: Lease, owned: readonly Possession[]): string | undefined {
  return owned.find((p) => p.leaseId === lease.leaseId)?.secret;
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
