import { ensureWorktreeIdentity } from "../../identity/worktree";
import { printable, type WorktreeId } from "../../kernel/ids";
import { kindOf } from "../../kernel/keys";
import type { Verdict } from "./answers";
import { type Checking, directoryOf } from "./check";
import { guardFile, writeSmallFile } from "./small-files";
import { outsideHome } from "./words";
import { type GuardedWorktree, repositoryOf } from "./worktree";

/** The worktree that an agent belongs to. */
export interface Home {
  readonly worktreeId: WorktreeId;
  readonly root: string;
  readonly isMain: boolean;
  readonly why: "started" | "claimed";
}

/**
 * What to say of an agent that belongs to a linked worktree and is about to write in another one, or in the main one; null
 * where it may. It belongs where it holds claims on issues, else where it was when it was first heard of. Whoever belongs to the
 * main worktree may go anywhere: that is where others are sent from.
 */
export async function strayed(
  checking: Pick<Checking, "world" | "report">,
  place: GuardedWorktree,
  what: string,
): Promise<Verdict | null> {
  const { settings, repository, worktreeId, who } = place;
  if (settings.stayInWorktree === "off") return null;
  const start = await startOf(place, directoryOf(checking));
  if ((await checking.world.platform.files.stat(`${repository.commonDir}/worktrees`)) === null) return null;
  const homes = (await claimedFrom(place)) ?? (start === null ? [] : [start]);
  const [home] = homes;
  if (home === undefined || homes.some((one) => one.isMain || one.worktreeId === worktreeId)) return null;
  const isRefused = settings.stayInWorktree === "enforce";
  const words = outsideHome(printable(what, 300), repository.worktreeRoot, home, who, isRefused);
  return isRefused ? { isAllowed: false, ...words } : { isAllowed: true, tell: words.reason };
}

/** Null where it holds none. */
async function claimedFrom({ coordinator, repository, world, who }: GuardedWorktree): Promise<Home[] | null> {
  const ids = new Set<string>();
  for (const { lease } of await coordinator.list())
    if (lease.agentId === who.agentId && lease.sessionId === who.sessionId && kindOf(lease.key) === "issue")
      ids.add(lease.worktreeId);
  if (ids.size === 0) return null;
  const { listWorktrees } = await import("../../identity/worktree-list");
  const found: Home[] = [];
  for (const { worktreeId, root, isMain } of await listWorktrees(world.platform, world.git, repository))
    if (worktreeId !== null && ids.has(worktreeId)) found.push({ worktreeId, root, isMain, why: "claimed" });
  return found.length === 0 ? null : found;
}

/** Where the agent was at its first check in this repository. Put down once; nothing but this rule depends on it. */
async function startOf(place: GuardedWorktree, cwd: string): Promise<Home | null> {
  const { world, repository } = place;
  const { files } = world.platform;
  const file = guardFile(place, "home-", `${place.who.sessionId}\n${place.who.agentId}`);
  const known = readHome(await files.readFile(file));
  if (known !== null) return known;
  const around = await repositoryOf(world, cwd);
  if (around === null || around.commonDir !== repository.commonDir) return null;
  const root = around.worktreeRoot;
  const { worktreeId } =
    root === repository.worktreeRoot
      ? place
      : (await ensureWorktreeIdentity(world.platform, world.git, around)).identity;
  const home: Home = { worktreeId, root, isMain: around.isMainWorktree, why: "started" };
  try {
    // It may be the very first thing that is written in this repository.
    await place.coordinator.store.prepare();
    await writeSmallFile(place, file, `${JSON.stringify(home)}\n`);
  } catch {
    // A full disk must not keep an agent from its own file.
  }
  return home;
}

function readHome(bytes: Uint8Array | null): Home | null {
  try {
    const home = bytes === null ? null : (JSON.parse(new TextDecoder().decode(bytes)) as Home | null);
    return typeof home?.worktreeId === "string" && typeof home.root === "string" ? home : null;
  } catch {
    return null;
  }
}
