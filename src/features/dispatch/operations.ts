/** Agents at work on issues, each in a worktree of its own, until nothing is left. See docs/DISPATCH.md. */

import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, notFoundError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import { issueKey } from "../../kernel/keys";
import { count, shellWord } from "../../kernel/printing";
import type { IssueRow } from "../issues/board";
import { issuesIn } from "../issues/desk";
import { meantId } from "../issues/meant";
import { shortId } from "../issues/short-id";
import { targetRef } from "../land/target";
import { branchName } from "../publish/branch-rules";
import { branchForIssue } from "../worktrees/names";
import { availableAt } from "./claims";
import { Crew } from "./crew";
import { logsOf, noLogs, readLog } from "./logs";
import { type WorkRecord, workRecords } from "./record";
import type { DispatchParts, DispatchReport } from "./report";
import { type DispatchRequest, optionsOf } from "./request";
import { askToStop, runsSeen, type SeenRun, type StopHow } from "./run-file";

export type { Stage } from "./record";
export type {
  DispatchEvent,
  DispatchParts,
  DispatchReport,
  IssueOutcome,
} from "./report";
export type { DispatchRequest } from "./request";
export type { RunState, SeenRun, StopHow } from "./run-file";
export { countEnds } from "./run-view";
export { TEMPLATE_NAMES } from "./templates";

interface PlannedIssue {
  readonly row: IssueRow;
  readonly branch: string;
  /** Work on it that a run before has not ended. */
  readonly begun: WorkRecord | null;
}

export interface DispatchPlan {
  /** In the order in which they would be taken. */
  readonly issues: readonly PlannedIssue[];
  readonly target: string;
  /** What a run that was killed has left and its workers still hold: it comes before all others. */
  readonly held: readonly { readonly shortId: string; readonly branch: string }[];
  readonly agents: number;
  /** The command line that each worker would run. */
  readonly runs: string;
}

export interface DispatchStatus {
  /** The newest first. */
  readonly runs: readonly SeenRun[];
  /** Issues on which a run that was killed or interrupted has worked: whoever takes them goes on from there. */
  readonly unfinished: readonly (WorkRecord & { readonly shortId: string })[];
}

export interface AttemptLog {
  readonly issueId: Ulid;
  /** The logs of all attempts, the oldest first. */
  readonly paths: readonly string[];
  /** Which of them `text` is. */
  readonly attempt: number;
  /** What the agent printed, in pieces; followed, it goes on until the agent has ended. */
  readonly text: AsyncIterable<string>;
}

/** Ends when nothing is left to do, or somebody ends it. What became of each issue is in the report. */
async function run(parts: DispatchParts, request: DispatchRequest): Promise<DispatchReport> {
  return (await Crew.assemble(parts, await optionsIn(parts, request))).run();
}

async function optionsIn({ workspace }: Pick<DispatchParts, "workspace">, request: DispatchRequest) {
  const { only } = request;
  if (only === undefined) return optionsOf(request);
  const reader = await issuesIn(workspace);
  return optionsOf(request, await Promise.all(only.map((word) => meantId(reader, word))));
}

const LOOK_EVERY_MS = 300;

export const dispatch = Object.assign(run, {
  /** Refuses a request that contradicts itself. */
  check: (request: DispatchRequest): void => void optionsOf(request),

  /** What would be taken now. Changes nothing. */
  async plan(
    parts: Pick<DispatchParts, "workspace" | "session">,
    request: DispatchRequest,
  ): Promise<DispatchPlan> {
    const options = await optionsIn(parts, request);
    const { filter, only, agents, name } = options;
    const { workspace } = parts;
    const target = branchName(await targetRef(workspace, options.target));
    const reader = await issuesIn(workspace);
    const wanted = { filter, isExcluded: (id: Ulid) => !(only?.includes(id) ?? true) };
    const { issues } = await availableAt(parts, reader, wanted);
    const records = await workRecords(workspace.coordinator);
    const held = (await heldStill(workspace, name)).map(({ shortId, branch }) => ({ shortId, branch }));
    const taken = issues.slice(0, options.most ?? issues.length).map((row) => {
      const begun = records.get(row.id) ?? null;
      return { row, branch: begun?.branch ?? branchForIssue(row.shortId, row.title), begun };
    });
    return { issues: taken, target, held, agents, runs: options.template?.line ?? options.command ?? "" };
  },

  async status(workspace: Workspace): Promise<DispatchStatus> {
    const runs = await runsSeen(workspace);
    const atWork = new Set(
      runs
        .filter(({ isAlive }) => isAlive)
        .flatMap(({ state }) => state.workers.map(({ issueId }) => issueId)),
    );
    const records = [...(await workRecords(workspace.coordinator)).values()];
    const unfinished = records.filter(({ issueId }) => !atWork.has(issueId));
    const ids = unfinished.length === 0 ? [] : await (await issuesIn(workspace)).ids();
    return {
      runs,
      unfinished: unfinished.map((record) => ({ ...record, shortId: shortId(record.issueId, ids) })),
    };
  },

  /** What an agent printed while it worked on an issue, at the last attempt unless another is named. */
  async logs(
    workspace: Workspace,
    request: {
      readonly issue: string;
      readonly attempt?: number | undefined;
      readonly follow?: boolean | undefined;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<AttemptLog> {
    const { issue, follow = false, signal } = request;
    const issueId = await meantId(await issuesIn(workspace), issue);
    const paths = await logsOf(workspace, issueId);
    if (paths.length === 0) throw noLogs(issueId);
    const attempt = request.attempt ?? paths.length;
    const path = paths[attempt - 1];
    if (path === undefined)
      throw notFoundError(
        `there are logs of ${count(paths.length, "attempt")}, and none of attempt ${attempt}`,
        `see them: cotenant dispatch logs ${shellWord(issue)} --paths`,
      );
    return { issueId, paths, attempt, text: textOf(workspace, path, follow, signal) };
  },

  /** Asks the runs that are under way to end. Answers which. */
  async stop(workspace: Workspace, { how }: { readonly how: StopHow }): Promise<readonly SeenRun[]> {
    const alive = (await runsSeen(workspace)).filter(({ isAlive }) => isAlive);
    if (alive.length === 0)
      throw new CotenantError("E_NOT_FOUND", "no dispatch runs in this repository", {
        hint: "see what was done: cotenant dispatch status",
      });
    for (const { state } of alive) await askToStop(workspace, state.runId, how);
    return alive;
  },
});

async function heldStill(workspace: Workspace, name: string) {
  const { unfinished } = await dispatch.status(workspace);
  const valid = (await workspace.coordinator.list()).filter(({ standing }) => standing === "valid");
  return unfinished.filter(
    ({ issueId, agentId }) =>
      agentId.replace(/-\d+$/, "") === `agent:${name}` &&
      valid.some(({ lease }) => lease.agentId === agentId && lease.key === issueKey(issueId)),
  );
}

async function* textOf(
  workspace: Workspace,
  path: string,
  follow: boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const { timers } = workspace.surroundings.platform;
  let { bytes, end } = await readLog(workspace, path, 0);
  yield decoder.decode(bytes, { stream: true });
  while (follow && signal?.aborted !== true) {
    const wasAtWork = await isAtWork(workspace, path);
    ({ bytes, end } = await readLog(workspace, path, end));
    if (bytes.length === 0 && !wasAtWork) return;
    yield decoder.decode(bytes, { stream: true });
    if (bytes.length > 0) continue;
    const sleep = timers.sleep(LOOK_EVERY_MS);
    signal?.addEventListener("abort", sleep.wake, { once: true });
    await sleep.done;
    signal?.removeEventListener("abort", sleep.wake);
  }
}

/** Whether somebody writes to that log still. */
async function isAtWork(workspace: Workspace, logPath: string): Promise<boolean> {
  const runs = await runsSeen(workspace);
  return runs.some(
    ({ isAlive, state }) =>
      isAlive && state.workers.some(({ log, doing }) => log === logPath && doing === "working"),
  );
}
