import { orThrow } from "../../errors/cotenant-error";
import { shortId } from "../../issues/short-id";
import { printable } from "../../kernel/ids";
import { issueKey } from "../../kernel/keys";
import { ACQUIRE_FLAGS, acquire, readOptions } from "../acquiring";
import type { Command } from "../command";
import { issueJson } from "../issues";
import { createIssue, ISSUE_FLAGS } from "./issue-create";

// A new issue is free: there is nothing to wait for, and no earlier call to repeat.
const { wait: _wait, timeout: _timeout, "request-id": _requestId, ...CLAIM_FLAGS } = ACQUIRE_FLAGS;

export const command: Command = {
  usage: "claim create --title <text> [--description <text>] [--priority <p>] [--ttl <secs>]",
  about: "Writes an issue down and claims it: 'issue create' and 'claim acquire' in one.",
  flags: { ...ISSUE_FLAGS, ...CLAIM_FLAGS },
  examples: ['cotenant claim create --title "Fix the login" --ttl 600'],
  words: { min: 0, max: 1 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    // Whatever would keep it from being claimed is said before there is an issue.
    await readOptions(parsed, workspace, { keys: [] });
    const { issue, others, path } = await createIssue(context, parsed);
    const key = orThrow(issueKey(issue.id));
    const claimed = await acquire(context, parsed, workspace, {
      keys: [{ key, reach: "repository" }],
      steal: false,
      noun: "claim",
    });
    const short = shortId(issue.id, others);
    const text = [short, claimed.text].filter((part) => part !== "").join("\n");
    return {
      data: { issue: issueJson(issue, others), path, ...claimed.data },
      text: context.quiet ? text : `created ${short}: ${printable(issue.title)}\n${claimed.text}`,
    };
  },
};
