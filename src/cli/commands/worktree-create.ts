import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { issuesIn } from "../../issues/desk";
import { isTerminal } from "../../issues/model";
import { shortId } from "../../issues/short-id";
import { tokenSeen } from "../../issues/stamps";
import { printable, type Ulid } from "../../kernel/ids";
import { sameParty } from "../../kernel/lease";
import { nodeCommands } from "../../platform/node/commands";
import { nodeTrees } from "../../platform/node/trees";
import { type Created, createWorktree } from "../../worktrees/creating";
import { branchForIssue, checkBranch, normal } from "../../worktrees/naming";
import { removeWorktree, settleRemovals } from "../../worktrees/removing";
import { runSetup } from "../../worktrees/setup";
import { gitState, isDirty } from "../../worktrees/surveying";
import { readOptions } from "../acquiring";
import type { Command, Context, Parsed } from "../command";
import { keyOfIssue, meant } from "../issues";
import { count, leaseJson } from "../render";
import { byKey } from "../targets";
import { meantWorktree, workspaceAt } from "../worktree-word";

export const command: Command = {
  usage: "worktree create [<branch>] [--issue <id> [--claim]] [--base <commit>] [--path <directory>]",
  about:
    "Makes a worktree for a branch, new or not, beside the main one. With --issue it is for that issue, which may name the\nbranch, and --claim claims it from there. It gets the ignored files that worktree.copy names from the main worktree,\nand worktree.setup is run in it, if this clone trusts that. Many may be made at once.",
  flags: {
    issue: { value: "<id>", completes: "issue", meaning: "the issue that it is for" },
    claim: { meaning: "with --issue: claim it from the new worktree" },
    ttl: { value: "<secs>", meaning: "with --claim: how long the claim lasts unless renewed (default 600)" },
    base: { value: "<commit>", completes: "ref", meaning: "where a new branch starts (default: HEAD)" },
    path: { value: "<directory>", completes: "directory", meaning: "where it goes, outside the repository" },
    "no-copy": { meaning: "without what worktree.copy names" },
    "no-setup": { meaning: "without running worktree.setup" },
  },
  examples: ["cotenant worktree create work/login", "cotenant worktree create --issue 7x3k --claim"],
  words: { min: 0, max: 1 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const issue = await issueWanted(workspace, parsed);
    const branch = parsed.words[0] ?? issue?.branch;
    if (branch === undefined)
      throw new CotenantError("E_USAGE", "a worktree is made for a branch or for an issue", {
        hint: "cotenant worktree create work/login, or --issue <id>",
      });
    checkBranch(branch);
    if (parsed.text("ttl") !== undefined && !parsed.has("claim"))
      throw new CotenantError("E_USAGE", "--ttl is about the claim, but --claim is missing", {
        hint: "add --claim",
      });
    const options = await readOptions(parsed, workspace, { keys: [], noun: "claim" });
    const yard = { workspace, session: await workspace.session("write"), trees: nodeTrees() };
    await settleRemovals(yard);
    const path = parsed.text("path");
    const created = await createWorktree(yard, {
      branch,
      base: parsed.text("base") ?? null,
      place:
        path === undefined
          ? null
          : normal(path.startsWith("/") ? path : `${workspace.surroundings.cwd}/${path}`),
      issueId: issue?.id ?? null,
      copies: !parsed.has("no-copy"),
    });
    const entry = await meantWorktree(workspace, created.root);
    const there = await workspaceAt(context, parsed, entry, "worktree create");
    const session = await there.session("write");
    const grant =
      issue !== null && parsed.has("claim")
        ? await session
            .acquire([{ key: keyOfIssue(issue.id), reach: "repository" }], {
              ...options,
              aboveToken: issue.aboveToken,
            })
            .catch(async (error: unknown) => {
              // Nothing has happened in it: it goes as it came.
              await removeWorktree(yard, entry, { snapshotId: null, isSame: clean(workspace, entry) });
              throw error;
            })
        : null;
    const setup = parsed.has("no-setup") ? null : await setUp(context, yard, created);
    const { copied } = created;
    const lines = [
      `made ${printable(created.root, 500)} on ${created.isNewBranch ? "new " : ""}branch ${printable(created.branch)}`,
      ...(copied.length === 0 ? [] : [`  with ${count(copied.length, "ignored file")} of the main worktree`]),
      ...(grant === null
        ? []
        : [`  ${grant.leases[0]!.key} is claimed from there by ${session.actor.agentId}`]),
      ...(setup === null ? [] : [`  setup: ${setup}`]),
    ];
    return {
      data: {
        worktree: {
          worktree_id: created.worktreeId,
          root: created.root,
          branch: created.branch,
          new_branch: created.isNewBranch,
          commit: created.commit,
          agent_id: session.actor.agentId,
          issue_id: issue?.id ?? null,
        },
        copied: copied.length,
        setup,
        lease: grant === null ? null : leaseJson(grant.leases[0]!),
      },
      text: context.quiet ? created.root : lines.join("\n"),
      ...(setup === "failed" ? { exit: SETUP_FAILED } : {}),
    };
  },
};

/** Made, but not ready to be worked in. */
const SETUP_FAILED = 9;

async function issueWanted(
  workspace: Workspace,
  parsed: Parsed,
): Promise<{ readonly id: Ulid; readonly branch: string; readonly aboveToken: number } | null> {
  const typed = parsed.text("issue");
  if (typed === undefined) {
    if (!parsed.has("claim")) return null;
    throw new CotenantError("E_USAGE", "--claim claims an issue, but --issue is missing", {
      hint: "add --issue <id>",
    });
  }
  const reader = await issuesIn(workspace);
  const { id, state, issue } = await meant(reader, typed);
  if (isTerminal({ state }))
    throw new CotenantError("E_TERMINAL_STATE", `issue ${id} is ${state}`, { data: { id, state } });
  if (parsed.has("claim")) await refuseClaimed(workspace, id);
  const branch = branchForIssue(shortId(id, await reader.ids()), issue.title);
  return { id, branch, aboveToken: tokenSeen([issue]) };
}

/** Before anything is made: the claim itself decides, but mostly this spares the work. */
async function refuseClaimed(workspace: Workspace, id: Ulid): Promise<void> {
  const { actor } = await workspace.session("read");
  const found = await workspace.coordinator.find([byKey(keyOfIssue(id))]);
  const other = found.find(({ lease, standing }) => standing === "valid" && !sameParty(lease, actor));
  if (other === undefined) return;
  const { agentId, expiresAt } = other.lease;
  throw new CotenantError("E_LOCK_CONFLICT", `issue ${id} is claimed by ${agentId}`, {
    data: {
      holders: [
        {
          agent_id: agentId,
          expires_at: expiresAt === null ? null : new Date(expiresAt.wallMs).toISOString(),
        },
      ],
    },
  });
}

function clean(workspace: Workspace, entry: Awaited<ReturnType<typeof meantWorktree>>) {
  return async (root: string) => {
    const state = await gitState(workspace.surroundings.git, { ...entry, root }, null);
    return state !== null && !isDirty(state.dirt);
  };
}

async function setUp(
  context: Context,
  yard: Parameters<typeof runSetup>[0],
  created: Created,
): Promise<"done" | "failed" | null> {
  const line = yard.workspace.config.values["worktree.setup"];
  if (line === null) return null;
  if (!context.quiet) context.note(`running ${printable(line, 300)} in ${printable(created.root, 500)}`);
  const end = await runSetup(yard, nodeCommands(), created, line);
  if (end.exitStatus === 0 && !end.timedOut) return "done";
  const how = end.timedOut ? "did not end in time" : `ended with ${end.exitStatus ?? end.signal}`;
  yard.workspace.warnings.push(
    `worktree.setup ${how}: ${printable(end.output.trim().split("\n").at(-1) ?? "", 300)}; run it again in ${printable(created.root, 500)}`,
  );
  return "failed";
}
