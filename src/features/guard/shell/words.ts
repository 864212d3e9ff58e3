import type { CommandExpansionPart, Function as ShellFunction, Word, WordPart } from "unbash";

/**
 * Everything that a word may stand for, as far as that can be told without running anything; null where it cannot.
 * Characters that are still to be matched against file names are kept apart from those that were quoted.
 */
export type Value = readonly string[] | null;

/** Stand-ins for pattern characters, from the range that no file name has any business in. */
export const STAR = "\ue000";
export const ONE = "\ue001";
export const SET_OPEN = "\ue002";
export const SET_CLOSE = "\ue003";

export interface Scope {
  readonly home: string | null;
  /** The root of the worktree in which the command starts, where it is of interest. */
  readonly root: string | null;
  /** Where the shell stands; null once that cannot be told any more. */
  cwd: string | null;
  /** Where it stood before the last `cd`. */
  before: string | null;
  /** Of `pushd`, the last one first. */
  stack: readonly (string | null)[];
  readonly variables: Map<string, Value>;
  readonly functions: Map<string, FunctionBody>;
}

export type FunctionBody = ShellFunction["body"];

/** For what may or may not run, or runs on its own. */
export function copyOf(scope: Scope): Scope {
  return { ...scope, variables: new Map(scope.variables), functions: new Map(scope.functions) };
}

/** More than this many readings of one word tell nobody anything. */
const MOST_VALUES = 64;

export function readingsOf(word: Word, scope: Scope): Value {
  const { parts } = word;
  return parts === undefined ? [tilde(word.value, word.text, scope)] : joined(parts, scope, true);
}

function readingsOfPart(part: WordPart, scope: Scope, isFirst: boolean): Value {
  switch (part.type) {
    case "Literal":
      return [isFirst ? tilde(part.value, part.text, scope) : part.value];
    case "SingleQuoted":
    case "AnsiCQuoted":
      return [part.value];
    case "DoubleQuoted":
    case "LocaleString":
      return joined(part.parts, scope, false);
    case "Glob":
      if (part.kind === "star") return [STAR];
      if (part.kind === "question") return [ONE];
      return [SET_OPEN + part.text.slice(1, -1) + SET_CLOSE];
    case "SimpleExpansion":
      return variable(part.text.slice(1), scope);
    case "ParameterExpansion":
      return part.operation === undefined && part.prefix === undefined && part.index === undefined
        ? variable(part.parameter, scope)
        : null;
    case "BraceExpansion":
      return braces(part.text);
    case "ProcessSubstitution":
      // A pipe; what is at its other end is read where it stands.
      return ["/dev/fd/63"];
    case "CommandExpansion":
      return substituted(part, scope);
    default:
      return null;
  }
}

function joined(parts: readonly WordPart[], scope: Scope, isWord: boolean): Value {
  let values: readonly string[] = [""];
  for (const [at, part] of parts.entries()) {
    const read = readingsOfPart(part, scope, isWord && at === 0);
    if (read === null) return null;
    values = values.flatMap((start) => read.map((end) => start + end));
    if (values.length > MOST_VALUES) return null;
  }
  return values;
}

function variable(name: string, { variables, home, cwd, before }: Scope): Value {
  const known = variables.get(name);
  if (known !== undefined) return known;
  if (name === "HOME" && home !== null) return [home];
  if (name === "OLDPWD") return before === null ? null : [before];
  return name === "PWD" && cwd !== null ? [cwd] : null;
}

/** A few commands whose answer is known without running them: where one stands, and a new file that nobody else has. */
function substituted({ script }: CommandExpansionPart, { cwd, root }: Scope): Value {
  const command = script?.commands.length === 1 ? script.commands[0]!.command : undefined;
  if (command?.type !== "Command" || command.prefix.length > 0 || command.redirects.length > 0) return null;
  const words = [command.name, ...command.args].map((word) =>
    word?.type === "Word" && word.parts === undefined ? word.value : null,
  );
  if (cwd !== null && words.length === 1 && words[0] === "pwd") return [cwd];
  if (words.join(" ") === "git rev-parse --show-toplevel" && root !== null)
    return cwd !== null && `${cwd}/`.startsWith(`${root}/`) && !cwd.includes("/..") ? [root] : null;
  const isNewFile = words[0] === "mktemp" && words.slice(1).every((word) => /^-[dqu]+$/.test(word ?? ""));
  return isNewFile ? [NEW_FILE] : null;
}

/** Its name is chosen by the system, where no worktree is. */
const NEW_FILE = "/tmp/tmp.XXXXXXXXXX";

function tilde(value: string, text: string, { home }: Scope): string {
  if (home === null || !text.startsWith("~")) return value;
  return value === "~" || value.startsWith("~/") ? home + value.slice(1) : value;
}

/** `{a,b}` and `{1..3}`; anything inside which is more than plain text is not read. */
function braces(text: string): Value {
  const inner = text.slice(1, -1);
  if (/[{}$`"'\\*?[\]]/.test(inner)) return null;
  if (inner.includes(",")) return inner.split(",");
  const range = /^(-?\d+)\.\.(-?\d+)$/.exec(inner);
  if (range === null) return null;
  const [from, to] = [Number(range[1]), Number(range[2])];
  if (Math.abs(to - from) >= MOST_VALUES) return null;
  const step = from <= to ? 1 : -1;
  return Array.from({ length: Math.abs(to - from) + 1 }, (_, i) => String(from + i * step));
}

/** The one thing that a word stands for; null where there are several, or none that is known. */
export function singleOf(value: Value): string | null {
  return value?.length === 1 && !hasPattern(value[0]!) ? value[0]! : null;
}

export function hasPattern(text: string): boolean {
  return /[\ue000-\ue003]/.test(text);
}
