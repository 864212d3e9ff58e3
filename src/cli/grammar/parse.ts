import { parseArgs } from "node:util";
import { nearest } from "../../config/nearest";
import { CotenantError, usageError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { COMMON_FLAGS, type Command, type Flag, type Parsed } from "./command";

/** Reads a command's arguments by its own table of flags. Whatever is not in it is a usage error. */
export function parseCommandLine(
  name: string,
  args: readonly string[],
  flags: Readonly<Record<string, Flag>>,
  words: Command["words"],
): Parsed {
  const known: Record<string, Flag> = { ...COMMON_FLAGS, ...flags };
  const options = Object.fromEntries(
    Object.entries(known).map(([flag, { value, many }]) => [
      flag,
      { type: value === undefined ? ("boolean" as const) : ("string" as const), multiple: many === true },
    ]),
  );
  const { values, positionals } = read(name, joinNegatives(args, known), known, options, words);
  const help = `cotenant ${name} --help`;
  if (values["help"] !== true && positionals.length < words.min) {
    throw usage(
      `'${name}' needs ${words.what ?? (words.min === 1 ? "something to work on" : `${words.min} arguments`)}`,
      help,
    );
  }
  const behind = Math.max(0, args.length - endOfFlags(args) - 1);
  const most = words.behindDashes === true ? 0 : words.max;
  if (values["help"] !== true && positionals.length - (words.behindDashes === true ? behind : 0) > most) {
    const { code, message, hint } = usage(
      `'${name}' does not know what to do with "${printable(positionals[most]!)}"`,
      help,
    );
    throw new CotenantError(code, message, { hint: elsewhere(words, hint) });
  }
  const text = (flag: string) => values[flag] as string | undefined;
  return {
    words: positionals,
    text,
    texts: (flag) => (values[flag] as string[] | undefined) ?? [],
    has: (flag) => values[flag] === true,
    whole: (flag) => wholeNumber(flag, text(flag), known[flag]?.value === "<secs>", help),
  };
}

function elsewhere({ instead }: Command["words"], help: string): string {
  return instead === undefined ? help : `${instead}; ${help}`;
}

/** Where the flags end: what follows `--` is none, whatever it looks like. */
export function endOfFlags(args: readonly string[]): number {
  return args.includes("--") ? args.indexOf("--") : args.length;
}

/** `--ttl -1` means the number and not a flag: then the message can say what is wrong with it. */
function joinNegatives(args: readonly string[], known: Readonly<Record<string, Flag>>): string[] {
  const end = endOfFlags(args);
  const joined: string[] = [];
  for (const arg of args.slice(0, end)) {
    const before = joined.at(-1) ?? "";
    const takesValue = before.startsWith("--") && Object.hasOwn(known, before.slice(2));
    if (/^-\d/.test(arg) && takesValue && known[before.slice(2)]!.value !== undefined)
      joined[joined.length - 1] = `${before}=${arg}`;
    else joined.push(arg);
  }
  return [...joined, ...args.slice(end)];
}

function read(
  name: string,
  args: readonly string[],
  known: Readonly<Record<string, Flag>>,
  options: Record<string, { type: "boolean" | "string"; multiple: boolean }>,
  words: Command["words"],
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw explain(name, args, known, words, error as Error & { code?: string });
  }
}

function explain(
  name: string,
  args: readonly string[],
  known: Readonly<Record<string, Flag>>,
  words: Command["words"],
  error: Error & { code?: string },
): CotenantError {
  const help = `see 'cotenant ${name} --help'`;
  if (error.code === "ERR_PARSE_ARGS_UNKNOWN_OPTION") {
    const typed = args.find(
      (arg) => arg.startsWith("-") && !Object.hasOwn(known, arg.replace(/^--?/, "").split("=")[0]!),
    );
    const flag = (typed ?? "").split("=")[0]!;
    // One letter is near to anything that is short.
    const near = /^-.$/.test(flag) ? null : nearest(flag.replace(/^--?/, ""), Object.keys(known));
    const other = words.behindDashes === true ? elsewhere(words, help) : help;
    const hint = near === null ? other : `did you mean --${near}? ${help}`;
    return new CotenantError("E_USAGE", `'${name}' has no option "${printable(flag)}"`, { hint });
  }
  const flag = /'(?:-\w, )?--([\w-]+)/.exec(error.message)?.[1];
  if (flag !== undefined && known[flag]?.value !== undefined) {
    return usageError(`--${flag} needs a value`, `write --${flag}=${known[flag].value}; ${help}`);
  }
  if (flag !== undefined)
    return new CotenantError("E_USAGE", `--${flag} does not take a value`, { hint: help });
  return new CotenantError("E_USAGE", printable(error.message.split("\n")[0]!, 300), { hint: help });
}

function wholeNumber(
  flag: string,
  text: string | undefined,
  isSeconds: boolean,
  help: string,
): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const what = isSeconds ? "a whole number of seconds" : "a whole number";
  throw usage(`--${flag} takes ${what}, not "${printable(text)}"`, help);
}

const MOST_SAID = 1_000;

/** Such messages repeat words of the command line, whatever is in them. */
export function usage(message: string, help?: string): CotenantError {
  return new CotenantError("E_USAGE", printable(message, MOST_SAID), { hint: help && `see '${help}'` });
}
