import type { LogCheck } from "../../testing/checker/log-check";
import type { Verdict } from "../../testing/checker/verdict";
import type { Books, Counted } from "./books";
import type { Paint } from "./view";

/** What a run came to. */
export interface Outcome {
  readonly seed: number;
  readonly agents: number;
  readonly seconds: number;
  readonly elapsedMs: number;
  readonly books: Books;
  readonly log: LogCheck;
  readonly segments: number;
  readonly verdict: Verdict;
  readonly takeovers: readonly { readonly how: string; readonly ms: number }[];
  /** Where the scratch repository is, if it was kept. */
  readonly kept: string | null;
}

/** Without these a run has shown nothing. */
const IMPORTANT: readonly Counted[] = ["waited", "killed", "stolen", "fenced"];
/** In less time not everything can have happened. */
const ENOUGH_SECONDS = 6;

function missing(outcome: Outcome): Counted[] {
  return IMPORTANT.filter((name) => outcome.books.counts[name] === 0);
}

export function isFine(outcome: Outcome): boolean {
  const isShort = outcome.seconds < ENOUGH_SECONDS;
  return outcome.verdict.violations.length === 0 && (isShort || missing(outcome).length === 0);
}

export function toJson(outcome: Outcome): Record<string, unknown> {
  const { seed, agents, seconds, elapsedMs, books, log, verdict, kept } = outcome;
  const { stolen, fenced, ...counts } = books.counts;
  return {
    seed,
    agents,
    seconds,
    elapsed_ms: Math.round(elapsedMs),
    counts: { ...counts, stolen_dead: stolen, fenced_off: fenced },
    logged: {
      lines: log.sequence,
      segments: outcome.segments,
      events: Object.fromEntries(log.counts),
      endings: Object.fromEntries(log.endings),
    },
    takeover_ms: {
      dead: takeoversBy(outcome, "dead"),
      expired: takeoversBy(outcome, "expired"),
    },
    invariants_checked: verdict.checked,
    checks: Object.fromEntries(verdict.checks),
    violations: verdict.violations,
    missing: missing(outcome),
    kept,
  };
}

export function toText(outcome: Outcome, paint: Paint): string {
  const { seed, agents, seconds, elapsedMs, log, verdict, kept } = outcome;
  const lines = count(log.sequence, "log line");
  const segments = count(outcome.segments, "segment");
  return [
    paint("bold", `${agents} agents worked for ${seconds} s (${(elapsedMs / 1000).toFixed(1)} s in all)`),
    paint("dim", `${lines} in ${segments}; seed ${seed} repeats its choices`),
    "",
    ...table(outcome, paint),
    "",
    ...takeoverLines(outcome, paint),
    ...missingLines(outcome, paint),
    ...violationLines(verdict, paint),
    ...(kept === null ? [] : [`kept: ${kept}`]),
  ].join("\n");
}

const LABEL_WIDTH = 24;
const NUMBER_WIDTH = 14;

function row(label: string, ...cells: string[]): string {
  return label.padEnd(LABEL_WIDTH) + cells.map((cell) => cell.padStart(NUMBER_WIDTH)).join("");
}

function table(outcome: Outcome, paint: Paint): string[] {
  const { books, log, verdict } = outcome;
  const { counts } = books;
  const rows: [string, number, number | null][] = [
    ["granted", counts.granted, log.counts.get("claim.acquired") ?? 0],
    ["refused", counts.refused, null],
    ["waited in the queue", counts.waited, null],
    ["renewed", counts.renewed, log.counts.get("claim.renewed") ?? 0],
    ["stolen from the dead", counts.stolen, log.endings.get("dead") ?? 0],
    ["expired", counts.expired, log.endings.get("expired") ?? 0],
    ["evicted by a person", counts.evicted, log.endings.get("forced") ?? 0],
    ["transferred", counts.transferred, log.endings.get("transferred") ?? 0],
    ["fenced off", counts.fenced, null],
    ["stopped past their TTL", counts.stopped, null],
    ["killed", counts.killed, null],
  ];
  const violations = row("violations", String(verdict.violations.length));
  return [
    paint("dim", row("", "agents say", "the log says")),
    ...rows.map(([label, said, logged]) =>
      row(label, group(said), ...(logged === null ? [] : [group(logged)])),
    ),
    paint("dim", "─".repeat(LABEL_WIDTH + NUMBER_WIDTH)),
    row("invariants checked", group(verdict.checked)),
    paint(verdict.violations.length === 0 ? "green" : "red", violations),
  ];
}

function takeoverLines(outcome: Outcome, paint: Paint): string[] {
  const rows = [
    { label: "  after a kill", taken: takeoversBy(outcome, "dead") },
    { label: "  after a TTL of 1 s", taken: takeoversBy(outcome, "expired") },
  ].flatMap(({ label, taken }) =>
    taken === null ? [] : [row(label, secs(taken.median), secs(taken.longest))],
  );
  return rows.length === 0
    ? []
    : [paint("dim", row("next in the queue had it", "median", "at most")), ...rows];
}

function missingLines(outcome: Outcome, paint: Paint): string[] {
  const names = missing(outcome);
  if (names.length === 0) return [];
  const tooShort = outcome.seconds < ENOUGH_SECONDS;
  const what = `never happened: ${names.join(", ")}`;
  return [
    tooShort
      ? paint("yellow", `${what}; that takes --seconds ${ENOUGH_SECONDS} or more`)
      : paint("red", `${what}: this run has not shown what it should`),
  ];
}

/** One broken rule breaks many; the first ones tell the story. */
const MOST_VIOLATIONS = 20;

function violationLines({ violations }: Verdict, paint: Paint): string[] {
  const rest = violations.length - MOST_VIOLATIONS;
  return [
    ...violations.slice(0, MOST_VIOLATIONS).map((violation) => paint("red", `violated: ${violation}`)),
    ...(rest > 0 ? [paint("red", `and ${rest} more; --json lists them all`)] : []),
  ];
}

interface Takeovers {
  readonly times: number;
  readonly median: number;
  readonly longest: number;
}

function takeoversBy({ takeovers }: Outcome, how: string): Takeovers | null {
  const sorted = takeovers
    .filter((takeover) => takeover.how === how)
    .map(({ ms }) => ms)
    .sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  return { times: sorted.length, median: sorted[sorted.length >> 1]!, longest: sorted.at(-1)! };
}

export function secs(ms: number): string {
  return ms < 950 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function count(n: number, one: string): string {
  return `${group(n)} ${one}${n === 1 ? "" : "s"}`;
}

function group(n: number): string {
  return n.toLocaleString("en");
}
