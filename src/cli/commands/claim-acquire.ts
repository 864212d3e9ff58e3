import { CotenantError } from "../../errors/cotenant-error";
import { wholeIssue } from "../../issues/catalogue";
import { isTerminal } from "../../issues/model";
import { ACQUIRE_FLAGS, acquire } from "../acquiring";
import type { Command } from "../command";
import { catalogueOf, issueToClaim } from "../issues";

export const command: Command = {
  usage: "claim acquire <issue> [--ttl <secs>] [--wait [--timeout <secs>]] [--force --reason <text>]",
  about:
    "Claims an issue: nobody else can claim it until you release it or it runs out. Asking again for what you\nhold returns the same claim.",
  flags: {
    ...ACQUIRE_FLAGS,
    force: { meaning: "end somebody else's live claim; needs --reason and the policy's permission" },
    "if-ready": { meaning: "only when the issue's state is ready" },
    offline: { meaning: "claim locally without asking a ledger" },
  },
  examples: ["cotenant claim acquire 7x3k", "cotenant claim acquire 7x3k --ttl 1800 --wait --timeout 60"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const { id, key } = await issueToClaim(workspace, parsed.words[0]!);
    const issue = wholeIssue((await catalogueOf(workspace).read(id))!);
    if (isTerminal(issue)) {
      throw new CotenantError("E_TERMINAL_STATE", `issue ${id} is ${issue.state}`, {
        data: { id, state: issue.state },
      });
    }
    if (parsed.has("if-ready") && issue.state !== "ready") {
      throw new CotenantError("E_POLICY", `issue ${id} is ${issue.state}, not ready`, {
        hint: "leave out --if-ready, or pick one that is ready",
        data: { id, state: issue.state },
      });
    }
    return acquire(context, parsed, workspace, {
      keys: [{ key, reach: "repository" }],
      steal: parsed.has("force"),
      noun: "claim",
    });
  },
};
