import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { nearest } from "../config/nearest";
import { printable } from "../kernel/ids";
import { COMMON_FLAGS, type Command, type Flag, type Tell } from "./command";
import { ALIASES, COMMANDS, canonicalName, GROUPS, LISTED } from "./commands";
import { usage } from "./parse";

/** `cotenant`, `cotenant help [command]`, `cotenant claim`, and whatever is not a command. */
export async function answerWithoutCommand(args: readonly string[], tell: Tell): Promise<number> {
  const words = args.filter((arg) => !arg.startsWith("-"));
  const [first, second] = words[0] === "help" ? words.slice(1) : words;
  if (args.includes("--version") && first === undefined) {
    tell(`cotenant ${version()}\n`, { cotenant: version() });
    return 0;
  }
  const wanted = canonicalName([first, second].filter((word) => word !== undefined).join(" "));
  if (wanted === "") {
    tell(overview());
    return 0;
  }
  if (Object.hasOwn(COMMANDS, wanted)) {
    tell(commandHelp((await COMMANDS[wanted]!.load()).command));
    return 0;
  }
  const asksForHelp = words[0] === "help" || args.includes("--help");
  if (first !== undefined && GROUPS.includes(first) && second === undefined) {
    if (!asksForHelp && args.includes("--json"))
      throw usage(`"${first}" needs a verb`, `cotenant help ${first}`);
    tell(groupHelp(first));
    return asksForHelp ? 0 : 64;
  }
  const near = nearest(wanted, [...LISTED, ...Object.keys(ALIASES)]);
  throw usage(
    `there is no command "${printable(wanted)}"${near === null ? "" : `; did you mean "${near}"?`}`,
    "cotenant help",
  );
}

const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["claim <id>", "claim acquire <id>"],
  ["in-progress <id>", "issue update <id> --state in_progress"],
  ["close <id>", "issue update <id> --state done --release"],
  ["ready", "query available"],
];

function overview(): string {
  const loose = LISTED.filter((name) => !name.includes(" "));
  const rows = [
    ...loose.map((name) => [name, COMMANDS[name]!.summary] as const),
    ...GROUPS.map((group) => [group, verbsOf(group).join(" ")] as const),
  ];
  return [
    "cotenant: leases for many agents and people in one Git repository",
    "",
    "usage: cotenant <command> [options]",
    "",
    ...table(rows),
    "",
    "in short:",
    ...table(SHORTCUTS).map((row) => `  ${row}`),
    "",
    "Every command has --help with examples, and --json for programs.",
    ...documents(),
    "",
  ].join("\n");
}

/** Where the pages that messages name are, in a checkout and in the package. */
function documents(): string[] {
  const program = process.argv[1];
  if (program === undefined || !existsSync(program)) return [];
  const pages = join(dirname(realpathSync(program)), "../docs");
  return existsSync(join(pages, "HOOKS.md"))
    ? [`Messages name pages such as docs/HOOKS.md: they are in ${pages}.`]
    : [];
}

function groupHelp(group: string): string {
  const rows = verbsOf(group).map((verb) => [verb, COMMANDS[`${group} ${verb}`]!.summary] as const);
  return [
    `usage: cotenant ${group} <verb> [options]`,
    "",
    ...table(rows),
    "",
    `See 'cotenant ${group} <verb> --help'.`,
    "",
  ].join("\n");
}

export function verbsOf(group: string): string[] {
  return LISTED.filter((name) => name.startsWith(`${group} `)).map((name) => name.slice(group.length + 1));
}

export function commandHelp(command: Command): string {
  const own = Object.entries(command.flags).filter(([, flag]) => flag.insteadUse === undefined);
  return [
    `usage: cotenant ${command.usage}`,
    "",
    command.about,
    "",
    ...(own.length === 0 ? [] : ["options:", ...table(own.map(flagRow)), ""]),
    "options of every command:",
    ...table(Object.entries(COMMON_FLAGS).map(flagRow)),
    "",
    ...(command.examples.length === 1 ? ["example:"] : ["examples:"]),
    ...command.examples.map((example) => `  ${example}`),
    "",
  ].join("\n");
}

function flagRow([name, flag]: readonly [string, Flag]): readonly [string, string] {
  return [
    `--${name}${flag.value === undefined ? "" : ` ${flag.value}`}`,
    `${flag.meaning}${flag.many === true ? " (may be repeated)" : ""}`,
  ];
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}

declare const __COTENANT_VERSION__: string | undefined;

export function version(): string {
  return typeof __COTENANT_VERSION__ === "undefined" ? "0.0.0-source" : __COTENANT_VERSION__;
}
