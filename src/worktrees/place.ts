import type { Session } from "../coordinator/session";
import type { Workspace } from "../coordinator/workspace";
import type { Git } from "../platform/git";
import type { Platform } from "../platform/platform";
import type { Trees } from "../platform/trees";
import { modesFor } from "../store/layout";

/** What making and taking away worktrees works with. */
export interface Yard {
  readonly workspace: Workspace;
  readonly session: Session;
  readonly trees: Trees;
}

export function machineOf({ workspace }: Yard): { readonly platform: Platform; readonly git: Git } {
  return workspace.surroundings;
}

/**
 * One at a time among cotenant's own: `git worktree` commands of several processes fight over what they all write below
 * `.git/worktrees`, and over names. Not the store's mutex, which is held for milliseconds; nobody who holds this one waits
 * for anything but Git.
 */
export async function oneAtATime<T>(yard: Yard, act: () => Promise<T>): Promise<T> {
  const { workspace } = yard;
  const { files, locks } = machineOf(yard).platform;
  await workspace.store.prepare();
  const { layout } = workspace.store;
  const modes = modesFor(workspace.repository.config.sharedRepository);
  const fd = await files.open(`${layout.locks}/worktrees.lock`, "update-or-create", modes.file);
  try {
    if (!(await locks.tryLock(fd))) await locks.lock(fd);
    return await act();
  } finally {
    // The lock goes with it.
    await files.close(fd);
  }
}
