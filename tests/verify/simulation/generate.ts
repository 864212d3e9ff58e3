import { type FaultableKind, Prng } from "../../../testing/simulator";
import {
  type Deed,
  type Lane,
  type MachineTraits,
  MOMENTS,
  PLACES,
  type ProcessTraits,
  STORY_VERSION,
  type Story,
  type StoryEvent,
  type Trouble,
  type Wanted,
  type When,
} from "./story";

/** Few keys, so that they meet; of every kind, and in every relation that keys can have. */
export const KEYS = [
  "file:a/x",
  "file:a/y",
  "file:a/b/z",
  "file:a/b/c/w",
  "file:q",
  "dir:a",
  "dir:a/b",
  "dir:.",
  "resource:r",
  "issue:01J00000000000000000000000",
  "ref:refs/heads/main",
  "worktree:wt:00000001",
  "scope:config",
] as const;
const AGENTS = ["agent:a", "agent:b", "human:c", "admin:d"] as const;
const SESSIONS = ["default", "default", "default", "second"] as const;
const WORKTREES = ["wt:00000001", "wt:00000001", "wt:00000002"] as const;
const SPACES = ["host", "host", "host", "host", "other-pids", "other-times"] as const;
const SYNCS: readonly FaultableKind[] = ["datasync", "datasyncInBackground", "sync"];

/** The story that a seed tells. */
export function storyOf(seed: number): Story {
  const random = new Prng(seed, "story");
  const processes: ProcessTraits[] = Array.from({ length: random.between(2, 4) }, () => ({
    space: random.chance(0.6) ? "host" : random.pick(SPACES),
    indexLagBytes: random.pick([0, 0, 3_000, 12_000]),
  }));
  const lanes = lanesOf(random, processes.length);
  const deeds = deedsFor(random, lanes);
  return {
    version: STORY_VERSION,
    seed,
    machine: machineOf(random),
    processes,
    lanes,
    events: withTroubles(random, deeds, processes.length),
  };
}

function machineOf(random: Prng): MachineTraits {
  return {
    switchProbability: random.pick([1, 1, 0.5, 0.2, 0.05]),
    writebackProbability: random.pick([0, 0.02, 0.1]),
    mtimeGranularityMs: random.chance(0.1) ? 10 : 0,
    watchDropProbability: random.pick([0, 0, 0.3, 1]),
    lockOrder: random.chance(0.7) ? "fifo" : "random",
    syncFailuresReportedTo: random.chance(0.7) ? "each-descriptor" : "caller-only",
    rotateBytes: random.pick([3_000, 6_000, 1 << 20]),
  };
}

function lanesOf(random: Prng, processes: number): Lane[] {
  const lanes: Lane[] = [];
  const add = (process: number) => {
    const lane = {
      process,
      agent: random.pick(AGENTS),
      session: random.pick(SESSIONS),
      worktree: random.pick(WORKTREES),
    };
    const isThere = lanes.some(
      (other) =>
        other.process === process &&
        other.agent === lane.agent &&
        other.session === lane.session &&
        other.worktree === lane.worktree,
    );
    if (!isThere) lanes.push(lane);
  };
  for (let process = 0; process < processes; process++) add(process);
  // The same agent, session and worktree in two processes, as one-shot commands are.
  if (random.chance(0.3)) lanes[0] = { ...lanes[1]!, process: 0 };
  // Several callers in one process share its batches and its syncs.
  if (random.chance(0.4))
    for (let more = random.between(1, 2); more > 0; more--) add(random.below(processes));
  return lanes;
}

function deedsFor(random: Prng, lanes: readonly Lane[]): Deed[] {
  const deeds: Deed[] = [];
  // A few keys are the favourites of a story; the others keep them company.
  const favourites = random.shuffle([...KEYS]).slice(0, random.between(2, 4));
  const pickKey = () => (random.chance(0.75) ? random.pick(favourites) : random.pick(KEYS));
  for (let id = 1, count = random.between(8, 18); id <= count; id++) {
    const lane = random.below(lanes.length);
    deeds.push({ id, lane, ...deedOf(random, pickKey, lanes.length) } as Deed);
  }
  return deeds;
}

type NakedDeed = Deed extends infer D ? (D extends Deed ? Omit<D, "id" | "lane"> : never) : never;

function deedOf(random: Prng, pickKey: () => string, lanes: number): NakedDeed {
  const repeatable = { requestId: random.chance(0.35), again: random.chance(0.4) };
  const key = pickKey();
  const choice = random.below(100);
  if (choice < 44) return { do: "acquire", ...acquisition(random, pickKey), ...repeatable };
  if (choice < 56)
    return { do: "release", keys: random.chance(0.2) ? [key, pickKey()] : [key], ...repeatable };
  if (choice < 64) return { do: "renew", key, ttlSecs: random.pick([1, 5, 600]), ...repeatable };
  if (choice < 67) return { do: "heartbeat", key, ...repeatable };
  if (choice < 71) return { do: "transfer", key, to: random.below(lanes), ...repeatable };
  if (choice < 74) return { do: "evict", key, ...repeatable };
  if (choice < 76) return { do: "pretend", key };
  if (choice < 78) return { do: "stop" };
  if (choice < 81) return { do: "gc" };
  if (choice < 84) return { do: "tidy", compact: random.chance(0.5) };
  if (choice < 85) return { do: "recover" };
  if (choice < 92) return { do: "snapshot" };
  if (choice < 95) return { do: "list" };
  if (choice < 96) return { do: "history" };
  if (choice < 97) return { do: "watch" };
  return { do: "rest", ms: random.pick([5, 200, 1_200, 6_000, 31_000]) };
}

function acquisition(random: Prng, pickKey: () => string) {
  const count = random.chance(0.25) ? random.between(2, 4) : 1;
  const wanted = new Map<string, Wanted>();
  for (let i = 0; i < count; i++) {
    const key = pickKey();
    wanted.set(key, { key, reach: random.chance(0.2) ? "worktree" : "repository" });
  }
  return {
    keys: [...wanted.values()],
    ttlSecs: random.pick([1, 1, 5, 600, 600, 0]),
    bind: random.chance(0.2) ? ("process" as const) : ("ttl" as const),
    steal: random.chance(0.15),
    waitMs: random.chance(0.25) ? random.pick([1, 700, 3_000, 8_000]) : null,
  };
}

/** Most stories have some; a few have none, and show that nothing happens where nothing strikes. */
function withTroubles(random: Prng, deeds: readonly Deed[], processes: number): StoryEvent[] {
  const events: StoryEvent[] = [...deeds];
  const kinds = random.shuffle([...TROUBLES]).slice(0, random.pick([0, 1, 1, 2, 2, 3, 4]));
  for (const make of kinds) {
    for (let left = random.between(1, 3); left > 0; left--) {
      const deed = random.pick(deeds);
      const id = events.length + 1;
      const trouble = { id, when: momentIn(random, deed.id), ...make(random, processes) } as Trouble;
      events.splice(events.indexOf(deed) + 1, 0, trouble);
    }
  }
  return events;
}

function momentIn(random: Prng, deed: number): When {
  const on = random.chance(0.5) ? "step" : random.pick(MOMENTS);
  const nth = on === "step" ? random.between(1, 70) : random.pick([1, 1, 1, 2, 3]);
  return { deed, on, nth, whose: random.chance(0.7) ? "its" : "any" };
}

type NakedTrouble = Trouble extends infer T ? (T extends Trouble ? Omit<T, "id" | "when"> : never) : never;

/** What a tree of files cannot show by itself is the likeliest to be missed. */
const SPOILS = ["gone", "gone", "empty", "flip", "zero", "swap"] as const;
const once = { operations: null, place: "anywhere", process: null } as const;

const TROUBLES: readonly ((random: Prng, processes: number) => NakedTrouble)[] = [
  (random, processes) => ({ strike: "kill", process: random.below(processes), zombie: random.chance(0.2) }),
  (random, processes) => ({ strike: "kill", process: random.below(processes), zombie: random.chance(0.2) }),
  (random) => ({ strike: "power", wallJumpMs: random.pick([20_000, 1_000, -5_000, 700_000, -90_000_000]) }),
  (random) => ({ strike: "power", wallJumpMs: random.pick([20_000, 1_000]) }),
  (random, processes) => ({
    strike: "pause",
    process: random.below(processes),
    forMs: random.pick([1, 5, 50, 1_500, 6_000, 12_000, 700_000]),
  }),
  (random) => ({ strike: "clock", ms: random.between(-100_000_000, 100_000_000) }),
  (random) => ({ strike: "clock", ms: random.pick([-3_000, 3_000, -700_000, 700_000, 90_000_000]) }),
  (random) => ({ strike: "time", ms: random.pick([500, 1_100, 6_000, 31_000, 700_000, 2_000_000]) }),
  (random) => ({ strike: "fault", code: "ENOSPC", ...once, ...rate(random), place: random.pick(PLACES) }),
  (random) => ({ strike: "fault", code: "EIO", ...once, ...rate(random), operations: SYNCS, place: "log" }),
  (random) => ({ strike: "fault", code: "EIO", ...once, ...rate(random), place: random.pick(PLACES) }),
  (random) => ({ strike: "fault", code: "EROFS", ...once, ...rate(random) }),
  (random) => ({ strike: "fault", code: "EINTR", ...once, ...rate(random), place: random.pick(PLACES) }),
  (random) => ({ strike: "fault", code: "ESTALE", ...once, ...rate(random), place: random.pick(PLACES) }),
  (random, processes) => ({
    strike: "fault",
    code: "EMFILE",
    ...once,
    ...rate(random),
    process: random.below(processes),
  }),
  () => ({ strike: "drop caches" }),
  ...[1, 2, 3].map(
    () => (random: Prng) =>
      ({ strike: "spoil index", how: random.pick(SPOILS), pick: random.below(1_000) }) as const,
  ),
  (random) => ({ strike: "spoil log", pick: random.below(1_000) }),
];

function rate(random: Prng): { times: number; probability: number } {
  return random.chance(0.5)
    ? { times: random.between(1, 3), probability: 1 }
    : { times: random.between(3, 30), probability: random.pick([0.05, 0.2, 0.5]) };
}
