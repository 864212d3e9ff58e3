import type { Command } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { jsonFields } from "../../../cli/terminal/render";
import { Ending } from "../../../cli/terminal/streaming";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { dispatch, type Stage } from "../operations";
import { runJson, runText } from "./output";

const SHOWN_OVER = 3;

const STAGES: Readonly<Record<Stage, string>> = {
  working: "its agent had not finished",
  worked: "its agent had finished, and the work has not left its branch",
  delivered: "its work was delivered, and the issue is not closed",
};

export const status: Command = {
  about:
    "Shows which runs of dispatch are under way, what each worker does, and for how long; the last runs that are over; and\nissues on which a run that was killed has worked: the next 'dispatch' goes on with them.",
  flags: { all: { meaning: "all runs of which something is known still" } },
  examples: ["cotenant dispatch status"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { runs, unfinished } = await dispatch.status(workspace);
    const over = runs.filter(({ isAlive }) => !isAlive);
    const shown = [
      ...runs.filter(({ isAlive }) => isAlive),
      ...(parsed.has("all") ? over : over.slice(0, SHOWN_OVER)),
    ];
    const nowMs = workspace.surroundings.platform.clock.wallMs();
    const lines = shown.map((run) => runText(context.terminal, run, nowMs));
    if (unfinished.length > 0) lines.push("begun, and not ended: the next 'dispatch' goes on with them");
    for (const { shortId, branch, stage, failures } of unfinished) {
      const tries = failures === 0 ? "" : `; ${count(failures, "attempt")} failed so far`;
      lines.push(`  ${shortId} on ${printable(branch, 200)}: ${STAGES[stage]}${tries}`);
    }
    return {
      data: {
        runs: shown.map(runJson),
        unfinished: unfinished.map((record) =>
          jsonFields(record, "issueId", "runId", "agentId", "branch", "stage", "failures", "startedAt"),
        ),
      },
      text: lines.length === 0 ? "no dispatch has run here" : lines.join("\n"),
    };
  },
};

export const logs: Command = {
  positional: "<issue>",
  about:
    "Prints what an agent printed while it worked on an issue, the last attempt unless another is named, without anything\nthat could move the cursor.",
  flags: {
    attempt: { value: "<n>", meaning: "that attempt; 1 is the first of which a log is kept" },
    follow: { meaning: "go on as it is written, until the agent has ended" },
    paths: { meaning: "print where the logs are, instead of what is in them" },
  },
  examples: ["cotenant dispatch logs 7k3f --follow  # exits 4"],
  words: { min: 1, max: 1, what: "an issue" },
  completes: ["issue"],
  async run({ workspace, terminal, json }, parsed) {
    const ending = parsed.has("follow") && !parsed.has("paths") ? new Ending() : null;
    if (ending !== null && json)
      throw usage("--follow prints as it comes, and --json all at once", "cotenant dispatch logs --help");
    try {
      const found = await dispatch.logs(await workspace(), {
        issue: parsed.words[0]!,
        attempt: parsed.has("paths") ? undefined : parsed.whole("attempt"),
        follow: ending !== null,
        signal: ending?.signal,
      });
      const { issueId, paths, attempt } = found;
      const data = { issue_id: issueId, paths };
      if (parsed.has("paths")) return { data, text: paths.map((path) => printable(path, 1_000)).join("\n") };
      let text = "";
      for await (const piece of found.text) {
        if (ending === null) text += piece;
        else if (piece !== "" && !terminal.out(withoutControls(piece))) break;
      }
      return ending === null
        ? { data: { ...data, attempt, text }, text: withoutControls(text).replace(/\n$/, "") }
        : { data: { ...data, attempt }, text: "", isStreamed: true };
    } finally {
      ending?.close();
    }
  },
};

const LONGEST_LINE = 10_000;

function withoutControls(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .split("\n")
    .map((line) => printable(line.replaceAll("\t", "    "), LONGEST_LINE))
    .join("\n");
}

export const stop: Command = {
  about:
    "Asks every run of dispatch in this repository to take no more issues: it ends when those under way are done. With\n--now agents are stopped at once, their work is kept on its branch, and their claims are given back.",
  flags: { now: { meaning: "stop the agents that are at work" } },
  examples: ["cotenant dispatch stop  # exits 4", "cotenant dispatch stop --now  # exits 4"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const how = parsed.has("now") ? "now" : "drain";
    const asked = await dispatch.stop(await context.workspace(), { how });
    const what =
      how === "now" ? "to stop its agents and end" : "to take no more, and end after those under way";
    return {
      data: { how, runs: asked.map(runJson) },
      text: [
        ...asked.map(({ state }) => `asked ${state.runId} (pid ${state.process.pid}) ${what}`),
        ...(how === "now" ? [] : ["  to stop the agents that are at work: cotenant dispatch stop --now"]),
      ].join("\n"),
    };
  },
};
