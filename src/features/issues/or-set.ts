import { jsonObject } from "../../codec/json";
import { type Ulid, ulidIn } from "../../kernel/ids";

/**
 * A set that several branches may add to and remove from at once, in a file of lines that Git merges by union. Each
 * addition has a tag of its own, and a removal names the tags that it saw: what was added again meanwhile stays.
 */
export type SetLine = { readonly value: string; readonly at: string; readonly by: string } & (
  | { readonly op: "add"; readonly tag: Ulid }
  | { readonly op: "remove"; readonly tags: readonly Ulid[] }
);

export interface OrSet {
  /** In the order of their additions. */
  readonly values: readonly string[];
  /** Tags that hold a value in the set. */
  readonly tags: ReadonlyMap<string, readonly Ulid[]>;
  /** Lines that are none: somebody's editor, half a line. They count for nothing, and are never thrown away. */
  readonly broken: number;
}

export function encodeSetLine(line: SetLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** What the lines add up to. Neither their order nor how often each of them is there matters. */
export function readOrSet(text: string, more: readonly string[] = []): OrSet {
  const added = new Map<Ulid, string>();
  const removed = new Set<Ulid>();
  let broken = 0;
  for (const lineText of [...text.split("\n"), ...more]) {
    if (lineText.trim() === "") continue;
    const line = decodeSetLine(lineText);
    if (line === null) broken++;
    else if (line.op === "add") added.set(line.tag, line.value);
    else for (const tag of line.tags) removed.add(tag);
  }
  const tags = new Map<string, Ulid[]>();
  for (const tag of [...added.keys()].sort()) {
    if (removed.has(tag)) continue;
    const value = added.get(tag)!;
    const held = tags.get(value);
    if (held === undefined) tags.set(value, [tag]);
    else held.push(tag);
  }
  return { values: [...tags.keys()], tags, broken };
}

/** By hand: there are many, and every list of issues reads all of them. */
function decodeSetLine(text: string): SetLine | null {
  const w = jsonObject(text);
  if (w === null || typeof w["value"] !== "string") return null;
  const [at, by] = [w["at"], w["by"]].map((said) => (typeof said === "string" ? said : "")) as [
    string,
    string,
  ];
  const said = { value: w["value"], at, by };
  if (w["op"] === "add") {
    const tag = ulidIn(w["tag"]);
    return tag === null ? null : { op: "add", tag, ...said };
  }
  if (w["op"] !== "remove" || !Array.isArray(w["tags"])) return null;
  return { op: "remove", tags: w["tags"].map(ulidIn).filter((tag) => tag !== null), ...said };
}
