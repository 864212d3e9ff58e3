import type { Command, Context, Output } from "../../../cli/grammar/command";
import type { Session } from "../../../coordinator/session";
import { CotenantError } from "../../../errors/cotenant-error";
import type { WorktreeEntry } from "../../../identity/worktree-list";
import type { LeaseRef } from "../../../kernel/commands";
import { byKey } from "../../../kernel/commands";
import { printable } from "../../../kernel/ids";
import type { LeaseKey } from "../../../kernel/keys";
import { sameParty } from "../../../kernel/lease";
import { leaseSummary } from "../../../kernel/words";
import { nodeTrees } from "../../../platform/node/trees";
import { forgetGoneWorktrees } from "../../harnesses/carried-settings";
import { issuesIn } from "../../issues/desk";
import { isFound } from "../../issues/resolve";
import { shortId } from "../../issues/short-id";
import { uncommittedIssues } from "../../issues/uncommitted";
import { tellSay } from "../../ledger/commands/ledger";
import { lasting } from "../../locks/commands/acquiring";
import { darkroomIn } from "../../snapshots/darkroom";
import { keepBeforeRemoval } from "../../snapshots/keeping";
import { cachePath } from "../../snapshots/stat-cache";
import { accessOf } from "../access";
import { forgetGone, refuseLockedByGit } from "../forgetting";
import { settleMakings } from "../making";
import { meantWorktree } from "../meant";
import type { Yard } from "../place";
import { removeWorktree, settleRemovals } from "../removing";
import { type AtStake, atStake } from "../stake";
import { underWriterLock, writerKey } from "../writer-lock";
import { stayingWorkspace, workspaceAt } from "./worktree-word";

export const command: Command = {
  usage: "worktree remove <worktree> [--no-snapshot] [--ignored]",
  about:
    "Takes a worktree away. Whatever it has that exists nowhere else is kept as a snapshot first: changes, new files,\nwhat is staged, commits that no branch leads to; with --ignored also what Git ignores, which is gone otherwise. Its\nbranch stays. Refused while somebody else holds leases from it. Of one that was deleted by hand, Git's record goes; whatever is in\nits place by now is not touched.",
  flags: {
    "no-snapshot": { meaning: "refuse instead, when there is something to be kept" },
    ignored: { meaning: "keep what Git ignores, too" },
  },
  examples: ["cotenant worktree remove work/login"],
  words: { min: 1, max: 1 },
  completes: ["worktree"],
  async run(context, parsed) {
    const here = await context.workspace();
    const trees = nodeTrees();
    const session = await here.session("write");
    const yard = { workspace: here, session, trees };
    await settleMakings(yard);
    await settleRemovals(yard);
    const worktree = await meantWorktree(here, parsed.words[0]!);
    if (worktree.isMain)
      throw new CotenantError(
        "E_POLICY",
        `${printable(worktree.root, 500)} is the main worktree: it is not removed`,
        {
          hint: "name a linked one; 'cotenant worktree list' shows them",
        },
      );
    await refuseLockedByGit(yard, worktree);
    if (!worktree.exists) return removedGone(context, yard, worktree);
    const staying = await stayingWorkspace(context, parsed, worktree, "worktree remove");
    const there = await workspaceAt(context, parsed, worktree, "worktree remove", staying);
    const room = await darkroomIn(there, trees);
    const { worktreeId } = room.session.actor;
    await refuseHeld(there, room.session.actor);
    const stake = await atStake(yard, worktree);
    refuseStake(stake, worktree.root, parsed.has("no-snapshot"));
    const unmerged = await issuesOnlyThere(there);
    const remove = async () => {
      const kept = await keepBeforeRemoval(room, { ...worktree, worktreeId }, stake, parsed.has("ignored"));
      await removeWorktree(yard, { ...worktree, worktreeId }, kept);
      return kept.snapshotId;
    };
    const isShared = (await accessOf(there.coordinator, worktreeId)) === "shared";
    const snapshotId = isShared ? await remove() : await underWriterLock(room.session, remove);
    for (const withIgnored of [false, true])
      await here.surroundings.platform.files.unlink(
        cachePath(here.repository.controlDir, worktreeId, withIgnored),
      );
    await forgetGoneWorktrees(staying);
    const mine = (await room.session.mine()).map(({ lease }) => byKey(lease.key));
    const released = await given(here, room.session, mine);
    const lines = [
      `removed ${printable(worktree.root, 500)}`,
      ...(worktree.branch === null ? [] : [`  its branch ${printable(worktree.branch)} stays`]),
      ...(snapshotId === null
        ? []
        : [
            `  what was not committed is snapshot ${snapshotId}, and nowhere else: cotenant restore ${snapshotId}`,
          ]),
      ...unmerged.map((words) => `  ${words}`),
      ...releasedLines(released),
    ];
    return {
      data: {
        worktree: { worktree_id: worktreeId, root: worktree.root, branch: worktree.branch },
        snapshot_id: snapshotId,
        was_gone: false,
        kept_ref: null,
        released,
        still_held: [],
      },
      text: context.quiet ? "" : lines.join("\n"),
    };
  },
};

/** Only Git's record is left of it, and that goes. */
async function removedGone(context: Context, yard: Yard, worktree: WorktreeEntry): Promise<Output> {
  const { root, branch, isReplaced } = worktree;
  const { worktreeId, keptRef, leases } = await forgetGone(yard, worktree);
  await forgetGoneWorktrees(yard.workspace);
  const released = leases.ended.map(({ key }) => key);
  const where = printable(root, 500);
  const lines = [
    `${where} was gone already${isReplaced ? ", and another repository is in its place, which stays as it is" : ""}: Git has forgotten it`,
    ...(branch === null ? [] : [`  its branch ${printable(branch)} stays`]),
    ...(keptRef === null ? [] : [`  what only its record led to is kept: git log ${keptRef}`]),
    ...releasedLines(released),
    ...leases.stillHeld.map(
      ({ lease }) => `  ${lease.agentId} still holds ${printable(lease.key)}, ${lasting(lease)}`,
    ),
  ];
  return {
    data: {
      worktree: { worktree_id: worktreeId, root, branch },
      snapshot_id: null,
      was_gone: true,
      kept_ref: keptRef,
      released,
      still_held: leases.stillHeld.map(({ lease }) => leaseSummary(lease)),
    },
    text: context.quiet ? "" : lines.join("\n"),
  };
}

const MOST_TOLD = 10;

/** Issues whose last write goes with it: what was done there counts for others only once it is committed and merged. */
async function issuesOnlyThere(there: Here): Promise<string[]> {
  const ids = await uncommittedIssues(there.surroundings.git, there.repository.worktreeRoot);
  if (ids.length === 0) return [];
  const reader = await issuesIn(there);
  const all = await reader.ids();
  const words: string[] = [];
  for (const [id, found] of await reader.findAll(ids.slice(0, MOST_TOLD)))
    if (isFound(found))
      words.push(`issue ${shortId(id, all)} is ${found.state} there only: no commit has that`);
  return words;
}

/** Gives back what the caller holds from it; what cannot be given back runs out, and that is said. */
async function given(here: Here, session: Session, refs: readonly LeaseRef[]): Promise<readonly LeaseKey[]> {
  if (refs.length === 0) return [];
  try {
    const { leases, ledger } = await session.release(refs);
    tellSay(here, ledger);
    return leases.map(({ key }) => key);
  } catch (error) {
    const keys = refs.map(({ key }) => printable(key ?? "")).join(", ");
    here.warnings.push(`not given back: ${keys} (${(error as Error).message}); it runs out by itself`);
    return [];
  }
}

function releasedLines(keys: readonly LeaseKey[]): string[] {
  return keys.length === 0 ? [] : [`  given back: ${keys.map((key) => printable(key)).join(", ")}`];
}

type Here = Awaited<ReturnType<Parameters<Command["run"]>[0]["workspace"]>>;

async function refuseHeld(there: Here, actor: Parameters<typeof sameParty>[0]): Promise<void> {
  const held = (await there.coordinator.list()).filter(
    ({ lease }) =>
      (lease.worktreeId === actor.worktreeId || lease.key === writerKey(actor.worktreeId)) &&
      !sameParty(lease, actor),
  );
  const [first] = held;
  if (first === undefined) return;
  throw new CotenantError(
    "E_LOCK_CONFLICT",
    `${first.lease.agentId} works there: it holds ${printable(first.lease.key)}`,
    {
      hint: "wait until its leases are given back or have run out; 'cotenant worktree list' shows them",
      data: { holders: held.map(({ lease }) => ({ agent_id: lease.agentId, key: lease.key })) },
    },
  );
}

function refuseStake(stake: AtStake, root: string, refuses: boolean): void {
  if (stake.underWay !== null)
    throw new CotenantError("E_POLICY", `${stake.underWay} is under way in ${printable(root, 500)}`, {
      hint: "finish it or give it up there first",
      data: { root },
    });
  if (!refuses || (!stake.isDirty && stake.tips.length === 0)) return;
  throw new CotenantError("E_POLICY", `${printable(root, 500)} has work that exists nowhere else`, {
    hint: "commit it, or leave out --no-snapshot: then it is kept as a snapshot first",
    data: { root, dirty: stake.isDirty, commits: stake.tips.length },
  });
}
