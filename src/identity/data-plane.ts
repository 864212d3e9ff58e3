import { IGNORED_IN_DATA_DIRECTORY } from "./worktree-file";

/** The merge driver for `issue.json`, as Git's attributes and configuration call it. */
export const ISSUE_MERGE_DRIVER = "cotenant-issue";

/** Lines that files of the data plane must have. `init` adds them; lines that people add stay. */
export const DATA_PLANE_LINES = {
  ".gitignore": [...IGNORED_IN_DATA_DIRECTORY],
  ".gitattributes": ["*.jsonl merge=union", `issues/*/issue.json merge=${ISSUE_MERGE_DRIVER}`],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** The file as `init` makes it where there is none. */
export function dataPlaneFile(name: keyof typeof DATA_PLANE_LINES): string {
  return DATA_PLANE_LINES[name].map((line) => `${line}\n`).join("");
}

const LINE_END = 10;
const CARRIAGE_RETURN = 13;

/** Somebody's file with the lines that it lacks at its end, in its own line ends; null when it lacks none. */
export function withLines(found: Uint8Array, lines: readonly string[]): Uint8Array | null {
  // Whatever the encoding is, ours are ASCII.
  const text = Array.from(found, (byte) => String.fromCharCode(byte)).join("");
  const missing = lines.filter((line) => !text.split(/\r?\n/).includes(line));
  if (missing.length === 0) return null;
  const end =
    found.indexOf(LINE_END) > 0 && found[found.indexOf(LINE_END) - 1] === CARRIAGE_RETURN ? "\r\n" : "\n";
  const first = found.length === 0 || found.at(-1) === LINE_END ? "" : end;
  const added = new TextEncoder().encode(first + missing.map((line) => line + end).join(""));
  const whole = new Uint8Array(found.length + added.length);
  whole.set(found);
  whole.set(added, found.length);
  return whole;
}
