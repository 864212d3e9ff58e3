import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { pushRefusalOf } from "../land/rules";
import {
  branchOf,
  checkOutBranch,
  commitAll,
  commitsSince,
  detachAt,
  foreignRepositories,
  headOf,
  leftUnderWay,
} from "./branches";
import { deleted, gated } from "./endings";
import { requestMerge } from "./forge";
import { faultOf, runGates, standingOf, syncThere } from "./issue-writes";
import { dirtySubmodules, strayLinks } from "./submodules";
import type { Ending, Failure, Turn } from "./turn";

/**
 * After the agent: the issue's gates, the ledger, what the agent has left uncommitted, and then the way that its work leaves this
 * worktree. Null where it has left.
 */
export async function deliver(turn: Turn): Promise<Failure | Ending | null> {
  const { station } = turn;
  const { parts } = turn.crew;
  const { id } = turn.issue.row;
  const { isOver, isDeleted } = await standingOf(station.workspace, id);
  if (isDeleted) return deleted(turn);
  if (turn.claim.kind === "released" && !isOver)
    return { why: "the agent has given its claim back", output: "" };
  const fault = await faultOf(station, id, turn.base);
  if (fault !== null) return { why: fault, output: "" };
  let pending: readonly string[] = [];
  if (!isOver) {
    const onStart = (gate: string) => turn.tell("gate", `gate ${gate} runs`, { gate });
    const gates = await runGates(station, parts.commands, id, { onStart, signal: turn.stopped });
    if (gates.failed !== null)
      return { why: `gate ${gates.failed.gate.key} did not pass`, output: gates.failed.run.output };
    pending = gates.pending;
  }
  const unsynced = await syncThere(station, turn.issue.row.id);
  if (unsynced !== null) turn.note(`the ledger was not synced: ${unsynced}`);
  if ((await standingOf(station.workspace, id)).isDeleted) return deleted(turn);
  const refused = await commitLeft(turn);
  if (refused !== null) return refused;
  if (pending.length > 0) return gated(turn, pending);
  const failure = await handOver(turn);
  if (failure !== null) return failure;
  const landed = turn.landed === null ? {} : { landed: turn.landed };
  await turn.remember("dispatch.delivered", { stage: "delivered", landed: turn.landed }, landed);
  return null;
}

/** Commits what the agent has left uncommitted; null where all is well. */
async function commitLeft(turn: Turn): Promise<Failure | null> {
  const station = turn.station;
  const { options } = turn.crew;
  const head = await branchOf(station);
  if (head !== turn.branch) {
    const where = head === null ? "no branch" : `branch ${printable(head, 200)}`;
    return {
      why: `the agent left ${where} checked out instead of ${printable(turn.branch!, 200)}`,
      output: "",
    };
  }
  const underWay = await leftUnderWay(station);
  if (underWay !== null) return { why: `the agent left ${underWay} in the middle`, output: "" };
  if (options.commits) {
    try {
      const commit = await commitAll(station, turn.message);
      if (commit !== null)
        turn.tell("committed", `committed what was left: ${commit.slice(0, 12)}`, { commit });
    } catch (error) {
      if (!(error instanceof CotenantError) || error.code === "E_GIT") throw error;
      return { why: error.message, output: "" };
    }
  } else await turn.putAside("what the agent left uncommitted");
  const { unnamed, unpushed } = await strayLinks(station, turn.base);
  if (unnamed.length > 0) {
    const what = `${named(unnamed)} is committed as a repository of its own, which nobody else can get`;
    return { why: `${what}: .gitmodules does not name it`, output: "" };
  }
  if (unpushed.length > 0)
    turn.note(
      `nobody else can get what was committed in submodules before it is pushed there: ${named(unpushed)}`,
    );
  const foreign = [...(await foreignRepositories(station)), ...(await dirtySubmodules(station))];
  if (foreign.length > 0) turn.note(`left as they are: repositories in its worktree, ${named(foreign)}`);
  if (options.allowsEmpty || (await commitsSince(station, turn.base)) > 0) return null;
  return { why: "the agent changed nothing", output: "" };
}

function named(paths: readonly string[]): string {
  return paths
    .slice(0, 5)
    .map((path) => printable(path, 200))
    .join(", ");
}

async function handOver(turn: Turn): Promise<Failure | null> {
  const { delivery } = turn.crew.options;
  if (delivery === "land") return landWork(turn);
  if (delivery === "pr") {
    const refusal = await pushRefusal(turn);
    if (refusal !== null) return { why: `it may not be pushed: ${refusal.message}`, output: refusal.hint };
    await requestMerge(turn);
    turn.tell("delivered", `a pull request is open: ${turn.pullRequest}`, { url: turn.pullRequest });
    return null;
  }
  turn.tell("delivered", `its work is on branch ${turn.branch}`, { branch: turn.branch });
  return null;
}

/** What a landing would refuse is not shown to a forge either, for what was pushed once cannot be taken back. */
async function pushRefusal(turn: Turn): Promise<CotenantError | null> {
  const { station } = turn;
  return pushRefusalOf(station.workspace, {
    commit: await headOf(station),
    tip: await turn.targetTip(),
    addedBy: station.slot.agentId,
  });
}

async function landWork(turn: Turn): Promise<Failure | null> {
  const { crew, station } = turn;
  const branch = turn.branch!;
  // Nobody's checkout is in the way when the branch is deleted after it.
  const commit = await headOf(station);
  await detachAt(station, commit);
  turn.tell("landing", `${branch} waits to land on ${crew.targetName}`, { branch });
  const outcome = await crew.lander!.land(branch, { issueId: turn.issue.row.id });
  if (outcome.outcome === "landed") {
    turn.landed = outcome.commit ?? (await turn.targetTip());
    const text = `landed on ${crew.targetName} as ${turn.landed.slice(0, 12)}`;
    turn.tell("delivered", text, { branch, commit: turn.landed });
    return null;
  }
  await checkOutBranch(station, branch, turn.base);
  const why = `it did not land on ${crew.targetName}: ${outcome.message ?? outcome.why ?? ""}`;
  const output = outcome.output || `Merge ${crew.targetName} into ${branch}, and resolve what conflicts.`;
  return { why, output, ...(outcome.hint === null ? {} : { hint: outcome.hint }) };
}
