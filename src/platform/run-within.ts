/** Runs what may never end by itself, such as a pattern that somebody typed; false when it was stopped after so long. */
export type RunWithin = (mostMs: number, act: () => void) => boolean;
