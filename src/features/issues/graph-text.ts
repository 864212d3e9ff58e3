import { printable } from "../../kernel/ids";
import type { IssueState } from "./model";

/** What a picture shows of an issue. */
interface PictureNode {
  readonly id: string;
  readonly label: string;
  readonly state: IssueState | null;
}

export interface Picture {
  readonly nodes: readonly PictureNode[];
  /** `from` needs `to`. */
  readonly edges: readonly { readonly from: string; readonly to: string }[];
}

export const GRAPH_FORMATS = ["text", "json", "dot", "mermaid"] as const;
export type GraphFormat = (typeof GRAPH_FORMATS)[number];

export function renderGraph(picture: Picture, format: GraphFormat): string {
  switch (format) {
    case "text":
      return asText(picture);
    case "json":
      return JSON.stringify(picture, null, 2);
    case "dot":
      return asDot(picture);
    case "mermaid":
      return asMermaid(picture);
  }
}

function asText({ nodes, edges }: Picture): string {
  const labels = new Map(nodes.map(({ id, label }) => [id, label]));
  const needs = new Map<string, string[]>();
  for (const { from, to } of edges) {
    const known = needs.get(from);
    if (known === undefined) needs.set(from, [to]);
    else known.push(to);
  }
  return nodes
    .flatMap(({ id, label }) => [
      label,
      ...(needs.get(id) ?? []).map((to) => `  needs ${labels.get(to) ?? to}`),
    ])
    .join("\n");
}

/** Titles are anybody's words: in a quoted string of DOT, only `"` and `\` mean something. */
function asDot({ nodes, edges }: Picture): string {
  const quoted = (text: string) => `"${printable(text, 200).replace(/[\\"]/g, "\\$&")}"`;
  return [
    "digraph issues {",
    "  rankdir=LR;",
    '  node [shape=box, style="rounded,filled", fillcolor=white];',
    ...nodes.map(
      ({ id, label, state }) =>
        `  ${quoted(id)} [label=${quoted(label)}, fillcolor=${COLORS[shade(state)]}];`,
    ),
    ...edges.map(({ from, to }) => `  ${quoted(from)} -> ${quoted(to)};`),
    "}",
  ].join("\n");
}

/** In a quoted label of Mermaid, `#` starts an entity, and `<` may become HTML. */
function asMermaid({ nodes, edges }: Picture): string {
  const entity = (char: string) => `#${char.codePointAt(0)};`;
  const quoted = (text: string) => `"${printable(text, 200).replace(/["#<>&;`\\[\]{}()|]/g, entity)}"`;
  const name = (id: string) => `i${id.replace(/[^0-9A-Za-z]/g, "_")}`;
  return [
    "graph LR",
    ...nodes.map(({ id, label, state }) => `  ${name(id)}[${quoted(label)}]:::${shade(state)}`),
    ...edges.map(({ from, to }) => `  ${name(from)} --> ${name(to)}`),
    ...Object.entries(COLORS).map(
      ([shadeName, color]) => `  classDef ${shadeName} fill:${color},color:black;`,
    ),
  ].join("\n");
}

const COLORS = { open: "white", working: "lightyellow", over: "lightgrey", lost: "mistyrose" } as const;

function shade(state: IssueState | null): keyof typeof COLORS {
  if (state === null) return "lost";
  if (state === "in_progress" || state === "gated") return "working";
  return state === "ready" || state === "backlog" ? "open" : "over";
}
