import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { printable } from "../kernel/ids";
import { COMMANDS } from "./commands";
import { COMMON_FLAGS, type Command, type Flag, type Tell } from "./grammar/command";
import { usage } from "./grammar/parse";
import { version } from "./grammar/version";
import { canonicalName, GROUPS, LISTED } from "./lookup";
import { suggestionFor } from "./suggestions";

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
    tell(commandHelp(await COMMANDS[wanted]!.load(), wanted));
    return 0;
  }
  const asksForHelp = words[0] === "help" || args.includes("--help");
  if (first !== undefined && GROUPS.includes(first) && second === undefined) {
    if (!asksForHelp && args.includes("--json"))
      throw usage(`"${first}" needs a verb`, `cotenant help ${first}`);
    tell(groupHelp(first));
    return asksForHelp ? 0 : 64;
  }
  const isGroup = first !== undefined && GROUPS.includes(first);
  if (isGroup && second === "help") {
    tell(groupHelp(first));
    return 0;
  }
  const near = suggestionFor(wanted);
  throw usage(
    `there is no command "${printable(wanted)}"${near === null ? "" : `; ${near}`}`,
    isGroup ? `cotenant help ${first}` : "cotenant help",
  );
}

const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["claim <id>", "claim acquire <id>"],
  ["in-progress <id>", "issue update <id> --state in_progress"],
  ["close <id>", "issue update <id> --state done --release"],
  ["ready", "query available"],
];

function overview(): string {
  const loose = LISTED.filter((name) => !name.includes(" ") && !GROUPS.includes(name));
  const rows = [
    ...loose.map((name) => [name, COMMANDS[name]!.summary] as const),
    ...GROUPS.flatMap((group) => [
      [group, purposeOf(group)] as const,
      ["", verbsOf(group).join(" ")] as const,
    ]),
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

/** What a group of commands is for. */
const PURPOSES: Readonly<Record<string, string>> = {
  claim: "who works on which issue",
  lock: "who may change which files, directories, resources and refs",
  worktree: "worktrees for branches and issues, and who writes in them",
  issue: "work to be done, as files in the repository",
  dep: "which issue needs which",
  label: "labels of issues",
  gate: "what an issue must pass before it is done",
  doc: "files that belong to an issue",
  query: "lists of issues: what is ready, blocked, closed",
  graph: "how issues depend on each other",
  config: "settings, and where each comes from",
  daemon: "renews leases of living sessions, answers hooks; nothing needs it",
  land: "a merge queue: branches onto their target, checked, in order",
  validate: "checks that pass or fail, for scripts and CI",
  guard: "what coding agents' hooks ask before each write",
  hooks: "Git hooks that check commits and pushes",
  agent: "has coding agents ask before each write",
};

function purposeOf(group: string): string {
  return PURPOSES[group] ?? COMMANDS[group]!.summary;
}

/** The pages of docs/, with the groups and commands that each is about. */
const PAGES: Readonly<Record<string, readonly string[]>> = {
  CONFIGURATION: ["init", "config", "trust"],
  TROUBLESHOOTING: ["deinit", "doctor", "info", "recover", "gc", "version"],
  WATCHING: ["status", "events", "stats", "completion"],
  COORDINATION: [
    "pause",
    "resume",
    "claim transfer",
    "claim force-evict",
    "claim approve",
    "claim proposals",
    "lock steal",
  ],
  ISSUES: ["claim", "issue", "dep", "label", "gate", "doc", "query", "search", "graph"],
  LAND: ["land"],
  DISPATCH: ["dispatch"],
  LEDGER: ["sync"],
  PLAYBOOK: ["lock"],
  WORKTREES: ["worktree"],
  SNAPSHOTS: ["snapshot", "history", "restore"],
  DAEMON: ["daemon"],
  HOOKS: ["validate", "hooks"],
  AGENTS: ["agent", "guard"],
  PUBLISH: ["publish"],
  EXEC: ["exec"],
  GUARANTEES: ["demo"],
};

/** Null for what only programs of ours run. */
export function pageOf(name: string): string | null {
  const about = (subject: string) => Object.keys(PAGES).find((page) => PAGES[page]!.includes(subject));
  const page = about(name) ?? about(name.split(" ")[0]!);
  return page === undefined ? null : `docs/${page}.md`;
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
    `${group}: ${purposeOf(group)}`,
    "",
    ...table(rows),
    "",
    `See 'cotenant ${group} <verb> --help', and ${pageOf(group)}.`,
    "",
  ].join("\n");
}

export function verbsOf(group: string): string[] {
  return LISTED.filter((name) => name.startsWith(`${group} `)).map((name) => name.slice(group.length + 1));
}

export function commandHelp(command: Command, name: string): string {
  const page = pageOf(name);
  const verbs = GROUPS.includes(name) ? verbsOf(name).map((verb) => `cotenant ${name} ${verb}`) : [];
  const own = ownFlags(command);
  return [
    command.usage === undefined ? usageLine(command, name) : `usage: cotenant ${command.usage}`,
    "",
    command.about,
    "",
    ...(own.length === 0 ? [] : ["options:", ...table(own.map(flagRow)), ""]),
    "options of every command:",
    ...table(Object.entries(COMMON_FLAGS).map(flagRow)),
    "",
    ...(command.examples.length === 1 ? ["example:"] : ["examples:"]),
    // What a test expects of one is nothing to type.
    ...command.examples.map((example) => `  ${example.replace(/\s+# exits \d+$/, "")}`),
    ...(verbs.length === 0 && page === null ? [] : [""]),
    ...(verbs.length === 0 ? [] : [`see also: ${verbs.join(", ")}`]),
    ...(page === null ? [] : [`more: ${page}`]),
    "",
  ].join("\n");
}

function ownFlags({ flags }: Command): (readonly [string, Flag])[] {
  return Object.entries(flags).filter(([, flag]) => flag.insteadUse === undefined);
}

const USAGE_WIDTH = 95;
/** Most commands take them, and mostly programs use them. */
const UNMENTIONED = ["request-id", "secret-file"];

/** What must be written, and as many options as fit on the line. */
function usageLine(command: Command, name: string): string {
  const flags = ownFlags(command);
  const optional = flags.filter(([, { isRequired }]) => isRequired !== true);
  const required = flags.filter((flag) => !optional.includes(flag)).map(flagWord);
  const positional = command.positional === undefined ? [] : [command.positional];
  let line = ["usage: cotenant", name, ...positional, ...required].join(" ");
  const mentioned = optional.filter(([flag]) => !UNMENTIONED.includes(flag));
  for (const flag of mentioned) {
    const longer = `${line} [${flagWord(flag)}]${flag[1].many === true ? "…" : ""}`;
    if (longer.length > USAGE_WIDTH) return `${line} [options]`;
    line = longer;
  }
  return mentioned.length === optional.length ? line : `${line} [options]`;
}

function flagWord([name, { value }]: readonly [string, Flag]): string {
  return `--${name}${value === undefined ? "" : ` ${value}`}`;
}

function flagRow(flag: readonly [string, Flag]): readonly [string, string] {
  return [flagWord(flag), `${flag[1].meaning}${flag[1].many === true ? " (may be repeated)" : ""}`];
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
