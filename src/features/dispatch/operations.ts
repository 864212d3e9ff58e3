/** Agents at work on issues, each in a worktree of its own, until nothing is left. See docs/DISPATCH.md. */

import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import { issueKey } from "../../kernel/keys";
import type { IssueRow } from "../issues/board";
import { issuesIn } from "../issues/desk";
import { meantId } from "../issues/meant";
import { shortId } from "../issues/short-id";
import { targetRef } from "../land/target";
import { branchName } from "../publish/branch-rules";
import { branchForIssue } from "../worktrees/names";
import { availableAt } from "./claiming";
import { Crew } from "./crew";
import { logsOf, noLogs } from "./logs";
import { type WorkRecord, workRecords } from "./record";
import type { DispatchOptions, DispatchParts, DispatchReport } from "./report";
import { type DispatchRequest, optionsOf } from "./request";
import { askToStop, runsSeen, type SeenRun, type StopHow } from "./run-file";

export { readLog } from "./logs";
export type { Stage } from "./record";
export type {
  ClaimOutcome,
  Delivery,
  DispatchEvent,
  DispatchOptions,
  DispatchParts,
  DispatchReport,
  IssueEnd,
  IssueOutcome,
} from "./report";
export { type DispatchRequest, optionsOf } from "./request";
export type { RunState, SeenRun, StopHow, WorkerState } from "./run-file";
export { countEnds } from "./run-view";
export { type AgentTemplate, TEMPLATE_NAMES, templateFor } from "./templates";

/** Ends when nothing is left to do, or somebody ends it. What became of each issue is in the report. */
export async function dispatch(parts: DispatchParts, request: DispatchRequest): Promise<DispatchReport> {
  return (await Crew.assemble(parts, optionsOf(request))).run();
}

export interface PlannedIssue {
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
}

/** What would be taken now. Changes nothing. */
export async function planDispatch(
  { workspace, session }: Pick<DispatchParts, "workspace" | "session">,
  options: Pick<DispatchOptions, "filter" | "only" | "most" | "target" | "name">,
): Promise<DispatchPlan> {
  const target = branchName(await targetRef(workspace, options.target));
  const reader = await issuesIn(workspace);
  const { filter, only } = options;
  const wanted = { filter, isExcluded: (id: Ulid) => !(only?.includes(id) ?? true) };
  const { issues } = await availableAt({ workspace, session }, reader, wanted);
  const records = await workRecords(workspace.coordinator);
  const most = options.most ?? issues.length;
  return {
    target,
    held: await heldStill(workspace, await reader.ids(), options.name),
    issues: issues.slice(0, most).map((row) => {
      const begun = records.get(row.id) ?? null;
      return { row, branch: begun?.branch ?? branchForIssue(row.shortId, row.title), begun };
    }),
  };
}

async function heldStill(
  workspace: Workspace,
  ids: readonly Ulid[],
  name: string,
): Promise<DispatchPlan["held"]> {
  const { unfinished } = await dispatchStatus(workspace);
  const valid = (await workspace.coordinator.list()).filter(({ standing }) => standing === "valid");
  const isHeld = ({ issueId, agentId }: WorkRecord) =>
    agentId.replace(/-\d+$/, "") === `agent:${name}` &&
    valid.some(({ lease }) => lease.agentId === agentId && lease.key === issueKey(issueId));
  return unfinished.filter(isHeld).map(({ issueId, branch }) => ({ shortId: shortId(issueId, ids), branch }));
}

export interface DispatchStatus {
  /** The newest first. */
  readonly runs: readonly SeenRun[];
  /** Issues on which a run that was killed or interrupted has worked: whoever takes them goes on from there. */
  readonly unfinished: readonly WorkRecord[];
}

export async function dispatchStatus(workspace: Workspace): Promise<DispatchStatus> {
  const runs = await runsSeen(workspace);
  const atWork = new Set(
    runs.filter(({ isAlive }) => isAlive).flatMap(({ state }) => state.workers.map(({ issueId }) => issueId)),
  );
  const records = [...(await workRecords(workspace.coordinator)).values()];
  return { runs, unfinished: records.filter(({ issueId }) => !atWork.has(issueId)) };
}

/** The logs of all attempts at an issue, the oldest first. */
export async function dispatchLogs(
  workspace: Workspace,
  word: string,
): Promise<{ readonly issueId: Ulid; readonly paths: readonly string[] }> {
  const issueId = await meantId(await issuesIn(workspace), word);
  const paths = await logsOf(workspace, issueId);
  if (paths.length === 0) throw noLogs(issueId);
  return { issueId, paths };
}

/** Asks the runs that are under way to end. Answers which; none is an error. */
export async function stopDispatch(workspace: Workspace, how: StopHow): Promise<readonly SeenRun[]> {
  const alive = (await runsSeen(workspace)).filter(({ isAlive }) => isAlive);
  if (alive.length === 0)
    throw new CotenantError("E_NOT_FOUND", "no dispatch runs in this repository", {
      hint: "see what was done: cotenant dispatch status",
    });
  for (const { state } of alive) await askToStop(workspace, state.runId, how);
  return alive;
}

/** Whether somebody writes to that log still. */
export async function isAtWork(workspace: Workspace, logPath: string): Promise<boolean> {
  const runs = await runsSeen(workspace);
  return runs.some(
    ({ isAlive, state }) =>
      isAlive && state.workers.some(({ log, doing }) => log === logPath && doing === "working"),
  );
}
