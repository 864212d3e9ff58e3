import { COMMANDS } from "../commands";
import { COMMON_FLAGS, type Command, type Completes, type Flag } from "../grammar/command";
import { findCommand, GROUPS, LISTED } from "../lookup";

export interface Candidate {
  readonly value: string;
  readonly about: string;
}

export interface Candidates {
  readonly values: readonly Candidate[];
  /** What the shell should add of its own. */
  readonly also: "files" | "directories" | null;
}

const NONE: Candidates = { values: [], also: null };

/** What the last of the words could become. The words are those after the program's name. */
export async function candidatesFor(words: readonly string[]): Promise<Candidates> {
  const current = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const found = findCommand(before);
  const all =
    found === null
      ? await commandNames(before, current)
      : await afterCommand(await COMMANDS[found.name]!.load(), found.rest, current);
  return { ...all, values: all.values.filter(({ value }) => value.startsWith(current)) };
}

async function commandNames(before: readonly string[], current: string): Promise<Candidates> {
  const flag = COMMON_FLAGS[before.at(-1)?.slice(2) ?? ""];
  if (before.at(-1)?.startsWith("--") && flag?.value !== undefined)
    return valuesOf(flag.completes, [], current);
  const words = wordsIn(before);
  const [first, ...rest] = words[0] === "help" ? words.slice(1) : words;
  if (first === undefined)
    return plain([...topNames(words[0] === "help"), ...flagNames(COMMON_FLAGS, current)]);
  if (rest.length > 0 || !GROUPS.includes(first)) return NONE;
  const verbs = LISTED.filter((name) => name.startsWith(`${first} `)).map((name) => ({
    value: name.slice(first.length + 1),
    about: COMMANDS[name]!.summary,
  }));
  const issues = first === "claim" && words[0] !== "help" ? await valuesOf("issue", [], current) : NONE;
  return plain([...verbs, ...issues.values, ...flagNames(COMMON_FLAGS, current)]);
}

function topNames(isHelp: boolean): Candidate[] {
  const loose = LISTED.filter((name) => !name.includes(" "));
  return [
    ...loose.map((name) => ({ value: name, about: COMMANDS[name]!.summary })),
    ...GROUPS.map((group) => ({ value: group, about: `${group} …` })),
    ...(isHelp ? [] : [{ value: "help", about: "help on a command" }]),
  ];
}

/** What is left without flags and their values. */
function wordsIn(args: readonly string[]): string[] {
  const words: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    if (!arg.startsWith("--")) words.push(arg);
    else if (!arg.includes("=") && COMMON_FLAGS[arg.slice(2)]?.value !== undefined) at++;
  }
  return words;
}

async function afterCommand(command: Command, rest: readonly string[], current: string): Promise<Candidates> {
  const flags: Readonly<Record<string, Flag>> = { ...COMMON_FLAGS, ...command.flags };
  const { positionals, open, isOver } = placeIn(rest, flags);
  if (open !== null) return flagValues(open, positionals, current);
  const [name = "", ...value] = current.split("=");
  const joined = current.includes("=") && !isOver ? flags[name.replace(/^--/, "")] : undefined;
  if (joined !== undefined && name.startsWith("--"))
    return prefixed(await flagValues(joined, positionals, value.join("=")), `${name}=`);
  if (current.startsWith("-") && !isOver) return plain(flagNames(flags, current));
  const kinds = command.completes ?? [];
  const kind = kinds[Math.min(positionals.length, kinds.length - 1)];
  if (kind === undefined || positionals.length >= command.words.max) return plain(flagNames(flags, current));
  if (typeof kind === "object") return plain(kind.choices.map((choice) => ({ value: choice, about: "" })));
  return valuesOf(kind, positionals, current);
}

/** Where in a command's arguments the last word stands: its flag, if it is the value of one. */
function placeIn(args: readonly string[], flags: Readonly<Record<string, Flag>>) {
  const positionals: string[] = [];
  let open: Flag | null = null;
  let isOver = false;
  for (const arg of args) {
    if (open !== null) open = null;
    else if (isOver || !arg.startsWith("--")) positionals.push(arg);
    else if (arg === "--") isOver = true;
    else if (!arg.includes("=") && flags[arg.slice(2)]?.value !== undefined) open = flags[arg.slice(2)]!;
  }
  return { positionals, open, isOver };
}

function flagNames(flags: Readonly<Record<string, Flag>>, current: string): Candidate[] {
  if (!current.startsWith("-")) return [];
  return Object.entries(flags)
    .filter(([, flag]) => flag.insteadUse === undefined)
    .map(([name, { meaning }]) => ({ value: `--${name}`, about: meaning }));
}

async function flagValues(flag: Flag, positionals: readonly string[], current: string): Promise<Candidates> {
  if (flag.choices !== undefined) return plain(flag.choices.map((value) => ({ value, about: "" })));
  return valuesOf(flag.completes, positionals, current);
}

async function valuesOf(
  kind: Completes | undefined,
  positionals: readonly string[],
  current: string,
): Promise<Candidates> {
  if (kind === undefined) return NONE;
  if (kind === "path") return { values: [], also: "files" };
  if (kind === "directory") return { values: [], also: "directories" };
  const { namesOf } = await import("./names");
  return { values: await namesOf(kind, positionals, current), also: kind === "lease" ? "files" : null };
}

function plain(values: readonly Candidate[]): Candidates {
  return { values, also: null };
}

function prefixed({ values, also }: Candidates, prefix: string): Candidates {
  return { values: values.map(({ value, about }) => ({ value: prefix + value, about })), also };
}
