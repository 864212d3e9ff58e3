import type { Workspace } from "../../../coordinator/workspace";
import { printable } from "../../../kernel/ids";
import type { LeaseKey } from "../../../kernel/keys";
import { worldOf } from "../../guard/entry/world-of";
import { keyOf } from "../../guard/git-state";
import { forgetCommitted, holdsFiles, releaseCommitted } from "../../guard/life";

import { type GuardViolation, guardViolations, settleViolations } from "../../guard/violations";
import { type GuardedWorktree, openWorktree } from "../../guard/worktree";
import { committedChanges } from "../changes";

/** After a commit: what it holds is given back, and what was on record about it is settled. Answers what to say. */
export async function settleCommit(workspace: Workspace): Promise<string[]> {
  const { surroundings, repository, coordinator } = workspace;
  const place = await placeOf(workspace);
  if (place === null) return [];
  // Mostly there is nothing to be done, and Git need not be asked.
  const isConcerned =
    (await holdsFiles(place)) || (await coordinator.glance(["guard-violation", "left"])).length > 0;
  if (!isConcerned) return [];
  const changes = await committedChanges(surroundings.git, { cwd: repository.worktreeRoot }, "HEAD");
  const keys = changes.map(({ path }) => keyOf({ repository }, path)).filter((key) => key !== null);
  if (keys.length === 0) return [];
  await releaseCommitted(place, new Set(keys));
  await forgetCommitted(place, keys);
  const concerned = await violationsOf(place, keys);
  if (concerned.length === 0) return [];
  // Whose command it was is told, but does not settle it: somebody else has to look.
  const { agentId, sessionId } = place.who;
  const settled = concerned.filter(([, one]) => one.agentId !== agentId && one.sessionId !== sessionId);
  await settleViolations(place.session, settled, "committed");
  return [
    "cotenant post-commit: committed, though it was changed under somebody's lease:",
    ...concerned.map(([, violation]) => lineOf(violation)),
  ];
}

/** Before a commit: what shell commands changed in these files under somebody else's lease. */
export async function violatedLines(workspace: Workspace, paths: readonly string[]): Promise<string[]> {
  const { coordinator, repository } = workspace;
  if ((await coordinator.glance(["guard-violation"])).length === 0) return [];
  const { worktreeId } = (await workspace.worktree("read")).identity;
  const keys = new Set(paths.map((path) => keyOf({ repository }, path)));
  const concerned = (await guardViolations(coordinator)).filter(
    ([, violation]) => violation.worktreeId === worktreeId && keys.has(violation.key),
  );
  return concerned.map(([, violation]) => lineOf(violation));
}

function lineOf({ path, agentId, owner, at, command }: GuardViolation): string {
  return `  ${printable(path, 200)} was changed by a command of ${agentId} under the lease of ${owner}, ${at}: ${printable(command, 80)}`;
}

async function violationsOf({ coordinator, worktreeId }: GuardedWorktree, keys: readonly LeaseKey[]) {
  return (await guardViolations(coordinator)).filter(
    ([, violation]) => violation.worktreeId === worktreeId && keys.includes(violation.key),
  );
}

/** Null where nobody has said who commits: then nothing is theirs to give back. */
async function placeOf(workspace: Workspace): Promise<GuardedWorktree | null> {
  const { agent } = await workspace.caller();
  if (agent === null) return null;
  const { agentId, sessionId } = agent;
  const world = worldOf(workspace.surroundings, null);
  const holder = world.platform.processes.self();
  return openWorktree(world, workspace.repository, { agentId, sessionId, mainAgentId: agentId, holder });
}
