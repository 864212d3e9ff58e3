import type { TestPlant } from "../test-plants";

export const PLANTS: readonly TestPlant[] = [
  {
    row: "D12",
    name: "settling a write of an issue takes away what the next one has staged",
    file: "src/issues/folder.ts",
    from: "digest.slice(0, 16)",
    to: "digest.slice(0, 0)",
    test: "tests/issues/writing.test.ts",
    named: "keeps what it has staged",
  },
];
