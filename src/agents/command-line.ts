import { nothingToSay } from "../guard/answers";
import { type HookEvent, hookArguments } from "../guard/harness";
import type { HarnessName } from "../identity/harness";

/** Where cotenant is installed. Null in files that are committed: other machines have other paths. */
export type Program = { readonly node: string; readonly program: string } | null;

/**
 * One line for a POSIX shell, which becomes the program: there is never a second process. Not the form with separate
 * arguments that some harnesses know: others read the same files, would start a bare Node, and take its failure for a
 * refusal. For the same reason a program that is gone refuses nobody.
 */
export function shellLine(program: Program, args: readonly string[], more = ""): string {
  const call = args.map(shellWord).join(" ") + more;
  const otherwise = `command -v cotenant >/dev/null 2>&1 || ${noObjection(args)}; exec cotenant ${call}`;
  if (program === null) return otherwise;
  const [node, script] = [shellWord(program.node), shellWord(program.program)];
  return `[ -x ${node} ] && [ -f ${script} ] && exec ${node} ${script} ${call}; ${otherwise}`;
}

/** What the guard itself would say, where there is none. */
function noObjection(args: readonly string[]): string {
  const { stdout } = nothingToSay(args[args.indexOf("--harness") + 1] as HarnessName);
  return stdout === "" ? "exit 0" : `{ echo ${shellWord(stdout.trim())}; exit 0; }`;
}

/** For Windows, where a harness has a field of its own for it. */
export function powershellLine(args: readonly string[]): string {
  const call = `$input | cotenant ${args.join(" ")}`;
  return `if (Get-Command cotenant -ErrorAction SilentlyContinue) { ${call}; exit $LASTEXITCODE }; exit 0`;
}

function shellWord(text: string): string {
  return /^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
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

const WORD = `['"]?[\\w-]+['"]?`;
/** Whoever wrote it, and wherever the program was then. */
const OUR_CALL = new RegExp(
  `(?:^|[\\s'"])(?:guard\\s+(?:check|stop|end)(?:\\s+--failed)?|hook\\s+worktree-(?:create|remove))\\s+--harness[\\s=]${WORD}`,
);
/** What `agent install` wrote, in this or an earlier version: it looks for the program first. */
const INSTALLED = /^(?:\[ -x |command -v cotenant )/;

export function callsUs(line: string): boolean {
  return OUR_CALL.test(line);
}

export function isInstalledLine(line: string): boolean {
  return INSTALLED.test(line) && callsUs(line);
}

/** The program that an installed line starts; null where it looks only on the PATH. */
export function programIn(line: string): NonNullable<Program> | null {
  const word = `('(?:[^']|'\\\\'')*'|[\\w./:=-]+)`;
  const found = new RegExp(`^\\[ -x ${word} \\] && \\[ -f ${word} \\]`).exec(line);
  if (found === null) return null;
  const plain = (quoted: string) =>
    quoted.startsWith("'") ? quoted.slice(1, -1).replaceAll("'\\''", "'") : quoted;
  return { node: plain(found[1]!), program: plain(found[2]!) };
}
