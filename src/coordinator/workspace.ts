import { readAgentFile } from "../config/agent-file";
import { committedIn } from "../config/committed";
import { readJoinedLedger } from "../config/joined-ledger";
import { type Config, inspectConfig, loadConfig, overruledText } from "../config/load";
import { remember } from "../config/memory";
import { memoryOf } from "../config/memory-place";
import { readTrust, type Trust } from "../config/trust";
import { CotenantError, orThrow } from "../errors/cotenant-error";
import { type AgentIdentity, type AgentQuestion, resolveAgent } from "../identity/agent";
import { currentBranch } from "../identity/branch";
import { type KnownCaller, knownCaller } from "../identity/known-caller";
import { type CanonicalPath, canonicalPath } from "../identity/paths";
import { type Environment, findRepository, type Repository } from "../identity/repository";
import { ensureWorktreeIdentity, readWorktreeIdentity, type WorktreeReading } from "../identity/worktree";
import type { Actor } from "../kernel/commands";
import { DEFAULT_SESSION, UNKNOWN_AGENT } from "../kernel/ids";
import { kindOf, type LeaseKey, nameOf } from "../kernel/keys";
import { isLandingKey } from "../kernel/landing-right";
import type { Holder } from "../kernel/lease";
import { ttlCapSecs } from "../kernel/policy";
import type { LastingGit } from "../platform/git";
import { withoutGitPlaces } from "../platform/git-places";
import type { Platform, Processes } from "../platform/platform";
import type { Tools } from "../platform/tools";
import { modesFor } from "../store/layout";
import { SessionSecrets } from "../store/secrets";
import { DEFAULT_STORE_OPTIONS, Store, type StoreOptions } from "../store/store";
import type { Coordinator, LeaseStatus, LoggedEvent, Subscription } from "./contract";
import { LocalCoordinator } from "./local";
import { refuseNetworkFileSystem } from "./network-file-system";
import { Session } from "./session";
import { recordStandIn, standInWarning } from "./stand-in";
import type { FolderWatcher } from "./watched";

/** Everything of the outside world that decides where and who a caller is. */
export interface Surroundings {
  readonly platform: Platform;
  readonly git: LastingGit;
  readonly tools: Tools;
  readonly env: Environment;
  readonly cwd: string;
  readonly home: string | null;
  readonly isTerminal: boolean;
}

/** Where somebody is, and the repository around them: it is opened only by what needs it, and may not be one. */
export interface Whereabouts {
  surroundings(): Surroundings;
  workspace(): Promise<Workspace>;
}

/** The same in another worktree: the variables of a Git that has started us would lead back to its own. */
export function surroundingsIn(surroundings: Surroundings, cwd: string): Surroundings {
  return { ...surroundings, cwd, env: withoutGitPlaces(surroundings.env) };
}

/** What only a daemon does, and somebody counts on while none is running. */
export interface MissedDaemon {
  readonly what: "http" | "renewals";
  readonly message: string;
  /** A command, as it can be typed. */
  readonly next: string;
}

export interface WorkspaceFlags {
  readonly agentId?: string | undefined;
  readonly session?: string | undefined;
  readonly allowNetworkFs?: boolean | undefined;
  /** Configuration overrides of this one call, by key. */
  readonly config?: Readonly<Record<string, unknown>>;
  /**
   * What becomes of a configuration that is wrong. Default: `E_CONFIG`. `mend`, for commands that mend it: what is wrong is
   * left out. `enforce`, for hooks, which must not end with it: what the repository's file last said holds.
   */
  readonly despiteConfig?: "mend" | "enforce";
  /** What the process is doing, for whoever finds it holding the store's mutex. */
  readonly doing?: string;
  /** What stands in front of the local engine for sessions that write, such as the ledger; null: nothing does. */
  readonly engine?: (workspace: Workspace) => Promise<Coordinator | null>;
  /** On whose behalf this process asks, where it only runs a command for another. Default: its own. */
  readonly holder?: (processes: Processes) => Promise<Holder>;
  /** Who knows which of many files have changed; null: nobody does. */
  readonly watcher?: (workspace: Workspace) => Promise<FolderWatcher | null>;
  /** What somebody counts on a daemon for, while none is running; null: nothing. */
  readonly missedDaemon?: (workspace: Workspace) => Promise<MissedDaemon | null>;
  /** Who tells what is logged after a line. Default: the log itself is read. */
  readonly followLog?: (
    workspace: Workspace,
    listener: (event: LoggedEvent) => void,
    after: number,
  ) => Promise<Subscription>;
  /** Many operations are to come: the index need not follow each of them. */
  readonly isLongLived?: boolean;
  /** Whether the control directory is still the one that was opened; asked before anything is changed in it. */
  readonly isInPlace?: () => boolean;
  /** For a process that opens its repositories again and again: a store keeps files open. */
  readonly openStore?: (options: StoreOptions) => Store;
}

/** A dozen lines or two, which cost whoever comes next less than the index costs everybody. */
const INDEX_LAG_BYTES = 16 << 10;

/** One worktree of one repository with its configuration: what a command or a program works in. */
export class Workspace {
  readonly coordinator: LocalCoordinator;
  /** What people should know about how this place was found. */
  readonly warnings: string[] = [];
  /** All leases, where a command has only looked at them: the reminders after it need not read them again. */
  seen: readonly LeaseStatus[] | null = null;
  /** Whether somebody has asked for a session to write with. */
  isWriting = false;
  #worktree: { readonly reading: WorktreeReading; readonly isStored: boolean } | null = null;
  #engine: Promise<Coordinator> | null = null;
  #writer: { readonly branch: string | null; readonly session: Promise<Session> } | null = null;
  #watcher: Promise<FolderWatcher | null> | null = null;

  private constructor(
    readonly surroundings: Surroundings,
    readonly repository: Repository,
    readonly config: Config,
    private readonly flags: WorkspaceFlags,
  ) {
    const options: StoreOptions = {
      ...DEFAULT_STORE_OPTIONS,
      controlDirectory: repository.controlDir,
      modes: modesFor(repository.config.sharedRepository),
      busyTimeoutMs: config.values["store.busy_timeout_secs"] * 1000,
      rotateBytes: config.values["store.rotate_bytes"],
      indexLagBytes: flags.isLongLived === true ? INDEX_LAG_BYTES : 0,
      doing: flags.doing ?? "cotenant",
      ...(flags.isInPlace === undefined ? {} : { isInPlace: flags.isInPlace }),
    };
    const store = flags.openStore?.(options) ?? new Store(surroundings.platform, options);
    this.coordinator = new LocalCoordinator(store, config.policy);
  }

  static async open(surroundings: Surroundings, flags: WorkspaceFlags = {}): Promise<Workspace> {
    const { platform, env, cwd, git, home } = surroundings;
    const repository = await findRepository(platform, cwd, env, git);
    const { worktreeRoot } = repository;
    const trust = await readTrust(platform, repository.controlDir);
    const joined = await readJoinedLedger(platform, repository.controlDir);
    const committed = committedIn(git, repository, env);
    const about = { platform, env, home, worktreeRoot, committed };
    const question = { ...about, trust, joined, flags: flags.config ?? {} };
    const memory = memoryOf(repository, modesFor(repository.config.sharedRepository));
    const isEnforcing = flags.despiteConfig === "enforce";
    const { config } =
      flags.despiteConfig === "mend"
        ? await inspectConfig(question)
        : { config: await loadConfig(isEnforcing ? { ...question, memory } : question) };
    const workspace = new Workspace(surroundings, repository, config, flags);
    workspace.warnings.push(...configWarnings(config, trust));
    if (flags.allowNetworkFs !== true) await refuseNetworkFileSystem(surroundings, repository);
    if (config.standIn !== null)
      await recordStandIn(workspace.coordinator, memory, config.standIn, () => workspace.recorder());
    return workspace;
  }

  /**
   * The repository in another of its worktrees, for the same caller. One repository, one engine: claims from there are shared
   * as claims from here are. Unless `engine` says otherwise, for somebody who takes the one around the caller away.
   */
  async elsewhere(
    root: string,
    engine: WorkspaceFlags["engine"] = () => this.#engineInFront(),
  ): Promise<Workspace> {
    if (root === this.repository.worktreeRoot) return this;
    const { agentId, session, allowNetworkFs, holder, doing } = this.flags;
    return Workspace.open(surroundingsIn(this.surroundings, root), {
      ...{ agentId, session, allowNetworkFs, engine },
      ...(holder === undefined ? {} : { holder }),
      ...(doing === undefined ? {} : { doing }),
    });
  }

  get isLongLived(): boolean {
    return this.flags.isLongLived === true;
  }

  get store(): Store {
    return this.coordinator.store;
  }

  /** Who is asking. Reads only. */
  agent(): Promise<AgentIdentity> {
    return resolveAgent(this.#question());
  }

  /** The same, null where nobody has said so: to look, or to be bound by what binds everybody, nobody needs to. */
  async agentOrNull(): Promise<AgentIdentity | null> {
    try {
      return await this.agent();
    } catch (error) {
      if (error instanceof CotenantError && error.code === "E_AGENT_ID_REQUIRED") return null;
      throw error;
    }
  }

  /** The same for those who judge whoever it is, also somebody without a name, or with one that cannot be used. */
  caller(): Promise<KnownCaller> {
    return knownCaller(this.#question());
  }

  #question(): AgentQuestion {
    const { agentId, session } = this.flags;
    const { controlDir } = this.repository;
    return { ...this.surroundings, controlDir, flags: { agentId, session } };
  }

  /** The worktree's identity; a writing caller stores what a reading one only computes. */
  async worktree(mode: "read" | "write"): Promise<WorktreeReading> {
    // One command is in one worktree: what was stored is not looked up again.
    if (this.#worktree !== null && (mode === "read" || this.#worktree.isStored))
      return this.#worktree.reading;
    const { platform, git } = this.surroundings;
    const find = mode === "write" ? ensureWorktreeIdentity : readWorktreeIdentity;
    const reading = await find(platform, git, this.repository);
    if (reading.warning !== null) this.warnings.push(reading.warning);
    this.#worktree = { reading, isStored: mode === "write" };
    return reading;
  }

  /** One session writes for as long as the workspace is open, and its worktree on the same branch. */
  async session(mode: "read" | "write"): Promise<Session> {
    if (mode === "read") return this.#sessionOf(await this.agent(), mode);
    this.isWriting = true;
    const branch = await this.#branch();
    if (this.#writer?.branch !== branch)
      this.#writer = { branch, session: this.agent().then((agent) => this.#sessionOf(agent, mode, branch)) };
    try {
      return await this.#writer.session;
    } catch (error) {
      this.#writer = null;
      throw error;
    }
  }

  #branch(): Promise<string | null> {
    const { platform, git } = this.surroundings;
    return currentBranch(platform, git, this.repository.gitDir);
  }

  /** Who is looking; null where nobody has said so. */
  async actorOrNull(): Promise<Actor | null> {
    return (await this.agentOrNull()) === null ? null : (await this.session("read")).actor;
  }

  /** The process that leases are said to be held by. */
  async holder(): Promise<Holder> {
    const { processes } = this.surroundings.platform;
    return (await this.flags.holder?.(processes)) ?? processes.self();
  }

  /** For what goes on record whoever did it, also somebody who has not said who they are. */
  async recorder(): Promise<Session> {
    const unknown = { agentId: UNKNOWN_AGENT, sessionId: DEFAULT_SESSION };
    const { agent } = await this.caller();
    return this.#sessionOf(agent ?? unknown, "write");
  }

  async #rememberConfig(): Promise<void> {
    const memory = memoryOf(this.repository, this.store.options.modes);
    const committed = this.config.layers.find(({ source }) => source === "worktree");
    await remember(this.surroundings.platform, memory, committed);
  }

  async #sessionOf(
    agent: Pick<AgentIdentity, "agentId" | "sessionId">,
    mode: "read" | "write",
    branch?: string | null,
  ): Promise<Session> {
    const { platform } = this.surroundings;
    if (mode === "write") await this.#rememberConfig();
    const worktree = await this.worktree((await this.hasStore()) ? mode : "read");
    const actor: Actor = {
      agentId: agent.agentId,
      sessionId: agent.sessionId,
      worktreeId: worktree.identity.worktreeId,
      branch: branch === undefined ? await this.#branch() : branch,
      holder: platform.processes.self(),
    };
    const secrets = new SessionSecrets(platform, this.store.layout, actor, () => this.settleIn());
    const engine = mode === "read" ? this.coordinator : await this.engine();
    return new Session(platform, engine, actor, secrets, (key) => this.#mayTake(key));
  }

  /** `worktree.mode = on`: work on issues is done in worktrees of its own. */
  #mayTake(key: LeaseKey): void {
    const { gitDir, commonDir } = this.repository;
    if (this.config.values["worktree.mode"] !== "on" || gitDir !== commonDir || kindOf(key) !== "issue")
      return;
    // The right to land is nobody's work.
    if (isLandingKey(key)) return;
    const message = "this is the main worktree, and issues are claimed in worktrees of their own here";
    throw new CotenantError("E_POLICY", message, {
      hint: `run 'cotenant worktree create --issue ${nameOf(key)} --claim'`,
      data: { key, setting: "worktree.mode" },
    });
  }

  /** Whether the worktree is still one: a command may have removed it. */
  async isThere(): Promise<boolean> {
    return (await this.surroundings.platform.files.stat(this.repository.gitDir)) !== null;
  }

  /** Whether anybody has written anything here yet. */
  hasStore(): Promise<boolean> {
    return this.store.exists();
  }

  /** What the first command that writes makes: whoever is refused before that leaves nothing behind. */
  async settleIn(): Promise<void> {
    await this.store.prepare();
    await this.worktree("write");
  }

  /** What changes of leases go through. */
  engine(): Promise<Coordinator> {
    const { engine } = this.flags;
    this.#engine ??= Promise.resolve(engine?.(this) ?? null).then((inFront) => inFront ?? this.coordinator);
    return this.#engine;
  }

  /** What stands in front of the local engine, if anything does. */
  async #engineInFront(): Promise<Coordinator | null> {
    const engine = await this.engine();
    return engine === this.coordinator ? null : engine;
  }

  /** For whoever keeps a cache of many files. */
  folderWatcher(): Promise<FolderWatcher | null> {
    this.#watcher ??= this.flags.watcher?.(this) ?? Promise.resolve(null);
    return this.#watcher;
  }

  async missedDaemon(): Promise<MissedDaemon | null> {
    return (await this.flags.missedDaemon?.(this)) ?? null;
  }

  followLog(listener: (event: LoggedEvent) => void, after: number): Promise<Subscription> {
    const { followLog } = this.flags;
    return followLog?.(this, listener, after) ?? this.coordinator.watch(listener, after);
  }

  /** A path as the caller typed it. */
  async path(text: string): Promise<CanonicalPath> {
    const { platform, cwd } = this.surroundings;
    return orThrow(await canonicalPath(platform, this.repository, cwd, text));
  }

  /** How long a lease lasts where nobody says: never longer than the policy lets it. */
  async usualTtlSecs(noun: "claim" | "lock"): Promise<number> {
    const { values } = this.config;
    // Claims that are shared between machines last longer: renewing one is a push.
    const isShared = noun === "claim" && values["sync.ledger_branch"] !== null;
    const secs = isShared ? values["sync.claim_ttl_secs"] : await this.#defaultTtlSecs();
    return this.withinPolicy(secs);
  }

  /** So long, or as long as the policy lets this agent hold anything, if that is less. */
  async withinPolicy(secs: number): Promise<number> {
    const { agentId } = await this.agent();
    return Math.min(secs, ttlCapSecs(agentId, this.config.policy));
  }

  /** The agent's own wish comes before the repository's default. */
  async #defaultTtlSecs(): Promise<number> {
    const { source } = this.config.origin("coordination.default_ttl_secs");
    const wished = source === "default" ? (await readAgentFile(this.surroundings))?.defaultTtlSecs : null;
    return wished ?? this.config.policy.defaultTtlSecs;
  }
}

function configWarnings(config: Config, { problem }: Trust): string[] {
  const { untrusted, overruled, layers, standIn, namedOnly } = config;
  const lines = problem === null ? [] : [problem];
  if (standIn !== null) lines.push(standInWarning(standIn));
  for (const { unreadable } of layers)
    if (unreadable !== undefined) lines.push(`${unreadable} cannot be read, so it does not count`);
  for (const does of ["loosens", "names"] as const) {
    // A name that a stronger source gives as well is used from there.
    const entries = untrusted.filter(
      (entry) => entry.does === does && (does === "loosens" || namedOnly(entry.key) !== null),
    );
    const keys = entries.map(({ key }) => key).join(", ");
    const [verb, so] = does === "names" ? ["names", "used"] : ["sets", "honoured"];
    const which = entries.length === 1 ? `which is not ${so}` : `which are not ${so}`;
    if (entries.length > 0)
      lines.push(`${entries[0]!.place} ${verb} ${keys}, ${which} before a person runs 'cotenant trust'`);
  }
  lines.push(...overruled.map(overruledText));
  for (const { variable, nearest } of layers.flatMap(({ unknown = [] }) => unknown))
    if (nearest !== null) lines.push(`${variable} means nothing here: did you mean ${nearest}?`);
  return lines;
}
