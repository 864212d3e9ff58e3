import { Session } from "../../../src/coordinator/session";
import { CotenantError } from "../../../src/errors/cotenant-error";
import { isConfirmed } from "../../../src/features/ledger/confirmations";
import { LedgerCopy } from "../../../src/features/ledger/copy";
import { LedgerCoordinator } from "../../../src/features/ledger/engine";
import { Ledger } from "../../../src/features/ledger/ledger";
import { StateBook } from "../../../src/features/ledger/offline-book";
import { reconcile, withdrawOrphans } from "../../../src/features/ledger/reconcile";
import { StateFile } from "../../../src/features/ledger/state";
import { makeUlid, type Ulid } from "../../../src/kernel/ids";
import type { LeaseKey } from "../../../src/kernel/keys";
import type { Git } from "../../../src/platform/git";
import type { Platform } from "../../../src/platform/platform";
import { Prng, type SimProcess, SimWorld } from "../../../testing/simulator";
import { openParty, sha256 } from "../../store/stage";
import { type Entry, type Memory, Server, SimRemote, type Weather } from "./sim-remote";

const RULES = { skewMs: 2_000, timeoutMs: null, ttlMs: 6_000 };
/** Clocks of machines differ, but by less than the rules allow for. */
const MOST_SKEW_MS = 900;
const TTL_SECS = 6;
const DEEDS = 9;
const MOST_STEPS = 400_000;

interface Clone {
  readonly name: string;
  readonly control: string;
  readonly skewMs: number;
  readonly weather: Weather;
  readonly memory: Memory;
  readonly place: ConstructorParameters<typeof LedgerCopy>[2];
}

/** An agent on a clone, through all its processes. */
interface Life {
  readonly clone: Clone;
  readonly agent: string;
  process: SimProcess;
  left: number;
}

export interface SimVerdict {
  readonly broken: string | null;
  readonly counts: ReadonlyMap<string, number>;
  readonly account: readonly string[];
  readonly fingerprint: string;
}

/** Several clones, a server, a network between them, and everything that can go wrong: all from one seed. */
export class SimStory {
  readonly world: SimWorld;
  readonly server = new Server();
  readonly #chance: Prng;
  readonly #clones: Clone[];
  readonly #issues: Ulid[];
  readonly #network: SimProcess;
  readonly #counts = new Map<string, number>();
  readonly #account: string[] = [];
  readonly #broken: string[] = [];
  readonly #running: Life[] = [];
  #lives = 0;

  constructor(seed: number) {
    this.world = new SimWorld({ seed, sha256, traceLimit: 0 });
    const prng = new Prng(seed, "ledger");
    this.#chance = prng;
    this.#clones = Array.from({ length: prng.between(2, 3) }, (_, n) => this.#clone(n));
    this.#issues = Array.from({ length: prng.between(1, 2) }, (_, n) => makeUlid(1_000 + n, prng.bytes(10)));
    this.#network = this.world.attach("network");
  }

  #clone(n: number): Clone {
    const control = `/m${n}/.git/cotenant`;
    this.world.disk.makePath(`/m${n}/.git`);
    this.world.disk.makePath(`/m${n}/data`);
    const directory = `/m${n}/data`;
    return {
      name: `m${n}`,
      control,
      skewMs: this.#chance.between(-MOST_SKEW_MS, MOST_SKEW_MS),
      weather: {
        isDown: false,
        losesRequest: this.#chance.pick([0, 0.05, 0.2]),
        losesAnswer: this.#chance.pick([0, 0.05, 0.2]),
      },
      memory: new Map(),
      place: {
        directory,
        copy: `${directory}/ledger.git`,
        state: `${directory}/state.json`,
        lock: `${directory}/lock`,
        backups: `${directory}/backups`,
        warnings: [],
      },
    };
  }

  async play(): Promise<SimVerdict> {
    try {
      for (const clone of this.#clones)
        for (let n = this.#chance.between(1, 2); n > 0; n--)
          this.#start(clone, `agent:${clone.name}-${n}`, DEEDS);
      await this.#run();
      await this.#makePeace();
      this.#checkHistory();
    } catch (error) {
      this.#broken.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    return {
      broken: this.#broken[0] ?? null,
      counts: this.#counts,
      account: this.#account,
      fingerprint: this.world.trace.fingerprint,
    };
  }

  /** One agent on one clone, in fine weather, and nothing happens but this. */
  async alone(act: (worker: Worker, issue: Ulid) => Promise<void>): Promise<void> {
    const clone = this.#clones[0]!;
    Object.assign(clone.weather, { losesRequest: 0, losesAnswer: 0 });
    let failed: unknown = null;
    const process = this.world.spawn("alone", (platform) =>
      act(this.#worker(platform, clone, "agent:alone"), this.#issues[0]!).catch((error) => {
        failed = error;
      }),
    );
    await this.world.run({ maxSteps: MOST_STEPS, until: () => !process.isAlive });
    if (failed !== null) throw failed;
  }

  async #run(): Promise<void> {
    const { reason } = await this.world.run({
      maxSteps: MOST_STEPS,
      until: () => this.#broken.length > 0 || this.#running.every(({ process }) => !process.isAlive),
      beforeStep: () => this.#strike(),
    });
    const isOver = this.#running.every(({ process }) => !process.isAlive);
    if (!isOver && this.#broken.length === 0) {
      const waiting = this.world.living().map(({ name }) => name);
      this.#broken.push(`the story does not end (${reason}): ${waiting.join(", ")}`);
    }
  }

  /** Now and then somebody dies, or a cable is pulled. */
  #strike(): void {
    const dice = this.#chance.below(4_000);
    if (dice < 4) {
      const living = this.#running.filter(({ process }) => process.isAlive);
      if (living.length === 0) return;
      const victim = this.#chance.pick(living);
      this.#count("kill");
      this.world.kill(victim.process);
      if (victim.left > 0) this.#start(victim.clone, victim.agent, victim.left);
    } else if (dice < 9) {
      const { weather } = this.#chance.pick(this.#clones);
      weather.isDown = !weather.isDown;
      this.#count(weather.isDown ? "cable pulled" : "cable mended");
    }
  }

  #start(clone: Clone, agent: string, deeds: number): void {
    const life = { clone, agent, left: deeds } as Life;
    const process = this.world.spawn(`${agent}.${++this.#lives}`, (platform) =>
      this.#live(skewed(platform, clone.skewMs), life),
    );
    this.#running.push(Object.assign(life, { process }));
  }

  async #live(platform: Platform, life: Life): Promise<void> {
    const worker = this.#worker(platform, life.clone, life.agent);
    while (life.left > 0) {
      life.left--;
      await this.#deed(worker);
      await platform.timers.sleep(this.#chance.between(0, 3_000)).done;
    }
  }

  #worker(platform: Platform, clone: Clone, agent: string): Worker {
    const party = openParty(platform, agent, { control: clone.control, worktree: "wt:0000000a" });
    const remote = new SimRemote({
      server: this.server,
      weather: clone.weather,
      memory: clone.memory,
      own: platform,
      network: this.#network.platform,
      chance: this.#chance,
      worldMs: () => this.world.elapsedMs,
      count: (what) => this.#count(what),
    });
    const copy = new LedgerCopy(platform, null as unknown as Git, clone.place, null as never, null as never);
    const ledger = new Ledger({
      platform,
      local: party.coordinator,
      policy: party.coordinator.policy,
      remote,
      book: new StateBook(new StateFile(copy), copy, () => {}),
      rules: RULES,
      controlDir: clone.control,
      retries: 3,
      offlineMode: this.#chance.chance(0.7) ? "local" : "fail",
      isPushedAtOnce: true,
      known: async () => new Map(),
    });
    const engine = new LedgerCoordinator(party.coordinator, async () => ledger);
    const session = new Session(platform, engine, party.actor, party.secrets);
    return { platform, party, remote, ledger, session, clone, agent };
  }

  async #deed(worker: Worker): Promise<void> {
    const { session, ledger, agent } = worker;
    const issue = this.#chance.pick(this.#issues);
    const key = `issue:${issue}` as LeaseKey;
    const ref = { key, leaseId: null };
    const what = this.#chance.pick([
      "acquire",
      "acquire",
      "acquire",
      "publish",
      "publish",
      "release",
      "renew",
      "reconcile",
      "sleep",
    ]);
    try {
      if (what === "acquire") {
        const grant = await session.acquire([{ key, reach: "repository" }], { ttlSecs: TTL_SECS });
        this.#count(grant.ledger?.isOffline === true ? "claimed offline" : "claimed");
        if (grant.ledger?.isOffline !== true) this.#checkAcknowledged(issue, grant.leases[0]!.leaseId, agent);
      } else if (what === "publish") await this.#publish(worker, issue);
      else if (what === "release") {
        await session.release([ref]);
        this.#count("released");
      } else if (what === "renew")
        await session.renew([ref], { ttlSecs: null, overrideMax: false, reason: null });
      else if (what === "reconcile") {
        const { confirmed, conflicts } = await reconcile(ledger, session.actor, { most: null });
        this.#count("reconciled", confirmed.length);
        this.#count("conflict", conflicts.length);
      } else await worker.platform.timers.sleep(this.#chance.between(5_000, 15_000)).done;
      this.#note(`${agent}: ${what} ${issue}: done`);
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      this.#note(`${agent}: ${what} ${issue}: ${error.code}`);
      this.#count(`told ${error.code}`);
      // Each clone here has an id of its own.
      if (error.message.includes("another copy of this clone"))
        this.#broken.push(`${agent}: ${error.message}`);
      if (!EXPECTED.has(error.code))
        this.#broken.push(`${agent}'s ${what} is told ${error.code}: ${error.message}`);
    }
  }

  /** As `fence.ts` does it: only under a confirmed claim, and with a new beat on it in the same push. */
  async #publish({ ledger, remote, session, platform }: Worker, issue: Ulid): Promise<void> {
    const lease = (await ledger.standing([issue])).get(issue);
    const confirmation = (await ledger.confirmations([issue])).get(issue);
    const cloneId = await ledger.cloneId(session.actor);
    if (lease === undefined || lease.agentId !== session.actor.agentId) return;
    if (!isConfirmed(lease, confirmation, cloneId, ledger.nowMs))
      return this.#count("publish refused: provisional");
    // It may sleep for as long as it likes between the check and the push.
    await platform.timers.sleep(this.#chance.pick([0, 10, 9_000])).done;
    const record = {
      ...(await ledger.record({ issueId: issue, lease }, session.actor)),
      beatAtMs: ledger.nowMs,
    };
    const update = { issueId: issue, expected: confirmation.oid, record, subject: "" };
    const [outcome] = await remote.push(await ledger.prepare(session.actor, [update]), true, true);
    if (outcome?.kind === "done") {
      this.#count("published");
      await ledger.confirm(session.actor, [{ record, oid: outcome.oid, pushedAtMs: ledger.nowMs }]);
    } else this.#count(outcome?.kind === "unclear" ? "publish unclear" : "publish fenced off");
    await remote.settle();
  }

  // --- what must hold -------------------------------------------------------------------------------------

  /** Acknowledged and not provisional: the ledger's own history has it. */
  #checkAcknowledged(issue: Ulid, leaseId: Ulid, agent: string): void {
    const history = this.server.claims.get(issue) ?? [];
    if (!history.some(({ record }) => record.leaseId === leaseId && record.isHeld))
      this.#broken.push(
        `${agent} was told that it holds ${issue}, and the ledger never had lease ${leaseId}`,
      );
  }

  /** The ledger's own history: one holder at a time, tokens that rise, and publishes in the order of their tokens. */
  #checkHistory(): void {
    for (const [issue, history] of this.server.claims) {
      let published = 0;
      for (const [i, entry] of history.entries()) {
        const before = history[i - 1] ?? null;
        const wrong = before === null ? null : wrongAfter(before, entry);
        if (wrong !== null) this.#broken.push(`${issue}: ${wrong}\n${history.map(told).join("\n")}`);
        if (!entry.isPublish) continue;
        if (entry.record.token < published)
          this.#broken.push(`${issue}: published with ${entry.record.token} after ${published}`);
        published = entry.record.token;
      }
    }
  }

  /** The network is well again, everybody comes to terms, and then nobody holds what the ledger gives to another. */
  async #makePeace(): Promise<void> {
    for (const { weather } of this.#clones)
      Object.assign(weather, { isDown: false, losesRequest: 0, losesAnswer: 0 });
    for (const clone of this.#clones) {
      const process = this.world.spawn(`peace-${clone.name}`, async (platform) => {
        const worker = this.#worker(skewed(platform, clone.skewMs), clone, `agent:${clone.name}-peace`);
        for (let round = 0; round < 3; round++) {
          const look = await worker.remote.look("all");
          await withdrawOrphans(worker.ledger, worker.session.actor, look);
          await reconcile(worker.ledger, worker.session.actor, {
            most: null,
            look: await worker.remote.look("all"),
          });
        }
        const known = await worker.ledger.confirmations(this.#issues);
        const cloneId = await worker.ledger.cloneId(worker.session.actor);
        // Last: one that runs out while it is looked at is neither sure nor held.
        const standing = await worker.ledger.standing(this.#issues);
        for (const [issue, lease] of standing) {
          const tip = this.server.tip(issue);
          const isOurs = tip?.record.isHeld === true && tip.record.leaseId === lease.leaseId;
          const isSure = isConfirmed(lease, known.get(issue), cloneId, worker.ledger.nowMs);
          if (!isOurs || !isSure)
            this.#broken.push(
              `${clone.name} holds ${issue} (${lease.leaseId}, ${isSure ? "confirmed" : "provisional"}) and the ledger has ${tip === null ? "nothing" : told(tip)}`,
            );
          else this.#count("held in the end");
        }
      });
      await this.world.run({ maxSteps: MOST_STEPS, until: () => !process.isAlive });
    }
  }

  #count(what: string, by = 1): void {
    if (by > 0) this.#counts.set(what, (this.#counts.get(what) ?? 0) + by);
  }

  #note(text: string): void {
    this.#account.push(`${(this.world.elapsedMs / 1000).toFixed(3).padStart(9)} s  ${text}`);
  }
}

export type Worker = {
  readonly platform: Platform;
  readonly party: ReturnType<typeof openParty>;
  readonly remote: SimRemote;
  readonly ledger: Ledger;
  readonly session: Session;
  readonly clone: Clone;
  readonly agent: string;
};

const EXPECTED: ReadonlySet<string> = new Set([
  "E_LOCK_CONFLICT",
  "E_RETRIES_EXHAUSTED",
  "E_REMOTE_UNREACHABLE",
  "E_FENCING_MISMATCH",
  "E_LOCK_EXPIRED",
  "E_LOCK_NOT_HELD",
  "E_NOT_FOUND",
]);

/** What may follow what on a claim's ref. */
function wrongAfter(before: Entry, after: Entry): string | null {
  const [old, now] = [before.record, after.record];
  if (old.leaseId === now.leaseId) {
    if (old.token !== now.token)
      return `lease ${now.leaseId} changed its token from ${old.token} to ${now.token}`;
    return !old.isHeld && now.isHeld ? `lease ${now.leaseId} rose from the dead` : null;
  }
  if (now.token <= old.token) return `token ${now.token} after ${old.token}`;
  if (!old.isHeld || old.cloneId === now.cloneId) return null;
  const isOver = old.expiresAtMs !== null && after.clockMs > old.expiresAtMs + RULES.skewMs;
  return isOver
    ? null
    : `${now.agentId} took it from ${old.agentId} ${(old.expiresAtMs ?? 0) - after.clockMs} ms before its time`;
}

function told({ oid, record, atMs, isPublish }: Entry): string {
  return `  ${Math.round(atMs)} ${oid.slice(-4)} ${record.isHeld ? "held" : "over"} ${record.agentId} #${record.token} ${record.leaseId}${isPublish ? " publish" : ""}`;
}

/** A machine whose wall clock is off. */
function skewed(platform: Platform, byMs: number): Platform {
  const { clock } = platform;
  return {
    ...platform,
    clock: {
      wallMs: () => clock.wallMs() + byMs,
      monotonicMs: () => clock.monotonicMs(),
      clockId: () => clock.clockId(),
    },
  };
}
