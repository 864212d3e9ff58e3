import type { HarnessName } from "../../../identity/harness";
import { findProgram } from "../../../platform/node/programs";
import type { RealReport } from "../coverage";
import { isHeadless, PROGRAM_OF } from "./programs/all";
import { runTrial, type TrialSetting } from "./trial";

/** On a busy machine the slowest of them takes half of it. */
const LIMIT_MS = 60_000;

/** One harness, and how the guard is in its settings. */
export type RealTrial = { readonly harness: HarnessName } & Pick<
  TrialSetting,
  "installer" | "isShared" | "via"
>;

export type RealSetting = Pick<TrialSetting, "env" | "cotenant" | "interrupted"> & {
  readonly home: string | null;
  readonly limitMs?: number;
  /** Before each program, for whoever waits. */
  onStart(harness: HarnessName, program: string): void;
};

/**
 * Runs each harness's own program, where there is one, against a scripted model. One after the other: each takes most of a machine
 * while it starts, and has only so much time. When interrupted, answers what was tried before.
 */
export async function runRealCanaries(
  trials: readonly RealTrial[],
  setting: RealSetting,
): Promise<RealReport[]> {
  const reports: RealReport[] = [];
  for (const trial of trials) {
    if (setting.interrupted.aborted) break;
    reports.push(await reportOn(trial, setting));
  }
  return reports;
}

async function reportOn(
  { harness, installer, isShared, via }: RealTrial,
  { env, home, cotenant, limitMs = LIMIT_MS, interrupted, onStart }: RealSetting,
): Promise<RealReport> {
  const known = PROGRAM_OF[harness];
  const place = { path: env["PATH"] ?? "", home };
  const program = findProgram(known.command, known.places, place);
  const without = { harness, program, version: null };
  if (program === null)
    return { ...without, outcome: "not_installed", why: `there is no '${known.command}' on the PATH` };
  if (!isHeadless(known))
    return { ...without, outcome: "not_triable", why: "it cannot be tried without an account" };
  if (process.platform === "win32")
    return { ...without, outcome: "not_triable", why: "programs cannot be tried on Windows" };
  if (isShared && findProgram("cotenant", [], place) === null) {
    const why = "its settings look for 'cotenant' on the PATH, and there is none";
    return { ...without, outcome: "failed", why };
  }
  onStart(harness, program);
  const result = await runTrial({
    headless: known,
    program,
    env,
    cotenant,
    installer,
    isShared,
    via,
    limitMs,
    interrupted,
  });
  return { harness, program, ...result };
}
