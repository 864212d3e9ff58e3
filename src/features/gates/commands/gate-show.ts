import type { Command, Context, Output } from "../../../cli/grammar/command";
import { shownLines } from "../../../cli/terminal/shown-text";
import { printable } from "../../../kernel/ids";
import { duration } from "../../../kernel/printing";
import { type Desk, openDesk } from "../../issues/commands/issues";
import { meant } from "../../issues/meant";
import { gateOf } from "../passing";
import type { GateDefinition } from "../registry";
import { type GateResult, gateStatus, readResults } from "../results";
import { isTrusted } from "../trust";
import { definitionJson, definitionOf, gatesAt, issueGateJson } from "./gates";

export const command: Command = {
  usage: "gate show [<issue>] <key>",
  about:
    "Shows a gate's definition; with an issue, the results that count for it and the end of their output.",
  flags: {},
  examples: ["cotenant gate show tests", "cotenant gate show 7x3k tests"],
  words: { min: 1, max: 2 },
  completes: ["gate", "gate"],
  async run(context, parsed) {
    const desk = await openDesk(context);
    const [first, second] = parsed.words as [string, string | undefined];
    return second === undefined ? definition(desk, first) : results(context, desk, first, second);
  },
};

async function definition(desk: Desk, key: string): Promise<Output> {
  const { registry, trust } = await gatesAt(desk);
  const gate = definitionOf(registry, key);
  const trusted = isTrusted(desk.reader.sources.platform.digest, trust, gate);
  return { data: { gate: definitionJson(desk, trust, gate) }, text: linesOf(gate, trusted).join("\n") };
}

function linesOf(gate: GateDefinition, trusted: boolean | null): string[] {
  const { key, title, kind, command: line, timeout_secs, cwd, defined_by, defined_at } = gate;
  return [
    `${key}  ${printable(title, 200)}`,
    `  kind      ${kind}`,
    ...(line === null
      ? []
      : [
          `  runs      ${printable(line, 5_000)}`,
          `  in        ${printable(cwd ?? ".", 1_000)}, for ${timeout_secs} s at most`,
          `  trusted   ${trusted === true ? "in this clone" : "not in this clone: a person runs 'cotenant trust'"}`,
        ]),
    `  defined   by ${printable(defined_by, 120)}, ${printable(defined_at, 40)}`,
  ];
}

async function results(context: Context, desk: Desk, typed: string, key: string): Promise<Output> {
  const { reader } = desk;
  const found = await meant(reader, typed);
  gateOf(found, key);
  const { registry } = await gatesAt(desk);
  const all = await readResults(reader, found);
  const standing = all.standing.get(key) ?? [];
  const head = `${printable(key, 80)} of ${found.id}: ${gateStatus(all, key)}`;
  return {
    data: {
      issue_id: found.id,
      state: found.state,
      result: issueGateJson(key, all, registry.gates.get(key)),
    },
    text: [head, ...standing.flatMap((result) => resultLines(context, result))].join("\n"),
  };
}

export function resultLines({ terminal }: Pick<Context, "terminal">, result: GateResult): string[] {
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

export function howItEnded(run: NonNullable<GateResult["run"]>): string {
  if (run.timed_out) return "stopped at its timeout";
  if (run.exit_status === null) return `ended by ${printable(run.signal ?? "a signal", 20)}`;
  return `exit ${run.exit_status}`;
}
