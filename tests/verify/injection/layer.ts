import { Prng } from "../../../src/platform/sim/prng";
import type { Layer, Task } from "../layer";
import type { Point, Tried } from "./hand";
import { type HandProcess, withHands } from "./hands";
import { SCENARIOS, type Scenario } from "./scenarios";
import { ANSWER, type Call, type Kind } from "./trace";

const HANDS = 2;
/** Calls that may ask for room on the disk. */
const ALLOCATING = new Set(["openat", "write", "pwrite64", "mkdir", "rename", "link", "fsync", "fdatasync"]);

/** VERIFY 4: SIGKILL at every system call that changes something, and again while the next one recovers. */
export const crash: Layer = {
  name: "crash",
  unit: "injection points",
  inTest: 300,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0,
  mustMove: [
    ..."openat write pwrite64 rename mkdir fcntl fdatasync".split(" ").map((call) => `KILL at ${call}`),
    "killed before the append",
    "killed after the append",
  ],
  prove: (task) => prove(task, "crash", pointsOfDeath),
};

/** VERIFY 5: EIO at every system call, ENOSPC at every one that may need room. */
export const error: Layer = {
  name: "error",
  unit: "injection points",
  inTest: 900,
  inVerify: Number.MAX_SAFE_INTEGER,
  share: 0,
  mustMove: [
    ..."openat read close statx write pwrite64 rename mkdir fcntl fdatasync"
      .split(" ")
      .map((call) => `EIO at ${call}`),
    ..."write pwrite64 openat".split(" ").map((call) => `ENOSPC at ${call}`),
    "answered: done",
    "answered: refused",
    "answered: unknown",
  ],
  prove: (task) => prove(task, "error", pointsOfError),
};

type Points = (scenario: Scenario, calls: readonly Call[]) => Point[];

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
  ];
}

function pointAt(scenario: string, kind: Kind, { call, nth, where }: Call): Point {
  return { scenario, kind, at: { call, nth, where } };
}

async function prove(task: Task, layer: string, points: Points): Promise<void> {
  const waiting = SCENARIOS.toSorted((a, b) => Number(b.isCore) - Number(a.isCore));
  await withHands(task, HANDS, async (hands) => {
    const work = async (hand: HandProcess) => {
      for (let next = waiting.shift(); next !== undefined && task.goesOn; next = waiting.shift())
        await play(task, layer, hand, next, points);
    };
    await Promise.all(hands.map(work));
  });
}

async function play(
  task: Task,
  layer: string,
  hand: HandProcess,
  scenario: Scenario,
  points: Points,
): Promise<void> {
  const planned = points(scenario, await hand.calls(scenario.name));
  for (const point of planned) {
    if (!task.goesOn) return;
    note(task, layer, point, await tryTwice(hand, point));
  }
  task.count(`whole: ${scenario.name}`);
  task.count(`points of ${scenario.name}`, planned.length);
}

/** Once more where it was missed: with another pid, or over a second's edge, a command may do a call more or less. */
async function tryTwice(hand: HandProcess, point: Point): Promise<Tried> {
  const tried = await hand.try(point);
  return tried.hit ? tried : hand.try(point);
}

function note(task: Task, layer: string, point: Point, tried: Tried): void {
  task.tried++;
  const { scenario, kind, at } = point;
  const name = `${scenario}: ${kind} at ${at.call} number ${at.nth} (${at.where})`;
  const replay = `npm run verify -- --layer ${layer} --seed ${task.seed}`;
  if (!tried.hit) {
    task.count("missed");
    task.broke(`${name} was planned and never reached`, replay);
  }
  for (const what of tried.seen) task.count(what);
  if (tried.wrong.length > 0) task.broke(`${name}:\n  ${[...new Set(tried.wrong)].join("\n  ")}`, replay);
}

export const unused = Prng;
