import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { evenIfOvertaken } from "../../errors/overtaken";
import { HARNESS_NAMES, type HarnessName } from "../../identity/harness";
import { listWorktrees } from "../../identity/worktree-list";
import { printable } from "../../kernel/ids";
import { HARNESSES } from "../guard/harness";
import { isObjection } from "../installer/files";
import type { Via } from "./command-line";
import { decideEach, type InstallHow, projectLevel, writeAgents } from "./installation";
import { lookAt } from "./look";
import type { SitePlan } from "./plan";
import { allRecords, readRecord, removeRecord } from "./record";
import { type Site, sitesOf } from "./sites";
import { stateOf } from "./state";

/** What a new worktree got of the settings that are not committed. */
export interface Carried {
  readonly plans: readonly SitePlan[];
  /** What it lacks, and why: a sentence each. */
  readonly failures: readonly string[];
}

/**
 * Settings that are not committed are not in a new worktree; whoever works there is to ask all the same. A worktree
 * is of use without them, so nothing fails here.
 */
export async function carryAgents(
  from: Workspace,
  to: Workspace,
  program: InstallHow["program"],
): Promise<Carried> {
  const at = projectLevel(to);
  try {
    const harnesses = await localHarnesses(from);
    if (harnesses.size === 0) return { plans: [], failures: [] };
    return await evenIfOvertaken(async () => {
      const plans: SitePlan[] = [];
      const failures: string[] = [];
      for (const [harness, via] of harnesses)
        for (const [, plan] of await decideEach(at, [harness], { program, shared: false, via }))
          if (isObjection(plan)) failures.push(`${HARNESSES[harness].title} ${lacking(plan.message)}`);
          else plans.push(plan);
      await writeAgents(at, plans);
      return { plans, failures };
    });
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return { plans: [], failures: [`no harness ${lacking(error.message)}`] };
  }
}

function lacking(why: string): string {
  return printable(`does not ask before each write there: ${why}`, 600);
}

/** Those that ask in this worktree, or in the main one, by settings that are not committed, and how they do. */
async function localHarnesses(workspace: Workspace): Promise<ReadonlyMap<HarnessName, Via>> {
  const { worktreeRoot, mainWorktreeRoot } = workspace.repository;
  const found = new Map<HarnessName, Via>();
  for (const root of new Set([worktreeRoot, mainWorktreeRoot ?? worktreeRoot]))
    for (const site of projectSites(workspace, root)) {
      const asks = found.has(site.harness) ? null : await asksLocally(workspace, site, root);
      if (asks !== null) found.set(site.harness, asks.via);
    }
  return found;
}

async function asksLocally(
  workspace: Workspace,
  site: Site,
  root: string,
): Promise<{ readonly via: Via } | null> {
  const { platform, shelf } = projectLevel(workspace);
  const record = await readRecord(platform, shelf, site.path);
  if (record === null || record.isShared) return null;
  const file = await lookAt(platform.files, site, root);
  const { state, isByHand, via } = stateOf({ site, file }, (text) => platform.digest.sha256(text));
  return !isByHand && state !== "missing" && state !== "unreadable" ? { via } : null;
}

/** Forgets what was put into settings of worktrees that Git does not know any more: the settings went with them. */
export async function forgetGoneWorktrees(workspace: Workspace): Promise<void> {
  const { platform, shelf } = projectLevel(workspace);
  const { surroundings, repository } = workspace;
  // Read before the worktrees: one that is made meanwhile is then among them.
  const records = await allRecords(platform, shelf);
  const listed = await listWorktrees(platform, surroundings.git, repository);
  const known = new Set(listed.flatMap(({ root }) => projectSites(workspace, root).map(({ path }) => path)));
  for (const { path } of records)
    if (!known.has(path) && (await platform.files.lstat(path)) === null)
      await removeRecord(platform, shelf, path);
}

function projectSites({ surroundings: { env } }: Workspace, root: string): Site[] {
  return HARNESS_NAMES.flatMap((harness) => sitesOf(harness, "project", { root, home: null, env }));
}
