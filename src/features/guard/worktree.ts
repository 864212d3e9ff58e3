import { LocalCoordinator } from "../../coordinator/local";
import { refuseNetworkFileSystem } from "../../coordinator/network-file-system";
import { Session } from "../../coordinator/session";
import { CotenantError } from "../../errors/cotenant-error";
import { currentBranch } from "../../identity/branch";
import { findRepository, type Repository } from "../../identity/repository";
import { ensureWorktreeIdentity, readWorktreeIdentity } from "../../identity/worktree";
import type { WorktreeId } from "../../kernel/ids";
import { modesFor } from "../../store/layout";
import { SessionSecrets } from "../../store/secrets";
import { Store, type StoreOptions } from "../../store/store";
import { type GuardSettings, guardSettings } from "./settings";
import type { Who } from "./who";
import type { World } from "./world";

/** A worktree in which an agent of a harness works. */
export interface GuardedWorktree {
  readonly world: World;
  readonly branch: string | null;
  readonly repository: Repository;
  readonly settings: GuardSettings;
  readonly coordinator: LocalCoordinator;
  readonly worktreeId: WorktreeId;
  readonly who: Who;
  readonly session: Session;
  /** What somebody should know of the place, once. */
  readonly notice: string | null;
}

/** What was found out for one event: nothing of it is looked up twice. */
export class Findings {
  who: Who | null = null;
  readonly repositories = new Map<string, Repository | null>();
  readonly worktrees = new Map<string, GuardedWorktree>();
}

/** The repository that a path belongs to, wherever the caller stands; null where cotenant has no business. */
export async function repositoryOf(world: World, path: string): Promise<Repository | null> {
  const known = world.found?.repositories.get(path);
  if (known !== undefined) return known;
  const repository = await repositoryAround(world, path);
  world.found?.repositories.set(path, repository);
  return repository;
}

async function repositoryAround(world: World, path: string): Promise<Repository | null> {
  const { platform, git } = world;
  try {
    // Without the caller's environment: GIT_DIR and its like say where the caller is, not whose the file is.
    const repository = await findRepository(platform, path, {}, git);
    return world.isAsked === true || (await isInUse(world, repository)) ? repository : null;
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_NOT_A_REPO") return null;
    throw error;
  }
}

/** Whether anything of cotenant's was ever written in a repository. In others the guard lets everything pass. */
export async function isInUse(
  { platform }: Pick<World, "platform">,
  { controlDir, worktreeRoot }: Repository,
): Promise<boolean> {
  const { files } = platform;
  if ((await files.stat(controlDir)) !== null) return true;
  // A fresh clone of a repository that uses cotenant.
  return (await files.stat(`${worktreeRoot}/.cotenant/config.toml`)) !== null;
}

export async function openWorktree(world: World, repository: Repository, who: Who): Promise<GuardedWorktree> {
  const name = `${repository.worktreeRoot}\n${who.agentId}`;
  const known = world.found?.worktrees.get(name);
  if (known !== undefined) return known;
  const opened = await openAnew(world, repository, who);
  world.found?.worktrees.set(name, opened);
  return opened;
}

async function openAnew(world: World, repository: Repository, who: Who): Promise<GuardedWorktree> {
  await refuseNetworkFileSystem(world, repository);
  const settings = await guardSettings(world, repository);
  const { platform, git } = world;
  const options: StoreOptions = {
    controlDirectory: repository.controlDir,
    modes: modesFor(repository.config.sharedRepository),
    busyTimeoutMs: Math.min(settings.busyTimeoutMs, settings.deadlineMs),
    contendedTimeoutMs: settings.deadlineMs,
    rotateBytes: settings.rotateBytes,
    indexLagBytes: 0,
    doing: "guard",
  };
  const store = world.openStore?.(options) ?? new Store(platform, options);
  const coordinator = new LocalCoordinator(store, settings.policy, world.asker ?? null);
  // Stored with the first thing that is: whoever only looks, or has nothing to end, leaves nothing behind.
  const hasStore = (await platform.files.stat(repository.controlDir)) !== null;
  const identify = hasStore ? ensureWorktreeIdentity : readWorktreeIdentity;
  const { identity } = await identify(platform, git, repository);
  const { worktreeId } = identity;
  const branch = await currentBranch(platform, git, repository.gitDir);
  const place = { world, repository, settings, coordinator, worktreeId, who, branch };
  const session = sessionOf(place, who.agentId);
  return { ...place, session, notice: await noticeOf(coordinator, settings, session) };
}

/** Rules from a file that has changed into something unreadable are put on record, and told to whoever meets it first. */
async function noticeOf(
  coordinator: LocalCoordinator,
  { broken }: GuardSettings,
  session: Session,
): Promise<string | null> {
  if (broken === null) return null;
  const { recordStandIn, standInWarning } = await import("../../coordinator/stand-in");
  const isNew = await recordStandIn(coordinator, broken.memory, broken.standIn, async () => session);
  return isNew ? `cotenant: ${standInWarning(broken.standIn)}` : null;
}

/** The session as one of its agents. */
export function sessionOf(
  place: Omit<GuardedWorktree, "session" | "notice">,
  agentId: Who["agentId"],
): Session {
  const { world, coordinator, worktreeId, who, branch, repository } = place;
  const { sessionId, holder } = who;
  const actor = { agentId, sessionId, worktreeId, branch, holder };
  const { store } = coordinator;
  const secrets = new SessionSecrets(world.platform, store.layout, actor, async () => {
    await store.prepare();
    await ensureWorktreeIdentity(world.platform, world.git, repository);
  });
  return new Session(world.platform, coordinator, actor, secrets);
}
