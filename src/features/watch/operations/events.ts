import { nearest } from "../../../config/nearest";
import type { LoggedEvent, Subscription } from "../../../coordinator/contract";
import { parseSince, type Since } from "../../../coordinator/since";
import { Statistics } from "../../../coordinator/statistics";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, orThrow, usageError } from "../../../errors/cotenant-error";
import { parseAgentId, parseUlid, printable, trusted } from "../../../kernel/ids";
import { KEY_KINDS, type LeaseKey, parseKey, type RepoPath } from "../../../kernel/keys";
import { isRefusal } from "../../../kernel/refusal";
import { CLAIM_EVENTS } from "../../../kernel/view";
import { keyOfIssue } from "../../issues/claim-refs";
import { issuesIn } from "../../issues/desk";
import { meantId } from "../../issues/meant";
import { reachesInto } from "../../locks/operations";

const SHORT_TYPES = CLAIM_EVENTS.map((type) => type.slice("claim.".length));
/** Of what is no lease: what can happen to each. */
const OTHER_EVENTS: Readonly<Record<string, string>> = {
  issue: "written commented",
  dispatch: "started worked failed delivered ended",
  lease: "escalated settled",
  repository: "paused resumed",
  eviction: "proposed approved void",
  policy: "changed violated forgotten trusted distrusted unreadable",
  contention: "heartbeat retry blocked ended resolved",
  guard: "violated left settled subagent_done",
  worktree: "intended created abandoned setup access removing removed kept",
  snapshot: "intended ready abandoned removed restoring restored interrupted set_aside",
  publish: "intended committed abandoned unsettled pushed push_failed push_unclear",
  land: "added removed retried parked paused resumed intended landed abandoned unsettled pushing pushed push_failed push_unclear cleaning checkout_moving checkout_settled",
  sync: "attached confirmed conflict evicted merged released resynced joined left sending unsettled withdrawn",
};
export const EVENT_TYPES: readonly string[] = [
  ...CLAIM_EVENTS,
  ...Object.entries(OTHER_EVENTS).flatMap(([about, what]) => what.split(" ").map((one) => `${about}.${one}`)),
];
const BEGINNINGS = Object.keys(OTHER_EVENTS)
  .map((about) => `${about}.`)
  .join(", ");

type Test = (event: LoggedEvent) => boolean;

/** Whom and what an event has to be about. Filters add up. */
export interface EventsRequest {
  /** A key (`file:src/app.ts`), or a path. */
  readonly key?: string | undefined;
  readonly agent?: string | undefined;
  /** What its type begins with: `claim.acquired`, `claim.`, `acquired`. */
  readonly type?: string | undefined;
  readonly issue?: string | undefined;
  /** A file or directory, and what is in it. */
  readonly path?: string | undefined;
  /** A duration ago (`10m`, `2h`, `1d`), an instant, or a sequence number. */
  readonly since?: string | undefined;
  /** Only the newest so many. */
  readonly limit?: number | undefined;
}

export interface Events {
  /** What the log has, oldest first, archived segments included. */
  readonly logged: AsyncIterable<LoggedEvent>;
  /** What is logged from then on, once `logged` has been read. */
  follow(listener: (event: LoggedEvent) => void): Promise<Subscription>;
}

const MOST = 1_000_000;

/** The audit log. Whatever cannot be meant is refused before anything is read. */
export async function events(workspace: Workspace, request: EventsRequest): Promise<Events> {
  const { limit: newest } = request;
  if (newest !== undefined && (newest < 1 || newest > MOST))
    throw usageError(`--limit is from 1 to ${MOST}, not ${newest}`, "see 'cotenant events --help'");
  const from = startOf(workspace, request.since);
  const isWanted = await filterOf(workspace, request, from);
  let last = 0;
  const where = (event: LoggedEvent) => {
    last = Math.max(last, event.sequence);
    return isWanted(event);
  };
  const wanted = {
    where,
    onUnreadable: noteUnreadable(workspace),
    ...(from === undefined ? {} : { from }),
    ...(newest === undefined ? {} : { newest }),
  };
  return {
    logged: workspace.coordinator.history(wanted),
    follow: (listener) =>
      workspace.followLog((event) => {
        if (isWanted(event)) listener(event);
      }, last),
  };
}

/** Adds up what the log has. */
export async function stats(
  workspace: Workspace,
  request: { readonly since?: string | undefined; readonly onRead?: () => void },
): Promise<Statistics> {
  const from = startOf(workspace, request.since);
  const isCounted = from === undefined ? () => true : isFrom(from);
  const found = new Statistics();
  const onUnreadable = noteUnreadable(workspace);
  const wanted = { ground: true, onUnreadable, ...(from === undefined ? {} : { from }) };
  for await (const event of workspace.coordinator.history(wanted)) {
    if (isCounted(event)) found.take(event);
    else found.prepare(event);
    request.onRead?.();
  }
  return found;
}

function startOf({ surroundings }: Workspace, since: string | undefined): Since | undefined {
  return since === undefined ? undefined : parseSince(since, surroundings.platform.clock.wallMs());
}

async function filterOf(
  workspace: Workspace,
  { type, agent, key, issue, path }: EventsRequest,
  from: Since | undefined,
): Promise<Test> {
  const tests: Test[] = from === undefined ? [] : [isFrom(from)];
  if (type !== undefined) tests.push(ofType(type));
  if (agent !== undefined) tests.push(ofAgent(orThrow(parseAgentId(agent))));
  if (key !== undefined) tests.push(about(await keysNamed(workspace, key)));
  if (issue !== undefined) tests.push(about([await issueNamed(workspace, issue)]));
  if (path !== undefined) tests.push(below((await workspace.path(path)).path));
  return (event) => tests.every((test) => test(event));
}

function isFrom(from: Since): Test {
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
    leasesIn(event).some(({ key }) => typeof key === "string" && reachesInto(trusted(key), prefix)) ||
    filesIn(event).some((path) => reachesInto(trusted(`file:${path}`), prefix));
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
function noteUnreadable(workspace: Workspace): (path: string) => void {
  return (path) => workspace.warnings.push(`${path} has lines that cannot be read; they are left out`);
}

type Wire = Readonly<Record<string, unknown>>;

/** The leases that an event speaks of: those that stand after it, and those that it ended. */
function leasesIn({ payload }: LoggedEvent): Wire[] {
  return [...recordsIn(payload, "leases"), ...recordsIn(payload, "ended")];
}

export function recordsIn(payload: Wire, name: string): Wire[] {
  const list = payload[name];
  return Array.isArray(list) ? list.filter((entry) => typeof entry === "object" && entry !== null) : [];
}
