import type { Command } from "../../../cli/grammar/command";
import { reversed, wholeGraph, within } from "../graph";
import { CLAIMS_FLAG, meantRow, openGraph, treeOutput } from "./graphing";

export const command: Command = {
  usage: "graph downstream <id> [--show-claims]",
  about:
    "Shows what needs an issue, and what needs that in turn, as a tree: all that waits until it is done.",
  flags: CLAIMS_FLAG,
  examples: ["cotenant graph downstream 7x3k"],
  words: { min: 1, max: 1 },
  completes: ["issue"],
  async run(context, parsed) {
    const drawing = await openGraph(context);
    const row = await meantRow(drawing, parsed.words[0]!);
    const nodes = within(reversed(await wholeGraph(drawing.board)), row);
    await drawing.board.save();
    const output = treeOutput(drawing, nodes, row, parsed.has("show-claims"));
    // Edges say who needs whom, whichever way the tree is drawn.
    const edges = (output.data["edges"] as { from: string; to: string }[]).map(({ from, to }) => ({
      from: to,
      to: from,
    }));
    return { ...output, data: { ...output.data, edges } };
  },
};
