import type { FaultableKind, FaultCode } from "../../../testing/simulator";

/**
 * Everything that one run of the simulator does, as plain data: who there is, what they do in which order, and which
 * troubles strike when. The seed decides the rest: the schedule, what survives a crash, pids and random bytes. Same
 * story, same run; so a story can be kept in a file, and made shorter while it still shows the same thing.
 */
export interface Story {
  readonly version: typeof STORY_VERSION;
  readonly seed: number;
  readonly machine: MachineTraits;
  readonly processes: readonly ProcessTraits[];
  readonly lanes: readonly Lane[];
  readonly events: readonly StoryEvent[];
}

export const STORY_VERSION = 1;

export interface MachineTraits {
  readonly switchProbability: number;
  readonly writebackProbability: number;
  readonly mtimeGranularityMs: number;
  readonly watchDropProbability: number;
  readonly lockOrder: "fifo" | "random";
  readonly syncFailuresReportedTo: "each-descriptor" | "caller-only";
  /** A segment is closed once it is larger than this. */
  readonly rotateBytes: number;
}

export type Space = "host" | "other-pids" | "other-times";

export interface ProcessTraits {
  readonly space: Space;
  /** How far the index may lag behind what it writes; not at all where it is not said. */
  readonly indexLagBytes?: number;
}

/** One agent, session and worktree in one process, doing one thing after the other. Lanes of a process share its store. */
export interface Lane {
  readonly process: number;
  readonly agent: string;
  readonly session: string;
  readonly worktree: string;
}

export type StoryEvent = Deed | Trouble;

export interface Wanted {
  readonly key: string;
  readonly reach: "repository" | "worktree";
}

interface DeedBase {
  readonly id: number;
  readonly lane: number;
}

/** With an id of its own, so that it can be asked for again; and asked for again at once, to see what it says. */
interface Repeatable {
  readonly requestId: boolean;
  readonly again: boolean;
}

export type Deed = DeedBase &
  (
    | ({
        readonly do: "acquire";
        readonly keys: readonly Wanted[];
        /** 0: without expiry. */
        readonly ttlSecs: number;
        readonly bind: "ttl" | "process";
        readonly steal: boolean;
        readonly waitMs: number | null;
      } & Repeatable)
    | ({ readonly do: "renew"; readonly key: string; readonly ttlSecs: number } & Repeatable)
    | ({ readonly do: "heartbeat"; readonly key: string } & Repeatable)
    | ({ readonly do: "release"; readonly keys: readonly string[] } & Repeatable)
    | ({ readonly do: "transfer"; readonly key: string; readonly to: number } & Repeatable)
    | ({ readonly do: "evict"; readonly key: string } & Repeatable)
    | { readonly do: "pretend"; readonly key: string }
    | { readonly do: "stop" }
    | { readonly do: "gc" }
    | { readonly do: "tidy"; readonly compact: boolean }
    | { readonly do: "recover" }
    | { readonly do: "snapshot" }
    | { readonly do: "list" }
    | { readonly do: "history" }
    | { readonly do: "watch" }
    | { readonly do: "rest"; readonly ms: number }
  );

/** Places in the work of the store that are worth being struck at. */
export const MOMENTS = [
  "step",
  "lock",
  "append",
  "log sync",
  "any sync",
  "index change",
  "applied",
  "census read",
  "rename",
  "ticket",
  "secret",
  "unlock",
] as const;
export type MomentKind = (typeof MOMENTS)[number];

/** Right after the nth operation of a kind since the deed began, of its own process or of any. */
export interface When {
  readonly deed: number;
  readonly on: MomentKind;
  readonly nth: number;
  readonly whose: "its" | "any";
}

interface TroubleBase {
  readonly id: number;
  readonly when: When;
}

export const PLACES = [
  "anywhere",
  "log",
  "index",
  "applied",
  "locks",
  "queue",
  "secrets",
  "archive",
] as const;
export type Place = (typeof PLACES)[number];

export type Trouble = TroubleBase &
  (
    | { readonly strike: "kill"; readonly process: number; readonly zombie: boolean }
    | { readonly strike: "power"; readonly wallJumpMs: number }
    | { readonly strike: "pause"; readonly process: number; readonly forMs: number }
    | { readonly strike: "clock"; readonly ms: number }
    | { readonly strike: "time"; readonly ms: number }
    | {
        readonly strike: "fault";
        readonly code: FaultCode;
        readonly operations: readonly FaultableKind[] | null;
        readonly place: Place;
        readonly process: number | null;
        readonly times: number;
        readonly probability: number;
      }
    | { readonly strike: "drop caches" }
    | {
        readonly strike: "spoil index";
        readonly how: "empty" | "gone" | "flip" | "zero" | "swap";
        readonly pick: number;
      }
    | { readonly strike: "spoil log"; readonly pick: number }
  );

export function isDeed(event: StoryEvent): event is Deed {
  return "do" in event;
}

export function deedsOf(story: Story): Deed[] {
  return story.events.filter(isDeed);
}

export function troublesOf(story: Story): Trouble[] {
  return story.events.filter((event): event is Trouble => !isDeed(event));
}
