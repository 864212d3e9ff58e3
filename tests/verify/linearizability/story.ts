import type { Answer, Ask, Caller, Extent, History, Name, Operation, Seen, Window } from "./history";

/** Hand-made histories: `ann.acquire(...)` from one instant to another, with whatever answer the test says. */
export class Story {
  readonly operations: Operation[] = [];
  readonly deaths = new Map<string, Window>();

  get history(): History {
    return { operations: this.operations, deaths: this.deaths };
  }

  person(agent: string, worktree = "wt:1"): Person {
    return new Person(this, { process: agent, agent, session: "s", worktree });
  }

  dies(agent: string, fromMs: number, toMs: number): void {
    this.deaths.set(agent, { fromMs, toMs });
  }
}

export type Span = readonly [calledMs: number, endedMs: number];

const TTL_MS = 1000;

export class Person {
  readonly #story: Story;
  readonly caller: Caller;

  constructor(story: Story, caller: Caller) {
    this.#story = story;
    this.caller = caller;
  }

  /** A lease as this person would be shown it. */
  lease(id: string, key: string, token: number, expiresMs: number | null, more: Partial<Seen> = {}): Seen {
    const { agent, worktree } = this.caller;
    return {
      id,
      key,
      within: null,
      token,
      agent,
      worktree,
      ttlMs: TTL_MS,
      process: null,
      expiresMs,
      valid: true,
      ...more,
    };
  }

  /** Granted, with the lease that it asked for by the same id. */
  gets(span: Span, leases: readonly Seen[], ended: readonly string[] = [], steal = false): void {
    const wants = leases.map(({ key, within }) => ({ key, within }));
    const ids = leases.map(({ id }) => id);
    const bound = leases.some(({ process }) => process !== null);
    const answer = { is: "done", leases, ended: ended.map((id) => ({ id, forced: steal })) } as const;
    this.#tell(span, { do: "acquire", wants, ids, ttlMs: TTL_MS, bound, steal }, answer);
  }

  asks(
    span: Span,
    keys: readonly string[],
    answer: Answer,
    more: { ids?: string[]; bound?: boolean } = {},
  ): void {
    const wants: Extent[] = keys.map((key) => ({ key, within: null }));
    const ask = {
      do: "acquire",
      wants,
      ids: more.ids ?? null,
      ttlMs: TTL_MS,
      bound: more.bound ?? false,
      steal: false,
    } as const;
    this.#tell(span, ask, answer);
  }

  renews(span: Span, lease: Seen, answer: Answer = done([lease])): void {
    this.#tell(span, { do: "renew", names: [nameOf(lease)], extends: true, ttlMs: null }, answer);
  }

  releases(span: Span, lease: Seen, answer: Answer = done([lease])): void {
    this.#tell(span, { do: "release", names: [nameOf(lease)] }, answer);
  }

  evicts(span: Span, lease: Seen, answer: Answer = done([lease])): void {
    this.#tell(span, { do: "evict", names: [{ key: lease.key, id: null }] }, answer);
  }

  transfers(span: Span, lease: Seen, to: Person, heir: Seen): void {
    const { agent: toAgent, worktree: toWorktree } = to.caller;
    this.#tell(span, { do: "transfer", name: nameOf(lease), id: heir.id, toAgent, toWorktree }, done([heir]));
  }

  reads(span: Span, keys: readonly string[] | null, leases: readonly Seen[]): void {
    const names = keys?.map((key) => ({ key, id: null })) ?? null;
    this.#tell(span, { do: "read", names }, done(leases));
  }

  writes(span: Span, lease: Seen, answer: Answer = done([])): void {
    this.#tell(span, { do: "write", name: nameOf(lease), token: lease.token }, answer);
  }

  #tell([calledMs, endedMs]: Span, ask: Ask, answer: Answer): void {
    this.#story.operations.push({ caller: this.caller, calledMs, endedMs, ask, answer, tends: false });
  }
}

export const UNKNOWN: Answer = { is: "unknown" };

export function refused(code: string, ...holders: readonly Seen[]): Answer {
  return { is: "refused", code, holders: holders.map(({ id }) => id) };
}

export function done(leases: readonly Seen[]): Answer {
  return { is: "done", leases, ended: [] };
}

function nameOf({ key, id }: Seen): Name {
  return { key, id };
}
