import { editDistance } from "../config/nearest";
import { COMMANDS } from "./commands";
import { COMMON_FLAGS } from "./grammar/command";

/** Other names people type, among them those of earlier tools, and what they say besides. */
export const ALIASES: Readonly<
  Record<string, { readonly name: string; readonly flags?: readonly string[] }>
> = {
  "claim evict": { name: "claim force-evict" },
  "lock list": { name: "lock status" },
  ready: { name: "query available" },
  close: { name: "issue update", flags: ["--state", "done", "--release"] },
  "in-progress": { name: "issue update", flags: ["--state", "in_progress"] },
};

/** Names as people see them listed. */
export const LISTED: readonly string[] = Object.keys(COMMANDS).filter((name) => !COMMANDS[name]!.isHidden);

export const GROUPS: readonly string[] = [
  ...new Set(LISTED.filter((c) => c.includes(" ")).map((c) => c.split(" ")[0]!)),
];

/** The name that another name of a command stands for. */
export function canonicalName(name: string): string {
  return Object.hasOwn(ALIASES, name) ? ALIASES[name]!.name : name;
}

/** The command that the first words name, and what is left for it. Common flags may come before it. */
export function findCommand(args: readonly string[]): { name: string; rest: string[] } | null {
  const flags = leadingFlags(args);
  const found = named(args.slice(flags.length));
  return found === null ? null : { name: found.name, rest: [...flags, ...found.rest] };
}

function leadingFlags(args: readonly string[]): string[] {
  let at = 0;
  for (let arg = args[at]; arg?.startsWith("--"); arg = args[at]) {
    const name = arg.slice(2).split("=")[0]!;
    if (!Object.hasOwn(COMMON_FLAGS, name) || name === "help") break;
    at += COMMON_FLAGS[name]!.value === undefined || arg.includes("=") ? 1 : 2;
  }
  return args.slice(0, at);
}

function named(words: readonly string[]): { name: string; rest: string[] } | null {
  const [first = "", second = ""] = words;
  for (const [typed, rest] of [
    [`${first} ${second}`, words.slice(2)],
    [first, words.slice(1)],
  ] as const) {
    if (Object.hasOwn(COMMANDS, typed)) return { name: typed, rest };
    const alias = Object.hasOwn(ALIASES, typed) ? ALIASES[typed]! : null;
    if (alias !== null) return { name: alias.name, rest: [...(alias.flags ?? []), ...rest] };
  }
  if (first === "validate") return validated(words.slice(1));
  // `cotenant claim <id>`, as the seeds have it.
  if (first === "claim" && /^[0-9A-Za-z]{4,26}$/.test(second) && !isMistypedVerb(second))
    return { name: "claim acquire", rest: words.slice(1) };
  return null;
}

/** An id without a digit that is that near to a verb was never seen; `claim acquire` takes it all the same. */
function isMistypedVerb(word: string): boolean {
  const isNear = (name: string) => editDistance(word.toLowerCase(), name.slice("claim ".length), 3) < 3;
  return /^[A-Za-z]{5,}$/.test(word) && LISTED.some((name) => name.startsWith("claim ") && isNear(name));
}

/** `validate --leases`, as the seeds have it. */
function validated(words: readonly string[]): { name: string; rest: string[] } | null {
  const wanted = new Set(words.filter((word) => /^--(?:leases|config|divergence|all)$/.test(word)));
  const [first] = wanted;
  if (first === undefined) return null;
  const what = wanted.size > 1 ? "all" : first.slice(2);
  return { name: `validate ${what}`, rest: words.filter((word) => !wanted.has(word)) };
}
