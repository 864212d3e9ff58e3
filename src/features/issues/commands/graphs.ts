import type { Command, Flag } from "../../../cli/grammar/command";
import { usage } from "../../../cli/grammar/parse";
import { printable } from "../../../kernel/ids";
import type { Board } from "../board";
import type { Desk } from "../desk";
import { claimantOf } from "../effective";
import { tree } from "../graph";
import { GRAPH_FORMATS, type GraphFormat, renderGraph } from "../graph-text";
import { graph, type IssueGraph, type IssueTree } from "../operations/graph";
import { openDesk } from "./desk";
import { listCommand } from "./output";

const CLAIMS_FLAG: Readonly<Record<string, Flag>> = {
  "show-claims": { meaning: "say who has claimed each of them" },
};

function treeCommand(
  command: Pick<Command, "positional" | "usage" | "about" | "examples">,
  find: (desk: Desk, request: { readonly issue: string }) => Promise<IssueTree>,
): Command {
  return {
    flags: CLAIMS_FLAG,
    words: { min: 1, max: 1 },
    completes: ["issue"],
    ...command,
    async run(context, parsed) {
      const found = await find(await openDesk(context), { issue: parsed.words[0]! });
      return { data: graphJson(found), text: treeText(found, parsed.has("show-claims")) };
    },
  };
}

export const show = treeCommand(
  {
    positional: "<id>",
    about:
      "Shows what an issue needs, and what that needs in turn, as a tree. Circles are shown, and not followed.",
    examples: ["cotenant graph show 7x3k", "cotenant graph show 7x3k --show-claims"],
  },
  graph.show,
);

export const downstream = treeCommand(
  {
    positional: "<id>",
    about:
      "Shows what needs an issue, and what needs that in turn, as a tree: all that waits until it is done.",
    examples: ["cotenant graph downstream 7x3k"],
  },
  graph.downstream,
);

function treeText({ board, workers, nodes, circle, from }: IssueTree, showClaims: boolean): string {
  const lines = [...tree(nodes, from)].map(({ row, unknown, lead, cut }) => {
    if (row === null) return `${lead}${printable(unknown ?? "", 40)}  nobody has it`;
    const remark = cut === "circle" ? "  (a circle: see above)" : cut === "shown" ? "  (see above)" : "";
    const claimant = claimantOf(workers, board.id(row));
    const claim = claimant === null ? "  unclaimed" : `  claimed by ${claimant}`;
    return `${lead}${labelOf(board, row)}${showClaims ? claim : ""}${remark}`;
  });
  if (circle !== null)
    lines.push(`they wait for each other: ${circle.map((row) => board.shortId(row)).join(" → ")}`);
  return lines.join("\n");
}

function graphJson({ board, workers, nodes, edges, unknown, circle }: IssueGraph): Record<string, unknown> {
  return {
    nodes: [...nodes.keys()].map((row) => ({
      id: board.id(row),
      short_id: board.shortId(row),
      title: board.isShown(row) ? board.details(row).title : null,
      state: board.state(row),
      claimed_by: claimantOf(workers, board.id(row)),
    })),
    edges,
    unknown,
    cycle: circle?.map((row) => board.id(row)) ?? null,
  };
}

function labelOf(board: Board, row: number): string {
  const short = board.shortId(row);
  if (!board.isShown(row)) return `${short}  ${board.state(row) ?? "cannot be read"}`;
  const { title, state } = board.details(row);
  return `${short}  ${printable(title, 80)} (${state})`;
}

export const roots = listCommand({
  about: "Lists open issues that need no other issue: where work can begin.",
  flags: { all: { meaning: "closed ones too" } },
  examples: ["cotenant graph roots"],
  find: (desk, parsed) => graph.roots(desk, { all: parsed.has("all") }),
  nothing: () => "every open issue needs another one",
});

const exportGraph: Command = {
  positional: "[<id>…]",
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
    const request = { issues: parsed.words, open: parsed.has("open") };
    const found = await graph.export(await openDesk(context), request);
    const { board, nodes, edges, workers } = found;
    const drawn = [...nodes.keys()].map((row) => {
      const claimant = parsed.has("show-claims") ? claimantOf(workers, board.id(row)) : null;
      const label = `${labelOf(board, row)}${claimant === null ? "" : `, ${claimant}`}`;
      return { id: board.id(row), label, state: board.state(row) };
    });
    const text = renderGraph({ nodes: drawn, edges }, format);
    return { data: { format, ...graphJson(found), text: format === "json" ? null : text }, text };
  },
};

export { exportGraph as export };
