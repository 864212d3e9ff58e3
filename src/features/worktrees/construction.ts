import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { toByteText } from "../../git/byte-text";
import { parentOf } from "../../identity/path-text";
import { readWorktreeIdentity } from "../../identity/worktree";
import { listWorktrees } from "../../identity/worktree-list";
import { printable, type WorktreeId } from "../../kernel/ids";
import { isLocked } from "../../platform/locked";
import { newUlid } from "../../platform/new-ulid";
import type { Descriptor } from "../../platform/platform";
import { LONG_MS } from "./git-calls";
import { forgetAt, forgetGoneAt } from "./git-records";
import { workshopOf } from "./names";
import { dropBranch, makeBranch, type NewBranch } from "./new-branch";
import { hereOf, machineOf, oneAtATime, opened, quietly, runHolding, type Yard } from "./place";
import {
  type Making,
  makingName,
  makings,
  makingToFact,
  recordName,
  recordToFact,
  type WorktreeRecord,
} from "./records";
import { makeDirectories, removeTree } from "./tree-removal";

/** A worktree that is to be. */
export interface Wanted {
  readonly place: string;
  /** Null: detached at the commit. */
  readonly branch: string | null;
  /** Whether the branch is to be made, at the commit. */
  readonly isNewBranch: boolean;
  readonly commit: string;
  readonly record: Pick<WorktreeRecord, "agentId" | "issueId" | "snapshotId" | "purpose">;
  /** What goes into it before it gets its name; `root` is where it is until then. `run` is for a Git that writes there. */
  readonly fill: (root: string, run: RunThere) => Promise<void>;
}

export interface Made {
  readonly worktreeId: WorktreeId;
  /** The branch that was made with it; null where it was there before, or there is none. */
  readonly newBranch: NewBranch | null;
}

type RunThere = (args: readonly string[], doing: string) => Promise<void>;

/**
 * Makes a worktree under a name of ours, and gives it its own when it is whole. Whoever dies on the way leaves an intent
 * in the log, and nothing at the place itself; the next one clears up, or finishes what only lacked the last word.
 */
export async function makeWorktree(yard: Yard, wanted: Wanted): Promise<Made> {
  await settleMakings(yard);
  await forgetGoneAt(yard, wanted);
  const making = await intend(yard, wanted);
  let bench: Descriptor | null = null;
  try {
    const held = await openBench(yard, making);
    bench = held;
    await add(yard, making, wanted, held);
    await wanted.fill(making.made, (args, doing) =>
      runHolding(yard, args, { cwd: making.made, held: [held], doing }),
    );
    await moveIntoPlace(yard, making, held);
  } catch (error) {
    await abandon(yard, making, error);
    throw error;
  } finally {
    const fd = bench;
    if (fd !== null) await quietly(() => machineOf(yard).platform.files.close(fd));
  }
  return { worktreeId: await finish(yard, making, { recovered: false }), newBranch: newBranchOf(making) };
}

/** What others have left who died: cleared away, or finished. Answers the places that it dealt with. */
export async function settleMakings(yard: Yard): Promise<string[]> {
  const { processes } = machineOf(yard).platform;
  const settled: string[] = [];
  for (const making of await makings(yard.session.coordinator)) {
    if ((await processes.liveness(making.maker)) !== "dead" || (await isAtWork(yard, making))) continue;
    if (await isInPlace(yard, making)) {
      const args = ["worktree", "repair", making.place];
      await oneAtATime(yard, (lock) =>
        runHolding(yard, args, { cwd: hereOf(yard), held: [lock], doing: "mending a worktree" }),
      );
      await clearWorkshop(yard, making);
      await finish(yard, making, { recovered: true });
    } else await abandon(yard, making, null);
    settled.push(making.place);
  }
  return settled;
}

async function intend(yard: Yard, { place, branch, isNewBranch, commit, record }: Wanted): Promise<Making> {
  const { clock, random, processes } = machineOf(yard).platform;
  const id = newUlid({ clock, random });
  const making: Making = {
    id,
    place,
    made: workshopOf(place, id).made,
    branch: isNewBranch ? branch : null,
    commit,
    maker: processes.self(),
    record,
  };
  await note(yard, "worktree.intended", making, { place, branch, commit }, makingToFact(making));
  return making;
}

function newBranchOf({ id, branch, commit }: Making): NewBranch | null {
  return branch === null ? null : { branch, commit, mark: markOf(id) };
}

function markOf(id: string): string {
  return `cotenant: for worktree ${id}`;
}

/** Its lock is held by whoever works on it: by us, and by each Git that we start for it. */
async function openBench(yard: Yard, { made, place }: Making): Promise<Descriptor> {
  const { files, locks } = machineOf(yard).platform;
  const workshop = parentOf(made)!;
  try {
    await makeDirectories(yard.trees, toByteText(parentOf(place) ?? "/"));
    await yard.trees.makeDirectory(toByteText(workshop), 0o755);
  } catch (error) {
    throw noPlace(error, place);
  }
  const path = `${workshop}/${BENCH}`;
  const fd = await opened(() => files.open(path, "update-or-create", 0o600), path);
  await opened(() => locks.tryLock(fd), path);
  return fd;
}

const BENCH = ".lock";

/** Whether some Git that the dead have started is still at it. */
async function isAtWork(yard: Yard, { made }: Making): Promise<boolean> {
  return isLocked(machineOf(yard).platform, `${parentOf(made)!}/${BENCH}`);
}

async function add(yard: Yard, making: Making, wanted: Wanted, bench: Descriptor): Promise<void> {
  const { made } = making;
  const { branch, commit } = wanted;
  const what = branch === null ? ["--detach", made, commit] : [made, branch];
  const args = ["worktree", "add", "--quiet", "--no-checkout", ...what];
  await oneAtATime(yard, async (lock) => {
    const held = [bench, lock];
    const fresh = newBranchOf(making);
    if (fresh !== null) await makeBranch(yard, fresh, held);
    await runHolding(yard, args, { cwd: hereOf(yard), held, doing: "making a worktree" });
  });
}

async function moveIntoPlace(yard: Yard, making: Making, bench: Descriptor): Promise<void> {
  const { trees } = yard;
  const { made, place } = making;
  const args = ["worktree", "move", made, place];
  await oneAtATime(yard, async (lock) => {
    if ((await trees.look(toByteText(place))) !== null && !(await trees.removeDirectory(toByteText(place))))
      throw placeTaken(place);
    await runHolding(yard, args, {
      cwd: hereOf(yard),
      held: [bench, lock],
      doing: "putting a worktree in its place",
    });
  });
  await clearWorkshop(yard, making);
  await trees.syncDirectory(toByteText(parentOf(place) ?? "/"));
}

async function clearWorkshop({ trees }: Yard, { made }: Making): Promise<void> {
  const workshop = toByteText(parentOf(made)!);
  await trees.unlink(`${workshop}/${BENCH}`);
  await trees.removeDirectory(workshop);
}

export function placeTaken(place: string): CotenantError {
  return new CotenantError("E_POLICY", `${printable(place, 500)} is there already`, {
    hint: "name another place with --path, or move what is there",
    data: { path: place },
  });
}

function noPlace(error: unknown, place: string): CotenantError {
  const failure = fileFailure(error, "making a place for a worktree", place);
  // Nobody took anything away: there are places where no directory can be.
  if (failure.code !== "E_STORE_BUSY") return failure;
  return new CotenantError("E_POLICY", `no directory can be made at ${printable(place, 500)}`, {
    hint: "name another place with --path",
    data: { path: place },
    cause: error,
  });
}

/** Only what lies under our own name is ever removed. */
async function abandon(yard: Yard, making: Making, cause: unknown): Promise<void> {
  const { made } = making;
  try {
    if (await isInPlace(yard, making)) return;
    await oneAtATime(yard, async () => {
      const { git } = machineOf(yard);
      const options = { cwd: hereOf(yard), timeoutMs: LONG_MS };
      await git.run(["worktree", "remove", "--force", "--force", made], options);
      await removeTree(yard.trees, toByteText(parentOf(made)!));
      await forgetAt(yard, made);
      const fresh = newBranchOf(making);
      if (fresh !== null) await dropBranch(yard, fresh);
    });
    await note(yard, "worktree.abandoned", making, { place: making.place }, null);
  } catch (error) {
    // The first failure is the one to tell; the intent stays open, and is settled by whoever comes next.
    if (cause === null) throw error;
  }
}

async function finish(
  yard: Yard,
  making: Making,
  { recovered }: { readonly recovered: boolean },
): Promise<WorktreeId> {
  const { platform, git } = machineOf(yard);
  const { repository } = yard.workspace;
  const entries = await listWorktrees(platform, git, repository);
  const real = (await platform.files.realPath(making.place)) ?? making.place;
  const entry = entries.find(({ root }) => root === real);
  if (entry === undefined)
    throw new CotenantError("E_GIT", `Git does not know the worktree at ${printable(making.place, 500)}`, {
      hint: `run: git worktree repair ${printable(making.place, 500)}`,
      data: { path: making.place },
    });
  const { identity } = await readWorktreeIdentity(platform, git, {
    worktreeRoot: entry.root,
    gitDir: entry.gitDir,
    commonDir: repository.commonDir,
  });
  const record: WorktreeRecord = {
    ...making.record,
    root: entry.root,
    branch: entry.branch,
    createdAt: identity.createdAt,
    setup: null,
  };
  await yard.session.log(`worktree ${making.place}`, {
    // One line for what is one thing: a snapshot that came back is a worktree that was made.
    type: record.snapshotId === null ? "worktree.created" : "snapshot.restored",
    payload: {
      worktree_id: identity.worktreeId,
      ...recordToFact(record),
      ...(record.snapshotId === null ? {} : { inplace: false }),
      ...(recovered ? { recovered } : {}),
    },
    facts: new Map([
      [makingName(making.id), null],
      [recordName(identity.worktreeId), recordToFact(record)],
    ]),
  });
  return identity.worktreeId;
}

async function note(
  yard: Yard,
  type: string,
  making: Making,
  payload: Readonly<Record<string, unknown>>,
  fact: Readonly<Record<string, unknown>> | null,
): Promise<void> {
  await yard.session.log(`worktree ${making.place}`, {
    type,
    payload,
    facts: new Map([[makingName(making.id), fact]]),
  });
}

/** It had got its name, and only the last word was missing. */
async function isInPlace({ trees }: Yard, { made, place }: Making): Promise<boolean> {
  return (
    (await trees.look(toByteText(made))) === null &&
    (await trees.look(toByteText(`${place}/.git`)))?.kind === "file"
  );
}
