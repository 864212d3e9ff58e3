import { AGENT_VARIABLE, SESSION_VARIABLE, WORKER_VARIABLE } from "../../identity/agent";
import { harnessVariables } from "../../identity/harness";
import { printable } from "../../kernel/ids";
import type { CommandEnd } from "../../platform/commands";
import type { ClaimState } from "./claim-keeper";
import type { ClaimedIssue } from "./claims";
import type { AttemptLog } from "./logs";
import type { DispatchOptions, DispatchParts } from "./report";
import { type Station, WORKER_SESSION } from "./slots";

/** Kept of an agent's output for the comment that goes with an issue that is given back. */
const KEPT_OUTPUT = 8 << 10;
const STALL_LOOK_MS = 1_000;

/** What an agent is told besides its task. */
export interface Briefing {
  readonly branch: string;
  readonly base: string;
  readonly promptFile: string;
  readonly attempt: number;
  readonly ports: readonly [number, number];
  readonly caches: Readonly<Record<string, string>>;
}

/** How one run of the agent's command ended. */
export interface AttemptEnd {
  readonly how: "finished" | "failed" | "timeout" | "lost" | "interrupted";
  readonly why: string | null;
  /** The end of what it printed. */
  readonly output: string;
  /** Its last words, where it says which they are. */
  readonly words: string | null;
  readonly costUsd: number | null;
}

/** How an attempt is supervised. */
export interface AttemptWatch {
  /** Ends the agent early: its claim was lost, or the run is interrupted. */
  readonly stop: AbortSignal;
  /** What became of the claim so far. */
  claim(): ClaimState;
  /** Nothing has been heard of the agent for so long; null: it is heard of again. */
  onStall(silentMs: number | null): void;
}

/**
 * Runs the agent's command in its worktree, under its claim. A claim that is lost stops it, with everything that it has
 * started, and so does this process's end, however it ends.
 */
export async function runAgent(
  parts: DispatchParts,
  options: DispatchOptions,
  station: Station,
  issue: ClaimedIssue,
  briefing: Briefing,
  log: AttemptLog,
  watch: AttemptWatch,
): Promise<AttemptEnd> {
  const { clock, timers } = station.workspace.surroundings.platform;
  const listener = new Listener(options);
  let heardMs = clock.monotonicMs();
  let isOver = false;
  let wake = () => {};
  const watching = (async () => {
    let isStalled = false;
    while (!isOver) {
      const sleep = timers.sleep(STALL_LOOK_MS);
      wake = sleep.wake;
      await sleep.done;
      const silentMs = clock.monotonicMs() - heardMs;
      const isSilent = silentMs >= options.stallMs && !(await hasBeaten(station, options.stallMs));
      if (isOver || isSilent === isStalled) continue;
      isStalled = isSilent;
      watch.onStall(isSilent ? silentMs : null);
    }
  })();
  let ended: CommandEnd;
  try {
    ended = await parts.commands.run({
      line: options.template?.line ?? options.command ?? "",
      cwd: station.root,
      env: environmentFor(parts, options, station, issue, briefing),
      timeoutMs: options.timeoutMs,
      keepBytes: KEPT_OUTPUT,
      signal: watch.stop,
      inherit: [station.slot.lock],
      onOutput: (chunk) => {
        heardMs = clock.monotonicMs();
        log.add(chunk);
        listener.hear(chunk);
      },
    });
  } finally {
    isOver = true;
    wake();
    await watching;
  }
  listener.end();
  return { ...verdict(ended, watch.claim(), options), ...listener.heard, output: ended.output };
}

function verdict(
  { exitStatus, signal, timedOut }: CommandEnd,
  claim: ClaimState,
  options: DispatchOptions,
): Pick<AttemptEnd, "how" | "why"> {
  if (claim.kind === "lost") return { how: "lost", why: claim.why };
  if (options.signal.aborted) return { how: "interrupted", why: "interrupted" };
  if (timedOut)
    return { how: "timeout", why: `it took longer than ${Math.round(options.timeoutMs / 1000)} s` };
  if (exitStatus === 0) return { how: "finished", why: null };
  return {
    how: "failed",
    why: signal === null ? `it ended with status ${exitStatus}` : `${signal} ended it`,
  };
}

/** The guard's events of the agent's own session are signs of life, too. */
async function hasBeaten({ session, workspace }: Station, withinMs: number): Promise<boolean> {
  const nowMs = workspace.surroundings.platform.clock.wallMs();
  try {
    return (await session.mine()).some(
      ({ lease }) => lease.bind === "process" && nowMs - lease.lastBeat.wallMs < withinMs,
    );
  } catch {
    return false;
  }
}

/** Who works, on what, and where; neither who started the dispatcher nor what proves its leases. */
function environmentFor(
  { program }: DispatchParts,
  options: DispatchOptions,
  { slot, session, root, workspace }: Station,
  { row, claim }: ClaimedIssue,
  { branch, base, promptFile, attempt, ports, caches }: Briefing,
): Record<string, string | undefined> {
  return {
    ...Object.fromEntries(harnessVariables().map((name) => [name, undefined])),
    ...caches,
    ...options.template?.env(program),
    [AGENT_VARIABLE]: slot.agentId,
    [SESSION_VARIABLE]: WORKER_SESSION,
    COTENANT_SECRET: undefined,
    COTENANT_ISSUE_ID: row.id,
    COTENANT_ISSUE_TITLE: printable(row.title, 300),
    COTENANT_LEASE_ID: claim.leaseId,
    COTENANT_FENCING_TOKEN: String(claim.fencingToken),
    COTENANT_WORKTREE: root,
    COTENANT_WORKTREE_ID: session.actor.worktreeId,
    COTENANT_GIT_DIR: workspace.repository.commonDir,
    COTENANT_BRANCH: branch,
    COTENANT_BASE: base,
    COTENANT_PROMPT_FILE: promptFile,
    COTENANT_ATTEMPT: String(attempt),
    [WORKER_VARIABLE]: String(slot.number),
    COTENANT_PORT: String(ports[0]),
    COTENANT_PORTS: `${ports[0]}-${ports[1]}`,
  };
}

const LONGEST_LINE = 1 << 20;

/** Hears what a harness says of itself in its output, line by line. */
class Listener {
  readonly #template: DispatchOptions["template"];
  readonly #decoder = new TextDecoder();
  #line = "";
  #words: string | null = null;
  /** The next piece goes on from the last one. */
  #isInWords = false;
  #costUsd: number | null = null;

  constructor({ template }: DispatchOptions) {
    this.#template = template;
  }

  hear(chunk: Uint8Array): void {
    if (this.#template === null) return;
    const lines = (this.#line + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#line = (lines.pop() ?? "").slice(-LONGEST_LINE);
    for (const line of lines) this.#take(line);
  }

  end(): void {
    this.#take(this.#line);
  }

  get heard(): Pick<AttemptEnd, "words" | "costUsd"> {
    return { words: this.#words, costUsd: this.#costUsd };
  }

  #take(line: string): void {
    if (this.#template === null || line === "") return;
    const said = this.#template.read(line);
    if (said === null) return;
    const { words, addedWords } = said;
    if (addedWords !== undefined) this.#words = (this.#isInWords ? (this.#words ?? "") : "") + addedWords;
    else this.#words = words ?? this.#words;
    this.#isInWords = addedWords !== undefined;
    if (said.costUsd !== undefined) this.#costUsd = said.costUsd;
    if (said.addedCostUsd !== undefined) this.#costUsd = (this.#costUsd ?? 0) + said.addedCostUsd;
  }
}
