import { PLANTS as AGENTS } from "./agents/plants";
import { PLANTS as DAEMON } from "./daemon/plants";
import { PLANTS as HOSTILE } from "./hostile/plants";
import { PLANTS as INJECTION } from "./injection/plants";
import { PLANTS as LEDGER } from "./ledger/plants";
import { PLANTS as LINEARIZABILITY } from "./linearizability/plants";
import { PLANTS as KERNEL } from "./properties/plants";
import { PLANTS as PUBLISHING } from "./publishing/plants";
import { PLANTS as SIMULATION } from "./simulation/plants";
import { PLANTS as SNAPSHOTS } from "./snapshots/plants";
import { PLANTS as SOAK } from "./soak/plants";

/** A bug to put in on purpose: `from` is a place that the file has exactly once. */
export interface PlantedBug {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Each layer named must notice: a proof that passes with the bug in proves nothing. */
export interface Plant extends PlantedBug {
  /** Names of the layers that must break. */
  readonly caughtBy: readonly string[];
  /** `--case` of the layer, where only one of hundreds shows it. */
  readonly inCase?: string;
  /** `npm test` plants it too. */
  readonly inTest?: boolean;
}

export const PLANTS: readonly Plant[] = [
  ...KERNEL,
  ...SIMULATION,
  ...INJECTION,
  ...LINEARIZABILITY,
  ...DAEMON,
  ...HOSTILE,
  ...AGENTS,
  ...SNAPSHOTS,
  ...SOAK,
  ...PUBLISHING,
  ...LEDGER,
];
