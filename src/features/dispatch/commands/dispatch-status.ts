import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { issuesIn } from "../../issues/desk";
import { shortId } from "../../issues/short-id";
import { dispatchStatus, type Stage } from "../operations";
import { runJson, runText } from "./dispatching";

const SHOWN_OVER = 3;

const STAGES: Readonly<Record<Stage, string>> = {
  working: "its agent had not finished",
  worked: "its agent had finished, and the work has not left its branch",
  delivered: "its work was delivered, and the issue is not closed",
};

export const command: Command = {
  usage: "dispatch status [--all]",
  about:
    "Shows which runs of dispatch are under way, what each worker does, and for how long; the last runs that are over; and\nissues on which a run that was killed has worked: the next 'dispatch' goes on with them.",
  flags: { all: { meaning: "all runs of which something is known still" } },
  examples: ["cotenant dispatch status"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { runs, unfinished } = await dispatchStatus(workspace);
    const alive = runs.filter(({ isAlive }) => isAlive);
    const over = runs.filter(({ isAlive }) => !isAlive);
    const shown = [...alive, ...(parsed.has("all") ? over : over.slice(0, SHOWN_OVER))];
    const ids = unfinished.length === 0 ? [] : await (await issuesIn(workspace)).ids();
    const nowMs = workspace.surroundings.platform.clock.wallMs();
    const lines = shown.map((run) => runText(context.terminal, run, nowMs));
    const left = unfinished.map(({ issueId, branch, stage, failures }) => {
      const tries = failures === 0 ? "" : `; ${count(failures, "attempt")} failed so far`;
      return `  ${shortId(issueId, ids)} on ${printable(branch, 200)}: ${STAGES[stage]}${tries}`;
    });
    if (left.length > 0) lines.push("begun, and not ended: the next 'dispatch' goes on with them", ...left);
    return {
      data: {
        runs: shown.map(runJson),
        unfinished: unfinished.map(({ issueId, runId, agentId, branch, stage, failures, startedAt }) => ({
          ...{ issue_id: issueId, run_id: runId, agent_id: agentId, branch, stage, failures },
          started_at: startedAt,
        })),
      },
      text: lines.length === 0 ? "no dispatch has run here" : lines.join("\n"),
    };
  },
};
