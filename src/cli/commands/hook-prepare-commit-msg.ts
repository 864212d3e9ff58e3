import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Workspace } from "../../coordinator/workspace";
import { judgeStaged } from "../../enforce/commit";
import { type Trailer, trailerLines, withoutTrailers } from "../../enforce/trailers";
import type { Command } from "../command";
import { asHook, PASSED } from "../hooking";
import { keyOfIssue } from "../issues";
import { byKey } from "../targets";

export const command: Command = {
  usage: "hook prepare-commit-msg <file> [<source> [<commit>]]",
  about: "What Git's prepare-commit-msg hook calls: says in the message on which claims the commit rests.",
  flags: {},
  examples: ["cotenant hook prepare-commit-msg .git/COMMIT_EDITMSG"],
  words: { min: 1, max: 3 },
  remindsOfExpiry: false,
  run: (context, parsed) =>
    asHook(context, "prepare-commit-msg", async (workspace) => {
      const [file, source] = parsed.words;
      // A merge's own message is Git's; what it brings has its trailers already.
      if (source === "merge" || source === "squash") return PASSED;
      const lines = trailerLines(await trailersFor(workspace));
      if (lines.length > 0) await addTrailers(workspace, resolve(process.cwd(), file!), lines);
      return PASSED;
    }),
};

async function trailersFor(workspace: Workspace) {
  const { issues, committer } = await judgeStaged(workspace);
  const held = await workspace.coordinator.find(issues.map(({ id }) => byKey(keyOfIssue(id))));
  const trailers = issues.map(({ id, issue }): Trailer => {
    // The claim that the content was written under; else the one that stands.
    const { lease_id: leaseId = null, fencing_token: token = null } = issue?.stamp ?? {};
    if (leaseId !== null) return { issueId: id, leaseId, token };
    const standing = held.find(({ lease, standing: now }) => lease.key === `issue:${id}` && now === "valid");
    return {
      issueId: id,
      leaseId: standing?.lease.leaseId ?? null,
      token: standing?.lease.fencingToken ?? null,
    };
  });
  return { agentId: committer?.agentId ?? null, worktreeId: committer?.worktreeId ?? null, issues: trailers };
}

/** Git knows where trailers go in a message, and what of it is a comment. */
async function addTrailers(workspace: Workspace, path: string, lines: readonly string[]): Promise<void> {
  const { git } = workspace.surroundings;
  const before = readFileSync(path, "utf8");
  const { status, stdout } = await git.run(
    ["interpret-trailers", "--if-exists", "add", ...lines.flatMap((line) => ["--trailer", line])],
    { cwd: workspace.repository.worktreeRoot, input: withoutTrailers(before) },
  );
  if (status === 0) writeFileSync(path, stdout);
}
