import type { Counters } from "../../../testing/simulator";
import { play } from "./player";
import {
  type Deed,
  type Lane,
  type Space,
  STORY_VERSION,
  type Story,
  type StoryEvent,
  type Trouble,
} from "./story";

/** What a directed story breaks: a promise, or what it should have been told; and what struck in it. */
export async function tellDirected(
  directed: Directed,
  seed: number,
): Promise<{ readonly broken: string | null; readonly counters: Counters }> {
  const { broken, counters, account, answers } = await play(storyFrom(directed, seed));
  const told = [...Object.entries(directed.answers)].map(([deed, answer]) => {
    const last = answers.get(Number(deed))?.at(-1);
    return last === answer ? null : `#${deed} is told ${last} and not ${answer}`;
  });
  const what = broken ?? told.find((wrong) => wrong !== null) ?? null;
  if (what === null) return { broken: null, counters };
  return { broken: `${directed.name}, seed ${seed}: ${what}\n${account.join("\n")}`, counters };
}

/** An interleaving of PROTOCOL.md, told on purpose instead of met by chance. */
export interface Directed {
  readonly name: string;
  /** The rules of PROTOCOL.md that it is about. */
  readonly rules: readonly number[];
  readonly spaces: readonly Space[];
  /** All of them are one agent, session and worktree, as the commands of one shell are. */
  readonly areOneParty?: boolean;
  readonly syncFailuresReportedTo?: Story["machine"]["syncFailuresReportedTo"];
  readonly events: readonly StoryEvent[];
  /** What each deed is told in the end. Deeds that are not named may be told anything that is true. */
  readonly answers: Readonly<Record<number, string>>;
}

/** One agent per process, each in a worktree of its own. */
export function storyFrom(directed: Directed, seed: number): Story {
  const { spaces, areOneParty = false, syncFailuresReportedTo = "caller-only", events } = directed;
  const lanes: Lane[] = spaces.map((_, process) => ({
    process,
    agent: `agent:${"abcd"[areOneParty ? 0 : process]}`,
    session: "default",
    worktree: `wt:0000000${areOneParty ? 1 : process + 1}`,
  }));
  const machine = {
    switchProbability: 0.5,
    writebackProbability: 0.02,
    mtimeGranularityMs: 0,
    watchDropProbability: 0,
    lockOrder: "fifo",
    syncFailuresReportedTo,
    rotateBytes: 1 << 20,
  } as const;
  return {
    version: STORY_VERSION,
    seed,
    machine,
    processes: spaces.map((space) => ({ space })),
    lanes,
    events,
  };
}

const plain = { requestId: false, again: false } as const;
const acquire = (
  id: number,
  lane: number,
  key: string,
  more: Partial<Extract<Deed, { do: "acquire" }>> = {},
): Deed => ({
  id,
  lane,
  do: "acquire",
  keys: [{ key, reach: "repository" }],
  ttlSecs: 600,
  bind: "ttl",
  steal: false,
  waitMs: null,
  ...plain,
  ...more,
});
const release = (id: number, lane: number, key: string): Deed => ({
  id,
  lane,
  do: "release",
  keys: [key],
  ...plain,
});
const heartbeat = (id: number, lane: number, key: string): Deed => ({
  id,
  lane,
  do: "heartbeat",
  key,
  ...plain,
});
const rest = (id: number, lane: number, ms: number): Deed => ({ id, lane, do: "rest", ms });
const at = (deed: number, on: Trouble["when"]["on"], nth = 1) => ({ deed, on, nth, whose: "its" }) as const;
/** The first process's syncs of the log fail, so often. */
const failingSync = (
  id: number,
  when: Trouble["when"],
  operations: Extract<Trouble, { strike: "fault" }>["operations"],
  times: number,
): Trouble => ({
  ...{ id, when, strike: "fault", code: "EIO", operations },
  ...{ place: "log", process: 0, times, probability: 1 },
});
const host = "host" as const;

export const DIRECTED: readonly Directed[] = [
  {
    name: "a waiter that is stopped loses its place five seconds after its turn came",
    rules: [15],
    spaces: [host, host, host],
    events: [
      acquire(1, 0, "resource:r"),
      rest(2, 1, 100),
      acquire(3, 1, "resource:r", { waitMs: 60_000 }),
      { id: 4, when: at(3, "unlock"), strike: "pause", process: 1, forMs: 100_000 },
      rest(5, 2, 500),
      acquire(6, 2, "resource:r", { waitMs: 30_000 }),
      rest(7, 0, 2_000),
      release(8, 0, "resource:r"),
    ],
    answers: { 6: "done", 3: "E_WAIT_TIMEOUT" },
  },
  {
    name: "a ticket does not bind who holds what it waits for, but everybody else",
    rules: [15, 11],
    spaces: [host, host, host],
    events: [
      acquire(1, 0, "file:a/x"),
      rest(2, 1, 100),
      acquire(3, 1, "dir:a", { waitMs: 8_000 }),
      rest(4, 0, 500),
      acquire(5, 0, "file:a/y"),
      rest(6, 2, 500),
      acquire(7, 2, "file:a/b/z"),
      rest(8, 0, 500),
      release(9, 0, "file:a/x"),
      release(10, 0, "file:a/y"),
    ],
    answers: { 5: "done", 7: "E_QUEUED", 3: "done" },
  },
  {
    name: "activity after a stop does not bring back what somebody has taken since",
    rules: [10],
    spaces: [host, host],
    events: [
      acquire(1, 0, "resource:r"),
      { id: 2, lane: 0, do: "stop" },
      rest(3, 0, 60_000),
      rest(4, 1, 31_000),
      acquire(5, 1, "resource:r"),
      heartbeat(6, 0, "resource:r"),
      acquire(7, 0, "resource:r"),
      release(8, 0, "resource:r"),
    ],
    answers: { 5: "done", 6: "E_FENCING_MISMATCH", 7: "E_LOCK_CONFLICT", 8: "E_FENCING_MISMATCH" },
  },
  {
    name: "the power goes after the unlock and before the sync",
    rules: [4],
    spaces: [host, host],
    events: [
      acquire(1, 0, "resource:before"),
      acquire(2, 0, "resource:r", { requestId: true, again: true }),
      { id: 3, when: at(2, "unlock"), strike: "power", wallJumpMs: 20_000 },
      acquire(4, 1, "resource:other"),
      { id: 5, lane: 1, do: "snapshot" },
    ],
    answers: { 2: "done" },
  },
  {
    name: "who has it already hears so only once it is on the disk, whoever wrote it",
    rules: [4],
    spaces: [host, host],
    areOneParty: true,
    events: [
      acquire(1, 0, "resource:r"),
      { id: 2, when: at(1, "unlock"), strike: "pause", process: 0, forMs: 3_000 },
      rest(3, 1, 500),
      acquire(4, 1, "resource:r"),
    ],
    answers: { 1: "done", 4: "done" },
  },
  {
    name: "a writer dies as soon as it has said how far the index reaches",
    rules: [6],
    spaces: [host, host],
    events: [
      acquire(1, 0, "resource:before"),
      acquire(2, 0, "file:a/x", { requestId: true }),
      { id: 3, when: at(2, "applied"), strike: "kill", process: 0, zombie: false },
      rest(4, 1, 1_000),
      acquire(5, 1, "dir:a"),
    ],
    answers: { 2: "done", 5: "E_LOCK_CONFLICT" },
  },
  {
    name: "a sync fails in one process, and another one's does not; then the power goes",
    rules: [4, 7],
    spaces: [host, host],
    events: [
      acquire(1, 0, "resource:a", { requestId: true }),
      failingSync(2, at(1, "append"), ["datasync"], 1),
      acquire(3, 1, "resource:b", { requestId: true }),
      acquire(4, 1, "resource:c"),
      { id: 5, when: at(4, "append"), strike: "power", wallJumpMs: 20_000 },
      acquire(6, 1, "resource:d"),
    ],
    answers: { 1: "done", 3: "done", 6: "done" },
  },
  {
    name: "a sync that went well is not trusted where another process's has failed",
    rules: [7],
    spaces: [host, host],
    events: [
      acquire(1, 0, "resource:before"),
      acquire(2, 0, "resource:a", { requestId: true }),
      { id: 3, when: at(2, "unlock"), strike: "pause", process: 0, forMs: 100 },
      // Its sync, and those of the copies which it then tries to make.
      failingSync(4, at(2, "unlock"), ["datasync", "sync"], 30),
      rest(5, 1, 50),
      acquire(6, 1, "resource:b"),
      { id: 7, when: at(6, "unlock"), strike: "pause", process: 1, forMs: 300 },
    ],
    answers: { 2: "E_DISK", 6: "done" },
  },
  {
    name: "what was marked as safe before there was a note of a failed sync is not believed after it",
    rules: [4, 7],
    spaces: [host, host, host],
    areOneParty: true,
    events: [
      acquire(1, 0, "resource:before"),
      acquire(2, 0, "resource:a"),
      { id: 3, when: at(2, "unlock"), strike: "pause", process: 0, forMs: 100 },
      // It hears of the failure, and sleeps before it can tell anybody.
      { id: 4, when: at(2, "log sync"), strike: "pause", process: 0, forMs: 300 },
      // Its sync, and those of the copies which it then tries to make.
      failingSync(5, at(2, "unlock"), ["datasync", "sync"], 30),
      rest(6, 1, 50),
      acquire(7, 1, "resource:b"),
      { id: 8, when: at(7, "unlock"), strike: "pause", process: 1, forMs: 150 },
      rest(9, 2, 1_000),
      // Held already, and its line is marked as being on the disk.
      acquire(10, 2, "resource:b"),
    ],
    answers: { 2: "E_DISK", 7: "done", 10: "done" },
  },
  {
    name: "a sync that failed is reported to whoever has the log open too, and nobody believes the file again",
    rules: [4, 7],
    spaces: [host, host],
    syncFailuresReportedTo: "each-descriptor",
    events: [
      acquire(1, 0, "resource:a"),
      acquire(2, 1, "resource:b"),
      rest(3, 0, 100),
      acquire(4, 0, "resource:c", { requestId: true }),
      // The other has the log open, and is between its own line and its sync.
      { id: 5, when: at(4, "unlock"), strike: "pause", process: 0, forMs: 200 },
      failingSync(6, at(4, "append"), ["datasync"], 1),
      rest(7, 1, 200),
      acquire(8, 1, "resource:d", { requestId: true }),
      { id: 9, when: at(8, "unlock"), strike: "pause", process: 1, forMs: 300 },
      { id: 10, lane: 1, do: "snapshot" },
    ],
    answers: { 4: "done", 8: "done", 10: "done" },
  },
  {
    name: "the log is closed under a process that has it open",
    rules: [2, 8],
    spaces: [host, host],
    events: [
      acquire(1, 0, "resource:a", { requestId: true, again: true }),
      rest(2, 1, 100),
      { id: 3, lane: 1, do: "tidy", compact: true },
      rest(4, 0, 200),
      acquire(5, 0, "resource:b"),
      release(6, 0, "resource:a"),
      { id: 7, lane: 0, do: "history" },
      rest(8, 1, 200),
      acquire(9, 1, "resource:a"),
      { id: 10, lane: 1, do: "tidy", compact: true },
    ],
    answers: { 1: "done", 5: "done", 6: "done", 9: "done" },
  },
  {
    name: "readers beside a writer that rotates see one state after the other",
    rules: [9],
    spaces: [host, host],
    events: [
      ...[1, 2, 3, 4, 5, 6].map((id): Deed => ({ id, lane: 1, do: "snapshot" })),
      acquire(7, 0, "dir:a"),
      acquire(8, 0, "file:q"),
      { id: 9, lane: 0, do: "tidy", compact: true },
      release(10, 0, "dir:a"),
      acquire(11, 0, "file:a/x"),
      { id: 12, lane: 1, do: "history" },
    ],
    answers: { 1: "done", 6: "done", 12: "done" },
  },
  {
    name: "readers miss nothing of what stands while something else comes and goes",
    rules: [9],
    spaces: [host, host, host],
    events: [
      acquire(1, 0, "dir:b"),
      rest(2, 1, 50),
      rest(3, 2, 50),
      rest(4, 0, 50),
      ...[5, 6, 7, 8, 9, 10, 11, 12].map((id): Deed => ({ id, lane: 1, do: "snapshot" })),
      ...[13, 14, 15, 16, 17, 18, 19, 20].map((id): Deed => ({ id, lane: 2, do: "list" })),
      ...[5, 6, 7, 8, 9, 10].map(
        (deed): Trouble => ({
          id: 100 + deed,
          when: at(deed, "census read"),
          strike: "pause",
          process: 1,
          forMs: 2,
        }),
      ),
      ...[21, 23, 25, 27].flatMap((id) => [acquire(id, 0, "file:q"), release(id + 1, 0, "file:q")]),
    ],
    answers: { 12: "done", 20: "done", 28: "done" },
  },
  // An even pick leads to the only lease's file, an odd one to the census.
  ...[
    { what: "a lease's file is gone", how: "gone", pick: 2, wanted: "resource:r" },
    { what: "the file of a lease inside is gone", how: "gone", pick: 2, wanted: "dir:a" },
    { what: "the census is zeroed", how: "zero", pick: 1, wanted: "resource:r" },
    { what: "the census is gone", how: "gone", pick: 1, wanted: "dir:a" },
  ].map(
    ({ what, how, pick, wanted }): Directed => ({
      name: `${what}, and whoever asks is told what the log says`,
      rules: [6, 9],
      spaces: [host, host],
      events: [
        acquire(1, 0, wanted === "dir:a" ? "file:a/x" : wanted),
        rest(2, 0, 50),
        { id: 3, when: at(2, "step"), strike: "spoil index", how: how as "gone" | "zero", pick },
        rest(4, 1, 1_000),
        { id: 5, lane: 1, do: "snapshot" },
        acquire(6, 1, wanted),
      ],
      answers: { 1: "done", 5: "done", 6: "E_LOCK_CONFLICT" },
    }),
  ),
  {
    name: "another time namespace counts as another clock, and the wall decides",
    rules: [13],
    spaces: ["other-times", host, host],
    events: [
      acquire(1, 0, "resource:r", { ttlSecs: 5 }),
      rest(2, 1, 6_000),
      acquire(3, 1, "resource:r"),
      rest(4, 2, 8_000),
      acquire(5, 2, "resource:r"),
    ],
    answers: { 3: "E_LOCK_CONFLICT", 5: "done" },
  },
  {
    name: "who died in another pid namespace is not proved dead, who died here is",
    rules: [12],
    spaces: ["other-pids", host, host],
    events: [
      acquire(1, 0, "resource:far", { bind: "process" }),
      rest(2, 0, 50),
      { id: 3, when: at(2, "step"), strike: "kill", process: 0, zombie: false },
      acquire(4, 1, "resource:near", { bind: "process" }),
      rest(5, 1, 50),
      { id: 6, when: at(5, "step"), strike: "kill", process: 1, zombie: true },
      rest(7, 2, 1_000),
      acquire(8, 2, "resource:near"),
      acquire(9, 2, "resource:far"),
      rest(10, 2, 1_900_000),
      acquire(11, 2, "resource:far"),
    ],
    answers: { 8: "done", 9: "E_LOCK_CONFLICT", 11: "done" },
  },
];
