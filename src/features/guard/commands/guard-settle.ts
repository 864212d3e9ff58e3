import type { Command } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { settleSeenViolations } from "../operations";
import { violationJson } from "./guard-status";

const HELP = "cotenant guard settle --help";

export const command: Command = {
  usage: "guard settle (<id>|<path>)… | --all",
  about:
    "Says that somebody has looked at files that a shell command changed under somebody else's lease: they leave 'status'\nand 'guard status', which show their ids; the log keeps them. A path is of this worktree, and a directory stands for what is in it.\nFor people, and for whoever held the file.",
  flags: { all: { meaning: "everything that is on record, in all worktrees" } },
  examples: ["cotenant guard settle --all --agent-id human:ada"],
  words: { min: 0, max: 100 },
  completes: ["path"],
  async run(context, parsed) {
    const isAll = parsed.has("all");
    if (isAll === parsed.words.length > 0)
      throw usage(isAll ? "--all leaves nothing to name" : "name what was looked at, or give --all", HELP);
    const settled = await settleSeenViolations(await context.workspace(), isAll ? "all" : parsed.words);
    const text =
      settled.length === 0
        ? "nothing to settle"
        : `${count(settled.length, "file")} settled: ${settled
            .slice(0, 5)
            .map(({ violation }) => printable(violation.path, 200))
            .join(", ")}${settled.length > 5 ? `, and ${settled.length - 5} more` : ""}`;
    return { data: { settled: settled.map(violationJson) }, text: context.quiet ? "" : text };
  },
};
