import { judgeStaged } from "../../enforce/commit";
import type { Command } from "../command";
import { violatedLines } from "../guard-commit";
import { asHook, PASSED, refusalLines } from "../hooking";

export const command: Command = {
  usage: "hook pre-commit",
  about:
    "What Git's pre-commit hook calls: refuses what somebody else holds, and issues changed without a claim.",
  flags: {},
  examples: ["cotenant hook pre-commit"],
  words: { min: 0, max: 10 },
  remindsOfExpiry: false,
  run: (context) =>
    asHook(context, "pre-commit", async (workspace) => {
      const mode = workspace.config.values["worktree.enforce_leases"];
      if (mode === "off") return PASSED;
      const { objections, committer, changes } = await judgeStaged(workspace);
      const violated = await violatedLines(
        workspace,
        changes.map(({ path }) => path),
      );
      const remarks =
        violated.length === 0
          ? []
          : ["cotenant pre-commit: look at these before you commit them:", ...violated];
      if (objections.length === 0) return { isRefused: false, lines: remarks };
      const refused = new Set(objections.map(({ path }) => path));
      const own = changes.map(({ path }) => path).filter((path) => !refused.has(path));
      const lines = refusalLines("pre-commit", objections, committer?.agentId ?? null, own);
      return mode === "warn"
        ? { isRefused: false, lines: [...lines, "  let through: worktree.enforce_leases = warn", ...remarks] }
        : { isRefused: true, lines: [...lines, ...remarks] };
    }),
};
