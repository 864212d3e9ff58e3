import { orThrow } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import { type Fact, type FactName, parseFactName } from "../../kernel/facts";
import { parseUlid, type Ulid } from "../../kernel/ids";
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
  return orThrow(parseFactName(`${INTENT}:${intentId.toLowerCase()}`));
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
    publisher: processToWire(intent.publisher),
    git: processToWire(intent.git),
    at: new Date(intent.atMs).toISOString(),
  };
}

/** Null for what another version wrote: it is left alone. */
export function intentFromFact(name: FactName, fact: Fact): Intent | null {
  const intentId = parseUlid(name.slice(INTENT.length + 1));
  const publishId = parseUlid(String(fact["publish_id"]));
  const { request_id: requestId, ref, old, new: next, agent_id: agentId, at } = fact;
  const publisher = processFromWire(fact["publisher"]);
  const git = processFromWire(fact["git"]);
  const isWhole =
    typeof ref === "string" &&
    typeof next === "string" &&
    typeof agentId === "string" &&
    typeof at === "string" &&
    (old === null || typeof old === "string");
  if (!isWhole || isRefusal(intentId) || isRefusal(publishId) || publisher === null || git === null)
    return null;
  const request = typeof requestId === "string" ? parseUlid(requestId) : null;
  return {
    intentId,
    publishId,
    requestId: request === null || isRefusal(request) ? null : request,
    noun: fact["noun"] === "land" ? "land" : "publish",
    ref,
    old,
    new: next,
    agentId,
    claims: claimsIn(fact),
    branchLease: claimsIn({ claims: [fact["branch_lease"]] })[0] ?? null,
    facts: factsIn(fact["once_done"]),
    publisher,
    git,
    atMs: Date.parse(at),
  };
}

/** Of a fact, or of the result of a publish. */
function claimsIn({ claims }: Readonly<Record<string, unknown>>): Ulid[] {
  return (Array.isArray(claims) ? claims : []).flatMap((claim) => {
    const id = typeof claim === "string" ? parseUlid(claim) : null;
    return id === null || isRefusal(id) ? [] : [id];
  });
}

function factsIn(said: unknown): Map<FactName, Fact | null> {
  const facts = new Map<FactName, Fact | null>();
  for (const [text, value] of Object.entries(typeof said === "object" && said !== null ? said : {})) {
    const name = parseFactName(text);
    if (!isRefusal(name) && typeof value === "object") facts.set(name, value as Fact | null);
  }
  return facts;
}

const FIELDS = {
  machine_id: "machineId",
  boot_id: "bootId",
  pid_namespace: "pidNamespace",
  time_namespace: "timeNamespace",
  user: "user",
  start_time: "startTime",
} as const;

function processToWire(identity: ProcessIdentity): Record<string, unknown> {
  const texts = Object.entries(FIELDS).map(([wire, name]) => [wire, identity[name]]);
  return { ...Object.fromEntries(texts), pid: identity.pid };
}

function processFromWire(value: unknown): ProcessIdentity | null {
  if (typeof value !== "object" || value === null) return null;
  const wire = value as Readonly<Record<string, unknown>>;
  if (typeof wire["pid"] !== "number") return null;
  const texts = Object.entries(FIELDS).map(([name, own]) => [own, wire[name]] as const);
  if (texts.some(([, text]) => typeof text !== "string")) return null;
  return { ...(Object.fromEntries(texts) as Omit<ProcessIdentity, "pid">), pid: wire["pid"] };
}
