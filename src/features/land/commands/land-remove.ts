import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { branchName } from "../../publish/branch-rules";
import { removeEntry } from "../operations";
import { entryJson, entryNamed } from "./landing";

export const command: Command = {
  usage: "land remove <entry|branch> [--target <branch>] [--reason <text>]",
  about: "Takes an entry out of the merge queue. Its branch stays as it is.",
  flags: {
    target: { value: "<branch>", completes: "ref", meaning: "of the queue for this branch" },
    reason: { value: "<text>", meaning: "why; logged" },
  },
  examples: ["cotenant land remove work/login"],
  words: { min: 1, max: 1, what: "a branch of the queue" },
  completes: ["ref"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const found = await entryNamed(workspace, parsed);
    const entry = await removeEntry(workspace, await workspace.session("write"), found, {
      reason: parsed.text("reason") ?? null,
    });
    const [branch, name] = [entry.branch, entry.target].map((ref) => printable(branchName(ref), 200));
    return {
      data: { entry: entryJson(entry) },
      text: context.quiet ? "" : `took ${branch} out of the queue for ${name}; the branch stays`,
    };
  },
};
