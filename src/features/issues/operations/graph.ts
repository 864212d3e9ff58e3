import type { Board } from "../board";
import type { Desk } from "../desk";
import type { Workers } from "../effective";
import { circleIn, type Node, reach, reversed, wholeGraph, within } from "../graph";
import { meantId } from "../meant";
import { ANYTHING, answerOf, loadBoard } from "../query";
import { type Listed, listed, type Setting, settingAt } from "./query";

/** Issues, and who needs whom among them. */
export interface IssueGraph {
  readonly board: Board;
  readonly workers: Workers;
  readonly nodes: ReadonlyMap<number, Node>;
  /** By id: who needs whom, also such as nobody has. */
  readonly edges: readonly { readonly from: string; readonly to: string }[];
  readonly unknown: readonly string[];
  /** One circle, as rows of which the last is the first again; null where there is none. */
  readonly circle: readonly number[] | null;
}

/** What can be reached from one issue, to be drawn as a tree. */
export interface IssueTree extends IssueGraph {
  readonly from: number;
}

export const graph = {
  /** What an issue needs, and what that needs in turn. */
  async show(desk: Desk, request: { readonly issue: string }): Promise<IssueTree> {
    const { setting, board } = await loadGraph(desk);
    const from = await meantRow(setting, board, request.issue);
    return { ...(await graphOf(setting, board, await reach(board, [from]))), from };
  },

  /** What needs an issue, and what needs that in turn. */
  async downstream(desk: Desk, request: { readonly issue: string }): Promise<IssueTree> {
    const { setting, board } = await loadGraph(desk);
    const from = await meantRow(setting, board, request.issue);
    const found = await graphOf(setting, board, within(reversed(await wholeGraph(board)), from));
    // Edges say who needs whom, whichever way the tree is drawn.
    return { ...found, edges: found.edges.map(({ from, to }) => ({ from: to, to: from })), from };
  },

  /** Open issues that need no other one; `all`: closed ones, too. */
  async roots(desk: Desk, { all = false }: { readonly all?: boolean } = {}): Promise<Listed> {
    const { setting, board } = await loadGraph(desk);
    const roots = [...(await wholeGraph(board)).values()]
      .filter(({ row, needs, unknown }) => needs.length + unknown.length === 0 && board.isShown(row))
      .map(({ row }) => row)
      .filter((row) => all || !board.isOver(row));
    return listed(setting, await answerOf(setting, board, roots, ANYTHING));
  },

  /** All issues, or these and what they need; `open`: without what is over. */
  async export(
    desk: Desk,
    { issues = [], open = false }: { readonly issues?: readonly string[]; readonly open?: boolean } = {},
  ): Promise<IssueGraph> {
    const { setting, board } = await loadGraph(desk);
    const rows: number[] = [];
    for (const typed of issues) rows.push(await meantRow(setting, board, typed));
    const nodes = rows.length === 0 ? await wholeGraph(board) : await reach(board, rows);
    return graphOf(setting, board, open ? onlyOpen(board, nodes) : nodes);
  },
};

async function loadGraph(desk: Desk): Promise<{ readonly setting: Setting; readonly board: Board }> {
  const setting = await settingAt(desk);
  return { setting, board: await loadBoard(setting, "everywhere") };
}

async function meantRow({ reader }: Setting, board: Board, typed: string): Promise<number> {
  const id = await meantId(reader, typed);
  await reader.get(id);
  return board.rowOf(id);
}

async function graphOf(
  workers: Workers,
  board: Board,
  nodes: ReadonlyMap<number, Node>,
): Promise<IssueGraph> {
  await board.save();
  const edges = [...nodes.values()].flatMap(({ row, needs, unknown }) =>
    [...needs.map((needed): string => board.id(needed)), ...unknown].map((to) => ({
      from: board.id(row),
      to,
    })),
  );
  const unknown = [...new Set([...nodes.values()].flatMap((node) => node.unknown))];
  return { board, workers, nodes, edges, unknown, circle: circleIn(nodes) };
}

function onlyOpen(board: Board, nodes: ReadonlyMap<number, Node>): Map<number, Node> {
  return new Map(
    [...nodes]
      .filter(([row]) => !board.isOver(row))
      .map(([row, node]) => [row, { ...node, needs: node.needs.filter((needed) => !board.isOver(needed)) }]),
  );
}
