import { agentsCheck } from "./checks/agents";
import { clockCheck } from "./checks/clock";
import { configCheck } from "./checks/config";
import { daemonCheck } from "./checks/daemon";
import { dataPlaneCheck } from "./checks/data-plane";
import { divergenceCheck } from "./checks/divergence";
import { fileSystemCheck } from "./checks/file-system";
import { gatesCheck } from "./checks/gates";
import { gitCheck } from "./checks/git";
import { harnessesCheck } from "./checks/harnesses";
import { hooksCheck } from "./checks/hooks";
import { indexCheck } from "./checks/index";
import { issuesCheck } from "./checks/issues";
import { leasesCheck } from "./checks/leases";
import { ledgerCheck } from "./checks/ledger";
import { leftWorkCheck } from "./checks/left-work";
import { leftoversCheck } from "./checks/leftovers";
import { locksCheck } from "./checks/locks";
import { logCheck } from "./checks/log";
import { mergingCheck } from "./checks/merging";
import { pauseCheck } from "./checks/pause";
import { permissionsCheck } from "./checks/permissions";
import { publishingCheck } from "./checks/publishing";
import { queueCheck } from "./checks/queue";
import { secretsCheck } from "./checks/secrets";
import { snapshotsCheck } from "./checks/snapshots";
import { unfinishedCheck } from "./checks/unfinished";
import { worktreeCheck } from "./checks/worktree";
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
