import { CotenantError } from "../../errors/cotenant-error";
import { ERRORS } from "../../errors/registry";
import { refuseEnded } from "../../issues/gates/passing";
import type { GateDefinition, Registry } from "../../issues/gates/registry";
import { type GateRun, gateStatus, pendingAmong, readResults } from "../../issues/gates/results";
import { hasPassed, refuseUntrusted, runGate } from "../../issues/gates/run";
import { meantId } from "../../issues/meant";
import type { FoundIssue } from "../../issues/resolve";
import type { WriteOptions } from "../../issues/writer";
import { printable } from "../../kernel/ids";
import { nodeCommands } from "../../platform/node/commands";
import type { Command, Context, Output } from "../command";
import { asCounted } from "../editing";
import {
  checkedState,
  definitionOf,
  gateOf,
  gatesAt,
  outcomeText,
  RESULT_FLAGS,
  recordResult,
  resultOptions,
} from "../gates";
import { type Desk, issueJson, openDesk, writerAt } from "../issues";
import { duration } from "../render";
import { shownLines } from "../shown-text";
import { howItEnded } from "./gate-show";

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
    const ran: Ran[] = [];
    for (const gate of gates) ran.push(await runAndRecord(context, desk, found, gate, options));
    return summary(context, desk, found, ran);
  },
};

interface Ran {
  readonly gate: GateDefinition;
  readonly run: GateRun;
  readonly outcome: Awaited<ReturnType<typeof recordResult>>;
}

async function wanted(
  { reader }: Desk,
  found: FoundIssue,
  registry: Registry,
  key: string | undefined,
  all: boolean,
): Promise<GateDefinition[]> {
  if (key !== undefined) {
    const gate = definitionOf(registry, gateOf(found, key));
    if (gate.kind === "automated") return [gate];
    throw new CotenantError("E_USAGE", `gate ${key} is manual: there is nothing to run`, {
      hint: `somebody says so: cotenant gate pass ${found.id} ${key}`,
      data: { gate: key },
    });
  }
  const results = await readResults(reader, found);
  const automated = [...new Set(found.issue.gates)].flatMap((one) => {
    const gate = registry.gates.get(one);
    return gate?.kind === "automated" ? [gate] : [];
  });
  if (automated.length === 0)
    throw new CotenantError("E_NOT_FOUND", `issue ${found.id} has no automated gate that is defined here`, {
      hint: "'cotenant gate list' shows what there is; 'cotenant gate add' gives an issue one",
      data: { id: found.id },
    });
  return automated.filter((gate) => all || gateStatus(results, gate.key) !== "passed");
}

async function runAndRecord(
  context: Context,
  desk: Desk,
  found: FoundIssue,
  gate: GateDefinition,
  options: WriteOptions,
): Promise<Ran> {
  const workspace = desk.workspace!;
  const { worktreeRoot } = workspace.repository;
  const { absolutePath, isDirectory } = await workspace.path(`${worktreeRoot}/${gate.cwd}`);
  if (isDirectory !== true)
    throw new CotenantError(
      "E_NOT_FOUND",
      `gate ${gate.key} runs in ${printable(gate.cwd ?? "")}, which is not there`,
      {
        hint: "make that directory, or define the gate anew",
        data: { gate: gate.key, cwd: gate.cwd },
      },
    );
  const state = await checkedState(desk);
  const run = await whileHeld(desk, found, options, (signal) => {
    if (!context.quiet) context.note(`${gate.key}: running ${printable(gate.command ?? "", 300)}`);
    return runGate(nodeCommands(), gate, { issueId: found.id, directory: absolutePath, signal });
  });
  const status = hasPassed(run) ? "passed" : "failed";
  if (!context.quiet)
    context.note(`${gate.key}: ${status} (${howItEnded(run)}, ${duration(run.duration_ms)})`);
  const { agentId: by } = await workspace.agent();
  const given = { gate: gate.key, status, kind: "automated", by, run, ...state } as const;
  const outcome = await recordResult(desk, await writerAt(desk), found.id, options, given);
  return { gate, run, outcome };
}

const LOOK_EVERY_MS = 20_000;

/**
 * Asks before the command starts, and now and then while it runs, whether its result could be written: nobody should
 * wait ten minutes for a refusal. Each time is a sign of life that keeps the session's leases renewed.
 */
async function whileHeld(
  desk: Desk,
  found: FoundIssue,
  options: WriteOptions,
  act: (signal: AbortSignal) => Promise<GateRun>,
): Promise<GateRun> {
  const writer = await writerAt(desk);
  const look = () => writer.update(found.id, () => null, options);
  await look();
  const lost = new AbortController();
  let why: unknown = null;
  const timer = setInterval(() => {
    look().catch((error: unknown) => {
      const isGone = error instanceof CotenantError && [6, 7, 8].includes(error.exit);
      if (!isGone) return;
      why = error;
      lost.abort();
    });
  }, LOOK_EVERY_MS);
  try {
    const run = await act(lost.signal);
    if (why !== null) throw why;
    return run;
  } finally {
    clearInterval(timer);
  }
}

async function summary(
  context: Context,
  desk: Desk,
  before: FoundIssue,
  ran: readonly Ran[],
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
