import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Prng } from "../../../testing/simulator/prng";
import { writeIssue } from "../../support/issue-files";
import { FaultyProxy, gitDaemon } from "../../support/network";

export const TTL_SECS = 8;
export const SKEW_SECS = 2;
/** Clocks differ by less than the rules allow for. */
const MOST_SKEW_SECS = 0.8;
/** A command that hangs would be a finding of its own. */
const MOST_MS = 60_000;

export interface Told {
  readonly args: readonly string[];
  readonly status: number | null;
  readonly json: {
    ok: boolean;
    data?: Record<string, unknown>;
    error?: { code: string; message: string };
  } | null;
  readonly text: string;
}

/** A clone on a machine of its own, with its own network and its own idea of the time. */
export class Ship {
  readonly name: string;
  readonly root: string;
  readonly proxy: FaultyProxy;
  readonly #program: string;
  readonly #env: Record<string, string>;
  kills = 0;

  constructor(name: string, root: string, proxy: FaultyProxy, program: string, env: Record<string, string>) {
    this.#program = program;
    this.name = name;
    this.root = root;
    this.proxy = proxy;
    this.#env = env;
  }

  /** Runs the program; with `killAfterMs`, as far as it comes. Null: it was killed. */
  ask(
    args: readonly string[],
    killAfterMs: number | null = null,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Told | null> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [this.#program, ...args, "--json"], {
        cwd: this.root,
        env: { ...this.#env, ...env },
        stdio: ["ignore", "pipe", "pipe"],
      });
      let [stdout, stderr, wasKilled] = ["", "", false];
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        stdout += text;
      });
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        stderr += text;
      });
      const kill = () => {
        wasKilled = child.kill("SIGKILL");
        if (wasKilled) this.kills++;
      };
      const timer = setTimeout(kill, killAfterMs ?? MOST_MS);
      child.on("error", reject);
      child.on("close", (status) => {
        clearTimeout(timer);
        if (wasKilled && killAfterMs !== null) return resolve(null);
        resolve({ args, status, json: parsed(stdout), text: `${stdout}${stderr}` });
      });
    });
  }
}

function parsed(text: string): Told["json"] {
  try {
    return JSON.parse(text) as Told["json"];
  } catch {
    return null;
  }
}

/** A hub, and ships that push to it. */
export class Fleet {
  readonly hub: string;
  readonly ships: readonly Ship[];
  readonly issues: readonly string[];
  readonly #close: (() => unknown)[];

  private constructor(
    hub: string,
    ships: readonly Ship[],
    issues: readonly string[],
    close: (() => unknown)[],
  ) {
    this.hub = hub;
    this.ships = ships;
    this.issues = issues;
    this.#close = close;
  }

  static async launch(
    room: string,
    program: string,
    size: { ships: number; issues: number },
    chance: Prng,
  ): Promise<Fleet> {
    mkdirSync(room, { recursive: true });
    const env = cleanEnvironment(room);
    const git = (cwd: string, ...args: string[]) =>
      execFileSync("git", args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    const hub = join(room, "hub.git");
    git(room, "init", "--quiet", "--bare", "--initial-branch=main", hub);
    const seed = join(room, "seed");
    git(room, "init", "--quiet", "--initial-branch=main", seed);
    const issues = Array.from({ length: size.issues }, (_, n) =>
      // The same in every run of a seed.
      writeIssue(seed, { id: `01ARZ3NDEKTSV4RRFF${String(n).padStart(8, "0")}`, title: `Issue ${n}` }),
    );
    git(seed, "add", "--all");
    git(seed, "commit", "--quiet", "--message", "issues");
    git(seed, "push", "--quiet", hub, "main");
    const daemon = await gitDaemon(room);
    const close: (() => unknown)[] = [daemon.close];
    const library = execFileSync("faketime", ["-f", "+0", "printenv", "LD_PRELOAD"], {
      env,
      encoding: "utf8",
    }).trim();
    const ships: Ship[] = [];
    for (let n = 0; n < size.ships; n++) {
      const proxy = await FaultyProxy.to(daemon.port);
      close.push(() => proxy.close());
      const [root, home] = [join(room, `ship-${n}`), join(room, `home-${n}`)];
      mkdirSync(home);
      git(room, "clone", "--quiet", hub, root);
      git(root, "remote", "set-url", "origin", `git://127.0.0.1:${proxy.port}/hub.git`);
      const skew = (chance.below(2_000) / 1_000 - 1) * MOST_SKEW_SECS;
      const own = {
        ...env,
        HOME: home,
        LD_PRELOAD: library,
        FAKETIME: `${skew >= 0 ? "+" : ""}${skew.toFixed(3)}`,
        FAKETIME_DONT_FAKE_MONOTONIC: "1",
        NO_FAKE_STAT: "1",
        COTENANT_AGENT_ID: `agent:ship-${n}`,
        COTENANT_SYNC_LEDGER_BRANCH: "cotenant-sync",
        COTENANT_SYNC_CLOCK_SKEW_SECS: String(SKEW_SECS),
        COTENANT_SYNC_NETWORK_TIMEOUT: "10",
        COTENANT_SYNC_CLAIM_RETRIES: "8",
      };
      ships.push(new Ship(`ship-${n}`, root, proxy, program, own));
    }
    const told = await ships[0]!.ask(["sync", "--setup-ledger"]);
    if (told?.status !== 0) throw new Error(`the ledger could not be set up: ${told?.text}`);
    return new Fleet(hub, ships, issues, close);
  }

  git(...args: string[]): string {
    return execFileSync("git", args, {
      cwd: this.hub,
      encoding: "utf8",
      maxBuffer: 256 << 20,
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  async dismiss(): Promise<void> {
    for (const close of this.#close.reverse()) await close();
  }
}

/** Nothing of whoever runs the tests. */
function cleanEnvironment(room: string): Record<string, string> {
  writeFileSync(join(room, "gitconfig"), "[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n");
  const who = { NAME: "Fleet", EMAIL: "fleet@example.invalid" };
  return {
    PATH: process.env["PATH"] ?? "",
    TMPDIR: room,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: join(room, "gitconfig"),
    GIT_AUTHOR_NAME: who.NAME,
    GIT_AUTHOR_EMAIL: who.EMAIL,
    GIT_COMMITTER_NAME: who.NAME,
    GIT_COMMITTER_EMAIL: who.EMAIL,
    HOME: room,
    LC_ALL: "C.UTF-8",
  };
}
