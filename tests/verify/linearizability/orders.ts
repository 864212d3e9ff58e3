/** What a worker process is told when it starts. */
export interface Orders {
  readonly cwd: string;
  /** The file to write its record to. */
  readonly record: string;
  readonly witness: string;
  readonly seed: number;
  /** Distinguishes its agents from everybody else's. */
  readonly name: string;
  /** Callers in this process, each one call at a time. */
  readonly sessions: number;
  /** Keys by group; no operation takes keys of two groups. */
  readonly keys: readonly (readonly string[])[];
  /** Agents to hand leases to. */
  readonly peers: readonly string[];
  /** Turns of each session. */
  readonly turns: number;
  /** Pauses between the operations of a turn, at most. */
  readonly napMs: number;
  readonly ttlSecs: readonly [least: number, most: number];
  /** How often a lease is bound to the process, and how often one is just left behind. */
  readonly boundShare: number;
  readonly leftShare: number;
  /** How often whoever is refused waits in the queue, and for how long. */
  readonly waitShare: number;
  readonly waitMs: number;
  readonly rotateBytes: number;
  /** Asks the daemon where one is running. */
  readonly isThroughDaemon?: boolean;
}
