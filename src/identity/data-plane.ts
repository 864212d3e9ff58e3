import { IGNORED_IN_DATA_DIRECTORY } from "./worktree-file";

/** Lines that files of the data plane must have. `init` adds them; lines that people add stay. */
export const DATA_PLANE_LINES = {
  ".gitignore": [...IGNORED_IN_DATA_DIRECTORY],
  ".gitattributes": ["*.jsonl merge=union"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** The file as `init` makes it where there is none. */
export function dataPlaneFile(name: keyof typeof DATA_PLANE_LINES): string {
  return DATA_PLANE_LINES[name].map((line) => `${line}\n`).join("");
}
