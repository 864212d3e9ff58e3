import type { Command } from "../../../cli/grammar/command";
import { belongsTo } from "../../../kernel/lease";
import { workersOn } from "../../issues/commands/querying";
import { issuesIn } from "../../issues/desk";
import { meantId } from "../../issues/meant";
import { shortId } from "../../issues/short-id";
import { claimable, claimOf, meantForClaim } from "../../ledger/claim-issue";
import { ledgerView } from "../../ledger/workers";
import { ACQUIRE_FLAGS, acquire } from "../../locks/commands/acquiring";
import { givenReason } from "../../locks/commands/holding";
import { callerOrNull } from "./caller";
import { leftJson, leftOf, takeOverLines } from "./left-work";

export const command: Command = {
  usage: "claim acquire <issue> [--ttl <secs>] [--wait [--timeout <secs>]] [--force --reason <text>]",
  about:
    "Claims an issue: nobody else can claim it until you release it or it runs out. Asking again for what you\nhold returns the same claim. While you hold it, it is in progress and yours wherever it is shown. Of one that somebody\nhas left it says who, when, and with which command to go on where their changes are.",
  flags: {
    ...ACQUIRE_FLAGS,
    force: { meaning: "end somebody else's live claim; needs --reason and the policy's permission" },
    reopen: {
      meaning:
        "also an issue that is done, rejected or archived, or deleted on a branch that is gone, to bring it back",
    },
    "if-ready": { meaning: "only when the issue is ready, or was left" },
    "allow-blocked": { meaning: "also while it waits for another issue; needs --reason" },
    offline: { meaning: "claim locally without asking a ledger" },
  },
  examples: ["cotenant claim acquire 7x3k", "cotenant claim acquire 7x3k --ttl 1800 --wait --timeout 60"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const word = parsed.words[0]!;
    const id = parsed.has("offline")
      ? await meantId(await issuesIn(workspace), word)
      : await meantForClaim(workspace, word);
    const reader = await issuesIn(workspace);
    const terms = {
      isReopening: parsed.has("reopen"),
      onlyIfReady: parsed.has("if-ready"),
      allowsBlocked: parsed.has("allow-blocked"),
    };
    const found = await claimable(reader, id, terms);
    if (terms.allowsBlocked) givenReason(parsed, "claiming an issue that waits for another");
    const workers = await workersOn(workspace, id, await ledgerView(workspace));
    const me = await callerOrNull(workspace);
    const held = workers.claims.get(id);
    const isOwn = held !== undefined && me !== null && belongsTo(held.lease, me);
    const claim = await claimOf(workspace, found, terms, isOwn);
    const left = await leftOf(workspace, reader, workers, found);
    const shortened = left === null ? id : shortId(id, await reader.ids());
    const output = await acquire(context, parsed, workspace, {
      ...claim,
      steal: parsed.has("force"),
      noun: "claim",
    });
    const { agentId } = await workspace.agent();
    const lines = takeOverLines(left, { shortId: shortened, agentId, workspace });
    return {
      ...output,
      data: { ...output.data, left: left === null ? null : leftJson(left) },
      text: context.quiet ? output.text : [output.text, ...lines].join("\n"),
    };
  },
};
