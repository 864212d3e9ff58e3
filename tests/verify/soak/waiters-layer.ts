import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { Prng } from "../../../testing/simulator/prng";
import { removeTree } from "../../support/remove-tree";
import type { Layer, Task } from "../layer";
import { memoryFolder } from "../memory";

const CROWD = 200;
/** At first, for whoever has no time for all of them. */
const FEW = 40;
/** One in so many. */
const KILLED = 20;
const KEY = "held.ts";
const MOST_MS = 20 * 60_000;

/** S84: 200 command lines wait for one key; some are killed meanwhile. Each of the others gets it once, in order, and none fails. */
export const waiters: Layer = {
  name: "waiters",
  unit: "waiters",
  inTest: 0,
  inVerify: FEW + CROWD,
  share: 0,
  mustMove: ["granted", "killed while they waited"],
  async prove(task) {
    const program = await task.program();
    for (let round = 0; task.goesOn; round++) {
      const place = fs.mkdtempSync(join(memoryFolder(), "cotenant-waiters-"));
      const crowd = round === 0 ? FEW : CROWD;
      const queue = new Queue(task, place, program, new Prng(task.seed, `round ${round}`));
      try {
        await queue.run(crowd);
      } finally {
        // Whoever still runs would write there while it is removed, and hide why.
        await queue.end();
        removeTree(place);
      }
    }
  },
};

interface Ran {
  readonly status: number | null;
  readonly said: string;
}

class Queue {
  readonly #task: Task;
  readonly #root: string;
  readonly #program: string;
  readonly #chance: Prng;
  readonly #waiting = new Map<string, ChildProcess>();
  readonly #running = new Map<ChildProcess, Promise<Ran>>();
  readonly #killed = new Set<string>();
  readonly #failures: string[] = [];

  constructor(task: Task, root: string, program: string, chance: Prng) {
    this.#task = task;
    this.#root = root;
    this.#program = program;
    this.#chance = chance;
  }

  async run(crowd: number): Promise<void> {
    execFileSync("git", ["init", "--quiet", this.#root]);
    await this.#expect("agent:holder", "lock", "acquire", KEY, "--ttl", "86400");
    const names = Array.from({ length: crowd }, (_, i) => `agent:w${i}`);
    const done = names.map((name) => this.#waitAndRelease(name));
    await this.#until(() => this.#joined().length + this.#failures.length >= crowd);
    const order = this.#joined();
    for (const name of this.#chance.shuffle([...order]).slice(0, crowd / KILLED)) {
      this.#killed.add(name);
      this.#waiting.get(name)?.kill("SIGKILL");
    }
    await this.#expect("agent:holder", "lock", "release", KEY);
    await Promise.all(done);
    this.#task.tried += crowd;
    this.#judge(order.filter((name) => !this.#killed.has(name)));
  }

  async #waitAndRelease(name: string): Promise<void> {
    const words = ["lock", "acquire", KEY, "--wait", "--timeout", "3600", "--ttl", "86400"];
    const { status, said } = await this.#start(name, words, (child) => this.#waiting.set(name, child));
    if (this.#killed.has(name)) return;
    if (status !== 0) this.#failures.push(`${name} ended with ${status}: ${said}`);
    else await this.#expect(name, "lock", "release", KEY);
  }

  #judge(expected: readonly string[]): void {
    const lines = fs
      .readFileSync(join(this.#root, ".git/cotenant/claims.jsonl"), "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Line);
    const changes = lines.filter(({ event_type: type }) => /^claim\.(acquired|released)$/.test(type));
    const granted = changes.filter(({ event_type: type }) => type === "claim.acquired").slice(1);
    const gaps = changes
      .flatMap((line, i) => {
        const before = changes[i - 1];
        const isHandOver = line.event_type === "claim.acquired" && before?.event_type === "claim.released";
        return isHandOver ? Date.parse(line.timestamp) - Date.parse(before.timestamp) : [];
      })
      .sort((a, b) => a - b);
    const task = this.#task;
    task.count("granted", granted.length);
    task.count("killed while they waited", this.#killed.size);
    task.count("hand-over p50, ms", gaps[gaps.length >> 1] ?? 0);
    task.count("hand-over p99, ms", gaps[Math.floor(gaps.length * 0.99)] ?? 0);
    const replay = `npm run verify -- --layer waiters --seed ${task.seed}`;
    for (const failure of this.#failures) task.broke(failure, replay);
    const order = granted.map(({ actor }) => actor.agent_id);
    if (order.join() !== expected.join())
      task.broke(`served ${order.join(" ")}\n  instead of ${expected.join(" ")}`, replay);
  }

  /** Who waits, in the order of the tickets. */
  #joined(): string[] {
    const queue = join(this.#root, ".git/cotenant/queue");
    const names = fs.existsSync(queue) ? fs.readdirSync(queue).sort() : [];
    return names
      .filter((name) => name.endsWith(".json"))
      .flatMap((name) => /"agent_id":"([^"]+)"/.exec(readIfThere(join(queue, name)))?.[1] ?? []);
  }

  async end(): Promise<void> {
    for (const child of this.#running.keys()) child.kill("SIGKILL");
    await Promise.all(this.#running.values());
  }

  async #expect(agent: string, ...words: string[]): Promise<void> {
    const { status, said } = await this.#start(agent, words);
    if (status !== 0) this.#failures.push(`${agent} ${words.join(" ")} ended with ${status}: ${said}`);
  }

  #start(agent: string, words: readonly string[], started: (child: ChildProcess) => void = () => {}) {
    const env = { PATH: process.env["PATH"], HOME: this.#root, COTENANT_AGENT_ID: agent };
    const child = spawn(process.execPath, [this.#program, ...words], { cwd: this.#root, env });
    started(child);
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (text) => {
        said += text;
      });
    const ran = new Promise<Ran>((resolve) => child.on("close", (status) => resolve({ status, said })));
    this.#running.set(child, ran);
    return ran.finally(() => this.#running.delete(child));
  }

  async #until(condition: () => boolean): Promise<void> {
    for (const startedMs = performance.now(); !condition(); ) {
      if (performance.now() - startedMs > MOST_MS) throw new Error("they never came to wait");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** A ticket that is given back goes while others are looked at. */
function readIfThere(file: string): string {
  try {
    return fs.readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}

interface Line {
  readonly event_type: string;
  readonly timestamp: string;
  readonly actor: { readonly agent_id: string };
}
