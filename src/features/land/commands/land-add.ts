import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { issuesIn } from "../../issues/desk";
import { meantId } from "../../issues/meant";
import { branchName } from "../../publish/branch-rules";
import { enqueue, METHODS, type Method } from "../operations";
import { entryJson } from "./landing";

export const command: Command = {
  usage:
    "land add <branch>… [--target <branch>] [--method merge|squash|rebase] [--message <text>]…\n         [--issue <id>]",
  about:
    "Adds branches to the merge queue, as they are now: what is committed there later needs another 'land add', which\nreplaces the entry and keeps its method, message and issue unless you name others. Anybody may add; 'land run'\nlands them, by those whom policy.land allows.",
  flags: {
    target: {
      value: "<branch>",
      completes: "ref",
      meaning: "where they are to land (else land.target, else main)",
    },
    method: { value: "<method>", choices: METHODS, meaning: "how they are put there (else land.method)" },
    message: {
      value: "<text>",
      many: true,
      meaning: "the landing commit's message; once more for another paragraph",
    },
    issue: {
      value: "<id>",
      completes: "issue",
      meaning: "the issue that is done by it, for the commit's trailers",
    },
  },
  examples: ["cotenant land add work/login", "cotenant land add work/login work/docs --method squash"],
  words: { min: 1, max: 100, what: "a branch" },
  completes: ["ref"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const issue = parsed.text("issue");
    const message = parsed.texts("message").join("\n\n");
    const enqueued = await enqueue(workspace, await workspace.session("write"), {
      branches: parsed.words,
      target: parsed.text("target") ?? null,
      method: (parsed.text("method") as Method | undefined) ?? null,
      message: message === "" ? null : message,
      issueId: issue === undefined ? null : await meantId(await issuesIn(workspace), issue),
    });
    const lines = enqueued.map(({ entry, changed, replaced }) => {
      const [branch, target] = [entry.branch, entry.target].map((ref) => printable(branchName(ref), 200));
      if (!changed) return `${branch} is in the queue for ${target} already`;
      const instead = replaced === null ? "" : `, in place of ${replaced.commit.slice(0, 12)}`;
      return `added ${branch} at ${entry.commit.slice(0, 12)} to the queue for ${target}${instead}`;
    });
    return {
      data: {
        entries: enqueued.map(({ entry, changed, replaced }) => ({
          entry: entryJson(entry),
          changed,
          replaces: replaced?.entryId ?? null,
        })),
      },
      text: context.quiet ? enqueued.map(({ entry }) => entry.entryId).join("\n") : lines.join("\n"),
    };
  },
};
