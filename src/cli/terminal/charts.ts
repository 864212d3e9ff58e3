/** Which characters a chart may use. */
export interface Pens {
  readonly full: string;
  readonly steps: readonly string[];
}

const UNICODE: Pens = { full: "█", steps: ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] };
const ASCII: Pens = { full: "#", steps: [".", ":", "-", "=", "+", "*", "#", "@"] };

/** Block characters only where the locale can show them. */
export function pensFor(env: Readonly<Record<string, string | undefined>>): Pens {
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return /utf-?8/i.test(locale) ? UNICODE : ASCII;
}

/** A bar of at most `width` characters; anything above nothing is seen. */
export function bar(value: number, most: number, width: number, pens: Pens): string {
  if (value <= 0 || most <= 0) return "";
  return pens.full.repeat(Math.max(1, Math.round((value / most) * width)));
}

/** One character for each value, taller for more. */
export function sparkline(values: readonly number[], pens: Pens): string {
  const most = Math.max(...values, 1);
  const steps = pens.steps.length;
  return values
    .map((value) =>
      value === 0 ? " " : pens.steps[Math.min(steps - 1, Math.ceil((value / most) * steps) - 1)],
    )
    .join("");
}

/** As many values as fit, neighbours added up. */
export function squeezed(values: readonly number[], width: number): number[] {
  const each = Math.max(1, Math.ceil(values.length / Math.max(1, width)));
  const fewer: number[] = [];
  for (let at = 0; at < values.length; at += each)
    fewer.push(values.slice(at, at + each).reduce((sum, value) => sum + value, 0));
  return fewer;
}
