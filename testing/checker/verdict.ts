/** Counts what was looked at, and keeps what was wrong. */
export class Verdict {
  /** How often each rule was looked at. */
  readonly checks = new Map<string, number>();
  readonly #violations = new Set<string>();

  get checked(): number {
    return [...this.checks.values()].reduce((sum, n) => sum + n, 0);
  }

  get violations(): readonly string[] {
    return [...this.#violations];
  }

  /** Answers the condition, so that callers can leave off where going on makes no sense. */
  expect(rule: string, holds: boolean, story: () => string): boolean {
    this.checks.set(rule, (this.checks.get(rule) ?? 0) + 1);
    if (!holds) this.#violations.add(`${rule}: ${story()}`);
    return holds;
  }

  fail(rule: string, story: string): void {
    this.expect(rule, false, () => story);
  }
}
