import type { Board } from "./board";
import { cycleIn } from "./cycles";

/** Who needs whom, by row. Dependencies on issues that nobody has stay in it as their ids. */
export interface Node {
  readonly row: number;
  readonly needs: readonly number[];
  /** Ids of dependencies that nobody has. */
  readonly unknown: readonly string[];
}

/** Everything that can be reached from these rows. Only what is on the way is looked at. */
export async function reach(board: Board, from: readonly number[]): Promise<Map<number, Node>> {
  const nodes = new Map<number, Node>();
  let next = [...new Set(from)];
  while (next.length > 0) {
    await board.settle(next);
    await board.checkDependencies(next);
    const found = new Set<number>();
    for (const row of next) {
      const node = nodeOf(board, row);
      nodes.set(row, node);
      for (const needed of node.needs) if (!nodes.has(needed)) found.add(needed);
    }
    next = [...found].filter((row) => !nodes.has(row));
  }
  return nodes;
}

/** All issues that are not deleted, with what they need. */
export async function wholeGraph(board: Board): Promise<Map<number, Node>> {
  const rows = await board.settle(board.shown());
  return reach(board, rows);
}

function nodeOf(board: Board, row: number): Node {
  const needs = [...board.dependencies(row)];
  const named = needs.includes(-1) && board.isShown(row) ? board.details(row).dependencies : [];
  return {
    row,
    // What was deleted is nobody's business any more.
    needs: needs.filter((needed) => needed !== -1 && !board.isDeleted(needed)),
    unknown: needs.flatMap((needed, at) => (needed === -1 ? [named[at] ?? ""] : [])),
  };
}

/** The same the other way round: who is needed by whom. */
export function reversed(nodes: ReadonlyMap<number, Node>): Map<number, Node> {
  const needed = new Map<number, number[]>([...nodes.keys()].map((row) => [row, []]));
  for (const { row, needs } of nodes.values()) for (const other of needs) needed.get(other)?.push(row);
  return new Map([...needed].map(([row, needs]) => [row, { row, needs, unknown: [] }]));
}

/** Those that can be reached from one, itself among them. */
export function within(nodes: ReadonlyMap<number, Node>, from: number): Map<number, Node> {
  const found = new Map<number, Node>();
  const stack = [from];
  for (let row = stack.pop(); row !== undefined; row = stack.pop()) {
    const node = nodes.get(row);
    if (node === undefined || found.has(row)) continue;
    found.set(row, node);
    stack.push(...node.needs);
  }
  return found;
}

/** One circle, as rows of which the last is the first again; null where there is none. */
export function circleIn(nodes: ReadonlyMap<number, Node>): number[] | null {
  const edges = new Map([...nodes].map(([row, { needs }]) => [String(row), needs.map(String)]));
  return cycleIn(edges)?.map(Number) ?? null;
}

/** A line of a tree: which issue, how deep, and why nothing is below it although it needs something. */
export interface Branch {
  readonly row: number | null;
  /** The id of an issue that nobody has. */
  readonly unknown: string | null;
  readonly lead: string;
  readonly cut: "circle" | "shown" | null;
}

/** Further in than this no terminal is wide enough, and a long chain would take the square of its length to draw. */
const DEEPEST = 30;

/** As a tree, each issue with its own below it once: circles are shown, and not followed. Not recursive. */
export function* tree(nodes: ReadonlyMap<number, Node>, from: number): Generator<Branch> {
  interface Pending {
    readonly row: number | null;
    readonly unknown: string | null;
    readonly lead: string;
    readonly below: string;
    readonly depth: number;
  }
  const shown = new Set<number>();
  const path: number[] = [];
  const onPath = new Set<number>();
  const stack: Pending[] = [{ row: from, unknown: null, lead: "", below: "", depth: 0 }];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    const { row, unknown, lead, below, depth } = at;
    while (path.length > depth) onPath.delete(path.pop()!);
    const node = row === null ? undefined : nodes.get(row);
    const children = node === undefined ? 0 : node.needs.length + node.unknown.length;
    const isCut = row !== null && children > 0 && shown.has(row);
    const cut = isCut ? (onPath.has(row) ? "circle" : "shown") : null;
    yield { row, unknown, lead, cut };
    if (row === null || node === undefined || cut !== null) continue;
    shown.add(row);
    path.push(row);
    onPath.add(row);
    const last = children - 1;
    const all = [
      ...node.needs.map((needed) => ({ row: needed, unknown: null })),
      ...node.unknown.map((id) => ({ row: null, unknown: id })),
    ];
    // The last one first: what is pushed last is looked at next.
    for (let child = last; child >= 0; child--) {
      const [arm, trunk] = child === last ? ["└─ ", "   "] : ["├─ ", "│  "];
      const isDeep = depth >= DEEPEST;
      stack.push({
        ...all[child]!,
        lead: isDeep ? `${below}${depth + 1} deep: ` : below + arm,
        below: isDeep ? below : below + trunk,
        depth: depth + 1,
      });
    }
  }
}
