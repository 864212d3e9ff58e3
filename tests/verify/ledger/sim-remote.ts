import { CotenantError } from "../../../src/errors/cotenant-error";
import type { ClaimRecord } from "../../../src/features/ledger/record";
import {
  type ClaimRef,
  type ClaimUpdate,
  type LedgerRemote,
  type MadeUpdate,
  type PushOutcome,
  type RemoteClaims,
  tokenOf,
} from "../../../src/features/ledger/remote";
import type { Ulid } from "../../../src/kernel/ids";
import type { Platform } from "../../../src/platform/platform";
import type { Prng } from "../../../testing/simulator";

/** One change of a claim's ref, as the server saw it. */
export interface Entry {
  readonly oid: string;
  readonly record: ClaimRecord;
  /** By the world's own clock. */
  readonly atMs: number;
  /** What the pusher's clock said then. */
  readonly clockMs: number;
  /** A publish: the branch was pushed along, in one. */
  readonly isPublish: boolean;
}

/** The server: refs, and everything that ever became of them. */
export class Server {
  readonly claims = new Map<Ulid, Entry[]>();
  #oids = 0;

  nextOid(): string {
    return (++this.#oids).toString(16).padStart(40, "0");
  }

  tip(id: Ulid): Entry | null {
    return this.claims.get(id)?.at(-1) ?? null;
  }

  /** All or none: what each ref must be is checked before any is changed. */
  apply(
    updates: readonly (ClaimUpdate & { oid: string })[],
    isAtomic: boolean,
    at: Omit<Entry, "oid" | "record">,
  ): boolean[] {
    const fits = updates.map(({ issueId, expected }) => (this.tip(issueId)?.oid ?? null) === expected);
    const isRefused = isAtomic && fits.includes(false);
    return updates.map(({ issueId, oid, record }, i) => {
      if (isRefused || !fits[i]) return false;
      const history = this.claims.get(issueId) ?? [];
      history.push({ ...at, oid, record });
      this.claims.set(issueId, history);
      return true;
    });
  }
}

/** What the network between one clone and the server is like at the moment. */
export interface Weather {
  isDown: boolean;
  /** How often a request is lost on the way, and how often an answer is. */
  losesRequest: number;
  losesAnswer: number;
}

/** What a clone's machine remembers of the remote, whatever becomes of its processes. */
export type Memory = Map<Ulid, ClaimRef>;

/**
 * The ledger's remote in the simulator. A request travels for a while, happens at the server at one instant, and its
 * answer travels back; either may be lost. What is on its way arrives also when its sender has died meanwhile.
 */
export class SimRemote implements LedgerRemote {
  readonly #server: Server;
  readonly #weather: Weather;
  readonly #memory: Memory;
  readonly #own: Platform;
  /** A process of its own, which nobody kills. */
  readonly #network: Platform;
  readonly #chance: Prng;
  readonly #worldMs: () => number;
  readonly count: (what: string) => void;
  #news = new Map<Ulid, ClaimRef>();

  constructor(parts: {
    server: Server;
    weather: Weather;
    memory: Memory;
    own: Platform;
    network: Platform;
    chance: Prng;
    worldMs: () => number;
    count: (what: string) => void;
  }) {
    this.#server = parts.server;
    this.#weather = parts.weather;
    this.#memory = parts.memory;
    this.#own = parts.own;
    this.#network = parts.network;
    this.#chance = parts.chance;
    this.#worldMs = parts.worldMs;
    this.count = parts.count;
  }

  async look(ids: readonly Ulid[] | "all"): Promise<RemoteClaims> {
    const heard = await this.#exchange(() => {
      const claims = new Map<Ulid, ClaimRef>();
      for (const id of ids === "all" ? this.#server.claims.keys() : ids) {
        const tip = this.#server.tip(id);
        if (tip !== null) claims.set(id, { oid: tip.oid, reading: { record: tip.record } });
      }
      return claims;
    });
    if (heard === "lost") throw unreachable();
    for (const [id, ref] of heard) this.#news.set(id, ref);
    return { claims: heard, highestToken: 0 };
  }

  async recall(ids: readonly Ulid[]): Promise<RemoteClaims | null> {
    return this.#memory.size === 0
      ? null
      : { claims: new Map([...this.#memory].filter(([id]) => ids.includes(id))), highestToken: 0 };
  }

  async make(updates: readonly ClaimUpdate[]): Promise<readonly MadeUpdate[]> {
    const atMs = this.#own.clock.wallMs();
    return updates.map((update) => ({ ...update, atMs, oid: this.#server.nextOid() }));
  }

  async push(
    sent: readonly MadeUpdate[],
    isAtomic: boolean,
    isPublish = false,
  ): Promise<readonly PushOutcome[]> {
    const clockMs = this.#own.clock.wallMs();
    if (this.#weather.isDown) {
      this.count("partition");
      await this.#travel();
      throw unreachable();
    }
    const outcome = await this.#exchange(() => {
      this.count(isPublish ? "publish arrives" : "push arrives");
      return this.#server.apply(sent, isAtomic, { atMs: this.#worldMs(), clockMs, isPublish });
    });
    if (outcome === "lost") return sent.map(({ oid }) => ({ kind: "unclear", oid, why: "no answer" }));
    return sent.map(({ issueId, oid, record }, i) => {
      if (!outcome[i]) return { kind: "rejected", why: "stale info" };
      this.#news.set(issueId, { oid, reading: { record } });
      return { kind: "done", oid };
    });
  }

  async seen(ids: readonly Ulid[] | "all"): Promise<ReadonlyMap<Ulid, ClaimRef>> {
    return new Map([...this.#memory].filter(([id]) => ids === "all" || ids.includes(id)));
  }

  async settle(): Promise<void> {
    for (const [id, ref] of this.#news)
      if (tokenOf(ref) >= tokenOf(this.#memory.get(id))) this.#memory.set(id, ref);
    this.#news = new Map();
  }

  /** `act` happens at the server, or does not; the caller hears of it, or does not. */
  async #exchange<T>(act: () => T): Promise<T | "lost"> {
    const { isDown, losesRequest, losesAnswer } = this.#weather;
    if (isDown) {
      this.count("partition");
      await this.#travel();
      return "lost";
    }
    if (this.#chance.chance(losesRequest)) {
      this.count("request lost");
      await this.#travel();
      return "lost";
    }
    const there = this.#network.timers.sleep(this.#chance.between(1, 60)).done.then(act);
    const result = await there;
    if (this.#chance.chance(losesAnswer)) {
      this.count("answer lost");
      await this.#travel();
      return "lost";
    }
    await this.#travel();
    return result;
  }

  async #travel(): Promise<void> {
    await this.#own.timers.sleep(this.#chance.between(1, 60)).done;
  }
}

function unreachable(): CotenantError {
  return new CotenantError("E_REMOTE_UNREACHABLE", "the simulated remote does not answer");
}
