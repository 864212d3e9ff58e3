import type { Command, Context, Output } from "../../../cli/grammar/command";
import { columns } from "../../../cli/terminal/render";
import { shownLines } from "../../../cli/terminal/shown-text";
import { ERRORS } from "../../../errors/registry";
import { printable } from "../../../kernel/ids";
import { count, duration } from "../../../kernel/printing";
import { nodeCommands } from "../../../platform/node/commands";
import { openDesk, openRepositoryDesk } from "../../issues/commands/desk";
import { reasonFlag } from "../../issues/commands/flags";
import { changeCommand, changeOutput, issueFrom, issueJson } from "../../issues/commands/output";
import type { Desk } from "../../issues/desk";
import { HOLDER_FLAGS } from "../../locks/commands/flags";
import { type Decided, type DecideRequest, gate, type StandingGate } from "../operations";
import type { DefinedGate } from "../operations/definitions";
import { PRESETS } from "../presets";
import { DEFAULT_TIMEOUT_SECS, describeGate } from "../registry";
import type { GateResult, GateRun } from "../results";
import { hasPassed } from "../run";
import { outcomeText } from "./output";

const ISSUE_AND_GATES: Pick<Command, "words" | "completes"> = {
  words: { min: 2, max: 50, what: "an issue and a gate" },
  completes: ["issue", "gate"],
};
const ISSUE_AND_GATE: Pick<Command, "words" | "completes"> = {
  ...ISSUE_AND_GATES,
  words: { ...ISSUE_AND_GATES.words, max: 2 },
};

export const define: Command = {
  positional: "[<key>]",
  about:
    "Defines a gate that issues can have. With a command it is automated, and 'gate run' runs it; without one\nsomebody has to say that it is passed. A preset is filled in by what this repository has. It goes to\n.cotenant/gates/registry.json, under the lease scope:gates.",
  flags: {
    title: { value: "<text>", meaning: "what has to be so, in a few words" },
    command: {
      value: "<line>",
      meaning: "what a shell runs in the worktree's root; it passes by ending with 0",
    },
    timeout: { value: "<secs>", meaning: `how long it may take (default ${DEFAULT_TIMEOUT_SECS})` },
    cwd: {
      value: "<dir>",
      completes: "directory",
      meaning: "where it runs instead, from the worktree's root",
    },
    preset: { value: "<name>", choices: PRESETS, meaning: `one of ${PRESETS.join(", ")}` },
    replace: { meaning: "instead of the gate that has this key now" },
  },
  examples: [
    'cotenant gate define tests --command "npm test" --timeout 900',
    'cotenant gate define review --title "Somebody else has read it"',
    "cotenant gate define --preset review --replace",
  ],
  words: { min: 0, max: 1 },
  async run(context, parsed) {
    const defined = await gate.define(await openRepositoryDesk(context), {
      key: parsed.words[0],
      title: parsed.text("title"),
      command: parsed.text("command"),
      timeoutSecs: parsed.whole("timeout"),
      cwd: parsed.text("cwd"),
      preset: parsed.text("preset"),
      replace: parsed.has("replace"),
    });
    const { changed, because, isNewlyTrusted } = defined;
    const { key, trusted } = defined.gate;
    const lines = [
      `${key}: ${describeGate(defined.gate)}${changed ? "" : " (it was so already)"}`,
      ...(because === null ? [] : [`  chosen because ${because}`]),
      ...(isNewlyTrusted ? ["  this clone trusts its command now; other clones run 'cotenant trust'"] : []),
      ...(trusted === false ? ["  its command does not run until a person runs 'cotenant trust'"] : []),
      ...(changed ? [`  next: cotenant gate add <issue> ${key}`] : []),
    ];
    return { data: { gate: defined.gate, changed, because }, text: context.quiet ? "" : lines.join("\n") };
  },
};

export const list: Command = {
  positional: "[<issue>]",
  about: "Lists the gates that are defined here; with an issue, its gates and how they stand.",
  flags: {},
  examples: ["cotenant gate list", "cotenant gate list 7x3k"],
  words: { min: 0, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const [issue] = parsed.words;
    return issue === undefined ? listDefinitions(context) : listStanding(context, issue);
  },
};

async function listDefinitions(context: Context): Promise<Output> {
  const gates = await gate.list(await openDesk(context));
  const rows = gates.map(({ key, title, kind, command, trusted }) => {
    const runs = command === null ? "" : printable(command, 60);
    return [key, kind, runs, trusted === false ? "waits for trust" : "", printable(title, 60)];
  });
  const text =
    rows.length === 0
      ? "no gates are defined; 'cotenant gate define' makes one"
      : columns(context.terminal, ["KEY", "KIND", "RUNS", "", "TITLE"], rows);
  return { data: { gates }, text };
}

async function listStanding(context: Context, issue: string): Promise<Output> {
  const { found, shortId, gates, pending } = await gate.standing(await openDesk(context), { issue });
  const rows = gates.map(({ key, status, definition, results }) => {
    const last = results.at(-1);
    const who = last === undefined ? "" : `${printable(last.by, 80)}, ${printable(last.at, 40)}`;
    return [printable(key, 80), status, definition?.kind ?? "not defined", who];
  });
  const table = columns(context.terminal, ["GATE", "STATUS", "KIND", "BY"], rows);
  // Two branches may each have passed what the other lacked.
  const stuck =
    found.state === "gated" && pending.length === 0
      ? [`every gate is passed: cotenant issue update ${shortId} --state done`]
      : [];
  return {
    data: {
      issue_id: found.id,
      state: found.state,
      gates: gates.flatMap(({ definition }) => definition ?? []),
      results: gates.map(standingJson),
      pending,
    },
    text: [
      `${shortId}  ${found.state}  ${printable(found.issue.title)}`,
      rows.length === 0 ? "it has no gates" : table,
      ...stuck,
    ].join("\n"),
  };
}

/** What a gate comes to for one issue, with the results that count. */
function standingJson({ key, status, definition, results }: StandingGate): Record<string, unknown> {
  return { key, status, defined: definition !== null, kind: definition?.kind ?? null, results };
}

export const show: Command = {
  positional: "[<issue>] <key>",
  about:
    "Shows a gate's definition; with an issue, the results that count for it and the end of their output.",
  flags: {},
  examples: ["cotenant gate show tests", "cotenant gate show 7x3k tests"],
  words: { min: 1, max: 2 },
  completes: ["gate", "gate"],
  async run(context, parsed) {
    const desk = await openDesk(context);
    const [first, key] = parsed.words as [string, string | undefined];
    if (key === undefined) {
      const shown = await gate.show(desk, { gate: first });
      return { data: { gate: shown }, text: definitionText(shown) };
    }
    const { found, gates } = await gate.standing(desk, { issue: first, gate: key });
    const one = gates[0]!;
    const head = `${printable(key, 80)} of ${found.id}: ${one.status}`;
    return {
      data: { issue_id: found.id, state: found.state, result: standingJson(one) },
      text: [head, ...one.results.flatMap((result) => resultLines(context, result))].join("\n"),
    };
  },
};

function definitionText(shown: DefinedGate): string {
  const { key, title, kind, command, timeout_secs, cwd, defined_by, defined_at, trusted } = shown;
  return [
    `${key}  ${printable(title, 200)}`,
    `  kind      ${kind}`,
    ...(command === null
      ? []
      : [
          `  runs      ${printable(command, 5_000)}`,
          `  in        ${printable(cwd ?? ".", 1_000)}, for ${timeout_secs} s at most`,
          `  trusted   ${trusted === true ? "in this clone" : "not in this clone: a person runs 'cotenant trust'"}`,
        ]),
    `  defined   by ${printable(defined_by, 120)}, ${printable(defined_at, 40)}`,
  ].join("\n");
}

function resultLines({ terminal }: Context, result: GateResult): string[] {
  const { status, by, at, reason, commit, dirty, run } = result;
  const tree =
    commit === null ? "" : `, at ${printable(commit.slice(0, 12))}${dirty === true ? " with changes" : ""}`;
  return [
    `  ${status} by ${printable(by, 120)}, ${printable(at, 40)}${tree}`,
    ...(reason === null ? [] : [`  because: ${printable(reason, 2_000)}`]),
    ...(run === null
      ? []
      : [
          `  ran "${printable(run.command, 300)}": ${howItEnded(run)} after ${duration(run.duration_ms)}`,
          ...(run.output === "" ? [] : shownLines(terminal, "what it printed", run.output, run.output_cut)),
        ]),
  ];
}

function howItEnded(run: GateRun): string {
  if (run.timed_out) return "stopped at its timeout";
  if (run.exit_status === null) return `ended by ${printable(run.signal ?? "a signal", 20)}`;
  return `exit ${run.exit_status}`;
}

export const remove: Command = {
  positional: "[<issue>] <key>",
  about:
    "With an issue: takes the gate off it, which before it is passed only those may who may pass it (gates.pass_by). If it\nwas the last one to pass of an issue that waited for it, the issue is done. Without: removes the gate's definition, under the lease scope:gates. Issues that have it must still\npass it, or have it taken off.",
  flags: HOLDER_FLAGS,
  examples: ["cotenant gate remove 7x3k tests --agent-id human:me", "cotenant gate remove tests"],
  words: { min: 1, max: 2 },
  completes: ["gate", "gate"],
  async run(context, parsed) {
    const [first, key] = parsed.words as [string, string | undefined];
    if (key === undefined) return undefine(context, first);
    const desk = await openDesk(context);
    const changed = await gate.remove(desk, { ...issueFrom(parsed, desk), gate: key });
    const { state, gates } = changed.found.issue;
    const said =
      state === "done"
        ? `without ${printable(key, 80)} nothing is left to pass: done`
        : `gates: ${gates.map((one) => printable(one, 80)).join(", ") || "none"}`;
    return changeOutput(context, changed, changed.changed ? said : "it does not have it");
  },
};

async function undefine(context: Context, key: string): Promise<Output> {
  const having = await gate.undefine(await openRepositoryDesk(context), { gate: key });
  const remark =
    having === 0 ? "" : `\n  ${count(having, "open issue")} must still pass it, or have it taken off`;
  return {
    data: { gate_key: key, issues: having },
    text: context.quiet ? "" : `${printable(key, 80)} is no longer defined${remark}`,
  };
}

export const add = changeCommand({
  positional: "<issue> <key>…",
  about:
    "Gives an issue that you have claimed gates to pass before it is done. What was said of a gate before it was\ntaken off does not count.",
  examples: ["cotenant gate add 7x3k tests review"],
  ...ISSUE_AND_GATES,
  change: (desk, request, { words }) => gate.add(desk, { ...request, gates: words.slice(1) }),
  done: ({ found }) => `gates: ${found.issue.gates.join(", ")}`,
  same: () => "it has them already",
});

function decisionCommand(
  command: Pick<Command, "positional" | "usage" | "about" | "examples">,
  decide: (desk: Desk, request: DecideRequest) => Promise<Decided>,
): Command {
  return {
    flags: { ...HOLDER_FLAGS, ...reasonFlag("why; kept with the result") },
    ...ISSUE_AND_GATE,
    ...command,
    async run(context, parsed) {
      const desk = await openDesk(context);
      const request = { ...issueFrom(parsed, desk), gate: parsed.words[1]!, reason: parsed.text("reason") };
      const decided = await decide(desk, request);
      const { found, shortId, gates, changed, replayed } = decided;
      const one = gates[0]!;
      return {
        data: { issue: issueJson(found, shortId), changed, replayed, gate: standingJson(one) },
        text: context.quiet ? "" : outcomeText(decided, one),
      };
    },
  };
}

export const pass = decisionCommand(
  {
    positional: "<issue> <key>",
    about:
      "Says that a manual gate is passed, for those whom gates.pass_by names: persons, CI and administrators unless it says\notherwise. They need no claim. With the last one, an issue that is gated is done. An automated gate is passed by\n'cotenant gate run' only.",
    examples: ['cotenant gate pass 7x3k review --reason "read it twice" --agent-id human:me'],
  },
  gate.pass,
);

export const fail = decisionCommand(
  {
    positional: "<issue> <key>",
    about:
      "Says that a gate is not passed. The issue stays what it is, and cannot be done before somebody says otherwise.\nPersons, CI and administrators need no claim for it; an agent does.",
    examples: ['cotenant gate fail 7x3k review --reason "no test for the empty list" --agent-id human:me'],
  },
  gate.fail,
);

// Each gate's result is a write of its own: one request id would do for the first of them only.
const { "request-id": _, ...RUN_FLAGS } = HOLDER_FLAGS;

export const run: Command = {
  positional: "<issue> [<key>]",
  about:
    "Runs the commands of an issue's automated gates in this worktree, and writes down how they ended: of one gate,\nor of all that are not passed yet. A command runs only once 'cotenant trust' has allowed it in this clone. Exits\nwith 9 when one did not pass. Persons, CI and administrators need no claim for it; an agent does.",
  flags: { ...RUN_FLAGS, all: { meaning: "also those that are passed already" } },
  examples: ["cotenant gate run 7x3k", "cotenant gate run 7x3k tests"],
  words: { min: 1, max: 2 },
  completes: ["issue", "gate"],
  async run(context, parsed) {
    const desk = { ...(await openRepositoryDesk(context)), commands: nodeCommands() };
    const note = (line: string) => void (context.quiet || context.note(line));
    const ran = await gate.run(desk, {
      ...issueFrom(parsed, desk),
      gate: parsed.words[1],
      all: parsed.has("all"),
      onStart: ({ key, command }) => note(`${key}: running ${printable(command ?? "", 300)}`),
      onEnd: ({ gate: { key }, run }) =>
        note(
          `${key}: ${hasPassed(run) ? "passed" : "failed"} (${howItEnded(run)}, ${duration(run.duration_ms)})`,
        ),
    });
    const { found, shortId, gates, runs, pending } = ran;
    const printed = runs.flatMap(({ gate: { key }, run }) =>
      hasPassed(run) || run.output === ""
        ? []
        : shownLines(context.terminal, `what ${key} printed`, run.output, run.output_cut),
    );
    const said =
      runs.length === 0
        ? ["every automated gate is passed already; --all runs them again"]
        : gates.map((one) => outcomeText(ran, one));
    return {
      data: {
        issue: issueJson(found, shortId),
        runs: runs.map(({ gate: { key }, run }) => ({
          gate: key,
          status: hasPassed(run) ? "passed" : "failed",
          ...run,
        })),
        pending,
      },
      text: context.quiet ? "" : [...printed, ...said].join("\n"),
      ...(runs.every(({ run }) => hasPassed(run)) ? {} : { exit: ERRORS.E_GATE_PENDING.exit }),
    };
  },
};
