import { CotenantError } from "../errors/cotenant-error";
import type { Command } from "../kernel/commands";
import type { Decision } from "../kernel/decide";
import type { Fact, FactName } from "../kernel/facts";
import type { Ulid } from "../kernel/ids";
import type { Ended, Lease } from "../kernel/lease";
import type { Policy } from "../kernel/policy";
import type { Refusal } from "../kernel/refusal";
import type { ClaimEvent } from "../kernel/view";
import type { LogActor } from "./envelope";
import type { Place } from "./queue-admission";

export interface Submission {
  readonly command: Command;
  readonly policy: Policy;
  readonly actor: LogActor;
  readonly requestId: Ulid | null;
  /** Names the operation in the log when the caller gave no request id of its own. */
  readonly operationId: Ulid;
  /** It may have been done under that name already. */
  readonly isSecond?: boolean;
  /** By the monotonic clock; after it, nobody waits for the outcome any more. */
  readonly beforeMs?: number;
  /** Whether somebody waits for the outcome still; asked under the mutex, before anything is decided. */
  readonly isAwaited?: () => boolean;
  /** For an acquire that waits: the caller's place, or the wish for one. */
  readonly queue: Place | null;
}

/** PROTOCOL 28: it came to be decided too late, and was not begun. */
export class TooLate extends Error {}

export type Outcome =
  | {
      readonly done: true;
      readonly leases: readonly Lease[];
      readonly ended: readonly Ended[];
      /** Whether this call changed anything, or found it done already. */
      readonly changed: boolean;
      readonly replayed: boolean;
    }
  | { readonly done: false; readonly refusal: Refusal; readonly queue: Place | null };

/** What a submission comes to, and what is to be written of it. */
export interface Decided {
  readonly outcome: Outcome;
  readonly event: ClaimEvent | null;
  readonly facts: ReadonlyMap<FactName, Fact | null>;
}

export function nothingToWrite(outcome: Outcome): Decided {
  return { outcome, event: null, facts: new Map() };
}

/**
 * What is written of an operation, so that a retry gets the answer that the first call got: of an acquire, every
 * lease it answered with, also those that were held already; and where nothing was to be done, but it has a request
 * id, that it was asked for, or a late duplicate would do it after all.
 */
export function answering({ event, leases }: Decision, command: Command): ClaimEvent | null {
  if (command.kind !== "acquire") return event;
  return { type: "claim.renewed", ended: [], reason: null, ...event, leases };
}

export function granted(decision: Decision): Outcome {
  return {
    done: true,
    leases: decision.leases,
    ended: decision.event?.ended ?? [],
    changed: decision.event !== null,
    replayed: false,
  };
}

/** Doing these twice is as good as once: they take no request id. */
const UNNAMED: ReadonlySet<Command["kind"]> = new Set(["gc", "stop", "upkeep"]);

export function outcomeUnknown(error: unknown, submission: Submission): unknown {
  if (!(error instanceof CotenantError) || error.code !== "E_DISK") return error;
  const requestId = submission.requestId ?? submission.operationId;
  const isNamed = !UNNAMED.has(submission.command.kind);
  return error.with({
    message: `${error.message}; whether the operation took effect is unknown`,
    hint: `mend the disk, then run it again${isNamed ? ` with --request-id ${requestId}` : ""}`,
    data: { outcome: "unknown", request_id: requestId },
  });
}
