import type { TestPlant } from "../test-plants";

export const PLANTS: readonly TestPlant[] = [
  {
    name: "what a release ended is looked for in the newest archived segment only",
    file: "src/store/requests.ts",
    from: "(await archivedSegments(platform.files, layout)).reverse()) {\n    if (missing",
    to: "(await archivedSegments(platform.files, layout)).slice(-1)) {\n    if (missing",
    test: "tests/store/requests.test.ts",
    named: "answers whoever never heard of its release with what was released",
  },
  {
    name: "every client of the daemon has a sync of its own",
    file: "src/daemon/service.ts",
    from: "    await sameTurn();\n",
    to: "",
    test: "tests/daemon/grouping.test.ts",
    named: "what many clients ask for at once shares its syncs",
  },
  {
    name: "the author of a shared claim's end is the daemon",
    file: "src/ledger/git-remote.ts",
    from: "const name = record.ended?.by ?? record.agentId;",
    to: 'const name = "agent:daemon";',
    test: "tests/scenarios/daemon.test.ts",
    named: "keeps and ends claims of agents",
  },
  {
    name: "the daemon renews for whoever is dead",
    file: "src/daemon/keeper.ts",
    from: 'return (await this.#platform.processes.liveness(lease.holder)) === "alive";',
    to: "return lease !== null;",
    test: "tests/daemon/keeper-simulated.test.ts",
    named: "works for two hours on a lease of five minutes",
  },
  {
    name: "the daemon looks after leases only when something is logged",
    file: "src/daemon/keeper.ts",
    from: "if (this.#sleep === sleep) this.#wake();",
    to: "",
    test: "tests/daemon/keeper-simulated.test.ts",
    named: "works for two hours on a lease of five minutes",
  },
];
