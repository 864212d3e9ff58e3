import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { branchName } from "../../publish/branch-rules";
import type { LandEntry } from "../entry";
import type { QueuePause } from "../queue-pause";
import type { LandOutcome, LandReport } from "../report";
import { shownBranch } from "../target";

/** An entry of the merge queue as programs see it. */
export function entryJson(entry: LandEntry): Record<string, unknown> {
  const { parked, landed } = entry;
  return {
    entry_id: entry.entryId,
    target: branchName(entry.target),
    branch: branchName(entry.branch),
    commit: entry.commit,
    method: entry.method,
    message: entry.message,
    issue_id: entry.issueId,
    added_by: entry.addedBy,
    added_at: entry.addedAt,
    state: entry.state,
    parked:
      parked === null
        ? null
        : {
            why: parked.why,
            message: parked.message,
            hint: parked.hint,
            paths: parked.paths,
            output: parked.output,
            output_file: parked.outputFile,
            at: parked.at,
          },
    landed:
      landed === null
        ? null
        : {
            commit: landed.commit,
            ref: landed.ref,
            remote: landed.remote,
            remote_only: landed.isRemoteOnly,
            at: landed.at,
          },
  };
}

export function queuePauseJson(pause: QueuePause | null): Record<string, unknown> | null {
  return pause === null
    ? null
    : {
        target: branchName(pause.target),
        paused_by: pause.agentId,
        paused_at: pause.at,
        reason: pause.reason,
      };
}

export function queuePauseText({ target, agentId, at, reason }: QueuePause): string {
  return `landing on ${shownBranch(target)} is paused by ${printable(agentId)} since ${printable(at, 40)}: ${printable(reason, 300)}`;
}

function outcomeJson(outcome: LandOutcome): Record<string, unknown> {
  return {
    entry_id: outcome.entryId,
    branch: branchName(outcome.branch),
    outcome: outcome.outcome,
    commit: outcome.commit,
    ref: outcome.ref,
    remote_only: outcome.isRemoteOnly,
    why: outcome.why,
    message: outcome.message,
    hint: outcome.hint,
    paths: outcome.paths,
    output: outcome.output,
    output_file: outcome.outputFile,
    cleaned: outcome.cleaned,
  };
}

export function reportJson(report: LandReport): Record<string, unknown> {
  return {
    target: branchName(report.target),
    tip: report.tip,
    remote: report.remote,
    checks: report.checks,
    dry_run: report.isDryRun,
    ...countsOf(report),
    entries: report.entries.map(outcomeJson),
  };
}

function countsOf({ entries }: LandReport): { landed: number; parked: number; waiting: number } {
  const of = (outcome: LandOutcome["outcome"]) => entries.filter((one) => one.outcome === outcome).length;
  return { landed: of("landed"), parked: of("parked"), waiting: of("waiting") };
}

export function reportText(report: LandReport): string {
  const { entries, target, isDryRun } = report;
  const name = shownBranch(target);
  if (entries.length === 0) return `nothing waits to land on ${name}`;
  const { landed, parked, waiting } = countsOf(report);
  const left = waiting === 0 ? [] : [`${waiting} left in the queue`];
  const handed = entries.filter((one) => isHandedOver(one, report)).length;
  const done = handed === 0 ? `${landed} landed` : `${handed} handed over`;
  const also = handed > 0 && landed > handed ? [`${landed - handed} landed`] : [];
  const summary = isDryRun
    ? `would land on ${name}, if their checks pass: ${count(waiting, "entry", "entries")}; ${parked} would be put aside`
    : `${name}: ${[done, ...also, ...(parked === 0 ? [] : [`${parked} put aside`]), ...left].join(", ")}`;
  return [summary, ...entries.flatMap((one) => outcomeLines(one, report))].join("\n");
}

/** Its own branch was made, and the target has stayed where it was. */
function isHandedOver({ outcome, ref }: LandOutcome, { target }: LandReport): boolean {
  return outcome === "landed" && ref !== null && ref !== target;
}

function outcomeLines(outcome: LandOutcome, report: LandReport): string[] {
  const branch = shownBranch(outcome.branch);
  const message = printable(outcome.message ?? "", 500);
  if (outcome.outcome === "waiting") return [`  ${branch}: ${message === "" ? "waits" : message}`];
  if (outcome.outcome === "parked") return asideLines(branch, outcome);
  const short = outcome.commit?.slice(0, 12);
  const as = isHandedOver(outcome, report)
    ? `is at ${shownBranch(outcome.ref ?? "")} as ${short}`
    : short === undefined
      ? message
      : `landed as ${short}`;
  const where = outcome.isRemoteOnly ? ", on the remote only" : "";
  return [
    `  ${branch}: ${as}${where}`,
    ...outcome.cleaned.map((what) => `    ${printable(what, 300)}`),
    ...(outcome.hint === null ? [] : [`    next: ${printable(outcome.hint, 500)}`]),
  ];
}

/** What became of an entry that was put aside, and what to do. */
export function asideLines(
  branch: string,
  aside: Pick<LandOutcome, "why" | "message" | "hint" | "output" | "outputFile">,
): string[] {
  const { why, message, hint, output, outputFile } = aside;
  return [
    `  ${branch}: put aside (${why}): ${printable(message ?? "", 500)}`,
    ...lastLines(output).map((line) => `    | ${line}`),
    ...(outputFile === null ? [] : [`    all of it: ${printable(outputFile, 500)}`]),
    ...(hint === null ? [] : [`    next: ${printable(hint, 600)}`]),
  ];
}

const MOST_LINES = 5;

function lastLines(output: string): string[] {
  return output
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-MOST_LINES)
    .map((line) => printable(line, 200));
}
