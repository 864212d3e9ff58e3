import type { Command } from "../../../cli/grammar/command";
import { reach } from "../graph";
import { CLAIMS_FLAG, meantRow, openGraph, treeOutput } from "./graphing";

export const command: Command = {
  usage: "graph show <id> [--show-claims]",
  about:
    "Shows what an issue needs, and what that needs in turn, as a tree. Circles are shown, and not followed.",
  flags: CLAIMS_FLAG,
  examples: ["cotenant graph show 7x3k", "cotenant graph show 7x3k --show-claims"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const drawing = await openGraph(context);
    const row = await meantRow(drawing, parsed.words[0]!);
    const nodes = await reach(drawing.board, [row]);
    await drawing.board.save();
    return treeOutput(drawing, nodes, row, parsed.has("show-claims"));
  },
};
