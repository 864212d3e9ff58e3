import type { HarnessName } from "../../identity/harness";
import { shellQuoted } from "../../kernel/printing";
import { looksLikePatch, patchedPaths } from "./patch";
import { own, type Report } from "./report";

/** What a tool is about to write. */
export type Wish =
  | { readonly kind: "files"; readonly paths: readonly string[] }
  | {
      readonly kind: "shell";
      readonly command: string;
      readonly dialect: "bash" | "powershell";
      /** Where it is to run, where the tool says so. */
      readonly cwd: string | null;
    };

interface Toolbox {
  readonly writes: ReadonlySet<string>;
  readonly patches: ReadonlySet<string>;
  readonly shells: ReadonlySet<string>;
}

/** By the names that the harnesses give them, as far as they are documented. */
const TOOLBOXES: Readonly<Record<HarnessName, Toolbox>> = {
  claude: box(["Edit", "MultiEdit", "Write", "NotebookEdit"], [], ["Bash", "PowerShell"]),
  codex: box(["Edit", "Write"], ["apply_patch"], ["Bash", "shell", "exec_command"]),
  // Claude's names, too: Cursor maps them when it runs Claude Code's hooks.
  cursor: box(
    ["Write", "Delete", "Edit", "EditNotebook", "StrReplace", "NotebookEdit"],
    ["ApplyPatch"],
    ["Shell", "Bash"],
  ),
  gemini: box(["write_file", "replace", "edit"], [], ["run_shell_command"]),
  copilot: box(
    ["edit", "create", "str_replace_editor", "write", "Edit", "Write", "MultiEdit", "NotebookEdit"],
    ["apply_patch"],
    ["bash", "powershell", "Bash", "PowerShell"],
  ),
  opencode: box(["edit", "write", "multiedit"], ["apply_patch", "patch"], ["bash"]),
  qwen: box(["write_file", "edit", "notebook_edit"], [], ["run_shell_command", "monitor"]),
  pi: box(["edit", "write"], [], ["bash", "powershell"]),
};

/** Where tools put the one file that they write. */
const PATH_KEYS = [
  "file_path",
  "filePath",
  "path",
  "notebook_path",
  "target_file",
  "target_notebook",
  "relative_workspace_path",
];
/** Where those put files that nobody has told us of. */
const FOREIGN_KEYS = [
  ...PATH_KEYS,
  "filename",
  "file",
  "source",
  "destination",
  "old_path",
  "new_path",
  "oldPath",
  "newPath",
  "from",
  "to",
];
const LIST_KEYS = ["paths", "files", "file_paths", "filePaths", "edits"];
const PATCH_KEYS = ["command", "patchText", "patch", "input", "patch_text", "diff"];
const DIRECTORY_KEYS = ["working_directory", "workdir", "cwd", "dir_path", "directory"];
const WRITING = /write|edit|create|delete|remove|move|rename|patch|replace|insert|append|notebook/i;
const READING = /^(?:read|view|get|list|search|find|glob|grep|fetch|web|task|todo|ask)/i;
/** More than one tool call has any business with. */
const MOST_PATHS = 10_000;

/** Null for tools that write no files, as far as anybody can tell. */
export function wishOf({ harness, tool, input }: Pick<Report, "harness" | "tool" | "input">): Wish | null {
  if (tool === null) return null;
  const { writes, patches, shells } = TOOLBOXES[harness];
  if (shells.has(tool)) {
    const command = commandIn(input);
    const dialect = tool.toLowerCase() === "powershell" ? "powershell" : "bash";
    return command === null ? null : { kind: "shell", command, dialect, cwd: directoryIn(input) };
  }
  const paths = new Set<string>();
  // An editor that can also look says which it does.
  if (typeof input === "object" && input !== null && own(input, "command") === "view") return null;
  if (patches.has(tool) || (writes.has(tool) && hasPatch(input))) addPatched(paths, input);
  if (writes.has(tool)) add(paths, input, PATH_KEYS, false);
  else if (!patches.has(tool) && WRITING.test(tool) && !READING.test(tool)) {
    // A tool of somebody else's may mean a file on another machine: only what is plainly here counts.
    const isForeign = /^mcp|__|:|\//.test(tool);
    add(paths, input, FOREIGN_KEYS, isForeign);
    if (!isForeign) addPatched(paths, input);
  }
  return paths.size === 0 ? null : { kind: "files", paths: [...paths].slice(0, MOST_PATHS) };
}

function add(paths: Set<string>, input: unknown, keys: readonly string[], absoluteOnly: boolean): void {
  if (typeof input !== "object" || input === null) return;
  for (const key of keys) take(paths, own(input, key), absoluteOnly);
  for (const key of LIST_KEYS) {
    const list = own(input, key);
    if (!Array.isArray(list)) continue;
    for (const item of list.slice(0, MOST_PATHS)) {
      if (typeof item === "object" && item !== null)
        for (const inner of keys) take(paths, own(item, inner), absoluteOnly);
      else if (key !== "edits") take(paths, item, absoluteOnly);
    }
  }
}

function take(paths: Set<string>, value: unknown, absoluteOnly: boolean): void {
  if (typeof value !== "string" || value === "") return;
  const path = asPosix(value);
  if (!absoluteOnly || path.startsWith("/") || /^[A-Za-z]:\//.test(path)) paths.add(path);
}

function addPatched(paths: Set<string>, input: unknown): void {
  for (const patch of patchesIn(input)) for (const path of patchedPaths(patch)) paths.add(asPosix(path));
}

function hasPatch(input: unknown): boolean {
  return patchesIn(input).some(looksLikePatch);
}

function patchesIn(input: unknown): string[] {
  if (typeof input === "string") return [input];
  if (typeof input !== "object" || input === null) return [];
  return PATCH_KEYS.map((key) => own(input, key)).flatMap((value) =>
    typeof value === "string"
      ? [value]
      : Array.isArray(value)
        ? value.filter((part) => typeof part === "string")
        : [],
  );
}

function directoryIn(input: unknown): string | null {
  if (typeof input !== "object" || input === null) return null;
  const found = DIRECTORY_KEYS.map((key) => own(input, key)).find(
    (value) => typeof value === "string" && value !== "",
  );
  return found === undefined ? null : asPosix(found as string);
}

/** As text, or as the words of `bash -lc …`. */
function commandIn(input: unknown): string | null {
  if (typeof input === "string") return input;
  if (typeof input !== "object" || input === null) return null;
  const command = own(input, "command") ?? own(input, "cmd") ?? own(input, "script");
  if (typeof command === "string") return command;
  if (!Array.isArray(command) || !command.every((word) => typeof word === "string")) return null;
  const words = command as string[];
  if (words.length === 3 && /(?:^|\/)(?:ba|z|da)?sh$/.test(words[0]!) && /^-[a-z]*c$/.test(words[1]!))
    return words[2]!;
  return words.map(shellQuoted).join(" ");
}

/** `C:\src\a.ts` as the rest of the program writes it. Elsewhere a backslash is a character like any other. */
function asPosix(path: string): string {
  return /^[A-Za-z]:[\\/]/.test(path) || path.startsWith("\\\\") ? path.replaceAll("\\", "/") : path;
}

function box(writes: string[], patches: string[], shells: string[]): Toolbox {
  return { writes: new Set(writes), patches: new Set(patches), shells: new Set(shells) };
}
