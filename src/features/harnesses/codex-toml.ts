import { HARNESSES, STATUS_MESSAGE } from "../guard/harness";
import type { Program } from "../installer/files";
import { type Block, blockIn, withBlock } from "../installer/text-block";
import { callsUs, daemonIn, lineFor, programIn, type Via } from "./command-line";
import { tomlTable } from "./settings-layers";

const NAME = "agents";
export const REMARK = "by 'cotenant agent install'; 'cotenant agent uninstall' takes it out";

/** Codex's hooks as tables of its configuration file. */
export function tomlLines(program: Program, via: Via = null): string[] {
  return HARNESSES.codex.events.flatMap((event) => {
    const line = lineFor(program, "codex", event, via);
    return [
      `[[hooks.${event.name}]]`,
      ...(event.matcher === null ? [] : [`matcher = ${JSON.stringify(event.matcher)}`]),
      `[[hooks.${event.name}.hooks]]`,
      'type = "command"',
      `command = ${JSON.stringify(line)}`,
      `timeout = ${event.timeoutSecs}`,
      ...(event.moment === "before" ? [`statusMessage = ${JSON.stringify(STATUS_MESSAGE)}`] : []),
    ];
  });
}

export function tomlBlock(text: string): Block | "damaged" | null {
  return blockIn(text, NAME);
}

/** The file with our tables, or why it cannot have them. */
export function placedInToml(
  text: string | null,
  program: Program,
  via: Via = null,
): { text: string } | { why: string } {
  const after = withBlock(text, NAME, tomlLines(program, via), REMARK);
  if (tomlTable(text ?? "") === null) return { why: "it is no TOML" };
  if (tomlTable(after) === null)
    return { why: "its hooks are written as inline tables, to which nothing can be added" };
  return { text: after };
}

/** Whether somebody keeps hooks there: Codex wants them in one file of two. */
export function hasTomlHooks(text: string): boolean {
  const hooks = hooksOf(text);
  return hooks !== null && Object.keys(hooks).some((name) => name !== "state");
}

/** Calls of ours, whoever wrote them. */
export function linesInToml(text: string): string[] {
  const lines: string[] = [];
  const look = (value: unknown): void => {
    if (typeof value === "string" && callsUs(value)) lines.push(value);
    else if (typeof value === "object" && value !== null) for (const one of Object.values(value)) look(one);
  };
  look(hooksOf(text));
  return lines;
}

export function programInToml(text: string): Program {
  const [first] = linesInToml(text);
  return first === undefined ? null : programIn(first);
}

export function viaInToml(text: string): Via {
  const [first] = linesInToml(text);
  const daemon = first === undefined ? null : daemonIn(first);
  return daemon === null ? null : { daemon, http: null };
}

function hooksOf(text: string): Record<string, unknown> | null {
  const hooks = tomlTable(text)?.["hooks"];
  return typeof hooks === "object" && hooks !== null && !Array.isArray(hooks)
    ? (hooks as Record<string, unknown>)
    : null;
}
