import type { TestPlant } from "../test-plants";

const REAL = "tests/cli/hook-managers.test.ts";

export const PLANTS: readonly TestPlant[] = [
  {
    name: "hooks that a manager wrote over are never looked after",
    file: "src/features/hooks/installation/upkeep.ts",
    from: "  if (seen !== null && (await areAsTheyWere(platform, seen))) return null;",
    to: "  if (seen !== null) return null;",
    test: REAL,
    named: "any event of a harness puts them back",
  },
  {
    name: "prepare-commit-msg does not judge in the place of a pre-commit that is gone",
    file: "src/features/hooks/answers/commit.ts",
    from: "    if (answer.isRefused) return { ...answer, message: null };",
    to: "",
    test: REAL,
    named: "and come out to the byte",
  },
  {
    name: "lefthook's entry runs only where the hook file has our lines",
    file: "src/features/hooks/installation/managers.ts",
    from: "then exit 0; fi",
    to: "then :; else exit 0; fi",
    test: REAL,
    named: "and come out to the byte",
  },
  {
    name: "hooks that may not be put back are said once",
    file: "src/features/hooks/installation/mend.ts",
    from: "    if (lacking.length > 0) return notPutBack(lacking, scene, plan);",
    to: "    if (lacking.length > 0) await remember(work, marks);\n    if (lacking.length > 0) return notPutBack(lacking, scene, plan);",
    test: REAL,
    named: "and that may not be put back",
  },
  {
    name: "what a manager's configuration got is not taken out",
    file: "src/features/hooks/installation/install.ts",
    from: "  for (const { root } of home.worktrees)\n    plans.push(",
    to: "  for (const { root } of home.worktrees.slice(0, 0))\n    plans.push(",
    test: REAL,
    named: "and come out to the byte",
  },
  {
    name: "a linked worktree's own folder is named instead of the directory that all share",
    file: "src/identity/sandbox.ts",
    from: "const needed = [isGit ? commonDir : worktreeRoot];",
    to: "const needed = [worktreeRoot];",
    test: "tests/cli/sandboxes.test.ts",
    named: "is named, in a linked worktree",
  },
  {
    name: "a pattern is leased as the name of a file",
    file: "src/identity/patterns.ts",
    from: "const isStarred = /[*?]/.test(text);",
    to: "const isStarred = false;",
    test: "tests/cli/lock-patterns.test.ts",
    named: "is refused, and nothing is leased",
  },
  {
    name: "a worktree's identity is stored before anything is",
    file: "src/coordinator/workspace.ts",
    from: '(await this.hasStore()) ? mode : "read"',
    to: "mode",
    test: "tests/cli/no-trace.test.ts",
    named: "every command that is refused",
  },
];
