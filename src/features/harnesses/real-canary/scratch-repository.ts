import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { cameTrue } from "./deadline";
import type { Json } from "./wire/wire";

/** What dies frees its files at once; what ends does so a moment later. */
const FREE_MS = 20_000;
const PERSON = "human:owner";

export const CONTENT = "one\ntwo\nthree\n";
/** Somebody who holds files and does nothing else. */
export const OTHER = "agent:other";

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ScratchPlace {
  /** An empty home, and an empty folder for the repository. */
  readonly home: string;
  readonly repo: string;
  /** All that programs in it are given of the environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The program and its first words. */
  readonly cotenant: readonly string[];
  /** For each command that is run here. */
  readonly mostMs: number;
  readonly interrupted?: AbortSignal;
}

export interface ScratchOptions {
  /** `guard.retry_secs`. More than a hook may wait: a refusal comes at once. */
  readonly retrySecs: number;
  /** Puts the guard into settings; null where nobody is to ask. */
  readonly install: (() => Promise<unknown>) | null;
  readonly hasGitHooks: boolean;
}

/** A repository of nobody's with cotenant in it, and what can be seen and done there from outside. */
export class ScratchRepository {
  readonly home: string;
  readonly repo: string;
  readonly env: Readonly<Record<string, string>>;
  readonly #place: ScratchPlace;

  constructor(place: ScratchPlace) {
    this.#place = place;
    this.home = place.home;
    this.repo = place.repo;
    this.env = place.env;
  }

  async fill({ retrySecs, install, hasGitHooks }: ScratchOptions): Promise<void> {
    await this.#done("git", ["init", "-q", "-b", "main"]);
    // In the repository: some programs hide a person's own settings from Git.
    await this.#done("git", ["config", "user.name", "Owner"]);
    await this.#done("git", ["config", "user.email", "owner@example.invalid"]);
    for (const name of ["w", "x", "y", "z"]) this.write(`${name}.txt`, CONTENT);
    await this.#done("git", ["add", "-A"]);
    await this.#done("git", ["commit", "-qm", "first"]);
    await this.cotenant(["init", ...(hasGitHooks ? ["--hooks"] : [])]);
    await this.cotenant(["config", "set", "guard.retry_secs", String(retrySecs)], PERSON);
    await install?.();
    await this.#done("git", ["add", "-A"]);
    await this.#done("git", ["commit", "-qm", "cotenant", "--no-verify"]);
  }

  file(name: string): string {
    return join(this.repo, name);
  }

  read(name: string): string | null {
    try {
      return readFileSync(this.file(name), "utf8");
    } catch {
      return null;
    }
  }

  write(name: string, content: string, mode = 0o644): void {
    mkdirSync(dirname(this.file(name)), { recursive: true });
    writeFileSync(this.file(name), content, { mode });
  }

  git(...args: string[]): Promise<Ended> {
    return this.run("git", args);
  }

  async cotenant(args: readonly string[], as: string | null = null): Promise<Ended> {
    const ended = await this.try(args, as);
    if (ended.status !== 0) throw new Error(`cotenant ${args.join(" ")}: ${wordsOfEnd(ended)}`);
    return ended;
  }

  try(
    args: readonly string[],
    as: string | null = null,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Ended> {
    const [program = "", ...first] = this.#place.cotenant;
    const env = as === null ? more : { ...more, COTENANT_AGENT_ID: as };
    return this.run(program, [...first, ...args], env);
  }

  async json(args: readonly string[]): Promise<Json> {
    const { stdout, stderr } = await this.try([...args, "--json"]);
    try {
      return JSON.parse(stdout).data;
    } catch {
      throw new Error(`cotenant ${args.join(" ")} printed no JSON: ${stdout}${stderr}`);
    }
  }

  /** Who holds a file, and the process that the lease is bound to. */
  async holderOf(name: string): Promise<{ readonly agent: string; readonly pid: number } | null> {
    const { leases } = await this.json(["lock", "status"]);
    const lease = leases.find(({ key }: Json) => key === `file:${name}`);
    return lease === undefined ? null : { agent: lease.agent_id, pid: lease.holder.pid };
  }

  async events(type: RegExp): Promise<Json[]> {
    const { stdout } = await this.cotenant(["events", "--json"]);
    const all = stdout.split("\n").filter((line) => line !== "");
    return all.map((line) => JSON.parse(line)).filter(({ event_type }) => type.test(event_type));
  }

  hold(name: string): Promise<Ended> {
    return this.cotenant(["lock", "acquire", name], OTHER);
  }

  release(name: string): Promise<Ended> {
    return this.cotenant(["lock", "release", name], OTHER);
  }

  /** Whether somebody else can have a file, now or soon. */
  async isFree(name: string): Promise<boolean> {
    const isMine = async () => (await this.try(["lock", "acquire", name], OTHER)).status === 0;
    const isFree = await cameTrue(isMine, FREE_MS);
    if (isFree) await this.release(name);
    return isFree;
  }

  run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    const { mostMs, interrupted } = this.#place;
    const child = spawn(command, args, {
      cwd: this.repo,
      env: { ...this.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: mostMs,
      killSignal: "SIGKILL",
      ...(interrupted === undefined ? {} : { signal: interrupted }),
    });
    return endOf(child);
  }

  async #done(command: string, args: readonly string[]): Promise<void> {
    const ended = await this.run(command, args);
    if (ended.status !== 0) throw new Error(`${command} ${args.join(" ")}: ${wordsOfEnd(ended)}`);
  }
}

/** How it ended, with all that it printed. */
export function endOf(
  child: ChildProcess & { readonly stdout: Readable; readonly stderr: Readable },
): Promise<Ended> {
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, stdout, stderr }));
  });
}

function wordsOfEnd({ status, stdout, stderr }: Ended): string {
  return `exit ${status}: ${(stderr || stdout).trim()}`;
}
