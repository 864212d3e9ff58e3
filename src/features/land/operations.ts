/** The merge queue, for the command line, for dispatch and for programs. See docs/LAND.md. */
export type { Enqueued, EnqueueRequest } from "./enqueueing";
export { enqueue, meantEntry, queueOf, removeEntry, retryEntry } from "./enqueueing";
export { type LandEntry, METHODS, type Method } from "./entry";
export { pauseQueue, type QueuePause, queuePauseOf, resumeQueue } from "./pausing";
export { refuseUnready } from "./readiness";
export type { LandOptions, LandOutcome, LandParts, LandProgress, LandReport } from "./report";
export { pushRefusalOf } from "./rules";
export { runQueue } from "./running";
export { targetRef } from "./target";
