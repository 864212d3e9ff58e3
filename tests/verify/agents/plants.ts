import type { Plant } from "../plants";

const caughtBy = ["agents"];

/** What scripted agents must not get away with. */
export const PLANTS: readonly Plant[] = [
  {
    name: "a refusal is not said",
    file: "src/features/guard/answers.ts",
    from: 'if (report.moment !== "before") return nothingToSay(report.harness);',
    to: "if (!verdict.isAllowed) return nothingToSay(report.harness);",
    caughtBy,
  },
  {
    name: "of a patch with several files only the first is taken",
    file: "src/features/guard/tools.ts",
    from: "for (const path of patchedPaths(patch)) paths.add(asPosix(path));",
    to: "for (const path of patchedPaths(patch).slice(0, 1)) paths.add(asPosix(path));",
    caughtBy,
  },
];
