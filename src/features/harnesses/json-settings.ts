import type { HarnessName } from "../../identity/harness";
import { HARNESSES } from "../guard/harness";
import type { Program } from "../installer/files";
import type { Via } from "./command-line";
import { type FoundEntry, foundEntries, isSame, type Wanted, wantedEntry, wantedEvents } from "./entries";
import {
  appended,
  cutsFor,
  type JsonText,
  nodeValue,
  propertyOf,
  readJson,
  type Splice,
  withoutCuts,
  withSplices,
  written,
} from "./json-text";

/** What we put into a file: enough to take exactly that out again. */
export interface Placement {
  /** Of the file afterwards. */
  readonly digest: string;
  /** In the file afterwards. */
  readonly splices: readonly Splice[];
}

/** How a file stands. `why` is what people should know, or what keeps us from changing it. */
export type Reading =
  | { readonly why: string }
  | { readonly json: JsonText; readonly entries: readonly FoundEntry[] };

export function readSettings(text: string): Reading {
  const json = readJson(text);
  return typeof json === "string" ? { why: json } : { json, entries: foundEntries(json) };
}

/** Events that others answer already, and in which two answers would be one too many. */
const ONLY_ONE = new Set(["WorktreeCreate", "WorktreeRemove"]);

export function wantedIn(harness: HarnessName, json: JsonText, program: Program, via: Via = null): Wanted[] {
  const isTaken = (name: string) => ONLY_ONE.has(name) && hasOthers(json, name);
  return wantedEvents(harness, program)
    .filter(({ name }) => !isTaken(name))
    .map((event) => wantedEntry(harness, event, program, via));
}

/** Whether somebody else answers the worktree events here. */
export function hasOwnWorktrees(json: JsonText): boolean {
  return [...ONLY_ONE].some((name) => hasOthers(json, name));
}

function hasOthers(json: JsonText, event: string): boolean {
  const hooks = json.root === null ? null : propertyOf(json.root, "hooks");
  const list = hooks?.type === "object" ? propertyOf(hooks, event) : null;
  const ours = new Set(foundEntries(json).map(({ node }) => node));
  return (list?.children ?? []).some((item) => !ours.has(item));
}

/** Whether every event has exactly one call of ours, as this version would write it or as somebody wrote it by hand. */
export function isCurrent(entries: readonly FoundEntry[], wanted: readonly Wanted[]): boolean {
  const known = new Set(wanted.map(({ event }) => event));
  if (entries.some(({ event, isByHand }) => !isByHand && !known.has(event))) return false;
  return wanted.every(({ event, value }) => {
    const found = entries.filter((one) => one.event === event);
    return found.length === 1 && (found[0]!.isByHand || isSame(found[0]!.value, value));
  });
}

/** The file with our entries in it, or why it cannot have them. The text has none of ours but those written by hand. */
export function placed(
  harness: HarnessName,
  text: string,
  program: Program,
  via: Via = null,
): { readonly text: string; readonly splices: readonly Splice[] } | { readonly why: string } {
  const read = readSettings(text);
  if ("why" in read) return read;
  const { json, entries } = read;
  const byHand = new Set(entries.map(({ event }) => event));
  const wanted = wantedIn(harness, json, program, via).filter(({ event }) => !byHand.has(event));
  const splices = splicesFor(harness, json, wanted);
  if ("why" in splices) return splices;
  const after = withSplices(text, splices.list);
  const inAfter = after.cuts.map(([start, end]) => ({ at: start, text: after.text.slice(start, end) }));
  return { text: after.text, splices: inAfter };
}

function splicesFor(
  harness: HarnessName,
  json: JsonText,
  wanted: readonly Wanted[],
): { readonly list: readonly Splice[] } | { readonly why: string } {
  const { root } = json;
  const needsVersion = harness === "cursor" || harness === "copilot";
  const byEvent = Object.fromEntries(wanted.map(({ event, value }) => [event, [value]]));
  if (root === null) {
    const whole = { ...(needsVersion ? { version: 1 } : {}), hooks: byEvent };
    // Where there is nothing, somebody may still have an opinion on how lines end.
    return { list: [{ at: json.text.length, text: `${written(json, whole, "")}${json.newline}` }] };
  }
  const property = (name: string, value: unknown) => (outer: string) =>
    `${JSON.stringify(name)}: ${written(json, value, outer)}`;
  const hooks = propertyOf(root, "hooks");
  const version = needsVersion && propertyOf(root, "version") === null ? [property("version", 1)] : [];
  if (hooks === null) return { list: appended(json, root, [...version, property("hooks", byEvent)]) };
  if (hooks.type !== "object") return { why: '"hooks" in it is no object' };
  const list: Splice[] = version.length === 0 ? [] : appended(json, root, version);
  const fresh: ((outer: string) => string)[] = [];
  for (const { event, value } of wanted) {
    const there = propertyOf(hooks, event);
    if (there === null) fresh.push(property(event, [value]));
    else if (there.type !== "array") return { why: `"hooks.${event}" in it is no list` };
    else list.push(...appended(json, there, [(outer) => written(json, value, outer)]));
  }
  if (fresh.length > 0) list.push(...appended(json, hooks, fresh));
  return { list };
}

/**
 * The file without our entries. Exactly as it was where nothing else has changed since; else by finding what we put in,
 * word for word; else by its structure. What is written by hand stays.
 */
export function taken(
  text: string,
  placements: readonly Placement[],
  digestOf: (text: string) => string,
): { readonly text: string; readonly isExact: boolean } | { readonly why: string } {
  const read = readSettings(text);
  if ("why" in read) return read;
  const digest = digestOf(text);
  const exact = placements.find((placement) => placement.digest === digest);
  if (exact !== undefined) return { text: withoutSplices(text, exact.splices), isExact: true };
  const ours = read.entries.filter(({ isByHand }) => !isByHand);
  const cut = withoutCuts(text, cutsFor(read.json, new Set(ours.map(({ node }) => node))));
  for (const { splices } of placements) {
    const found = relocated(text, splices);
    if (found !== null && isLike(found, cut)) return { text: found, isExact: false };
  }
  return { text: cut, isExact: false };
}

function withoutSplices(text: string, splices: readonly Splice[]): string {
  return withoutCuts(
    text,
    splices.map(({ at, text: added }) => [at, at + added.length] as const),
  );
}

/** Each of them wherever it is by now, if it is in one place. A lone comma is in many. */
function relocated(text: string, splices: readonly Splice[]): string | null {
  const moved: Splice[] = [];
  for (const { text: added } of splices) {
    const at = text.indexOf(added);
    if (at === -1 || text.indexOf(added, at + 1) !== -1) return null;
    moved.push({ at, text: added });
  }
  return withoutSplices(text, moved);
}

/** The same settings, but for what is empty. */
function isLike(a: string, b: string): boolean {
  const [left, right] = [readJson(a), readJson(b)];
  if (typeof left === "string" || typeof right === "string") return false;
  const value = ({ root }: JsonText) => JSON.stringify(root === null ? null : bare(nodeValue(root))) ?? "";
  return value(left) === value(right);
}

/** Without empty objects and lists, all the way up. */
function bare(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const isList = Array.isArray(value);
  const kept = Object.entries(value).flatMap(([name, one]) => {
    const rest = bare(one);
    return rest === undefined ? [] : [[name, rest] as const];
  });
  if (kept.length === 0) return undefined;
  return isList ? kept.map(([, one]) => one) : kept;
}

/** Whether a file that we made has nothing but our own frame left in it. */
export function isBareFrame(text: string): boolean {
  const json = readJson(text);
  if (typeof json === "string") return false;
  if (json.root === null) return true;
  // Qwen Code writes a version of its own into whatever it has read.
  const { version, $version: _, ...rest } = nodeValue(json.root) as Record<string, unknown>;
  return (version === undefined || version === 1) && bare(rest) === undefined && !/\/[/*]/.test(text);
}

/** What the harness should answer to, for people. */
export function titleOf(harness: HarnessName): string {
  return HARNESSES[harness].title;
}
