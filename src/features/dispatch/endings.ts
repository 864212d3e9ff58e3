import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { kindOf } from "../../kernel/keys";
import { branchOf, commitAll, commitData, isDirty, keepLoose, leftUnderWay, takeData } from "./branches";
import { landData } from "./data-landing";
import { pushBranch, requestMerge } from "./forge";
import { commentOn, finishIssue, putBackIssue, syncThere } from "./issue-writes";
import type { Ending, Failure, Turn } from "./turn";

/** It is where it belongs: the issue is done, which goes the same way as the work. */
export async function finish(turn: Turn): Promise<Ending> {
  const { station, issue, crew } = turn;
  const { row } = issue;
  const where = turn.landed === null ? `on branch ${turn.branch}` : `landed as ${turn.landed.slice(0, 12)}`;
  const resolution = turn.pullRequest === null ? where : `pull request ${turn.pullRequest}`;
  const message = `Close ${row.shortId}: ${printable(row.title, 150)}`;
  const write = async () => {
    // An agent that has given its claim back has closed the issue itself.
    if (turn.claim.kind !== "released") await finishIssue(station, row.id, resolution);
  };
  let why: string | null = null;
  if (crew.options.delivery === "land")
    why = await landNoted(turn, { name: `done-${row.shortId}`, message, write });
  else {
    await write();
    await commitNoted(turn, message);
    if (crew.options.delivery === "pr" && turn.pullRequest === null) await requestMerge(turn);
    else if (crew.options.delivery === "pr")
      await pushBranch(crew.parts, station, turn.branch!, crew.options.push ?? null);
  }
  await letGo(turn);
  if (why === null) return { end: "done" };
  const run = `cotenant land run${crew.options.push === undefined ? "" : " --push"}`;
  const hint = `see what is in the queue still: cotenant land list; what waits there lands by: ${run}`;
  return { end: "done", why: `that it is done has not landed: ${why}`, hint };
}

/** Somebody has to say so of a gate: the work waits on its branch, and nobody holds the issue. */
export async function gated(turn: Turn, pending: readonly string[]): Promise<Ending> {
  const { station, issue, crew } = turn;
  const { shortId, id, title } = issue.row;
  const isLanding = crew.options.delivery === "land";
  const branch = turn.branch!;
  const message = `${shortId} waits for its gates: ${printable(title, 150)}`;
  const write = async () => void (await finishIssue(station, id, `on branch ${branch}`));
  if (isLanding) {
    // Whoever passes the gate finds there what has been passed already.
    const carried = async () => {
      await takeData(station, branch, id);
      await write();
    };
    await landNoted(turn, { name: `gated-${shortId}`, message, write: carried });
  } else {
    await write();
    await commitNoted(turn, message);
  }
  await letGo(turn);
  const names = pending.map((gate) => printable(gate, 80)).join(", ");
  const pass = `cotenant gate pass ${shortId} ${printable(pending[0]!, 80)}`;
  return {
    end: "gated",
    why: `${names} still has to be passed`,
    hint: isLanding
      ? `look at ${branch}; then ${pass}, and cotenant land add ${branch}`
      : `look at ${branch} and merge it; then ${pass}`,
  };
}

export async function giveBack(turn: Turn, failure: Failure): Promise<Ending> {
  const { parts, options } = turn.crew;
  const { station, issue } = turn;
  const { row } = issue;
  await keepWork(turn);
  if (failure.isAside !== true) {
    const writeIn = async (workspace: Workspace) => {
      await commentOn(workspace, row.id, station.slot.agentId, commentFor(failure, turn));
      await putBack(turn);
    };
    const message = `Give back ${row.shortId}: ${printable(row.title, 150)}`;
    const write = () => writeIn(station.workspace);
    if (options.delivery === "land") await landNoted(turn, { name: `note-${row.shortId}`, message, write });
    // Where people look first; its branch may never be merged.
    else await writeIn(parts.workspace);
  }
  await letGo(turn);
  const hint = turn.log === null ? null : `read what it printed: cotenant dispatch logs ${row.shortId}`;
  return { end: "given_back", why: failure.why, hint: failure.hint ?? hint };
}

/** Somebody else has it now, or nobody; what was done here is kept, and not committed: there is no claim to do so under. */
export async function lost(turn: Turn, why: string): Promise<Ending> {
  await keepCommits(turn);
  await turn.putAside("what was not committed when the claim was lost");
  await letGo(turn);
  const hint =
    turn.snapshotId === null ? null : `what it had not committed: cotenant restore ${turn.snapshotId}`;
  return { end: "lost", why: `the claim was lost: ${why}`, hint };
}

export async function deleted(turn: Turn): Promise<Ending> {
  await turn.putAside("the work on an issue that was deleted", true);
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
  await keepCommits(turn);
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
  await turn.putAside("what could not be committed");
}

/** What an agent has committed on no branch. */
export async function keepCommits(turn: Turn): Promise<void> {
  const wanted = turn.branch ?? turn.record?.branch ?? null;
  if (wanted === null) return;
  const branch = await keepLoose(turn.station, wanted);
  if (branch !== null) turn.note(`what the agent committed on no branch is on ${printable(branch, 200)} now`);
}

/** What was written of the issue itself, on its branch. */
async function commitNoted(turn: Turn, message: string): Promise<void> {
  try {
    await commitData(turn.station, message);
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    turn.note(`what was written of the issue is not committed: ${error.message}`);
  }
}

/** The same on the target; answers why it is not there, which is told as well. */
async function landNoted(turn: Turn, what: Parameters<typeof landData>[1]): Promise<string | null> {
  let why: string | null;
  try {
    why = await landData(turn, what);
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    why = error.message;
  }
  if (why !== null) turn.note(`what was written of the issue has not landed: ${why}`);
  return why;
}

/** Gives back the claim and whatever else the worker holds, and tells other machines what they have to know of it. */
export async function letGo(turn: Turn): Promise<void> {
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

function commentFor({ why, output }: Failure, { branch, attempts, issue }: Turn): string {
  const tries = attempts === 1 ? "One attempt" : `${attempts} attempts`;
  const where = branch === null ? "" : ` What was done is on branch ${branch}.`;
  const logs = ` All that was printed: cotenant dispatch logs ${issue.row.shortId}.`;
  const end =
    output.trim() === "" ? "" : `\n\nThe end of what was printed:\n\n${output.trim().slice(-MOST_OUTPUT)}`;
  return `${tries} of a dispatch worker failed: ${why}.${where}${logs}${end}`;
}
