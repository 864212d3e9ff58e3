import type { Ground } from "../../testing/checker/things";
import type { Held } from "../../testing/workload/guarded-write";
import type { Bind } from "../kernel/lease";

/** The first line on a worker's standard input. Orders follow; its end ends the worker. */
export interface Briefing {
  readonly name: string;
  readonly agentId: string;
  readonly sessionId: string;
  readonly cwd: string;
  readonly witness: string;
  readonly ground: Ground;
  readonly seed: number;
  /** Stretches naps where many agents share few processors. */
  readonly pace: number;
  /** Whether it works by itself between orders. */
  readonly plays: boolean;
  /** However things go, it does not live longer. */
  readonly lifeMs: number;
}

export interface Wish {
  readonly keys: readonly string[];
  readonly bind: Bind;
  readonly ttlSecs: number;
  /** Null: take it now or go away. */
  readonly waitMs: number | null;
}

export type Order = { readonly id: number } & (
  | ({ readonly order: "pose" } & Wish)
  | ({ readonly order: "take" } & Wish)
  | { readonly order: "write" }
  | { readonly order: "transfer"; readonly toAgent: string; readonly toWorktree: string }
  | { readonly order: "stand-by" }
  | { readonly order: "let-go" }
  | { readonly order: "finish" }
);

/**
 * `stand-by`: no work of its own until `let-go`. `pose`: take it and hold still until told what next. `take`: take
 * it, work, give it back.
 */
export type OrderBody = Order extends infer O ? (O extends unknown ? Omit<O, "id"> : never) : never;

/** What a worker says on its standard output, a line each, before it goes on. */
export type Report =
  | { readonly say: "ready"; readonly pid: number; readonly worktreeId: string }
  | { readonly say: "now"; readonly doing: Doing; readonly keys: readonly string[] }
  /** Until the outcome is told, the log may know more than we do. */
  | { readonly say: "asks" }
  | {
      readonly say: "granted";
      readonly leases: readonly Held[];
      readonly ended: readonly { readonly leaseId: string; readonly how: string }[];
      readonly queued: boolean;
      /** Found in its name already: handed over by somebody. */
      readonly adopted: boolean;
    }
  | { readonly say: "refused"; readonly code: string }
  | { readonly say: "renewed" | "released"; readonly leaseIds: readonly string[] }
  | { readonly say: "transferred"; readonly from: string; readonly lease: Held }
  /** An operation of a holder was refused because the lease is no longer its. */
  | { readonly say: "lost"; readonly code: string }
  /** A guarded write was refused, and the store says why. */
  | { readonly say: "fenced"; readonly key: string; readonly token: number; readonly code: string }
  | { readonly say: "queued"; readonly id: number | null; readonly ahead: number }
  | {
      readonly say: "done";
      readonly id: number;
      readonly outcome: Outcome;
      readonly leases: readonly Held[];
    }
  | { readonly say: "trouble"; readonly message: string };

export type Doing = "rests" | "asks" | "waits" | "works" | "poses";
export type Outcome = "ok" | "refused" | "fenced";
