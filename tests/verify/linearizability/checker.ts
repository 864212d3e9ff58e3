import { explain } from "./explain";
import { type History, keysMeet, keysOf, type Operation } from "./history";
import { type Facts, step } from "./spec";
import { State } from "./state";

export interface Report {
  readonly operations: number;
  readonly groups: number;
  /** The most ways of telling the story that were open at once. */
  readonly widest: number;
  /** In words, empty when the history is linearizable. */
  readonly broken: readonly string[];
}

/** So many open ways mean that the history says too little to be checked: fewer callers on one key, or more reads. */
const MOST_WAYS = 50_000;

/**
 * Whether every operation can be given one instant between its call and its answer, such that all of them, one after
 * the other in that order, are what the rules of leases allow.
 *
 * After Wing and Gong, with Lowe's just-in-time linearization: the calls and answers are followed in time, together
 * with every way of telling the story so far, that is a state and which of the calls still open have had their effect.
 * Equal ways are one. Where no call is open, only states are left, so a history of any length needs no more room than
 * its busiest instant. The first answer that no way can explain ends the shortest prefix that is not linearizable.
 *
 * Keys that cannot conflict, not even through an operation on several keys, are checked apart.
 */
export function check(history: History): Report {
  const facts: Facts = { tokens: tokensIn(history.operations), deaths: history.deaths };
  const groups = splitByKeys(history.operations);
  const broken = [...tokenComplaints(history.operations)];
  let widest = 0;
  for (const operations of groups) {
    const told = new Telling(facts).of(operations);
    widest = Math.max(widest, told.widest);
    if (told.broken !== null) broken.push(told.broken);
  }
  return { operations: history.operations.length, groups: groups.length, widest, broken };
}

/** One way of telling the story so far. */
interface Way {
  readonly state: State;
  /** Open calls that have had their effect, by their place among the open ones. */
  readonly done: readonly number[];
}

interface Open {
  readonly place: number;
  readonly operation: Operation;
}

class Telling {
  readonly #facts: Facts;
  readonly #open = new Map<number, Open>();
  readonly #free: number[] = [];
  readonly #past: Operation[] = [];
  #ways: readonly Way[] = [{ state: State.EMPTY, done: [] }];
  widest = 1;

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  of(operations: readonly Operation[]): { readonly widest: number; readonly broken: string | null } {
    const placeOf = new Map<Operation, number>();
    for (const { operation, isCall } of eventsOf(operations)) {
      if (isCall) {
        const place = this.#free.pop() ?? this.#open.size;
        this.#open.set(place, { place, operation });
        placeOf.set(operation, place);
        this.#ways = this.#settled(this.#ways, [{ place, operation }]);
        continue;
      }
      const place = placeOf.get(operation)!;
      const before = this.#ways;
      const after = this.#answered({ place, operation });
      const tooMany = after.length > MOST_WAYS;
      if (after.length === 0 || tooMany) {
        const open = [...this.#open.values()].map((one) => one.operation).filter((one) => one !== operation);
        const states = before.map(({ state }) => state);
        return {
          widest: this.widest,
          broken: explain({ operation, open, states, past: this.#past, tooMany }),
        };
      }
      this.#ways = after;
      this.#open.delete(place);
      this.#free.push(place);
      placeOf.delete(operation);
      this.#past.push(operation);
      if (this.#past.length > 400) this.#past.splice(0, 200);
    }
    return { widest: this.widest, broken: null };
  }

  /** Those ways in which the operation has had its effect by now; with an unknown answer also those without it. */
  #answered(target: Open): Way[] {
    const { place, operation } = target;
    const after = new Map<string, Way>();
    const keep = (way: Way) => {
      const closed = { state: way.state, done: way.done.filter((done) => done !== place) };
      after.set(textOf(closed), closed);
    };
    const seen = new Set<string>();
    const stack: Way[] = [];
    for (const way of this.#ways) {
      if (operation.answer.is === "unknown" && !way.done.includes(place)) keep(way);
      stack.push(way);
    }
    while (stack.length > 0 && after.size <= MOST_WAYS && seen.size <= 8 * MOST_WAYS) {
      const way = stack.pop()!;
      const text = textOf(way);
      if (seen.has(text)) continue;
      seen.add(text);
      if (way.done.includes(place)) keep(way);
      else stack.push(...this.#goOn(way));
    }
    this.widest = Math.max(this.widest, after.size);
    return seen.size > 8 * MOST_WAYS ? new Array(MOST_WAYS + 1) : [...after.values()];
  }

  /** One more effect, of any call that is open. */
  #goOn(way: Way): Way[] {
    const next: Way[] = [];
    for (const { place, operation } of this.#open.values()) {
      if (way.done.includes(place)) continue;
      for (const state of step(way.state, operation, this.#facts)) next.push(withDone(way, place, state));
    }
    return this.#settled(next, [...this.#open.values()]);
  }

  /**
   * Whatever changes nothing and fits is told at once: that can be in nobody's way later. Of an unknown answer nothing
   * needs to be told.
   */
  #settled(ways: readonly Way[], open: readonly Open[]): Way[] {
    return ways.map((way) => {
      let settled = way;
      for (const { place, operation } of open) {
        if (operation.answer.is === "unknown" || settled.done.includes(place)) continue;
        const [state, ...others] = step(settled.state, operation, this.#facts);
        if (others.length === 0 && state?.text === settled.state.text)
          settled = withDone(settled, place, settled.state);
      }
      return settled;
    });
  }
}

function withDone({ done }: Way, place: number, state: State): Way {
  return { state, done: [...done, place].sort((a, b) => a - b) };
}

function textOf({ state, done }: Way): string {
  return `${done.join(" ")}|${state.text}`;
}

/** In time; at one instant calls come first, so that what touches overlaps. */
function eventsOf(operations: readonly Operation[]): { operation: Operation; isCall: boolean }[] {
  const events = operations.flatMap((operation) => [
    { operation, isCall: true, atMs: operation.calledMs },
    { operation, isCall: false, atMs: operation.endedMs },
  ]);
  // Nothing can be learnt from an operation that is never over, once everything else is.
  const told = events.filter(({ atMs }) => Number.isFinite(atMs));
  return told.sort((a, b) => a.atMs - b.atMs || Number(b.isCall) - Number(a.isCall));
}

/**
 * Operations whose keys may have to do with each other, together. A look at several groups becomes a look at each: what
 * it says of one is checked, that it says so of all at one instant is not.
 */
export function splitByKeys(operations: readonly Operation[]): Operation[][] {
  const keys = [...new Set(operations.flatMap((operation) => keysOf(operation) ?? []))];
  const leader = new Map(keys.map((key) => [key, key]));
  const find = (key: string): string => {
    const above = leader.get(key)!;
    return above === key ? key : find(above);
  };
  const join = (a: string, b: string) => leader.set(find(a), find(b));
  for (const [at, a] of keys.entries()) for (const b of keys.slice(at)) if (keysMeet(a, b)) join(a, b);
  for (const operation of operations) {
    const [first, ...rest] = operation.ask.do === "read" ? [] : (keysOf(operation) ?? []);
    for (const key of rest) join(first!, key);
  }
  const groups = new Map<string, Operation[]>(keys.map((key) => [find(key), []]));
  for (const operation of operations) {
    const touched = new Set((keysOf(operation) ?? keys).map(find));
    for (const group of touched) groups.get(group)!.push(partOf(operation, (key) => find(key) === group));
  }
  return [...groups.values()];
}

function partOf(operation: Operation, isIn: (key: string) => boolean): Operation {
  const { ask, answer } = operation;
  if (ask.do !== "read" || answer.is !== "done") return operation;
  const names = ask.names?.filter(({ key }) => isIn(key)) ?? null;
  const leases = answer.leases.filter(({ key }) => isIn(key));
  return { ...operation, ask: { ...ask, names }, answer: { ...answer, leases } };
}

function tokensIn(operations: readonly Operation[]): Map<string, number> {
  const tokens = new Map<string, number>();
  for (const { answer } of operations)
    if (answer.is === "done") for (const { id, token } of answer.leases) tokens.set(id, token);
  return tokens;
}

/** One counter for the whole repository: a lease has one token, a token one lease, and a later grant a higher one. */
function* tokenComplaints(operations: readonly Operation[]): Generator<string> {
  const tokenOf = new Map<string, number>();
  const leaseOf = new Map<number, string>();
  const grants = new Map<string, { operation: Operation; token: number }>();
  for (const operation of [...operations].sort((a, b) => a.calledMs - b.calledMs)) {
    const { answer, ask } = operation;
    if (answer.is !== "done") continue;
    for (const { id, token, key } of answer.leases) {
      if ((tokenOf.get(id) ?? token) !== token)
        yield `${key}: ${id} has token ${tokenOf.get(id)} and ${token}`;
      if ((leaseOf.get(token) ?? id) !== id)
        yield `token ${token} was given to ${leaseOf.get(token)} and to ${id} (${key})`;
      tokenOf.set(id, token);
      leaseOf.set(token, id);
      // Not one that was granted to a call whose answer was lost, and that its holder asks for again.
      const isGrant = ask.do === "transfer" || (ask.do === "acquire" && (ask.ids?.includes(id) ?? true));
      if (isGrant && !grants.has(id)) grants.set(id, { operation, token });
    }
  }
  const byCall = [...grants.values()].sort((a, b) => a.operation.calledMs - b.operation.calledMs);
  const byEnd = [...grants.values()].sort((a, b) => a.operation.endedMs - b.operation.endedMs);
  let highest = 0;
  let at = 0;
  for (const { operation, token } of byCall) {
    for (; at < byEnd.length && byEnd[at]!.operation.endedMs < operation.calledMs; at++)
      highest = Math.max(highest, byEnd[at]!.token);
    if (token <= highest)
      yield explain({ operation, open: [], states: [], past: [], tooMany: false, highest });
  }
}
