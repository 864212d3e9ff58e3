import * as fs from "node:fs";
import * as path from "node:path";
import { parse as parseJson } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import type { Hook } from "./dialect";

type Table = Readonly<Record<string, unknown>>;

/** Hooks of a file with groups of handlers: Claude Code's form, and that of its relatives. */
export function nestedHooks(file: string, how: Reading): Hook[] {
  return eventsIn(file).flatMap(([event, group]) => {
    const handlers = Array.isArray(group["hooks"]) ? (group["hooks"] as Table[]) : [];
    return handlers.flatMap((handler) => hookOf(event, group["matcher"], handler, how));
  });
}

/** Hooks of a file with plain handlers: Cursor's and Copilot's form. */
export function flatHooks(file: string, how: Reading): Hook[] {
  return eventsIn(file).flatMap(([event, handler]) => hookOf(event, handler["matcher"], handler, how));
}

export interface Reading {
  /** How the harness counts a timeout, in milliseconds. */
  readonly unitMs: number;
  readonly timeoutKey: "timeout" | "timeoutSec";
  readonly defaultMs: number;
  readonly commandKey: "command" | "bash";
  readonly isBorrowed?: boolean;
}

function hookOf(event: string, matcher: unknown, handler: Table, how: Reading): Hook[] {
  const line = handler[how.commandKey];
  // Whoever does not know a type passes it over.
  if (typeof line !== "string" || (handler["type"] ?? "command") !== "command") return [];
  const timeout = handler[how.timeoutKey];
  return [
    {
      event,
      matcher: typeof matcher === "string" && matcher !== "" && matcher !== "*" ? matcher : null,
      line,
      args: Array.isArray(handler["args"]) ? (handler["args"] as string[]) : null,
      timeoutMs: typeof timeout === "number" ? timeout * how.unitMs : how.defaultMs,
      failsClosed: handler["failClosed"] === true,
      isBorrowed: how.isBorrowed ?? false,
    },
  ];
}

function eventsIn(file: string): [string, Table][] {
  const hooks = (documentIn(file)["hooks"] ?? {}) as Record<string, unknown>;
  return Object.entries(hooks).flatMap(([event, list]) =>
    Array.isArray(list) ? (list as Table[]).map((item): [string, Table] => [event, item]) : [],
  );
}

function documentIn(file: string): Table {
  if (!fs.existsSync(file)) return {};
  const text = fs.readFileSync(file, "utf8").replace(/^\uFEFF/, "");
  return (file.endsWith(".toml") ? parseToml(text) : (parseJson(text) ?? {})) as Table;
}

export function jsonFilesIn(directory: string): string[] {
  if (!fs.existsSync(directory)) return [];
  return fs
    .readdirSync(directory)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((name) => path.join(directory, name));
}
