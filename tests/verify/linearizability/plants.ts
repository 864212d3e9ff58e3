import type { Plant } from "../plants";

/** Bugs that only several processes at once bring to light, and that a history must show. */
export const PLANTS: readonly Plant[] = [
  {
    name: "double grant: the mutex locks nobody out",
    file: "src/store/mutex.ts",
    from: "if (this.#unfinished !== null || !(await locks.tryLock(fd))) await this.#waitForLock(fd);",
    to: "await locks.tryLock(fd);",
    caughtBy: ["linearizability", "soak"],
    inTest: true,
  },
  {
    name: "double grant: lines that a killed writer left are not brought into the index",
    file: "src/store/index-follower.ts",
    from: "const index = await this.#apply(ground, reach);",
    to: "const index = { census, head: ground.head };\n      await this.move(index, await files.fstat(log.fd));",
    caughtBy: ["soak"],
  },
  {
    name: "double grant: the nearest directory above is not asked",
    file: "src/store/index-tree.ts",
    from: "for (const above of directoriesAbove(pathOf(extent.key)))\n      for",
    to: "for (const above of directoriesAbove(pathOf(extent.key)).slice(0, -1))\n      for",
    caughtBy: ["linearizability"],
  },
  {
    name: "lost release: the second of a batch is answered and not written",
    file: "src/store/store.ts",
    from: "if (event !== null) text += this.#encode(event, facts, job.submission, ground);",
    to: 'if (event !== null && (done === 0 || event.type !== "claim.released")) text += this.#encode(event, facts, job.submission, ground);',
    caughtBy: ["linearizability", "daemon crowd"],
    inTest: true,
  },
  {
    name: "token reset: a new segment starts with an old counter",
    file: "src/store/replay.ts",
    from: 'const nextToken = fencingToken(Math.max(this.head.nextToken, count(payload, "next_token")));',
    to: "const nextToken = this.head.nextToken;",
    caughtBy: ["linearizability", "soak"],
  },
  {
    name: "no fencing: any secret proves any lease",
    file: "src/kernel/proof.ts",
    from: "return lease.secretHash !== null && caller.proofs.includes(lease.secretHash);",
    to: "return lease.secretHash !== null;",
    caughtBy: ["linearizability"],
  },
  {
    name: "early end: a lease lapses a little before its time",
    file: "src/kernel/validity.ts",
    from: 'if (timeLeftMs(lease, now) <= 0) return "expired";',
    to: 'if (timeLeftMs(lease, now) <= 300) return "expired";',
    caughtBy: ["linearizability", "soak"],
  },
  {
    name: "stale read: the log's tail is not laid over the index",
    file: "src/store/reader.ts",
    from: "overlay.layOver(found);",
    to: "",
    caughtBy: ["linearizability"],
  },
  {
    name: "the stopped are taken for dead",
    file: "src/platform/node/processes.ts",
    from: 'return state === "Z" || state === "X";',
    to: 'return state === "Z" || state === "X" || state === "T";',
    caughtBy: ["soak"],
  },
  {
    name: "the wall clock decides when a lease lapses",
    file: "src/kernel/time.ts",
    from: "? deadline.monotonicMs - now.monotonicMs\n    : deadline",
    to: "? deadline.wallMs - now.wallMs\n    : deadline",
    caughtBy: ["clocks"],
  },
];
