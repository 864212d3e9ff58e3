import { Prng } from "../../../src/platform/sim/prng";
import type { Layer, Task } from "../layer";
import type { Point, Tried } from "./hand";
import { type HandProcess, withHands } from "./hands";
import { SCENARIOS, type Scenario } from "./scenarios";
import { ANSWER, type Call, type Kind } from "./trace";

const HANDS = 2;
/** Of each core command: how many second deaths are tried, of the hundreds that there are. */
const SECOND_DEATHS = 40;
/** Calls that may ask for room on the disk. */
const ALLOCATING = new Set(["openat", "write", "pwrite64", "mkdir", "rename", "link", "fsync", "fdatasync"]);

/** strace cannot write half a line; a limit on the size of files can, where the log is the largest of them. */
const SHORT_WRITES: readonly Point[] = [1, 700, 2000].map((bytes) => ({
  scenario: "rotate",
  kind: "SHORT",
  at: { call: "write", nth: bytes, where: ".git/cotenant/claims.jsonl" },
}));

const each = (kind: Kind, calls: string) => calls.split(" ").map((call) => `${kind} at ${call}`);

/** VERIFY 4: SIGKILL at every system call that changes something, and again while the next one recovers. */
export const crash: Layer = {
  name: "crash",
  unit: "injection points",
  inTest: 220,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0,
  mustMove: [
    ...each("KILL", "openat write pwrite64 rename link unlink mkdir fcntl fsync fdatasync"),
    "killed before the append",
    "killed after the append",
  ],
  prove: (task) => new Programme(task, "crash", pointsOfDeath).prove(true),
};

/** VERIFY 5: EIO at every system call, ENOSPC at every one that may need room. */
export const error: Layer = {
  name: "error",
  unit: "injection points",
  inTest: 600,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0,
  mustMove: [
    ...each("EIO", "openat read close statx write pwrite64 rename mkdir fcntl fdatasync"),
    ...each("ENOSPC", "openat write pwrite64 rename mkdir fdatasync"),
    "SHORT at write",
    "answered: done",
    "answered: refused",
    "answered: unknown",
  ],
  prove: (task) => new Programme(task, "error", pointsOfError).prove(false),
};

/** Between two changes the files do not differ, so a death at a call that only looks is one at the next change. */
function pointsOfDeath({ name }: Scenario, calls: readonly Call[]): Point[] {
  return calls.filter(({ changes }) => changes).map((call) => pointAt(name, "KILL", call));
}

function pointsOfError({ name }: Scenario, calls: readonly Call[]): Point[] {
  const ours = calls.filter(({ where }) => where !== ANSWER);
  const allocating = ours.filter(({ call, changes }) => changes && ALLOCATING.has(call));
  return [
    ...ours.map((call) => pointAt(name, "EIO", call)),
    ...allocating.map((call) => pointAt(name, "ENOSPC", call)),
    ...SHORT_WRITES.filter(({ scenario }) => scenario === name),
  ];
}

function pointAt(scenario: string, kind: Kind, { call, nth, where }: Point["at"]): Point {
  return { scenario, kind, at: { call, nth, where } };
}

type Plan = (scenario: Scenario, calls: readonly Call[]) => Point[];

class Programme {
  readonly #task: Task;
  readonly #layer: string;
  readonly #plan: Plan;
  /** Points after which the files looked different from after any other, in the order of the command. */
  readonly #distinct = new Map<string, Point[]>();

  constructor(task: Task, layer: string, plan: Plan) {
    this.#task = task;
    this.#layer = layer;
    this.#plan = plan;
  }

  /** Hands take one scenario after the other, those that `npm test` must have tried first. */
  async prove(withSecondDeaths: boolean): Promise<void> {
    const { only } = this.#task;
    const meant = SCENARIOS.filter(({ name }) => only === null || only.split(",").includes(name));
    const core = meant.filter(({ isCore }) => isCore);
    await withHands(this.#task, HANDS, async (hands) => {
      await this.#share(hands, [...core, ...meant.filter(({ isCore }) => !isCore)], (hand, scenario) =>
        this.#play(hand, scenario),
      );
      if (withSecondDeaths)
        await this.#share(hands, core, (hand, scenario) => this.#playTwice(hand, scenario));
    });
  }

  async #share(
    hands: readonly HandProcess[],
    scenarios: readonly Scenario[],
    play: (hand: HandProcess, scenario: Scenario) => Promise<void>,
  ): Promise<void> {
    const waiting = [...scenarios];
    const work = async (hand: HandProcess) => {
      for (let next = waiting.shift(); next !== undefined && this.#task.goesOn; next = waiting.shift())
        await play(hand, next);
    };
    await Promise.all(hands.map(work));
  }

  async #play(hand: HandProcess, scenario: Scenario): Promise<void> {
    const points = this.#plan(scenario, await hand.calls(scenario.name));
    const shapes = new Map<string, Point>();
    for (const point of points) {
      if (!this.#task.goesOn) return;
      const tried = await tryAgain(hand, point);
      this.#note(point, tried);
      if (!shapes.has(tried.shape)) shapes.set(tried.shape, point);
    }
    this.#distinct.set(scenario.name, [...shapes.values()]);
    this.#task.count("commands");
    this.#task.count(`points of ${scenario.name}`, points.length);
  }

  /** From each state that a death left, the next try is killed, too: a fair choice of all the places where it can be. */
  async #playTwice(hand: HandProcess, { name }: Scenario): Promise<void> {
    const pairs: Point[] = [];
    for (const point of this.#distinct.get(name) ?? [])
      for (const call of await hand.callsOfRecovery(point))
        if (call.changes)
          pairs.push({ ...point, andAt: { call: call.call, nth: call.nth, where: call.where } });
    for (const point of new Prng(this.#task.seed, name).shuffle(pairs).slice(0, SECOND_DEATHS)) {
      if (!this.#task.goesOn) return;
      this.#note(point, await tryAgain(hand, point));
    }
  }

  #note(point: Point, tried: Tried): void {
    const { scenario, kind, at, andAt } = point;
    const task = this.#task;
    task.tried++;
    const second =
      andAt === undefined ? "" : `, then KILL at ${andAt.call} number ${andAt.nth} (${andAt.where})`;
    const name = `${scenario}: ${kind} at ${at.call} number ${at.nth} (${at.where})${second}`;
    const replay = `npm run verify -- --layer ${this.#layer} --seed ${task.seed} --case ${scenario}`;
    for (const what of tried.seen) task.count(what);
    if (!tried.hit) {
      task.count("missed");
      task.broke(`${name} was planned and never reached`, replay);
    } else if (tried.wrong.length > 0)
      task.broke(`${name}:\n  ${[...new Set(tried.wrong)].join("\n  ")}`, replay);
  }
}

/**
 * Again where it was missed: beside a Git process a command may do a call more or less, by when a signal comes. Where
 * names are made up at random, calls can only be counted from the command's start.
 */
async function tryAgain(hand: HandProcess, point: Point): Promise<Tried> {
  let tried = await hand.try(point);
  for (let more = 3; !tried.hit && more > 0; more--) tried = await hand.try(point);
  return tried;
}
