/** The library: `import { openRepository } from "cotenant"`. */
import type { Change, Grant, LeaseStatus, LoggedEvent, Subscription, Wait } from "./coordinator/contract";
import type { Session } from "./coordinator/session";
import { Workspace } from "./coordinator/workspace";
import { orThrow } from "./errors/cotenant-error";
import { parseAgentId, parseUlid, parseWorktreeId } from "./kernel/ids";
import { dirKey, fileKey, issueKey, type LeaseKey, parseKey, refKey, resourceKey } from "./kernel/keys";
import type { Bind, Reach } from "./kernel/lease";
import { thisMachine } from "./platform/node/this-machine";

export type { Change, Grant, LeaseStatus, LoggedEvent, Subscription } from "./coordinator/contract";
export { CotenantError } from "./errors/cotenant-error";
export { ERRORS, type ErrorCode } from "./errors/registry";
export type { LeaseKey } from "./kernel/keys";
export type { Lease } from "./kernel/lease";

/** What to lease: a canonical key (`file:src/a.ts`), or a thing by its kind. Paths are relative to `cwd`. */
export type Target =
  | string
  | { readonly file: string }
  | { readonly dir: string }
  | { readonly resource: string }
  | { readonly ref: string }
  | { readonly issue: string };

export interface OpenOptions {
  /** Where to look for the repository. Default: the process's working directory. */
  readonly cwd?: string;
  readonly agentId?: string;
  readonly sessionId?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly allowNetworkFs?: boolean;
}

export interface AcquireOptions {
  readonly ttlSecs?: number;
  /** `process`: the lease lives exactly as long as this process. Default `ttl`. */
  readonly bind?: Bind;
  readonly reach?: Reach;
  readonly reason?: string;
  readonly note?: string;
  readonly steal?: boolean;
  readonly wait?: Wait;
  readonly requestId?: string;
}

export interface ChangeOptions {
  readonly requestId?: string;
  readonly reason?: string;
}

/** Opens the repository around `cwd` for one agent and session. Concurrent calls share their syncs. */
export async function openRepository(options: OpenOptions = {}): Promise<CotenantRepository> {
  const machine = thisMachine();
  const workspace = await Workspace.open(
    { ...machine, env: options.env ?? machine.env, cwd: options.cwd ?? machine.cwd, isTerminal: false },
    {
      agentId: options.agentId,
      session: options.sessionId,
      allowNetworkFs: options.allowNetworkFs,
      doing: "library",
      isLongLived: true,
    },
  );
  return new CotenantRepository(workspace, await workspace.session("write"));
}

export class CotenantRepository {
  readonly #workspace: Workspace;
  readonly #session: Session;

  constructor(workspace: Workspace, session: Session) {
    this.#workspace = workspace;
    this.#session = session;
  }

  /** All of them or none. Rejects with `E_LOCK_CONFLICT` when somebody else holds one. */
  async acquire(targets: Target | readonly Target[], options: AcquireOptions = {}): Promise<Grant> {
    const reach = options.reach ?? "repository";
    const keys = (await this.#keys(targets)).map((key) => ({ key, reach }));
    return this.#session.acquire(keys, {
      ttlSecs: options.ttlSecs ?? this.#workspace.config.policy.defaultTtlSecs,
      bind: options.bind ?? "ttl",
      reason: options.reason ?? null,
      note: options.note ?? null,
      steal: options.steal ?? false,
      wait: options.wait ?? null,
      requestId: requestIdOf(options),
    });
  }

  async renew(
    targets: Target | readonly Target[],
    options: ChangeOptions & { readonly ttlSecs?: number; readonly overrideMax?: boolean } = {},
  ): Promise<Change> {
    return this.#session.renew(await this.#refs(targets), {
      ttlSecs: options.ttlSecs ?? null,
      overrideMax: options.overrideMax ?? false,
      reason: options.reason ?? null,
      requestId: requestIdOf(options),
    });
  }

  async heartbeat(targets: Target | readonly Target[], options: ChangeOptions = {}): Promise<Change> {
    return this.#session.heartbeat(await this.#refs(targets), { requestId: requestIdOf(options) });
  }

  async release(targets: Target | readonly Target[], options: ChangeOptions = {}): Promise<Change> {
    const reason = options.reason ?? null;
    return this.#session.release(await this.#refs(targets), { reason, requestId: requestIdOf(options) });
  }

  async transfer(
    target: Target,
    options: ChangeOptions & { readonly toAgent: string; readonly toWorktree?: string },
  ): Promise<Change> {
    const [ref] = await this.#refs(target);
    const { actor } = this.#session;
    return this.#session.transfer(ref!, {
      toAgent: orThrow(parseAgentId(options.toAgent)),
      toWorktree:
        options.toWorktree === undefined ? actor.worktreeId : orThrow(parseWorktreeId(options.toWorktree)),
      toBranch: options.toWorktree === undefined ? actor.branch : null,
      reason: options.reason ?? null,
      requestId: requestIdOf(options),
    });
  }

  async evict(targets: Target | readonly Target[], options: ChangeOptions): Promise<Change> {
    const reason = options.reason ?? null;
    return this.#session.evict(await this.#refs(targets), { reason, requestId: requestIdOf(options) });
  }

  /** Marks everything this session holds as stopped: it ends soon unless the session shows life again. */
  stop(): Promise<Change> {
    return this.#session.stop();
  }

  gc(): Promise<Change> {
    return this.#workspace.coordinator.gc({ actor: this.#session.actor });
  }

  list(): Promise<readonly LeaseStatus[]> {
    return this.#workspace.coordinator.list();
  }

  mine(): Promise<readonly LeaseStatus[]> {
    return this.#session.mine();
  }

  history(filter: { readonly target?: Target } = {}): AsyncIterable<LoggedEvent> {
    const { coordinator } = this.#workspace;
    const keys = this.#keys(filter.target === undefined ? [] : filter.target);
    return (async function* () {
      const [key] = await keys;
      yield* coordinator.history(key === undefined ? {} : { key });
    })();
  }

  watch(listener: (event: LoggedEvent) => void): Promise<Subscription> {
    return this.#workspace.coordinator.watch(listener);
  }

  async #refs(targets: Target | readonly Target[]) {
    const all =
      typeof targets === "string" || !Array.isArray(targets) ? [targets as Target] : (targets as Target[]);
    const refs = [];
    for (const target of all) {
      const id = typeof target === "string" && target.length === 26 ? parseUlid(target) : null;
      if (typeof id === "string") refs.push({ key: null, leaseId: id });
      else refs.push({ key: await this.#key(target), leaseId: null });
    }
    return refs;
  }

  async #keys(targets: Target | readonly Target[]): Promise<LeaseKey[]> {
    const all =
      typeof targets === "string" || !Array.isArray(targets) ? [targets as Target] : (targets as Target[]);
    return Promise.all(all.map((target) => this.#key(target)));
  }

  async #key(target: Target): Promise<LeaseKey> {
    if (typeof target === "string") return orThrow(parseKey(target));
    if ("file" in target) return orThrow(fileKey((await this.#workspace.path(target.file)).path));
    if ("dir" in target) return orThrow(dirKey((await this.#workspace.path(target.dir)).path));
    if ("resource" in target) return orThrow(resourceKey(target.resource));
    if ("ref" in target) return orThrow(refKey(target.ref));
    return orThrow(issueKey(target.issue));
  }
}

function requestIdOf(options: { readonly requestId?: string }) {
  return options.requestId === undefined ? null : orThrow(parseUlid(options.requestId));
}
