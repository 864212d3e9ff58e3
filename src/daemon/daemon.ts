import * as fs from "node:fs";
import type { Coordinator } from "../coordinator/contract";
import { type Surroundings, Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import { listWorktrees } from "../identity/worktree-list";
import type { Actor } from "../kernel/commands";
import type { Policy } from "../kernel/policy";
import { ledgerInFront } from "../ledger/in-front";
import { Feed } from "./feed";
import { Heart } from "./heart";
import { Journal } from "./journal";
import { Keeper } from "./keeper";
import { ledgerMark } from "./ledger-mark";
import { launch } from "./life";
import {
  type DaemonPlace,
  daemonPlace,
  inodeOf,
  newSocketPath,
  PROTOCOL,
  processOf,
  randomHex,
  readRecord,
  writeRecord,
} from "./place";
import { Repositories } from "./repositories";
import { RpcServer } from "./server";
import { localEngine, Service } from "./service";
import { Sessions } from "./sessions";

export interface DaemonOptions {
  readonly surroundings: () => Surroundings;
  readonly version: string;
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
const UPGRADED = "upgraded";

/** One process for all sessions of one user in one repository. Everything works without it. */
export class Daemon {
  readonly place: DaemonPlace;
  readonly journal: Journal;
  readonly #options: DaemonOptions;
  readonly #lock: number;
  readonly #server: RpcServer;
  readonly #feed: Feed;
  readonly #keeper: Keeper;
  readonly #heart: Heart;
  readonly #repositories: Repositories;
  readonly #startedMs = Date.now();
  #workspace: Workspace;
  #openedMs = Date.now();
  #lastUseMs = Date.now();
  #idle: NodeJS.Timeout | null = null;
  #ending: Promise<void> | null = null;
  readonly #ended: Promise<string>;
  #end: (why: string) => void = () => {};

  private constructor(
    options: DaemonOptions,
    workspace: Workspace,
    place: DaemonPlace,
    lock: number,
    token: string,
  ) {
    this.#options = options;
    this.#workspace = workspace;
    this.place = place;
    this.#lock = lock;
    this.journal = new Journal(place.log);
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#feed = new Feed(workspace.coordinator);
    this.#repositories = new Repositories(options.surroundings, (message, about) =>
      this.journal.note(message, about),
    );
    const sessions = new Sessions();
    this.#keeper = new Keeper(() => this.workspace(), sessions, this.#feed, this.journal);
    this.#heart = new Heart(() => this.workspace(), sessions, this.journal);
    const service = new Service({
      store: workspace.store,
      token,
      version: options.version,
      build: options.build,
      clockId: workspace.surroundings.platform.clock.clockId(),
      feed: this.#feed,
      engineFor: (ledger, policy) => this.#engineFor(ledger, policy),
      reader: async () => (await this.workspace()).coordinator,
      seen: (actor) => this.#seen(actor),
      others: new Map([
        ["status", async () => this.status()],
        ["shutdown", async () => this.#shutdown("asked to")],
        ["claim", async (params: unknown) => this.#repositories.claim(params)],
        ["ledger_sync", async (params: unknown) => this.#repositories.ledgerSync(params)],
      ]),
      onOtherBuild: () => this.#replaceIfUpgraded(),
    });
    this.#server = new RpcServer(service);
  }

  /** Null where one is running already. */
  static async start(options: DaemonOptions): Promise<Daemon | null> {
    const surroundings = options.surroundings();
    const workspace = await openLasting(surroundings);
    await workspace.store.prepare();
    const { controlDir } = workspace.repository;
    const { platform, env } = surroundings;
    const place = daemonPlace(controlDir);
    await platform.files.makeDirectory(place.folder, workspace.store.options.modes.directory);
    const lock = await platform.files.open(place.lock, "update-or-create", 0o600);
    if (!(await takesLock(surroundings.platform, place, lock))) {
      await platform.files.close(lock);
      return null;
    }
    const token = randomHex(24);
    const daemon = new Daemon(options, workspace, place, lock, token);
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

  status() {
    return {
      pid: process.pid,
      version: this.#options.version,
      build: this.#options.build,
      protocol: PROTOCOL,
      repository: this.#workspace.repository.commonDir,
      started_at: new Date(this.#startedMs).toISOString(),
      uptime_secs: Math.round((Date.now() - this.#startedMs) / 1000),
      clients: this.#server.connections,
      requests: this.#server.answered,
      memory_bytes: process.memoryUsage().rss,
      kept: this.#keeper.status(),
      heartbeats: this.#heart.status(),
      other_repositories: this.#repositories.size,
      log: this.place.log,
    };
  }

  /** As the settings are now; they may have changed since it started. */
  async workspace(): Promise<Workspace> {
    if (Date.now() - this.#openedMs < REOPEN_AFTER_MS) return this.#workspace;
    const { worktreeRoot } = this.#workspace.repository;
    const root = fs.existsSync(worktreeRoot) ? worktreeRoot : await anyWorktree(this.#workspace);
    this.#workspace = await open(this.#options.surroundings(), root);
    this.#openedMs = Date.now();
    return this.#workspace;
  }

  #begin(): void {
    this.journal.note("started", { version: this.#options.version, build: this.#options.build });
    this.#keeper.start();
    this.#heart.start();
    const idleSecs = this.#options.idleSecs ?? Number.POSITIVE_INFINITY;
    const everyMs = Math.min(IDLE_LOOK_MS, idleSecs * 1000);
    this.#idle = setInterval(() => {
      if (!fs.existsSync(this.place.lock)) this.stop("its repository is gone");
      else if (this.#server.connections > 0 || this.#keeper.isBusy) this.#lastUseMs = Date.now();
      else if (Date.now() - this.#lastUseMs > idleSecs * 1000) this.stop("nothing to do");
    }, everyMs);
  }

  async #engineFor(ledger: string | null, policy: Policy): Promise<Coordinator | null> {
    if (ledger === null) return localEngine(this.#workspace.store, policy);
    const workspace = await this.workspace();
    return ledger === ledgerMark(workspace) ? workspace.engine() : null;
  }

  #seen(actor: Actor): void {
    this.#lastUseMs = Date.now();
    this.#keeper.seen(actor);
  }

  #shutdown(why: string): object {
    setImmediate(() => this.stop(why));
    return { pid: process.pid };
  }

  /** A program that was replaced on the disk makes way for its successor. */
  #replaceIfUpgraded(): void {
    if (this.#options.buildNow() !== this.#options.build) setImmediate(() => this.stop(UPGRADED));
  }

  async #close(why: string): Promise<void> {
    if (this.#idle !== null) clearInterval(this.#idle);
    this.journal.note("ending", { why });
    // First nobody can find it any more; then what was begun is answered.
    fs.rmSync(this.place.record, { force: true });
    this.#keeper.close();
    this.#heart.close();
    await this.#server.close(LAST_ANSWERS_MS);
    this.#feed.close();
    this.journal.note("ended", { why });
    const { platform } = this.#workspace.surroundings;
    await platform.files.close(this.#lock);
    const { relaunch, surroundings } = this.#options;
    if (why === UPGRADED && relaunch !== null) launch(relaunch, surroundings());
    this.#end(why);
  }
}

function open(surroundings: Surroundings, cwd: string): Promise<Workspace> {
  return Workspace.open(
    { ...surroundings, cwd },
    { doing: "daemon", engine: ledgerInFront, isLongLived: true },
  );
}

/** The main worktree outlives the one in which it was started. */
async function openLasting(surroundings: Surroundings): Promise<Workspace> {
  const here = await open(surroundings, surroundings.cwd);
  const { mainWorktreeRoot, worktreeRoot } = here.repository;
  if (mainWorktreeRoot === null || mainWorktreeRoot === worktreeRoot) return here;
  return open(surroundings, mainWorktreeRoot).catch(() => here);
}

async function anyWorktree({ surroundings, repository }: Workspace): Promise<string> {
  const { platform, git } = surroundings;
  const found = (await listWorktrees(platform, git, repository)).find(({ exists }) => exists);
  if (found !== undefined) return found.root;
  throw new CotenantError("E_NOT_A_REPO", `no worktree of ${repository.commonDir} is left`);
}

/** Whoever only looks whether a daemon runs has the lock for an instant, and one that starts has it before its record. */
const TRY_LOCK_MS = 500;

/** False where another one is running: it does not wait for that one's end. */
async function takesLock(
  { locks, clock, timers, processes }: Surroundings["platform"],
  place: DaemonPlace,
  fd: number,
): Promise<boolean> {
  const deadline = clock.monotonicMs() + TRY_LOCK_MS;
  while (!(await locks.tryLock(fd))) {
    const record = readRecord(place);
    const isTaken =
      record !== null && (await processes.liveness(processOf(record, processes.self()))) === "alive";
    if (isTaken || clock.monotonicMs() > deadline) return false;
    await timers.sleep(10).done;
  }
  return true;
}
