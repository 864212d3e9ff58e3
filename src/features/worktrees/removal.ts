import type { Coordinator } from "../../coordinator/contract";
import { CotenantError } from "../../errors/cotenant-error";
import { toByteText } from "../../git/byte-text";
import { parentOf } from "../../identity/path-text";
import { standingOf, type WorktreeEntry } from "../../identity/worktree-list";
import { type FactName, factId, factName } from "../../kernel/facts";
import { printable } from "../../kernel/ids";
import { newUlid } from "../../platform/new-ulid";
import type { ProcessIdentity } from "../../platform/platform";
import { accessFact } from "./access";
import { forgetAt } from "./git-records";
import { machineOf, oneAtATime, type Yard } from "./place";
import { recordName } from "./records";
import { removeTree } from "./tree-removal";

/** What was kept of a worktree before it goes. */
export interface Kept {
  readonly snapshotId: string | null;
  /** Whether what is there, wherever it is by now, is still what was kept. */
  isSame(root: string): Promise<boolean>;
}

const REMOVING = "removing";

/**
 * Takes a worktree away: first out of its place, so that nobody goes on writing there, then looked at once more, and only
 * then deleted. Whoever dies before that second look leaves it to be put back.
 */
export async function removeWorktree(yard: Yard, worktree: WorktreeEntry, kept: Kept): Promise<void> {
  const { platform } = machineOf(yard);
  const id = newUlid(platform);
  const { root, worktreeId } = worktree;
  const workshop = `${parentOf(root) ?? ""}/.cotenant-gone-${id}`;
  const going: Going = {
    id,
    root,
    workshop,
    worktreeId,
    snapshotId: kept.snapshotId,
    maker: platform.processes.self(),
  };
  if ((await standingOf(platform, root, worktree.gitDir)) !== "there")
    throw new CotenantError("E_STORE_BUSY", `${printable(root, 500)} was taken away meanwhile`, {
      hint: "run it again",
      data: { root, worktree_id: worktreeId },
    });
  await log(yard, "worktree.removing", going, { ...goingFact(going) });
  const { trees } = yard;
  const [place, aside] = [toByteText(root), toByteText(`${workshop}/tree`)];
  await trees.makeDirectory(toByteText(workshop), 0o700);
  await trees.rename(place, aside);
  await trees.syncDirectory(toByteText(parentOf(root) ?? "/"));
  if (!(await kept.isSame(`${workshop}/tree`))) {
    await putBack(yard, going);
    throw new CotenantError(
      "E_CONSISTENCY_UNAVAILABLE",
      `somebody is writing in ${printable(root, 500)}: it was put back`,
      {
        hint: "find out who, then run it again",
        data: { root, worktree_id: worktreeId },
      },
    );
  }
  await confirm(yard, going);
  await finish(yard, going);
}

interface Going {
  readonly id: string;
  readonly root: string;
  readonly workshop: string;
  readonly worktreeId: WorktreeEntry["worktreeId"];
  readonly snapshotId: string | null;
  readonly maker: ProcessIdentity;
}

/** From here on it is deleted, by whoever comes. */
async function confirm({ trees }: Yard, { workshop }: Going): Promise<void> {
  const fd = await trees.create(toByteText(`${workshop}/checked`), 0o600);
  await trees.sync(fd);
  await trees.close(fd);
  await trees.syncDirectory(toByteText(workshop));
}

async function finish(yard: Yard, going: Going): Promise<void> {
  const { trees } = yard;
  const tree = toByteText(`${going.workshop}/tree`);
  await oneAtATime(yard, async () => {
    await removeTree(trees, tree);
    await trees.unlink(toByteText(`${going.workshop}/checked`));
    await trees.removeDirectory(toByteText(going.workshop));
    // Of this one alone: others that are gone may have something on record that exists nowhere else.
    await forgetAt(yard, going.root);
  });
  await log(yard, "worktree.removed", going, null);
}

async function putBack(yard: Yard, going: Going): Promise<void> {
  const { trees } = yard;
  const tree = toByteText(`${going.workshop}/tree`);
  if ((await trees.look(tree)) !== null && (await trees.look(toByteText(going.root))) === null)
    await trees.rename(tree, toByteText(going.root));
  await trees.removeDirectory(toByteText(going.workshop));
  await trees.syncDirectory(toByteText(parentOf(going.root) ?? "/"));
  await log(yard, "worktree.kept", going, null);
}

/** What others have left who died: what was looked at twice goes, everything else is put back. */
export async function settleRemovals(yard: Yard): Promise<string[]> {
  const { processes } = machineOf(yard).platform;
  const settled: string[] = [];
  for (const going of await removals(yard.session.coordinator)) {
    if ((await processes.liveness(going.maker)) !== "dead") continue;
    const isChecked = (await yard.trees.look(toByteText(`${going.workshop}/checked`))) !== null;
    const isGone = (await yard.trees.look(toByteText(going.workshop))) === null;
    const isThere = (await yard.trees.look(toByteText(going.root))) !== null;
    if (isChecked || (isGone && !isThere)) await finish(yard, going);
    else await putBack(yard, going);
    settled.push(going.root);
  }
  return settled;
}

export async function removals(coordinator: Pick<Coordinator, "facts">): Promise<Going[]> {
  const found: Going[] = [];
  for (const [name, { value }] of await coordinator.facts({ kinds: [REMOVING] })) {
    const { root, workshop, worktree_id: worktreeId, snapshot_id: snapshotId, maker } = value;
    if (typeof root !== "string" || typeof workshop !== "string" || typeof maker !== "object") continue;
    found.push({
      id: factId(name).toUpperCase(),
      root,
      workshop,
      worktreeId: (worktreeId ?? null) as Going["worktreeId"],
      snapshotId: typeof snapshotId === "string" ? snapshotId : null,
      maker: maker as ProcessIdentity,
    });
  }
  return found;
}

function goingFact({ root, workshop, worktreeId, snapshotId, maker }: Going) {
  return { root, workshop, worktree_id: worktreeId, snapshot_id: snapshotId, maker: { ...maker } };
}

async function log(
  yard: Yard,
  type: string,
  going: Going,
  fact: Readonly<Record<string, unknown>> | null,
): Promise<void> {
  const { worktreeId, root, snapshotId } = going;
  const facts = new Map<FactName, Readonly<Record<string, unknown>> | null>([
    [factName(REMOVING, going.id.toLowerCase()), fact],
  ]);
  if (type === "worktree.removed" && worktreeId !== null) {
    facts.set(recordName(worktreeId), null);
    facts.set(accessFact(worktreeId), null);
  }
  await yard.session.log(`worktree ${printable(root, 500)}`, {
    type,
    payload: { worktree_id: worktreeId, root, snapshot_id: snapshotId },
    facts,
  });
}
