import { Prng } from "../../../testing/simulator/prng";
import type { Answer, Ask, Caller, History, Operation, Seen } from "./history";
import { keysMeet } from "./history";

const KEYS = ["dir:src", "file:src/a", "file:src/b", "resource:db", "file:lib/x"];
const TTL_MS = 200;
const STEP_MS = 10;
/** Operations begin and end this far from their effect. */
const SLACK_MS = 60;

interface Standing extends Seen {
  readonly session: string;
  readonly expiresMs: number;
}

/**
 * A history that happened: operations one after the other by the plainest rules, each then stretched in time, so that
 * they overlap. Some answers are lost, of some that took effect and of some that did not.
 */
export function randomHistory(seed: number, length: number, parties = 8): History {
  const chance = new Prng(seed, "history");
  const world = new PlainWorld();
  const free = [...Array(parties).keys()].map((at) => ({ caller: callerNamed(`agent:p${at}`), endedMs: 0 }));
  const operations: Operation[] = [];
  let named = parties;
  for (let at = 1; operations.length < length; at++) {
    const effectMs = at * STEP_MS;
    const party = chance.pick(free);
    if (party.endedMs >= effectMs) continue;
    const calledMs = Math.max(party.endedMs, effectMs - chance.below(SLACK_MS)) + 0.001;
    const endedMs = effectMs + chance.below(SLACK_MS) + 0.5;
    const ask = askFor(party.caller, world, chance, `L${at}`);
    const isLost = ask.do !== "read" && chance.chance(0.03);
    const answer = isLost && chance.chance(0.5) ? null : world.answer(party.caller, ask, effectMs);
    operations.push({
      caller: party.caller,
      calledMs,
      endedMs,
      ask,
      answer: isLost ? LOST : answer!,
      tends: false,
    });
    party.endedMs = endedMs;
    // Whose answer was lost does not go on.
    if (isLost) party.caller = callerNamed(`agent:p${named++}`);
  }
  return { operations, deaths: new Map() };
}

const LOST: Answer = { is: "unknown" };

function callerNamed(agent: string): Caller {
  return { process: agent, agent, session: "s", worktree: "wt:1" };
}

function askFor(caller: Caller, world: PlainWorld, chance: Prng, id: string): Ask {
  const own = world.leases.filter(({ agent }) => agent === caller.agent);
  const what = chance.below(10);
  if (what < 2)
    return { do: "read", names: chance.chance(0.5) ? null : [{ key: chance.pick(KEYS), id: null }] };
  if (what < 6 && own.length > 0) {
    const { key, id: ownId, token } = chance.pick(own);
    const name = { key, id: ownId };
    if (what === 2) return { do: "renew", names: [name], extends: true, ttlMs: null };
    if (what === 3) return { do: "write", name, token };
    return { do: "release", names: [name] };
  }
  const keys = chance.shuffle([...KEYS]).slice(0, chance.between(1, 2));
  const wants = keys.map((key) => ({ key, within: null }));
  return {
    do: "acquire",
    wants,
    ids: keys.map((_, at) => `${id}.${at}`),
    ttlMs: TTL_MS,
    bound: false,
    steal: false,
  };
}

/** The rules for one caller at a time, with every instant known. */
class PlainWorld {
  leases: Standing[] = [];
  #token = 0;

  answer(caller: Caller, ask: Ask, nowMs: number): Answer {
    const isValid = (lease: Standing) => nowMs < lease.expiresMs;
    switch (ask.do) {
      case "acquire":
        return this.#acquire(caller, ask, nowMs);
      case "read": {
        const { names } = ask;
        const shown = this.leases.filter((one) => names === null || names.some(({ key }) => key === one.key));
        return done(shown.map((lease) => ({ ...lease, valid: isValid(lease) })));
      }
      case "write": {
        const lease = this.leases.find(({ id }) => id === ask.name.id);
        return lease !== undefined && isValid(lease) ? done([]) : refusedWith("E_STALE");
      }
      case "renew": {
        const lease = this.leases.find(({ id }) => id === ask.names[0]!.id);
        if (lease === undefined || !isValid(lease)) return refusedWith("E_LOCK_EXPIRED");
        const renewed = { ...lease, expiresMs: nowMs + TTL_MS };
        this.leases = this.leases.map((one) => (one === lease ? renewed : one));
        return done([renewed]);
      }
      default: {
        const names = ask.do === "release" ? ask.names : [];
        const lease = this.leases.find(({ id }) => id === names[0]?.id);
        if (lease === undefined) return refusedWith("E_NOT_FOUND");
        this.leases = this.leases.filter((one) => one !== lease);
        return done([lease]);
      }
    }
  }

  #acquire(caller: Caller, ask: Extract<Ask, { do: "acquire" }>, nowMs: number): Answer {
    const { agent, session, worktree } = caller;
    const met = this.leases.filter((lease) => ask.wants.some(({ key }) => keysMeet(key, lease.key)));
    const rivals = met.filter((lease) => lease.agent !== agent && nowMs < lease.expiresMs);
    if (rivals.length > 0) return refusedWith("E_LOCK_CONFLICT", rivals);
    const lapsed = met.filter((lease) => nowMs >= lease.expiresMs);
    const answered = ask.wants.map(({ key }, at): Standing => {
      const own = met.find((lease) => lease.key === key && !lapsed.includes(lease));
      if (own !== undefined) return own;
      const id = ask.ids![at]!;
      const expiresMs = nowMs + TTL_MS;
      const shared = {
        key,
        within: null,
        agent,
        session,
        worktree,
        ttlMs: TTL_MS,
        process: null,
        valid: true,
      };
      return { ...shared, id, token: ++this.#token, expiresMs };
    });
    // Only what a new lease takes the place of.
    const fresh = answered.filter((lease) => !met.includes(lease));
    const ended = lapsed.filter((lease) => fresh.some(({ key }) => keysMeet(key, lease.key)));
    this.leases = [...this.leases.filter((lease) => !ended.includes(lease)), ...fresh];
    return { is: "done", leases: answered, ended: ended.map(({ id }) => ({ id, forced: false })) };
  }
}

function done(leases: readonly Seen[]): Answer {
  return { is: "done", leases, ended: [] };
}

function refusedWith(code: string, holders: readonly Seen[] = []): Answer {
  return { is: "refused", code, holders: holders.map(({ id }) => id) };
}
