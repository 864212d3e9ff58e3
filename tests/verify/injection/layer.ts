import { Prng } from "../../../testing/simulator/prng";
import type { Layer, Task } from "../layer";
import type { Point, Tried } from "./hand";
import { type HandProcess, withHands } from "./hands";
import { SCENARIOS, type Scenario } from "./scenarios";
import { ANSWER, type Call, type Kind } from "./trace";

const HANDS = 2;
const CORE = SCENARIOS.filter(({ isCore }) => isCore);
const OTHERS = SCENARIOS.filter(({ isCore }) => !isCore);
/** Of each core command: how many calls that only look are tried with a death. */
const LOOKS = 6;
/** Of each core command: how many second deaths are tried, of the hundreds that there are. */
const SECOND_DEATHS = 40;
/** Calls that may ask for room on the disk. */
const ALLOCATING = new Set(["openat", "write", "pwrite64", "mkdir", "rename", "link", "fsync", "fdatasync"]);

/** strace cannot write half a line; a limit on the size of files can, where the log is the largest of them. */
const SHORT_WRITES: readonly Point[] = [1, 700, 2000].map((bytes) => ({
  scenario: "rotate",
  kind: "SHORT",
  at: { call: "write", nth: bytes, where: ".git/cotenant/claims.jsonl", there: 1 },
}));

const each = (kind: Kind, calls: string) => calls.split(" ").map((call) => `${kind} at ${call}`);

/** VERIFY 4: SIGKILL at every system call that changes something, and again while the next one recovers. */
export const crash: Layer = {
  name: "crash",
  unit: "injection points",
  inTest: 30,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0,
  mustMove: [
    ...each("KILL", "openat write pwrite64 rename link unlink mkdir fcntl fsync fdatasync"),
    "killed before the append",
    "killed after the append",
  ],
  async prove(task) {
    const programme = new Programme(task, crash.name);
    await programme.prove([
      [CORE, (hand, scenario) => programme.play(hand, scenario, deaths)],
      [OTHERS, (hand, scenario) => programme.play(hand, scenario, deaths)],
      [CORE, (hand, scenario) => programme.playLooks(hand, scenario)],
      [CORE, (hand, scenario) => programme.playTwice(hand, scenario)],
    ]);
  },
};

/** VERIFY 5: EIO at every system call, ENOSPC at every one that may need room. Changes first, then looks. */
export const error: Layer = {
  name: "error",
  unit: "injection points",
  inTest: 30,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0,
  mustMove: [
    ...each("EIO", "openat write pwrite64 rename link unlink mkdir fcntl fsync fdatasync"),
    ...each("ENOSPC", "openat write pwrite64 rename mkdir fdatasync"),
    "SHORT at write",
    "answered: done",
    "answered: refused",
    "answered: unknown",
  ],
  async prove(task) {
    const programme = new Programme(task, error.name);
    await programme.prove([
      [CORE, (hand, scenario) => programme.play(hand, scenario, errorsOfChanges)],
      [CORE, (hand, scenario) => programme.play(hand, scenario, errorsOfLooks)],
      [OTHERS, (hand, scenario) => programme.play(hand, scenario, errorsOfChanges)],
      [OTHERS, (hand, scenario) => programme.play(hand, scenario, errorsOfLooks)],
    ]);
  },
};

type Plan = (scenario: Scenario, calls: readonly Call[]) => Point[];

/** Between two changes the files do not differ, so a death at a call that only looks is one at the next change. */
const deaths: Plan = (scenario, calls) =>
  calls
    .filter((call) => call.changes && isFoundAgain(scenario, call, "write"))
    .map((call) => pointAt(scenario.name, "KILL", call));

const errorsOfChanges: Plan = (scenario, calls) => {
  const { name } = scenario;
  const ours = calls.filter(
    (call) => call.changes && call.where !== ANSWER && isFoundAgain(scenario, call, "write") && !isGits(call),
  );
  return [
    ...SHORT_WRITES.filter(({ scenario }) => scenario === name),
    ...ours.map((call) => pointAt(name, "EIO", call)),
    ...ours.filter(({ call }) => ALLOCATING.has(call)).map((call) => pointAt(name, "ENOSPC", call)),
  ];
};

const errorsOfLooks: Plan = (scenario, calls) =>
  calls
    .filter((call) => !call.changes && isFoundAgain(scenario, call, "read", "newfstatat") && !isGits(call))
    .map((call) => pointAt(scenario.name, "EIO", call));

/** Where Git works too, and its calls would fail in the place of ours: a death is only ever ours. */
function isGits({ where }: Call): boolean {
  return where.startsWith("../.cotenant-");
}

/**
 * How often Node reads and writes depends on its children's pipes, and a name that differs from run to run can only be
 * counted among all: where there are children, such calls are not planned.
 */
function isFoundAgain({ sane }: Scenario, { call, where }: Call, ...counted: readonly string[]): boolean {
  return sane === null || !counted.includes(call) || !/^$|</.test(where);
}

function pointAt(scenario: string, kind: Kind, { changes: _, ...at }: Call): Point {
  return { scenario, kind, at };
}

type Round = readonly [
  scenarios: readonly Scenario[],
  play: (hand: HandProcess, scenario: Scenario) => Promise<void>,
];

class Programme {
  readonly #task: Task;
  readonly #layer: string;
  /** Of each scenario: the different states that were left, and the first point that left each. */
  readonly #left = new Map<string, Map<string, Point>>();

  constructor(task: Task, layer: string) {
    this.#task = task;
    this.#layer = layer;
  }

  /** In each round the hands take one scenario after the other. */
  async prove(rounds: readonly Round[]): Promise<void> {
    const { only } = this.#task;
    await withHands(this.#task, HANDS, async (hands) => {
      for (const [scenarios, play] of rounds) {
        const waiting = scenarios.filter(({ name }) => only === null || only.split(",").includes(name));
        const work = async (hand: HandProcess) => {
          for (let next = waiting.shift(); next !== undefined && this.#task.goesOn; next = waiting.shift())
            await play(hand, next);
        };
        await Promise.all(hands.map(work));
      }
    });
  }

  async play(hand: HandProcess, scenario: Scenario, plan: Plan): Promise<void> {
    const points = plan(scenario, await hand.calls(scenario.name));
    const left = this.#left.get(scenario.name) ?? new Map<string, Point>();
    this.#left.set(scenario.name, left);
    for (const point of points) {
      if (!this.#task.goesOn) return;
      const tried = await tryAgain(hand, point);
      this.#note(point, tried);
      if (tried.hit && !left.has(tried.shape)) left.set(tried.shape, point);
    }
    this.#task.count(`points of ${scenario.name}`, points.length);
  }

  /** That a call which only looks leaves nothing new: a few of them, by chance. */
  async playLooks(hand: HandProcess, { name }: Scenario): Promise<void> {
    const looks = (await hand.calls(name)).filter(({ changes }) => !changes);
    for (const look of this.#chance(name).shuffle(looks).slice(0, LOOKS)) {
      if (!this.#task.goesOn) return;
      const point = pointAt(name, "KILL", look);
      const tried = await tryAgain(hand, point);
      const isNew = tried.hit && this.#left.get(name)?.has(tried.shape) !== true;
      this.#note(point, isNew ? { ...tried, wrong: [`it does not only look: ${tried.shape}`] } : tried);
    }
  }

  /** From each state that a death left, the next try is killed, too: some of all the places where it can be. */
  async playTwice(hand: HandProcess, { name }: Scenario): Promise<void> {
    const pairs: Point[] = [];
    for (const point of this.#left.get(name)?.values() ?? [])
      for (const { changes, ...andAt } of await hand.callsOfRecovery(point))
        if (changes) pairs.push({ ...point, andAt });
    for (const point of this.#chance(name).shuffle(pairs).slice(0, SECOND_DEATHS)) {
      if (!this.#task.goesOn) return;
      this.#note(point, await tryAgain(hand, point));
    }
  }

  #chance(name: string): Prng {
    return new Prng(this.#task.seed, name);
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
 * Where a name is made up at random, a call about it can only be counted from the command's start, and Node may do one
 * more or less there: it is counted anew, and tried again.
 */
async function tryAgain(hand: HandProcess, point: Point): Promise<Tried> {
  let tried = await hand.try(point);
  for (let more = 3; !tried.hit && more > 0; more--) {
    const { call, where, there } = point.at;
    const calls = await hand.calls(point.scenario);
    const now = calls.find((c) => c.call === call && c.where === where && c.there === there);
    tried = await hand.try({ ...point, at: now ?? point.at });
  }
  return tried;
}
