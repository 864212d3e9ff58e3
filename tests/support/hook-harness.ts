import { type ChildProcess, spawn } from "node:child_process";
import * as fs from "node:fs";
import { createInterface } from "node:readline";
import { type Call, callsIn } from "../../src/features/harnesses/calls";
import { sitesOf } from "../../src/features/harnesses/sites";
import type { HarnessName } from "../../src/identity/harness";
import { afterEveryTest } from "./after-tests";
import { looksAfterDaemon } from "./daemon";
import { TestRepo } from "./repo";

/** What a hook printed, and how it ended. */
export interface Hooked {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface HookOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Instead of /bin/sh. */
  readonly shell?: readonly string[];
}

/** Runs command lines as a harness does, and starts what goes on; one order per line, answered in any order. */
const PROGRAM = `
  const { spawn } = require("node:child_process");
  const answer = (id, value) => process.stdout.write(JSON.stringify({ id, ...value }) + "\\n");
  require("node:readline").createInterface({ input: process.stdin }).on("line", (text) => {
    const { id, words, input, env, cwd, isLeft } = JSON.parse(text);
    const child = spawn(words[0], words.slice(1), {
      cwd, env: { ...process.env, ...env }, stdio: isLeft ? "ignore" : "pipe",
    });
    if (isLeft) return answer(id, { pid: child.pid });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (part) => (stdout += part));
    child.stderr.setEncoding("utf8").on("data", (part) => (stderr += part));
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    child.on("close", (status) => answer(id, { status, stdout, stderr }));
  }).on("close", () => process.exit(0));
`;

/** Files that are committed, and Claude Code's hooks, which ask the daemon in this way. */
export async function repoWithHooks(via: "daemon" | "http", config = ""): Promise<TestRepo> {
  const repo = TestRepo.make();
  for (const file of ["a.txt", "b.txt", "c.txt"]) repo.write(file, "one\n");
  await repo.prepare("human:me", "init");
  if (config !== "") repo.write(".cotenant/config.toml", config);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  looksAfterDaemon(repo);
  await repo.prepare("human:me", "agent", "install", "claude", "--via", via);
  return repo;
}

const running = new Set<HookHarness>();
afterEveryTest(() => {
  for (const harness of running) harness.kill();
  running.clear();
});

/** A process that stands for a harness: its hooks are its children, and its death is what frees files. */
export class HookHarness {
  readonly #repo: TestRepo;
  readonly #child: ChildProcess;
  readonly #asked = new Map<number, (answer: Record<string, unknown>) => void>();
  #next = 1;

  constructor(repo: TestRepo) {
    this.#repo = repo;
    this.#child = spawn(process.execPath, ["-e", PROGRAM], {
      cwd: repo.root,
      stdio: ["pipe", "pipe", "inherit"],
    });
    createInterface({ input: this.#child.stdout! }).on("line", (line) => {
      const answer = JSON.parse(line) as Record<string, unknown>;
      this.#asked.get(answer["id"] as number)?.(answer);
    });
    running.add(this);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Hooks that run at present. */
  childPids(): number[] {
    const children = fs.readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, "utf8");
    return children.trim() === "" ? [] : children.trim().split(" ").map(Number);
  }

  /** With which words they were started. */
  children(): string[][] {
    return this.childPids().map((pid) => fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0"));
  }

  /** One command line with this on its standard input. */
  async run(line: string, input: string, { env = {}, cwd, shell }: HookOptions = {}): Promise<Hooked> {
    const words = [...(shell ?? ["/bin/sh"]), "-c", line];
    const { status, stdout, stderr } = await this.#order({ words, input, env, cwd: cwd ?? this.#repo.root });
    return { status, stdout, stderr } as Hooked;
  }

  /** Something that goes on by itself. */
  async leave(...words: string[]): Promise<number> {
    return (await this.#order({ words, cwd: this.#repo.root, isLeft: true }))["pid"] as number;
  }

  #order(order: object): Promise<Record<string, unknown>> {
    const id = this.#next++;
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
      this.#child.stdin!.write(`${JSON.stringify({ id, ...order })}\n`);
    });
  }
}

/** What `agent install` has put into the settings of a worktree. */
export function callsOf(repo: TestRepo, harness: HarnessName): Call[] {
  return sitesOf(harness, "project", { root: repo.root, home: null, env: {} }).flatMap((site) => {
    if (!fs.existsSync(site.path)) return [];
    const file = { path: site.path, text: fs.readFileSync(site.path, "utf8") };
    return callsIn({ site, file: { ...file, isThere: true, mode: 0o644, why: null, missing: [] } });
  });
}

export function lineFor(repo: TestRepo, harness: HarnessName, event: string): string {
  const found = callsOf(repo, harness).find((call) => call.event === event);
  if (found === undefined) throw new Error(`${harness} is not called for ${event}`);
  return found.command;
}
