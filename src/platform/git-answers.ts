import { CotenantError, type ErrorData } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import type { Git, GitOptions } from "./git";

/** What Git printed; null where it says no. */
export async function gitText(
  git: Git,
  args: readonly string[],
  options: GitOptions,
): Promise<string | null> {
  const { status, stdout } = await git.run(args, options);
  return status === 0 ? new TextDecoder().decode(stdout) : null;
}

/** Of a list with NULs between its entries, or behind them. */
export function gitList(text: string | null): string[] {
  return (text ?? "").split("\0").filter((entry) => entry !== "");
}

/** Failures before anything is sent. What may also come in the middle, such as a connection that is reset, is none. */
const UNSENT =
  /could not resolve host|connection refused|network is unreachable|no route to host|failed to connect|unable to connect|does not appear to be a git repository|repository .* not found|could not read from remote repository|terminal prompts disabled|authentication failed|permission denied|could not read (?:username|password)|host key verification|not a git repository|does not exist|returned error: 40[134]|unable to access|unable to look up|name or service not known|no such remote|bad object|corrupt|loose object/i;

/**
 * Whether a push that failed has certainly not reached the remote, by what Git said. What the remote itself says comes
 * after it was reached, whatever words it chooses.
 */
export function isUnsent(stderr: string): boolean {
  return UNSENT.test(stderr.replace(/^remote:.*$/gm, ""));
}

/** With what Git says about it. */
export function gitFailed(doing: string, stderr: string, data: ErrorData = {}): CotenantError {
  return new CotenantError("E_GIT", `${doing}: ${gitWords(stderr)}`, { data });
}

/** What Git printed, in one line of ours: it may be several of its own, with tabs. */
export function gitWords(stderr: string, limit = 300): string {
  const lines = stderr.split(/[\r\n]+/).map((line) => line.replaceAll("\t", " ").trim());
  return printable(lines.filter((line) => line !== "").join("; "), limit);
}
