import type { WorktreeId } from "../../kernel/ids";
import type { CommandEnd, Commands } from "../../platform/commands";
import type { Yard } from "./place";
import { recordName, recordToFact, worktreeRecords } from "./records";

const TIMEOUT_MS = 30 * 60_000;
const KEPT_OUTPUT = 16 << 10;

/**
 * Runs what the repository wants to be run in a new worktree. Whoever asks has seen to it that somebody trusts it; no lock
 * is held meanwhile. How it ended is remembered with the worktree.
 */
export async function runSetup(
  yard: Yard,
  commands: Commands,
  worktree: { readonly worktreeId: WorktreeId; readonly root: string; readonly branch: string },
  line: string,
): Promise<CommandEnd> {
  await noteSetup(yard, worktree.worktreeId, "pending");
  const end = await commands.run({
    line,
    cwd: worktree.root,
    env: {
      COTENANT_WORKTREE_ID: worktree.worktreeId,
      COTENANT_WORKTREE_BRANCH: worktree.branch,
      // What proves the caller's leases is none of the command's business.
      COTENANT_SECRET: undefined,
    },
    timeoutMs: TIMEOUT_MS,
    keepBytes: KEPT_OUTPUT,
  });
  await noteSetup(yard, worktree.worktreeId, end.exitStatus === 0 && !end.timedOut ? "done" : "failed");
  return end;
}

async function noteSetup(
  { session }: Yard,
  worktreeId: WorktreeId,
  setup: "pending" | "done" | "failed",
): Promise<void> {
  const record = (await worktreeRecords(session.coordinator)).get(worktreeId);
  if (record === undefined) return;
  await session.log(`setup of ${worktreeId}`, {
    type: "worktree.setup",
    payload: { worktree_id: worktreeId, setup },
    facts: new Map([[recordName(worktreeId), recordToFact({ ...record, setup })]]),
  });
}
