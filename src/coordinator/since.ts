import { CotenantError, usageError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";

/** From which event on. */
export type Since = { readonly sequence: number } | { readonly timeMs: number };

const UNITS_SECS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 7 * 86_400 };
const DURATION = /^(?:\d{1,9}[smhdw])+$/;
const RFC3339 = /^\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:\d\d)?)?$/;

/** `90s`, `2h`, `1d12h` ago; an instant; or a sequence number. */
export function parseSince(text: string, nowMs: number): Since {
  if (/^\d{1,15}$/.test(text)) return { sequence: Number(text) };
  if (DURATION.test(text)) return { timeMs: nowMs - durationMs(text) };
  const timeMs = RFC3339.test(text) ? Date.parse(zoned(text)) : Number.NaN;
  if (!Number.isNaN(timeMs)) return { timeMs };
  throw new CotenantError("E_USAGE", `--since cannot be "${printable(text)}"`, {
    hint: "use a duration (90s, 10m, 2h, 1d12h), an instant (2026-01-31T12:00:00Z), or a sequence number",
  });
}

/** How long ago, for what takes nothing else. */
export function parseAge(text: string, flag: string): number {
  if (DURATION.test(text)) return durationMs(text);
  throw usageError(`${flag} takes an age, not "${printable(text)}"`, "for example 30d, 12h or 90m");
}

function durationMs(text: string): number {
  let secs = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+)([smhdw])/g))
    secs += Number(amount) * UNITS_SECS[unit!]!;
  return secs * 1000;
}

/** A bare date is its first moment, and a time without a zone means UTC, like every time that we print. */
function zoned(text: string): string {
  const whole = text.toUpperCase().replace(" ", "T");
  if (!whole.includes("T")) return `${whole}T00:00:00Z`;
  return /(?:Z|[+-]\d\d:\d\d)$/.test(whole) ? whole : `${whole}Z`;
}
