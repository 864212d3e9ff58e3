import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import type { Lease } from "../../../src/kernel/lease";
import type { Answer, Ask, Caller, Operation, Seen, Window } from "./history";

/** Milliseconds of the clock that all processes of this boot share. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

interface CallLine {
  readonly n: number;
  readonly calledMs: number;
  readonly caller: Caller;
  readonly ask: Ask;
}

interface AnswerLine {
  readonly n: number;
  readonly endedMs: number;
  readonly answer: Answer;
}

interface ByeLine {
  readonly byeMs: number;
}

interface TroubleLine {
  readonly trouble: string;
}

type RecordLine = CallLine | AnswerLine | ByeLine | TroubleLine | (CallLine & AnswerLine);

/**
 * What one process asked and was told, a line each, written at once: a process that is killed leaves every call that
 * may have had an effect.
 */
export class Record {
  readonly #fd: number;
  #last = 0;

  constructor(path: string) {
    this.#fd = openSync(path, "a");
  }

  called(caller: Caller, ask: Ask): { n: number; calledMs: number } {
    const n = ++this.#last;
    const calledMs = nowMs();
    this.#write({ n, calledMs, caller, ask });
    return { n, calledMs };
  }

  answered(n: number, endedMs: number, answer: Answer): void {
    this.#write({ n, endedMs, answer });
  }

  /** Of something that changes nothing: a call whose answer was lost says nothing. */
  looked(operation: Pick<Operation, "caller" | "ask" | "answer" | "calledMs" | "endedMs">): void {
    this.#write({ n: ++this.#last, ...operation });
  }

  trouble(error: unknown): void {
    this.#write({ trouble: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }

  bye(): void {
    this.#write({ byeMs: nowMs() });
    closeSync(this.#fd);
  }

  #write(line: RecordLine): void {
    writeSync(this.#fd, `${JSON.stringify(line)}\n`);
  }
}

export interface Recorded {
  readonly operations: Operation[];
  /** When the process said that it was about to leave. */
  readonly byeMs: number | null;
  readonly trouble: readonly string[];
}

/** `gone`: when the process can have ended. Calls without an answer had their effect before that, or never. */
export function readRecord(path: string, gone: Window): Recorded {
  const calls = new Map<number, CallLine>();
  const operations: Operation[] = [];
  const trouble: string[] = [];
  let byeMs: number | null = null;
  for (const text of wholeLines(path)) {
    const line = JSON.parse(text) as Partial<CallLine & AnswerLine & ByeLine & TroubleLine>;
    if (line.trouble !== undefined) trouble.push(line.trouble);
    if (line.byeMs !== undefined) byeMs = line.byeMs;
    if (line.n === undefined) continue;
    if (line.ask !== undefined) calls.set(line.n, line as CallLine);
    if (line.answer === undefined) continue;
    const { calledMs, caller, ask } = calls.get(line.n)!;
    calls.delete(line.n);
    operations.push({ caller, calledMs, endedMs: line.endedMs!, ask, answer: line.answer, tends: false });
  }
  for (const { calledMs, caller, ask } of calls.values())
    operations.push({ caller, calledMs, endedMs: gone.toMs, ask, answer: { is: "unknown" }, tends: false });
  return { operations, byeMs, trouble };
}

function wholeLines(path: string): string[] {
  // Who was killed at once has said nothing.
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "");
}

export function seenOf(lease: Lease, valid = true): Seen {
  const {
    leaseId: id,
    key,
    reach,
    fencingToken: token,
    agentId: agent,
    worktreeId: worktree,
    bind,
    holder,
  } = lease;
  return {
    id,
    key,
    within: reach === "worktree" ? worktree : null,
    token,
    agent,
    worktree,
    ttlMs: lease.ttlSecs * 1000,
    process: bind === "process" ? processName(holder) : null,
    expiresMs: lease.expiresAt?.monotonicMs ?? null,
    valid,
  };
}

/** Pids are used again; start times tell them apart. */
export function processName({
  pid,
  startTime,
}: {
  readonly pid: number;
  readonly startTime: string;
}): string {
  return `${pid}@${startTime}`;
}
