/** A command that a person wrote for a shell, in a file that somebody has trusted. */
export interface CommandRequest {
  readonly line: string;
  readonly cwd: string;
  /** Besides what the caller's own environment has; undefined takes something away. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  /** How much of the end of its output to keep. */
  readonly keepBytes: number;
  /** Ends it early. */
  readonly signal?: AbortSignal;
  /** Descriptors that it and whatever it starts keep open: a lock on one of them lives as long as any of them. */
  readonly inherit?: readonly number[];
  /** Hears everything that it prints, as it comes. */
  readonly onOutput?: (chunk: Uint8Array) => void;
  /**
   * The caller ends it itself when this process is interrupted. Otherwise an interrupt ends the command and then this
   * process.
   */
  readonly leavesSignals?: boolean;
  /** Ends also when this process is killed: something beside the command notices, and ends its group. */
  readonly isBound?: boolean;
}

export interface CommandEnd {
  /** Null when a signal ended it. */
  readonly exitStatus: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly durationMs: number;
  /** The end of what it printed, on either stream. */
  readonly output: string;
  readonly outputBytes: number;
}

/** Runs commands of people. When it answers, neither the command nor anything that it started is left. */
export interface Commands {
  run(request: CommandRequest): Promise<CommandEnd>;
}
