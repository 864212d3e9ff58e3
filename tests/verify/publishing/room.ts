import { execFileSync, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { makeUlid } from "../../../src/kernel/ids";
import { nodePlatform } from "../../../src/platform/node/node";
import { copyRepo } from "../injection/tree";

export const A = "agent:a";
export const B = "agent:b";
export const REF = "refs/heads/topic/x";

/** Dates are fixed, so that the same publish makes the same objects each time, and a call about one can be named. */
const DATE = "1700000000 +0000";

export function environment(agent: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env["PATH"],
    HOME: "/nonexistent",
    LC_ALL: "C",
    TZ: "UTC",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "A",
    GIT_AUTHOR_EMAIL: "a@example.invalid",
    GIT_AUTHOR_DATE: DATE,
    GIT_COMMITTER_NAME: "C",
    GIT_COMMITTER_EMAIL: "c@example.invalid",
    GIT_COMMITTER_DATE: DATE,
    UV_THREADPOOL_SIZE: "1",
    COTENANT_AGENT_ID: agent,
  };
}

export interface Said {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One place for repositories: a worktree knows its own path. */
export class Room {
  readonly repo: string;
  readonly program: string;
  readonly #room: string;
  readonly #retries: string;

  /** `retries`: of a publish that nothing is done to. What a killed Git leaves empty is given ten seconds. */
  constructor(room: string, program: string, retries = 12) {
    this.#room = room;
    this.#retries = String(retries);
    this.repo = join(room, "repo");
    this.program = program;
    fs.mkdirSync(room, { recursive: true });
    fs.writeFileSync(join(room, "content-a"), "published by a\n");
    fs.writeFileSync(join(room, "content-b"), "published by b\n");
  }

  get control(): string {
    return join(this.repo, ".git/cotenant");
  }

  /** The repository as it is before a publish; with a branch to publish to, or without. */
  set(name: string, hasBranch: boolean): void {
    const kept = join(this.#room, `before-${name}`);
    if (!fs.existsSync(kept)) {
      this.#prepare(hasBranch);
      fs.renameSync(this.repo, kept);
    }
    copyRepo(kept, this.repo);
  }

  publishArgs(agent: string, requestId: string | null = null): string[] {
    const name = agent.slice("agent:".length);
    const put = `src/${name}.ts=${join(this.#room, `content-${name}`)}`;
    const id = requestId === null ? [] : ["--request-id", requestId];
    return ["publish", "--branch", "topic/x", "--message", `by ${name}`, "--put", put, ...id, "--json"];
  }

  run(agent: string, args: readonly string[]): Said {
    const { status, stdout, stderr, error } = spawnSync(process.execPath, [this.program, ...args], {
      cwd: this.repo,
      env: { ...environment(agent), COTENANT_PUBLISH_RETRIES: this.#retries },
      encoding: "utf8",
      timeout: 60_000,
    });
    if (error !== undefined) throw error;
    return { status, stdout, stderr };
  }

  git(...args: string[]): string {
    return execFileSync("git", args, {
      cwd: this.repo,
      env: environment(A),
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  }

  /** Null where there is no branch. */
  tip(): string | null {
    try {
      return this.git("rev-parse", "--verify", "--quiet", REF);
    } catch {
      return null;
    }
  }

  ulid(): string {
    const { clock, random } = nodePlatform();
    return makeUlid(clock.wallMs() as number, random.bytes(10) as Uint8Array);
  }

  #prepare(hasBranch: boolean): void {
    fs.rmSync(this.repo, { recursive: true, force: true });
    fs.mkdirSync(this.repo, { recursive: true });
    this.git("init", "--quiet", "--template=", "--initial-branch=main", ".");
    fs.mkdirSync(join(this.repo, "src"));
    for (const name of ["a", "b"]) fs.writeFileSync(join(this.repo, `src/${name}.ts`), `${name}\n`);
    this.git("add", "--all");
    this.git("commit", "--quiet", "--message", "first");
    if (hasBranch) this.git("branch", "topic/x");
    for (const [agent, file] of [
      [A, "src/a.ts"],
      [B, "src/b.ts"],
    ] as const) {
      const said = this.run(agent, ["lock", "acquire", file, "--ttl", "7200", "--json"]);
      if (said.status !== 0) throw new Error(`${said.stdout}${said.stderr}`);
    }
  }
}
