import { CotenantError } from "../../errors/cotenant-error";
import type { ByteText } from "../../git/byte-text";
import { decode } from "../../identity/path-text";
import type { Git, GitOptions } from "../../platform/git";
import { gitWords } from "../../platform/git-answers";

/** Whole trees take their time. */
export const LONG_MS = 30 * 60_000;

/** What Git answers, or an error that says what it was asked for and what it said. */
export async function ask(
  git: Git,
  args: readonly string[],
  options: GitOptions,
  doing: string,
): Promise<Uint8Array> {
  const { status, stdout, stderr } = await git.run(args, options);
  if (status === 0) return stdout;
  throw gitFailure(args, { cwd: options.cwd, status, stderr }, doing);
}

export function gitFailure(
  args: readonly string[],
  ended: { readonly cwd: string; readonly status: number; readonly stderr: string },
  doing: string,
): CotenantError {
  const { cwd, status, stderr } = ended;
  return new CotenantError("E_GIT", `${doing}: Git says "${gitWords(lastLine(stderr))}"`, {
    data: { command: ["git", ...args.slice(0, 12)], cwd, status },
  });
}

/** The same for answers that are one line of text. */
export async function askLine(
  git: Git,
  args: readonly string[],
  options: GitOptions,
  doing: string,
): Promise<string> {
  return decode(await ask(git, args, options, doing)).replace(/\n$/, "");
}

/** Null when Git says no. */
export async function askMaybe(
  git: Git,
  args: readonly string[],
  options: GitOptions,
): Promise<string | null> {
  const { status, stdout } = await git.run(args, options);
  return status === 0 ? decode(stdout).replace(/\n$/, "") : null;
}

/** As Git reads a path that begins with a quotation mark. */
export function quotedPath(path: ByteText): string {
  const inside = path.replace(/[\\"]|[^\x20-\x7e]/g, (char) =>
    char === "\\" || char === '"' ? `\\${char}` : `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
  return `"${inside}"`;
}

function lastLine(text: string): string {
  const lines = text.trim().split("\n");
  return lines.find((line) => /^(?:fatal|error):/.test(line)) ?? lines.at(-1) ?? "";
}
