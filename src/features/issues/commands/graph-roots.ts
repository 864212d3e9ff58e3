import type { Command } from "../../../cli/grammar/command";
import { wholeGraph } from "../graph";
import { ANYTHING, answerOf } from "../query";
import { openGraph } from "./graphing";
import { answerOutput } from "./querying";

export const command: Command = {
  usage: "graph roots [--all]",
  about: "Lists open issues that need no other issue: where work can begin.",
  flags: { all: { meaning: "closed ones too" } },
  examples: ["cotenant graph roots"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const { board, setting } = await openGraph(context);
    const nodes = await wholeGraph(board);
    const roots = [...nodes.values()]
      .filter(({ row, needs, unknown }) => needs.length + unknown.length === 0 && board.isShown(row))
      .map(({ row }) => row)
      .filter((row) => parsed.has("all") || !board.isOver(row));
    const found = await answerOf(setting, board, roots, ANYTHING);
    return answerOutput(context, setting, found, "every open issue needs another one");
  },
};
