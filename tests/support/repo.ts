import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { PROGRAM, type Ran, type Running, runCheaply, runHere, start } from "./program";
import { scratch } from "./scratch";

/** A line of the log, as far as tests look at it. */
export interface LogLine {
  readonly sequence: number;
  readonly event_type: string;
  readonly actor: { readonly agent_id: string; readonly session_id: string; readonly worktree_id: string };
  readonly payload: {
    readonly reason?: string;
    readonly request_id?: string;
    readonly leases: readonly {
      readonly key: string;
      readonly agent_id: string;
      readonly fencing_token: number;
    }[];
    readonly ended: readonly { readonly key: string; readonly agent_id: string; readonly cause: string }[];
  };
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly held?: boolean;
  readonly mostMs?: number;
}

/** A real repository in which agents run the real program. */
export class TestRepo {
  /** Where commands run: the main worktree, or the one that `at` was given. */
  readonly root: string;
  readonly control: string;

  private constructor(root: string, control: string) {
    this.root = root;
    this.control = control;
  }

  /** One that is there already. */
  static of(where: string): TestRepo {
    return new TestRepo(where, path.join(where, ".git/cotenant"));
  }

  static make(where: string = path.join(scratch(), "repo"), objectFormat = "sha1"): TestRepo {
    fs.mkdirSync(where, { recursive: true });
    const repo = new TestRepo(where, path.join(where, ".git/cotenant"));
    repo.git("init", "--quiet", `--object-format=${objectFormat}`);
    return repo;
  }

  /** The same again, before anybody has used cotenant in it: cheaper than to make it anew. */
  copy(where: string = path.join(scratch(), "repo")): TestRepo {
    fs.cpSync(this.root, where, { recursive: true, verbatimSymlinks: true });
    return TestRepo.of(where);
  }

  git(...args: string[]): string {
    return execFileSync("git", args, { cwd: this.root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  /** The same repository seen from another directory or worktree. */
  at(directory: string): TestRepo {
    return new TestRepo(path.resolve(this.root, directory), this.control);
  }

  /** A linked worktree beside the main one. */
  addWorktree(name: string): TestRepo {
    if (this.git("branch", "--list", "main").trim() === "")
      this.git("commit", "--quiet", "--allow-empty", "--message", "first");
    this.git("worktree", "add", "--quiet", "-b", name, `../${name}`);
    return this.at(`../${name}`);
  }

  write(file: string, content = `${file}\n`): void {
    const whole = path.join(this.root, file);
    fs.mkdirSync(path.dirname(whole), { recursive: true });
    fs.writeFileSync(whole, content);
  }

  start(agent: string, args: readonly string[], options: RunOptions = {}): Running {
    const env = { COTENANT_AGENT_ID: agent === "" ? undefined : agent, ...options.env };
    const { held = false, mostMs } = options;
    return start([PROGRAM, ...args], {
      cwd: this.root,
      env,
      held,
      ...(mostMs === undefined ? {} : { mostMs }),
    });
  }

  /** As a person would. */
  run(agent: string, ...args: string[]): Promise<Ran> {
    return this.#run(agent, args);
  }

  #run(agent: string, args: readonly string[], env: RunOptions["env"] = {}): Promise<Ran> {
    const whole = { COTENANT_AGENT_ID: agent === "" ? undefined : agent, ...env };
    return runCheaply(args, { cwd: this.root, env: whole });
  }

  /** As a program would: with `--json`. */
  ask(agent: string, ...args: string[]): Promise<Ran> {
    return this.#run(agent, [...args, "--json"]);
  }

  askWith(env: RunOptions["env"], agent: string, ...args: string[]): Promise<Ran> {
    return this.#run(agent, [...args, "--json"], env);
  }

  /** What must have happened before: as `ask`, and it succeeds; without a process, which is not what is tested then. */
  async prepare(agent: string, ...args: string[]): Promise<Ran["data"]> {
    return (await this.askHere(agent, ...args)).data;
  }

  /** As `run`, without a process: where there are many to ask, and others start it as people do. */
  runHere(agent: string, ...args: string[]): Promise<Ran> {
    return runHere(args, {
      cwd: this.root,
      home: process.env["HOME"]!,
      env: { COTENANT_AGENT_ID: agent },
    });
  }

  askHere(agent: string, ...args: string[]): Promise<Ran> {
    return this.runHere(agent, ...args, "--json");
  }

  /** As `askHere`, by a clock that is so far ahead, or behind: what that says goes on, as if the time had passed. */
  askAt(secs: number, agent: string, ...args: string[]): Promise<Ran> {
    const env = { COTENANT_AGENT_ID: agent };
    const setting = { cwd: this.root, home: process.env["HOME"]!, env, aheadSecs: secs };
    return runHere([...args, "--json"], setting);
  }

  /** A new issue's id. */
  async issue(title = "Some work"): Promise<string> {
    return (await this.prepare("agent:planner", "issue", "create", "--title", title)).issue.id;
  }

  get logFile(): string {
    return path.join(this.control, "claims.jsonl");
  }

  logText(): string {
    return fs.existsSync(this.logFile) ? fs.readFileSync(this.logFile, "utf8") : "";
  }

  log(): LogLine[] {
    return this.logText()
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as LogLine);
  }

  /** Lines about a key, oldest first. */
  logOf(key: string): LogLine[] {
    const names = (line: LogLine) => [...(line.payload.leases ?? []), ...(line.payload.ended ?? [])];
    return this.log().filter((line) => names(line).some((lease) => lease.key === key));
  }

  /** Every file of worktree and control plane with its content and mode, to see that nothing was written. */
  picture(): Record<string, string> {
    return pictureOf(this.root);
  }
}

export function pictureOf(root: string): Record<string, string> {
  // Reads may keep what they read for the next one: the one thing that they write.
  const isCache = (file: string) => /(?:^|\/)\.git\/cotenant\/cache(?:\/|$)/.test(file);
  const seen: Record<string, string> = {};
  for (const entry of fs.readdirSync(root, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (isCache(file)) continue;
    const mode = (fs.lstatSync(file).mode & 0o7777).toString(8);
    seen[path.relative(root, file)] = entry.isFile() ? `${mode} ${fs.readFileSync(file, "base64")}` : mode;
  }
  return seen;
}

/** Runs the program outside any repository of ours. */
export function cotenant(cwd: string, args: readonly string[], env: RunOptions["env"] = {}): Promise<Ran> {
  return runCheaply(args, { cwd, env: { COTENANT_AGENT_ID: "agent:a", ...env } });
}
