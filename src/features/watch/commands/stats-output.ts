import { bar, type Pens, sparkline, squeezed } from "../../../cli/terminal/charts";
import { columns, paint } from "../../../cli/terminal/render";
import type { Terminal } from "../../../cli/terminal/terminal";
import {
  type KeyFigures,
  type Spread,
  type Statistics,
  spreadOf,
  type Tally,
} from "../../../coordinator/statistics";
import { printable } from "../../../kernel/ids";
import { count, duration } from "../../../kernel/printing";

type Ranked = readonly (readonly [string, KeyFigures])[];

/** The busiest first: by how often it was asked for and granted, then by how long it was held. */
function busiest(stats: Statistics, top: number): Ranked {
  const held = (figures: KeyFigures) => figures.holdsMs.reduce((sum, ms) => sum + ms, 0);
  return [...stats.keys]
    .sort(([a, x], [b, y]) => y.tally.acquired - x.tally.acquired || held(y) - held(x) || (a < b ? -1 : 1))
    .slice(0, top);
}

/** How often others were in the way, as far as the log can know. */
function contention({ tally }: KeyFigures): number {
  return tally.waited + tally.stolen + tally.taken_over;
}

export function statsJson(stats: Statistics, top: number): Record<string, unknown> {
  const { first, last, overTime } = stats;
  const place = (at: typeof first) =>
    at === null ? null : { sequence: at.sequence, timestamp: at.timestamp };
  const named = (tallies: ReadonlyMap<string, Tally>, name: string) =>
    byActivity(tallies).map(([value, tally]) => ({ [name]: value, ...tally }));
  return {
    events: stats.events,
    from: place(first),
    to: place(last),
    totals: stats.totals,
    hold_ms: spreadOf(stats.holdsMs),
    wait_ms: spreadOf(stats.waitsMs),
    kinds: named(stats.kinds, "kind"),
    agents: named(stats.agents, "agent_id").slice(0, top),
    keys: busiest(stats, top).map(([key, figures]) => ({
      key,
      ...figures.tally,
      contention: contention(figures),
      agents: figures.agents.size,
      changed_hands: figures.changedHands,
      hold_ms: spreadOf(figures.holdsMs),
      wait_ms: spreadOf(figures.waitsMs),
    })),
    violations: stats.violations,
    known: { keys: stats.keys.size, agents: stats.agents.size },
    acquired_over_time: {
      from: overTime.startMs === null ? null : new Date(overTime.startMs).toISOString(),
      bucket_secs: overTime.bucketMs / 1000,
      counts: overTime.counts,
    },
  };
}

function byActivity(tallies: ReadonlyMap<string, Tally>): [string, Tally][] {
  return [...tallies].sort(([a, x], [b, y]) => y.acquired - x.acquired || (a < b ? -1 : 1));
}

export function statsText(stats: Statistics, top: number, terminal: Terminal, pens: Pens): string {
  if (stats.events === 0) return "nothing was logged in that time";
  const draws = terminal.isTerminal;
  return [
    ...headLines(stats, terminal, draws ? pens : null),
    "",
    tallyTable(terminal, "KIND", byActivity(stats.kinds)),
    "",
    tallyTable(terminal, "AGENT", byActivity(stats.agents).slice(0, top)),
    ...more(stats.agents.size - top, "agent"),
    "",
    keyTable(stats, top, terminal, draws ? pens : null),
    ...more(stats.keys.size - top, "key"),
    "",
    ...(stats.violations === 0 ? [] : [`${count(stats.violations, "commit")} made around the hooks`]),
    paint(terminal, "dim", "refusals are not logged: contention is what waited, was stolen or taken over"),
  ].join("\n");
}

function more(left: number, noun: string): string[] {
  return left > 0 ? [`and ${count(left, `more ${noun}`)}; --top shows more`] : [];
}

function headLines(stats: Statistics, terminal: Terminal, pens: Pens | null): string[] {
  const { totals, first, last, overTime } = stats;
  const span = Date.parse(last!.timestamp) - Date.parse(first!.timestamp);
  const spread = (name: string, of: Spread | null) =>
    of === null ? [] : [`${name}  ${spreadText(of)} (${count(of.count, "lease")})`];
  const counts = squeezed(overTime.counts, Math.max(10, terminal.columns - 12));
  return [
    paint(terminal, "bold", `${count(stats.events, "event")} in ${duration(span)}, from ${first!.timestamp}`),
    `${totals.acquired} acquired, ${totals.renewed} renewed, ${totals.released} released, ${totals.expired} expired, ` +
      `${totals.stolen} stolen, ${totals.evicted} evicted, ${totals.transferred} transferred`,
    ...(pens === null ? [] : [`acquired  ${paint(terminal, "cyan", sparkline(counts, pens))}`]),
    ...spread("held    ", spreadOf(stats.holdsMs)),
    ...spread("waited  ", spreadOf(stats.waitsMs)),
  ];
}

function spreadText({ min, median, p95, max }: Spread): string {
  return `min ${shortTime(min)}, median ${shortTime(median)}, p95 ${shortTime(p95)}, max ${shortTime(max)}`;
}

function shortTime(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)}s` : duration(ms);
}

const TALLIED: readonly (readonly [string, (tally: Tally) => number])[] = [
  ["ACQUIRED", ({ acquired }) => acquired],
  ["WAITED", ({ waited }) => waited],
  ["RENEWED", ({ renewed }) => renewed],
  ["RELEASED", ({ released }) => released],
  ["LAPSED", (tally) => tally.expired + tally.dead + tally.stop_idle],
  ["STOLEN", ({ stolen }) => stolen],
  ["EVICTED", ({ evicted }) => evicted],
  ["TRANSFERRED", ({ transferred }) => transferred],
];

function tallyTable(terminal: Terminal, name: string, rows: readonly (readonly [string, Tally])[]): string {
  return columns(
    terminal,
    [name, ...TALLIED.map(([head]) => head)],
    rows.map(([value, tally]) => [
      printable(value, 60),
      ...TALLIED.map(([, number]) => String(number(tally))),
    ]),
  );
}

const BAR_WIDTH = 20;

function keyTable(stats: Statistics, top: number, terminal: Terminal, pens: Pens | null): string {
  const ranked = busiest(stats, top);
  const most = ranked[0]?.[1].tally.acquired ?? 0;
  const time = (of: Spread | null, pick: (spread: Spread) => number) =>
    of === null ? "-" : shortTime(pick(of));
  const rows = ranked.map(([key, figures]) => {
    const holds = spreadOf(figures.holdsMs);
    const waits = spreadOf(figures.waitsMs);
    return [
      printable(key, 60),
      String(figures.tally.acquired),
      ...(pens === null ? [] : [bar(figures.tally.acquired, most, BAR_WIDTH, pens)]),
      String(contention(figures)),
      String(figures.agents.size),
      time(holds, ({ median }) => median),
      time(holds, ({ p95 }) => p95),
      time(holds, ({ max }) => max),
      time(waits, ({ p95 }) => p95),
    ];
  });
  const head = ["KEY", "ACQUIRED", ...(pens === null ? [] : [""]), "CONTENTION", "AGENTS"];
  return columns(terminal, [...head, "HELD", "P95", "MAX", "WAIT P95"], rows);
}
