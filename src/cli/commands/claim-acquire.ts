import { CotenantError } from "../../errors/cotenant-error";
import { issuesIn } from "../../issues/desk";
import { isTerminal } from "../../issues/model";
import { ACQUIRE_FLAGS, acquire } from "../acquiring";
import type { Command } from "../command";
import { keyOfIssue, meant, meantForClaim } from "../issues";

export const command: Command = {
  usage: "claim acquire <issue> [--ttl <secs>] [--wait [--timeout <secs>]] [--force --reason <text>]",
  about:
    "Claims an issue: nobody else can claim it until you release it or it runs out. Asking again for what you\nhold returns the same claim.",
  flags: {
    ...ACQUIRE_FLAGS,
    force: { meaning: "end somebody else's live claim; needs --reason and the policy's permission" },
    reopen: { meaning: "also an issue that is done, rejected or archived, to bring it back" },
    "if-ready": { meaning: "only when the issue's state is ready" },
    offline: { meaning: "claim locally without asking a ledger" },
  },
  examples: ["cotenant claim acquire 7x3k", "cotenant claim acquire 7x3k --ttl 1800 --wait --timeout 60"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const word = parsed.words[0]!;
    const { id, state, ahead } = parsed.has("offline")
      ? await meant(await issuesIn(workspace), word)
      : await meantForClaim(workspace, word);
    if (isTerminal({ state }) && !parsed.has("reopen")) {
      const where = ahead === null ? "" : ` (written by ${ahead.agentId} in ${ahead.worktreeId})`;
      throw new CotenantError("E_TERMINAL_STATE", `issue ${id} is ${state}${where}`, { data: { id, state } });
    }
    if (parsed.has("if-ready") && state !== "ready") {
      throw new CotenantError("E_POLICY", `issue ${id} is ${state}, not ready`, {
        hint: "leave out --if-ready, or pick one that is ready",
        data: { id, state },
      });
    }
    return acquire(context, parsed, workspace, {
      keys: [{ key: keyOfIssue(id), reach: "repository" }],
      steal: parsed.has("force"),
      noun: "claim",
    });
  },
};
