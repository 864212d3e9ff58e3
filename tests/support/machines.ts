import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { wallClockEnv } from "./faketime";
import { FaultyProxy, Hub } from "./hub";
import { writeIssue } from "./issue-files";
import { type Ran, type Running, runCheaply, runHere } from "./program";
import { TestRepo } from "./repo";
import { scratch } from "./scratch";
import { ulid } from "./ulid";

type Env = Readonly<Record<string, string | undefined>>;

/** A clone on a machine of its own: its own home, and so its own copy of the ledger. */
export class Machine {
  readonly repo: TestRepo;
  readonly home: string;
  readonly name: string;
  env: Env;

  constructor(name: string, repo: TestRepo, home: string, env: Env = {}) {
    this.name = name;
    this.repo = repo;
    this.home = home;
    this.env = env;
  }

  /** Clones `hub` from `url`, which is the hub's path unless told. */
  static clone(hub: Hub, name: string, options: { url?: string; home?: string; env?: Env } = {}): Machine {
    const room = scratch(`cotenant-${name}`);
    const home = options.home ?? path.join(room, "home");
    fs.mkdirSync(home, { recursive: true });
    const repo = TestRepo.of(path.join(room, "work"));
    hub.git("clone", "--quiet", "--no-hardlinks", hub.path, repo.root);
    if (options.url !== undefined) repo.git("remote", "set-url", "origin", options.url);
    return new Machine(name, repo, home, options.env);
  }

  get agent(): string {
    return `agent:${this.name}`;
  }

  #env(more: Env = {}): Env {
    return {
      HOME: this.home,
      COTENANT_SYNC_LEDGER_BRANCH: "cotenant-sync",
      ...this.env,
      ...more,
    };
  }

  /** For the library, in this process. */
  libraryEnv(more: Env = {}): Env {
    return { ...process.env, XDG_DATA_HOME: `${this.home}/.local/share`, ...this.#env(more) };
  }

  start(args: readonly string[], env: Env = {}, held = false): Running {
    return this.repo.start(this.agent, args, { env: this.#env(env), held });
  }

  #run(args: readonly string[], env: Env = {}): Promise<Ran> {
    const whole = { COTENANT_AGENT_ID: this.agent, ...this.#env(env) };
    return runCheaply(args, { cwd: this.repo.root, env: whole });
  }

  run(...args: string[]): Promise<Ran> {
    return this.#run(args);
  }

  ask(...args: string[]): Promise<Ran> {
    return this.#run([...args, "--json"]);
  }

  askWith(env: Env, ...args: string[]): Promise<Ran> {
    return this.#run([...args, "--json"], env);
  }

  /** As `TestRepo.prepare`: what must have happened before, and succeeds, without a process. */
  async prepare(...args: string[]): Promise<Ran["data"]> {
    return (await this.askHere(...args)).data;
  }

  askHere(...args: string[]): Promise<Ran> {
    return this.askHereWith({}, ...args);
  }

  askHereWith(env: Env, ...args: string[]): Promise<Ran> {
    return this.#here([...args, "--json"], env);
  }

  runHere(...args: string[]): Promise<Ran> {
    return this.#here(args);
  }

  #here(args: readonly string[], more: Env = {}): Promise<Ran> {
    const env = { COTENANT_AGENT_ID: this.agent, ...this.#env(more) };
    return runHere(args, { cwd: this.repo.root, home: this.home, env });
  }

  as(agent: string): Machine {
    return new Machine(agent, this.repo, this.home, this.env);
  }

  /** Where this machine keeps its copy of the ledger. */
  get ledger(): string {
    const data = path.join(this.home, ".local/share/cotenant");
    const [only] = fs.readdirSync(data);
    return path.join(data, only!);
  }

  get state(): Record<string, unknown> & { offline_claims: Record<string, unknown>[] } {
    return JSON.parse(fs.readFileSync(path.join(this.ledger, "state.json"), "utf8"));
  }

  issueFile(id: string): string {
    return path.join(this.repo.root, ".cotenant/issues", id, "issue.json");
  }

  issue(id: string): Record<string, unknown> {
    return JSON.parse(fs.readFileSync(this.issueFile(id), "utf8"));
  }
}

/** For the environment of a command: its wall clock is off by so much, its monotonic one is not. */
export function clockOff(by: string): Env {
  return { ...wallClockEnv(), FAKETIME: by };
}

interface Shared {
  readonly hub: Hub;
  readonly first: Machine;
  readonly ids: string[];
}

/** A hub with some issues on main, and a ledger that has been set up. Each is its own, of one that was made once. */
export async function sharedIssues(
  count: number,
  options: { hub?: Hub; setUp?: boolean; env?: Env } = {},
): Promise<Shared> {
  const name = `${count}-${options.setUp !== false}`;
  const mould = moulds.get(name) ?? (await makeMould(count, options.setUp !== false));
  moulds.set(name, mould);
  const hub = options.hub ?? new Hub();
  const room = scratch("cotenant-first");
  const first = new Machine(
    "first",
    TestRepo.of(path.join(room, "work")),
    path.join(room, "home"),
    options.env,
  );
  fs.rmSync(hub.path, { recursive: true });
  execFileSync("cp", ["-a", path.join(mould.room, "hub.git"), hub.path]);
  execFileSync("cp", ["-a", path.join(mould.room, "work"), path.join(mould.room, "home"), room]);
  const config = path.join(first.repo.root, ".git/config");
  const moved = fs.readFileSync(config, "utf8").replace(path.join(mould.room, "hub.git"), hub.path);
  fs.writeFileSync(config, moved);
  if (options.setUp !== false) {
    const address = hub.path.replace(/\.git$/, "");
    const hash = createHash("sha256").update(address).digest("hex").slice(0, 8);
    fs.renameSync(first.ledger, path.join(path.dirname(first.ledger), `hub-${hash}`));
  }
  return { hub, first, ids: [...mould.ids] };
}

interface BehindProxy extends Shared {
  readonly proxy: Awaited<ReturnType<typeof FaultyProxy.to>>;
  readonly url: string;
}

/** The same behind a network whose weather can change. */
export async function behindProxy(count: number): Promise<BehindProxy> {
  const hub = new Hub();
  const proxy = await FaultyProxy.to(await hub.daemon());
  const { first, ids } = await sharedIssues(count, { hub, setUp: false });
  const url = `git://127.0.0.1:${proxy.port}/hub.git`;
  first.repo.git("remote", "set-url", "origin", url);
  await first.prepare("sync", "--setup-ledger");
  return { hub, proxy, first, ids, url };
}

/** Once for all files of this process; gone with the place where all tests work. */
const moulds = new Map<string, { readonly room: string; readonly ids: readonly string[] }>();

async function makeMould(count: number, isSetUp: boolean): Promise<{ room: string; ids: string[] }> {
  const room = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "cotenant-mould-")));
  const hub = new Hub("sha1", room);
  const repo = TestRepo.make(path.join(room, "work"));
  repo.git("remote", "add", "origin", hub.path);
  const first = new Machine("first", repo, path.join(room, "home"));
  fs.mkdirSync(first.home);
  // Ids of one moment have any order. Here it is never the one that a test goes by.
  const ids = Array.from({ length: count }, () => ulid())
    .sort()
    .reverse();
  for (const [n, id] of ids.entries()) writeIssue(repo.root, { id, title: `Issue ${n + 1}` });
  repo.write("README.md", "a project\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  repo.git("push", "--quiet", hub.path, "HEAD:refs/heads/main");
  hub.git("symbolic-ref", "HEAD", "refs/heads/main");
  if (isSetUp) await first.prepare("sync", "--setup-ledger");
  return { room, ids };
}
