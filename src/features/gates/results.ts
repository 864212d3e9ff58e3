import * as v from "valibot";
import type { Decoded } from "../../codec/codec";
import { count, isTrue, orNull, textOrEmpty, textOrNull, those, ulid } from "../../codec/fields";
import { jsonObject } from "../../codec/json";
import { readerOf } from "../../codec/record";
import { CotenantError } from "../../errors/cotenant-error";
import { makeUlid, type Ulid } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import type { Platform } from "../../platform/platform";
import { IssueFolder } from "../issues/folder";
import { committedResults, type IssueReader } from "../issues/reader";
import { type FoundIssue, isFound } from "../issues/resolve";
import { RESULTS } from "../issues/stamps";
import { readRegistry } from "./registry";

/** `reset`: what was said before does not count any more, as after an issue was reopened. */
const RESULT_STATUSES = ["passed", "failed", "reset"] as const;
export type ResultStatus = (typeof RESULT_STATUSES)[number];
const GATE_STATUSES = ["pending", "passed", "failed"] as const;
export type GateStatus = (typeof GATE_STATUSES)[number];

/** What a command did that a gate ran. */
const RUN = v.object({
  command: textOrEmpty,
  /** Null when a signal ended it. */
  exit_status: orNull(count),
  signal: textOrNull,
  timed_out: isTrue,
  duration_ms: v.fallback(count, 0),
  /** The end of what it printed. */
  output: textOrEmpty,
  /** Of all that it printed. */
  output_bytes: v.fallback(count, 0),
  output_cut: isTrue,
});

const RESULT_SCHEMA = 1;
/** One line of `gates/results/<issue>.jsonl`. */
const RESULT = readerOf(
  v.object({
    schema_version: v.pipe(
      v.number(),
      v.maxValue(RESULT_SCHEMA),
      v.transform(() => RESULT_SCHEMA),
    ),
    id: ulid,
    gate: v.string(),
    status: v.picklist(RESULT_STATUSES),
    /** Whether a command or somebody's word decided. */
    kind: v.fallback(v.picklist(["manual", "automated"]), "manual"),
    at: textOrEmpty,
    by: textOrEmpty,
    reason: textOrNull,
    /** The results that whoever wrote this one saw, and that it takes the place of. */
    replaces: those(ulid),
    /** What was checked; null outside Git, or before the first commit. */
    commit: textOrNull,
    tree: textOrNull,
    /** Whether there were changes that are not in the commit. Null where nobody looked. */
    dirty: orNull(v.boolean()),
    run: orNull(RUN),
  }),
);
export type GateResult = Decoded<typeof RESULT>;
export type GateRun = NonNullable<GateResult["run"]>;

/** What somebody has to say of a gate. */
export type Said = Pick<GateResult, "gate" | "status" | "kind" | "by"> &
  Partial<Pick<GateResult, "reason" | "commit" | "tree" | "dirty" | "run">>;

/** What the lines add up to: of every gate the results that no other one has replaced. */
export interface GateResults {
  readonly standing: ReadonlyMap<string, readonly GateResult[]>;
  /** Lines that are none. They count for nothing, and are never thrown away. */
  readonly broken: number;
}

/** A line travels in the log with its write, as text in JSON: this is what it may come to there. */
const LONGEST_LOGGED = 10_000;
const MOST_REPLACED = 100;
/** Nobody's gates say that much. */
export const LARGEST_RESULTS = 32 << 20;

export function newResult(
  platform: Pick<Platform, "clock" | "random">,
  given: Said,
  seen: GateResults,
): GateResult {
  const nowMs = platform.clock.wallMs();
  const replaced = seen.standing.get(given.gate) ?? [];
  return {
    schema_version: RESULT_SCHEMA,
    id: makeUlid(nowMs, platform.random.bytes(10)),
    gate: given.gate,
    status: given.status,
    kind: given.kind,
    at: new Date(nowMs).toISOString(),
    by: given.by,
    reason: given.reason ?? null,
    replaces: replaced.slice(0, MOST_REPLACED).map(({ id }) => id),
    commit: given.commit ?? null,
    tree: given.tree ?? null,
    dirty: given.dirty ?? null,
    run: given.run ?? null,
  };
}

/** Lines after which none of these gates is passed, or failed. */
export function resetLines(
  platform: Pick<Platform, "clock" | "random">,
  seen: GateResults,
  gates: readonly string[],
  by: string,
): string[] {
  return [...new Set(gates)]
    .filter((gate) => seen.standing.has(gate))
    .map((gate) => encodeResult(newResult(platform, { gate, status: "reset", kind: "manual", by }, seen)));
}

/** With as much of the output's end as the log takes. */
export function encodeResult(result: GateResult): string {
  let line = JSON.stringify(result);
  for (let { run } = result; run !== null && JSON.stringify(line).length > LONGEST_LOGGED; ) {
    const output = run.output.slice(Math.ceil(run.output.length / 4)).replace(/^[\uDC00-\uDFFF]/, "");
    run = { ...run, output, output_cut: true };
    line = JSON.stringify({ ...result, run });
    if (output === "") break;
  }
  return `${line}\n`;
}

/** Neither the order of the lines nor how often each is there matters: Git merges them by union. */
export function foldResults(text: string): GateResults {
  const all = new Map<Ulid, GateResult>();
  const replaced = new Set<Ulid>();
  let broken = 0;
  for (const lineText of text.split("\n")) {
    if (lineText.trim() === "") continue;
    const result = RESULT.decode(jsonObject(lineText));
    if (result === null) broken++;
    else {
      all.set(result.id, result);
      for (const id of result.replaces) replaced.add(id);
    }
  }
  const standing = new Map<string, GateResult[]>();
  for (const id of [...all.keys()].sort()) {
    if (replaced.has(id)) continue;
    const result = all.get(id)!;
    const others = standing.get(result.gate);
    if (others === undefined) standing.set(result.gate, [result]);
    else others.push(result);
  }
  return { standing, broken };
}

/** Of results on two branches none has seen the other: all of them have to be good. */
export function gateStatus({ standing }: GateResults, gate: string): GateStatus {
  const results = standing.get(gate) ?? [];
  if (results.some(({ status }) => status === "failed")) return "failed";
  return results.length > 0 && results.every(({ status }) => status === "passed") ? "passed" : "pending";
}

/** Gates of an issue that have not been passed, each once. One that is defined no more has to be passed all the same. */
export function pendingAmong(gates: readonly string[], results: GateResults): string[] {
  return [...new Set(gates)].filter((gate) => gateStatus(results, gate) !== "passed");
}

/** Gates of the issue that have not been passed yet. */
export async function pendingGates(reader: IssueReader, found: FoundIssue): Promise<string[]> {
  if (found.issue.gates.length === 0) return [];
  return pendingAmong(found.issue.gates, await readResults(reader, found));
}

/** A gate that an issue still has to pass; without a kind, one that nobody has defined here. */
export interface PendingGate {
  readonly key: string;
  readonly kind: "manual" | "automated" | null;
}

/** What issues wait for that are done but for their gates. */
export async function gatesPending(
  reader: IssueReader,
  ids: readonly Ulid[],
): Promise<Map<Ulid, readonly PendingGate[]>> {
  const pending = new Map<Ulid, readonly PendingGate[]>();
  if (ids.length === 0) return pending;
  const { gates } = await readRegistry(reader.sources.platform, reader.here.root);
  for (const [id, found] of await reader.findAll(ids))
    if (isFound(found))
      pending.set(
        id,
        (await pendingGates(reader, found)).map((key) => ({ key, kind: gates.get(key)?.kind ?? null })),
      );
  return pending;
}

/**
 * Of all copies that can be seen, and of the last write, which may still have to be carried out. Git is asked only for
 * one that stands in HEAD alone, and then outside the critical section: a write has read that beforehand.
 */
export async function readResults(reader: IssueReader, found: FoundIssue): Promise<GateResults> {
  const { sources, here } = reader;
  const { id, copy } = found;
  const texts = copy.root === null ? [copy.raw.results ?? (await committedResults(sources, id))] : [];
  for (const root of new Set([copy.root, here.root, sources.mainRoot]))
    if (root !== null) texts.push(await textIn(sources.platform, root, id));
  const stamp = (await sources.stamps([id])).get(id);
  for (const { file, line } of stamp?.additions ?? []) if (file === RESULTS) texts.push(line);
  return foldResults(texts.join("\n"));
}

async function textIn(platform: Platform, root: string, id: Ulid): Promise<string> {
  const path = `${root}/.cotenant/${RESULTS}/${id}.jsonl`;
  const size = (await platform.files.stat(path))?.size ?? 0;
  if (size <= LARGEST_RESULTS) return new IssueFolder(platform, root).lines(id, RESULTS);
  throw new CotenantError("E_LIMIT", `${path} has ${size} bytes; the limit is ${LARGEST_RESULTS}`, {
    hint: "look at what is in it, and keep the lines that count",
    data: { path, bytes: size },
  });
}

/** An automated one is passed by its run, any other by the word of those who may. */
export function passCommand(shortId: string, { key, kind }: PendingGate): string {
  return `cotenant gate ${kind === "automated" ? "run" : "pass"} ${shortId} ${shellWord(key)}`;
}
