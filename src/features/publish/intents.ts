import * as v from "valibot";
import { orNull, processIdentity, those, ulid } from "../../codec/fields";
import { toSnakeCase } from "../../codec/names";
import { codecOf } from "../../codec/record";
import type { ObjectId } from "../../git/object-name";
import { type Fact, type FactName, factId, factName, parseFactName } from "../../kernel/facts";
import { type Ulid, ulidIn } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";
import type { ProcessIdentity } from "../../platform/platform";

export const INTENT = "publish";

/** Who moves refs by this protocol: a publish, or a landing of the merge queue. */
export type Noun = "publish" | "land";

export function eventOf(noun: Noun, what: "intended" | "committed" | "abandoned" | "unsettled"): string {
  return noun === "land" && what === "committed" ? "land.landed" : `${noun}.${what}`;
}

/**
 * What somebody is about to do to a ref (PROTOCOL 18). On the disk before Git may do it, and taken back in the line that
 * says what became of it: whoever finds one whose process is gone can tell from the ref.
 */
export interface Intent {
  /** Of this try: a publish may take several. */
  readonly intentId: Ulid;
  readonly publishId: Ulid;
  /** The caller's own, for a retry. */
  readonly requestId: Ulid | null;
  /** What the log calls it. */
  readonly noun: Noun;
  readonly ref: string;
  readonly old: ObjectId | null;
  readonly new: ObjectId;
  readonly agentId: string;
  /** The leases of the claims that a push of it is fenced by. */
  readonly claims: readonly Ulid[];
  /** The lease of the branch: without it, nothing may come of this any more. */
  readonly branchLease: Ulid | null;
  /** What else is so once it is done. */
  readonly facts: ReadonlyMap<FactName, Fact | null>;
  readonly publisher: ProcessIdentity;
  readonly git: ProcessIdentity;
  readonly atMs: number;
}

export function intentName(intentId: Ulid): FactName {
  return factName(INTENT, intentId.toLowerCase());
}

export function intentToFact(intent: Intent): Fact {
  return {
    publish_id: intent.publishId,
    request_id: intent.requestId,
    ...(intent.noun === "publish" ? {} : { noun: intent.noun }),
    ref: intent.ref,
    old: intent.old,
    new: intent.new,
    agent_id: intent.agentId,
    ...(intent.claims.length === 0 ? {} : { claims: intent.claims }),
    ...(intent.branchLease === null ? {} : { branch_lease: intent.branchLease }),
    ...(intent.facts.size === 0 ? {} : { once_done: Object.fromEntries(intent.facts) }),
    publisher: toSnakeCase(intent.publisher),
    git: toSnakeCase(intent.git),
    at: new Date(intent.atMs).toISOString(),
  };
}

const FACT = codecOf(
  {
    publishId: ulid,
    requestId: orNull(ulid),
    noun: v.fallback(v.picklist(["publish", "land"]), "publish"),
    ref: v.string(),
    old: v.nullable(v.string()),
    new: v.string(),
    agentId: v.string(),
    claims: those(ulid),
    branchLease: orNull(ulid),
    onceDone: v.pipe(v.optional(v.unknown(), {}), v.transform(factsIn)),
    publisher: processIdentity,
    git: processIdentity,
    at: v.string(),
  },
  { opaque: new Set(["once_done"]) },
);

/** Null for what another version wrote: it is left alone. */
export function intentFromFact(name: FactName, fact: Fact): Intent | null {
  const [intentId, said] = [ulidIn(factId(name)), FACT.decode(fact)];
  if (intentId === null || said === null) return null;
  const { onceDone: facts, at, ...intent } = said;
  return { intentId, ...intent, facts, atMs: Date.parse(at) };
}

function factsIn(said: unknown): Map<FactName, Fact | null> {
  const facts = new Map<FactName, Fact | null>();
  for (const [text, value] of Object.entries(typeof said === "object" && said !== null ? said : {})) {
    const name = parseFactName(text);
    if (!isRefusal(name) && typeof value === "object") facts.set(name, value as Fact | null);
  }
  return facts;
}
