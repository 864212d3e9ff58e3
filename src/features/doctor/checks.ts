import { gatesCheck } from "./checks/gates";
import { dataPlaneCheck, issuesCheck } from "./checks/issues";
import { agentsCheck, leasesCheck, locksCheck, pauseCheck, queueCheck } from "./checks/leases";
import { ledgerCheck } from "./checks/ledger";
import { indexCheck, leftoversCheck, logCheck, secretsCheck } from "./checks/log";
import { clockCheck, fileSystemCheck, gitCheck, permissionsCheck, worktreeCheck } from "./checks/place";
import {
  configCheck,
  daemonCheck,
  divergenceCheck,
  harnessesCheck,
  hooksCheck,
  mergingCheck,
} from "./checks/settings";
import { leftWorkCheck, publishingCheck, snapshotsCheck, unfinishedCheck } from "./checks/work";
import { type Check, type Finding, fromError, LEVELS } from "./finding";
import type { Patient } from "./patient";

/** What `doctor` looks at, in this order. A new capability adds its own. */
export const CHECKS: readonly Check[] = [
  pauseCheck,
  gitCheck,
  fileSystemCheck,
  permissionsCheck,
  clockCheck,
  configCheck,
  dataPlaneCheck,
  worktreeCheck,
  issuesCheck,
  leftWorkCheck,
  gatesCheck,
  mergingCheck,
  hooksCheck,
  harnessesCheck,
  daemonCheck,
  logCheck,
  indexCheck,
  leasesCheck,
  ledgerCheck,
  agentsCheck,
  queueCheck,
  locksCheck,
  secretsCheck,
  snapshotsCheck,
  unfinishedCheck,
  publishingCheck,
  leftoversCheck,
];

/** What `validate` looks at. Divergence is not for `doctor`: most branches lag most of the time, and may. */
const LEASES = [logCheck, indexCheck, leasesCheck, agentsCheck];
export const VALIDATIONS = {
  leases: LEASES,
  config: [configCheck],
  divergence: [divergenceCheck],
  all: [configCheck, gatesCheck, ...LEASES, issuesCheck, divergenceCheck],
} as const satisfies Readonly<Record<string, readonly Check[]>>;

/** What all the checks found, the worst first. None of them can keep the others from looking. */
export async function diagnose(patient: Patient, checks: readonly Check[]): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const { name, look } of checks) {
    try {
      for (const reported of await look(patient)) found.push({ check: name, ...reported });
    } catch (thrown) {
      found.push({ check: name, ...fromError(thrown, `looking at this (${name})`, patient.layout.root) });
    }
  }
  return found.sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
}
