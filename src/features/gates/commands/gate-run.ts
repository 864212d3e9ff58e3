import type { Command, Context, Output } from "../../../cli/grammar/command";
import { shownLines } from "../../../cli/terminal/shown-text";
import { CotenantError } from "../../../errors/cotenant-error";
import { ERRORS } from "../../../errors/registry";
import { printable } from "../../../kernel/ids";
import { duration } from "../../../kernel/printing";
import { nodeCommands } from "../../../platform/node/commands";
import { asCounted } from "../../issues/commands/editing";
import { type Desk, issueJson, openDesk, writerAt } from "../../issues/commands/issues";
import { meantId } from "../../issues/meant";
import type { FoundIssue } from "../../issues/resolve";
import { gateOf, refuseEnded } from "../passing";
import type { GateDefinition, Registry } from "../registry";
import { pendingAmong, readResults } from "../results";
import { hasPassed, refuseUntrusted } from "../run";
import { automatedGates, type RanGate, runAndRecord } from "../running";
import { howItEnded } from "./gate-show";
import { definitionOf, gatesAt, outcomeText, RESULT_FLAGS, resultOptions } from "./gates";

// Each gate's result is a write of its own: one request id would do for the first of them only.
const { reason: _, "request-id": _one, ...FLAGS } = RESULT_FLAGS;

export const command: Command = {
  usage: "gate run <issue> [<key>] [--all]",
  about:
    "Runs the commands of an issue's automated gates in this worktree, and writes down how they ended: of one gate,\nor of all that are not passed yet. A command runs only once 'cotenant trust' has allowed it in this clone. Exits\nwith 9 when one did not pass. Persons, CI and administrators need no claim for it; an agent does.",
  flags: { ...FLAGS, all: { meaning: "also those that are passed already" } },
  examples: ["cotenant gate run 7x3k", "cotenant gate run 7x3k tests"],
  words: { min: 1, max: 2 },
  completes: ["issue", "gate"],
  async run(context, parsed) {
    await context.workspace();
    const desk = await openDesk(context);
    const [typed, key] = parsed.words as [string, string | undefined];
    const { reader } = desk;
    const found = await reader.get(await meantId(reader, typed));
    refuseEnded(found);
    const { registry, trust } = await gatesAt(desk);
    const gates = await wanted(desk, found, registry, key, parsed.has("all"));
    const { digest } = reader.sources.platform;
    for (const gate of gates) refuseUntrusted(digest, trust, gate);
    const options = await resultOptions(desk, parsed);
    const workspace = desk.workspace!;
    const gateDesk = { workspace, reader, writer: await writerAt(desk), commands: nodeCommands() };
    const ran: RanGate[] = [];
    for (const gate of gates) {
      const note = (line: string) => void (context.quiet || context.note(`${gate.key}: ${line}`));
      const onStart = () => note(`running ${printable(gate.command ?? "", 300)}`);
      const one = await runAndRecord(gateDesk, found, gate, options, { onStart });
      const status = hasPassed(one.run) ? "passed" : "failed";
      note(`${status} (${howItEnded(one.run)}, ${duration(one.run.duration_ms)})`);
      workspace.warnings.push(...one.outcome.warnings);
      ran.push(one);
    }
    return summary(context, desk, found, ran);
  },
};

async function wanted(
  { reader }: Desk,
  found: FoundIssue,
  registry: Registry,
  key: string | undefined,
  all: boolean,
): Promise<readonly GateDefinition[]> {
  if (key !== undefined) {
    const gate = definitionOf(registry, gateOf(found, key));
    if (gate.kind === "automated") return [gate];
    throw new CotenantError("E_USAGE", `gate ${key} is manual: there is nothing to run`, {
      hint: `somebody says so: cotenant gate pass ${found.id} ${key}`,
      data: { gate: key },
    });
  }
  const { defined, due } = await automatedGates(reader, found, registry, { all });
  if (defined === 0)
    throw new CotenantError("E_NOT_FOUND", `issue ${found.id} has no automated gate that is defined here`, {
      hint: "'cotenant gate list' shows what there is; 'cotenant gate add' gives an issue one",
      data: { id: found.id },
    });
  return due;
}

async function summary(
  context: Context,
  desk: Desk,
  before: FoundIssue,
  ran: readonly RanGate[],
): Promise<Output> {
  const { reader } = desk;
  const last = ran.at(-1)?.outcome;
  const found = await asCounted(desk, last?.found ?? before);
  const results = last?.results ?? (await readResults(reader, found));
  const ids = await reader.ids();
  const failed = ran.filter(({ run }) => !hasPassed(run));
  const lines = ran.flatMap(({ gate, run }) =>
    hasPassed(run) || run.output === ""
      ? []
      : shownLines(context.terminal, `what ${gate.key} printed`, run.output, run.output_cut),
  );
  const said =
    ran.length === 0
      ? ["every automated gate is passed already; --all runs them again"]
      : ran.map(({ gate }) => outcomeText(found, results, gate.key, ids));
  return {
    data: {
      issue: issueJson(found, ids),
      runs: ran.map(({ gate, run }) => ({
        gate: gate.key,
        status: hasPassed(run) ? "passed" : "failed",
        ...run,
      })),
      pending: pendingAmong(found.issue.gates, results),
    },
    text: context.quiet ? "" : [...lines, ...said].join("\n"),
    ...(failed.length === 0 ? {} : { exit: ERRORS.E_GATE_PENDING.exit }),
  };
}
