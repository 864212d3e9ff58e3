import type { LeaseStatus } from "../../coordinator/contract";
import { printable } from "../../kernel/ids";
import { shownKey } from "../../kernel/landing-right";
import { type Lease, sameParty } from "../../kernel/lease";
import { duration } from "../../kernel/printing";
import { leaseToWire } from "../../store/wire";
import type { Terminal } from "./terminal";

/** A lease as programs see it, with the fields of docs/JSON.md: without what only the store needs. */
export function leaseJson(
  lease: Lease,
  status?: Pick<LeaseStatus, "standing" | "stale" | "remainingMs">,
  ledger: "confirmed" | "provisional" | null = null,
): Record<string, unknown> {
  return {
    ...publicLease(leaseToWire(lease)),
    ...(ledger === null ? {} : { ledger }),
    ...(status === undefined
      ? {}
      : {
          standing: status.standing,
          stale: status.stale,
          remaining_secs:
            status.remainingMs === null ? null : Math.max(0, Math.round(status.remainingMs / 1000)),
        }),
  };
}

/** The same of a lease as it stands in the log. */
export function publicLease(wire: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { key, bind, expires_at: expiresAt, stole_from: stoleFrom = [] } = wire;
  const shown: Record<string, unknown> = {};
  for (const name in wire) if (!name.endsWith("_clock") && name !== "secret_hash") shown[name] = wire[name];
  return {
    ...shown,
    ...(typeof key === "string" && key.startsWith("issue:") ? { issue_id: key.slice("issue:".length) } : {}),
    stole_from: stoleFrom,
    indefinite: bind === "ttl" && expiresAt === null,
  };
}

/** These fields of something, named as programs see them. */
export function jsonFields<T extends object>(
  from: T,
  ...names: readonly (keyof T & string)[]
): Record<string, unknown> {
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(names.map((name) => [snake(name), from[name]]));
}

export function statusJson(status: LeaseStatus): Record<string, unknown> {
  return leaseJson(status.lease, status);
}

/** The same where claims are shared between machines. */
export function statusJsonIn(view: LedgerStanding | null): (status: LeaseStatus) => Record<string, unknown> {
  return (status) => leaseJson(status.lease, status, view?.standing(status.lease) ?? null);
}

/** Whether the ledger has confirmed a lease. */
export interface LedgerStanding {
  standing(lease: Lease): "confirmed" | "provisional" | null;
}

/** One lease: `data.lease`; several: `data.leases`; always both spellings of "how many". */
export function leasesData(leases: readonly Record<string, unknown>[]): Record<string, unknown> {
  return leases.length === 1 ? { lease: leases[0], leases } : { leases };
}

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";
const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 };

export function paint(terminal: Terminal, style: Style, text: string): string {
  return terminal.color ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text;
}

export function timeLeft({ lease, standing, stale, remainingMs }: LeaseStatus): string {
  if (standing !== "valid") return standing.replace("_", "-");
  if (lease.bind === "process") return "while it runs";
  if (remainingMs === null) return stale ? "indefinite, stale" : "indefinite";
  return `${duration(remainingMs)} left`;
}

export function leaseTable(
  terminal: Terminal,
  statuses: readonly LeaseStatus[],
  me: Parameters<typeof sameParty>[0] | null,
  view: LedgerStanding | null = null,
  /** What leases are on, by key, for those that say no reason. */
  titles: ReadonlyMap<string, string> = new Map(),
): string {
  const rows = statuses.map((status) => {
    const { lease } = status;
    const mine = me !== null && sameParty(lease, me);
    return [
      mine ? "*" : " ",
      printable(shownKey(lease.key), 60),
      lease.agentId,
      lease.worktreeId,
      timeLeft(status) + (view?.standing(lease) === "provisional" ? ", provisional" : ""),
      `#${lease.fencingToken}`,
      printable(lease.reason ?? lease.note ?? titles.get(lease.key) ?? "", 40),
    ];
  });
  return columns(terminal, ["", "KEY", "HOLDER", "WORKTREE", "TIME", "TOKEN", "WHY"], rows);
}

/** Of a column that is squeezed. */
const LEAST_WIDTH = 16;

/** Aligned columns, cut to the terminal's width, those of `squeezed` first; without a terminal nothing is cut. */
export function columns(
  terminal: Terminal,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  squeezed: number | null = null,
): string {
  const widths = head.map(({ length }) => length);
  // Plain loops, here and below: there may be many thousands of rows, and nothing has warmed up.
  for (const row of rows)
    for (let i = 0; i < widths.length; i++)
      if ((row[i] ?? "").length > widths[i]!) widths[i] = row[i]!.length;
  if (terminal.isTerminal && squeezed !== null) {
    const over = widths.reduce((sum, width) => sum + width + 2, -2) - terminal.columns;
    widths[squeezed] = Math.min(widths[squeezed]!, Math.max(widths[squeezed]! - over, LEAST_WIDTH));
  }
  const fitting = (cell: string, i: number) =>
    i === squeezed && cell.length > widths[i]! ? `${cell.slice(0, widths[i]! - 1)}…` : cell;
  const line = (cells: readonly string[]) => {
    let text = "";
    for (let i = 0; i < cells.length; i++)
      text += `${i === 0 ? "" : "  "}${fitting(cells[i]!, i).padEnd(widths[i]!)}`;
    text = text.trimEnd();
    return terminal.isTerminal && text.length > terminal.columns
      ? `${text.slice(0, terminal.columns - 1)}…`
      : text;
  };
  return [paint(terminal, "dim", line(head)), ...rows.map(line)].join("\n");
}

/** A line of somebody else's text for a terminal, where a tab would move the cursor. */
export function untabbed(line: string, limit: number): string {
  return printable(line.replaceAll("\t", "    "), limit);
}

const LONGEST_LINE = 10_000;

/** A line of a file as it is or would be, tabs included, without what could move the cursor. */
export function verbatim(line: string, limit = LONGEST_LINE): string {
  return line
    .split("\t")
    .map((part) => printable(part, limit))
    .join("\t");
}
