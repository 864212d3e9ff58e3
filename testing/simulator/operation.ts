import type { Prng } from "./prng";

/** System calls that a fault may strike, named after the platform's methods. */
export type FaultableKind =
  | "open"
  | "openForWriting"
  | "close"
  | "read"
  | "append"
  | "writeAt"
  | "truncate"
  | "datasync"
  | "datasyncInBackground"
  | "sync"
  | "syncDirectory"
  | "fstat"
  | "stat"
  | "lstat"
  | "readFile"
  | "readDirectory"
  | "realPath"
  | "readLink"
  | "rename"
  | "link"
  | "unlink"
  | "makeDirectory"
  | "removeDirectory"
  | "chmod"
  | "networkFileSystem"
  | "tryLock"
  | "lock"
  | "unlock";

/** Everything else that the scheduler orders. */
type EventKind = "start" | "wake" | "notify" | "identify" | "liveness";

export type OperationKind = FaultableKind | EventKind;

export type FaultCode = "ENOSPC" | "EIO" | "EROFS" | "EINTR" | "ESTALE" | "EMFILE";

/** Answered by `run` when the operation took its first step and wants another turn. */
export const UNFINISHED: unique symbol = Symbol("unfinished");

export interface Operation<T> {
  readonly kind: OperationKind;
  /** What it acts on; faults aim at it. */
  readonly path: string;
  /** The rest of its line in the trace. */
  readonly detail?: string;
  /** Absent: at any time. */
  isReady?(): boolean;
  /** The elapsed time at which a sleeper becomes ready. */
  readonly dueAtMicros?: number;
  /** The whole effect, in one instant. */
  run(prng: Prng): T | typeof UNFINISHED;
  /** What a fault does instead. Absent: nothing happens and the code is thrown. */
  fail?(code: FaultCode, prng: Prng): T;
  /** The process is stopped: a system call in progress still ends, its answer waits. */
  stop?(): void;
  /** The process dies in the middle of it. Absent: it happens or not. */
  die?(prng: Prng): "done" | "undone" | "torn";
}

const EVENTS: ReadonlySet<string> = new Set<EventKind>(["start", "wake", "notify", "identify", "liveness"]);

export function isFaultable(kind: OperationKind): kind is FaultableKind {
  return !EVENTS.has(kind);
}
