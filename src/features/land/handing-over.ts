import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, protectedError, retriesError } from "../../errors/cotenant-error";
import type { ObjectId } from "../../git/object-name";
import { decode } from "../../identity/path-text";
import { printable } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import { newUlid } from "../../platform/new-ulid";
import { tipOf } from "../publish/base";
import { branchName, refuseBeside } from "../publish/branch-rules";
import { pushUnderClaims } from "../publish/claim-push";
import { remoteFor } from "../publish/push";
import { hasLeft } from "./branch-mover";
import { candidateOn } from "./candidate";
import { checked } from "./candidate-checks";
import type { LandEntry } from "./entry";
import { noteLanded, park } from "./entry-records";
import { interrupted, type LandRun, naming, queuedIn } from "./land-run";
import { notPushed } from "./landing";
import { landedOutcome, parkedOutcome, refusalRejection, rejectionOf, waitingOutcome } from "./outcomes";
import { queuePausedError, queuePauseOf } from "./queue-pause";
import { baseOf, remoteTip } from "./remote-tip";
import type { LandOutcome } from "./report";
import { refusalOf } from "./rules";
import type { Rejection } from "./speculation";
import { namedBranch, shownBranch } from "./target";

/**
 * For a forge's own merge queue: each entry that merges and passes is put at a branch of its own, on top of the target as it
 * is now, for a pull request. The target stays where it is. One after the other, and none on top of another: which of them
 * the forge takes, and when, is not known here.
 */
export async function handOver(
  run: LandRun,
  prefix: string,
): Promise<{ outcomes: readonly LandOutcome[]; stopped: CotenantError | null }> {
  const { parts, target, remote } = run;
  const outcomes: LandOutcome[] = [];
  let stopped: CotenantError | null = null;
  const queue = await queuedIn(run);
  // Before anything is checked for it.
  for (const { branch } of queue.length > 0 ? queue : [{ branch: "refs/heads/x" }]) handedRef(prefix, branch);
  try {
    const { tip } = await baseOf(parts.workspace, target, remote);
    for (const entry of queue) {
      refuseStopped(run);
      const pause = await queuePauseOf(parts.workspace, target);
      if (pause !== null) throw queuePausedError(pause);
      const outcome = await one(run, prefix, entry, tip);
      if (outcome !== null) outcomes.push(outcome);
    }
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    stopped = error;
  }
  const told = new Set(outcomes.map(({ entryId }) => entryId));
  return {
    outcomes: [...outcomes, ...queue.filter(({ entryId }) => !told.has(entryId)).map(waitingOutcome)],
    stopped,
  };
}

function refuseStopped({ signal, lead, target }: LandRun): void {
  if (lead.lost !== null) throw lead.lost;
  if (signal.aborted) throw interrupted(target);
}

function handedRef(prefix: string, branch: string): string {
  return namedBranch(`${prefix}/${branchName(branch)}`, "for example --as-branch queue");
}

async function one(
  run: LandRun,
  prefix: string,
  entry: LandEntry,
  tip: ObjectId,
): Promise<LandOutcome | null> {
  const { tools, parts, mover, yard, target, remote, tell } = run;
  const ref = handedRef(prefix, entry.branch);
  const built = await naming(entry, () => candidateOn(tools, entry, tip));
  const rejection = rejectionOf(entry, built, run);
  if (rejection !== null) return aside(run, entry, rejection);
  if (built.kind !== "candidate") {
    const facts = await mover.landedFacts(entry, { commit: null, ref: target, remote, isRemoteOnly: false });
    await noteLanded(yard.session, entry, { ref: target, new: null, contained: true }, facts);
    return landedOutcome(entry, { commit: null, ref: target });
  }
  const { commit } = built;
  await tools.objects.reveal();
  const refusal = await naming(entry, () =>
    refusalOf(parts.workspace, tools.objects, entry, { onto: tip, ...built }),
  );
  if (refusal !== null) return aside(run, entry, refusalRejection(entry, refusal, run));
  if (parts.workspace.config.values["land.checks"].length > 0) {
    tell("checking", `checking ${shownBranch(entry.branch)} as ${commit.slice(0, 12)}`, entry);
    const { workspace, commands } = parts;
    const { room, signal, usualTarget } = run;
    const asked = { workspace, commands, room, signal, usualTarget, onStart: () => {} };
    const verdict = await checked(asked, entry, { base: tip, commit });
    refuseStopped(run);
    if (verdict.kind === "rejected") return aside(run, entry, verdict.rejection);
  }
  return put(run, entry, ref, commit);
}

async function put(
  run: LandRun,
  entry: LandEntry,
  ref: string,
  commit: ObjectId,
): Promise<LandOutcome | null> {
  const { parts, mover, yard, claims, remote, target, tell } = run;
  const { workspace } = parts;
  const old = await tipOf(workspace, ref);
  if (old === null) await refuseTaken(run, ref);
  else await refuseForeign(run, entry, ref, old);
  // Before the entry leaves the queue: what the remote does not have was not handed over (PROTOCOL 37).
  if (remote !== null) {
    const theirs = await remoteTip(workspace, remote, ref);
    if (theirs !== null && theirs !== old) await refuseForeign(run, entry, ref, theirs);
    await run.tools.objects.flush();
    const wanted = {
      remote,
      ref,
      commit,
      publishId: newUlid(workspace.surroundings.platform),
      noun: "land",
      expected: theirs,
    } as const;
    const result = await pushUnderClaims(workspace, yard.session, claims, wanted);
    if (result.result !== "pushed" && result.result !== "verified") throw notPushed(ref, remote, result);
  }
  const landed = { commit, ref, remote, isRemoteOnly: false };
  const attempt = await mover.move(entry, { ref, old, next: commit }, landed);
  if (attempt.kind === "refused") {
    if (hasLeft(attempt.error, entry)) return null;
    throw attempt.error;
  }
  if (attempt.kind !== "committed")
    throw retriesError(`${shownBranch(ref)} was moved by somebody else meanwhile`, "run it again", { ref });
  tell("landed", `put ${shownBranch(entry.branch)} at ${shownBranch(ref)} as ${commit.slice(0, 12)}`, entry);
  const open = `gh pr create --base ${shellWord(branchName(target))} --head ${shellWord(branchName(ref))} --fill`;
  // A pull request is made of what the forge has.
  const next =
    remote === null
      ? `push it (git push ${await remoteToType(workspace, target)} ${shellWord(branchName(ref))}), then: ${open}`
      : open;
  return { ...landedOutcome(entry, { commit, ref }), hint: next };
}

async function remoteToType(workspace: Workspace, target: string): Promise<string> {
  try {
    return shellWord(await remoteFor(workspace, null, target));
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return "<remote>";
  }
}

async function refuseTaken({ parts }: LandRun, ref: string): Promise<void> {
  const { surroundings, repository } = parts.workspace;
  try {
    await refuseBeside(surroundings.git, repository.worktreeRoot, ref);
  } catch (error) {
    if (!(error instanceof CotenantError) || error.code !== "E_USAGE") throw error;
    throw error.with({ hint: ANOTHER_PREFIX });
  }
}

const ANOTHER_PREFIX = "name another prefix with --as-branch, or rename that branch";

/** What somebody else has put under that name is not replaced. */
async function refuseForeign(
  { parts }: LandRun,
  { branch }: LandEntry,
  ref: string,
  at: ObjectId,
): Promise<void> {
  const { surroundings, repository } = parts.workspace;
  const args = ["log", "-1", "--format=%B", at, "--"];
  const { stdout } = await surroundings.git.run(args, { cwd: repository.worktreeRoot });
  const lines = decode(stdout).split("\n");
  // Anybody may make a branch where something else has landed.
  if (lines.some((line) => line.startsWith(`Cotenant-Landed: ${branchName(branch)} `))) return;
  throw protectedError(
    `${shownBranch(ref)} is there already, and did not come from the merge queue`,
    ANOTHER_PREFIX,
    { ref, commit: printable(at) },
  );
}

async function aside(run: LandRun, entry: LandEntry, rejection: Rejection): Promise<LandOutcome | null> {
  const { yard, parts, tell } = run;
  const at = new Date(parts.workspace.surroundings.platform.clock.wallMs()).toISOString();
  if (!(await park(yard.session, entry, rejection, at))) return null;
  tell("parked", `put aside ${shownBranch(entry.branch)}: ${rejection.message}`, entry);
  return parkedOutcome(entry, rejection);
}
