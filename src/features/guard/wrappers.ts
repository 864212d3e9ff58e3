import type { Ancestry, Processes } from "../../platform/platform";

export const MOST_WRAPPERS = 8;
const SHELL = /(?:^|\/)(?:ba|z|da|a|k|fi)?sh$|(?:^|[\\/])(?:cmd|powershell|pwsh)(?:\.exe)?$/i;
const RUNNER = /(?:^|\/)(?:env|timeout|nice|nohup|setsid|stdbuf|npx|npm|bunx|pnpm)$/;
const NODE_RUNNER = /(?:^|\/)(?:npx|npm)(?:-cli)?(?:\.js)?$/;

/** Who stands behind a shell or a helper that only runs something; null for anybody else. */
export function behind(ancestry: Ancestry | null): number | null {
  if (ancestry === null || ancestry.parentPid <= 1 || !isWrapper(ancestry.words)) return null;
  return ancestry.parentPid;
}

/** The process behind all of them, and what is known of it. */
export async function pastWrappers(
  processes: Pick<Processes, "ancestry">,
  start: number,
): Promise<{ readonly pid: number; readonly ancestry: Ancestry | null }> {
  let [pid, ancestry] = [start, await processes.ancestry(start)];
  for (let more = MOST_WRAPPERS; more > 0; more--) {
    const next = behind(ancestry);
    if (next === null) break;
    [pid, ancestry] = [next, await processes.ancestry(next)];
  }
  return { pid, ancestry };
}

/** A shell that runs one command line, not one that reads a script or a terminal. */
export function isWrapper(words: readonly string[]): boolean {
  const [first = "", second = ""] = words;
  if (SHELL.test(first)) return words.slice(1, 4).some((word) => /^(?:-[a-z]*c|\/c|-command)$/i.test(word));
  return RUNNER.test(first) || (/(?:^|\/)node$/.test(first) && NODE_RUNNER.test(second));
}

const REAPER =
  /(?:^|\/)(?:init|systemd|launchd|tini|tini-static|dumb-init|docker-init|catatonit|s6-svscan|runsvdir)$/;
const HARNESS = /claude|codex|cursor|gemini|copilot|opencode|qwen|pi-coding-agent|(?:^|\/)pi$/i;

/**
 * Whether a hook has this parent only because the harness died: the reaper (init or a subreaper). It outlives
 * everybody, so that nothing may be bound to it. In a container the first process may well be the harness itself, and
 * its hooks are of its session.
 */
export function isReaper(pid: number, parent: Ancestry | null, self: Ancestry | null): boolean {
  if (parent === null) return false;
  if (REAPER.test(parent.words[0] ?? "")) return true;
  if (pid !== 1 || parent.words.some((word) => HARNESS.test(word))) return false;
  return parent.session === null || parent.session !== self?.session;
}
