import { nodeTerminal } from "../../../cli/terminal/terminal";
import type { HarnessName } from "../../../identity/harness";
import { isHarnessName, readReport } from "../report";
import { quickAnswer } from "./quick-answer";
import { readHookInput } from "./request";

/**
 * Whether a check has been answered. A file of its own, because most checks are of files that their session holds already,
 * and every edit waits for them. Whatever is unusual is left to the program.
 */
export function isAnswered(args: readonly string[]): boolean {
  try {
    const call = readCall(args);
    const input = call === null ? null : readHookInput();
    if (call === null || input === null || input.text === null) return false;
    const report = readReport(call.harness, call.event, JSON.parse(input.text));
    if (report === null) return false;
    const { pid: harnessPid, patienceMs } = call;
    const caller = { env: process.env, cwd: () => process.cwd(), parentPid: process.ppid };
    const answer = quickAnswer(report, { ...caller, harnessPid, patienceMs });
    if (answer === null) return false;
    const { stdout, stderr, status } = answer;
    const terminal = nodeTerminal();
    if (stdout !== "") terminal.out(stdout);
    if (stderr !== "") terminal.err(stderr);
    process.exitCode = status;
    return true;
  } catch {
    return false;
  }
}

interface Call {
  readonly harness: HarnessName;
  readonly event: string;
  readonly pid: number | null;
  /** How long the harness waits; null where nobody has said so. */
  readonly patienceMs: number | null;
}

/** The command lines that `agent install` writes; null for any other. */
function readCall(args: readonly string[]): Call | null {
  if (args.some((word, i) => i % 2 === 0 && !KNOWN.includes(word))) return null;
  const [harness, event, pid, deadline] = KNOWN.map((name) => valueAfter(args, name));
  if (harness == null || event == null || !isHarnessName(harness)) return null;
  if ([pid, deadline].some((text) => text != null && !/^[1-9]\d{0,9}$/.test(text))) return null;
  const patienceMs = deadline == null ? null : Number(deadline) * 1000;
  return { harness, event, pid: pid == null ? null : Number(pid), patienceMs };
}

const KNOWN = ["--harness", "--event", "--pid", "--deadline", "--via"];

function valueAfter(args: readonly string[], name: string): string | null {
  const at = args.indexOf(name);
  return at === -1 ? null : (args[at + 1] ?? null);
}
