import type { Extent, Name, Window } from "./history";

/** A lease that stands: nobody has ended it, though its time may be up. */
export interface Held extends Extent {
  readonly id: string;
  /** Null when nobody ever saw it. */
  readonly token: number | null;
  readonly agent: string;
  /** Null: handed over, and not adopted yet. */
  readonly session: string | null;
  readonly worktree: string;
  readonly ttlMs: number;
  readonly isBound: boolean;
  /** When it lapses by itself. */
  readonly lapse: Window;
}

/** Everything that the rules depend on. Never changed: each step makes another one. */
export class State {
  static readonly EMPTY = new State([], 0, 0);
  /** By id. */
  readonly leases: readonly Held[];
  /** The highest token that was ever granted. */
  readonly highest: number;
  /** An instant that is known to have passed, because something was seen to have lapsed. */
  readonly passedMs: number;
  #text: string | null = null;

  private constructor(leases: readonly Held[], highest: number, passedMs: number) {
    this.leases = leases;
    this.highest = highest;
    this.passedMs = passedMs;
  }

  /** Equal texts mean equal states. */
  get text(): string {
    this.#text ??= `${this.highest} ${this.passedMs}${this.leases.map(textOf).join("")}`;
    return this.#text;
  }

  find(id: string): Held | undefined {
    return this.leases.find((lease) => lease.id === id);
  }

  named({ key, id }: Name): Held[] {
    return this.leases.filter((lease) => (id === null ? lease.key === key : lease.id === id));
  }

  with(lease: Held): State {
    const others = this.leases.filter(({ id }) => id !== lease.id);
    const leases = [...others, lease].sort((a, b) => (a.id < b.id ? -1 : 1));
    return new State(leases, Math.max(this.highest, lease.token ?? 0), this.passedMs);
  }

  without(gone: string): State {
    return new State(
      this.leases.filter(({ id }) => id !== gone),
      this.highest,
      this.passedMs,
    );
  }

  passing(instantMs: number): State {
    return instantMs <= this.passedMs ? this : new State(this.leases, this.highest, instantMs);
  }
}

function textOf({ id, session, ttlMs, lapse }: Held): string {
  return `;${id} ${session} ${ttlMs} ${lapse.fromMs} ${lapse.toMs}`;
}
