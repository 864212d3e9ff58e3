import type { Context, Flag, Output } from "../../../cli/grammar/command";
import { printable } from "../../../kernel/ids";
import type { Board } from "../board";
import { claimantOf } from "../effective";
import type { Node } from "../graph";
import { circleIn, tree } from "../graph";
import { meantId } from "../meant";
import { loadBoard, type QuerySetting } from "../query";
import { openQuery, type Setting } from "./querying";

export const CLAIMS_FLAG: Readonly<Record<string, Flag>> = {
  "show-claims": { meaning: "say who has claimed each of them" },
};

export interface Drawing {
  readonly setting: Setting;
  readonly board: Board;
}

export async function openGraph(context: Context): Promise<Drawing> {
  const { setting } = await openQuery(context);
  return { setting, board: await loadBoard(setting, "everywhere") };
}

/** The row of an issue that somebody means. */
export async function meantRow({ setting, board }: Drawing, typed: string): Promise<number> {
  const id = await meantId(setting.reader, typed);
  await setting.reader.get(id);
  return board.rowOf(id);
}

/** A tree from one issue down, for people and for programs. */
export function treeOutput(
  { setting, board }: Drawing,
  nodes: ReadonlyMap<number, Node>,
  from: number,
  showClaims: boolean,
): Output {
  const lines = [...tree(nodes, from)].map(({ row, unknown, lead, cut }) => {
    if (row === null) return `${lead}${printable(unknown ?? "", 40)}  nobody has it`;
    const remark = cut === "circle" ? "  (a circle: see above)" : cut === "shown" ? "  (see above)" : "";
    return `${lead}${labelOf(board, row)}${showClaims ? claimText(setting, board, row) : ""}${remark}`;
  });
  const circle = circleIn(nodes);
  if (circle !== null)
    lines.push(`they wait for each other: ${circle.map((row) => board.shortId(row)).join(" → ")}`);
  return { data: graphData({ setting, board }, nodes, circle), text: lines.join("\n") };
}

export function graphData(
  drawing: Drawing,
  nodes: ReadonlyMap<number, Node>,
  circle: readonly number[] | null,
): Record<string, unknown> {
  const { board } = drawing;
  const edges = [...nodes.values()].flatMap(({ row, needs, unknown }) => [
    ...needs.map((needed) => ({ from: board.id(row), to: board.id(needed) as string })),
    ...unknown.map((id) => ({ from: board.id(row), to: id })),
  ]);
  return {
    nodes: [...nodes.keys()].map((row) => nodeJson(drawing, row)),
    edges,
    unknown: [...new Set([...nodes.values()].flatMap(({ unknown }) => unknown))],
    cycle: circle?.map((row) => board.id(row)) ?? null,
  };
}

function nodeJson({ setting, board }: Drawing, row: number): Record<string, unknown> {
  const id = board.id(row);
  const isShown = board.isShown(row);
  return {
    id,
    short_id: board.shortId(row),
    title: isShown ? board.details(row).title : null,
    state: board.state(row),
    claimed_by: claimantOf(setting, id),
  };
}

export function labelOf(board: Board, row: number): string {
  const short = board.shortId(row);
  if (!board.isShown(row)) return `${short}  ${board.state(row) ?? "cannot be read"}`;
  const { title, state } = board.details(row);
  return `${short}  ${printable(title, 80)} (${state})`;
}

function claimText(setting: QuerySetting, board: Board, row: number): string {
  const claimant = claimantOf(setting, board.id(row));
  return claimant === null ? "  unclaimed" : `  claimed by ${claimant}`;
}
