/**
 * Clients of a running daemon, all in one process: `node daemon-clients.cjs '{"root": …, "clients": 64, "forMs": …}'`. Each has a
 * connection of its own and takes and gives back a key of its own, over and over. They keep no secrets on the disk, as a session
 * does: its time is not the daemon's.
 */
import { createHash } from "node:crypto";
import type { Coordinator } from "../src/coordinator/contract";
import { Workspace } from "../src/coordinator/workspace";
import { DaemonCoordinator } from "../src/daemon/client";
import { daemonPlace, readRecord } from "../src/daemon/place";
import type { Actor } from "../src/kernel/commands";
import { type AgentId, makeUlid, type SessionId } from "../src/kernel/ids";
import type { LeaseKey } from "../src/kernel/keys";
import { thisMachine } from "../src/platform/node/this-machine";
import type { Platform } from "../src/platform/platform";

interface Work {
  readonly root: string;
  readonly clients: number;
  readonly warmUpMs: number;
  readonly forMs: number;
}

/** Whoever would go without the daemon here has measured something else. */
const NOBODY = new Proxy({} as Coordinator, {
  get: (_, name) => () => Promise.reject(new Error(`${String(name)} did not go through the daemon`)),
});

async function main(): Promise<void> {
  const { root, clients, warmUpMs, forMs } = JSON.parse(process.argv[2]!) as Work;
  const workspace = await Workspace.open(
    { ...thisMachine(), cwd: root, isTerminal: false },
    { agentId: "agent:bench", doing: "bench", isLongLived: true },
  );
  const { actor } = await workspace.session("write");
  const record = readRecord(daemonPlace(workspace.repository.controlDir));
  if (record === null) throw new Error("no daemon is running");
  const { platform } = workspace.surroundings;
  const all = Array.from({ length: clients }, (_, at) => {
    const coordinator = new DaemonCoordinator({
      platform,
      direct: NOBODY,
      find: () => record,
      policy: workspace.config.policy,
      build: record.build,
      ledger: null,
    });
    const agentId = `agent:client-${at}` as AgentId;
    return new Client(platform, coordinator, { ...actor, agentId, sessionId: "bench" as SessionId });
  });
  await Promise.all(all.map((client) => client.work(warmUpMs)));
  process.send!("ready");
  await new Promise((resolve) => process.once("message", resolve));
  const started = performance.now();
  const waits = (await Promise.all(all.map((client) => client.work(forMs)))).flat();
  const rate = (waits.length / (performance.now() - started)) * 1_000;
  process.send!({ rate, waits }, () => process.exit(0));
}

class Client {
  readonly #platform: Platform;
  readonly #coordinator: Coordinator;
  readonly #actor: Actor;
  #round = 0;

  constructor(platform: Platform, coordinator: Coordinator, actor: Actor) {
    this.#platform = platform;
    this.#coordinator = coordinator;
    this.#actor = actor;
  }

  /** How long each operation took. */
  async work(forMs: number): Promise<number[]> {
    const waits: number[] = [];
    const until = performance.now() + forMs;
    while (performance.now() < until) {
      const key = `resource:${this.#actor.agentId.replace(":", "-")}-${this.#round++}` as LeaseKey;
      const secret = `secret of ${key}`;
      const secretHash = createHash("sha256").update(secret).digest("hex");
      const actor = this.#actor;
      const leaseId = this.#ulid();
      const begun = performance.now();
      await this.#coordinator.acquire({
        actor,
        keys: [{ key, reach: "repository" }],
        secrets: [],
        secretHash,
        leaseIds: [leaseId],
        ttlSecs: 600,
        bind: "ttl",
        reason: null,
        note: null,
        steal: false,
        wait: null,
        requestId: null,
      });
      const held = performance.now();
      await this.#coordinator.release({
        actor,
        leases: [{ key, leaseId }],
        secrets: [secret],
        secretHash,
        requestId: null,
        reason: null,
      });
      waits.push(held - begun, performance.now() - held);
    }
    return waits;
  }

  #ulid(): ReturnType<typeof makeUlid> {
    return makeUlid(this.#platform.clock.wallMs(), this.#platform.random.bytes(10));
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${(error as Error).stack}\n`);
  process.exit(1);
});
