import * as fs from "node:fs";
import * as path from "node:path";
import type { Coordinator } from "../coordinator/contract";
import type { Surroundings, Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import { SharedRemotes } from "../features/ledger/shared-remotes";
import type { Actor } from "../kernel/commands";
import type { Policy } from "../kernel/policy";
import { UNKNOWN_BUILD } from "./build";
import { Feed } from "./feed";
import { leaveFiles, removeFiles, SOCKET_HOST } from "./guard-files";
import { GuardHttp } from "./guard-http";
import { GuardService } from "./guard-service";
import { Heart } from "./heart";
import {
  guardSocketFolder,
  guardSocketPath,
  type HookPlace,
  hookPlace,
  isSafeForHooks,
  sweepHookPlace,
} from "./hook-place";
import { Journal } from "./journal";
import { Keeper } from "./keeper";
import { ledgerMark } from "./ledger-mark";
import { launch } from "./life";
import { Loopback } from "./loopback";
import { OpenStores } from "./open-stores";
import { anyWorktree, type Home, makeFolder, open, openLasting, takesLock } from "./opened";
import {
  type DaemonPlace,
  daemonPlace,
  identityOf,
  inodeOf,
  newSocketPath,
  PROTOCOL,
  randomHex,
  removeRecord,
  writeRecord,
} from "./place";
import { Repositories } from "./repositories";
import { paramsOf, WATCHED, WATCHED_SEEN } from "./requests";
import { RpcServer } from "./server";
import { localEngine, Service } from "./service";
import { Sessions } from "./sessions";
import { SettingsWatch, settingsMark } from "./settings-mark";
import { WatchedIssues } from "./watched-issues";

export interface DaemonOptions {
  readonly surroundings: () => Surroundings;
  readonly version: string;
  /** The program that is running, as hooks would start it. */
  readonly program: string;
  /** What is running, and what would run if it were started now. */
  readonly build: string;
  buildNow(): string;
  /** How long it stays without anything to do; null: for good. */
  readonly idleSecs: number | null;
  /** The program that takes its place once it was upgraded; null where somebody else sees to that. */
  readonly relaunch: string | null;
}

/** How long what was begun may take when the daemon ends. */
const LAST_ANSWERS_MS = 10_000;
/** How often it looks whether it should go. */
const IDLE_LOOK_MS = 30_000;
const REOPEN_AFTER_MS = 1_000;
/** How often a hook has it look whether the program was replaced. */
const BUILD_LOOK_MS = 500;
const UPGRADED = "upgraded";

/** One process for all sessions of one user in one repository. Everything works without it. */
export class Daemon {
  readonly journal: Journal;
  readonly #server: RpcServer;
  readonly #service: Service;
  readonly #guard: GuardService;
  readonly #guardHttp: GuardHttp;
  readonly #loopback: Loopback;
  readonly #hooks: HookPlace | null;
  readonly #feed: Feed;
  readonly #keeper: Keeper;
  readonly #heart: Heart;
  readonly #repositories: Repositories;
  readonly #watched: WatchedIssues;
  readonly #startedAt = new Date();
  readonly #startedMs = performance.now();
  #workspace: Workspace;
  #openedMs = performance.now();
  #settings: string;
  #opening: { readonly settings: string; readonly workspace: Promise<Workspace> } | null = null;
  #watch: SettingsWatch | null = null;
  #builtSeenMs = Number.NEGATIVE_INFINITY;
  #lastUseMs = performance.now();
  #idle: NodeJS.Timeout | null = null;
  #ending: Promise<void> | null = null;
  readonly #ended: Promise<string>;
  #end: (why: string) => void = () => {};

  private constructor(
    private readonly options: DaemonOptions,
    workspace: Workspace,
    readonly place: DaemonPlace,
    private readonly home: Home,
    private readonly lock: number,
    private readonly token: string,
  ) {
    this.#workspace = workspace;
    this.#settings = settingsMark(workspace);
    this.journal = new Journal(place.log);
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#feed = new Feed(workspace.coordinator);
    this.#repositories = new Repositories(options.surroundings, (message, about) =>
      this.journal.note(message, about),
    );
    this.#watched = new WatchedIssues(`${place.folder}/${path.basename(place.record, ".json")}.cookies`);
    const sessions = new Sessions();
    this.#keeper = new Keeper(
      workspace.surroundings.platform,
      () => this.workspace(),
      sessions,
      this.#feed,
      this.journal,
    );
    this.#heart = new Heart(() => this.workspace(), sessions, this.journal);
    this.#service = new Service({
      store: workspace.store,
      token,
      version: options.version,
      build: options.build,
      clockId: workspace.surroundings.platform.clock.clockId(),
      feed: this.#feed,
      isHere: () => this.#isHere(),
      engineFor: (ledger, policy) => this.#engineFor(ledger, policy),
      reader: async () => (await this.workspace()).coordinator,
      seen: (actor) => this.#seen(actor),
      others: new Map<string, (params: unknown) => Promise<unknown>>([
        ["status", async () => this.status()],
        ["refresh", async () => this.#loopback.refresh()],
        ["watched", async (params: unknown) => this.#watched.ask(paramsOf(WATCHED, params))],
        ["watched_seen", async (params: unknown) => this.#takeSeen(params)],
        ["shutdown", async () => this.#shutdown("asked to")],
        ["claim", async (params: unknown) => this.#repositories.claim(params)],
        ["ledger_sync", async (params: unknown) => this.#repositories.ledgerSync(params)],
      ]),
      onOtherBuild: () => this.#replaceIfUpgraded(),
    });
    this.#server = new RpcServer(this.#service);
    this.#guard = new GuardService({
      platform: workspace.surroundings.platform,
      program: options.program,
      isCurrent: () => this.#isCurrent(),
      onUse: () => {
        this.#lastUseMs = performance.now();
      },
    });
    this.#guardHttp = new GuardHttp({
      token,
      host: SOCKET_HOST,
      type: "text/plain",
      handle: (post) => this.#guard.handle(post),
    });
    this.#hooks = hooksIn(workspace);
    this.#loopback = new Loopback(this.#hooks, this.#guard, this.journal);
  }

  /** Null where one is running already. */
  static async start(options: DaemonOptions): Promise<Daemon | null> {
    const surroundings = options.surroundings();
    const home: Home = {
      isSame: () => true,
      remotes: new SharedRemotes(),
      stores: new OpenStores(surroundings.platform),
    };
    const workspace = await openLasting(surroundings, home);
    await workspace.store.prepare();
    const { controlDir } = workspace.repository;
    const { platform, env } = surroundings;
    const identity = identityOf(controlDir);
    home.isSame = () => identityOf(controlDir) === identity;
    const place = daemonPlace(controlDir);
    await makeFolder(place, workspace);
    const lock = await platform.files.open(place.lock, "update-or-create", 0o600);
    if (!(await takesLock(surroundings.platform, place, lock))) {
      await platform.files.close(lock);
      return null;
    }
    const token = randomHex(24);
    const daemon = new Daemon(options, workspace, place, home, lock, token);
    const socket = newSocketPath(controlDir, env);
    await daemon.#server.listen(socket);
    const self = platform.processes.self();
    writeRecord(place, {
      pid: self.pid,
      startTime: self.startTime,
      bootId: self.bootId,
      socket,
      token,
      protocol: PROTOCOL,
      version: options.version,
      build: options.build,
      startedAt: new Date().toISOString(),
      controlInode: inodeOf(controlDir),
    });
    await daemon.#loopback.refresh();
    await daemon.#answerHooks(token);
    daemon.#begin();
    return daemon;
  }

  get repository(): string {
    return this.#workspace.repository.commonDir;
  }

  /** Why it ended, once it has. */
  async ended(): Promise<string> {
    const why = await this.#ended;
    await this.#ending;
    return why;
  }

  stop(why: string): void {
    this.#ending ??= this.#close(why);
  }

  async status() {
    return {
      pid: process.pid,
      version: this.options.version,
      build: this.options.build,
      protocol: PROTOCOL,
      repository: this.#workspace.repository.commonDir,
      started_at: this.#startedAt.toISOString(),
      uptime_secs: Math.round((performance.now() - this.#startedMs) / 1000),
      clients: this.#server.connections,
      requests: this.#server.answered,
      memory_bytes: process.memoryUsage().rss,
      kept: await this.#keeper.status(),
      heartbeats: this.#heart.status(),
      guard: { ...this.#guard.status(), http_port: this.#loopback.port },
      memory: { followers: this.#service.followers, ...this.#watched.status() },
      other_repositories: this.#repositories.size,
      log: this.place.log,
    };
  }

  /** As the settings are now; they may have changed since it started. */
  async workspace(): Promise<Workspace> {
    if (!this.#isHere()) throw new CotenantError("E_DAEMON", `${this.repository} was moved`);
    const isFresh = performance.now() - this.#openedMs < REOPEN_AFTER_MS;
    // Before they are read: what changes meanwhile is read again.
    const settings = settingsMark(this.#workspace);
    if (isFresh && settings === this.#settings) return this.#workspace;
    if (this.#opening?.settings === settings) return this.#opening.workspace;
    const opening = { settings, workspace: this.#reopened() };
    this.#opening = opening;
    try {
      this.#workspace = await opening.workspace;
      this.#settings = settings;
      this.#openedMs = performance.now();
    } finally {
      if (this.#opening === opening) this.#opening = null;
    }
    return this.#workspace;
  }

  async #reopened(): Promise<Workspace> {
    const { worktreeRoot } = this.#workspace.repository;
    const root = fs.existsSync(worktreeRoot) ? worktreeRoot : await anyWorktree(this.#workspace);
    return open(this.options.surroundings(), root, this.home);
  }

  #begin(): void {
    this.journal.note("started", { version: this.options.version, build: this.options.build });
    this.#keeper.start();
    this.#heart.start();
    this.#watch = new SettingsWatch(this.#workspace, () => this.#lookAtSettings());
    const idleSecs = this.options.idleSecs ?? Number.POSITIVE_INFINITY;
    const everyMs = Math.min(IDLE_LOOK_MS, idleSecs * 1000);
    this.#idle = setInterval(() => {
      this.#lookAtSettings();
      if (!this.#hasItsLock()) this.stop("its repository is gone");
      else if (this.#isBusy) this.#lastUseMs = performance.now();
      else if (performance.now() - this.#lastUseMs > idleSecs * 1000) this.stop("nothing to do");
    }, everyMs);
  }

  #lookAtSettings(): void {
    // Of a repository that is gone there are none.
    if (this.home.isSame() && settingsMark(this.#workspace) !== this.#settings) this.#keeper.reconsider();
  }

  /** Whether the repository is still where it was, and the same. It ends where not: its store goes by the path. */
  #isHere(): boolean {
    const isSame = this.home.isSame();
    if (!isSame) setImmediate(() => this.stop("its repository was moved"));
    return isSame;
  }

  /** What is locked has the name still under which others would look for it. */
  #hasItsLock(): boolean {
    const [ours, there] = [fs.fstatSync(this.lock), fs.statSync(this.place.lock, { throwIfNoEntry: false })];
    return there !== undefined && there.dev === ours.dev && there.ino === ours.ino;
  }

  get #isBusy(): boolean {
    return (
      this.#server.connections > 0 ||
      this.#keeper.isBusy ||
      this.#guardHttp.waiting > 0 ||
      this.#loopback.isOpen
    );
  }

  /** Where that does not go, everything else does all the same. */
  async #answerHooks(token: string): Promise<void> {
    const { env, platform } = this.#workspace.surroundings;
    if (this.#hooks === null) return;
    try {
      sweepHookPlace(this.#hooks);
      const folder = guardSocketFolder(this.#hooks, env);
      if (folder === null) throw new Error(`${this.#hooks.folder} is too long a path for a socket`);
      const socket = guardSocketPath(this.#hooks, folder);
      await this.#guardHttp.listen(socket);
      const { pid, pidNamespace } = platform.processes.self();
      const { lock } = this.place;
      leaveFiles(this.#hooks, { socket, token, pid, lockFd: this.lock, lock, pidNamespace });
    } catch (error) {
      this.journal.note("hooks are not answered", { error: (error as Error).message });
    }
  }

  /** Looked at every now and then: whoever asked a moment ago was answered by the same program, too. */
  #isCurrent(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#builtSeenMs < BUILD_LOOK_MS) return true;
    this.#replaceIfUpgraded();
    if (this.#isUpgraded) return false;
    this.#builtSeenMs = nowMs;
    return true;
  }

  async #engineFor(ledger: string | null, policy: Policy): Promise<Coordinator | null> {
    if (ledger === null) return localEngine(this.#workspace.store, policy);
    const workspace = await this.workspace();
    return ledger === ledgerMark(workspace) ? workspace.engine() : null;
  }

  #seen(actor: Actor): void {
    this.#lastUseMs = performance.now();
    this.#keeper.seen(actor);
  }

  #takeSeen(params: unknown): object {
    const said = paramsOf(WATCHED_SEEN, params);
    this.#watched.tell(said, said);
    return {};
  }

  #shutdown(why: string): object {
    setImmediate(() => this.stop(why));
    return { pid: process.pid };
  }

  /** A program that was replaced on the disk makes way for its successor. */
  #replaceIfUpgraded(): void {
    if (this.#isUpgraded) setImmediate(() => this.stop(UPGRADED));
  }

  /** Out of descriptors it cannot look: that is no upgrade. */
  get #isUpgraded(): boolean {
    const now = this.options.buildNow();
    return now !== UNKNOWN_BUILD && now !== this.options.build;
  }

  async #close(why: string): Promise<void> {
    if (this.#idle !== null) clearInterval(this.#idle);
    this.journal.note("ending", { why });
    // First nobody can find it any more; then what was begun is answered.
    removeRecord(this.place, this.token);
    if (this.#hooks !== null) removeFiles(this.#hooks, this.token);
    this.#keeper.close();
    this.#heart.close();
    this.#watch?.close();
    await Promise.all([this.#server.close(LAST_ANSWERS_MS), this.#guardHttp.close(), this.#loopback.close()]);
    this.#feed.close();
    this.#watched.close();
    this.journal.note("ended", { why });
    const { platform } = this.#workspace.surroundings;
    await platform.files.close(this.lock);
    const { relaunch, surroundings } = this.options;
    const cwd = this.#workspace.repository.worktreeRoot;
    if (why === UPGRADED && relaunch !== null) launch(relaunch, { ...surroundings(), cwd });
    this.#end(why);
  }
}

/** Null where there is no place that is its user's alone. */
function hooksIn({ repository, surroundings }: Workspace): HookPlace | null {
  if (process.platform === "win32") return null;
  const place = hookPlace(repository.controlDir, surroundings);
  return place !== null && isSafeForHooks(place) ? place : null;
}
