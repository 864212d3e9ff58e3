import type { Context, Output } from "../../../cli/grammar/command";
import { diagnose } from "../diagnose";
import { type Check, exitOf, type Finding } from "../finding";
import { examine } from "../patient";
import { findingsOutput } from "./findings";

/** Something to be cleared up, as opposed to something broken. */
const EXIT_WARNED = 1;

/** Runs some of the doctor's checks, as a test that passes or fails. */
export async function validate(context: Context, checks: readonly Check[]): Promise<Output> {
  const findings = await diagnose(await examine(context.surroundings()), checks);
  const exit = exitOf(findings) || (findings.some(failsByWarning) ? EXIT_WARNED : 0);
  return findingsOutput(context, findings, { exit, fine: "valid", data: { valid: exit === 0 } });
}

/** What nobody trusts yet does not count, and so does no harm. */
function failsByWarning({ level, check }: Finding): boolean {
  return level === "warning" && check !== "config";
}
