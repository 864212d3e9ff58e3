import type { Known, LogCheck } from "./log-check";
import { type Ground, thingsUnder } from "./things";
import type { Verdict } from "./verdict";
import { readTestimony, type Testimony } from "./witness";

/** Follows one thing's witness: who was in, who wrote, and whether the log gave them the right to. */
export class WitnessCheck {
  readonly #thing: string;
  readonly #ground: Ground;
  readonly #log: LogCheck;
  readonly #verdict: Verdict;
  #inside: { readonly token: number; readonly pid: number } | null = null;
  #highest = 0;

  constructor(thing: string, ground: Ground, log: LogCheck, verdict: Verdict) {
    this.#thing = thing;
    this.#ground = ground;
    this.#log = log;
    this.#verdict = verdict;
  }

  /** The log must have been read at least as far as the line says it had come. */
  take(line: string): void {
    const said = readTestimony(line);
    const understood = this.#verdict.expect(
      "witness lines are whole",
      said !== null,
      () => `${this.#thing}: "${line.slice(0, 80)}"`,
    );
    if (!understood || said === null) return;
    const lease = this.#log.byToken.get(said.token);
    const granted = this.#verdict.expect(
      "whoever writes was granted a lease on it",
      lease !== undefined && thingsUnder(lease.key, this.#ground).includes(this.#thing),
      () => `${said.verb} on ${this.#thing} with #${said.token}`,
    );
    if (granted && lease !== undefined) this.#checkRight(said, lease);
    if (said.verb === "enter") this.#enter(said);
    else this.#goOn(said);
  }

  #checkRight(said: Testimony, lease: Known): void {
    const v = this.#verdict;
    const what = () => `${said.verb} on ${this.#thing} with #${said.token} (process ${said.pid})`;
    v.expect("a lease is used by its own process", lease.pids.has(said.pid), what);
    v.expect(
      "no write with a stale token",
      lease.grantedAt <= said.sequence && (lease.endedAt === null || said.sequence < lease.endedAt),
      () => `${what()} at ${said.sequence}; it stood from ${lease.grantedAt} to ${lease.endedAt ?? "now"}`,
    );
    v.expect(
      "no write after the expiry",
      said.atMs < lease.expiresAtMs,
      () => `${what()} came ${said.atMs - lease.expiresAtMs} ms late`,
    );
  }

  #enter(said: Testimony): void {
    const { token, pid } = said;
    this.#verdict.expect(
      "tokens rise on every thing",
      token > this.#highest,
      () => `#${token} entered ${this.#thing} after #${this.#highest}`,
    );
    const before = this.#inside;
    if (before !== null) {
      const lease = this.#log.byToken.get(before.token);
      // It was killed, stopped, evicted or late, and cannot leave; but then the log says that its lease ended.
      this.#verdict.expect(
        "never two holders at once",
        lease !== undefined && lease.endedAt !== null && lease.endedAt <= said.sequence,
        () => `#${token} entered ${this.#thing} while #${before.token} was in and held it`,
      );
    }
    this.#highest = Math.max(this.#highest, token);
    this.#inside = { token, pid };
  }

  #goOn(said: Testimony): void {
    const { token, pid, verb } = said;
    const inside = this.#inside;
    this.#verdict.expect(
      "only who is in writes and leaves",
      inside !== null && inside.token === token && inside.pid === pid,
      () =>
        `${verb} #${token} on ${this.#thing} while ${inside === null ? "nobody" : `#${inside.token}`} was in`,
    );
    if (verb === "leave" && inside?.token === token) this.#inside = null;
  }
}
