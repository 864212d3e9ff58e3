import type { Trust } from "../../config/trust";
import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Commands } from "../../platform/commands";
import type { Digest } from "../../platform/platform";
import type { GateDefinition } from "./registry";
import type { GateRun } from "./results";
import { isTrusted } from "./trust";

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
export async function runGate(
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
