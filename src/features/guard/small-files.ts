import type { WorktreeId } from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import type { Files } from "../../platform/platform";
import { BEAT_EVERY_MS } from "./pass";
import type { GuardedWorktree } from "./worktree";
import type { WriteTarget } from "./write-target";

/** What the guard notes outside the log. Nobody is refused or let through because of one of these. */

const MOST_TRACES = 100;
const utf8 = new TextEncoder();

/**
 * When the holder of a file was last given leave to write it. A lease that is held already is not written again, so
 * that this is all that tells the holder's own edits from those that a stranger's command has made meanwhile.
 * Nothing depends on it but whom a remark names.
 */
export async function leaveTrace(
  worktree: GuardedWorktree,
  targets: readonly Pick<WriteTarget, "key">[],
): Promise<void> {
  try {
    for (const { key } of targets.slice(0, MOST_TRACES))
      await touch(worktree, traceFile(worktree, key, worktree.worktreeId));
  } catch {
    // A full disk must not keep an agent from its own file.
  }
}

/** Null when there is none. */
export async function tracedAtMs(
  worktree: GuardedWorktree,
  key: LeaseKey,
  worktreeId: WorktreeId,
): Promise<number | null> {
  const bytes = await worktree.world.platform.files.readFile(traceFile(worktree, key, worktreeId));
  const atMs = bytes === null ? Number.NaN : Number.parseInt(new TextDecoder().decode(bytes), 10);
  return Number.isNaN(atMs) ? null : atMs;
}

export function traceFile(worktree: GuardedWorktree, key: LeaseKey, worktreeId: WorktreeId): string {
  return guardFile(worktree, "edits/", `${key}\n${worktreeId}`);
}

/** Left by `guard stop`: whatever the session does next makes all of its leases last again. */
export async function hasStopped(worktree: GuardedWorktree): Promise<boolean> {
  return (await worktree.world.platform.files.stat(stopMark(worktree))) !== null;
}

export async function markStopped(worktree: GuardedWorktree): Promise<void> {
  await touch(worktree, stopMark(worktree));
}

export async function clearStopMark(worktree: GuardedWorktree): Promise<void> {
  await worktree.world.platform.files.unlink(stopMark(worktree));
}

export function stopMark(worktree: GuardedWorktree): string {
  return guardFile(worktree, "stopped-", worktree.who.sessionId);
}

/**
 * Whether the session's leases need a sign of life: not with every keystroke, but before anybody who cannot see its
 * process may miss it. Then the next one is due a minute later.
 */
export async function isBeatDue(worktree: GuardedWorktree): Promise<boolean> {
  const { files, clock } = worktree.world.platform;
  const path = beatFile(worktree);
  try {
    const stat = await files.stat(path);
    if (stat !== null && Math.abs(clock.wallMs() - stat.mtimeMs) < BEAT_EVERY_MS) return false;
    await touch(worktree, path);
  } catch {
    // Once too often does no harm.
  }
  return true;
}

export function beatFile(worktree: GuardedWorktree): string {
  const { agentId, sessionId } = worktree.who;
  return guardFile(worktree, "beat-", agentId + sessionId);
}

/** One of them, by what it is about. */
export function guardFile({ coordinator, world }: GuardedWorktree, prefix: string, about: string): string {
  const name = world.platform.digest.sha256(about).slice(0, 32);
  return `${coordinator.store.layout.guard}/${prefix}${name}`;
}

function touch(worktree: GuardedWorktree, path: string): Promise<void> {
  return writeSmallFile(worktree, path, `${worktree.world.platform.clock.wallMs()}\n`);
}

/** In a directory that is made with the first of them. */
export async function writeSmallFile(
  { coordinator, world }: GuardedWorktree,
  path: string,
  text: string,
): Promise<void> {
  const { files } = world.platform;
  const { modes } = coordinator.store.options;
  const { guard } = coordinator.store.layout;
  let fd: number;
  try {
    fd = await files.open(path, "update-or-create", modes.file);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ENOENT") throw error;
    await files.makeDirectory(guard, modes.directory);
    await files.makeDirectory(`${guard}/edits`, modes.directory);
    fd = await files.open(path, "update-or-create", modes.file);
  }
  try {
    await files.writeAt(fd, utf8.encode(text), 0);
  } finally {
    await files.close(fd);
  }
}

/** To a file that several processes may add to. */
export async function appendText(files: Files, path: string, text: string, mode: number): Promise<void> {
  const fd = await files.open(path, "append", mode);
  try {
    await files.append(fd, utf8.encode(text));
  } finally {
    await files.close(fd);
  }
}
