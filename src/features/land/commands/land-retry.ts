import type { Command } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import { branchName } from "../../publish/branch-rules";
import { retryEntry } from "../operations";
import { entryJson, entryNamed } from "./landing";

export const command: Command = {
  usage: "land retry <entry|branch> [--target <branch>]",
  about:
    "Puts an entry that was put aside back into the merge queue, at its old place and with the commit that was added.\nFor a branch that was changed since: 'land add'.",
  flags: { target: { value: "<branch>", completes: "ref", meaning: "of the queue for this branch" } },
  examples: ["cotenant land retry work/login"],
  words: { min: 1, max: 1, what: "a branch of the queue" },
  completes: ["ref"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const found = await entryNamed(workspace, parsed);
    const entry = await retryEntry(await workspace.session("write"), found);
    const [branch, name] = [entry.branch, entry.target].map((ref) => printable(branchName(ref), 200));
    const changed = found.state !== "queued";
    return {
      data: { entry: entryJson(entry), changed },
      text: context.quiet
        ? ""
        : changed
          ? `${branch} is in the queue for ${name} again, at ${entry.commit.slice(0, 12)}`
          : `${branch} is in the queue for ${name} already`,
    };
  },
};
