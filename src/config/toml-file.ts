import { fileFailure } from "../errors/cotenant-error";
import type { Platform } from "../platform/platform";
import { COMMITTED_CONFIG, type Committed, committedConfig } from "./committed";
import type { ConfigProblem } from "./problem";

export interface TomlDocument {
  readonly file: string;
  readonly text: string;
  readonly root: Readonly<Record<string, unknown>>;
}

const MAX_BYTES = 1024 * 1024;
/** Nothing set: a comment, a blank line or a bare header, as in the template that `init` writes. */
const SETS_NOTHING = /^[ \t]*(?:#.*|\[[a-z_]+\][ \t]*(?:#.*)?)?\r?$/;

/**
 * Null when there is no such file. What cannot be read as TOML is a problem, never a guess. A home that this process may
 * not enter is somebody else's, as after `sudo -u`: its files do not count, as with Git. The repository's file may be
 * anything that a commit can hold, such as a link to a device that never ends; with `committed`, it counts as it is committed
 * where the worktree does not have it.
 */
export async function readToml(
  platform: Platform,
  file: string,
  source: "worktree" | "user" | "system",
  committed: Committed | null = null,
): Promise<TomlDocument | ConfigProblem | "forbidden" | null> {
  let bytes: Uint8Array | null;
  try {
    const stat = source === "worktree" ? await platform.files.stat(file) : null;
    if (stat?.kind === "other") return problem(file, "is a device or a pipe, not a file");
    if (stat !== null && stat.size > MAX_BYTES) return tooLarge(file);
    bytes = await platform.files.readFile(file);
  } catch (error) {
    const code = (error as { code?: unknown })?.code;
    if (source === "user" && (code === "EACCES" || code === "EPERM")) return "forbidden";
    if (code === "EISDIR") return problem(file, "is a directory, not a file");
    if (source === "worktree" && typeof code === "string") return problem(file, `cannot be read: ${code}`);
    throw fileFailure(error, "reading the configuration", file);
  }
  if (bytes === null && committed !== null) {
    bytes = await committedConfig(platform, committed);
    file = COMMITTED_CONFIG;
  }
  return bytes === null ? null : tomlFrom(file, bytes);
}

/** What a file says; `file` is how it is called in messages. */
export async function tomlFrom(file: string, bytes: Uint8Array): Promise<TomlDocument | ConfigProblem> {
  if (bytes.length > MAX_BYTES) return tooLarge(file);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return problem(file, "is not UTF-8");
  }
  // The parser is loaded only for a file that sets something: most commands start without it.
  if (text.split("\n").every((line) => SETS_NOTHING.test(line)))
    return { file, text, root: emptySections(text) };
  const { parse } = await import("smol-toml");
  try {
    return { file, text, root: parse(text, { integersAsBigInt: true }) };
  } catch (error) {
    return brokenToml(file, error);
  }
}

/** The headers still count: a section nobody knows is an error also when it is empty. */
function emptySections(text: string): Record<string, unknown> {
  const names = [...text.matchAll(/^[ \t]*\[([a-z_]+)\]/gm)].map((found) => found[1]!);
  return Object.fromEntries(names.map((name) => [name, {}]));
}

function brokenToml(file: string, error: unknown): ConfigProblem {
  const { line, message } = error as { line?: unknown; message?: unknown };
  // Only the first line: the rest quotes the file, which may be a link to something private.
  const words = String(message ?? "").split("\n")[0]!;
  const reason = words.replace(/^Invalid TOML document: /, "");
  return problem(file, `is not valid TOML: ${reason}`, typeof line === "number" ? line : null);
}

function tooLarge(file: string): ConfigProblem {
  return problem(file, `is larger than ${MAX_BYTES} bytes`);
}

function problem(file: string, message: string, line: number | null = null): ConfigProblem {
  return { place: file, message, line, key: null, nearest: null };
}

export function isProblem(value: TomlDocument | ConfigProblem): value is ConfigProblem {
  return "message" in value;
}

/**
 * The line that sets a key, counted from 1, for error messages: null when it is not written plainly enough
 * to be found. The parser does not keep positions.
 */
export function lineOf(text: string, path: readonly string[]): number | null {
  let table: string[] = [];
  let inlineTable: number | null = null;
  const lines = text.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!.trim();
    const header = /^\[{1,2}([^[\]]+)\]{1,2}\s*(?:#.*)?$/.exec(line);
    if (header !== null) {
      table = dotted(header[1]!);
      if (isSamePath(table, path)) return i + 1;
      continue;
    }
    // Cut before it is looked at: a pattern with blanks on both sides takes forever on a line of blanks.
    const key = line.slice(0, Math.max(0, line.indexOf("="))).trim();
    if (!/^[A-Za-z0-9_\-."' \t]+$/.test(key)) continue;
    const full = [...table, ...dotted(key)];
    if (isSamePath(full, path)) return i + 1;
    if (full.length < path.length && isSamePath(full, path.slice(0, full.length))) inlineTable ??= i + 1;
  }
  return inlineTable;
}

function dotted(key: string): string[] {
  return key.split(".").map((part) => part.trim().replace(/^(["'])(.*)\1$/, "$2"));
}

export function isSamePath(a: readonly (string | number)[], b: readonly (string | number)[]): boolean {
  return a.length === b.length && a.every((part, i) => part === b[i]);
}
