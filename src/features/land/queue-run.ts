import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, usageError } from "../../errors/cotenant-error";
import { ObjectDatabase } from "../../git/database";
import { RefWriter } from "../../git/refs";
import { printable } from "../../kernel/ids";
import { tipOf } from "../publish/base";
import { ClaimsUnder, claimTrailers } from "../publish/claims";
import { CommitWriter } from "../publish/commit-writer";
import { remoteFor } from "../publish/push";
import { settleIntents } from "../publish/settlement";
import { settleMakings } from "../worktrees/construction";
import type { Yard } from "../worktrees/place";
import { settleRemovals } from "../worktrees/removal";
import { requireLander } from "./allowance";
import { BranchMover } from "./branch-mover";
import type { CandidateTools } from "./candidate";
import { clearOutputs } from "./candidate-checks";
import { settleCheckouts } from "./checkout";
import { entriesOf } from "./entry";
import { handOver } from "./handing-over";
import { type LandRun, queuedIn } from "./land-run";
import { type Lead, takeLead } from "./lead";
import { LandLoop } from "./loop";
import { retrying } from "./outcomes";
import { plannedOutcomes } from "./preview";
import { queuePausedError, queuePauseOf } from "./queue-pause";
import { baseOf } from "./remote-tip";
import type { LandOptions, LandOutcome, LandParts, LandReport } from "./report";
import { ScratchRoom } from "./scratch";
import { shownBranch, targetRef } from "./target";

/**
 * Lands what is in a target's queue: in order, each on top of those before it, those that pass their checks. Refused where
 * somebody else lands on the target; what ends it early once it has begun is told in the report, with what has landed.
 */
export async function runQueue(parts: LandParts, options: LandOptions = {}): Promise<LandReport> {
  const { workspace, session, trees } = parts;
  requireLander(workspace, session, "run");
  const target = await targetRef(workspace, options.target ?? null);
  const usualTarget = await targetRef(workspace, null);
  refuseUntrusted(workspace);
  await refuseAside(workspace, options, usualTarget);
  const pause = await queuePauseOf(workspace, target);
  if (pause !== null) throw queuePausedError(pause);
  const remote = options.push === undefined ? null : await remoteFor(workspace, options.push, target);
  const yard: Yard = { workspace, session, trees };
  if (options.dryRun === true) return dryRun(parts, { target, remote, usualTarget }, options);
  const tell = teller(options);
  const lead = await takeLead(workspace, session, target, {
    wait: options.wait ?? false,
    onWait: (message) => tell("waiting", message),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const controller = new AbortController();
  const stop = () => controller.abort();
  if (options.signal?.aborted === true) stop();
  options.signal?.addEventListener("abort", stop, { once: true });
  const kept = lead.keep(stop);
  try {
    await settleEarlier(yard);
    return await withDesk(parts, options, {
      ...{ yard, target, remote, lead, tell, usualTarget },
      signal: controller.signal,
    });
  } finally {
    options.signal?.removeEventListener("abort", stop);
    await lead.giveBack();
    await kept;
  }
}

/** What others have left who died. */
export async function settleEarlier(yard: Yard): Promise<void> {
  await settleIntents(yard.workspace, yard.session, new Set(), true);
  await settleCheckouts(yard);
  await settleMakings(yard);
  await settleRemovals(yard);
  await clearOutputs(yard.workspace);
}

const NO_CHECKS =
  "no land.checks are set: whatever merges lands; to set some: cotenant config set land.checks <command>";

async function withDesk(
  parts: LandParts,
  options: LandOptions,
  at: Pick<LandRun, "yard" | "target" | "remote" | "lead" | "tell" | "signal" | "usualTarget">,
): Promise<LandReport> {
  const { workspace, session } = parts;
  const { platform, git } = workspace.surroundings;
  const { values } = workspace.config;
  const objects = new ObjectDatabase(platform, git, workspace.repository);
  const refs = new RefWriter(platform, git, workspace.repository, `land: by ${session.actor.agentId}`);
  const room = new ScratchRoom(at.yard, parts.commands, (line) => at.tell("note", line));
  const run: LandRun = {
    ...at,
    parts,
    tools: toolsOf(parts, objects, at.lead),
    mover: new BranchMover(at.yard, objects, refs, at.lead),
    claims: new ClaimsUnder(workspace, session, parts.openFence ?? (async () => null)),
    room,
    parallel: Math.min(8, Math.max(1, options.parallel ?? values["land.parallel"])),
    clean: options.clean ?? values["land.clean"],
    only: options.only ?? null,
  };
  try {
    if (values["land.checks"].length === 0) at.tell("note", NO_CHECKS);
    const prefix = options.asBranch ?? null;
    const { outcomes, stopped } =
      prefix === null ? await new LandLoop(run).run() : await handOver(run, prefix);
    return report(run, outcomes, stopped);
  } finally {
    await room.close();
    await Promise.all([refs.close(), objects.close()]);
  }
}

function toolsOf(
  { workspace, session }: LandParts,
  objects: ObjectDatabase,
  lead: Lead | null,
): CandidateTools {
  const { platform, git, env } = workspace.surroundings;
  const { agentId, worktreeId } = session.actor;
  const rights = lead === null || lead.right === null ? [] : claimTrailers([lead.right]);
  return {
    workspace,
    objects,
    pen: new CommitWriter(git, workspace.repository.worktreeRoot, env, platform.clock),
    lander: { agentId, worktreeId, rights },
  };
}

async function report(
  { parts, target, remote }: LandRun,
  outcomes: readonly LandOutcome[],
  stopped: CotenantError | null,
): Promise<LandReport> {
  const { workspace } = parts;
  return {
    target,
    entries: outcomes,
    tip: await tipOf(workspace, target),
    remote,
    checks: workspace.config.values["land.checks"].length,
    isDryRun: false,
    stopped,
  };
}

/** Whoever asks for an entry that was put aside would be told that nothing waits. */
async function refuseAside(
  { coordinator }: Workspace,
  { only }: LandOptions,
  usualTarget: string,
): Promise<void> {
  if (only === undefined) return;
  const aside = (await entriesOf(coordinator)).find(
    ({ entryId, state }) => state === "parked" && only.includes(entryId),
  );
  if (aside === undefined) return;
  throw usageError(
    `${shownBranch(aside.branch)} was put aside: ${printable(aside.parked?.message ?? "", 300)}`,
    `put it back first, if it was not at fault: ${retrying(aside, { usualTarget })}`,
    { entry_id: aside.entryId },
  );
}

/** Checks that a repository names and nobody has trusted: landing without them is not what it asks for. */
export function refuseUntrusted(workspace: Workspace): void {
  const named = workspace.config.untrusted.find(({ key }) => key === "land.checks");
  if (named === undefined) return;
  throw new CotenantError(
    "E_UNTRUSTED",
    `${named.place} names land.checks, and nobody of this clone trusts them`,
    {
      hint: "have a person look at them and run: cotenant trust",
      data: { setting: "land.checks", value: named.value },
    },
  );
}

function teller({ onProgress }: LandOptions): LandRun["tell"] {
  return (kind, text, entry) =>
    onProgress?.({ kind, text, entryId: entry?.entryId ?? null, branch: entry?.branch ?? null });
}

async function dryRun(
  parts: LandParts,
  { target, remote, usualTarget }: Pick<LandRun, "target" | "remote" | "usualTarget">,
  options: LandOptions,
): Promise<LandReport> {
  const { workspace } = parts;
  const objects = new ObjectDatabase(
    workspace.surroundings.platform,
    workspace.surroundings.git,
    workspace.repository,
  );
  try {
    const only = options.only ?? null;
    const queue = await queuedIn({ parts, target, only });
    const { tip } = await baseOf(workspace, target, remote);
    const entries = await plannedOutcomes(toolsOf(parts, objects, null), queue, tip, { remote, usualTarget });
    const checks = workspace.config.values["land.checks"].length;
    return { target, entries, tip, remote, checks, isDryRun: true, stopped: null };
  } finally {
    await objects.close();
  }
}
