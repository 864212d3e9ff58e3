import type { SimClock } from "./clock";
import type { Counters } from "./counters";
import type { Disk } from "./disk";
import type { Settings } from "./options";
import type { Prng } from "./prng";
import type { ProcessTable } from "./process-table";
import type { Scheduler } from "./scheduler";
import type { Watches } from "./watches";

/** What all processes of one simulated machine share. */
export interface Machine {
  readonly settings: Settings;
  readonly clock: SimClock;
  readonly disk: Disk;
  readonly scheduler: Scheduler;
  readonly table: ProcessTable;
  readonly watches: Watches;
  readonly counters: Counters;
  /** Where programs get their random bytes. */
  readonly entropy: Prng;
}
