import type { Workspace } from "../coordinator/workspace";
import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import { kindOf } from "../kernel/keys";
import { branchOf, commitAll, detachAt, dropBranchAt, isDirty, leftUnderWay, putBranch } from "./branches";
import { pushBranch } from "./forge";
import type { Ending, Failure, Turn } from "./turn";
import { commentOn, finishIssue, putBackIssue, syncThere } from "./writing";

/** It is where it belongs: the issue is done, which goes the same way as the work. */
export async function finish(turn: Turn): Promise<Ending> {
  const { delivery } = turn.crew.options;
  const station = turn.station;
  const { row } = turn.issue;
  const where = turn.landed === null ? `on branch ${turn.branch}` : `landed as ${turn.landed.slice(0, 12)}`;
  const resolution = turn.pullRequest === null ? where : `pull request ${turn.pullRequest}`;
  if (delivery === "land") {
    await landData(
      turn,
      `Close ${row.shortId}: ${printable(row.title, 150)}`,
      `done-${row.shortId}`,
      async () => {
        if (turn.claim.kind !== "released") await finishIssue(station, row.id, resolution);
      },
    );
  } else {
    if (turn.claim.kind !== "released") await finishIssue(station, row.id, resolution);
    await commitData(turn, `Close ${row.shortId}: ${printable(row.title, 150)}`);
    if (delivery === "pr")
      await pushBranch(turn.crew.parts, station, turn.branch!, turn.crew.options.push ?? null);
  }
  await letGo(turn);
  return { end: "done" };
}

/** Somebody has to say so of a gate: the work waits on its branch, and nobody holds the issue. */
export async function gated(turn: Turn, pending: readonly string[]): Promise<Ending> {
  const { row } = turn.issue;
  await finishIssue(turn.station, row.id, `on branch ${turn.branch}`);
  await commitData(turn, `${row.shortId} waits for its gates: ${printable(row.title, 150)}`);
  await letGo(turn);
  const names = pending.map((gate) => printable(gate, 80)).join(", ");
  const next = turn.crew.options.delivery === "land" ? `, then cotenant land add ${turn.branch}` : "";
  return {
    end: "gated",
    why: `${names} still has to be passed`,
    hint: `look at branch ${turn.branch}; then cotenant gate pass ${row.shortId} ${printable(pending[0]!, 80)}${next}`,
  };
}

export async function giveBack(turn: Turn, failure: Failure): Promise<Ending> {
  const { parts, options } = turn.crew;
  const station = turn.station;
  const { row } = turn.issue;
  await keepWork(turn);
  if (failure.isAside !== true) {
    const text = commentFor(failure, turn);
    const writeIn = async (workspace: Workspace) => {
      await commentOn(workspace, row.id, station.slot.agentId, text);
      await putBack(turn);
    };
    const title = `Give back ${row.shortId}: ${printable(row.title, 150)}`;
    if (options.delivery === "land")
      await landData(turn, title, `note-${row.shortId}`, () => writeIn(station.workspace));
    // Where people look first; its branch may never be merged.
    else await writeIn(parts.workspace);
  }
  await letGo(turn);
  const hint = turn.log === null ? null : `read what it printed: cotenant dispatch logs ${row.shortId}`;
  return { end: "given_back", why: failure.why, hint: failure.hint ?? hint };
}

/** Somebody else has it now, or nobody; what was done here is kept, and not committed: there is no claim to do so under. */
export async function lost(turn: Turn, why: string): Promise<Ending> {
  await turn.putAside("its claim was lost");
  await letGo(turn);
  const hint =
    turn.snapshotId === null ? null : `what it had not committed: cotenant restore ${turn.snapshotId}`;
  return { end: "lost", why: `the claim was lost: ${why}`, hint };
}

export async function deleted(turn: Turn): Promise<Ending> {
  await turn.putAside("its issue was deleted", true);
  await letGo(turn);
  const hint = turn.snapshotId === null ? null : `its work: cotenant restore ${turn.snapshotId}`;
  return { end: "deleted", why: "the issue was deleted meanwhile", hint };
}

export async function interrupted(turn: Turn): Promise<Ending> {
  await keepWork(turn);
  await putBack(turn);
  await letGo(turn);
  return { end: "interrupted", why: "interrupted", hint: "run the same command again: it goes on" };
}

/** The issue's written state, as it was before it was claimed. */
async function putBack(turn: Turn): Promise<void> {
  const unwritten = turn.claim.kind === "held" ? await putBackIssue(turn.station, turn.issue.row.id) : null;
  if (unwritten !== null) turn.note(unwritten);
}

/** On its branch, for whoever goes on; what may not be committed, as a snapshot. */
async function keepWork(turn: Turn): Promise<void> {
  const station = turn.station;
  if (!(await isDirty(station))) return;
  const canCommit =
    turn.crew.options.commits &&
    turn.claim.kind === "held" &&
    (await branchOf(station)) === turn.branch &&
    (await leftUnderWay(station)) === null;
  if (canCommit) {
    try {
      await commitAll(station, `Work in progress: ${turn.message}`);
      return;
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
    }
  }
  await turn.putAside("not committed");
}

/** What was written of the issue itself, on its branch. */
async function commitData(turn: Turn, message: string): Promise<void> {
  try {
    await commitAll(turn.station, message);
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    turn.note(`what was written of the issue is not committed: ${error.message}`);
  }
}

/** The same on top of the target, where it lands at once: only what is merged is seen by everybody. */
async function landData(
  turn: Turn,
  message: string,
  name: string,
  write: () => Promise<void>,
): Promise<void> {
  const station = turn.station;
  await detachAt(station, await turn.targetTip());
  await write();
  const branch = `cotenant/${name}`;
  try {
    const commit = await commitAll(station, message);
    // It has landed already: a killed run may have left its branch.
    if (commit === null) return await dropBranchAt(station, branch, null);
    await putBranch(station, branch, commit);
    const { outcome, message: why } = await turn.crew.lander!.land(branch, {
      ...{ issueId: turn.issue.row.id, method: "rebase" as const },
    });
    if (outcome === "landed") await dropBranchAt(station, branch, commit);
    else turn.note(`what was written of the issue is on ${branch} only: ${why}`);
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    turn.note(`what was written of the issue has not landed: ${error.message}`);
  }
}

/** Gives back the claim and whatever else the worker holds, and tells other machines what they have to know of it. */
async function letGo(turn: Turn): Promise<void> {
  const { station, issue } = turn;
  await turn.keeper.stop();
  const unsynced = await syncThere(station, turn.issue.row.id);
  if (unsynced !== null) turn.note(`the ledger was not synced: ${unsynced}`);
  const { claim } = issue;
  const others = (await station.session.mine())
    .map(({ lease }) => lease)
    .filter(({ key }) => kindOf(key) !== "issue");
  for (const { key, leaseId } of turn.claim.kind === "held" ? [claim, ...others] : others) {
    try {
      await station.session.release([{ key, leaseId }], { reason: "dispatch" });
    } catch (error) {
      if (!(error instanceof CotenantError)) throw error;
      // It runs out by itself.
      if (key === claim.key) turn.note(`its claim could not be given back: ${error.message}`);
    }
  }
}

const MOST_OUTPUT = 4_000;

function commentFor({ why, output }: Failure, { branch, log, attempts }: Turn): string {
  const tries = attempts === 1 ? "One attempt" : `${attempts} attempts`;
  const where = branch === null ? "" : ` What was done is on branch ${branch}.`;
  const path = log === null ? "" : ` The log: ${log}.`;
  const end =
    output.trim() === "" ? "" : `\n\nThe end of what was printed:\n\n${output.trim().slice(-MOST_OUTPUT)}`;
  return `${tries} of a dispatch worker failed: ${why}.${where}${path}${end}`;
}
