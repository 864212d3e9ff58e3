import type { HarnessName } from "../../identity/harness";

/**
 * What came of running a harness's own program. `protocol_changed`: it never asked the model, or called no hook, so that
 * nothing can be said of the guard. `not_triable`: it is there, and cannot be run without an account.
 */
export type RealOutcome = "passed" | "failed" | "protocol_changed" | "not_installed" | "not_triable";

export interface RealReport {
  readonly harness: HarnessName;
  readonly outcome: RealOutcome;
  /** Where the program is; null where there is none. */
  readonly program: string | null;
  /** As the program itself says; null where it does not. */
  readonly version: string | null;
  /** What went wrong, or what keeps it from being tried; null when it passed. */
  readonly why: string | null;
}

/** Whoever names a harness wants to see it pass. Of the others only one that ran can fail. */
export function isWell({ outcome }: RealReport, isNamed: boolean): boolean {
  if (outcome === "passed") return true;
  return !isNamed && (outcome === "not_installed" || outcome === "not_triable");
}

export function wasTried({ outcome }: RealReport): boolean {
  return outcome !== "not_installed" && outcome !== "not_triable";
}
