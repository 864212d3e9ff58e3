import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, notFoundError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Commands } from "../../platform/commands";
import type { IssueReader } from "../issues/reader";
import type { FoundIssue } from "../issues/resolve";
import type { IssueWriter, WriteOptions, WriteOutcome } from "../issues/writer";
import { gateOf, refuseEnded, withResult } from "./passing";
import type { GateDefinition, Registry } from "./registry";
import {
  type GateResult,
  type GateResults,
  type GateRun,
  gateStatus,
  newResult,
  readResults,
  type Said,
} from "./results";
import { hasPassed, runGate } from "./run";

/** What gates of one worktree are run with. */
export interface GateDesk {
  readonly workspace: Workspace;
  readonly reader: IssueReader;
  readonly writer: IssueWriter;
  readonly commands: Commands;
}

export interface RanGate {
  readonly gate: GateDefinition;
  readonly run: GateRun;
  readonly outcome: WriteOutcome & { readonly results: GateResults };
}

/** The automated gates of an issue that are defined here; unless all are wanted, those that are not passed yet. */
export async function automatedGates(
  reader: IssueReader,
  found: FoundIssue,
  registry: Registry,
  { all }: { readonly all: boolean },
): Promise<{ readonly defined: number; readonly due: readonly GateDefinition[] }> {
  const results = await readResults(reader, found);
  const automated = [...new Set(found.issue.gates)].flatMap((one) => {
    const gate = registry.gates.get(one);
    return gate?.kind === "automated" ? [gate] : [];
  });
  const due = automated.filter((gate) => all || gateStatus(results, gate.key) !== "passed");
  return { defined: automated.length, due };
}

/**
 * Runs one gate's command in this worktree, and writes down how it ended. Whoever asks has seen to it that the command is
 * trusted.
 */
export async function runAndRecord(
  desk: GateDesk,
  found: FoundIssue,
  gate: GateDefinition,
  options: WriteOptions,
  { onStart, signal }: { readonly onStart?: () => void; readonly signal?: AbortSignal } = {},
): Promise<RanGate> {
  const { workspace, reader, writer, commands } = desk;
  const { worktreeRoot } = workspace.repository;
  const { absolutePath, isDirectory } = await workspace.path(`${worktreeRoot}/${gate.cwd}`);
  if (isDirectory !== true)
    throw notFoundError(
      `gate ${gate.key} runs in ${printable(gate.cwd ?? "")}, which is not there`,
      "make that directory, or define the gate anew",
      { gate: gate.key, cwd: gate.cwd },
    );
  const state = await checkedState(reader);
  const run = await whileHeld(desk, found, options, signal, (stop) => {
    onStart?.();
    return runGate(commands, gate, { issueId: found.id, directory: absolutePath, signal: stop });
  });
  const status = hasPassed(run) ? "passed" : "failed";
  const { agentId: by } = await workspace.agent();
  const given = { gate: gate.key, status, kind: "automated", by, run, ...state } as const;
  return { gate, run, outcome: await recordResult(reader, writer, found, options, given) };
}

const LOOK_EVERY_MS = 20_000;

/**
 * Asks before the command starts, and now and then while it runs, whether its result could be written: nobody should
 * wait ten minutes for a refusal. Each time is a sign of life that keeps the session's leases renewed.
 */
async function whileHeld(
  { writer, workspace }: GateDesk,
  found: FoundIssue,
  options: WriteOptions,
  unwanted: AbortSignal | undefined,
  act: (signal: AbortSignal) => Promise<GateRun>,
): Promise<GateRun> {
  const look = () => writer.update(found.id, () => null, options);
  await look();
  const stop = new AbortController();
  const end = () => stop.abort();
  unwanted?.addEventListener("abort", end, { once: true });
  let why: unknown = null;
  let isOver = false;
  let wake = () => {};
  const looking = (async () => {
    while (!isOver) {
      const sleep = workspace.surroundings.platform.timers.sleep(LOOK_EVERY_MS);
      wake = sleep.wake;
      await sleep.done;
      if (isOver) return;
      try {
        await look();
      } catch (error) {
        if (!(error instanceof CotenantError) || ![6, 7, 8].includes(error.exit)) continue;
        why = error;
        end();
        return;
      }
    }
  })();
  try {
    const run = await act(stop.signal);
    if (why !== null) throw why;
    return run;
  } finally {
    isOver = true;
    wake();
    await looking;
    unwanted?.removeEventListener("abort", end);
  }
}

/** What was checked, as far as Git knows. */
export async function checkedState({
  sources,
}: IssueReader): Promise<Pick<GateResult, "commit" | "tree" | "dirty">> {
  const { git, here } = sources;
  if (git === null) return { commit: null, tree: null, dirty: null };
  const ask = async (args: readonly string[]) => {
    const { status, stdout } = await git.run(args, { cwd: here.root, timeoutMs: 60_000 });
    return status === 0 ? new TextDecoder().decode(stdout).trim() : null;
  };
  const status = await ask([
    "status",
    "--porcelain",
    "--ignore-submodules=none",
    "--",
    ":/",
    ":(exclude,top).cotenant",
  ]);
  return {
    commit: await ask(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]),
    tree: await ask(["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]),
    dirty: status === null ? null : status !== "",
  };
}

/** Writes one result down, in the same critical section as the issue's stamp. */
export async function recordResult(
  reader: IssueReader,
  writer: IssueWriter,
  { id }: Pick<FoundIssue, "id">,
  options: WriteOptions,
  given: Said,
): Promise<WriteOutcome & { readonly results: GateResults }> {
  let results: GateResults | null = null;
  const outcome = await writer.update(
    id,
    async (current) => {
      refuseEnded(current);
      gateOf(current, given.gate);
      const seen = await readResults(reader, current);
      const { after, ...change } = withResult(current, seen, newResult(reader.sources.platform, given, seen));
      results = after;
      return change;
    },
    options,
  );
  return { ...outcome, results: results ?? (await readResults(reader, outcome.found)) };
}
