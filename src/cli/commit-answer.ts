import type { Workspace } from "../coordinator/workspace";
import { judgeStaged } from "../enforce/commit";
import type { PathChange } from "../objects/commit-text";
import { noteOf } from "./commit-notes";
import { violatedLines } from "./guard-commit";
import { type HookAnswer, PASSED, refusalLines } from "./hooking";

/** What a commit of what is staged is answered. */
export async function answerCommit(
  workspace: Workspace,
  staged: readonly PathChange[] | null,
): Promise<HookAnswer> {
  const mode = workspace.config.values["worktree.enforce_leases"];
  if (mode === "off") return PASSED;
  const judgement = await judgeStaged(workspace, staged);
  await noteOf(workspace, judgement);
  const { objections, committer, changes } = judgement;
  const violated = await violatedLines(
    workspace,
    changes.map(({ path }) => path),
  );
  const remarks =
    violated.length === 0 ? [] : ["cotenant pre-commit: look at these before you commit them:", ...violated];
  if (objections.length === 0) return { isRefused: false, lines: remarks };
  const refused = new Set(objections.map(({ path }) => path));
  const own = changes.map(({ path }) => path).filter((path) => !refused.has(path));
  const root = workspace.surroundings.env["GIT_PREFIX"] ? ":/" : "";
  const lines = refusalLines("pre-commit", objections, committer?.agentId ?? null, { own, root });
  return mode === "warn"
    ? { isRefused: false, lines: [...lines, "  let through: worktree.enforce_leases = warn", ...remarks] }
    : { isRefused: true, lines: [...lines, ...remarks] };
}
