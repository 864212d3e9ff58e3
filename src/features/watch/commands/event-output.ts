import { paint, publicLease, type Style } from "../../../cli/terminal/render";
import type { Terminal } from "../../../cli/terminal/terminal";
import type { LoggedEvent } from "../../../coordinator/contract";
import { printable } from "../../../kernel/ids";
import { shownKey } from "../../../kernel/landing-right";
import { count, duration } from "../../../kernel/printing";
import { EVENT_TYPES, recordsIn } from "../operations/events";

/** An event as programs see it: the log's envelope without its chain, and without any hash of a secret. */
export function eventJson(event: LoggedEvent): Record<string, unknown> {
  const { actor, payload } = event;
  // What a fact or a result holds is between the store and its writers.
  const { leases, facts: _facts, result: _result, ...rest } = payload;
  return {
    schema_version: event.schemaVersion,
    sequence: event.sequence,
    event_type: event.type,
    timestamp: event.timestamp,
    actor: {
      agent_id: actor.agentId,
      session_id: actor.sessionId,
      worktree_id: actor.worktreeId,
      host: actor.host,
      pid: actor.pid,
    },
    payload: leases === undefined ? rest : { ...rest, leases: recordsIn(payload, "leases").map(publicLease) },
  };
}

const STYLES: Readonly<Record<string, Style>> = {
  acquired: "green",
  released: "cyan",
  evicted: "red",
  expired: "yellow",
  dead: "yellow",
  idle: "yellow",
  lapsed: "yellow",
  transferred: "yellow",
  stopped: "yellow",
};

/** One line for people: number, time, what, who, on what, and what was special about it. */
export function eventLine(event: LoggedEvent, terminal: Terminal): string {
  const lapsed = lapsedIn(event);
  const what = lapsed?.how ?? event.type.replace(/^claim\./, "");
  const style = STYLES[what];
  const cells = [
    String(event.sequence).padStart(6),
    event.timestamp.replace("T", " ").replace(/\.\d+Z$/, "Z"),
    style === undefined ? what.padEnd(WHAT_WIDTH) : paint(terminal, style, what.padEnd(WHAT_WIDTH)),
    (lapsed?.whose ?? event.actor.agentId).padEnd(20),
    keysText(event),
    ...details(event).map((detail) => paint(terminal, "dim", detail)),
  ];
  return cells.join("  ").trimEnd();
}

const WHAT_WIDTH = Math.max(...EVENT_TYPES.map((type) => type.replace(/^claim\./, "").length));
const MOST_KEYS = 4;

function keysText({ type, payload }: LoggedEvent): string {
  const lists = ["leases", "ended", ...(type === "eviction.proposed" ? ["proposals"] : [])];
  const named = lists.flatMap((list) => recordsIn(payload, list)).map(({ key }) => String(key));
  const alone = type === "eviction.approved" ? payload["key"] : payload["about"];
  const keys = [...new Set(named.length > 0 ? named : [String(alone ?? "")])];
  const more = keys.length - MOST_KEYS;
  const shown = keys
    .slice(0, more === 1 ? MOST_KEYS + 1 : MOST_KEYS)
    .map((key) => printable(shownKey(key), 100));
  return [...shown, ...(more > 1 ? [`and ${more} more`] : [])].join(", ");
}

/** Of leases whose time was up: how they ended, and whose they were. Whoever logged it has ended nothing. */
function lapsedIn({ type, payload }: LoggedEvent): { readonly how: string; readonly whose: string } | null {
  const ended = type === "claim.evicted" ? recordsIn(payload, "ended") : [];
  if (ended.length === 0 || ended.some(({ cause }) => cause === "forced")) return null;
  const [how, ...others] = new Set(ended.map(({ cause }) => LAPSED[String(cause)] ?? "expired"));
  const [first, second, ...more] = new Set(ended.map((one) => String(one["agent_id"])));
  const whose =
    second === undefined ? first! : more.length === 0 ? `${first}, ${second}` : `${first} and others`;
  return { how: others.length === 0 ? how! : "lapsed", whose };
}

const LAPSED: Readonly<Record<string, string>> = { expired: "expired", dead: "dead", stop_idle: "idle" };

function details(event: LoggedEvent): string[] {
  const { type, payload, actor } = event;
  const lapsed = lapsedIn(event);
  if (lapsed !== null) return lapsed.whose === actor.agentId ? [] : [`logged by ${actor.agentId}`];
  const leases = recordsIn(payload, "leases");
  const ended = recordsIn(payload, "ended");
  const [first] = leases;
  const tokens = type === "claim.acquired" || type === "claim.transferred";
  const waited = payload["waited_ms"];
  const reason = payload["reason"] ?? first?.["reason"] ?? null;
  return [
    ...(type === "issue.written" && payload["created"] !== true
      ? [`version ${payload["version"]}`, String(payload["state"])]
      : []),
    ...(tokens && leases.length === 1 ? [`#${first!["fencing_token"]}`] : []),
    ...(type === "claim.transferred" ? leases.map((lease) => `to ${lease["agent_id"]}`) : []),
    ...(type === "claim.transferred" && ended[0]?.["why"] !== undefined
      ? [`taken from ${ended[0]["agent_id"]}`]
      : []),
    ...(type === "claim.released" || type === "claim.transferred" ? [] : endings(ended)),
    ...proposedToEnd(type, payload),
    ...contended(type, payload),
    ...(typeof waited === "number" ? [`waited ${duration(waited)}`] : []),
    ...(typeof reason === "string" && reason !== "" ? [`"${printable(reason, 200)}"`] : []),
  ];
}

function proposedToEnd(type: string, payload: LoggedEvent["payload"]): string[] {
  if (type !== "eviction.proposed" && type !== "eviction.approved") return [];
  const [first, ...others] = type === "eviction.approved" ? [payload] : recordsIn(payload, "proposals");
  if (first?.["agent_id"] === undefined) return [];
  return [
    `held by ${first["agent_id"]}${others.length === 0 ? "" : ` and ${count(others.length, "other")}`}`,
  ];
}

/** Who holds it, and who has waited for it longest. */
function escalated(payload: LoggedEvent["payload"]): string[] {
  const [first, ...others] = recordsIn(payload, "waiting");
  const held = `held by ${payload["agent_id"]} since ${payload["held_since"]}`;
  if (first === undefined) return [held];
  const more = others.length === 0 ? " waits" : ` and ${count(others.length, "other")} wait`;
  return [held, `${first["agent_id"]}${more} since ${first["since"]}`];
}

/** The other party of what two agents have to do with each other. */
function contended(type: string, payload: LoggedEvent["payload"]): string[] {
  const files = recordsIn(payload, "files");
  const [first] = files;
  if (type === "guard.violated" && first !== undefined)
    return [`under the lease of ${first["owner"]}`, `"${printable(String(payload["command"]), 80)}"`];
  if (type === "guard.settled" && first !== undefined)
    return [`changed by ${first["agent_id"]} under the lease of ${first["owner"]}`, String(payload["how"])];
  if (type === "lease.escalated") return escalated(payload);
  if (!type.startsWith("contention.")) return [];
  const owner = first?.["owner"] ?? recordsIn(payload, "reports")[0]?.["owner"];
  const retryAt = payload["retry_at"];
  return [
    ...(owner === undefined ? [] : [`held by ${owner}`]),
    ...(typeof retryAt === "string" ? [`retry at ${retryAt}`] : []),
    ...(typeof payload["how"] === "string" ? [payload["how"]] : []),
  ];
}

const CAUSES: Readonly<Record<string, string>> = {
  expired: "expired",
  dead: "its process died",
  stop_idle: "its session had stopped",
  forced: "forced",
};

function endings(ended: readonly Readonly<Record<string, unknown>>[]): string[] {
  const [first] = ended;
  if (first === undefined) return [];
  const cause = CAUSES[String(first["cause"])] ?? String(first["cause"]);
  const from = `${first["successor"] === null ? "held by" : "from"} ${first["agent_id"]} (${cause})`;
  return [ended.length === 1 ? from : `${from} and ${count(ended.length - 1, "other")}`];
}
