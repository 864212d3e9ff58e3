import type { Acquire, Actor, Command, LeaseRef, Renew } from "../../src/kernel/commands";
import { type Circumstances, type Decision, decide } from "../../src/kernel/decide";
import type { Fact, FactName, FactRecord } from "../../src/kernel/facts";
import { type AgentId, type LeaseId, makeUlid, type SessionId, type WorktreeId } from "../../src/kernel/ids";
import { type LeaseKey, parseKey } from "../../src/kernel/keys";
import type { Bind, Holder, Lease, Reach } from "../../src/kernel/lease";
import { DEFAULT_POLICY, type Policy } from "../../src/kernel/policy";
import { isRefusal, type Refusal } from "../../src/kernel/refusal";
import type { Ticket } from "../../src/kernel/tickets";
import { instantOf, later, makeClockId, type Now } from "../../src/kernel/time";
import type { Liveness } from "../../src/kernel/validity";
import { type ClaimEvent, EMPTY_VIEW, evolve, type View } from "../../src/kernel/view";

export const WT1 = "wt:00000001" as WorktreeId;
export const WT2 = "wt:00000002" as WorktreeId;
export const ISSUE = "issue:01ARZ3NDEKTSV4RRFFQ69G5FAV";
export const OTHER_ISSUE = "issue:01BX5ZZKBKACTAV9WEVGEMMVRY";

export type Outcome = Decision | Refusal;
type Asked = string | { key: string; reach: Reach };

/** A key that must parse. */
export function key(text: string): LeaseKey {
  const parsed = parseKey(text);
  if (isRefusal(parsed)) throw new Error(`bad key in a test: ${parsed.message}`);
  return parsed;
}

export function byKey(text: string): LeaseRef {
  return { key: key(text), leaseId: null };
}

export function byId(lease: Lease): LeaseRef {
  return { key: lease.key, leaseId: lease.leaseId };
}

/** The leases of a command that must have succeeded. */
export function granted(outcome: Outcome): readonly Lease[] {
  if (isRefusal(outcome)) throw new Error(`refused with ${outcome.code}: ${outcome.message}`);
  return outcome.leases;
}

/** The one lease of a command that must have succeeded. */
export function one(outcome: Outcome): Lease {
  const leases = granted(outcome);
  if (leases.length !== 1) throw new Error(`expected one lease, not ${leases.length}`);
  return leases[0]!;
}

/** The event of a command that must have succeeded; null if it wrote nothing. */
export function written(outcome: Outcome): ClaimEvent | null {
  granted(outcome);
  return (outcome as Decision).event;
}

/** The code of a command that must have been refused. */
export function refused(outcome: Outcome): string {
  if (!isRefusal(outcome)) throw new Error("expected a refusal");
  return outcome.code;
}

/**
 * A repository with its clock, its processes and what each party keeps in its secrets file. Commands are
 * decided and, unless refused, applied.
 */
export class Scene {
  view: View = EMPTY_VIEW;
  now: Now = { wallMs: Date.UTC(2026, 0, 1), clockId: "boot-1", monotonicMs: 10_000_000, machineId: "m1" };
  policy: Policy = DEFAULT_POLICY;
  tickets: Ticket[] = [];
  readonly facts = new Map<FactName, FactRecord>();
  readonly events: ClaimEvent[] = [];
  readonly #secrets = new Map<string, string[]>();
  /** By the holder's pid; `alive` for those not named here. */
  readonly #liveness = new Map<number, Liveness>();
  #made = 0;

  actor(agent: string, session = "default", worktree: WorktreeId = WT1, pid = 100): Actor {
    const holder: Holder = {
      machineId: this.now.machineId,
      bootId: this.now.clockId.split("+")[0]!,
      pidNamespace: "pid:1",
      timeNamespace: "",
      user: "u",
      pid,
      startTime: `start-${pid}`,
    };
    return {
      agentId: agent as AgentId,
      sessionId: session as SessionId,
      worktreeId: worktree,
      branch: "refs/heads/work",
      holder,
    };
  }

  freshId(): LeaseId {
    this.#made++;
    const bytes = new Uint8Array(10);
    bytes[9] = this.#made & 255;
    bytes[8] = (this.#made >> 8) & 255;
    bytes[7] = this.#made >> 16;
    return makeUlid(this.now.wallMs, bytes);
  }

  at(): Circumstances {
    const liveness = new Map<LeaseId, Liveness>();
    for (const lease of this.view.leases.values()) {
      liveness.set(lease.leaseId, this.#liveness.get(lease.holder.pid) ?? "alive");
    }
    return { now: this.now, policy: this.policy, liveness, tickets: this.tickets, facts: this.facts };
  }

  run(command: Command): Outcome {
    const outcome = decide(this.view, command, this.at());
    if (!isRefusal(outcome) && outcome.event !== null) {
      this.events.push(outcome.event);
      this.view = evolve(this.view, outcome.event);
    }
    return outcome;
  }

  acquire(
    actor: Actor,
    keys: Asked | readonly Asked[],
    options: Partial<Omit<Acquire, "kind" | "actor" | "keys">> = {},
  ): Outcome {
    const asked = (Array.isArray(keys) ? keys : [keys]) as Asked[];
    const command: Acquire = {
      kind: "acquire",
      actor,
      keys: asked.map((a) =>
        typeof a === "string" ? { key: key(a), reach: "repository" } : { ...a, key: key(a.key) },
      ),
      ttlSecs: 600,
      bind: "ttl",
      reason: null,
      note: null,
      proofs: this.proofs(actor),
      secretHash: this.#newSecret(actor),
      leaseIds: asked.map(() => this.freshId()),
      steal: false,
      ticket: null,
      ...options,
    };
    return this.run(command);
  }

  /** As the guard does it: bound to the process, in one worktree. */
  guard(actor: Actor, ...paths: string[]): Outcome {
    return this.acquire(
      actor,
      paths.map((path) => ({ key: `file:${path}`, reach: "worktree" as const })),
      { bind: "process" as Bind, ttlSecs: 0 },
    );
  }

  renew(actor: Actor, refs: LeaseRef | readonly LeaseRef[], options: Partial<Renew> = {}): Outcome {
    return this.run({
      kind: "renew",
      actor,
      leases: listed(refs),
      ttlSecs: null,
      overrideMax: false,
      reason: null,
      ...this.#proving(actor),
      ...options,
    });
  }

  heartbeat(actor: Actor, ...refs: LeaseRef[]): Outcome {
    return this.run({ kind: "heartbeat", actor, leases: refs, ...this.#proving(actor) });
  }

  release(actor: Actor, ...refs: LeaseRef[]): Outcome {
    return this.run({ kind: "release", actor, leases: refs, reason: null, ...this.#proving(actor) });
  }

  transfer(
    actor: Actor,
    lease: LeaseRef,
    to: { agentId: AgentId; worktreeId: WorktreeId },
    reason: string | null = "hand-over",
  ): Outcome {
    return this.run({
      kind: "transfer",
      actor,
      lease,
      toAgent: to.agentId,
      toWorktree: to.worktreeId,
      toBranch: "refs/heads/other",
      reason,
      newLeaseId: this.freshId(),
      ...this.#proving(actor),
    });
  }

  evict(actor: Actor, refs: LeaseRef | readonly LeaseRef[], reason: string | null = "in the way"): Outcome {
    return this.run({ kind: "evict", actor, leases: listed(refs), reason });
  }

  prove(actor: Actor, ...refs: LeaseRef[]): Outcome {
    return this.run({ kind: "prove", actor, leases: refs, ...this.#proving(actor) });
  }

  stop(actor: Actor, ...refs: LeaseRef[]): Outcome {
    return this.run({ kind: "stop", actor, leases: refs, proofs: this.proofs(actor) });
  }

  upkeep(actor: Actor, ...refs: LeaseRef[]): Outcome {
    return this.run({ kind: "upkeep", actor, leases: refs, proofs: this.proofs(actor) });
  }

  gc(actor: Actor): Outcome {
    return this.run({ kind: "gc", actor });
  }

  join(number: number, actor: Actor, keys: readonly string[], options: Partial<Ticket> = {}): Ticket {
    const ticket: Ticket = {
      number,
      agentId: actor.agentId,
      sessionId: actor.sessionId,
      worktreeId: actor.worktreeId,
      keys: keys.map((k) => ({ key: key(k), reach: "repository" })),
      holder: actor.holder,
      joinedAt: instantOf(this.now),
      expiresAt: later(instantOf(this.now), 300_000),
      freeSince: null,
      ...options,
    };
    this.tickets.push(ticket);
    return ticket;
  }

  /** Null takes it back. */
  say(name: FactName, value: Fact | null): void {
    if (value === null) this.facts.delete(name);
    else this.facts.set(name, { value, sequence: this.events.length + 1 });
  }

  lease(text: string): Lease | undefined {
    return [...this.view.leases.values()].find((lease) => lease.key === text);
  }

  proofs(actor: Actor): string[] {
    return [...(this.#secrets.get(partyName(actor)) ?? [])];
  }

  loseSecrets(actor: Actor): void {
    this.#secrets.delete(partyName(actor));
  }

  advance(secs: number): void {
    this.now = {
      ...this.now,
      wallMs: this.now.wallMs + secs * 1000,
      monotonicMs: this.now.monotonicMs + secs * 1000,
    };
  }

  stepWallClock(secs: number): void {
    this.now = { ...this.now, wallMs: this.now.wallMs + secs * 1000 };
  }

  reboot(options: { boot?: string; wallSecs?: number; upSecs?: number } = {}): void {
    this.now = {
      ...this.now,
      clockId: makeClockId(options.boot ?? "boot-2", ""),
      monotonicMs: (options.upSecs ?? 0) * 1000,
      wallMs: this.now.wallMs + (options.wallSecs ?? 0) * 1000,
    };
  }

  seeAs(liveness: Liveness, pid = 100): void {
    this.#liveness.set(pid, liveness);
  }

  #newSecret(actor: Actor): string {
    const secret = `secret-${++this.#made}`;
    const name = partyName(actor);
    this.#secrets.set(name, [...(this.#secrets.get(name) ?? []), secret]);
    return secret;
  }

  #proving(actor: Actor): { proofs: string[]; secretHash: string } {
    return { proofs: this.proofs(actor), secretHash: this.#newSecret(actor) };
  }
}

function listed(refs: LeaseRef | readonly LeaseRef[]): readonly LeaseRef[] {
  return Array.isArray(refs) ? refs : [refs as LeaseRef];
}

function partyName(actor: Actor): string {
  return `${actor.agentId}\n${actor.sessionId}\n${actor.worktreeId}`;
}
