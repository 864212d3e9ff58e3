import * as fs from "node:fs";
import { type Surroundings, Workspace } from "../coordinator/workspace";
import { CotenantError, permissionError } from "../errors/cotenant-error";
import { ledgerInFront } from "../features/ledger/in-front";
import type { SharedRemotes } from "../features/ledger/shared-remotes";
import { listWorktrees } from "../identity/worktree-list";
import type { OpenStores } from "./open-stores";
import { type DaemonPlace, processOf, readRecord } from "./place";
import { ANYBODY } from "./repositories";

/** Where the repository was when the daemon started, and what outlasts its being opened anew. */
export interface Home {
  isSame(): boolean;
  readonly remotes: SharedRemotes;
  readonly stores: OpenStores;
}

export function open(surroundings: Surroundings, cwd: string, home: Home): Promise<Workspace> {
  return Workspace.open(
    { ...surroundings, cwd },
    {
      agentId: ANYBODY,
      doing: "daemon",
      engine: (workspace) => ledgerInFront(workspace, home.remotes),
      isLongLived: true,
      isInPlace: () => home.isSame(),
      openStore: (options) => home.stores.of(options),
    },
  );
}

/** In a shared repository everybody's daemon has files there that are nobody else's to move. A link is nobody's folder. */
export async function makeFolder({ folder }: DaemonPlace, { store, surroundings }: Workspace): Promise<void> {
  const { directory } = store.options.modes;
  const isShared = (directory & 0o022) !== 0;
  await surroundings.platform.files.makeDirectory(folder, isShared ? directory | 0o1000 : directory);
  const stat = fs.lstatSync(folder);
  if (!stat.isDirectory())
    throw permissionError(`${folder} is not a directory`, `look at it, then remove it: rm '${folder}'`);
  if (isShared && (stat.mode & 0o1000) === 0 && stat.uid === process.getuid?.())
    fs.chmodSync(folder, directory | 0o1000);
}

/** The main worktree outlives the one in which it was started. */
export async function openLasting(surroundings: Surroundings, home: Home): Promise<Workspace> {
  const here = await open(surroundings, surroundings.cwd, home);
  const { mainWorktreeRoot, worktreeRoot } = here.repository;
  if (mainWorktreeRoot === null || mainWorktreeRoot === worktreeRoot) return here;
  return open(surroundings, mainWorktreeRoot, home).catch(() => here);
}

export async function anyWorktree({ surroundings, repository }: Workspace): Promise<string> {
  const { platform, git } = surroundings;
  const found = (await listWorktrees(platform, git, repository)).find(({ exists }) => exists);
  if (found !== undefined) return found.root;
  throw new CotenantError("E_NOT_A_REPO", `no worktree of ${repository.commonDir} is left`);
}

/** Whoever only looks whether a daemon runs has the lock for an instant, and one that starts has it before its record. */
const TRY_LOCK_MS = 500;

/** False where another one is running: it does not wait for that one's end. */
export async function takesLock(
  { locks, clock, timers, processes }: Surroundings["platform"],
  place: DaemonPlace,
  fd: number,
): Promise<boolean> {
  const deadline = clock.monotonicMs() + TRY_LOCK_MS;
  while (!(await locks.tryLock(fd))) {
    const record = readRecord(place);
    const isTaken =
      record !== null && (await processes.liveness(processOf(record, processes.self()))) === "alive";
    if (isTaken || clock.monotonicMs() > deadline) return false;
    await timers.sleep(10).done;
  }
  return true;
}
