/** What is wrong with everything that cotenant stands on, and what can be cleared up. */
import type { LeaseStatus } from "../../coordinator/contract";
import { forgetEscalated, recordEscalated } from "../../coordinator/escalation";
import { forgetProposals } from "../../coordinator/proposals";
import type { Session } from "../../coordinator/session";
import type { Surroundings, Workspace } from "../../coordinator/workspace";
import { fileFailure } from "../../errors/cotenant-error";
import { clearUnfinished } from "../../identity/worktree-file";
import type { Lease } from "../../kernel/lease";

import type { LogActor } from "../../store/envelope";
import { type TidyReport, tidy } from "../../store/housekeeping";
import { type RecoveryReport, recover } from "../../store/recover";
import { escalated } from "../guard/escalation";
import { tidyGuard } from "../guard/tidy";
import { seenViolations, settleViolations } from "../guard/violations";
import { forgetGoneWorktrees } from "../harnesses/carried-settings";
import { projectLevel, tidyAgents } from "../harnesses/installation";
import { clearNotes } from "../hooks/commit-note";
import { committedTokens } from "../hooks/trailers";
import { forgetOldViolations } from "../hooks/violations";
import { issuesIn, underMutex } from "../issues/desk";
import { settleIssues } from "../issues/settle";
import { tokenSeen } from "../issues/stamps";
import { clearIndexes } from "../publish/agent-index";
import { clearUp, repair } from "../snapshots/repair";
import { snapshotContext, snapshotReader } from "../snapshots/snapshot-context";
import { endForgotten, homelessAmong } from "../worktrees/homeless";
import { CHECKS, diagnose, VALIDATIONS } from "./checks";
import { strictSnapshotsCheck } from "./checks/work";
import { exitOf, type Finding } from "./finding";
import { examine, type PatientPlace } from "./patient";

export { exitOf, type Finding, type Level, summaryOf } from "./finding";

/** Looks at everything. `isStrict`: every object of every snapshot is read too, and nothing passes. */
export async function diagnosis(
  place: PatientPlace & Pick<Surroundings, "git" | "tools">,
  isStrict: boolean,
): Promise<Finding[]> {
  const strict = isStrict ? strictSnapshotsCheck({ git: place.git, trees: await place.tools.trees() }) : null;
  const checks = CHECKS.map((check) => (check.name === strict?.name ? strict : check));
  return diagnose(await examine(place), checks);
}

/** Clears up what is safe to clear up, and answers what it was. */
export async function mend(workspace: Workspace): Promise<string[]> {
  return repair(await snapshotContext(workspace));
}

export interface Validity {
  readonly findings: readonly Finding[];
  readonly exit: number;
}

/** Something to be cleared up, as opposed to something broken. */
const EXIT_WARNED = 1;

/** Some of the doctor's checks, as a test that passes or fails. */
export async function validate(place: PatientPlace, what: keyof typeof VALIDATIONS): Promise<Validity> {
  const findings = await diagnose(await examine(place), VALIDATIONS[what]);
  // What nobody trusts yet does not count, and so does no harm.
  const isWarned = findings.some(({ level, check }) => level === "warning" && check !== "config");
  return { findings, exit: exitOf(findings) || (isWarned ? EXIT_WARNED : 0) };
}

/** Mends a damaged log: every whole line is salvaged, and fencing tokens start far above any that was ever given. */
export async function recoverLog(workspace: Workspace): Promise<RecoveryReport> {
  const { actor } = await workspace.session("write");
  return recover(workspace.store, logActor(workspace, actor), await tokensSeen(workspace));
}

function logActor({ surroundings }: Workspace, actor: Session["actor"]): LogActor {
  const { processes } = surroundings.platform;
  return { ...actor, host: processes.host(), pid: processes.self().pid };
}

/** What was written, and committed, tells of tokens that the log may have lost. Where it cannot be read, the log has to do. */
async function tokensSeen(workspace: Workspace): Promise<number[]> {
  const { git } = workspace.surroundings;
  const committed = await committedTokens(git, workspace.repository.worktreeRoot).catch(() => []);
  try {
    const reader = await issuesIn(workspace);
    const found = await Promise.all((await reader.ids()).map((id) => reader.find(id)));
    const issues = found.flatMap((copy) => (copy !== null && "issue" in copy ? copy.issue : []));
    return [...issues.map((issue) => tokenSeen([issue])), ...committed];
  } catch {
    return committed;
  }
}

export interface GcRequest {
  /** Also closes the current log segment. */
  readonly compact: boolean;
  /** A lease as the flat index has it. */
  readonly flat: (status: LeaseStatus) => Readonly<Record<string, unknown>>;
}

/** Clears away what is over: leases, locks, records and what nobody is going to finish. Nothing depends on it. */
export async function gc(
  workspace: Workspace,
  { compact, flat }: GcRequest,
): Promise<TidyReport & { readonly leases: readonly Lease[] }> {
  const session = await workspace.session("write");
  const { coordinator, store, surroundings, repository, config } = workspace;
  const { platform } = surroundings;
  const homeless = await homelessAmong({ ...surroundings, repository }, await coordinator.list());
  const leases = [
    ...(await coordinator.gc({ actor: session.actor })).leases,
    ...(await endForgotten(session, homeless)),
  ];
  await session.prune();
  await forgetProposals(session, coordinator);
  await forgetEscalated(coordinator, session.actor);
  await recordEscalated(coordinator, session.actor, await escalated(workspace));
  await forgetOldViolations(session, platform.clock.wallMs());
  const head = await coordinator.head();
  const report = await tidy(store, logActor(workspace, session.actor), {
    compact,
    flatIndex: {
      sequence: head.sequence,
      stale_threshold_secs: config.policy.staleThresholdSecs,
      active: (await coordinator.list()).map(flat),
    },
  });
  const over = (await seenViolations(workspace)).flatMap(({ name, violation, isOpen }) =>
    isOpen ? [] : [[name, violation] as const],
  );
  await settleViolations(session, over, "over");
  await tidyGuard(workspace, session);
  await clearDataPlane(workspace, session);
  await clearUp({ ...(await snapshotReader(workspace)), session });
  return { ...report, leases };
}

/** What is unfinished for that long, nobody is going to finish. */
const RECENT_MS = 3_600_000;

async function clearDataPlane(workspace: Workspace, session: Session): Promise<void> {
  const { worktreeRoot, gitDir } = workspace.repository;
  const { platform } = workspace.surroundings;
  try {
    await tidyAgents(projectLevel(workspace), RECENT_MS);
    await forgetGoneWorktrees(workspace);
    await clearUnfinished(platform, { root: worktreeRoot, gitDir }, RECENT_MS);
    await clearIndexes(platform, workspace.store.layout.agentIndex, RECENT_MS);
    await settleIssues(await issuesIn(workspace), RECENT_MS, (act) => underMutex(session, act));
    await clearNotes(workspace, platform.clock.wallMs() - RECENT_MS);
  } catch (error) {
    throw fileFailure(error, "clearing away unfinished files", `${worktreeRoot}/.cotenant`);
  }
}
