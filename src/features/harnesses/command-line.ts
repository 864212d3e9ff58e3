import type { HarnessName } from "../../identity/harness";
import { SHELL_QUOTED, shellQuoted, shellUnquoted } from "../../kernel/printing";
import { nothingToSay } from "../guard/answers";
import { type HookEvent, hookArguments } from "../guard/harness";
import type { Installed, Program } from "../installer/files";

/**
 * How events get to the guard: null, by a program for each of them; else by way of the daemon that leaves its files under
 * this name, and by the program where that does not answer. With `http`, the harness itself asks before a tool, over loopback.
 */
export type Via = { readonly daemon: string; readonly http: HttpDoor | null } | null;

export interface HttpDoor {
  readonly port: number;
  readonly token: string;
}

/** In the words of `agent install --via`. */
export const VIA_NAMES = ["program", "daemon", "http"] as const;
export type ViaName = (typeof VIA_NAMES)[number];

export function viaName(via: Via): ViaName {
  return via === null ? "program" : via.http === null ? "daemon" : "http";
}

/** What installs the same once more. */
export function viaFlag(via: Via): string {
  return via === null ? "" : ` --via ${viaName(via)}`;
}

/**
 * One line for a POSIX shell, which becomes the program: there is never a second process. Not the form with separate
 * arguments that some harnesses know: others read the same files, would start a bare Node, and take its failure for a
 * refusal. For the same reason a program that is gone refuses nobody.
 */
export function shellLine(program: Program, args: readonly string[], more = ""): string {
  const call = args.map(lineWord).join(" ") + more;
  const otherwise = `command -v cotenant >/dev/null 2>&1 || ${noObjection(args)}; exec cotenant ${call}`;
  if (program === null) return otherwise;
  const [node, script] = [lineWord(program.node), lineWord(program.program)];
  return `[ -x ${node} ] && [ -f ${script} ] && exec ${node} ${script} ${call}; ${otherwise}`;
}

/**
 * The same, but the daemon is asked first. What it has left there answers and ends, with the program if need be; where it has left
 * nothing, nobody is asked.
 */
function askingLine(program: Installed, harness: HarnessName, event: HookEvent, daemon: string): string {
  const about = lineWord(`${harness} ${event.name} ${event.timeoutSecs} ${program.program}`);
  const script = lineWord(`${daemon}.sh`);
  const args = [...hookArguments(harness, event), "--via", daemon];
  const otherwise = shellLine(program, args, ' "$@"');
  return `cotenant_hook=${about}; cotenant_program() { ${otherwise}; }; [ -f ${script} ] && command . ${script}; cotenant_program`;
}

/** What the guard itself would say, where there is none. */
function noObjection(args: readonly string[]): string {
  const { stdout } = nothingToSay(args[args.indexOf("--harness") + 1] as HarnessName);
  return stdout === "" ? "exit 0" : `{ echo ${lineWord(stdout.trim())}; exit 0; }`;
}

/** For Windows, where a harness has a field of its own for it. */
export function powershellLine(args: readonly string[]): string {
  const call = `$input | cotenant ${args.join(" ")}`;
  return `if (Get-Command cotenant -ErrorAction SilentlyContinue) { ${call}; exit $LASTEXITCODE }; exit 0`;
}

/** Read again by `QUOTED`. */
export function lineWord(text: string): string {
  return /^[\w./:=-]+$/.test(text) ? text : shellQuoted(text);
}

/** Events in which a harness lets others make and remove worktrees, and what answers them. */
export const WORKTREE_EVENTS: Readonly<Partial<Record<HarnessName, readonly WorktreeEvent[]>>> = {
  claude: [
    { name: "WorktreeCreate", command: "worktree-create", timeoutSecs: 120 },
    { name: "WorktreeRemove", command: "worktree-remove", timeoutSecs: 120 },
  ],
};

export interface WorktreeEvent {
  readonly name: string;
  readonly command: "worktree-create" | "worktree-remove";
  readonly timeoutSecs: number;
}

export function argumentsFor(harness: HarnessName, event: HookEvent | WorktreeEvent): readonly string[] {
  return "command" in event ? ["hook", event.command, "--harness", harness] : hookArguments(harness, event);
}

/** The line for an event that comes by way of a shell. Making worktrees is no check. */
export function lineFor(
  program: Program,
  harness: HarnessName,
  event: HookEvent | WorktreeEvent,
  via: Via,
): string {
  if (via === null || program === null || "command" in event)
    return shellLine(program, argumentsFor(harness, event));
  return askingLine(program, harness, event, via.daemon);
}

const WORD = `['"]?[\\w-]+['"]?`;
/** Whoever wrote it, and wherever the program was then. */
const OUR_CALL = new RegExp(
  `(?:^|[\\s'"])(?:guard\\s+(?:check|stop|end)(?:\\s+--failed)?|hook\\s+worktree-(?:create|remove))\\s+--harness[\\s=]${WORD}`,
);
/** What `agent install` wrote, in this or an earlier version: it looks for the program, or for the daemon, first. */
const INSTALLED = /^(?:\[ -x |command -v cotenant |cotenant_hook=)/;

export function callsUs(line: string): boolean {
  return OUR_CALL.test(line);
}

export function isInstalledLine(line: string): boolean {
  return INSTALLED.test(line) && callsUs(line);
}

const QUOTED = `(${SHELL_QUOTED}|[\\w./:=-]+)`;
const STARTING = new RegExp(
  `^(?:cotenant_hook=${QUOTED}; cotenant_program\\(\\) \\{ )?\\[ -x ${QUOTED} \\] && \\[ -f ${QUOTED} \\]`,
);
const ASKING = new RegExp(
  `^cotenant_hook=.*; \\[ -f ${QUOTED} \\] && command \\. ${QUOTED}; cotenant_program$`,
);

/** The program that an installed line starts; null where it looks only on the PATH. */
export function programIn(line: string): Program {
  const [node, program] = STARTING.exec(line)?.slice(2) ?? [];
  return node === undefined || program === undefined ? null : { node: plain(node), program: plain(program) };
}

/** Which daemon an installed line asks first; null where it asks none. */
export function daemonIn(line: string): string | null {
  const script = ASKING.exec(line)?.[1];
  return script === undefined ? null : plain(script).replace(/\.sh$/, "");
}

function plain(quoted: string): string {
  return quoted.startsWith("'") ? shellUnquoted(quoted) : quoted;
}
