import type { Command } from "../../../cli/grammar/command";
import { leaseJson, leasesData } from "../../../cli/terminal/render";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, orThrow } from "../../../errors/cotenant-error";
import { listWorktrees } from "../../../identity/worktree-list";
import { parseAgentId, parseWorktreeId, printable, type WorktreeId } from "../../../kernel/ids";
import { leaseMeant } from "../../issues/commands/issues";
import { sayJson, tellSay } from "../../ledger/commands/ledger";
import { givenReason, HOLDER_FLAGS, proof } from "../../locks/commands/holding";
import { meantWorktree } from "../../worktrees/commands/worktree-word";

export const command: Command = {
  usage: "claim transfer <issue|lease|key> --to-agent <id> [--to-worktree <wt>] --reason <text>",
  about:
    "Hands a claim over to another agent, with a new token and without a moment in which somebody else could\ntake it. The new holder's next command from that worktree picks it up. Somebody else's claim can be handed over by\nthose whom policy.evict allows (people and admins by default); its holder is told who did it, and why.",
  flags: {
    ...HOLDER_FLAGS,
    "to-agent": { value: "<type:name>", completes: "agent", meaning: "the new holder" },
    "to-worktree": {
      value: "<worktree>",
      completes: "worktree",
      meaning: "the worktree it will work in (default: this one)",
    },
    reason: { value: "<text>", meaning: "why; logged" },
  },
  examples: [
    'cotenant claim transfer 7x3k --to-agent agent:reviewer --reason "ready for review"',
    'cotenant claim transfer 7x3k --to-agent agent:bob --reason "ada is on leave" --agent-id human:me',
  ],
  words: { min: 1, max: 1, what: "an issue, a lease or a key such as file:a.txt" },
  completes: ["issue"],
  async run(context, parsed) {
    const toAgent = parsed.text("to-agent");
    if (toAgent === undefined)
      throw new CotenantError("E_USAGE", "a transfer needs somebody to take it over", {
        hint: "add --to-agent <type:name>",
      });
    const workspace = await context.workspace();
    const agent = orThrow(parseAgentId(toAgent));
    const named = parsed.text("to-worktree");
    const wanted = named === undefined ? null : await worktreeNamed(workspace, named);
    const reason = givenReason(parsed, "a transfer");
    const shown = await proof(workspace, parsed);
    const ref = await leaseMeant(workspace, parsed.words[0]!, "transfer");
    const session = await workspace.session("write");
    const toWorktree = wanted ?? session.actor.worktreeId;
    const isHere = toWorktree === session.actor.worktreeId;
    const toBranch = isHere ? session.actor.branch : await branchOf(workspace, toWorktree);
    const { leases, replayed, ledger } = await session.transfer(ref, {
      ...shown,
      toAgent: agent,
      toWorktree,
      toBranch,
      reason,
    });
    tellSay(workspace, ledger);
    const lease = leases[0]!;
    const text = `${printable(lease.key)} now belongs to ${agent} in ${toWorktree} (token ${lease.fencingToken})`;
    return {
      data: { ...leasesData(leases.map((l) => leaseJson(l))), replayed, ...sayJson(ledger) },
      text: context.quiet ? "" : text,
    };
  },
};

/** By its id, or as everywhere else by its directory or branch. */
async function worktreeNamed(workspace: Workspace, named: string): Promise<WorktreeId> {
  if (named.startsWith("wt:")) return orThrow(parseWorktreeId(named));
  const { worktreeId, root } = await meantWorktree(workspace, named);
  if (worktreeId !== null) return worktreeId;
  throw new CotenantError("E_NOT_FOUND", `the worktree at ${printable(root, 500)} is gone`, {
    hint: "'cotenant worktree list' shows them",
  });
}

async function branchOf(workspace: Workspace, worktreeId: WorktreeId): Promise<string | null> {
  const { platform, git } = workspace.surroundings;
  const worktrees = await listWorktrees(platform, git, workspace.repository);
  const target = worktrees.find((worktree) => worktree.worktreeId === worktreeId);
  if (target !== undefined) return target.branch;
  throw new CotenantError("E_NOT_FOUND", `there is no worktree ${worktreeId} in this repository`, {
    hint: "'cotenant worktree list' shows them",
  });
}
