import { CotenantError } from "../../errors/cotenant-error";
import type { ByteText } from "../../git/byte-text";
import { printable } from "../../kernel/ids";
import { andMore } from "../../kernel/printing";
import { makeCaches } from "../exec/cache-directories";
import { branchForIssue } from "../worktrees/names";
import { type AttemptEnd, runAgent } from "./attempt";
import { branchOf, checkOutBranch, clearLocks, commitsSince, detachAt, isDirty } from "./branches";
import { deliver } from "./delivery";
import { deleted, finish, giveBack, interrupted, keepCommits, letGo, lost } from "./endings";
import { hiddenFiles, restoreFolders, sparseFolders, unhide } from "./hidden-files";
import { standingOf, taskOf } from "./issue-writes";
import { landedBefore } from "./landing";
import { AttemptLog, writePrompt } from "./logs";
import { isStanding, mendLink } from "./pinned-git";
import { promptFor } from "./prompt";
import { note } from "./record";
import type { IssueOutcome } from "./report";
import { clearWorktree } from "./safety-snapshot";
import type { Ending, Failure, Turn } from "./turn";

/** One worker's work on one issue, from the claim to its end. Nothing of it is done twice, also after a kill. */
export async function workOn(turn: Turn): Promise<IssueOutcome> {
  const { signal } = turn.crew.options;
  const stop = () => turn.stop();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  turn.keeper.start();
  try {
    return await over(turn, await guarded(turn));
  } catch (error) {
    const { station } = turn;
    const { platform } = station.workspace.surroundings;
    if (!(error instanceof CotenantError) || (await isStanding(platform, station))) throw error;
    return await over(turn, await withoutPlace(turn));
  } finally {
    await turn.keeper.stop();
    signal.removeEventListener("abort", stop);
  }
}

/** Gives back what a killed run has left, with its work on its branch; what has landed is ended. */
export async function abandon(turn: Turn): Promise<void> {
  const { station } = turn;
  try {
    await clearLocks(station);
    await seeWhatLanded(turn);
    const { branch = null, landed = null } = turn.record ?? {};
    const isHere = branch !== null && (await branchOf(station)) === branch;
    if (isHere || landed !== null) turn.branch = branch;
    turn.landed = landed;
    if (landed !== null && turn.crew.lander === null) {
      turn.base = await turn.crew.base();
      await checkOut(turn);
    }
    await over(turn, landed === null ? await interrupted(turn) : await finish(turn));
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    turn.note(`is left as it is: ${error.message}`);
  }
}

/** What goes wrong around the work, rather than in it, ends this issue's turn and not the whole run. */
async function guarded(turn: Turn): Promise<Ending> {
  try {
    return await toTheEnd(turn);
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    const ended = await stopped(turn);
    if (ended !== null) return ended;
    // What is deleted cannot be read any more.
    if ((await standingOf(turn.station.workspace, turn.issue.row.id)).isDeleted) return deleted(turn);
    return giveBack(turn, { why: error.message, output: "", hint: error.hint, isAside: true });
  }
}

async function toTheEnd(turn: Turn): Promise<Ending> {
  const { retries, backoffMs } = turn.crew.options;
  turn.base = await turn.crew.base();
  await seeWhatLanded(turn);
  // Then only the issue itself is still to be finished, on top of the target, if that can land.
  if (turn.record === null || turn.record.landed === null || turn.crew.lander === null) await checkOut(turn);
  else turn.branch = turn.record.branch;
  for (let earlier: Failure | null = null; ; ) {
    const failure = await once(turn, earlier);
    if (failure === null) return finish(turn);
    const ended = await stopped(turn);
    if (ended !== null) return ended;
    if ("end" in failure) return failure;
    if (failure.isAside === true) return giveBack(turn, failure);
    const { why } = failure;
    const failures = turn.record!.failures + 1;
    await turn.remember("dispatch.failed", { stage: "working", failures }, { why: why.slice(0, 500) });
    turn.tell("attempt_failed", `attempt ${failures} failed: ${why}`, { attempt: failures, why });
    // Without a claim there is nothing to try again under: the agent has declined.
    if (failures > retries || turn.isTooDear || turn.claim.kind === "released")
      return giveBack(turn, failure);
    earlier = failure;
    await turn.pause(backoffMs * 2 ** (failures - 1));
    const stop = await stopped(turn);
    if (stop !== null) return stop;
  }
}

/** Everything up to where the work has left this worktree; null where it has. */
async function once(turn: Turn, earlier: Failure | null): Promise<Failure | Ending | null> {
  const { stage, landed } = turn.record!;
  // The run before this one may have had another way for it: what is only on its branch is then still to go.
  if (stage === "delivered" && (landed !== null || turn.crew.options.delivery === "branch")) {
    turn.landed = landed;
    return null;
  }
  if (stage === "working") {
    const { how, why, words, output } = await attempt(turn, earlier);
    if (how !== "finished") return { why: why ?? "it failed", output: words ?? output };
    await turn.remember("dispatch.worked", { stage: "worked" });
  }
  return deliver(turn);
}

/** There is nothing to keep any more, and nowhere to write. */
async function withoutPlace(turn: Turn): Promise<Ending> {
  await letGo(turn);
  const why = `its worktree is gone: ${printable(turn.station.root, 300)}`;
  const { branch } = turn;
  return { end: "given_back", why, hint: branch === null ? null : `what was committed is on ${branch}` };
}

/** What has stopped the work from outside; null where nothing has. */
async function stopped(turn: Turn): Promise<Ending | null> {
  if (turn.claim.kind === "lost") return lost(turn, turn.claim.why);
  return turn.crew.options.signal.aborted ? interrupted(turn) : null;
}

/** A run that was killed in the middle of a landing does not know that it came to its end, or would have. */
async function seeWhatLanded(turn: Turn): Promise<void> {
  const { record, crew } = turn;
  if (record?.stage !== "worked") return;
  const found =
    crew.lander === null
      ? (await landedBefore(crew.parts.workspace, crew.target, record)).landed
      : await crew.lander.landedSince(record);
  if (found === null) return;
  const landed = found.commit ?? (await turn.targetTip());
  await turn.remember("dispatch.delivered", { stage: "delivered", landed }, { landed });
}

async function checkOut(turn: Turn): Promise<void> {
  const { station, issue, record, crew } = turn;
  const { row } = issue;
  const before = record?.branch ?? null;
  await clearLocks(station);
  if (before !== null && (await branchOf(station)) === before) {
    // Where a killed run of this very worker was at it: what it has left uncommitted is the agent's.
    turn.branch = before;
  } else {
    await keepCommits(turn);
    await turn.putAside("left in its worktree");
    await detachAt(station, turn.base);
    const wanted = before ?? branchForIssue(row.shortId, row.title);
    turn.branch = await checkOutBranch(station, wanted, turn.base, { keeps: record?.stage === "worked" });
  }
  if (before === turn.branch) return;
  const startedAt = new Date(turn.clock.wallMs()).toISOString();
  const { agentId, number } = station.slot;
  turn.record = {
    ...{ issueId: row.id, runId: crew.runId, agentId, branch: turn.branch },
    ...{ stage: "working", failures: 0, landed: null, startedAt },
    // Work that has landed is done, whatever branch the rest goes to.
    ...(record === null || record.landed === null ? {} : { stage: record.stage, landed: record.landed }),
  };
  await turn.remember("dispatch.started", {}, { worker: number });
}

async function attempt(turn: Turn, earlier: Failure | null): Promise<AttemptEnd> {
  const { station, issue, crew } = turn;
  const { parts, options } = crew;
  const { workspace, root, slot } = station;
  const branch = turn.branch!;
  const nth = turn.record!.failures + 1;
  turn.attempts++;
  const ports = await crew.ports(slot.number);
  // Read again, now that nobody else changes it: what was merged with the claim counts.
  const task = await taskOf(workspace, issue.row.id);
  const prompt = promptFor({
    ...task,
    ...{ branch, target: crew.targetName, worktree: root, attempt: nth, ports, earlier },
    hasWork: (await commitsSince(station, turn.base)) > 0,
    commits: options.commits,
  });
  const log = await AttemptLog.open(workspace, issue.row.id);
  turn.log = log.path;
  log.line(`attempt ${nth} at ${task.issue.shortId} on ${branch}, in ${root}`);
  turn.tell("working", `works on it, attempt ${nth}`, { attempt: nth, log: log.path, branch });
  try {
    const { platform, env } = workspace.surroundings;
    const briefing = {
      ...{ branch, base: turn.base, attempt: nth, ports },
      promptFile: await writePrompt(workspace, issue.row.id, prompt),
      caches: options.ownCaches ? (await makeCaches(platform, root, slot.agentId, env)).variables : {},
    };
    const before = { hidden: await hiddenFiles(station), folders: await sparseFolders(station) };
    const end = await runAgent(parts, options, station, issue, briefing, log, {
      stop: turn.stopped,
      claim: () => turn.claim,
      onStall: (silentMs) => tellOfSilence(turn, silentMs),
    });
    await seeLink(turn);
    await seeHidden(turn, before);
    log.line(end.why === null ? "the command ended with status 0" : end.why);
    turn.count(end.costUsd);
    return end;
  } finally {
    await log.close();
  }
}

/** What an agent makes of its worktree's `.git` is not to lead Git, or the next agent, into another repository. */
async function seeLink(turn: Turn): Promise<void> {
  const mended = await mendLink(turn.station.workspace.surroundings.platform, turn.station);
  if (mended !== null) turn.note(mended);
}

async function seeHidden(
  turn: Turn,
  before: { readonly hidden: ReadonlySet<ByteText>; readonly folders: string | null },
): Promise<void> {
  const { station } = turn;
  if (await restoreFolders(station, before.folders))
    turn.note("the agent left files out of its checkout: they are there again");
  const [first, ...others] = await unhide(station, before.hidden);
  if (first === undefined) return;
  const more = andMore(others.length);
  turn.note(`the agent told Git not to look at ${printable(first, 200)}${more}: Git looks again`);
}

function tellOfSilence(turn: Turn, silentMs: number | null): void {
  const secs = silentMs === null ? null : Math.round(silentMs / 1000);
  const text = secs === null ? "is heard of again" : `has printed nothing and written nothing for ${secs} s`;
  turn.tell("stalled", text, { silent_secs: secs });
}

const WORDS: Readonly<Record<Ending["end"], string>> = {
  done: "is done",
  gated: "waits for a gate",
  given_back: "is given back",
  lost: "is lost",
  deleted: "was deleted meanwhile",
  interrupted: "is interrupted",
};

/** Tells of the end, and leaves the worktree to the next issue. */
async function over(turn: Turn, { end, why = null, hint = null }: Ending): Promise<IssueOutcome> {
  await turn.keeper.stop();
  const { station, issue, record, branch, landed, pullRequest, snapshotId, log, costUsd, attempts } = turn;
  const { id, shortId, title } = issue.row;
  const worker = station.slot.number;
  const isThere = await isStanding(station.workspace.surroundings.platform, station);
  // An interrupted one goes on where it was; so does one whose work only lacks its way out, and is there still.
  const lacksItsWayOut = record?.stage === "delivered" || (record?.stage === "worked" && isThere);
  const goesOn = end === "interrupted" || (end === "given_back" && lacksItsWayOut);
  await note(station.session, id, "dispatch.ended", goesOn ? record : null, {
    ...{ end, worker },
    ...(why === null ? {} : { why: why.slice(0, 500) }),
  });
  if (isThere && ((await branchOf(station)) !== null || (await isDirty(station))))
    await clearWorktree(turn.crew, station);
  turn.tell("ended", why === null ? WORDS[end] : `${WORDS[end]}: ${why}`, {
    end,
    why,
    hint,
    snapshot_id: snapshotId,
  });
  const durationMs = Math.round(turn.clock.monotonicMs() - turn.startedMs);
  return {
    ...{ issueId: id, shortId, title, end, why, hint, worker, attempts, branch, landed, pullRequest },
    ...{ snapshotId, log, costUsd, durationMs },
  };
}
