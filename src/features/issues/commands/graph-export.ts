import type { Command } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { printable } from "../../../kernel/ids";
import { claimantOf } from "../effective";
import { circleIn, type Node, reach, wholeGraph } from "../graph";
import { GRAPH_FORMATS, type GraphFormat, renderGraph } from "../graph-text";
import { CLAIMS_FLAG, type Drawing, graphData, labelOf, meantRow, openGraph } from "./graphing";

export const command: Command = {
  usage: "graph export [<id>…] [--format text|json|dot|mermaid] [--open] [--show-claims]",
  about: "Prints the graph of all issues, or of these and what they need, as text, JSON, DOT or Mermaid.",
  flags: {
    ...CLAIMS_FLAG,
    format: {
      value: "<format>",
      choices: GRAPH_FORMATS,
      meaning: `one of ${GRAPH_FORMATS.join(", ")} (default text)`,
    },
    open: { meaning: "leave out what is over" },
  },
  examples: ["cotenant graph export --format mermaid", "cotenant graph export 7x3k --format dot"],
  words: { min: 0, max: 50 },
  completes: ["issue"],
  async run(context, parsed) {
    const format = (parsed.text("format") ?? "text") as GraphFormat;
    if (!GRAPH_FORMATS.includes(format))
      throw usage(`there is no format "${printable(format)}": use ${GRAPH_FORMATS.join(", ")}`);
    const drawing = await openGraph(context);
    const { board } = drawing;
    const rows: number[] = [];
    for (const typed of parsed.words) rows.push(await meantRow(drawing, typed));
    const all = rows.length === 0 ? await wholeGraph(board) : await reach(board, rows);
    const nodes = parsed.has("open") ? onlyOpen(drawing, all) : all;
    await board.save();
    const data = graphData(drawing, nodes, circleIn(nodes));
    const text = renderGraph(
      {
        nodes: [...nodes.keys()].map((row) => ({
          id: board.id(row),
          label: label(drawing, row, parsed.has("show-claims")),
          state: board.state(row),
        })),
        edges: data["edges"] as { from: string; to: string }[],
      },
      format,
    );
    return { data: { format, ...data, text: format === "json" ? null : text }, text };
  },
};

function onlyOpen({ board }: Drawing, nodes: ReadonlyMap<number, Node>): Map<number, Node> {
  return new Map(
    [...nodes]
      .filter(([row]) => !board.isOver(row))
      .map(([row, node]) => [row, { ...node, needs: node.needs.filter((needed) => !board.isOver(needed)) }]),
  );
}

function label({ board, setting }: Drawing, row: number, showClaims: boolean): string {
  const claimant = showClaims ? claimantOf(setting, board.id(row)) : null;
  return `${labelOf(board, row)}${claimant === null ? "" : `, ${claimant}`}`;
}
