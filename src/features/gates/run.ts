import type { Trust } from "../../config/trust";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, notFoundError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Commands } from "../../platform/commands";
import type { Digest } from "../../platform/platform";
import type { IssueReader } from "../issues/reader";
import type { FoundIssue } from "../issues/resolve";
import type { IssueWriter, WriteOptions, WriteOutcome } from "../issues/writer";
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
import { gateOf, refuseEnded, withResult } from "./rules";
import { isTrusted } from "./trust";

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

/** As much of the end of its output as is kept for whoever started it; a result keeps less. */
const KEPT_OUTPUT = 64 << 10;

/** A gate whose command this clone allows, or the error that shows the command. */
export function refuseUntrusted(digest: Digest, trust: Trust, gate: GateDefinition): void {
  if (isTrusted(digest, trust, gate) !== false) return;
  const { key, command, cwd } = gate;
  throw new CotenantError(
    "E_UNTRUSTED",
    `gate ${key} runs "${printable(command ?? "", 300)}", and nobody has allowed that in this clone`,
    {
      hint: "a person looks at it with 'cotenant trust --list', and allows it with 'cotenant trust'",
      data: { gate: key, command, cwd },
    },
  );
}

/** Runs a gate's command. Whoever asks has seen to it that it is trusted; no lock may be held meanwhile. */
async function runGate(
  commands: Commands,
  gate: GateDefinition,
  circumstances: { readonly issueId: string; readonly directory: string; readonly signal?: AbortSignal },
): Promise<GateRun> {
  const { command, timeout_secs: timeoutSecs, key } = gate;
  const { issueId, directory, signal } = circumstances;
  const end = await commands.run({
    line: command!,
    cwd: directory,
    // What proves the caller's lease is none of the command's business.
    env: { COTENANT_ISSUE_ID: issueId, COTENANT_GATE: key, COTENANT_SECRET: undefined },
    timeoutMs: timeoutSecs! * 1000,
    keepBytes: KEPT_OUTPUT,
    ...(signal === undefined ? {} : { signal }),
  });
  return {
    command: command!,
    exit_status: end.exitStatus,
    signal: end.signal,
    timed_out: end.timedOut,
    duration_ms: end.durationMs,
    output: withoutControls(end.output),
    output_bytes: end.outputBytes,
    output_cut: end.outputBytes > KEPT_OUTPUT,
  };
}

export function hasPassed({ exit_status, timed_out }: GateRun): boolean {
  return exit_status === 0 && !timed_out;
}

/** Colours, cursor movements and the like are for the terminal that the command did not have. */
function withoutControls(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(/\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])/g, "")
    .replace(/[^\P{C}\n\t]/gu, "\u{fffd}");
}
