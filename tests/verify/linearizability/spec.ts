import {
  type Answer,
  type Ask,
  type Caller,
  type Extent,
  meet,
  type Name,
  type Operation,
  type Seen,
  type Window,
} from "./history";
import type { Held, State } from "./state";

/** What is known of a history as a whole, whatever the order of its operations. */
export interface Facts {
  /** Of every lease that any answer shows. */
  readonly tokens: ReadonlyMap<string, number>;
  readonly deaths: ReadonlyMap<string, Window>;
}

type Asked<K extends Ask["do"]> = Extract<Ask, { do: K }>;
type Done = Extract<Answer, { is: "done" }>;
type Refused = Extract<Answer, { is: "refused" }>;

interface Named extends Extent {
  readonly id: string;
}

/** What of an acquire whose answer was lost may have been new. */
interface Plan {
  readonly state: State;
  readonly fresh: readonly Named[];
}

const NEVER: Window = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
const NOT_ALLOWED: readonly State[] = [];

/** Refusals that say nothing about leases: the queue, policy, a store that was busy. */
const OTHER_REASONS = new Set(["E_QUEUED", "E_WAIT_TIMEOUT", "E_POLICY", "E_STORE_BUSY", "E_USAGE"]);

/**
 * The rules of leases as one step after the other: the states in which the operation, with the answer it got, can
 * leave `state`. None: it cannot happen in that state. For an unknown answer: if it took effect.
 */
export function step(state: State, operation: Operation, facts: Facts): readonly State[] {
  const one = new Step(operation, facts);
  const states = one.from(state);
  return operation.tends ? states.map((next) => one.tended(next)) : states;
}

class Step {
  readonly #facts: Facts;
  readonly #caller: Caller;
  readonly #ask: Ask;
  readonly #answer: Answer;
  /** Decisions are made on whole milliseconds. */
  readonly #earliestMs: number;
  readonly #latestMs: number;

  constructor({ caller, ask, answer, calledMs, endedMs }: Operation, facts: Facts) {
    this.#facts = facts;
    this.#caller = caller;
    this.#ask = ask;
    this.#answer = answer;
    this.#earliestMs = Math.floor(calledMs);
    this.#latestMs = endedMs;
  }

  from(state: State): readonly State[] {
    const ask = this.#ask;
    const answer = this.#answer;
    if (answer.is === "refused") return this.#refused(state, ask, answer);
    const done = answer.is === "done" ? answer : null;
    switch (ask.do) {
      case "acquire":
        return done === null ? this.#maybeGranted(state, ask) : this.#granted(state, ask, done);
      case "renew":
        return done === null ? this.#maybeRenewed(state, ask) : this.#renewed(state, ask, done);
      case "release":
        return done === null ? this.#maybeReleased(state, ask.names) : this.#released(state, done);
      case "transfer":
        return this.#transferred(state, ask, done);
      case "evict":
        return done === null ? this.#maybeEvicted(state, ask.names) : this.#removed(state, done.leases);
      case "read":
        return done === null ? [state] : this.#showed(state, ask.names, done);
      case "write":
        return this.#asValid(state, this.#own(state, ask.name), (lease) => lease.token === ask.token);
    }
  }

  /** Whatever else the caller holds, and is below half of its time, may be renewed along with it. */
  tended(state: State): State {
    let next = state;
    for (const lease of state.leases) {
      const { ttlMs, lapse } = lease;
      if (lease.isBound || !this.#isOwn(lease) || this.#latestMs < lapse.fromMs - ttlMs / 2) continue;
      next = next.with({ ...lease, lapse: { ...lapse, toMs: Math.max(lapse.toMs, this.#latestMs + ttlMs) } });
    }
    return next;
  }

  // --- acquire ----------------------------------------------------------------------------------------------

  #granted(state: State, ask: Asked<"acquire">, { leases, ended }: Done): readonly State[] {
    // All or nothing.
    if (!ask.wants.every((want) => leases.some((lease) => isOn(lease, want)))) return NOT_ALLOWED;
    let next: State | null = state;
    const fresh: Seen[] = [];
    for (const lease of leases) {
      const before = state.find(lease.id);
      if (before === undefined) fresh.push(lease);
      else next = this.#kept(next, before, lease, askedAgainFor(before, ask), false);
      if (next === null) return NOT_ALLOWED;
      const isHanded = before !== undefined && before.session === null;
      if (!isHanded && !ask.wants.some((want) => isOn(lease, want))) return NOT_ALLOWED;
    }
    next = this.#makeWay(next, fresh, ended, ask.steal);
    if (next === null) return NOT_ALLOWED;
    for (const lease of fresh.sort((a, b) => a.token - b.token)) {
      if (ask.ids !== null && !ask.ids.includes(lease.id)) return NOT_ALLOWED;
      next = this.#created(next, lease, this.#caller.session, ask.ttlMs);
      if (next === null) return NOT_ALLOWED;
    }
    return [next];
  }

  /** Everything that stands where new leases come to stand has ended, or is the caller's own and valid. */
  #makeWay(state: State, fresh: readonly Extent[], ended: Done["ended"], mayForce: boolean): State | null {
    let next: State | null = state;
    for (const { id, forced } of ended) {
      const lease = state.find(id);
      if (lease === undefined || !fresh.some((one) => meet(one, lease))) return null;
      if (forced && !mayForce) return null;
      next = forced ? this.#valid(next, lease) : this.#lapsed(next, lease);
      if (next === null) return null;
      next = next.without(id);
    }
    for (const lease of next.leases) {
      if (!fresh.some((one) => meet(one, lease))) continue;
      if (!this.#isOwn(lease) || fresh.some((one) => isOn(one, lease))) return null;
      next = this.#valid(next, lease);
      if (next === null) return null;
    }
    return next;
  }

  #created(state: State, lease: Seen, session: string | null, ttlMs: number): State | null {
    if (lease.token <= state.highest) return null;
    const lapse = this.#freshLapse(lease, ttlMs);
    if (lapse === null) return null;
    const { id, key, within, token, agent, worktree } = lease;
    const isBound = lease.process !== null;
    return state.with({
      id,
      key,
      within,
      token,
      agent,
      session,
      worktree,
      ttlMs: lease.ttlMs,
      isBound,
      lapse,
    });
  }

  #freshLapse({ process, expiresMs }: Pick<Seen, "process" | "expiresMs">, ttlMs: number): Window | null {
    if (process !== null) return this.#facts.deaths.get(process) ?? NEVER;
    const fromNow = { fromMs: this.#earliestMs + ttlMs, toMs: this.#latestMs + ttlMs };
    return expiresMs === null ? fromNow : within(expiresMs, fromNow);
  }

  /** The answer was lost: what the caller had already it keeps, the rest is new under the ids it brought. */
  #maybeGranted(state: State, ask: Asked<"acquire">): readonly State[] {
    const { ids } = ask;
    if (ids === null) return NOT_ALLOWED;
    let plans: readonly Plan[] = [{ state, fresh: [] }];
    ask.wants.forEach((want, at) => {
      const own = state.leases.find((lease) => isOn(lease, want) && this.#isOwn(lease));
      plans = plans.flatMap((plan) => {
        const kept =
          own === undefined ? NOT_ALLOWED : this.#maybeKept(plan.state, own, askedAgainFor(own, ask));
        const mayBeNew = own === undefined || this.#lapsed(plan.state, own) !== null;
        const anew = { ...plan, fresh: [...plan.fresh, { ...want, id: ids[at]! }] };
        return [...kept.map((next) => ({ ...plan, state: next })), ...(mayBeNew ? [anew] : [])];
      });
    });
    return plans.flatMap((plan) => this.#maybeTaken(plan, ask));
  }

  #maybeTaken({ state, fresh }: Plan, ask: Asked<"acquire">): readonly State[] {
    let states: readonly State[] = [state];
    for (const want of fresh) states = states.flatMap((one) => this.#maybeMadeWay(one, want, ask.steal));
    // In the order of their tokens, as far as anybody has seen them: which key comes first is the caller's business.
    const tokenOf = ({ id }: Named) => this.#facts.tokens.get(id) ?? 0;
    for (const want of [...fresh].sort((a, b) => tokenOf(a) - tokenOf(b)))
      states = states.flatMap((one) => this.#maybeCreated(one, want, ask));
    return states;
  }

  #maybeMadeWay(state: State, want: Extent, mayForce: boolean): readonly State[] {
    let states: readonly State[] = [state];
    for (const lease of state.leases.filter((other) => meet(other, want))) {
      states = states.flatMap((one) => {
        const stays = this.#isOwn(lease) && !isOn(lease, want) ? this.#valid(one, lease) : null;
        const goes = mayForce && !this.#isOwn(lease) ? one : this.#lapsed(one, lease);
        return [...(stays === null ? [] : [stays]), ...(goes === null ? [] : [goes.without(lease.id)])];
      });
    }
    return states;
  }

  #maybeCreated(state: State, want: Named, ask: Asked<"acquire">): readonly State[] {
    const { id, key, within } = want;
    const token = this.#facts.tokens.get(id) ?? null;
    if (token !== null && token <= state.highest) return NOT_ALLOWED;
    const { agent, session, worktree, process } = this.#caller;
    const { ttlMs, bound: isBound } = ask;
    const lapse = this.#freshLapse({ process: isBound ? process : null, expiresMs: null }, ttlMs)!;
    return [state.with({ id, key, within, token, agent, session, worktree, ttlMs, isBound, lapse })];
  }

  // --- what holders do --------------------------------------------------------------------------------------

  #renewed(state: State, ask: Asked<"renew">, { leases }: Done): readonly State[] {
    let next: State | null = state;
    for (const lease of leases) {
      const before = state.find(lease.id);
      if (before === undefined || !isNamed(before, ask.names)) return NOT_ALLOWED;
      next = this.#kept(next, before, lease, ask.ttlMs ?? before.ttlMs, ask.extends);
      if (next === null) return NOT_ALLOWED;
    }
    return !ask.extends || leases.length > 0 ? [next] : NOT_ALLOWED;
  }

  /** The same lease, perhaps for longer. */
  #kept(state: State, lease: Held, shown: Seen, ttlMs: number, mustExtend: boolean): State | null {
    if (!this.#isOwn(lease) || !isSameLease(lease, shown)) return null;
    const lapse = this.#longer(lease, shown.expiresMs, ttlMs, mustExtend);
    if (lapse === null) return null;
    const session = this.#caller.session;
    return this.#valid(state, lease)?.with({ ...lease, ttlMs: shown.ttlMs, session, lapse }) ?? null;
  }

  #longer(
    { lapse, isBound }: Held,
    expiresMs: number | null,
    ttlMs: number,
    mustExtend: boolean,
  ): Window | null {
    if (isBound) return lapse;
    const fromMs = mustExtend ? Math.max(lapse.fromMs, this.#earliestMs + ttlMs) : lapse.fromMs;
    const either = { fromMs, toMs: Math.max(lapse.toMs, this.#latestMs + ttlMs) };
    return expiresMs === null ? either : within(expiresMs, either);
  }

  #maybeRenewed(state: State, ask: Asked<"renew">): readonly State[] {
    return this.#eachOwn(state, ask.names, (one, lease) =>
      this.#maybeKept(one, lease, ask.ttlMs ?? lease.ttlMs),
    );
  }

  #maybeKept(state: State, lease: Held, ttlMs: number): readonly State[] {
    const lapse = this.#longer(lease, null, ttlMs, false)!;
    const longest = Math.max(lease.ttlMs, ttlMs);
    const kept = { ...lease, ttlMs: longest, session: this.#caller.session, lapse };
    const next = this.#valid(state, lease)?.with(kept);
    return next === undefined ? NOT_ALLOWED : [next];
  }

  #released(state: State, { leases }: Done): readonly State[] {
    const own = leases.every(({ id }) => {
      const lease = state.find(id);
      return lease !== undefined && this.#isOwn(lease);
    });
    return own && leases.length > 0 ? this.#removed(state, leases) : NOT_ALLOWED;
  }

  #maybeReleased(state: State, names: readonly Name[]): readonly State[] {
    return this.#eachOwn(state, names, (one, lease) => [one.without(lease.id)]);
  }

  /** No instant in which the key is free: the old lease goes and the new one comes in one step. */
  #transferred(state: State, ask: Asked<"transfer">, done: Done | null): readonly State[] {
    const own = this.#own(state, ask.name);
    // A person may hand over what is somebody else's.
    const others = this.#caller.agent.startsWith("human:") ? state.named(ask.name) : [];
    const meant = own === undefined ? others : [own];
    return meant.flatMap((lease) => this.#handedOver(state, lease, ask, done));
  }

  #handedOver(state: State, lease: Held, ask: Asked<"transfer">, done: Done | null): readonly State[] {
    const next = this.#valid(state, lease)?.without(lease.id) ?? null;
    if (next === null) return NOT_ALLOWED;
    const target = { key: lease.key, within: lease.within === null ? null : ask.toWorktree };
    if (done === null) {
      const token = this.#facts.tokens.get(ask.id) ?? null;
      if (token !== null && token <= next.highest) return NOT_ALLOWED;
      // A process-bound lease becomes one with the default TTL, which the caller need not know.
      const lapse = lease.isBound
        ? { ...NEVER, fromMs: this.#earliestMs }
        : this.#freshLapse({ process: null, expiresMs: null }, lease.ttlMs)!;
      const heir = {
        ...target,
        id: ask.id,
        token,
        agent: ask.toAgent,
        session: null,
        worktree: ask.toWorktree,
      };
      return this.#maybeMadeWay(next, target, false).map((one) =>
        one.with({ ...heir, ttlMs: lease.ttlMs, isBound: false, lapse }),
      );
    }
    const [heir] = done.leases;
    if (heir === undefined || heir.id !== ask.id || !isOn(heir, target)) return NOT_ALLOWED;
    if (!lease.isBound && heir.ttlMs > lease.ttlMs) return NOT_ALLOWED;
    const cleared = this.#makeWay(next, [heir], done.ended, false);
    // Not even the giver's own may stand there: they would be in the new holder's way.
    if (cleared === null || cleared.leases.some((other) => meet(other, heir))) return NOT_ALLOWED;
    const moved = this.#created(cleared, heir, null, heir.ttlMs);
    return moved === null ? NOT_ALLOWED : [moved];
  }

  // --- what others do ---------------------------------------------------------------------------------------

  #removed(state: State, leases: readonly Seen[]): readonly State[] {
    let next = state;
    for (const shown of leases) {
      const lease = next.find(shown.id);
      if (lease === undefined || !isSameLease(lease, shown)) return NOT_ALLOWED;
      next = next.without(shown.id);
    }
    return leases.length > 0 ? [next] : NOT_ALLOWED;
  }

  #maybeEvicted(state: State, names: readonly Name[]): readonly State[] {
    let states: readonly State[] = [state];
    for (const name of names)
      states = states.flatMap((one) => one.named(name).map((lease) => one.without(lease.id)));
    return states;
  }

  /** Exactly the leases that stand, each in the standing that it has. */
  #showed(state: State, names: readonly Name[] | null, { leases }: Done): readonly State[] {
    const asked = names === null ? state.leases : state.leases.filter((lease) => isNamed(lease, names));
    if (leases.length !== asked.length) return NOT_ALLOWED;
    for (const lease of asked) {
      const shown = leases.find(({ id }) => id === lease.id);
      if (shown === undefined || !isSameLease(lease, shown) || shown.agent !== lease.agent)
        return NOT_ALLOWED;
      if (!lease.isBound && shown.expiresMs !== null && within(shown.expiresMs, lease.lapse) === null)
        return NOT_ALLOWED;
      // No later operation comes after the lapse because of this one: a renewal that was decided in time may still be
      // on its way into the log, with the mutex, while a reader sees what it replaces run out.
      if ((shown.valid ? this.#valid(state, lease) : this.#lapsed(state, lease)) === null) return NOT_ALLOWED;
    }
    return [state];
  }

  // --- refusals ---------------------------------------------------------------------------------------------

  #refused(state: State, ask: Ask, { code, holders }: Refused): readonly State[] {
    if (OTHER_REASONS.has(code)) return [state];
    switch (ask.do) {
      case "acquire":
        return this.#inTheWay(state, ask.wants, holders);
      case "evict":
        return ask.names.some((name) => state.named(name).length === 0) ? [state] : NOT_ALLOWED;
      case "renew":
      case "transfer": {
        if (code === "E_LOCK_CONFLICT")
          return holders.every((id) => state.find(id) !== undefined) ? [state] : NOT_ALLOWED;
        return this.#asLost(state, ask.do === "renew" ? ask.names : [ask.name]);
      }
      case "write":
        return this.#asLost(state, [ask.name]);
      case "release":
        // Giving back what has lapsed, and was not taken, is fine: only what is gone is refused.
        return ask.names.some((name) => this.#own(state, name) === undefined) ? [state] : NOT_ALLOWED;
      case "read":
        return NOT_ALLOWED;
    }
  }

  /** A refusal names somebody who is in the way, perhaps not everybody, and nobody else. */
  #inTheWay(state: State, wants: readonly Extent[], holders: readonly string[]): readonly State[] {
    const areThere = holders.every((id) => {
      const lease = state.find(id);
      if (lease === undefined || this.#isOwn(lease) || this.#valid(state, lease) === null) return false;
      return wants.some((want) => meet(want, lease));
    });
    return areThere && holders.length > 0 ? [state] : NOT_ALLOWED;
  }

  /** One of them is not the caller's any more, or has lapsed. */
  #asLost(state: State, names: readonly Name[]): readonly State[] {
    const found = names.map((name) => this.#own(state, name));
    if (found.includes(undefined)) return [state];
    return found.flatMap((lease) => this.#lapsed(state, lease!) ?? []);
  }

  #asValid(state: State, lease: Held | undefined, also: (lease: Held) => boolean): readonly State[] {
    const next = lease !== undefined && also(lease) ? this.#valid(state, lease) : null;
    return next === null ? NOT_ALLOWED : [next];
  }

  // --- time and names ---------------------------------------------------------------------------------------

  /** The state, if the lease can be valid at some instant of this operation. */
  #valid(state: State, { lapse }: Held): State | null {
    return this.#earliestMs < lapse.toMs && Math.floor(state.passedMs) < lapse.toMs ? state : null;
  }

  /** The state, if the lease can have lapsed by then. Whoever comes later comes after that instant. */
  #lapsed(state: State, { lapse }: Held): State | null {
    const hasLapsed = this.#latestMs >= lapse.fromMs && Number.isFinite(lapse.fromMs);
    return hasLapsed ? state.passing(lapse.fromMs) : null;
  }

  #isOwn({ agent, session, worktree }: Held): boolean {
    const caller = this.#caller;
    return (
      agent === caller.agent &&
      worktree === caller.worktree &&
      (session === null || session === caller.session)
    );
  }

  #own(state: State, name: Name): Held | undefined {
    return state.named(name).find((lease) => this.#isOwn(lease));
  }

  #eachOwn(
    state: State,
    names: readonly Name[],
    change: (state: State, lease: Held) => readonly State[],
  ): readonly State[] {
    let states: readonly State[] = [state];
    for (const name of names) {
      const lease = this.#own(state, name);
      if (lease === undefined) return NOT_ALLOWED;
      states = states.flatMap((one) => change(one, lease));
    }
    return states;
  }
}

function isOn(lease: Extent, want: Extent): boolean {
  return lease.key === want.key && lease.within === want.within;
}

function isNamed(lease: Held, names: readonly Name[]): boolean {
  return names.some(({ key, id }) => (id === null ? key === lease.key : id === lease.id));
}

function isSameLease(lease: Held, shown: Seen): boolean {
  return isOn(lease, shown) && (lease.token === null || lease.token === shown.token);
}

function within(instantMs: number, { fromMs, toMs }: Window): Window | null {
  return instantMs >= fromMs && instantMs <= toMs ? { fromMs: instantMs, toMs: instantMs } : null;
}

/** Asking again for longer extends what is held already; for less it leaves it alone. */
function askedAgainFor({ ttlMs, isBound }: Held, ask: Asked<"acquire">): number {
  return isBound || ask.bound ? ttlMs : Math.max(ttlMs, ask.ttlMs);
}
