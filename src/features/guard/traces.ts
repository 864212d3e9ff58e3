import type { WorktreeId } from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import type { Files } from "../../platform/platform";
import { BEAT_EVERY_MS } from "./pass";
import type { GuardedWorktree } from "./worktree";
import type { WriteTarget } from "./write-target";

/**
 * When the holder of a file was last given leave to write it. A lease that is held already is not written again, so
 * that this is all that tells the holder's own edits from those that a stranger's command has made meanwhile.
 * Nothing depends on it but whom a remark names.
 */
export async function leaveTrace(
  place: GuardedWorktree,
  targets: readonly Pick<WriteTarget, "key">[],
): Promise<void> {
  const { platform } = place.world;
  try {
    for (const { key } of targets.slice(0, MOST))
      await touch(place, traceFile(place, key, place.worktreeId), platform.files);
  } catch {
    // A full disk must not keep an agent from its own file.
  }
}

const MOST = 100;

/** Null when there is none. */
export async function tracedAtMs(
  place: GuardedWorktree,
  key: LeaseKey,
  worktreeId: WorktreeId,
): Promise<number | null> {
  const bytes = await place.world.platform.files.readFile(traceFile(place, key, worktreeId));
  const atMs = bytes === null ? Number.NaN : Number.parseInt(new TextDecoder().decode(bytes), 10);
  return Number.isNaN(atMs) ? null : atMs;
}

/** Left by `guard stop`: whatever the session does next makes all of its leases last again. */
export async function hasStopped(place: GuardedWorktree): Promise<boolean> {
  return (await place.world.platform.files.stat(stopMark(place))) !== null;
}

export async function markStopped(place: GuardedWorktree): Promise<void> {
  await touch(place, stopMark(place), place.world.platform.files);
}

export async function clearStopMark(place: GuardedWorktree): Promise<void> {
  await place.world.platform.files.unlink(stopMark(place));
}

/**
 * Whether the session's leases need a sign of life: not with every keystroke, but before anybody who cannot see its
 * process may miss it. Then the next one is due a minute later.
 */
export async function isBeatDue(place: GuardedWorktree): Promise<boolean> {
  const { files, clock } = place.world.platform;
  const path = beatFile(place);
  try {
    const stat = await files.stat(path);
    if (stat !== null && Math.abs(clock.wallMs() - stat.mtimeMs) < BEAT_EVERY_MS) return false;
    await touch(place, path, files);
  } catch {
    // Once too often does no harm.
  }
  return true;
}

export function beatFile(place: GuardedWorktree): string {
  const { agentId, sessionId } = place.who;
  return `${place.coordinator.store.layout.guard}/beat-${hashOf(place, agentId + sessionId)}`;
}

function hashOf({ world }: GuardedWorktree, text: string): string {
  return world.platform.digest.sha256(text).slice(0, 32);
}

export function stopMark({ coordinator, world, who }: GuardedWorktree): string {
  const name = world.platform.digest.sha256(who.sessionId).slice(0, 32);
  return `${coordinator.store.layout.guard}/stopped-${name}`;
}

function touch(place: GuardedWorktree, path: string, files: Files): Promise<void> {
  return writeNote(place, path, `${place.world.platform.clock.wallMs()}\n`, files);
}

/** One of the guard's small files, in a directory that is made with the first of them. */
export async function writeNote(
  { coordinator }: GuardedWorktree,
  path: string,
  text: string,
  files: Files,
): Promise<void> {
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

const utf8 = new TextEncoder();

export function traceFile(
  { coordinator, world }: GuardedWorktree,
  key: LeaseKey,
  worktreeId: WorktreeId,
): string {
  const name = world.platform.digest.sha256(`${key}\n${worktreeId}`).slice(0, 32);
  return `${coordinator.store.layout.guard}/edits/${name}`;
}
