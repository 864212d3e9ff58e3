import { SHELL_QUOTED, shellQuoted, shellUnquoted } from "../../../kernel/printing";
import { binaryOf } from "../../../platform/binary-text";
import type { Program } from "../../installer/files";
import { END, stagedArguments } from "../changes";

/** Hooks of a clone, in the order in which Git runs them. */
export const CLIENT_HOOKS = ["pre-commit", "prepare-commit-msg", "post-commit", "pre-push"] as const;
/** Hooks of a repository that others push to. */
export const SERVER_HOOKS = ["pre-receive"] as const;

export type InstalledHook = (typeof CLIENT_HOOKS)[number] | (typeof SERVER_HOOKS)[number];

export const ALL_HOOKS: readonly InstalledHook[] = [...CLIENT_HOOKS, ...SERVER_HOOKS];

/** What each looks at, for people. */
export const MEANINGS: Readonly<Record<InstalledHook, string>> = {
  "pre-commit": "refuses what somebody else holds",
  "prepare-commit-msg": "says in the message which claims it rests on",
  "post-commit": "puts on record what went around the hooks",
  "pre-push": "looks at every commit again before it leaves",
  "pre-receive": "checks what others push here",
};

/** How our lines came into a file, as their first line says: what it takes to undo it. */
export interface Style {
  /**
   * `own`: we made the file. `guest`: our lines are in somebody else's shell script. `around`: the file is ours, and theirs
   * is kept beside it. `above`: the same, one directory further down, for programs that look at the name they are called by.
   * `entry`: a command in a manager's configuration.
   */
  readonly place: "own" | "guest" | "around" | "above" | "entry";
  /** The directory was not there before. */
  readonly madeDirectory?: boolean;
  /** The script runs itself again, with this variable set: the second time is not for us. */
  readonly skipsWhenSet?: string;
}

/** Our lines in a file. All of it is in binary text, as in `bytes.ts`. */
export interface Block {
  readonly hook: InstalledHook;
  readonly style: Style;
  readonly before: string;
  readonly text: string;
  readonly after: string;
  /** The line before it had no end, so that ours has none instead. */
  readonly isEndless: boolean;
}

export const CANARY = "--cotenant-canary";
const BEGIN = /^# >>> cotenant hook ([a-z-]+) \(([a-z, =_]*)\) >>>.*$/m;
const BEGIN_LIKE = /^# >>> cotenant hook /m;
const BEGIN_ALL = new RegExp(BEGIN.source, "gm");
const PLACES = ["own", "guest", "around", "above", "entry"] as const;
const SHEBANG = "#!/bin/sh\n";
const SHELL =
  /^#![ \t]*(?:\S*[/\\])?(?:env(?:[ \t]+-\S+)*[ \t]+)?(?:\S*[/\\])?(?:sh|bash|dash|ash|ksh|mksh|zsh)(?:\.exe)?[ \t\r]*(?:$|[ \t])/;

/** The name under which somebody else's hook is kept, as seen from the directory of hooks. */
export function keptName(hook: InstalledHook, place: "around" | "above"): string {
  return place === "around" ? `${hook}.before-cotenant` : `before-cotenant/${hook}`;
}

/** A program that is missing, or that does not know this hook, refuses nobody. */
export const OR_REFUSE = "case $? in 64 | 126 | 127) ;; *) exit 1 ;; esac";

/** Whoever pushes to a server cannot look at it: what nobody has checked does not come in. */
const AND_SAY_SO =
  "{ case $? in 64 | 126 | 127) echo 'cotenant pre-receive (layer 4): cannot tell, and so refuses: cotenant is missing on the server, or too old' >&2 ;; esac; exit 1; }";

export function blockText(hook: InstalledHook, style: Style, program: Program): string {
  return marked(hook, style, [
    ...runFunction(program, FROM_GIT),
    `if [ "\${1-}" = ${CANARY} ]; then cotenant_run version; exit $?; fi`,
    ...guarded(style, body(hook, style)),
  ]);
}

/** Lines of ours between their two marks. */
export function marked(hook: InstalledHook, style: Style, lines: readonly string[]): string {
  const all = [
    `# >>> cotenant hook ${hook} (${attributes(style)}) >>> by 'cotenant hooks install'; 'cotenant hooks uninstall' takes it out`,
    ...lines,
    `# <<< cotenant hook ${hook} <<<`,
  ];
  return binaryOf(`${all.join("\n")}\n`);
}

function attributes({ place, madeDirectory, skipsWhenSet }: Style): string {
  return [
    place,
    ...(madeDirectory ? ["directory"] : []),
    ...(skipsWhenSet ? [`unless=${skipsWhenSet}`] : []),
  ].join(", ");
}

/** Our parent runs all the hooks of one commit: what one of them found out, the next one need not ask again. */
const FROM_GIT = "COTENANT_GIT_PID=$PPID ";

/** The installation first: a program with a window may not have our PATH. */
export function runFunction(program: Program, variables: string): string[] {
  const onPath = `command -v cotenant >/dev/null 2>&1; then ${variables}cotenant`;
  const otherwise = "  else return 127; fi";
  if (program === null) return ["cotenant_run() {", `  if ${onPath} "$@"`, otherwise, "}"];
  const [node, script] = [shellQuoted(program.node), shellQuoted(program.program)];
  return [
    "cotenant_run() {",
    `  if [ -x ${node} ] && [ -f ${script} ]; then ${variables}${node} ${script} "$@"`,
    `  elif ${onPath} "$@"`,
    otherwise,
    "}",
  ];
}

function guarded({ skipsWhenSet }: Style, lines: readonly string[]): string[] {
  if (skipsWhenSet === undefined) return [...lines];
  return [`if [ -z "\${${skipsWhenSet}-}" ]; then`, ...lines, "fi"];
}

/** Git compares while Node starts. What it says counts only with its last word, so that a failure is none. */
const STAGED = `{ git -c core.fsmonitor=false ${stagedArguments("HEAD").join(" ")} 2>/dev/null && printf '${END}\\0' || :; }`;

function body(hook: InstalledHook, { place }: Style): string[] {
  const call = `cotenant_run hook ${hook} "$@"`;
  const kept = place === "around" || place === "above" ? `"\${0%/*}/${keptName(hook, place)}"` : null;
  // What is in the message is said last: theirs may write the whole file.
  if (hook === "prepare-commit-msg") return [...others(hook, place, kept), ...messageLines(call, place)];
  const handOver = kept === null ? [] : [`if [ -x ${kept} ]; then exec ${kept} "$@"; fi`];
  if (hook === "post-commit") return [`${call} || :`, ...handOver];
  if (hook === "pre-commit") return [`${STAGED} | ${call} --staged || ${OR_REFUSE}`, ...handOver];
  return [
    "cotenant_input=$(cat)",
    'if [ -n "$cotenant_input" ]; then',
    `  printf '%s\\n' "$cotenant_input" | ${call} || ${hook === "pre-receive" ? AND_SAY_SO : OR_REFUSE}`,
    // Both get all of it: whoever comes after us reads this.
    "  exec <<COTENANT_INPUT",
    "$cotenant_input",
    "COTENANT_INPUT",
    "fi",
    ...handOver,
  ];
}

/** A script runs itself once more, without our lines: it may end anywhere, and still ours come after it. */
function others(hook: InstalledHook, place: Style["place"], kept: string | null): string[] {
  if (kept !== null) return [`if [ -x ${kept} ]; then ${kept} "$@" || exit $?; fi`];
  if (place === "own") return [];
  return [
    `if [ "\${cotenant_inner-}" != ${hook} ]; then`,
    `  if [ -x "$0" ]; then cotenant_inner=${hook} "$0" "$@" || exit $?`,
    `  else cotenant_inner=${hook} sh -e "$0" "$@" || exit $?; fi`,
  ];
}

function messageLines(call: string, place: Style["place"]): string[] {
  if (place !== "guest") return [`${call} || ${OR_REFUSE}`];
  return [`  ${call} || ${OR_REFUSE}`, "  exit 0", "fi", "unset cotenant_inner"];
}

/** Hooks whose lines are in a file: a manager's configuration may have several. */
export function hooksIn(text: string): InstalledHook[] {
  return [...text.matchAll(BEGIN_ALL)].map((found) => found[1] as InstalledHook);
}

/** Null when there is none; "damaged" when its first line is there and the rest is not as it should be. */
export function findBlock(text: string, wanted?: InstalledHook): Block | "damaged" | null {
  const begin =
    wanted === undefined
      ? BEGIN.exec(text)
      : ([...text.matchAll(BEGIN_ALL)].find(([, hook]) => hook === wanted) ?? null);
  if (begin === null && wanted !== undefined) return null;
  if (begin === null) return BEGIN_LIKE.test(text) ? "damaged" : null;
  const hook = begin[1] as InstalledHook;
  const end = `# <<< cotenant hook ${hook} <<<`;
  const at = text.indexOf(`\n${end}`, begin.index);
  const style = styleOf(begin[2]!);
  if (at === -1 || style === null) return "damaged";
  const stop = at + 1 + end.length;
  if (text[stop] === "\n")
    return {
      hook,
      style,
      before: text.slice(0, begin.index),
      text: text.slice(begin.index, stop + 1),
      after: text.slice(stop + 1),
      isEndless: false,
    };
  if (stop !== text.length) return "damaged";
  const before = text.slice(0, Math.max(0, begin.index - 1));
  return { hook, style, before, text: `${text.slice(begin.index)}\n`, after: "", isEndless: true };
}

function styleOf(words: string): Style | null {
  const [place, ...rest] = words.split(", ");
  const known = PLACES.find((name) => name === place);
  const unless = rest.find((word) => word.startsWith("unless="))?.slice("unless=".length);
  if (known === undefined) return null;
  return {
    place: known,
    ...(rest.includes("directory") ? { madeDirectory: true } : {}),
    ...(unless === undefined ? {} : { skipsWhenSet: unless }),
  };
}

/** The whole file where it is ours. */
export function ownFile(block: string): string {
  return SHEBANG + block;
}

/** Whether nobody has added anything to a file of ours. */
export function isWhole({ before, after }: Pick<Block, "before" | "after">): boolean {
  return before === SHEBANG && after === "";
}

export function withoutBlock({ before, after }: Block): string {
  return before + after;
}

/** The same file with other lines of ours. */
export function withBlock({ before, after, isEndless }: Block, text: string): string {
  return isEndless ? `${before}\n${text.slice(0, -1)}` : before + text + after;
}

/** Our lines come first, right after the line that names the shell. Null where the script is for no shell that we know. */
export function inserted(script: string, block: string): string | null {
  if (!isShellScript(script)) return null;
  if (!script.startsWith("#!")) return block + script;
  const end = script.indexOf("\n");
  return end === -1
    ? `${script}\n${block.slice(0, -1)}`
    : script.slice(0, end + 1) + block + script.slice(end + 1);
}

/** Git gives what has no first line of that sort to the shell. */
export function isShellScript(text: string): boolean {
  if (text.includes("\0") || text.startsWith("\xef\xbb\xbf")) return false;
  if (!text.startsWith("#!")) return !/^\x7fELF|^[\x80-\xff]/.test(text);
  const [first] = text.split("\n", 1);
  return SHELL.test(first!);
}

/** Whether the file reaches our lines before anything of others: then a trial run touches nothing else. */
export function comesFirst({ before }: Block): boolean {
  return before === "" || /^#![^\n]*\n$/.test(before) || (before.startsWith("#!") && !before.includes("\n"));
}

/** The program that our lines name; null where they look only at the PATH. */
export function programIn(text: string): Program {
  const found = new RegExp(`if \\[ -x (${SHELL_QUOTED}) \\] && \\[ -f (${SHELL_QUOTED}) \\]`).exec(text);
  return found === null ? null : { node: shellUnquoted(found[1]!), program: shellUnquoted(found[2]!) };
}
