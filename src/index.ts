/** The library: `import { openRepository } from "cotenant"`. */
import type { Change, Grant, LeaseStatus, LoggedEvent, Subscription, Wait } from "./coordinator/contract";
import type { Pausing } from "./coordinator/pause";
import type { Approved } from "./coordinator/proposals";
import { resourceNamed, resourceRefs } from "./coordinator/resources";
import type { Session } from "./coordinator/session";
import { Workspace } from "./coordinator/workspace";
import { engineInFront, followLogInFront, missedDaemonIn, watcherInFront } from "./daemon/in-front";
import { orThrow } from "./errors/cotenant-error";
import type { DispatchReport, DispatchRequest } from "./features/dispatch/operations";
import type { LandEntry } from "./features/land/entry";
import type { Enqueued, EnqueueRequest } from "./features/land/queue-entries";
import type { LandOptions, LandReport } from "./features/land/report";
import type { PublishOptions } from "./features/publish/operations";
import type { Published } from "./features/publish/request";
import type { Consistency, Descriptor as Snapshot } from "./features/snapshots/descriptor";
import { parseUlid } from "./kernel/ids";
import { dirKey, fileKey, issueKey, type LeaseKey, parseKey, refKey } from "./kernel/keys";
import type { Bind, Reach } from "./kernel/lease";
import type { Pause } from "./kernel/pause";
import type { Proposal } from "./kernel/proposals";
import { type Operations, operationsIn } from "./operations";
import { thisMachine } from "./platform/node/this-machine";

export type { Change, Grant, LeaseStatus, LoggedEvent, Subscription } from "./coordinator/contract";
export type { Pausing } from "./coordinator/pause";
export type { Approved } from "./coordinator/proposals";
export { CotenantError } from "./errors/cotenant-error";
export { ERRORS, type ErrorCode } from "./errors/registry";
export type {
  DispatchEvent,
  DispatchReport,
  DispatchRequest,
  IssueOutcome,
  RunState,
} from "./features/dispatch/operations";
export type { LandEntry } from "./features/land/entry";
export type { Enqueued, EnqueueRequest } from "./features/land/queue-entries";
export type { LandOptions, LandOutcome, LandProgress, LandReport } from "./features/land/report";
export type { PublishOptions, TreeChange } from "./features/publish/operations";
export type { Published, PublishedPath } from "./features/publish/request";
export type { LeaseKey } from "./kernel/keys";
export type { Lease } from "./kernel/lease";
export type { Pause } from "./kernel/pause";
export type { Proposal } from "./kernel/proposals";
export type { AgentDoctor, AgentInstall, Operations } from "./operations";

/** The paths of Node and of the program `cotenant`. */
export interface ProgramPlace {
  readonly node: string;
  readonly program: string;
}

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

export type { Descriptor as Snapshot } from "./features/snapshots/descriptor";

export interface SnapshotOptions {
  readonly note?: string;
  readonly tags?: readonly string[];
  readonly consistency?: Consistency;
  /** Also what Git ignores. Default: as `snapshot.ignored` says. */
  readonly ignored?: boolean;
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
      engine: (workspace) => engineInFront(workspace),
      watcher: watcherInFront,
      missedDaemon: missedDaemonIn,
      followLog: followLogInFront,
      isLongLived: true,
    },
  );
  return new CotenantRepository(workspace, await workspace.session("write"));
}

export class CotenantRepository {
  /** What every command does, by its words: `operations.claim.forceEvict({ claim: "7x3k", reason: "…" })`. */
  readonly operations: Operations;
  readonly #workspace: Workspace;
  readonly #session: Session;

  constructor(workspace: Workspace, session: Session) {
    this.#workspace = workspace;
    this.#session = session;
    this.operations = operationsIn(workspace);
  }

  /** What somebody should hear besides the answers, so far. */
  get warnings(): readonly string[] {
    return this.#workspace.warnings;
  }

  /** All of them or none. Rejects with `E_LOCK_CONFLICT` when somebody else holds one. */
  async acquire(targets: Target | readonly Target[], options: AcquireOptions = {}): Promise<Grant> {
    const keys = await this.#keys(targets);
    const { wait, ...terms } = options;
    const request = {
      ...terms,
      signal: wait?.signal,
      wait: wait === undefined ? undefined : { timeoutSecs: wait.timeoutMs / 1000, onWait: wait.onWait },
    };
    if (keys.some((key) => key.startsWith("issue:"))) {
      const { acquireKeys } = await import("./features/claims/operations");
      return acquireKeys(this.#workspace, keys, request);
    }
    const { acquireLeases } = await import("./features/locks/operations");
    return acquireLeases(this.#workspace, { keys, steal: options.steal ?? false }, request);
  }

  async renew(
    targets: Target | readonly Target[],
    options: ChangeOptions & { readonly ttlSecs?: number; readonly overrideMax?: boolean } = {},
  ): Promise<Change> {
    const { renewLeases } = await import("./features/locks/operations");
    return renewLeases(this.#workspace, await this.#refs(targets), options);
  }

  async heartbeat(targets: Target | readonly Target[], options: ChangeOptions = {}): Promise<Change> {
    return this.#session.heartbeat(await this.#refs(targets), { requestId: requestIdOf(options) });
  }

  async release(targets: Target | readonly Target[], options: ChangeOptions = {}): Promise<Change> {
    const refs = await this.#refs(targets);
    if (refs.every(({ key }) => key !== null && !key.startsWith("issue:"))) {
      const { releaseLeases } = await import("./features/locks/operations");
      return releaseLeases(this.#workspace, refs, options);
    }
    const { giveBack } = await import("./features/claims/operations");
    return giveBack(this.#workspace, refs, options);
  }

  async transfer(
    target: Target,
    options: ChangeOptions & { readonly toAgent: string; readonly toWorktree?: string },
  ): Promise<Change> {
    const { claim } = await import("./features/claims/operations");
    const [ref] = await this.#refs(target);
    return claim.transfer(this.#workspace, {
      ...options,
      claim: ref!.key ?? ref!.leaseId!,
      reason: options.reason,
    });
  }

  /** Where `policy.approvers` asks for the approval of others, rejects with `E_APPROVAL_NEEDED` and what it has proposed. */
  async evict(targets: Target | readonly Target[], options: ChangeOptions): Promise<Change> {
    const { forceEvict } = await import("./coordinator/proposals");
    const requestId = requestIdOf(options);
    return forceEvict(this.#evicting, await this.#refs(targets), { reason: options.reason ?? "", requestId });
  }

  /** Agrees to what `evict` has proposed; the last approval that `policy.approvers` asks for ends the lease. */
  async approve(proposalId: string): Promise<Approved> {
    const { approveEviction } = await import("./coordinator/proposals");
    return approveEviction(this.#evicting, orThrow(parseUlid(proposalId)));
  }

  /** Evictions that wait for the approval of others. */
  async proposals(): Promise<readonly Proposal[]> {
    const { openProposals } = await import("./coordinator/proposals");
    return openProposals(this.#workspace.coordinator);
  }

  get #evicting() {
    return { session: this.#session, coordinator: this.#workspace.coordinator };
  }

  /** Marks everything this session holds as stopped: it ends soon unless the session shows life again. */
  stop(): Promise<Change> {
    return this.#session.stop();
  }

  /** Stops all new grants, for people (`human:`, `admin:`). Answers who paused first, where somebody had. */
  async pause(reason: string): Promise<Pausing> {
    const { pauseRepository } = await import("./coordinator/pause");
    return pauseRepository(this.#session, reason);
  }

  /** Ends a pause; null where nothing was paused. */
  async resume(): Promise<Pause | null> {
    const { resumeRepository } = await import("./coordinator/pause");
    return resumeRepository(this.#session);
  }

  /** Who has paused the repository; null where nobody has. */
  async paused(): Promise<Pause | null> {
    const { pauseOf } = await import("./coordinator/pause");
    return pauseOf(this.#workspace.coordinator);
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

  /** Keeps this worktree as it is. Rejects with `E_CONSISTENCY_UNAVAILABLE` when it does not hold still. */
  async snapshot({ note, ...options }: SnapshotOptions = {}): Promise<Snapshot> {
    const { snapshot } = await import("./features/snapshots/operations");
    return (await snapshot(this.#workspace, { ...options, message: note })).descriptor;
  }

  /** Every snapshot of the repository, oldest first. */
  async snapshots(): Promise<readonly Snapshot[]> {
    const { history } = await import("./features/snapshots/operations");
    return (await history(this.#workspace, { all: true })).all;
  }

  /** A snapshot as a new worktree; answers where it is. */
  async restore(snapshotId: string, options: { readonly path: string }): Promise<{ readonly root: string }> {
    const { restore } = await import("./features/snapshots/operations");
    const { worktree } = await restore(this.#workspace, { path: options.path, snapshot: snapshotId });
    return { root: worktree.root };
  }

  /**
   * Commits to a branch without a checkout, under leases that are proved at the commit. Calls go one after the other; the
   * Gits that they need are kept for the next one, until `close`.
   */
  async publish(options: PublishOptions): Promise<Published> {
    const { publish } = await import("./features/publish/operations");
    return publish(this.#workspace, options);
  }

  /** Adds branches to the merge queue, as they are now. */
  async landAdd({ issueId, ...request }: EnqueueRequest): Promise<readonly Enqueued[]> {
    const { land } = await import("./features/land/operations");
    return land.add(this.#workspace, { ...request, issue: issueId });
  }

  /** What waits to land, and what was put aside; with `all`, also what has landed lately. */
  async landQueue(
    options: { readonly target?: string; readonly all?: boolean } = {},
  ): Promise<readonly LandEntry[]> {
    const { land } = await import("./features/land/operations");
    return (await land.list(this.#workspace, options)).entries;
  }

  /** Lands what is in the queue. What ends it early once it has begun is told in the report. */
  async landRun(options: LandOptions = {}): Promise<LandReport> {
    const { land } = await import("./features/land/operations");
    return land.run(this.#workspace, options);
  }

  /**
   * Has agents work on issues until none is left, each in a worktree of its own. Harnesses ask before each write there if it is
   * said where Node and `cotenant` are.
   */
  async dispatch(request: DispatchRequest & { readonly program?: ProgramPlace }): Promise<DispatchReport> {
    const { dispatch } = await import("./features/dispatch/operations");
    const { dispatchParts } = await import("./node-parts");
    return dispatch(await dispatchParts(this.#workspace, this.#session, request.program ?? null), request);
  }

  /** Ends what publishing has started. The repository may be used again afterwards. */
  async close(): Promise<void> {
    const { closePublisher } = await import("./features/publish/operations");
    await closePublisher(this.#workspace);
  }

  async #refs(targets: Target | readonly Target[]) {
    const all =
      typeof targets === "string" || !Array.isArray(targets) ? [targets as Target] : (targets as Target[]);
    const refs = [];
    for (const target of all) {
      const id = typeof target === "string" && target.length === 26 ? parseUlid(target) : null;
      if (typeof id === "string") refs.push({ key: null, leaseId: id });
      else if (typeof target === "object" && "resource" in target)
        refs.push(...(await resourceRefs(this.#workspace, this.#session.actor, target.resource)));
      else refs.push({ key: await this.#key(target), leaseId: null });
    }
    return refs;
  }

  async #keys(targets: Target | readonly Target[]): Promise<LeaseKey[]> {
    const all =
      typeof targets === "string" || !Array.isArray(targets) ? [targets as Target] : (targets as Target[]);
    const keys = await Promise.all(
      all.map(async (target) =>
        typeof target === "object" && "resource" in target
          ? (await resourceNamed(this.#workspace, target.resource)).keys
          : [await this.#key(target)],
      ),
    );
    return [...new Set(keys.flat())];
  }

  async #key(target: Exclude<Target, { readonly resource: string }>): Promise<LeaseKey> {
    if (typeof target === "string") return orThrow(parseKey(target));
    if ("file" in target) return orThrow(fileKey((await this.#workspace.path(target.file)).path));
    if ("dir" in target) return orThrow(dirKey((await this.#workspace.path(target.dir)).path));
    if ("ref" in target) return orThrow(refKey(target.ref));
    return orThrow(issueKey(target.issue));
  }
}

function requestIdOf(options: { readonly requestId?: string }) {
  return options.requestId === undefined ? null : orThrow(parseUlid(options.requestId));
}
