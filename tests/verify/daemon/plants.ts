import type { Plant } from "../plants";

/** Bugs that show when a daemon dies, or is stopped, in the middle of an answer. */
export const PLANTS: readonly Plant[] = [
  {
    name: "done twice: nobody looks whether the daemon had done it",
    file: "src/store/store.ts",
    from: "requestId ?? (isSecond ? operationId : null)",
    to: "requestId",
    caughtBy: ["daemon"],
  },
  {
    name: "done late: the daemon goes on with what its client has given up",
    file: "src/store/store.ts",
    from: 'if (now.monotonicMs > beforeMs) throw new TooLate("nobody waits for it any more");',
    to: "",
    caughtBy: ["daemon"],
  },
  {
    name: "half an answer: what a release ended before the daemon died is not told",
    file: "src/store/requests.ts",
    from: "const leases = isEnding ? await endedLeases(platform, layout, log, record.ended) : outcome.leases;",
    to: "const leases = outcome.leases;",
    caughtBy: ["daemon"],
  },
];
