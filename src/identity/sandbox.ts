import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import type { Platform } from "../platform/platform";
import { detectHarness, type HarnessName } from "./harness";
import { below, parentOf } from "./path-text";
import type { Environment, Repository } from "./repository";

/** Bubblewrap and read-only mounts say the first, Landlock the second, Seatbelt the third. */
const REFUSALS: readonly unknown[] = ["EROFS", "EACCES", "EPERM"];

/**
 * A failure to write into a repository, told as what it mostly is: coding agents run their commands in sandboxes that
 * leave the Git directory read-only, and a linked worktree's lies outside of what they open. Any other error stays as it is,
 * and so does one that owners and modes explain.
 */
export async function explainSandbox(
  error: unknown,
  { platform, env }: { readonly platform: Platform; readonly env: Environment },
  { commonDir, gitDir, worktreeRoot }: Pick<Repository, "commonDir" | "gitDir" | "worktreeRoot">,
): Promise<unknown> {
  if (!(error instanceof CotenantError)) return error;
  const { errno } = error.data;
  // The file system's own word: whoever explained the failure may know only what it was doing.
  const path = (error.cause as { path?: unknown } | undefined)?.path ?? error.data["path"];
  if (typeof path !== "string" || !REFUSALS.includes(errno) || error.data["writable"] !== undefined)
    return error;
  const isGit = [commonDir, gitDir].some((directory) => below(path, directory) !== null);
  if (!isGit && below(path, worktreeRoot) === null) return error;
  if (errno !== "EROFS" && !(await isAllowedByMode(platform, path))) return error;
  const needed = [isGit ? commonDir : worktreeRoot];
  const name = detectHarness(env)?.name ?? null;
  const what = isGit ? "the Git directory" : "the worktree";
  return new CotenantError(
    error.code,
    `${what} is read-only here, as in a sandbox: ${printable(path, 300)} cannot be written`,
    {
      hint: `make ${needed.map((one) => printable(one, 300)).join(" and ")} writable: ${howTo(name, needed)}; cotenant's docs/SANDBOXES.md has more`,
      data: { ...error.data, writable: needed, harness: name },
      cause: error,
    },
  );
}

/** Whether owner and mode of the nearest thing that is there would let us write: then something else does not. */
async function isAllowedByMode({ files, processes }: Platform, path: string): Promise<boolean> {
  const { user } = processes.self();
  for (let at: string | null = path; at !== null; at = parentOf(at)) {
    try {
      const stat = await files.stat(at);
      if (stat !== null) return user === "0" || (String(stat.uid) === user && (stat.mode & 0o200) !== 0);
    } catch {
      return false;
    }
  }
  return false;
}

/** Each in the harness's own words, as documented in autumn 2026. */
function howTo(harness: HarnessName | null, paths: readonly string[]): string {
  const list = JSON.stringify(paths);
  switch (harness) {
    case "claude":
      return `"sandbox": {"filesystem": {"allowWrite": ${list}}} in .claude/settings.local.json`;
    case "codex":
      return `[sandbox_workspace_write] writable_roots = ${list} in ~/.codex/config.toml`;
    case "cursor":
      return `"additionalReadwritePaths": ${list} in ~/.cursor/sandbox.json`;
    case "copilot":
      return "/sandbox, tab Filesystem, as a path to read and write";
    case "gemini":
    case "qwen":
      return `SANDBOX_MOUNTS=${paths.map((path) => `${path}:${path}:rw`).join(",")} for its container`;
    case "opencode":
    case "pi":
    case null:
      return "in the settings of the sandbox, or where the file system was mounted read-only";
  }
}
