import type { Program } from "../../installer/files";
import {
  type Block,
  findBlock,
  hooksIn,
  type InstalledHook,
  marked,
  OR_REFUSE,
  runFunction,
  withBlock,
  withoutBlock,
} from "./block";

/**
 * Our call as a command in lefthook's configuration, where its users put theirs: lefthook writes its hook files anew, and
 * this stays. Where the hook file has our lines, they have run before lefthook did.
 */
function entryLines(hook: InstalledHook, program: Program): string[] {
  const script = [
    `if grep -qs '^# >>> cotenant hook ${hook} ' "$(git rev-parse --git-path hooks/${hook})"; then exit 0; fi`,
    ...runFunction(program, ""),
    `cotenant_run hook ${hook}${ARGUMENTS[hook] ?? ""} || ${hook === "post-commit" ? ":" : OR_REFUSE}`,
  ];
  return [
    "cotenant:",
    // Nobody waits for a linter before hearing that a file is taken.
    ...(hook === "pre-commit" ? ["  priority: 1"] : []),
    ...(hook === "pre-push" ? ["  use_stdin: true"] : []),
    "  run: |",
    ...script.map((line) => `    ${line}`),
  ];
}

/** lefthook puts arguments in as they are: a path with a space or a quote would fall apart. */
const ARGUMENTS: Partial<Record<InstalledHook, string>> = {
  "prepare-commit-msg": ` "$(git rev-parse --git-path COMMIT_EDITMSG)" '{2}'`,
  "pre-push": " '{1}' '{2}'",
};

/**
 * The configuration with our entries for these hooks; null where its YAML is written in a way that we do not add to. Text
 * is binary, as in hooks.
 */
export function withEntries(
  text: string | null,
  hooks: readonly InstalledHook[],
  program: Program,
): string | null {
  let now: string | null = text ?? "";
  for (const hook of hooks) now = now === null ? null : withEntry(now, hook, program);
  return now;
}

function withEntry(text: string, hook: InstalledHook, program: Program): string | null {
  const old = findBlock(text, hook);
  if (old === "damaged") return null;
  if (old !== null) return withBlock(old, entryBlock(hook, program, depthOf(old)));
  if (!isPlain(text)) return null;
  const lines = text.split("\n");
  const key = new RegExp(`^(["']?)${hook}\\1[ ]*:`);
  const at = lines.findIndex((line) => key.test(line));
  if (at === -1) {
    const block = entryBlock(hook, program, { indent: 4, above: [`${hook}:`, "  commands:"] });
    return text === "" || text.endsWith("\n") ? text + block : `${text}\n${block.slice(0, -1)}`;
  }
  return nested(lines, at, hook, program);
}

/** Below a key that is there already. */
function nested(lines: readonly string[], at: number, hook: InstalledHook, program: Program): string | null {
  if (!/:[ ]*(?:#.*)?$/.test(lines[at]!)) return null;
  const [first, indent] = childOf(lines, at + 1, 0);
  if (first === null) return null;
  let here = first;
  let depth = { indent: indent + 2, above: [`${" ".repeat(indent)}commands:`] };
  for (let i = first; i < lines.length && (isNothing(lines[i]!) || indentOf(lines[i]!) > 0); i++) {
    if (indentOf(lines[i]!) !== indent || !/^ *(["']?)commands\1[ ]*:/.test(lines[i]!)) continue;
    const [command, deeper] = childOf(lines, i + 1, indent);
    if (command === null || !/:[ ]*(?:#.*)?$/.test(lines[i]!)) return null;
    here = i + 1;
    depth = { indent: deeper, above: [] };
    const name = new RegExp(`^ {${deeper}}(["']?)cotenant\\1[ ]*:`);
    const end = lines.findIndex((line, j) => j > i && !isNothing(line) && indentOf(line) <= indent);
    if (lines.slice(i, end === -1 ? undefined : end).some((line) => name.test(line))) return null;
  }
  const block = entryBlock(hook, program, depth);
  return [...lines.slice(0, here), block.slice(0, -1), ...lines.slice(here)].join("\n");
}

/** The first line inside of a mapping, and how far its keys are indented; null where there are no plain keys. */
function childOf(lines: readonly string[], from: number, above: number): [number | null, number] {
  const at = lines.findIndex((line, i) => i >= from && !isNothing(line));
  if (at === -1) return [null, 0];
  const indent = indentOf(lines[at]!);
  return indent <= above || /^ *-(?: |$)/.test(lines[at]!) ? [null, 0] : [at, indent];
}

interface Depth {
  readonly indent: number;
  /** Keys above the entry that are ours too. */
  readonly above: readonly string[];
}

function entryBlock(hook: InstalledHook, program: Program, { indent, above }: Depth): string {
  const lines = entryLines(hook, program).map((line) => " ".repeat(indent) + line);
  return marked(hook, { place: "entry" }, [...above, ...lines]);
}

/** How an older entry of ours stands there. */
function depthOf({ text }: Block): Depth {
  const lines = text.split("\n").slice(1);
  const at = lines.findIndex((line) => /^ *cotenant:$/.test(line));
  return { indent: indentOf(lines[at] ?? ""), above: lines.slice(0, Math.max(0, at)) };
}

/** All of our entries taken out; null where nothing else was in the file. */
export function withoutEntries(text: string): string | null | "damaged" {
  let now = text;
  for (const hook of hooksIn(text)) {
    const block = findBlock(now, hook);
    if (block === "damaged" || block === null) return "damaged";
    now = withoutBlock(block);
  }
  return now === "" ? null : now;
}

/** Whether a current entry is there for each of these hooks. */
export function hasEntry(text: string | null, hook: InstalledHook): boolean {
  return text !== null && findBlock(text, hook) !== null;
}

/** One document of plain `key: …` lines, without tabs or the line ends of another system. */
function isPlain(text: string): boolean {
  if (/[\t\r]/.test(text) || /^(?:---|\.\.\.)/m.test(text.replace(/^---[ ]*\n/, ""))) return false;
  const first = text.split("\n").find((line) => !isNothing(line) && line !== "---");
  return first === undefined || /^["']?[\w$.-]+["']?[ ]*:/.test(first);
}

function isNothing(line: string): boolean {
  return /^ *(?:#.*)?$/.test(line);
}

function indentOf(line: string): number {
  return /^ */.exec(line)![0].length;
}
