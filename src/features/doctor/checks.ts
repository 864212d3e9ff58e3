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
import type { Check } from "./finding";

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

/** `validate leases`: what stands, and all that it stands on. */
export const LEASE_CHECKS: readonly Check[] = [logCheck, indexCheck, leasesCheck, agentsCheck];
/** `validate config`. */
export const CONFIG_CHECKS: readonly Check[] = [configCheck];
/** `validate all` looks at these too. */
export const GATE_CHECKS: readonly Check[] = [gatesCheck];
/** `validate divergence`. Not for `doctor`: most branches lag most of the time, and may. */
export const DIVERGENCE_CHECKS: readonly Check[] = [divergenceCheck];
/** What the files of issues have come to. */
export const ISSUE_CHECKS: readonly Check[] = [issuesCheck];
