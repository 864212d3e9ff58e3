import type { Acquire, Actor, Command, LeaseRef } from "../../src/kernel/commands";
import type { Circumstances } from "../../src/kernel/decide";
import type { FactName, FactRecord } from "../../src/kernel/facts";
import type { AgentId, LeaseId, SessionId, WorktreeId } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import type { Holder, Lease, Reach } from "../../src/kernel/lease";
import { DEFAULT_POLICY, type Policy } from "../../src/kernel/policy";
import { isVoid, type Ticket } from "../../src/kernel/tickets";
import { instantOf, later, type Now } from "../../src/kernel/time";
import type { Liveness } from "../../src/kernel/validity";
import type { View } from "../../src/kernel/view";
import { isVoidTicket } from "./model";

/** One step of a random history: what happens, and numbers from which its details are drawn. */
export type Step = readonly [what: number, a: number, b: number, c: number];

const AGENTS = ["agent:a", "agent:b", "human:h"] as AgentId[];
const SESSIONS = ["s", "t"] as SessionId[];
const WORKTREES = ["wt:00000001", "wt:00000002"] as WorktreeId[];
const KEYS = [
  "file:d/x",
  "file:d/e/y",
  "dir:d",
  "dir:d/e",
  "dir:.",
  "file:z",
  "issue:01ARZ3NDEKTSV4RRFFQ69G5FAV",
  "scope:config",
  "worktree:wt:00000001",
  "resource:r",
] as LeaseKey[];
/** Those that the default policy lets be held without expiry. */
const LASTING = [...KEYS.slice(6, 9), "scope:gates", "issue:01BX5ZZKBKACTAV9WEVGEMMVRY"] as LeaseKey[];
const REASONS = ["because", "because", "because", null, "because", " "];
const TTLS = [600, 0, 60, 600, 0, 3600, 0, 600, 60, 0, 3600, 90_000, -1];
const PAUSES_SECS = [0.5, 1, 2, 5, 10, 10, 29, 30, 31, 60, 200, 299, 300, 301, 599, 600, 1800, 90_000];
const JUMPS_SECS = [-259_200, -7200, -600, -1, 1, 600, 7200, 259_200];
const POLICIES: Policy[] = [
  DEFAULT_POLICY,
  { ...DEFAULT_POLICY, maxTotalSecs: 700, maxIndefinitePerAgent: 1, maxIndefinitePerRepo: 2 },
  {
    ...DEFAULT_POLICY,
    evict: ["*"],
    indefinite: ["issue", "scope", "file", "dir"],
    maxIndefinitePerAgent: 1,
    unknownTtlSecs: 90,
  },
  { ...DEFAULT_POLICY, evict: ["*"], approvers: 1 },
];

/** How often each thing happens, of a hundred. */
const HAPPENINGS = weighted({
  acquire: 31,
  renew: 5,
  heartbeat: 3,
  prove: 2,
  release: 4,
  transfer: 9,
  evict: 3,
  stop: 5,
  upkeep: 5,
  gc: 2,
  pause: 10,
  halt: 1,
  "go on": 3,
  jump: 3,
  reboot: 2,
  kill: 3,
  join: 4,
  leave: 2,
  dawdle: 1,
  forget: 2,
});

interface Machine {
  readonly id: string;
  boot: number;
  upMs: number;
  wallMs: number;
}

interface Process {
  readonly holder: Holder;
  alive: boolean;
}

/**
 * Two machines, one of them with two time namespaces; agents, sessions, worktrees and their processes; what
 * each session keeps as secrets; tickets. Turns steps into commands and the circumstances they meet.
 */
export class World {
  readonly #policy: Policy;
  readonly #machines: Machine[] = [
    { id: "m1", boot: 1, upMs: 50_000, wallMs: 1_800_000_000_000 },
    { id: "m2", boot: 1, upMs: 900_000_000, wallMs: 1_800_000_001_000 },
  ];
  readonly #processes: Process[] = [];
  readonly #secrets = new Map<string, string[]>();
  readonly #seen: { leaseId: LeaseId; key: LeaseKey }[] = [];
  #tickets: Ticket[] = [];
  #isHalted = false;
  #made = 0;
  /** Everything that leases can be held by. */
  readonly parties = AGENTS.flatMap((agentId) =>
    SESSIONS.flatMap((sessionId) => WORKTREES.map((worktreeId) => ({ agentId, sessionId, worktreeId }))),
  );

  constructor(policy: number) {
    this.#policy = POLICIES[policy % POLICIES.length]!;
  }

  /** The command a step stands for, with its circumstances; null when the step only changes the world. */
  take([what, a, b, c]: Step, view: View): { command: Command; at: Circumstances } | null {
    const happening = HAPPENINGS[what % HAPPENINGS.length]!;
    const place = c % 10 < 7 ? 0 : c % 10 < 9 ? 1 : 2;
    switch (happening) {
      case "pause":
        return this.#pause(pick(PAUSES_SECS, a) * 1000);
      case "halt":
      case "go on":
        this.#isHalted = happening === "halt";
        return null;
      case "jump":
        pick(this.#machines, a).wallMs += pick(JUMPS_SECS, b) * 1000;
        return null;
      case "reboot":
        return this.#reboot(pick(this.#machines, a), b);
      case "kill":
        for (const process of this.#processes) if (process.holder.pid % 2 === a % 2) process.alive = false;
        return null;
      case "forget":
        this.#secrets.delete(nameOf(pick(this.parties, a)));
        return null;
      case "join":
        return this.#join(pick(this.parties, a), b, place);
      case "leave":
        this.#tickets = this.#tickets.filter((_, i) => i !== a % 4);
        return null;
      case "dawdle": {
        const freeSince = instantOf(this.#now(place));
        this.#tickets = this.#tickets.map((ticket, i) => (i === 0 ? { ...ticket, freeSince } : ticket));
        return null;
      }
      default: {
        const target = this.#target(view, b);
        const actor = this.#actor(this.#party(a, target), place);
        const command = this.#command(happening, actor, target, b, c);
        return { command, at: this.#circumstances(view, place) };
      }
    }
  }

  /** What every place sees of the view now: promises hold for each observer. */
  everywhere(view: View): Circumstances[] {
    return [0, 1, 2].map((place) => this.#circumstances(view, place));
  }

  /** A lease for the command to be about, so that most of them find something. */
  #target(view: View, b: number): Lease | undefined {
    const leases = [...view.leases.values()];
    return b % 8 === 7 || leases.length === 0 ? undefined : pick(leases, b >> 3);
  }

  /** Often its holder, or somebody like it; often anybody. */
  #party(a: number, target: Lease | undefined): Pick<Actor, "agentId" | "sessionId" | "worktreeId"> {
    if (target === undefined || a % 4 === 3) return pick(this.parties, a >> 2);
    const { agentId, worktreeId } = target;
    return { agentId, worktreeId, sessionId: a % 4 === 2 ? pick(SESSIONS, a >> 2) : target.sessionId };
  }

  #command(kind: Command["kind"], actor: Actor, target: Lease | undefined, b: number, c: number): Command {
    const proofs = this.#proofs(actor, c >> 4);
    const leases = this.#refs(target, b);
    const reason = pick(REASONS, b >> 3);
    switch (kind) {
      case "acquire":
        return this.#acquire(actor, proofs, target, b, c);
      case "renew": {
        const ttlSecs = c % 3 === 0 ? pick(TTLS, c >> 2) : null;
        const overrideMax = c % 7 === 0;
        return { kind, actor, leases, ttlSecs, overrideMax, reason, proofs, secretHash: this.#secret(actor) };
      }
      case "heartbeat":
      case "prove":
        return { kind, actor, leases, proofs, secretHash: this.#secret(actor) };
      case "release":
        return { kind, actor, leases, reason, proofs, secretHash: this.#secret(actor) };
      case "transfer": {
        const to = pick(this.parties, c >> 6);
        return {
          kind,
          actor,
          lease: leases[0]!,
          toAgent: to.agentId,
          toWorktree: to.worktreeId,
          toBranch: "refs/heads/to",
          reason: c % 8 === 0 ? reason : "because",
          newLeaseId: this.#leaseId(leases[0]!.key ?? KEYS[0]!),
          aboveToken: this.#tokenFromElsewhere(b),
          proofs,
          secretHash: this.#secret(actor),
        };
      }
      case "evict":
        return { kind, actor, leases, reason, isOverruled: c % 9 === 0 };
      case "stop":
        return { kind, actor, leases, proofs };
      case "upkeep": {
        const secretHash = c % 3 === 0 ? this.#secret(actor) : undefined;
        return { kind, actor, leases, proofs, ...(secretHash === undefined ? {} : { secretHash }) };
      }
      case "gc":
        return { kind, actor };
    }
  }

  #acquire(actor: Actor, proofs: string[], target: Lease | undefined, b: number, c: number): Acquire {
    const count = 1 + (b % 5 === 0 ? 2 : b % 5 === 1 ? 1 : 0);
    const ttlSecs = pick(TTLS, b >> 4);
    const bind = c % 4 === 1 ? "process" : "ttl";
    const from = ttlSecs === 0 && bind === "ttl" && c % 16 !== 0 ? LASTING : KEYS;
    const keys = Array.from({ length: count }, (_, i) => ({
      key: pick(from, (b >> 2) + i * 3),
      reach: ((c + i) % 3 === 0 ? "worktree" : "repository") as Reach,
    }));
    if (target !== undefined && c % 5 === 0) keys.push({ key: target.key, reach: target.reach });
    const own = this.#tickets.find((ticket) => nameOf(ticket) === nameOf(actor));
    return {
      kind: "acquire",
      actor,
      keys,
      ttlSecs,
      bind,
      reason: pick(REASONS, c >> 2),
      note: null,
      secretHash: this.#secret(actor),
      proofs,
      leaseIds: keys.map(({ key }) => this.#leaseId(key)),
      steal: c % 6 === 0,
      follows: c % 5 === 0,
      ticket: b % 3 === 0 ? (own?.number ?? null) : b % 11 === 1 ? 1 : null,
      aboveToken: this.#tokenFromElsewhere(b),
    };
  }

  /** What another machine may have given out: mostly nothing, sometimes less than here, sometimes more. */
  #tokenFromElsewhere(b: number): number {
    return b % 7 === 3 ? b % 50 : b % 7 === 5 ? this.#made + (b % 20) : 0;
  }

  /** The target, or a lease that may be long gone; by key, by id, by both; sometimes with another one. */
  #refs(target: Lease | undefined, b: number): LeaseRef[] {
    const old = this.#seen[Math.max(0, this.#seen.length - 1 - (b % 12))];
    const known = target ?? old;
    const other: LeaseRef = { key: pick(KEYS, b >> 2), leaseId: null };
    if (known === undefined) return [other];
    const { key, leaseId } = known;
    const ref = pick(
      [
        { key, leaseId: null },
        { key, leaseId },
        { key: null, leaseId },
      ],
      b >> 6,
    );
    return b % 5 === 0 ? [ref, other] : b % 5 === 1 && old !== undefined ? [ref, old] : [ref];
  }

  /** Mostly what the session keeps; sometimes nothing, sometimes what everybody keeps. */
  #proofs(actor: Actor, n: number): string[] {
    if (n % 8 === 6) return [];
    if (n % 8 === 7) return [...this.#secrets.values()].flat();
    return [...(this.#secrets.get(nameOf(actor)) ?? [])];
  }

  #secret(actor: Actor): string {
    const secret = `hash-${++this.#made}`;
    const kept = this.#secrets.get(nameOf(actor));
    if (kept === undefined) this.#secrets.set(nameOf(actor), [secret]);
    else kept.push(secret);
    return secret;
  }

  #leaseId(key: LeaseKey): LeaseId {
    const leaseId = `lease-${++this.#made}` as LeaseId;
    this.#seen.push({ leaseId, key });
    return leaseId;
  }

  // --- time, machines, processes --------------------------------------------------------------------------

  /** Places: the first machine, a time namespace on it with a long uptime of its own, the second machine. */
  #now(place: number): Now {
    const machine = this.#machines[place === 2 ? 1 : 0]!;
    const boot = `${machine.id}-boot-${machine.boot}`;
    return {
      wallMs: machine.wallMs,
      clockId: place === 1 ? `${boot}+time:2` : boot,
      monotonicMs: machine.upMs + (place === 1 ? 5_000_000_000 : 0),
      machineId: machine.id,
    };
  }

  #pause(ms: number): null {
    for (const machine of this.#machines) {
      machine.wallMs += ms;
      machine.upMs += ms;
    }
    return null;
  }

  #reboot(machine: Machine, b: number): null {
    machine.boot++;
    machine.upMs = 0;
    if (b % 3 === 0) machine.wallMs += pick(JUMPS_SECS, b) * 1000;
    return null;
  }

  #actor(party: Pick<Actor, "agentId" | "sessionId" | "worktreeId">, place: number): Actor {
    const { holder } = this.#process(party, place);
    return { ...party, branch: `refs/heads/${party.sessionId}`, holder };
  }

  /** The session's living process at that place, started if there is none. */
  #process(party: Pick<Actor, "agentId" | "sessionId">, place: number): Process {
    const { clockId, machineId } = this.#now(place);
    const user = `${party.agentId}/${party.sessionId}`;
    const pidNamespace = `pid:${place}`;
    const bootId = clockId.split("+")[0]!;
    const running = this.#processes.find(
      ({ holder, alive }) =>
        alive && holder.user === user && holder.pidNamespace === pidNamespace && holder.bootId === bootId,
    );
    if (running !== undefined) return running;
    const pid = this.#processes.length + 1;
    const process: Process = {
      alive: true,
      holder: {
        machineId,
        bootId,
        pidNamespace,
        timeNamespace: place === 1 ? "time:2" : "",
        user,
        pid,
        startTime: `${pid}`,
      },
    };
    this.#processes.push(process);
    return process;
  }

  /** PROTOCOL 12, as seen from a place. */
  #liveness(holder: Holder, place: number): Liveness {
    const { machineId, clockId } = this.#now(place);
    if (holder.machineId !== machineId) return "unknown";
    if (holder.bootId !== clockId.split("+")[0]) return "dead";
    if (holder.pidNamespace !== `pid:${place}`) return "unknown";
    return this.#processes[holder.pid - 1]!.alive ? "alive" : "dead";
  }

  #circumstances(view: View, place: number): Circumstances {
    const liveness = new Map<LeaseId, Liveness>();
    for (const lease of view.leases.values()) {
      if (lease.bind === "process") liveness.set(lease.leaseId, this.#liveness(lease.holder, place));
    }
    const at: Circumstances = { now: this.#now(place), policy: this.#policy, liveness, tickets: [] };
    const tickets = this.#tickets.filter((ticket) => {
      const alive = this.#liveness(ticket.holder, place);
      const isGone = isVoid(ticket, at.now, alive);
      if (isGone !== isVoidTicket(ticket, at, alive))
        throw new Error(`void or not? ${JSON.stringify(ticket)}`);
      return !isGone;
    });
    const facts = new Map<FactName, FactRecord>();
    if (this.#isHalted) facts.set("pause:repository" as FactName, { value: {}, sequence: 1 });
    return { ...at, tickets, facts };
  }

  #join(party: Pick<Actor, "agentId" | "sessionId" | "worktreeId">, b: number, place: number): null {
    const now = instantOf(this.#now(place));
    const keys = [pick(KEYS, b >> 1), pick(KEYS, b >> 3)].slice(0, 1 + (b % 2));
    this.#tickets.push({
      number: ++this.#made,
      ...party,
      keys: keys.map((key) => ({ key, reach: b % 3 === 0 ? "worktree" : "repository" })),
      holder: this.#process(party, place).holder,
      joinedAt: now,
      expiresAt: later(now, 300_000),
      freeSince: null,
    });
    return null;
  }
}

export function nameOf(party: Pick<Lease, "agentId" | "sessionId" | "worktreeId">): string {
  return `${party.agentId} ${party.sessionId} ${party.worktreeId}`;
}

function pick<T>(from: readonly T[], n: number): T {
  return from[n % from.length]!;
}

function weighted<K extends string>(weights: Record<K, number>): K[] {
  return (Object.keys(weights) as K[]).flatMap((name) => Array<K>(weights[name]).fill(name));
}
