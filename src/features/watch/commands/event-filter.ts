import type { Flag, Parsed } from "../../../cli/grammar/command";
import { parseSince } from "../../../cli/grammar/since";
import { nearest } from "../../../config/nearest";
import type { HistoryFilter, LoggedEvent } from "../../../coordinator/contract";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, orThrow } from "../../../errors/cotenant-error";
import { parseAgentId, parseUlid, printable } from "../../../kernel/ids";
import { KEY_KINDS, type LeaseKey, parseKey, type RepoPath } from "../../../kernel/keys";
import { isRefusal } from "../../../kernel/refusal";
import { CLAIM_EVENTS } from "../../../kernel/view";
import { keyOfIssue } from "../../issues/claim-refs";
import { issuesIn } from "../../issues/desk";
import { meantId } from "../../issues/meant";
import { reachesInto } from "../../locks/operations";

export const SINCE_FLAG: Flag = {
  value: "<when>",
  meaning: "only from then on: a duration ago (10m, 2h, 1d), an instant, or a sequence number",
};

const SHORT_TYPES = CLAIM_EVENTS.map((type) => type.slice("claim.".length));
/** Of what is no lease. */
const WRITE_EVENTS = [
  "issue.written",
  "issue.commented",
  "dispatch.started",
  "dispatch.worked",
  "dispatch.failed",
  "dispatch.delivered",
  "dispatch.ended",
  "lease.escalated",
  "lease.settled",
  "repository.paused",
  "repository.resumed",
  "eviction.proposed",
  "eviction.approved",
  "eviction.void",
  "policy.changed",
  "policy.violated",
  "policy.forgotten",
  "policy.trusted",
  "policy.distrusted",
  "policy.unreadable",
  "contention.heartbeat",
  "contention.retry",
  "contention.blocked",
  "contention.ended",
  "contention.resolved",
  "guard.violated",
  "guard.left",
  "guard.settled",
  "guard.subagent_done",
  "worktree.intended",
  "worktree.created",
  "worktree.abandoned",
  "worktree.setup",
  "worktree.access",
  "worktree.removing",
  "worktree.removed",
  "worktree.kept",
  "snapshot.intended",
  "snapshot.ready",
  "snapshot.abandoned",
  "snapshot.removed",
  "snapshot.restoring",
  "snapshot.restored",
  "snapshot.interrupted",
  "snapshot.set_aside",
  "publish.intended",
  "publish.committed",
  "publish.abandoned",
  "publish.unsettled",
  "publish.pushed",
  "publish.push_failed",
  "publish.push_unclear",
  "land.added",
  "land.removed",
  "land.retried",
  "land.parked",
  "land.paused",
  "land.resumed",
  "land.intended",
  "land.landed",
  "land.abandoned",
  "land.unsettled",
  "land.pushing",
  "land.pushed",
  "land.push_failed",
  "land.push_unclear",
  "land.cleaning",
  "land.checkout_moving",
  "land.checkout_settled",
  "sync.attached",
  "sync.confirmed",
  "sync.conflict",
  "sync.evicted",
  "sync.merged",
  "sync.released",
  "sync.resynced",
  "sync.joined",
  "sync.left",
  "sync.sending",
  "sync.unsettled",
  "sync.withdrawn",
] as const;
export const EVENT_TYPES: readonly string[] = [...CLAIM_EVENTS, ...WRITE_EVENTS];
const BEGINNINGS = [...new Set(WRITE_EVENTS.map((type) => type.slice(0, type.indexOf(".") + 1)))].join(", ");

export const FILTER_FLAGS: Readonly<Record<string, Flag>> = {
  key: { value: "<key>", meaning: "only about this key (file:src/app.ts), or this path", completes: "key" },
  agent: { value: "<type:name>", meaning: "only by or about this agent", completes: "agent" },
  type: {
    value: "<type>",
    meaning: "only events whose type begins so: claim.acquired, claim., acquired",
    choices: EVENT_TYPES,
  },
  issue: { value: "<id>", meaning: "only about this issue", completes: "issue" },
  path: {
    value: "<prefix>",
    meaning: "only about this file or directory, and what is in it",
    completes: "path",
  },
  since: SINCE_FLAG,
};

type Test = (event: LoggedEvent) => boolean;

export interface EventFilter {
  readonly from: NonNullable<HistoryFilter["from"]> | undefined;
  readonly isWanted: Test;
}

/** What the flags ask for; whatever cannot be meant is refused before anything is read. */
export async function readEventFilter(workspace: Workspace, parsed: Parsed): Promise<EventFilter> {
  const { clock } = workspace.surroundings.platform;
  const since = parsed.text("since");
  const from = since === undefined ? undefined : parseSince(since, clock.wallMs());
  const tests: Test[] = from === undefined ? [] : [isFrom(from)];
  const type = parsed.text("type");
  if (type !== undefined) tests.push(ofType(type));
  const agent = parsed.text("agent");
  if (agent !== undefined) tests.push(ofAgent(orThrow(parseAgentId(agent))));
  const key = parsed.text("key");
  if (key !== undefined) tests.push(about(await keysNamed(workspace, key)));
  const issue = parsed.text("issue");
  if (issue !== undefined) tests.push(about([await issueNamed(workspace, issue)]));
  const path = parsed.text("path");
  if (path !== undefined) tests.push(below((await workspace.path(path)).path));
  return { from, isWanted: (event) => tests.every((test) => test(event)) };
}

export function isFrom(from: NonNullable<EventFilter["from"]>): Test {
  return "sequence" in from
    ? ({ sequence }) => sequence >= from.sequence
    : ({ timestamp }) => Date.parse(timestamp) >= from.timeMs;
}

function ofType(text: string): Test {
  const fits = (type: string) => type.startsWith(text) || type.startsWith(`claim.${text}`);
  if (text !== "" && EVENT_TYPES.some(fits)) return ({ type }) => fits(type);
  const near = nearest(text, [...EVENT_TYPES, ...SHORT_TYPES]);
  throw new CotenantError("E_USAGE", `no event type begins with "${printable(text)}"`, {
    hint:
      near === null ? `use one of ${SHORT_TYPES.join(", ")}, or of ${BEGINNINGS}` : `did you mean ${near}?`,
  });
}

function ofAgent(agentId: string): Test {
  return (event) =>
    event.actor.agentId === agentId || leasesIn(event).some((lease) => lease["agent_id"] === agentId);
}

function about(keys: readonly LeaseKey[]): Test {
  return (event) =>
    leasesIn(event).some((lease) => (keys as readonly unknown[]).includes(lease["key"])) ||
    issuesOf(event).some((id) => (keys as readonly string[]).includes(`issue:${id}`)) ||
    filesIn(event).some((path) => (keys as readonly string[]).includes(`file:${path}`));
}

/** Issues that a write was about. */
function issuesOf({ payload }: LoggedEvent): unknown[] {
  const many = payload["issue_ids"];
  return Array.isArray(many) ? many : [payload["issue_id"]];
}

function below(prefix: RepoPath): Test {
  return (event) =>
    leasesIn(event).some(({ key }) => typeof key === "string" && reachesInto(key as LeaseKey, prefix)) ||
    filesIn(event).some((path) => reachesInto(`file:${path}` as LeaseKey, prefix));
}

/** Files that the guard had something to do with. */
function filesIn({ payload }: LoggedEvent): string[] {
  return [
    ...recordsIn(payload, "files").map(({ path }) => String(path)),
    ...recordsIn(payload, "reports").map(({ blocked_file: path }) => String(path)),
  ];
}

/** A key as it is written, or a path, which may be a file's or a directory's. */
async function keysNamed(workspace: Workspace, text: string): Promise<LeaseKey[]> {
  if (text.startsWith("issue:")) return [await issueNamed(workspace, text.slice("issue:".length))];
  if (KEY_KINDS.some((kind) => text.startsWith(`${kind}:`))) return [orThrow(parseKey(text))];
  const { path } = await workspace.path(text);
  return [`file:${path}`, `dir:${path}`].map((key) => orThrow(parseKey(key)));
}

/** Also of an issue that is gone: the log remembers it. */
async function issueNamed(workspace: Workspace, text: string): Promise<LeaseKey> {
  const whole = parseUlid(text);
  if (!isRefusal(whole)) return orThrow(parseKey(`issue:${whole}`));
  return keyOfIssue(await meantId(await issuesIn(workspace), text));
}

/** An audit that leaves something out says so. */
export function noteUnreadable(workspace: Workspace): (path: string) => void {
  return (path) => workspace.warnings.push(`${path} has lines that cannot be read; they are left out`);
}

type Wire = Readonly<Record<string, unknown>>;

/** The leases that an event speaks of: those that stand after it, and those that it ended. */
export function leasesIn({ payload }: LoggedEvent): Wire[] {
  return [...recordsIn(payload, "leases"), ...recordsIn(payload, "ended")];
}

export function recordsIn(payload: Wire, name: string): Wire[] {
  const list = payload[name];
  return Array.isArray(list) ? list.filter((entry) => typeof entry === "object" && entry !== null) : [];
}
