import type { Workspace } from "../../coordinator/workspace";
import { judgeHead } from "../../enforce/commit";
import { dropNote, findNote } from "../../enforce/commit-note";
import { recordViolation } from "../../enforce/violations";
import type { Command } from "../command";
import { settleCommit } from "../guard-commit";
import { asHook, PASSED } from "../hooking";

export const command: Command = {
  usage: "hook post-commit",
  about:
    "What Git's post-commit hook calls: gives back what was committed, and puts on record what went around the hooks.",
  flags: {},
  examples: ["cotenant hook post-commit"],
  words: { min: 0, max: 10 },
  remindsOfExpiry: false,
  enforcesConfig: true,
  run: (context) =>
    asHook(context, "post-commit", async (workspace) => {
      const isEnforced = workspace.config.values["worktree.enforce_leases"] !== "off";
      const isJudged = !isEnforced || (await wasFoundClean(workspace));
      // Commits that a rebase or a cherry-pick makes anew were judged when they were made.
      if (await isReplaying(workspace)) return PASSED;
      const judged = isJudged ? [] : await judge(workspace);
      return { isRefused: false, lines: [...judged, ...(await settleCommit(workspace))] };
    }),
};

/** The pre-commit hook has looked at this very commit. */
async function wasFoundClean(workspace: Workspace): Promise<boolean> {
  const known = await findNote(workspace, "committed");
  await dropNote(workspace);
  return known?.isClean === true;
}

/** What the hooks would have refused, had they been asked. */
async function judge(workspace: Workspace): Promise<string[]> {
  const judgement = await judgeHead(workspace);
  if (judgement === null || judgement.objections.length === 0) return [];
  const { objections, committer } = judgement;
  const { git } = workspace.surroundings;
  const { stdout } = await git.run(["rev-parse", "HEAD"], { cwd: workspace.repository.worktreeRoot });
  const commit = new TextDecoder().decode(stdout).trim();
  const lines = [
    `cotenant post-commit: ${commit.slice(0, 12)} goes against ${objections.length === 1 ? "a lease" : "leases"}:`,
    ...objections.slice(0, 5).map(({ message }) => `  ${message}`),
  ];
  if (committer === null) return lines;
  await recordViolation(await workspace.session("write"), commit, objections);
  return [...lines, "  it is on record; 'cotenant status' shows it"];
}

async function isReplaying({ repository, surroundings }: Workspace): Promise<boolean> {
  const { files } = surroundings.platform;
  for (const name of ["rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer"])
    if ((await files.stat(`${repository.gitDir}/${name}`)) !== null) return true;
  return false;
}
