/** What samples come to. */
export function quantile(samples, q) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
}

export const median = (samples) => quantile(samples, 0.5);

/** Three digits that mean something. */
export function figure(value) {
  if (!Number.isFinite(value)) return String(value);
  return value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

/**
 * One line of the table. `target` is what the ratio should be, as `<= 2` or `>= 0.6`; a row without one is there for
 * comparison.
 */
export function row(what, ours, beside, ratio, target = null) {
  const [, sign, limit] = /^(<=|>=) ([\d.]+)$/.exec(target ?? "") ?? [];
  const met = sign === undefined ? null : sign === "<=" ? ratio <= Number(limit) : ratio >= Number(limit);
  return { what, ours, beside, ratio, target, met };
}

/** How often `act` can be done in this time, each time awaited, in rounds per second. */
export async function rateOf(act, forMs) {
  const until = performance.now() + forMs;
  const started = performance.now();
  let rounds = 0;
  while (performance.now() < until) {
    await act(rounds);
    rounds++;
  }
  return (rounds / (performance.now() - started)) * 1000;
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
