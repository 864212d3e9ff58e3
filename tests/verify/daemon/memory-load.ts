import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import * as net from "node:net";
import { join } from "node:path";
import type { Coordinator } from "../../../src/coordinator/contract";
import { Workspace } from "../../../src/coordinator/workspace";
import { DaemonCoordinator } from "../../../src/daemon/client";
import { hookPlace } from "../../../src/daemon/hook-place";
import { type DaemonRecord, daemonPlace, PROTOCOL, readRecord } from "../../../src/daemon/place";
import type { Actor } from "../../../src/kernel/commands";
import { type AgentId, makeUlid, type Ulid } from "../../../src/kernel/ids";
import type { LeaseKey } from "../../../src/kernel/keys";
import { thisMachine } from "../../../src/platform/node/this-machine";
import { Prng } from "../../../testing/simulator/prng";
import { post } from "../../daemon/guard-stage";
import type { Place } from "../linearizability/place";

const CLIENTS = 16;
/** Every so many rounds somebody new is at it, and somebody comes who leaves again. */
const SAME_FOR = 4;

/** A daemon on a busy machine may be too late now and then; mostly it must not be. */
const MOST_PAST_IT = 0.01;

interface GuardDoor {
  readonly socket: string;
  readonly token: string;
}

/** What many agents ask of one daemon for a long time. */
export class MemoryLoad {
  operations = 0;
  readonly #workspace: Workspace;
  readonly #record: DaemonRecord;
  readonly #actor: Actor;
  readonly #program: string;
  readonly #guard: GuardDoor;
  readonly #chance: Prng;
  #clients: DaemonCoordinator[];
  #round = 0;
  #past = 0;
  #counts: Record<string, number> = {};

  private constructor(
    workspace: Workspace,
    record: DaemonRecord,
    actor: Actor,
    program: string,
    guard: GuardDoor,
    seed: number,
  ) {
    this.#workspace = workspace;
    this.#record = record;
    this.#actor = actor;
    this.#program = program;
    this.#guard = guard;
    this.#chance = new Prng(seed, "memory");
    this.#clients = Array.from({ length: CLIENTS }, () => this.#connect());
  }

  static async on({ worktrees, env, control }: Place, program: string, seed: number): Promise<MemoryLoad> {
    const surroundings = { ...thisMachine(), env, home: env["HOME"]!, cwd: worktrees[0]!, isTerminal: false };
    const flags = { agentId: "agent:load", doing: "verification", isLongLived: true };
    const workspace = await Workspace.open(surroundings, flags);
    const { actor } = await workspace.session("write");
    const record = readRecord(daemonPlace(workspace.repository.controlDir));
    if (record === null) throw new Error("no daemon is running");
    const hooks = hookPlace(control, { env, home: env["HOME"]! })!;
    const guard = JSON.parse(readFileSync(hooks.record, "utf8")) as GuardDoor;
    return new MemoryLoad(workspace, record, actor, program, guard, seed);
  }

  /** What came of it, by kind. */
  async round(): Promise<Readonly<Record<string, number>>> {
    this.#counts = {};
    this.#round++;
    const visits = [this.#watches(), this.#passesBy(), this.#isGuarded(), this.#isGuarded()];
    await Promise.all([...this.#clients.map((client, at) => this.#work(client, at)), ...visits]);
    if (this.#round % SAME_FOR === 0) this.#replaceOne();
    return this.#counts;
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.#workspace.store.close();
  }

  #count(what: string): void {
    this.operations++;
    this.#counts[what] = (this.#counts[what] ?? 0) + 1;
  }

  #connect(): DaemonCoordinator {
    return new DaemonCoordinator({
      platform: this.#workspace.surroundings.platform,
      direct: this.#pastIt(),
      find: () => this.#record,
      policy: this.#workspace.config.policy,
      build: this.#record.build,
      ledger: null,
    });
  }

  /** Without the daemon, and counted. */
  #pastIt(): Coordinator {
    const { coordinator } = this.#workspace;
    return new Proxy(coordinator as Coordinator, {
      get: (_, name) => {
        if (++this.#past > 10 + MOST_PAST_IT * this.operations)
          throw new Error(
            `${this.#past} of ${this.operations} operations went past the daemon, ${String(name)} the last`,
          );
        const method = coordinator[name as keyof Coordinator] as (...args: unknown[]) => unknown;
        return method.bind(coordinator);
      },
    });
  }

  #replaceOne(): void {
    const at = this.#chance.below(CLIENTS);
    this.#clients[at]!.close();
    this.#clients[at] = this.#connect();
    this.#counts["clients that left"] = 1;
  }

  async #work(client: DaemonCoordinator, at: number): Promise<void> {
    const era = Math.floor(this.#round / SAME_FOR);
    const actor = { ...this.#actor, agentId: `agent:a${at}-${era}` as AgentId };
    // Every eighth is after the same key, and mostly refused.
    const isContended = at % 8 === 0;
    const key = (isContended ? "resource:all" : `resource:k${at}-${this.#round}`) as LeaseKey;
    const secret = `secret of ${actor.agentId}`;
    const secretHash = createHash("sha256").update(secret).digest("hex");
    const leaseId = this.#ulid();
    try {
      await client.acquire({
        actor,
        keys: [{ key, reach: "repository" }],
        secrets: [],
        secretHash,
        leaseIds: [leaseId],
        ttlSecs: 60,
        bind: "ttl",
        reason: null,
        note: null,
        steal: false,
        wait: null,
        requestId: null,
      });
      this.#count("grants");
    } catch (error) {
      if ((error as { code?: unknown }).code !== "E_LOCK_CONFLICT") throw error;
      this.#count("refusals");
      return;
    }
    const holding = { actor, leases: [{ key, leaseId }], secrets: [secret], secretHash, requestId: null };
    await client.renew({ ...holding, ttlSecs: null, overrideMax: false, reason: null });
    this.#count("renewals");
    await client.release({ ...holding, reason: null });
    this.#count("releases");
  }

  /** Somebody follows what happens, has heard of something, and goes. */
  async #watches(): Promise<void> {
    const { socket, token } = this.#record;
    const said = await converse(
      socket,
      [
        frame(1, "hello", { token, protocol: PROTOCOL, build: "none", clock_id: "" }),
        frame(2, "follow_losses", { refs: [{ key: null, lease_id: this.#ulid() }] }),
        frame(3, "watch", {}),
        frame(4, "list", {}),
      ].join(""),
      (text) => text.includes('"method":"event"'),
    );
    if (!said.includes('"method":"event"')) throw new Error(`nobody was told anything: ${said}`);
    this.#count("watches");
  }

  /** And somebody leaves in the middle of a word. */
  async #passesBy(): Promise<void> {
    const { socket, token } = this.#record;
    const hello = frame(1, "hello", { token, protocol: PROTOCOL, build: "none", clock_id: "" });
    const half = hello.slice(0, this.#chance.below(hello.length));
    await converse(
      socket,
      this.#chance.chance(0.5) ? `${hello}{"jsonrpc":"2.0","id":2,"meth` : half,
      () => true,
    );
    this.#count("clients that left");
  }

  async #isGuarded(): Promise<void> {
    const cwd = this.#workspace.repository.worktreeRoot;
    const event = {
      session_id: `${String(Math.floor(this.#round / SAME_FOR)).padStart(8, "0")}-0000-4000-8000-000000000000`,
      cwd,
      hook_event_name: "PreToolUse",
      tool_name: this.#chance.chance(0.2) ? "Read" : "Edit",
      tool_input: { file_path: join(cwd, "src/held.ts"), old_string: "a", new_string: "b" },
    };
    const text = post(event, {
      headers: {
        Authorization: `Bearer ${this.#guard.token}`,
        "Cotenant-Program": `[${this.#program}]`,
        "Cotenant-Cwd": `[${cwd}]`,
        "Cotenant-Limit": "2",
        Connection: "close",
      },
    });
    const said = await converse(this.#guard.socket, text, null);
    if (!said.startsWith("HTTP/1.1 200 ")) throw new Error(`a hook was not answered: ${said}`);
    this.#count("guard events");
  }

  #ulid(): Ulid {
    const { clock, random } = this.#workspace.surroundings.platform;
    return makeUlid(clock.wallMs(), random.bytes(10));
  }
}

function frame(id: number, method: string, params: object): string {
  return `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
}

/** Says something and leaves when it has heard enough; null: when the other side does. */
function converse(
  path: string,
  text: string,
  isEnough: ((heard: string) => boolean) | null,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = "";
    const socket = net.connect(path, () => {
      socket.write(text, () => {
        if (isEnough?.(heard) === true) socket.destroy();
      });
    });
    socket.setEncoding("utf8").on("data", (part: string) => {
      heard += part;
      if (isEnough?.(heard) === true) socket.destroy();
    });
    socket.setTimeout(60_000, () => socket.destroy(new Error(`no answer: ${heard}`)));
    socket.once("error", reject);
    socket.once("close", () => resolve(heard));
  });
}
