import { columns, jsonFields, paint } from "../../../cli/terminal/render";
import type { Terminal } from "../../../cli/terminal/terminal";
import { printable } from "../../../kernel/ids";
import { count, duration, shellWord } from "../../../kernel/printing";
import type {
  DispatchEvent,
  DispatchPlan,
  DispatchReport,
  IssueOutcome,
  RunState,
  SeenRun,
} from "../operations";

/** One line of JSON for what happened in a run. */
export function dispatchEventJson({ kind, at, worker, issueId, text, data }: DispatchEvent, runId: string) {
  return { event: kind, at, run_id: runId, worker, issue_id: issueId, text, data };
}

/** The same for people; null for what is shown otherwise. */
export function dispatchEventText({ kind, worker, text, data }: DispatchEvent): string | null {
  if (kind === "finished") return null;
  const who = worker === null ? "" : `worker ${worker}: `;
  const shortId = data["short_id"];
  const about = kind === "claimed" || typeof shortId !== "string" ? "" : `${printable(shortId, 40)} `;
  return `${who}${about}${printable(text, 500)}`;
}

const WORKER_FIELDS = [
  ...(["agentId", "doing", "issueId", "shortId", "title", "branch", "worktree", "log", "since"] as const),
  "silentSecs",
] as const;

export function runJson({ state, isAlive }: SeenRun): Record<string, unknown> {
  return {
    ...jsonFields(state, "runId", "by"),
    pid: state.process.pid,
    running: isAlive,
    killed: !isAlive && state.endedAt === null,
    ...jsonFields(state, "startedAt", "endedAt", "runs", "delivery", "target"),
    workers: state.workers.map((worker) => ({
      worker: worker.number,
      ...jsonFields(worker, ...WORKER_FIELDS),
    })),
    ...jsonFields(state, "ends", "left", "etaSecs", "costUsd", "offlineClaims"),
  };
}

function outcomeJson(outcome: IssueOutcome): Record<string, unknown> {
  return {
    ...jsonFields(outcome, "issueId", "shortId", "title", "end", "worker", "attempts", "branch", "landed"),
    ...jsonFields(outcome, "pullRequest", "why", "hint", "snapshotId", "log", "costUsd", "durationMs"),
  };
}

export function reportJson(report: DispatchReport): Record<string, unknown> {
  return {
    run_id: report.runId,
    issues: report.issues.map(outcomeJson),
    ...jsonFields(report, "offlineClaims", "costUsd", "durationMs", "left", "endedBy"),
  };
}

const ENDS: Readonly<Record<IssueOutcome["end"], string>> = {
  done: "done",
  gated: "waiting for a gate",
  given_back: "given back",
  lost: "lost",
  deleted: "deleted meanwhile",
  interrupted: "interrupted",
};

function endsText(ends: RunState["ends"]): string {
  const parts = Object.entries(ENDS).flatMap(([end, words]) => {
    const n = ends[end as IssueOutcome["end"]] ?? 0;
    return n === 0 ? [] : [`${n} ${words}`];
  });
  return parts.join(", ");
}

const ENDED_BY: Readonly<Record<NonNullable<DispatchReport["endedBy"]>, string>> = {
  interrupt: "it was stopped; the same command goes on from here",
  drain: "it was asked to take no more",
  limit: "--limit was reached",
  cost: "--cost was reached",
};

const NONE = "no issue is available: 'cotenant issue list' shows which there are, and who has them";

export function reportText(report: DispatchReport, ends: RunState["ends"]): string {
  const { issues, left, endedBy, offlineClaims, costUsd, durationMs } = report;
  if (issues.length === 0) return left === 0 ? NONE : `nothing was done; ${count(left, "issue")} available`;
  const lines = issues.flatMap((outcome) => {
    const { shortId, title, end, why, hint, landed, branch, pullRequest } = outcome;
    const where =
      pullRequest !== null
        ? `: ${pullRequest}`
        : landed !== null
          ? `: landed as ${landed.slice(0, 12)}`
          : branch !== null && end !== "lost" && end !== "deleted"
            ? `: on ${printable(branch, 200)}`
            : "";
    return [
      `  ${shortId} ${printable(title, 60)}: ${ENDS[end]}${where}`,
      ...(why === null ? [] : [`    why: ${printable(why, 500)}`]),
      ...(hint === null ? [] : [`    next: ${printable(hint, 500)}`]),
    ];
  });
  const rest = [
    left === 0 ? null : `${count(left, "issue")} still available`,
    costUsd === null ? null : `$${costUsd.toFixed(2)}`,
  ].filter((part) => part !== null);
  return [
    [`${endsText(ends)} in ${duration(durationMs)}`, ...rest].join("; "),
    ...(endedBy === null ? [] : [ENDED_BY[endedBy]]),
    ...(offlineClaims === 0
      ? []
      : [
          `${count(offlineClaims, "claim")} made while the ledger was out of reach: run 'cotenant sync --reconcile'`,
        ]),
    ...lines,
    ...landingNext(issues),
  ].join("\n");
}

const MOST_BRANCHES = 20;

/** What is done and stays on branches of its own is for somebody to land. */
function landingNext(issues: readonly IssueOutcome[]): string[] {
  const branches = issues.flatMap(({ end, landed, pullRequest, branch }) =>
    end === "done" && landed === null && pullRequest === null && branch !== null ? [branch] : [],
  );
  if (branches.length === 0) return [];
  const named = branches.length > MOST_BRANCHES ? "<branch>…" : branches.map(shellWord).join(" ");
  return [`next: land what is done: cotenant land add ${named}, then cotenant land run`];
}

export function planJson({ issues, target }: DispatchPlan): Record<string, unknown> {
  return {
    target,
    issues: issues.map(({ row, branch, begun }) => ({
      issue_id: row.id,
      ...jsonFields(row, "shortId", "title", "priority", "files"),
      branch,
      begun: begun === null ? null : jsonFields(begun, "runId", "stage", "failures"),
    })),
  };
}

export function planText(terminal: Terminal, { issues, target, held, agents, runs }: DispatchPlan): string {
  const first = held.map(({ shortId, branch }) => `${shortId} (${printable(branch, 80)})`).join(", ");
  const before =
    held.length === 0 ? [] : [`first of all it goes on with what a run that was killed has left: ${first}`];
  if (issues.length === 0) return before[0] ?? NONE;
  const rows = issues.map(({ row, branch, begun }, at) => [
    at < agents ? `worker ${at + 1}` : "",
    row.shortId,
    row.priority,
    printable(row.title, 60),
    printable(branch, 80),
    begun === null ? "" : "begun before",
  ]);
  const head = `${count(Math.min(agents, issues.length), "worker")} would take ${count(issues.length, "issue")}, in this order, beginning from ${printable(target, 200)}, and run for each:`;
  return [
    ...before,
    head,
    `  ${printable(runs, 500)}`,
    columns(terminal, ["", "ISSUE", "PRIORITY", "TITLE", "BRANCH", ""], rows, 3),
  ].join("\n");
}

/** One line for each worker, and one for all of them. */
export function boardLines(terminal: Terminal, state: RunState, nowMs: number): string[] {
  const workers = state.workers.map(({ number, shortId, title, doing, since, silentSecs }) => {
    const who = `worker ${number}`.padEnd(9);
    if (shortId === null) return paint(terminal, "dim", `${who}  ${doing}`);
    const passed = since === null ? "" : ` ${duration(nowMs - Date.parse(since))}`;
    const silent =
      silentSecs === null ? "" : paint(terminal, "yellow", ` silent for ${duration(silentSecs * 1000)}`);
    return `${who}  ${shortId}  ${printable(title ?? "", 50)}  ${doing}${passed}${silent}`;
  });
  const sum = [
    endsText(state.ends) || "nothing finished yet",
    state.left === null ? null : `${state.left} left`,
    state.etaSecs === null || state.etaSecs === 0 || state.left === null
      ? null
      : `about ${duration(state.etaSecs * 1000)} to go`,
    state.costUsd === null ? null : `$${state.costUsd.toFixed(2)}`,
    state.offlineClaims === 0 ? null : `${state.offlineClaims} known to this machine only`,
  ].filter((part) => part !== null);
  return [...workers, paint(terminal, "bold", sum.join(", "))];
}

export function runText(terminal: Terminal, run: SeenRun, nowMs: number): string {
  const { state, isAlive } = run;
  const how = isAlive
    ? `runs, pid ${state.process.pid}`
    : state.endedAt === null
      ? "was killed"
      : `ended ${state.endedAt}`;
  const head = `${state.runId} by ${state.by}: ${how}; ${printable(state.runs, 100)}, ${deliveryText(state)}, begun ${state.startedAt}`;
  if (!isAlive) return `${head}\n  ${endsText(state.ends) || "nothing finished"}`;
  return [head, ...boardLines(terminal, state, nowMs).map((line) => `  ${line}`)].join("\n");
}

function deliveryText({ delivery, target }: RunState): string {
  if (delivery === "land") return `landing on ${printable(target, 200)}`;
  return delivery === "pr" ? `opening pull requests for ${printable(target, 200)}` : "leaving branches";
}
