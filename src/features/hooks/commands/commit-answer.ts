import type { Workspace } from "../../../coordinator/workspace";
import type { PathChange } from "../../../git/commit-text";
import { judgeStaged } from "../commit";
import { namingHolders, type Objection } from "../commit-rules";
import { enforced, mayBeRuled } from "../path-rules";
import { noteOf } from "./commit-notes";
import { violatedLines } from "./guard-commit";
import { type HookAnswer, PASSED, refusalLines, unusableNames } from "./hooking";

/** What a commit of what is staged is answered. */
export async function answerCommit(
  workspace: Workspace,
  staged: readonly PathChange[] | null,
): Promise<HookAnswer> {
  const mode = workspace.config.values["worktree.enforce_leases"];
  const paths = staged?.map(({ path }) => path) ?? null;
  if (mode === "off" && !mayBeRuled(workspace, paths)) return PASSED;
  const judgement = await judgeStaged(workspace, staged);
  await noteOf(workspace, judgement);
  const { committer, changes } = judgement;
  const { refused, warned } = enforced(mode, await withHolders(workspace, judgement.objections));
  const violated = await violatedLines(
    workspace,
    changes.map(({ path }) => path),
  );
  const remarks =
    violated.length === 0 ? [] : ["cotenant pre-commit: look at these before you commit them:", ...violated];
  const root = workspace.surroundings.env["GIT_PREFIX"] ? ":/" : "";
  const lines = (objections: readonly Objection[]) => {
    const theirs = new Set(objections.map(({ path }) => path));
    const own = changes.map(({ path }) => path).filter((path) => !theirs.has(path));
    return objections.length === 0
      ? []
      : refusalLines("pre-commit", objections, committer?.agentId ?? null, { own, root });
  };
  const through = warned.length === 0 ? [] : ["  let through: worktree.enforce_leases = warn"];
  const unusable = unusableNames("pre-commit", await workspace.caller());
  return {
    isRefused: refused.length > 0,
    lines: [...lines(warned), ...through, ...lines(refused), ...remarks, ...unusable],
  };
}

/** What was last heard of other machines; nobody is asked, and nothing is loaded where nobody needs to know. */
async function withHolders(
  workspace: Workspace,
  objections: readonly Objection[],
): Promise<readonly Objection[]> {
  if (!objections.some(({ code }) => code === "E_LEASE_REQUIRED")) return objections;
  const { ledgerView } = await import("../../ledger/workers");
  const view = await ledgerView(workspace);
  if (view === null || view.others.size === 0) return objections;
  const { holderOf } = await import("../../ledger/words");
  const held = [...view.others].map(([id, record]) => {
    const { agentId, leaseId } = record;
    return [id, { agentId, leaseId, words: holderOf(record) }] as const;
  });
  return namingHolders(objections, new Map(held));
}
