import * as v from "valibot";
import { parsed, processIdentity, ulid } from "../codec/fields";
import type {
  AcquireRequest,
  EvictRequest,
  HeldRequest,
  HolderRequest,
  ReleaseRequest,
  RenewRequest,
  StopRequest,
  TransferRequest,
} from "../coordinator/contract";
import { type AgentId, agentType, parseAgentId, parseSessionId, parseWorktreeId } from "../kernel/ids";
import { KEY_KINDS, type LeaseKey, parseKey } from "../kernel/keys";
import { LIMITS, type Policy } from "../kernel/policy";
import { RPC_ERRORS, RpcError } from "./rpc";
import { fromWire } from "./wire";

const agentId = parsed(parseAgentId);
const sessionId = parsed(parseSessionId);
const worktreeId = parsed(parseWorktreeId);
const key = parsed<LeaseKey>(parseKey);
const whole = v.pipe(v.number(), v.integer());
const hash = v.pipe(v.string(), v.maxLength(128));
const reach = v.picklist(["repository", "worktree"]);
const bind = v.picklist(["ttl", "process"]);
const some = <T extends v.GenericSchema>(each: T, forEachKey = 1) =>
  v.pipe(v.array(each), v.maxLength((LIMITS.keysPerOperation + 1) * forEachKey));

const actor = v.object({
  agentId,
  sessionId,
  worktreeId,
  branch: v.nullable(v.string()),
  holder: processIdentity,
});
const relay = v.object({
  operationId: ulid,
  isSecond: v.exactOptional(v.boolean()),
  beforeMs: v.exactOptional(v.number()),
  pid: v.exactOptional(whole),
});
const ref = v.object({ key: v.nullable(key), leaseId: v.nullable(ulid) });
const secrets = some(v.pipe(v.string(), v.maxLength(1_000)));
const operation = { actor, requestId: v.nullable(ulid), relay: v.exactOptional(relay) };
const holding = { ...operation, leases: some(ref), secrets, secretHash: hash };
const wanted = {
  keys: some(v.object({ key, reach })),
  secrets,
  ttlSecs: v.number(),
  bind,
};
const stopping = { actor, relay: v.exactOptional(relay), leases: some(ref), secrets };
const stolen = v.object({
  key,
  leaseId: ulid,
  agentId,
  why: v.picklist(["expired", "dead", "stop_idle", "forced"]),
});

export const HELD = v.object({ actor, ...wanted }) satisfies v.GenericSchema<unknown, HeldRequest>;
export const ACQUIRE = v.object({
  ...operation,
  ...wanted,
  atMostSecs: v.exactOptional(v.number()),
  reason: v.nullable(v.string()),
  note: v.nullable(v.string()),
  secretHash: hash,
  leaseIds: some(ulid, LIMITS.grantsOfOneClaim),
  steal: v.boolean(),
  /** Who waits does so at the queue itself, not here. */
  wait: v.null(),
  isOffline: v.exactOptional(v.boolean()),
  follows: v.exactOptional(v.boolean()),
  aboveToken: v.exactOptional(v.number()),
  elsewhere: v.exactOptional(some(stolen)),
});
export const RENEW = v.object({
  ...holding,
  ttlSecs: v.nullable(v.number()),
  overrideMax: v.boolean(),
  reason: v.nullable(v.string()),
});
export const HOLDER = v.object(holding);
export const RELEASE = v.object({ ...holding, reason: v.nullable(v.string()) });
export const TRANSFER = v.object({
  ...operation,
  lease: ref,
  secrets,
  secretHash: hash,
  newLeaseId: ulid,
  toAgent: agentId,
  toWorktree: worktreeId,
  toBranch: v.nullable(v.string()),
  reason: v.nullable(v.string()),
  aboveToken: v.exactOptional(v.number()),
});
/** Never one that overrules the policy: only a ledger does that, in its own process. */
export const EVICT = v.object({
  ...operation,
  leases: some(ref),
  reason: v.nullable(v.string()),
  proposalId: v.exactOptional(ulid),
});
export const STOP = v.object(stopping);
export const REFS = v.object({ refs: some(ref) });
export const LIST = v.object({
  kinds: v.exactOptional(v.array(v.picklist(["issue", "resource", "ref", "worktree", "scope"]))),
  lapsed: v.exactOptional(v.boolean()),
});
export const OVERLAPPING = v.object({ extents: some(v.object({ key, reach, worktreeId })) });
export const INTERRUPT = v.object({ operationId: ulid });
export const NOTHING = v.object({});
export const WATCH = v.object({ after: v.exactOptional(whole) });

const POLICY = v.object({
  defaultTtlSecs: v.number(),
  maxTotalSecs: v.number(),
  maxTtlSecs: v.record(v.string(), v.number()),
  evict: v.array(v.string()),
  indefinite: v.array(v.picklist(KEY_KINDS)),
  maxIndefinitePerAgent: v.number(),
  maxIndefinitePerRepo: v.number(),
  stopIdleSecs: v.number(),
  unknownTtlSecs: v.number(),
  staleThresholdSecs: v.number(),
  approvers: v.number(),
  escalateAfterSecs: v.number(),
}) satisfies v.GenericSchema<unknown, Policy>;
export const HELLO = v.object({
  token: v.string(),
  protocol: whole,
  build: v.string(),
  clockId: v.string(),
  policy: v.exactOptional(POLICY),
  /** What the caller's ledger goes by; claims of somebody who goes by another one are not for this daemon. */
  ledger: v.exactOptional(v.nullable(v.string())),
});

const absolute = v.pipe(
  v.string(),
  v.check((text) => text.startsWith("/") && !text.includes("\0"), "must be an absolute path"),
);
const repoPath = absolute;

/** People say themselves what they claim; over a socket anybody could say that they are one. */
const programId = v.pipe(
  agentId as v.GenericSchema<string, AgentId>,
  v.check((id) => !["human", "admin"].includes(agentType(id)), "must not be a person's"),
);

/** Seed 004's. `session_id` and `pid` say whose the claim is more closely: the agent's process keeps it alive. */
export const CLAIM = v.strictObject({
  repoPath,
  atomId: v.pipe(v.string(), v.minLength(1)),
  agentId: programId,
  sessionId: v.exactOptional(parsed(parseSessionId)),
  pid: v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(2))),
});
const watchedQuestion = { path: absolute, folders: v.pipe(v.array(absolute), v.maxLength(2)) };
export const WATCHED = v.object(watchedQuestion);
export const WATCHED_SEEN = v.object({
  ...watchedQuestion,
  epoch: v.string(),
  tick: whole,
  cache: v.pipe(v.string(), v.maxLength(200)),
});
export const LEDGER_SYNC = v.strictObject({
  repoPath,
  action: v.picklist(["pull", "push", "setup", "status", "reconcile"]),
  agentId: v.exactOptional(programId),
});

/** The params of a request as the program has them, or an error that names each field that is wrong. */
export function paramsOf<T extends v.GenericSchema>(schema: T, params: unknown): v.InferOutput<T> {
  const read = v.safeParse(schema, fromWire(params));
  if (read.success) return read.output;
  const fields = read.issues.slice(0, 20).map((issue) => ({
    field: (issue.path ?? []).map(({ key: name }) => snake(String(name))).join(".") || "params",
    problem: problemOf(issue),
  }));
  const words = fields.map(({ field, problem }) => `${field}: ${problem}`).join("; ");
  throw new RpcError(RPC_ERRORS.invalidParams, `these params are wrong: ${words}`, { fields });
}

/** In words of our own, but for what our own parsers say. */
function problemOf({ kind, type, expected, received, message }: v.BaseIssue<unknown>): string {
  if (received === "undefined") return "is missing";
  if (expected === "never") return "is not known here";
  const isOurs = type === "check" || type === "raw_transform" || expected === null;
  return isOurs || kind === "transformation" ? message : `must be ${expected}, not ${received}`;
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** What the schemas read is what the contract asks for, but for what cannot travel. */
type Travels<T> = Omit<T, "wait" | "interrupted">;
type Read<S extends v.GenericSchema> = Omit<v.InferOutput<S>, "wait">;
type Fits<S extends T, T> = S;
/** @public It is the compiler that reads it. */
export type ContractIsRead = [
  Fits<Read<typeof ACQUIRE>, Travels<AcquireRequest>>,
  Fits<Read<typeof RENEW>, RenewRequest>,
  Fits<Read<typeof HOLDER>, HolderRequest>,
  Fits<Read<typeof RELEASE>, ReleaseRequest>,
  Fits<Read<typeof TRANSFER>, TransferRequest>,
  Fits<Read<typeof EVICT>, EvictRequest>,
  Fits<Read<typeof STOP>, StopRequest>,
];
