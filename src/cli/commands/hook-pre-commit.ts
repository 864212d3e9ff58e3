import { readFileSync } from "node:fs";
import { givenChanges } from "../../enforce/changes";
import { judgeStaged } from "../../enforce/commit";
import type { PathChange } from "../../objects/commit-text";
import type { Command } from "../command";
import { noteOf } from "../commit-notes";
import { violatedLines } from "../guard-commit";
import { asHook, PASSED, refusalLines } from "../hooking";

export const command: Command = {
  usage: "hook pre-commit",
  about:
    "What Git's pre-commit hook calls: refuses what somebody else holds, and issues changed without a claim.",
  flags: {
    staged: { meaning: "what Git says is staged is on standard input, as the hook's own line puts it there" },
  },
  examples: ["cotenant hook pre-commit"],
  words: { min: 0, max: 10 },
  remindsOfExpiry: false,
  enforcesConfig: true,
  run: (context, parsed) =>
    asHook(context, "pre-commit", async (workspace) => {
      const mode = workspace.config.values["worktree.enforce_leases"];
      if (mode === "off") return PASSED;
      const judgement = await judgeStaged(workspace, parsed.has("staged") ? staged() : null);
      await noteOf(workspace, judgement);
      const { objections, committer, changes } = judgement;
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

/** Null when it cannot be read, or is not all there: then Git is asked again. */
function staged(): readonly PathChange[] | null {
  try {
    return givenChanges(readFileSync(0));
  } catch {
    return null;
  }
}
