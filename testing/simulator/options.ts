import type { DiskOptions } from "./disk";
import type { Happening, SchedulerOptions } from "./scheduler";

export interface SimOptions extends Partial<DiskOptions> {
  readonly seed: number;
  /** Lower-case hex. Given from outside, because nothing in this folder imports from Node. */
  readonly sha256: (data: string | Uint8Array) => string;
  readonly startWallMs?: number;
  readonly host?: string;
  readonly machineId?: string;
  readonly traceLimit?: number;
  /** Default: chosen by the seed, so that seeds explore both lock-step and far-ahead schedules. */
  readonly switchProbability?: number;
  readonly operationMicros?: number;
  /** How often a write shows to readers in two parts. */
  readonly splitWriteProbability?: number;
  readonly watchDropProbability?: number;
  /** No file can be watched: others have used up what a user may have. */
  readonly isOutOfWatches?: boolean;
  readonly pidReuseProbability?: number;
  readonly lockOrder?: "fifo" | "random";
  /** Who hears of a failed sync: as on Linux since 4.13, or only the one who called it. */
  readonly syncFailuresReportedTo?: "each-descriptor" | "caller-only";
  /** Like `hidepid=2`: processes of other users cannot be looked at, only signalled in vain. */
  readonly hidesOtherUsersProcesses?: boolean;
  readonly maxDescriptors?: number;
  readonly networkFileSystem?: (path: string) => string | null;
  readonly onOperation?: ((happening: Happening) => void) | null;
}

export type Settings = Required<SimOptions> & SchedulerOptions;

const SWITCH_PROBABILITIES = [1, 1, 0.5, 0.2, 0.05];

export function settingsOf(
  options: SimOptions,
  isImmediate: boolean,
  choose: (from: number[]) => number,
): Settings {
  return {
    startWallMs: Date.UTC(2026, 0, 1),
    host: "sim-host",
    machineId: "5151515151515151515151515151aaaa",
    traceLimit: 2_000,
    switchProbability: choose(SWITCH_PROBABILITIES),
    operationMicros: 100,
    splitWriteProbability: 0.03,
    watchDropProbability: 0,
    isOutOfWatches: false,
    pidReuseProbability: 0.2,
    lockOrder: "fifo",
    syncFailuresReportedTo: "each-descriptor",
    hidesOtherUsersProcesses: false,
    maxDescriptors: 1024,
    networkFileSystem: () => null,
    onOperation: null,
    writebackProbability: 0.02,
    mtimeGranularityMs: 0,
    inodeReuseProbability: 0.5,
    ...options,
    isImmediate,
  };
}
