import { nodeTerminal } from "../../../cli/terminal/terminal";
import { type ReadEvent, readEvent } from "../report";
import { type GuardCall, readGuardCall } from "./guard-call";
import { quickAnswer } from "./quick-answer";
import { readHookInput } from "./stdin";

/** A call that has not been answered yet, with what was read for it. */
export interface BegunCall {
  readonly call: GuardCall;
  readonly event: ReadEvent;
}

/**
 * Reads a harness's call, and answers it where that is quickly done. A file of its own, because most checks are of files that
 * their session holds already, and every edit waits for them. Null where it is no harness's call: nothing was read then.
 */
export function beginGuard(args: readonly string[]): BegunCall | "answered" | null {
  const call = readGuardCall(args);
  if (call === null) return null;
  const event = readEvent(call, readHookInput());
  return call.verb === "check" && isAnswered(call, event) ? "answered" : { call, event };
}

function isAnswered({ harnessPid, patienceMs }: GuardCall, event: ReadEvent): boolean {
  const report = "report" in event ? event.report : null;
  if (report === null) return false;
  const caller = { env: process.env, cwd: () => process.cwd(), parentPid: process.ppid };
  const answer = quickAnswer(report, { ...caller, harnessPid, patienceMs });
  if (answer === null) return false;
  const { stdout, stderr, status } = answer;
  const terminal = nodeTerminal();
  if (stdout !== "") terminal.out(stdout);
  if (stderr !== "") terminal.err(stderr);
  process.exitCode = status;
  return true;
}
