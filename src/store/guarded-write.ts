import { CotenantError, fileFailure, orThrow, usageError } from "../errors/cotenant-error";
import type { Prove } from "../kernel/commands";
import type { decide } from "../kernel/decide";
import { type Fact, type FactName, type FactRecord, LARGEST_FACT, parseFactName } from "../kernel/facts";
import type { Ulid } from "../kernel/ids";
import type { Lease } from "../kernel/lease";
import type { Policy } from "../kernel/policy";
import { isRefusal, type Refusal } from "../kernel/refusal";
import type { Now } from "../kernel/time";
import { claimPayload, type LogActor } from "./envelope";
import { factsToWire } from "./facts";
import type { Needs } from "./gather";
import type { Ground } from "./ground";
import type { Pin } from "./log-file";
import type { Head, RequestRecord } from "./replay";

/**
 * A change of something that is no lease: proved, logged and carried out in one critical section (promise 3). The
 * store knows nothing of what is written; `body` does.
 */
export interface Write<T> {
  readonly actor: LogActor;
  readonly policy: Policy;
  /** What it rests on; null for a write that needs no lease. */
  readonly prove: Prove | null;
  /** What the write is about, and a retry with the same request id must be about as well. */
  readonly about: string;
  readonly requestId: Ulid | null;
  /** Names the operation in the log when the caller gave no request id of its own. */
  readonly operationId: Ulid;
  /** Facts that the body has to see. */
  readonly facts: readonly FactName[];
  /** All facts of these kinds as well. */
  readonly factKinds?: readonly string[];
  /** The body does nothing outside the log: the sync of its own line covers every line that it rests on. */
  readonly isOnlyLogged?: boolean;
  /** Whether somebody waits for the outcome still; asked under the mutex, before anything is decided. */
  readonly isAwaited?: () => boolean;
  /** Under the mutex, once the leases are proved and every line that they rest on is on the disk. It may throw. */
  readonly body: (standing: Standing) => Promise<Intention<T> | null>;
}

/** What a write's body stands on. */
export interface Standing {
  /** The proved leases; none when they could not be proved. */
  readonly leases: readonly Lease[];
  /** Why they could not be proved. Whether that matters is the body's business. */
  readonly refusal: Refusal | null;
  readonly facts: ReadonlyMap<FactName, FactRecord>;
  /** The number that the write's own line will have. */
  readonly sequence: number;
  readonly now: Now;
}

/** What a body wants to be done. */
export interface Intention<T> {
  /** The line's type. */
  readonly type: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly facts: ReadonlyMap<FactName, Fact | null>;
  /** Still under the mutex, with the line on the disk. Whoever comes next must be able to finish it. */
  readonly carryOut?: () => Promise<void>;
  /** After the mutex is free, and before anybody hears of it. */
  readonly settle?: () => Promise<void>;
  readonly answer: T;
  /** What a retry with the same request id is told. */
  readonly result?: Readonly<Record<string, unknown>>;
}

export type Written<T> =
  /** The body's answer; null where it wanted nothing to be done. */
  | { readonly replayed: false; readonly answer: T | null; readonly leases: readonly Lease[] }
  /** The remembered outcome of an earlier call with the same request id. */
  | { readonly replayed: true; readonly record: RequestRecord };

/** What the critical section leaves to be done once the mutex is free. */
export interface Performed<T> {
  readonly log: Pin;
  readonly head: Head;
  readonly wrote: boolean;
  readonly settle: (() => Promise<void>) | null;
  /** Carrying it out failed after it was logged. */
  readonly failure: unknown;
  readonly written: Written<T>;
}

/** By name, and by kind. */
export type WantedFacts = Pick<Needs, "facts" | "factKinds">;

/** What of the store a write needs. */
export interface Workshop {
  readonly now: () => Now;
  readonly repeated: (write: Write<unknown>, ground: Ground) => Promise<RequestRecord | null>;
  readonly proof: (prove: Prove, policy: Policy, ground: Ground) => Promise<ReturnType<typeof decide>>;
  readonly facts: (wanted: WantedFacts, ground: Ground) => Promise<ReadonlyMap<FactName, FactRecord>>;
  /** Everything up to the ground's end is on the disk when this returns. */
  readonly makeSure: (ground: Ground) => Promise<void>;
  readonly addLine: (
    ground: Ground,
    entry: { type: string; actor: LogActor; payload: Readonly<Record<string, unknown>> },
  ) => string;
  readonly pin: () => Pin;
  readonly append: (ground: Ground, text: string, actor: LogActor) => Promise<void>;
}

/** Everything about a write that happens under the mutex. */
export async function perform<T>(shop: Workshop, write: Write<T>, ground: Ground): Promise<Performed<T>> {
  const record = await shop.repeated(write, ground);
  if (record !== null)
    return untouched<T>(shop, ground, { replayed: true, record: sameAsBefore(record, write) });
  const decision = write.prove === null ? null : await shop.proof(write.prove, write.policy, ground);
  const proved = decision !== null && !isRefusal(decision) ? decision : null;
  const facts = await shop.facts({ facts: write.facts, factKinds: write.factKinds ?? [] }, ground);
  if (write.isOnlyLogged !== true) await shop.makeSure(ground);
  const adoption = proved?.event ?? null;
  const leases = proved?.leases ?? [];
  const standing: Standing = {
    leases,
    refusal: isRefusal(decision) ? decision : null,
    facts,
    sequence: ground.head.sequence + (adoption === null ? 1 : 2),
    now: shop.now(),
  };
  const intention = await write.body(standing);
  if (intention === null) return untouched<T>(shop, ground, { replayed: false, answer: null, leases });
  const { actor } = write;
  let text = "";
  if (adoption !== null) {
    const payload = claimPayload(adoption, { requestId: null, operationId: write.operationId });
    text += shop.addLine(ground, { type: adoption.type, actor, payload });
    ground.overlay.add(adoption, standing.now.wallMs);
  }
  text += shop.addLine(ground, { type: intention.type, actor, payload: payloadOf(write, intention) });
  for (const [name, value] of intention.facts)
    ground.overlay.facts.set(name, value === null ? null : { value, sequence: standing.sequence });
  const log = shop.pin();
  try {
    await shop.append(ground, text, actor);
  } catch (error) {
    await log.release();
    throw error;
  }
  let failure: unknown = null;
  try {
    if (intention.carryOut !== undefined) {
      // Several files may be about to change: what a power cut leaves of them must not be without its line.
      await shop.makeSure(ground);
      await intention.carryOut();
    }
  } catch (error) {
    failure = error;
  }
  const written = { replayed: false, answer: intention.answer, leases } as const;
  return { log, head: ground.head, wrote: true, settle: intention.settle ?? null, failure, written };
}

function untouched<T>(shop: Workshop, ground: Ground, written: Written<T>): Performed<T> {
  return { log: shop.pin(), head: ground.head, wrote: false, settle: null, failure: null, written };
}

function payloadOf<T>(write: Write<T>, { payload, facts, result }: Intention<T>): Record<string, unknown> {
  for (const [name, value] of facts) {
    orThrow(parseFactName(name));
    if (JSON.stringify(value).length > LARGEST_FACT)
      throw new CotenantError("E_LIMIT", `${name} is larger than ${LARGEST_FACT} bytes`);
  }
  const { requestId, operationId, about } = write;
  return {
    ...(requestId === null ? { operation_id: operationId } : { request_id: requestId }),
    about,
    ...payload,
    ...factsToWire(facts),
    ...(result === undefined ? {} : { result }),
  };
}

/** Somebody else's success, or one with something else, must never be taken for one's own. */
function sameAsBefore<T>(record: RequestRecord, { actor, about, requestId }: Write<T>): RequestRecord {
  if (record.agentId === actor.agentId && record.about === about) return record;
  throw usageError(
    `request id ${requestId} was used for another operation (${record.type})`,
    "make a new id for a new operation",
    { request_id: requestId, event_type: record.type, agent_id: record.agentId },
  );
}

/** A write that is in the log and could not be carried out: whoever comes next finishes it. */
export function notCarriedOut<T>(error: unknown, { requestId, operationId, about }: Write<T>): CotenantError {
  const known = error instanceof CotenantError ? error : fileFailure(error, "carrying out the write", about);
  const id = requestId ?? operationId;
  return known.with({
    message: `${known.message}; it is logged, and will be finished by whoever comes next`,
    data: { outcome: "unknown", request_id: id },
  });
}
