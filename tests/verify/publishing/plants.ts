import type { Plant } from "../plants";

/** Bugs that only a death at one certain system call of a publish brings to light. */
export const PLANTS: readonly Plant[] = [
  {
    name: "a killed Git's intent is closed while its lock is still there",
    file: "src/features/publish/ref-committer.ts",
    from: "      if (error instanceof RefWriterLost) return this.#letGo(change);\n",
    to: "",
    caughtBy: ["publish crash"],
  },
  {
    name: "what a dead publisher has left is never settled",
    file: "src/features/publish/settlement.ts",
    from: "    if (!(await isOver(workspace, intent, own)) && !(await isFenced(workspace, intent))) continue;",
    to: "    if (own.size >= 0) continue;",
    caughtBy: ["publish crash", "publishers"],
  },
  {
    name: "a branch moves on while nobody has looked what became of the last publish",
    file: "src/features/publish/ref-committer.ts",
    from: '    if (isBusy) return abandon({ kind: "moved", isBusy: true }, "unsettled");',
    to: "",
    caughtBy: ["publishers"],
  },
];
