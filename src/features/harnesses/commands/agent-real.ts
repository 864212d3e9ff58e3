import type { Context } from "../../../cli/grammar/command";
import { interruptibly } from "../../../cli/terminal/interrupts";
import { CotenantError } from "../../../errors/cotenant-error";
import type { HarnessName } from "../../../identity/harness";
import { printable } from "../../../kernel/ids";
import { HARNESSES } from "../../guard/harness";
import { isWell, type RealOutcome, type RealReport, wasTried } from "../real-outcome";
import { writerOf } from "../state";
import { installedFrom, type Seen } from "./agents";

/** Runs the harnesses' own programs, with the command lines that are in settings, or would be. */
export async function tryRealPrograms(
  context: Context,
  harnesses: readonly HarnessName[],
  seen: readonly Seen[],
): Promise<RealReport[]> {
  const { runRealCanaries } = await import("../real-canary/real-canary");
  const { env, home } = context.surroundings();
  const cotenant = installedFrom(context);
  const trials = harnesses.map((harness) => {
    const one = seen.find(({ found }) => found.site.harness === harness);
    return { harness, ...writerOf(one?.isProgramThere === true ? one.state : null, cotenant) };
  });
  const onStart = (harness: HarnessName, program: string) => {
    if (!context.quiet && !context.json) context.note(`trying ${HARNESSES[harness].title}: ${program}`);
  };
  return interruptibly(context, true, async (signal) => {
    const interrupted = signal ?? new AbortController().signal;
    const reports = await runRealCanaries(trials, { env, home, cotenant, interrupted, onStart });
    if (!interrupted.aborted) return reports;
    throw new CotenantError("E_INTERRUPTED", "stopped; nothing is left behind", {
      hint: "run 'cotenant agent doctor --real' again",
    });
  });
}

const OUTCOME_WORDS: Readonly<Record<RealOutcome, string>> = {
  passed: "passed",
  failed: "failed",
  protocol_changed: "protocol changed",
  not_installed: "not installed",
  not_triable: "not tried",
};

/** For the column REAL. */
export function realWord(reports: readonly RealReport[], harness: HarnessName): string {
  const report = reports.find((one) => one.harness === harness);
  if (report === undefined) return "";
  const version = report.version === null ? "" : ` (${printable(report.version, 40)})`;
  return `${OUTCOME_WORDS[report.outcome]}${version}`;
}

/** What people have to know beside the table. */
export function realRemarks(reports: readonly RealReport[], areNamed: boolean): string[] {
  const told = reports.filter((one) => one.why !== null && (areNamed || one.outcome !== "not_installed"));
  return [
    ...told.map((one) => `${HARNESSES[one.harness].title}, ${realWord([one], one.harness)}: ${one.why}`),
    ...(reports.some(wasTried) || areNamed ? [] : ["no harness's own program was found, so none was tried"]),
  ];
}

export function areRealWell(reports: readonly RealReport[], areNamed: boolean): boolean {
  return reports.every((one) => isWell(one, areNamed));
}
