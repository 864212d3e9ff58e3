import { createHash } from "node:crypto";
import type { AcquireRequest, LoggedEvent } from "../../src/coordinator/contract";
import { LocalCoordinator } from "../../src/coordinator/local";
import { type AcquireOptions, Session } from "../../src/coordinator/session";
import type { Actor, LeaseRef } from "../../src/kernel/commands";
import { type AgentId, makeUlid, type SessionId, type Ulid, type WorktreeId } from "../../src/kernel/ids";
import { type LeaseKey, parseKey } from "../../src/kernel/keys";
import type { Reach } from "../../src/kernel/lease";
import { DEFAULT_POLICY, type Policy } from "../../src/kernel/policy";
import { isRefusal } from "../../src/kernel/refusal";
import { instantOf, later } from "../../src/kernel/time";
import type { Platform } from "../../src/platform/platform";
import { encodeLine, type LogActor } from "../../src/store/envelope";
import type { Place } from "../../src/store/queue-admission";
import { SessionSecrets } from "../../src/store/secrets";
import { DEFAULT_STORE_OPTIONS, Store, type StoreOptions } from "../../src/store/store";
import type { Submission } from "../../src/store/submission";
import { type SimOptions, type SimProcess, SimWorld } from "../../testing/simulator";

export const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest("hex");
export const encode = (text: string) => new TextEncoder().encode(text);
export const decode = (bytes: Uint8Array | null) => (bytes === null ? null : new TextDecoder().decode(bytes));
export const range = (count: number) => [...Array(count).keys()];

/** Where the simulated repositories keep their control plane. */
export const CONTROL = "/repo/.git/cotenant";
export const LOG = `${CONTROL}/claims.jsonl`;

export interface PartyOptions extends Partial<Omit<StoreOptions, "controlDirectory">> {
  readonly session?: string;
  readonly worktree?: string;
  readonly policy?: Partial<Policy>;
  readonly control?: string;
  /** Of the same process: its calls share batches. */
  readonly store?: Store;
}

/** One agent with its own store, as a process of its own has it. */
export interface Party {
  readonly platform: Platform;
  readonly store: Store;
  readonly coordinator: LocalCoordinator;
  readonly session: Session;
  readonly secrets: SessionSecrets;
  readonly actor: Actor;
  readonly logActor: LogActor;
  acquire(keys: Asked | readonly Asked[], options?: Partial<AcquireOptions>): ReturnType<Session["acquire"]>;
  release(...keys: string[]): ReturnType<Session["release"]>;
  renew(key: string, ttlSecs?: number): ReturnType<Session["renew"]>;
}

export type Asked = string | { readonly key: string; readonly reach: Reach };

export function key(text: string): LeaseKey {
  const parsed = parseKey(text);
  if (isRefusal(parsed)) throw new Error(`bad key in a test: ${parsed.message}`);
  return parsed;
}

export function asked(keys: Asked | readonly Asked[]): { key: LeaseKey; reach: Reach }[] {
  const all = (Array.isArray(keys) ? keys : [keys]) as Asked[];
  return all.map((a) =>
    typeof a === "string" ? { key: key(a), reach: "repository" } : { key: key(a.key), reach: a.reach },
  );
}

export function byKey(text: string): LeaseRef {
  return { key: key(text), leaseId: null };
}

export function openParty(platform: Platform, agent: string, options: PartyOptions = {}): Party {
  const { session: sessionId, worktree, policy, control, store: shared, ...storeOptions } = options;
  const store =
    shared ??
    new Store(platform, { ...DEFAULT_STORE_OPTIONS, ...storeOptions, controlDirectory: control ?? CONTROL });
  const coordinator = new LocalCoordinator(store, { ...DEFAULT_POLICY, ...policy });
  const actor: Actor = {
    agentId: agent as AgentId,
    sessionId: (sessionId ?? "default") as SessionId,
    worktreeId: (worktree ?? "wt:00000001") as WorktreeId,
    branch: "refs/heads/work",
    holder: platform.processes.self(),
  };
  const secrets = new SessionSecrets(platform, store.layout, actor, () => store.prepare());
  const session = new Session(platform, coordinator, actor, secrets);
  const { agentId, worktreeId } = actor;
  return {
    platform,
    store,
    coordinator,
    session,
    secrets,
    actor,
    logActor: { agentId, sessionId: actor.sessionId, worktreeId, host: "host", pid: actor.holder.pid },
    acquire: (keys, more = {}) => session.acquire(asked(keys), { ttlSecs: 600, ...more }),
    release: (...keys) => session.release(keys.map(byKey)),
    renew: (name, ttlSecs) =>
      session.renew([byKey(name)], { ttlSecs: ttlSecs ?? null, overrideMax: false, reason: null }),
  };
}

/** What a holder shows for its leases on these keys. */
export async function holding(party: Party, ...keys: string[]) {
  const secrets: string[] = [];
  const leases: LeaseRef[] = [];
  for (const name of keys) {
    const [owned] = await party.secrets.on(key(name));
    if (owned === undefined) throw new Error(`${party.actor.agentId} has no secret for ${name}`);
    secrets.push(owned.secret);
    leases.push({ key: owned.key, leaseId: owned.leaseId });
  }
  return { actor: party.actor, leases, secrets, secretHash: sha256("unused"), requestId: null };
}

/** An acquire as it reaches the coordinator, with a secret and ids of its own. */
export function acquireRequest(
  party: Party,
  keys: Asked | readonly Asked[],
  more: Partial<AcquireRequest> = {},
): AcquireRequest {
  const wanted = asked(keys);
  return {
    actor: party.actor,
    keys: wanted,
    secrets: [],
    secretHash: sha256(`secret ${++attached}`),
    leaseIds: wanted.map(() => freshId(party.platform)),
    ttlSecs: 600,
    bind: "ttl",
    reason: null,
    note: null,
    steal: false,
    wait: null,
    requestId: null,
    ...more,
  };
}

/** The same, as the store gets it; with `queue`, from a caller that waits. */
export function submission(party: Party, request: AcquireRequest, queue: Place | null = null): Submission {
  const { secrets, wait: _, requestId, ...rest } = request;
  return {
    command: { kind: "acquire", ticket: null, proofs: secrets.map((secret) => sha256(secret)), ...rest },
    policy: party.coordinator.policy,
    actor: party.logActor,
    requestId,
    operationId: freshId(party.platform),
    queue,
  };
}

/** The wish for a place in the queue. */
export function place(party: Party, forMs = 60_000): Place {
  return { until: later(instantOf(party.store.now()), forMs), ticket: null, ahead: 0 };
}

export function freshId(platform: Platform): Ulid {
  return makeUlid(platform.clock.wallMs(), platform.random.bytes(10));
}

/** What happened on the disk since then: `kind path…`, one per operation. */
export function operationsSince(world: SimWorld, step: number): string[] {
  return world.trace
    .entries()
    .filter((entry) => entry.step > step)
    .map((entry) => entry.what);
}

/** A world without a schedule: every operation happens at once. */
export function quietWorld(seed = 1, options: Partial<SimOptions> = {}): SimWorld {
  const world = SimWorld.immediate({ seed, sha256, writebackProbability: 0, ...options });
  world.disk.makePath("/repo/.git");
  return world;
}

/** A world in which the seed decides who goes next. */
export function busyWorld(seed: number, options: Partial<SimOptions> = {}): SimWorld {
  const world = new SimWorld({ seed, sha256, ...options });
  world.disk.makePath("/repo/.git");
  return world;
}

let attached = 0;

/** A party in a process of its own, driven by the test. */
export function enter(world: SimWorld, agent: string, options: PartyOptions = {}): Party {
  return enterAs(world, agent, options).party;
}

export function enterAs(
  world: SimWorld,
  agent: string,
  options: PartyOptions = {},
): { party: Party; process: SimProcess } {
  const process = world.attach(`${agent}#${++attached}`);
  return { party: openParty(process.platform, agent, options), process };
}

/** The log's lines as they stand, each parsed; garbage is null. */
export function logLines(world: SimWorld, path = LOG): (Record<string, unknown> | null)[] {
  return (decode(world.disk.peek(path)) ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      try {
        return JSON.parse(line) as Record<string, unknown>;
      } catch {
        return null;
      }
    });
}

/** The code a promise was rejected with; throws when it was not. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return String((error as { code?: unknown }).code ?? error);
  }
  throw new Error("expected a refusal");
}

/** How many seeds a random test tries. vitest.config.ts lets TEST_* through to the tests. */
export function simSeeds(fast: number): number[] {
  const wanted = process.env["COTENANT_SIM_SEEDS"] ?? process.env["TEST_SIM_SEEDS"];
  const only = process.env["COTENANT_SIM_SEED"] ?? process.env["TEST_SIM_SEED"];
  if (only !== undefined) return [Number(only)];
  const count = wanted === undefined ? fast : Number(wanted);
  if (!Number.isInteger(count) || count < 1) throw new Error(`COTENANT_SIM_SEEDS is ${wanted}`);
  return range(count);
}

/** Lines as another writer would have added them to the log, each knowing `synced` to be durable. */
export function forgeLines(
  world: SimWorld,
  entries: readonly { type: string; payload: Record<string, unknown>; synced?: number; schema?: number }[],
): string[] {
  const digest = { sha256 };
  const last = logLines(world).at(-1)!;
  let prev = String(last["sum"]);
  let sequence = Number(last["sequence"]);
  return entries.map(({ type, payload, synced = 0 }) => {
    const actor: LogActor = {
      agentId: "agent:forger",
      sessionId: "default",
      worktreeId: "wt:00000009",
      host: "host",
      pid: 1,
    };
    const line = encodeLine(
      digest,
      { type, actor, payload },
      { sequence: ++sequence, wallMs: world.wallMs, synced, prev },
    );
    prev = line.sum;
    return line.text;
  });
}

export function addToLog(world: SimWorld, text: string): void {
  world.disk.install(LOG, encode((decode(world.disk.peek(LOG)) ?? "") + text));
}

/** The log with one line changed; its length may stay the same. */
export function damageLine(
  world: SimWorld,
  index: number,
  damage: (line: string) => string,
  path = LOG,
): void {
  const lines = decode(world.disk.peek(path))!.split("\n");
  lines[index] = damage(lines[index]!);
  world.disk.install(path, encode(lines.join("\n")));
}

export const zeroed = (line: string) => "\0".repeat(line.length);

/** Everything the audit log says. */
export async function history(party: Party): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for await (const event of party.coordinator.history()) events.push(event);
  return events;
}
