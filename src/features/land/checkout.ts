import type { Coordinator } from "../../coordinator/contract";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { CommitReader } from "../../git/commits";
import type { ObjectId } from "../../git/object-name";
import { joinPath } from "../../identity/path-text";
import type { WorktreeEntry } from "../../identity/worktree-list";
import { type Fact, type FactName, factId, factName } from "../../kernel/facts";
import { printable, trusted, type WorktreeId } from "../../kernel/ids";
import { sameProcess } from "../../kernel/lease";
import type { Descriptor, ProcessIdentity } from "../../platform/platform";
import { modesFor } from "../../store/layout";
import { tipOf } from "../publish/base";
import { isAncestor } from "../publish/catching-up";
import { accessOf } from "../worktrees/access";
import { gitFailure, LONG_MS } from "../worktrees/git-calls";
import { machineOf, quietly, type Yard } from "../worktrees/place";
import { writerKey } from "../worktrees/writer-lock";
import { asUnfit, refuseUnfit, unfit } from "./checkout-fitness";
import { isChanged } from "./obstacles";
import { putBack } from "./putting-back";

/** A target that is checked out: its index and files move with it. */
export interface CheckoutMove {
  readonly worktreeId: WorktreeId;
  readonly root: string;
  readonly gitDir: string;
  readonly ref: string;
  readonly old: ObjectId;
  readonly new: ObjectId;
  readonly lander: ProcessIdentity;
}

const CHECKOUT = "land-checkout";

function toFact(move: CheckoutMove): Fact {
  const { root, gitDir, ref, old, new: next, lander } = move;
  return { root, git_dir: gitDir, ref, old, new: next, lander: { ...lander } };
}

function fromFact(name: FactName, fact: Fact): CheckoutMove | null {
  const { root, git_dir: gitDir, ref, old, new: next, lander } = fact;
  const texts = [root, gitDir, ref, old, next];
  if (texts.some((text) => typeof text !== "string") || typeof lander !== "object" || lander === null)
    return null;
  return {
    worktreeId: trusted(factId(name)),
    ...{ root: root as string, gitDir: gitDir as string, ref: ref as string },
    ...{ old: old as ObjectId, new: next as ObjectId, lander: lander as ProcessIdentity },
  };
}

/** Beside Git's own: what the index is to be once the branch has moved. */
const nextIndex = (gitDir: string) => joinPath(gitDir, "cotenant-land.index");
const lockOf = (gitDir: string) => joinPath(gitDir, "index.lock");
const markOf = ({ worktreeId, new: next }: CheckoutMove) => `cotenant: landing ${next} in ${worktreeId}\n`;

/**
 * Moves index and files of the worktree that a target is checked out in, so that they are at `next` when the branch gets
 * there: `act` moves the branch. The real index changes last, and is locked meanwhile as Git locks it; the new one is made
 * beside it. Whoever dies on the way leaves a fact, and the next one finishes or takes back (`settleCheckouts`). Files that
 * somebody edits meanwhile are left alone (PROTOCOL 33).
 */
export async function movingAlong<T extends { readonly kind: string }>(
  yard: Yard,
  entry: WorktreeEntry,
  at: { readonly ref: string; readonly old: ObjectId; readonly next: ObjectId },
  act: () => Promise<T>,
): Promise<T> {
  const worktreeId = entry.worktreeId!;
  const session = yard.session.elsewhere({ worktreeId, branch: entry.branch });
  if ((await accessOf(yard.session.coordinator, worktreeId)) === "shared")
    throw unfit(
      entry,
      at.ref,
      "is shared: no lock keeps its writers away",
      "make it exclusive: cotenant worktree access exclusive",
    );
  const key = writerKey(worktreeId);
  const grant = await session
    .acquire([{ key, reach: "repository" }], { ttlSecs: 0, bind: "process", reason: "landing" })
    .catch((error: unknown) => {
      throw asUnfit(error, entry, at.ref);
    });
  try {
    return await underLock(yard, entry, at, act);
  } finally {
    const own = grant.fresh.map(({ leaseId }) => ({ key, leaseId }));
    if (own.length > 0) await session.release(own).catch(() => {});
  }
}

async function underLock<T extends { readonly kind: string }>(
  yard: Yard,
  entry: WorktreeEntry,
  at: { readonly ref: string; readonly old: ObjectId; readonly next: ObjectId },
  act: () => Promise<T>,
): Promise<T> {
  const { platform, git } = machineOf(yard);
  const reader = new CommitReader(git, { cwd: yard.workspace.repository.worktreeRoot });
  const changes = await reader.difference(at.old, at.next);
  await refuseUnfit(yard, entry, at.ref, changes);
  const move: CheckoutMove = {
    ...{ worktreeId: entry.worktreeId!, root: entry.root, gitDir: entry.gitDir },
    ...{ ref: at.ref, old: at.old, new: at.next, lander: platform.processes.self() },
  };
  const work = await openWork(yard, move.worktreeId);
  if (work === null) throw anotherGit(move);
  let isMoved = false;
  try {
    await note(yard, move, toFact(move));
    await lockIndex(yard, move);
    await moveFiles(yard, entry, move, work);
    const outcome = await act();
    isMoved = outcome.kind === "committed" || (await isThere(yard.workspace, move));
    return outcome;
  } finally {
    try {
      await (isMoved ? finish(yard, move) : takeBack(yard, move));
    } finally {
      await quietly(() => platform.files.close(work));
    }
  }
}

function anotherGit({ root, gitDir }: CheckoutMove): CotenantError {
  const path = lockOf(gitDir);
  return new CotenantError("E_PROTECTED_REF", `another Git is at work in ${printable(root, 300)}`, {
    hint: `run it again when it is done; if none is, one has left ${printable(path, 300)} behind`,
    data: { worktree: root, lock: path },
  });
}

/** As Git does: whoever else wants to change the index has to wait. What is in it says whose lock it is. */
async function lockIndex(yard: Yard, move: CheckoutMove): Promise<void> {
  const { files } = machineOf(yard).platform;
  const path = lockOf(move.gitDir);
  // Whoever else may land here has to read it, where we die.
  const { file: mode } = modesFor(yard.workspace.repository.config.sharedRepository);
  try {
    const fd = await files.open(path, "create", mode);
    try {
      await files.writeAt(fd, new TextEncoder().encode(markOf(move)), 0);
      await files.sync(fd);
    } finally {
      await files.close(fd);
    }
  } catch (error) {
    if ((error as { code?: unknown }).code !== "EEXIST") throw error;
    throw anotherGit(move);
  }
}

async function moveFiles(
  yard: Yard,
  entry: WorktreeEntry,
  move: CheckoutMove,
  lock: Descriptor,
): Promise<void> {
  const { git, platform } = machineOf(yard);
  const index = nextIndex(move.gitDir);
  await platform.files.unlink(index);
  await platform.files.unlink(`${index}.lock`);
  await copyFile(yard, joinPath(move.gitDir, "index"), index);
  const place = ["--git-dir", move.gitDir, "--work-tree", move.root];
  const options = { cwd: move.root, env: { GIT_INDEX_FILE: index }, timeoutMs: LONG_MS };
  await git.run([...place, "update-index", "-q", "--refresh"], options);
  // Somebody may have changed something between the first look and the lock.
  if ((await isChanged(git, entry)) !== false)
    throw unfit(entry, move.ref, "has changes that are not committed", "commit or stash them");
  const quiet = ["-c", "submodule.recurse=false", "-c", "core.splitIndex=false"];
  const args = [...quiet, ...place, "read-tree", "-m", "-u", move.old, move.new];
  // It may outlive us: whoever settles this waits for it.
  const { status, stderr } = await git.start(args, { ...options, inherit: [lock] }).end();
  if (status !== 0)
    throw gitFailure(args, { cwd: move.root, status, stderr }, "moving the files of a checkout");
}

/** Held by whoever moves the files of this checkout, and by each Git of theirs (PROTOCOL 34). Null where somebody is at it. */
async function openWork(yard: Yard, worktreeId: WorktreeId): Promise<Descriptor | null> {
  const { files, locks } = machineOf(yard).platform;
  const path = `${yard.workspace.store.layout.locks}/land-checkout-${worktreeId.slice(3)}.lock`;
  const { file } = modesFor(yard.workspace.repository.config.sharedRepository);
  const fd = await files.open(path, "update-or-create", file);
  if (await locks.tryLock(fd)) return fd;
  await files.close(fd);
  return null;
}

async function copyFile(yard: Yard, from: string, to: string): Promise<void> {
  const { files } = machineOf(yard).platform;
  const bytes = (await files.readFile(from)) ?? new Uint8Array();
  if (bytes.length === 0) return;
  const fd = await files.open(to, "create", 0o600);
  try {
    for (let at = 0; at < bytes.length; ) at += await files.writeAt(fd, bytes.subarray(at), at);
  } finally {
    await files.close(fd);
  }
}

async function isThere(workspace: Workspace, { ref, new: next }: CheckoutMove): Promise<boolean> {
  const tip = await tipOf(workspace, ref);
  return tip !== null && (tip === next || (await isAncestor(workspace, next, tip)));
}

/** The branch has moved: the new index takes the old one's place. */
async function finish(yard: Yard, move: CheckoutMove): Promise<void> {
  const { files } = machineOf(yard).platform;
  const index = nextIndex(move.gitDir);
  // Without our lock somebody may have changed the index since: then theirs stays, and Git shows what differs.
  if ((await isOurs(yard, move)) && (await files.lstat(index)) !== null)
    await files.rename(index, joinPath(move.gitDir, "index"));
  await clear(yard, move);
}

/** The branch has not moved: files that are as the landing would have had them are put back. */
async function takeBack(yard: Yard, move: CheckoutMove): Promise<void> {
  if (await isOurs(yard, move)) await putBack(yard, move);
  await clear(yard, move);
}

async function clear(yard: Yard, move: CheckoutMove): Promise<void> {
  const { files } = machineOf(yard).platform;
  await files.unlink(nextIndex(move.gitDir));
  await files.unlink(`${nextIndex(move.gitDir)}.lock`);
  if (await isOurs(yard, move)) await files.unlink(lockOf(move.gitDir));
  await note(yard, move, null);
}

async function isOurs(yard: Yard, move: CheckoutMove): Promise<boolean> {
  const bytes = await machineOf(yard).platform.files.readFile(lockOf(move.gitDir));
  return bytes !== null && new TextDecoder().decode(bytes) === markOf(move);
}

async function note(
  { session }: Yard,
  { worktreeId, ref, old, new: next }: CheckoutMove,
  fact: Fact | null,
): Promise<void> {
  await session.log(`land ${ref}`, {
    type: fact === null ? "land.checkout_settled" : "land.checkout_moving",
    payload: { worktree_id: worktreeId, ref, old, new: next },
    facts: new Map([[factName(CHECKOUT, worktreeId), fact]]),
  });
}

/** Checkouts that move along now, or did when their lander died. */
export async function openMoves(coordinator: Pick<Coordinator, "facts">): Promise<CheckoutMove[]> {
  const facts = await coordinator.facts({ kinds: [CHECKOUT] });
  return [...facts].flatMap(([name, { value }]) => fromFact(name, value) ?? []);
}

/**
 * What landers have left who died while a checkout moved along: finished where the branch has moved, else taken back. Also what this
 * process itself could not take back before, unless it is at it right now.
 */
export async function settleCheckouts(yard: Yard): Promise<string[]> {
  const { processes, files } = machineOf(yard).platform;
  const settled: string[] = [];
  for (const move of await openMoves(yard.session.coordinator)) {
    const isOwn = sameProcess(move.lander, processes.self());
    if (!isOwn && (await processes.liveness(move.lander)) !== "dead") continue;
    const work = isOwn ? await openWork(yard, move.worktreeId) : await waitForWork(yard, move);
    if (work === null) continue;
    try {
      await ((await isThere(yard.workspace, move)) ? finish(yard, move) : takeBack(yard, move));
    } finally {
      await quietly(() => files.close(work));
    }
    settled.push(move.root);
  }
  return settled;
}

const MOST_WAIT_MS = 60_000;
const LOOK_EVERY_MS = 50;

/** A Git that the dead have started goes on by itself, and is over soon. */
async function waitForWork(yard: Yard, move: CheckoutMove): Promise<Descriptor> {
  const { clock, timers } = machineOf(yard).platform;
  const until = clock.monotonicMs() + MOST_WAIT_MS;
  for (;;) {
    const work = await openWork(yard, move.worktreeId);
    if (work !== null) return work;
    if (clock.monotonicMs() > until) throw anotherGit(move);
    await timers.sleep(LOOK_EVERY_MS).done;
  }
}
