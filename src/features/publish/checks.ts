import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { CommandEnd, CommandRequest, Commands } from "../../platform/commands";

export interface CheckOutcome extends Omit<CommandEnd, "outputBytes"> {
  readonly command: string;
  readonly passed: boolean;
}

export interface CheckRequest {
  readonly lines: readonly string[];
  readonly cwd: string;
  readonly timeoutMs: number;
  readonly env: CommandRequest["env"];
  readonly onStart?: (line: string) => void;
  /** Ends them early. */
  readonly signal?: AbortSignal;
  readonly inherit?: readonly number[];
  /** How much of the end of each one's output to keep. */
  readonly keepBytes?: number;
}

const KEPT_OUTPUT = 16 << 10;

/** Runs the repository's own commands one after the other, and stops at the first that does not pass. */
export async function runChecks(commands: Commands, request: CheckRequest): Promise<CheckOutcome[]> {
  const outcomes: CheckOutcome[] = [];
  for (const line of request.lines) {
    request.onStart?.(line);
    const { cwd, timeoutMs, env, inherit = [], keepBytes = KEPT_OUTPUT } = request;
    const ending = request.signal === undefined ? {} : { signal: request.signal };
    const end = await commands.run({ line, cwd, env, timeoutMs, keepBytes, inherit, ...ending });
    const { exitStatus, signal, timedOut, durationMs, output } = end;
    const passed = exitStatus === 0 && !timedOut;
    outcomes.push({ command: line, passed, exitStatus, signal, timedOut, durationMs, output });
    if (!passed) break;
  }
  return outcomes;
}

export function refuseFailed(outcomes: readonly CheckOutcome[]): void {
  const failed = outcomes.find(({ passed }) => !passed);
  if (failed === undefined) return;
  const how = howItEnded(failed);
  const end = failed.output.trimEnd().split("\n").slice(-20).join("\n");
  throw new CotenantError("E_CHECK_FAILED", `${printable(failed.command, 200)} ${how}`, {
    hint: "mend what it found, and publish again; --json shows what it printed",
    data: {
      command: failed.command,
      exit_status: failed.exitStatus,
      timed_out: failed.timedOut,
      output: end,
    },
  });
}

export function howItEnded({ timedOut, signal, exitStatus }: CheckOutcome): string {
  if (timedOut) return "took too long";
  return signal === null ? `exited with ${exitStatus}` : `was ended by ${signal}`;
}
