import { COMMANDS } from "../../src/cli/commands";
import { COMMON_FLAGS } from "../../src/cli/grammar/command";
import { parseCommandLine } from "../../src/cli/grammar/parse";
import { findCommand } from "../../src/cli/lookup";

/** Words that stand for something: in help texts, in hints, and what a template fills in. */
const STANDS_FOR_MORE = /^(?:…|\.\.\.|\[.*\])$/;

/** In place of what a template fills in. */
export const FILLED_IN = "XXXX";
const GROUPS = new Set(Object.keys(COMMANDS).map((name) => name.split(" ")[0]!));
/** Not commands: what introduces a message of ours, and the program's name in a sentence. */
const LABELS = /^(?:help|-h|--help|--version|tree|manifest|pre-(?:commit|push|receive))$/;

export interface Shown {
  readonly line: string;
  /** In quotes, or after a colon: somebody is told to run it. In the middle of a sentence it may be anything. */
  readonly isMarked: boolean;
}

/** Command lines of ours that a text shows. */
export function linesIn(text: string): Shown[] {
  const found: Shown[] = [];
  for (const match of text.matchAll(/(.{0,3})\bcotenant (?=[a-z-])/g)) {
    const before = match[1]!;
    // A usage line says what there could be, and the marks of our lines in a hook are none: neither is to be typed.
    if (/[\w/.-]$/.test(before) || /(?:usage: |# >>> )$/.test(text.slice(0, match.index + before.length)))
      continue;
    const rest = text.slice(match.index + match[0].length);
    const quote = /['`"“]$/.exec(before)?.[0];
    const end =
      quote === undefined
        ? /[\n;`]|, (?:or|then|and)\b|\.(?:\s|$)|[,)](?:["'\s]|$)| \(| {2,}|$/.exec(rest)!.index
        : closing(rest, quote === "“" ? "”" : quote);
    const line = rest.slice(0, end).trim();
    const isTold = /: $/.test(before) && GROUPS.has(line.split(" ")[0]!);
    found.push({ line, isMarked: quote !== undefined || isTold });
  }
  return found;
}

/** A quoted line may have quotes of the other kind in it. */
function closing(text: string, quote: string): number {
  const at = text.indexOf(quote);
  return at === -1 ? text.length : at;
}

/** As a shell would. */
export function shellWords(line: string): string[] {
  const words = [...line.matchAll(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g)].map(([word]) => word);
  const end = words.findIndex((word) => /^(?:\||&&|\|\||>|<|2>|#|&)/.test(word) && !/^<[^>]+>$/.test(word));
  // What stands in quotes is a value, also an ellipsis.
  const bare = (word: string) => (/^["'][….]+["']$/.test(word) ? "text" : word.replace(/["']/g, ""));
  return words.slice(0, end === -1 ? undefined : end).map(bare);
}

/** Why a line cannot be run as it stands; null where it can. */
export async function wrongWith({ line, isMarked }: Shown): Promise<string | null> {
  const words = shellWords(line);
  const [first = "", second = ""] = words;
  if (LABELS.test(first) || /\[[-<]/.test(line) || /^<.*>$/.test(second)) return null;
  const found = findCommand(words);
  if (found === null) {
    const isNamed =
      GROUPS.has(first) && (second === "" || STANDS_FOR_MORE.test(second) || second === "--help");
    const isFilledIn = second.includes(FILLED_IN) && GROUPS.has(first);
    return isMarked && !isNamed && !isFilledIn ? `there is no command "${first} ${second}"` : null;
  }
  const command = await COMMANDS[found.name]!.load();
  const isPartial = found.rest.length === 0 || found.rest.some((word) => STANDS_FOR_MORE.test(word));
  const rest = found.rest.filter((word) => !STANDS_FOR_MORE.test(word));
  try {
    const prepared = command.prepare?.(rest) ?? rest;
    parseCommandLine(found.name, prepared, command.flags, {
      min: isPartial || !isMarked ? 0 : command.words.min,
      max: isMarked ? command.words.max : Number.POSITIVE_INFINITY,
    });
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

export async function wrongLinesIn(text: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const shown of linesIn(text)) {
    const why = await wrongWith(shown);
    if (why !== null) wrong.push(`cotenant ${shown.line}: ${why}`);
  }
  return wrong;
}

/** Options that a hint names for the command that was run, and that it does not have. */
export async function optionsMissing(args: readonly string[], hint: string): Promise<string[]> {
  const found = findCommand(args);
  if (found === null) return [];
  const command = await COMMANDS[found.name]!.load();
  const known = { ...COMMON_FLAGS, ...command.flags };
  const rest = hint.replace(/\b(?:cotenant|git|npm|npx|chmod|node) (?:[^;'`()]|\([^)]*\))*/g, "");
  const named = [...rest.matchAll(/(?<![\w-])--([a-z][a-z-]+)/g)].map(([, name]) => name!);
  return named.filter((name) => !Object.hasOwn(known, name)).map((name) => `--${name}`);
}

/** What is wrong with the hints that a command printed: every line of ours that it shows parses, and its options are its own. */
export async function wrongHintsIn(
  args: readonly string[] | null,
  { stdout, stderr }: { readonly stdout: string; readonly stderr: string },
): Promise<string[]> {
  const documents = stdout.split("\n").flatMap(documentIn);
  const texts = documents.length > 0 ? documents.flatMap((document) => hintsIn(document)) : [stdout];
  const wrong: string[] = [];
  for (const text of [...texts, stderr]) wrong.push(...(await wrongLinesIn(text)), ...doubledIn(text));
  if (args === null) return wrong;
  const told = /^cotenant: .* \(E_[A-Z_]+\)\n {2}next: (.*)$/m.exec(stderr)?.[1];
  const hints = documents.flatMap(
    (document) => (document as { error?: { hint?: string } }).error?.hint ?? [],
  );
  for (const hint of [...hints, ...(told === undefined ? [] : [told])])
    for (const option of await optionsMissing(args, hint))
      wrong.push(`${option} is no option of this command: ${hint}`);
  return wrong;
}

function documentIn(line: string): object[] {
  try {
    const document: unknown = JSON.parse(line);
    return typeof document === "object" && document !== null ? [document] : [];
  } catch {
    return [];
  }
}

/** What a document says to people: not what it has from files and issues. */
function hintsIn(value: unknown, key = ""): string[] {
  if (typeof value === "string") return ["hint", "next", "warnings", "message"].includes(key) ? [value] : [];
  if (Array.isArray(value)) return value.flatMap((entry) => hintsIn(entry, key));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, entry]) => hintsIn(entry, name));
}

/** Something that is said twice in a row, as where a message is put into another one that says the same. */
export function doubledIn(text: string): string[] {
  const found = [...text.matchAll(/(?<![\w/])([A-Za-z][\w ,'-]{9,80}?\w)(?:[:;,.] | \(|: "|, )\1(?!\w)/g)];
  return found
    .map(([doubled, phrase]) => (phrase!.includes(" ") ? `twice: ${doubled}` : ""))
    .filter((one) => one !== "");
}
