import { resolveFrom } from "../../../identity/path-text";
import type { Checking } from "../check";
import type { Wish } from "../tools";

/** Where a shell command runs: where its tool says, else where the agent stands. */
export function shellDirectory(
  { world, report }: Pick<Checking, "world" | "report">,
  { cwd }: Pick<Extract<Wish, { kind: "shell" }>, "cwd">,
): string {
  const base = report.cwd ?? world.cwd;
  return cwd === null ? base : resolveFrom(base, cwd);
}
