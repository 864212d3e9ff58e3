import type { Command } from "../../../cli/grammar/command";
import { count, leaseJson, statusJson } from "../../../cli/terminal/render";
import { forgetEscalated, recordEscalated } from "../../../coordinator/escalating";
import { forgetProposals } from "../../../coordinator/proposals";
import type { Session } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import { fileFailure } from "../../../errors/cotenant-error";
import { clearUnfinished } from "../../../identity/worktree-file";
import { tidy } from "../../../store/housekeeping";
import { lookingAt } from "../../guard/commands/trespass-text";
import { escalated } from "../../guard/escalating";
import { tidyGuard } from "../../guard/tidy";
import { trespasses } from "../../guard/trespasses";
import { settleViolations } from "../../guard/violations";
import { reachOf } from "../../guard/yielding";
import { forgetGoneWorktrees } from "../../harnesses/carrying";
import { projectDesk } from "../../harnesses/desk";
import { tidyAgents } from "../../harnesses/tidy";
import { clearNotes } from "../../hooks/commit-note";
import { forgetOldViolations } from "../../hooks/violations";
import { issuesIn, underMutex } from "../../issues/desk";
import { settleIssues } from "../../issues/settle";
import { clearIndexes } from "../../publish/agent-index";
import { clearUp } from "../../snapshots/repair";
import { snapshotContext } from "../../snapshots/snapshot-context";
import { endForgotten, homelessAmong } from "../../worktrees/homeless";

export const command: Command = {
  usage: "gc [--compact]",
  about:
    "Clears away: logs the end of lapsed leases, ends locks of worktrees that Git does not know any more, packs old log segments, forgets secrets that prove nothing any\nmore, and writes claims.index.json, a flat view for people with jq. Nothing depends on it running.",
  flags: { compact: { meaning: "also close the current log segment and start a new one" } },
  examples: ["cotenant gc"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const session = await workspace.session("write");
    const { coordinator, store } = workspace;
    const { surroundings, repository } = workspace;
    const homeless = await homelessAmong({ ...surroundings, repository }, await coordinator.list());
    const leases = [
      ...(await coordinator.gc({ actor: session.actor })).leases,
      ...(await endForgotten(session, homeless)),
    ];
    await session.prune();
    await forgetProposals(session, coordinator);
    const reach = reachOf(workspace.config.values["guard.across_worktrees"]);
    await forgetEscalated(coordinator, session.actor);
    await recordEscalated(coordinator, session.actor, await escalated(coordinator, reach));
    await forgetOldViolations(session, workspace.surroundings.platform.clock.wallMs());
    const { processes } = workspace.surroundings.platform;
    const actor = { ...session.actor, host: processes.host(), pid: processes.self().pid };
    const { head } = await coordinator.snapshot();
    const report = await tidy(store, actor, {
      compact: parsed.has("compact"),
      flatIndex: {
        sequence: head.sequence,
        stale_threshold_secs: workspace.config.policy.staleThresholdSecs,
        active: (await coordinator.list()).map(statusJson),
      },
    });
    const over = (await trespasses(lookingAt(workspace))).filter(({ isOpen }) => !isOpen);
    await settleViolations(
      session,
      over.map(({ name, violation }) => [name, violation]),
      "over",
    );
    await tidyGuard(workspace.surroundings.platform, coordinator, session, reach);
    await clearDataPlane(workspace, session);
    await clearUp(await snapshotContext(workspace));
    const text = [
      `logged the end of ${count(leases.length, "lease")}`,
      ...(report.packed.length === 0 ? [] : [`packed ${count(report.packed.length, "log segment")}`]),
      ...(report.compacted ? ["started a new log segment"] : []),
    ].join("\n");
    return {
      data: {
        leases: leases.map((lease) => leaseJson(lease)),
        packed: report.packed,
        compacted: report.compacted,
      },
      text: context.quiet ? "" : text,
    };
  },
};

/** What is unfinished for that long, nobody is going to finish. */
const RECENT_MS = 3_600_000;

async function clearDataPlane(workspace: Workspace, session: Session): Promise<void> {
  const { worktreeRoot, gitDir } = workspace.repository;
  const { shelf, grounds } = projectDesk(workspace);
  try {
    const { platform } = workspace.surroundings;
    await tidyAgents(platform, shelf, grounds, RECENT_MS);
    await forgetGoneWorktrees(workspace);
    await clearUnfinished(platform, { root: worktreeRoot, gitDir }, RECENT_MS);
    await clearIndexes(platform, workspace.store.layout.agentIndex, RECENT_MS);
    await settleIssues(await issuesIn(workspace), RECENT_MS, (act) => underMutex(session, act));
    await clearNotes(workspace, platform.clock.wallMs() - RECENT_MS);
  } catch (error) {
    throw fileFailure(error, "clearing away unfinished files", `${worktreeRoot}/.cotenant`);
  }
}
