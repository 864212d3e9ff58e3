import type { Plant } from "../plants";

/** Bugs that show when a daemon dies, or is stopped, in the middle of an answer. */
export const PLANTS: readonly Plant[] = [
  {
    name: "done twice: nobody looks whether the daemon had done it",
    file: "src/store/store.ts",
    from: "requestId ?? (isSecond ? operationId : null)",
    to: "requestId",
    caughtBy: ["daemon", "daemon crash"],
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
  {
    name: "kept for good: the daemon renews for sessions whose process is dead",
    file: "src/daemon/keeper.ts",
    from: 'return (await this.#platform.processes.liveness(lease.holder)) === "alive";',
    to: "return lease !== null;",
    caughtBy: ["daemon keeping"],
  },
  {
    name: "remembered for good: the daemon forgets no event that was ever told",
    file: "src/daemon/feed.ts",
    from: "const MOST_RECENT = 1_000;",
    to: "const MOST_RECENT = Number.POSITIVE_INFINITY;",
    caughtBy: ["daemon memory"],
  },
  {
    name: "ended by a word: what is no JSON ends the daemon",
    file: "src/daemon/rpc.ts",
    from: 'return typeof id === "number" || typeof id === "string" ? id : null;\n  } catch {\n    return null;',
    to: 'return typeof id === "number" || typeof id === "string" ? id : null;\n  } catch (error) {\n    throw error;',
    caughtBy: ["daemon frames"],
  },
];
