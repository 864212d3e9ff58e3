import { confirmClaim, refuseUnclaimable } from "../../issues/claimable";
import { issuesIn } from "../../issues/desk";
import { takenBack } from "../../issues/lost";
import type { IssueReader } from "../../issues/reader";
import { shortId } from "../../issues/short-id";
import { tokenSeen } from "../../issues/stamps";
import { belongsTo } from "../../kernel/lease";
import { ACQUIRE_FLAGS, acquire } from "../acquiring";
import { callerOrNull } from "../caller";
import type { Command } from "../command";
import { givenReason } from "../holding";
import { keyOfIssue, meantForClaim, meantId } from "../issues";
import { ledgerView } from "../ledger";
import { leftJson, leftOf, takeOverLines } from "../left-work";
import { workersOn } from "../querying";

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
    const look = (at: IssueReader) => (parsed.has("reopen") ? takenBack(at, id) : at.get(id));
    const found = await look(reader);
    if (parsed.has("allow-blocked")) givenReason(parsed, "claiming an issue that waits for another");
    const workers = await workersOn(workspace, id, await ledgerView(workspace));
    const me = await callerOrNull(workspace);
    const claim = workers.claims.get(id);
    // Whoever holds it asks for what they have: nothing begins by that.
    const isOwn = claim !== undefined && me !== null && belongsTo(claim.lease, me);
    const terms = {
      isReopening: parsed.has("reopen"),
      onlyIfReady: parsed.has("if-ready"),
      allowsBlocked: parsed.has("allow-blocked") || isOwn,
    };
    await refuseUnclaimable(reader, found, terms);
    const left = await leftOf(workspace, reader, workers, found);
    const shortened = left === null ? id : shortId(id, await reader.ids());
    const output = await acquire(context, parsed, workspace, {
      keys: [{ key: keyOfIssue(id), reach: "repository" }],
      steal: parsed.has("force"),
      aboveToken: tokenSeen([found.issue]),
      noun: "claim",
      confirm: (session, grant) =>
        confirmClaim(session, grant, async () => {
          const now = await issuesIn(workspace);
          const allowsBlocked = parsed.has("allow-blocked");
          await refuseUnclaimable(now, await look(now), { ...terms, allowsBlocked });
        }),
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
