import type { Node } from "jsonc-parser";
import type { HarnessName } from "../../identity/harness";
import { HARNESSES, type HookEvent, STATUS_MESSAGE } from "../guard/harness";
import type { Program } from "../installer/files";
import {
  argumentsFor,
  callsUs,
  daemonIn,
  type HttpDoor,
  isInstalledLine,
  lineFor,
  powershellLine,
  type Via,
  WORKTREE_EVENTS,
  type WorktreeEvent,
} from "./command-line";
import { itemsOf, type JsonText, nodeValue, propertiesOf } from "./json-text";

/** Harnesses that show a text of ours while a hook runs; none of them shows what the hook says meanwhile. */
const SHOWING: readonly HarnessName[] = ["claude", "codex", "qwen"];

/** What one event gets in a file with JSON: a group of handlers, or a handler. */
export interface Wanted {
  readonly event: string;
  readonly value: object;
}

/** Everything that a harness should call us for. Worktrees only where the program surely is. */
export function wantedEvents(harness: HarnessName, program: Program): (HookEvent | WorktreeEvent)[] {
  const worktrees = program === null ? [] : (WORKTREE_EVENTS[harness] ?? []);
  return [...HARNESSES[harness].events, ...worktrees];
}

export function wantedEntry(
  harness: HarnessName,
  event: HookEvent | WorktreeEvent,
  program: Program,
  via: Via,
): Wanted {
  const line = lineFor(program, harness, event, via);
  const matcher = "matcher" in event && event.matcher !== null ? { matcher: event.matcher } : {};
  const canRefuse = "moment" in event && event.moment === "before";
  const { name, timeoutSecs } = event;
  switch (harness) {
    case "cursor": {
      const handler = { command: line, ...matcher, timeout: timeoutSecs };
      return { event: name, value: canRefuse ? { ...handler, failClosed: true } : handler };
    }
    case "copilot": {
      const windows = program === null ? { powershell: powershellLine(argumentsFor(harness, event)) } : {};
      const handler = { type: "command", bash: line, ...windows, ...matcher, timeoutSec: timeoutSecs };
      return { event: name, value: handler };
    }
    default: {
      // Gemini CLI counts in milliseconds; so did Qwen Code, and it takes a thousand and more for those still.
      const isGeminis = harness === "gemini" || harness === "qwen";
      if (canRefuse && via?.http != null)
        return { event: name, value: { ...matcher, hooks: [httpHandler(harness, event, via.http)] } };
      const timeout = isGeminis ? timeoutSecs * 1_000 : timeoutSecs;
      const handler = {
        ...(isGeminis ? { name: "cotenant" } : {}),
        type: "command",
        command: line,
        timeout,
        ...(canRefuse && SHOWING.includes(harness) ? { statusMessage: STATUS_MESSAGE } : {}),
      };
      return { event: name, value: { ...matcher, hooks: [handler] } };
    }
  }
}

/** A call of ours in somebody's settings. */
export interface FoundEntry {
  readonly event: string;
  /** What would have to go: a handler, or the group that has no other. */
  readonly node: Node;
  readonly value: unknown;
  readonly line: string;
  /** Somebody wrote it themselves. */
  readonly isByHand: boolean;
}

export function foundEntries({ root }: JsonText): FoundEntry[] {
  if (root === null) return [];
  return propertiesOf(root, "hooks").flatMap((hooks) =>
    hooks.type !== "object" ? [] : (hooks.children ?? []).flatMap(entriesOfEvent),
  );
}

function entriesOfEvent({ children }: Node): FoundEntry[] {
  const [name, list] = children ?? [];
  if (name === undefined || list === undefined) return [];
  return itemsOf(list).flatMap((item) => entriesIn(String(name.value), item));
}

function entriesIn(event: string, item: Node): FoundEntry[] {
  const handlers = item.type === "object" ? propertiesOf(item, "hooks").flatMap(itemsOf) : [];
  if (handlers.length === 0) {
    const line = lineOf(item);
    return line === null ? [] : [entry(event, item, line)];
  }
  const lines = handlers.map(lineOf);
  // A group that is all ours goes whole; of somebody else's only our handler.
  const ours = lines.filter((line) => line !== null);
  if (ours.length === lines.length) return ours.map((line) => entry(event, item, line));
  return handlers.flatMap((handler, i) => (lines[i] == null ? [] : [entry(event, handler, lines[i])]));
}

function entry(event: string, node: Node, line: string): FoundEntry {
  return { event, node, value: nodeValue(node), line, isByHand: !isInstalledLine(line) && !isOurUrl(line) };
}

/** How these entries get to the guard, by those that `agent install` wrote. */
export function viaOf(entries: readonly FoundEntry[]): Via {
  const ours = entries.filter(({ isByHand }) => !isByHand);
  const daemon = ours.map(({ line }) => daemonIn(line)).find((one) => one !== null) ?? null;
  if (daemon === null) return null;
  return { daemon, http: ours.map(({ value }) => doorIn(value)).find((one) => one !== null) ?? null };
}

/** The command line of a handler, or the address that it asks, if it is a call of ours. */
function lineOf(handler: Node): string | null {
  if (handler.type !== "object") return null;
  const { url } = nodeValue(handler) as Record<string, unknown>;
  if (typeof url === "string" && isOurUrl(url)) return url;
  const { command, bash, powershell, args } = nodeValue(handler) as Record<string, unknown>;
  const rest = Array.isArray(args) ? args.filter((arg) => typeof arg === "string") : [];
  for (const first of [command, bash, powershell])
    if (typeof first === "string") {
      const line = [first, ...rest].join(" ");
      if (callsUs(line)) return line;
    }
  return null;
}

export function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

/** The order of names means nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const names = Object.keys(value).sort();
  return names.map((name) => [name, sorted((value as Record<string, unknown>)[name])]);
}

/** Harnesses whose HTTP hooks can be told to refuse when nobody answers. */
export const HTTP_HARNESSES: readonly HarnessName[] = ["claude"];

const HOST = "127.0.0.1";
const OURS = /^http:\/\/127\.0\.0\.1:(\d{1,5})\/guard\/[a-z]+\/[A-Za-z._]+$/;

/** What the harness must name as the host. */
export function httpHost({ port }: Pick<HttpDoor, "port">): string {
  return `${HOST}:${port}`;
}

/** Where nobody answers, nothing is written: Claude Code 2.1.295 and newer. */
function httpHandler(
  harness: HarnessName,
  { name, timeoutSecs }: Pick<HookEvent, "name" | "timeoutSecs">,
  door: HttpDoor,
): object {
  return {
    type: "http",
    url: `http://${httpHost(door)}/guard/${harness}/${name}`,
    headers: { Authorization: `Bearer ${door.token}` },
    timeout: timeoutSecs,
    onFailure: "block",
    statusMessage: STATUS_MESSAGE,
  };
}

export function isOurUrl(url: string): boolean {
  return OURS.test(url);
}

/** The door that an entry, or a group of them, asks at. */
function doorIn(entry: unknown): HttpDoor | null {
  const { hooks } = (entry ?? {}) as { hooks?: unknown };
  const handlers: readonly unknown[] = Array.isArray(hooks) ? hooks : [entry];
  for (const handler of handlers) {
    const { url, headers } = (handler ?? {}) as { url?: unknown; headers?: unknown };
    const port = typeof url === "string" ? OURS.exec(url)?.[1] : undefined;
    const { Authorization: shown } = (headers ?? {}) as { Authorization?: unknown };
    const token = typeof shown === "string" ? /^Bearer ([0-9a-f]+)$/.exec(shown)?.[1] : undefined;
    if (port !== undefined && token !== undefined) return { port: Number(port), token };
  }
  return null;
}
