import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { joinPath, nameIn, normalPath, parentOf, resolveFrom } from "../../identity/path-text";
import type { LastingGit } from "../../platform/git";
import type { Descriptor, Later, Platform } from "../../platform/platform";
import type { Trees } from "../../platform/trees";
import { modesFor } from "../../store/layout";
import { gitFailure, LONG_MS } from "./git-calls";

/** What making and taking away worktrees works with. */
export interface Yard {
  readonly workspace: Workspace;
  readonly session: Session;
  readonly trees: Trees;
}

/** A path as it would be if it existed: the real path of as much of it as there is, and the rest. */
export async function realPlace(files: Pick<Platform["files"], "realPath">, path: string): Promise<string> {
  const real = await files.realPath(path);
  const parent = real === null ? parentOf(path) : null;
  return real ?? (parent === null ? path : joinPath(await realPlace(files, parent), nameIn(path)));
}

/** Where a path leads that somebody has written, seen from where they stand. It need not exist. */
export function placeNamed({ surroundings }: Workspace, path: string): string {
  return normalPath(resolveFrom(surroundings.cwd, path));
}

export function machineOf({ workspace }: Yard): { readonly platform: Platform; readonly git: LastingGit } {
  return workspace.surroundings;
}

/** Where the caller stands, which outlives what it makes. */
export function hereOf({ workspace }: Yard): string {
  return workspace.repository.worktreeRoot;
}

/**
 * One at a time among cotenant's own: `git worktree` commands of several processes fight over what they all write below
 * `.git/worktrees`, and over names. Not the store's mutex, which is held for milliseconds; nobody who holds this one waits
 * for anything but Git. `act` gets the lock's descriptor, for the Git that it starts: should we die, the lock lives as
 * long as that does.
 */
export async function oneAtATime<T>(yard: Yard, act: (lock: Descriptor) => Promise<T>): Promise<T> {
  const { workspace } = yard;
  const { files, locks } = machineOf(yard).platform;
  await workspace.store.prepare();
  const modes = modesFor(workspace.repository.config.sharedRepository);
  const path = `${workspace.store.layout.locks}/worktrees.lock`;
  const fd = await opened(() => files.open(path, "update-or-create", modes.file), path);
  try {
    await opened(() => waitFor(yard, fd, path), path);
    return await act(fd);
  } finally {
    // Whatever was started under it has ended by now. What was done is done; the lock goes with its descriptor, or at
    // least with the process.
    await quietly(() => locks.unlock(fd));
    await quietly(() => files.close(fd));
  }
}

export async function opened<T>(act: () => Later<T>, path: string): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw fileFailure(error, "locking a worktree's making", path);
  }
}

export async function quietly(act: () => Later<void>): Promise<void> {
  try {
    await act();
  } catch {
    // Nothing depends on it.
  }
}

/** Git commands of others, one after the other; and no wait is for ever. */
const MOST_WAIT_MS = 10 * 60_000;
const LOOK_EVERY_MS = 25;

async function waitFor(yard: Yard, fd: Descriptor, path: string): Promise<void> {
  const { locks, clock, timers } = machineOf(yard).platform;
  const until = clock.monotonicMs() + MOST_WAIT_MS;
  while (!(await locks.tryLock(fd))) {
    if (clock.monotonicMs() > until)
      throw new CotenantError(
        "E_STORE_BUSY",
        "another process has been making or moving a worktree for too long",
        {
          data: { path },
        },
      );
    await timers.sleep(LOOK_EVERY_MS).done;
  }
}

/** A Git that keeps locks of ours for as long as it lives. */
export async function runHolding(
  yard: Yard,
  args: readonly string[],
  {
    cwd,
    held,
    doing,
  }: { readonly cwd: string; readonly held: readonly Descriptor[]; readonly doing: string },
): Promise<void> {
  const process = machineOf(yard).git.start(args, { cwd, inherit: held, timeoutMs: LONG_MS });
  const { status, stderr } = await process.end();
  if (status !== 0) throw gitFailure(args, { cwd, status, stderr }, doing);
}
