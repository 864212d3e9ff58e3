import * as fs from "node:fs";
import * as path from "node:path";
import { isAlive } from "./alive";
import { type IssueFile, writeIssue } from "./issue-files";
import { LANDER, landingRepo } from "./landing";
import type { Ran, Running } from "./program";
import type { RunOptions, TestRepo } from "./repo";
import { scratch } from "./scratch";

/** What one line of a run's output says. */
export interface DispatchLine {
  readonly event: string;
  readonly worker: number | null;
  readonly issue_id: string | null;
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface EndedIssue {
  readonly issue_id: string;
  readonly short_id: string;
  readonly end: string;
  readonly attempts: number;
  readonly branch: string | null;
  readonly landed: string | null;
  readonly pull_request: string | null;
  readonly why: string | null;
  readonly hint: string | null;
  readonly snapshot_id: string | null;
  readonly log: string | null;
  readonly cost_usd: number | null;
}

export interface Report {
  readonly issues: readonly EndedIssue[];
  readonly offline_claims: number;
  readonly cost_usd: number | null;
  readonly left: number;
  readonly ended_by: string | null;
}

/** Issues on main, in a repository whose files of issues merge as `cotenant init` has them merge. */
export function dispatchRepo(...issues: readonly IssueFile[]): {
  readonly repo: TestRepo;
  readonly ids: string[];
} {
  const repo = landingRepo();
  const ids = addIssues(repo, ...issues);
  return { repo, ids };
}

export function addIssues(repo: TestRepo, ...issues: readonly IssueFile[]): string[] {
  const ids = issues.map((issue) => writeIssue(repo.root, issue));
  repo.write(".cotenant/.gitattributes", "*.jsonl merge=union\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "issues");
  return ids;
}

/** So many that are alike. */
export const alike = (count: number): IssueFile[] =>
  Array.from({ length: count }, (_, at) => ({ title: `Work ${at + 1}` }));

/** A run of `dispatch` that goes on. */
export class Dispatching {
  readonly running: Running;

  constructor(running: Running) {
    this.running = running;
  }

  get lines(): DispatchLine[] {
    return linesOf(this.running.stdout).filter((line) => "event" in line);
  }

  of(event: string): DispatchLine[] {
    return this.lines.filter((line) => line.event === event);
  }

  async done(): Promise<Dispatched> {
    return new Dispatched(await this.running.done);
  }
}

export class Dispatched {
  readonly ran: Ran;
  readonly lines: readonly DispatchLine[];

  constructor(ran: Ran) {
    this.ran = ran;
    this.lines = linesOf(ran.stdout).filter((line) => "event" in line);
  }

  get report(): Report {
    const last = linesOf(this.ran.stdout).at(-1) as unknown as { ok?: boolean; data?: Report };
    if (last?.ok !== true) throw new Error(`no report: ${this.ran}`);
    return last.data!;
  }

  /** The only issue that was worked on. */
  get only(): EndedIssue {
    const { issues } = this.report;
    if (issues.length !== 1) throw new Error(`expected one issue: ${this.ran}`);
    return issues[0]!;
  }

  of(event: string): DispatchLine[] {
    return this.lines.filter((line) => line.event === event);
  }

  get notes(): string {
    return this.of("note")
      .map(({ text }) => text)
      .join("\n");
  }
}

/** The last line may have been cut off by a kill. */
function linesOf(stdout: string): DispatchLine[] {
  return stdout
    .split("\n")
    .slice(0, -1)
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as DispatchLine);
}

export function startDispatch(
  repo: TestRepo,
  args: readonly string[],
  options: RunOptions = {},
): Dispatching {
  return new Dispatching(repo.start(LANDER, ["dispatch", "--backoff", "1", ...args], options));
}

export function dispatch(
  repo: TestRepo,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Dispatched> {
  return startDispatch(repo, args, options).done();
}

/** Does what an agent does: changes a file of its own. */
export const WORKS = "echo work > w-$COTENANT_ISSUE_ID";

/** An agent's command as a file, and where it may leave word of what it has seen. */
export function agentScript(body: string): { readonly command: string; readonly room: string } {
  const room = scratch("cotenant-agent");
  fs.writeFileSync(path.join(room, "agent.sh"), body.replaceAll("$ROOM", room));
  return { command: `sh ${room}/agent.sh`, room };
}

/** A program of this name on the PATH, by a shell script; it finds its folder in $ROOM. */
export function fakeProgram(name: string, body: string): { readonly PATH: string; readonly room: string } {
  const room = scratch(`cotenant-fake-${name}`);
  fs.writeFileSync(path.join(room, name), `#!/bin/sh\nROOM=${room}\n${body}`, { mode: 0o755 });
  return { PATH: `${room}:${process.env["PATH"]}`, room };
}

export const read = (...parts: readonly string[]): string => fs.readFileSync(path.join(...parts), "utf8");

/** The issue as it is on a branch. */
export function issueOn(repo: TestRepo, id: string, branch = "main"): Record<string, unknown> {
  return JSON.parse(repo.git("show", `${branch}:.cotenant/issues/${id}/issue.json`));
}

export async function leases(repo: TestRepo): Promise<Ran["data"]["leases"]> {
  return (await repo.askHere(LANDER, "status")).data.leases;
}

/** Processes whose environment speaks of this repository's control plane: agents, and all that they have started. */
export function agentsOf(repo: TestRepo): number[] {
  const mark = `COTENANT_GIT_DIR=${path.dirname(repo.control)}`;
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isAlive(pid) && environmentOf(pid).includes(mark));
}

function environmentOf(pid: number): string {
  try {
    return fs.readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
}

/** First parents of main that landed an issue's work, and those that closed it. */
export function landings(
  repo: TestRepo,
  shortId: string,
): { readonly work: string[]; readonly closed: string[] } {
  const subjects = repo.git("log", "--first-parent", "--format=%s", "main").trim().split("\n");
  return {
    work: subjects.filter((subject) => subject.startsWith(`Merge branch 'work/${shortId}-`)),
    closed: subjects.filter((subject) => subject.startsWith(`Close ${shortId}:`)),
  };
}
