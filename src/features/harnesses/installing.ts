import { refuseRuledFiles } from "../../coordinator/path-rules";
import type { Surroundings } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { evenIfOvertaken } from "../../errors/overtaken";
import type { HarnessName } from "../../identity/harness";
import { printable } from "../../kernel/ids";
import { applyInstall, applyUninstall } from "./apply";
import { type AgentsDesk, findIn, userDesk } from "./desk";
import { isObjection, type Objection, planInstall, type SitePlan, type Wishes } from "./plan";
import { allRecords, type FileRecord } from "./record";
import { stateOf } from "./state";
import { type Left, planUninstall, type Removals } from "./unplan";

export type InstallHow = Pick<Wishes, "program" | "shared" | "via">;

/** Looks and decides for all of them before anything is written: an objection against one is one against all. */
export async function planAgents(
  desk: AgentsDesk,
  harnesses: readonly HarnessName[],
  how: InstallHow,
): Promise<SitePlan[]> {
  const plans: SitePlan[] = [];
  for (const [harness, plan] of await decideEach(desk, harnesses, how)) {
    if (isObjection(plan)) {
      const { code, message, hint, path } = plan;
      throw new CotenantError(code, printable(message, 1_500), { hint, data: { path, harness } });
    }
    plans.push(plan);
  }
  return plans;
}

/** The same, with an objection against one in the place of its plan. */
export async function decideEach(
  desk: AgentsDesk,
  harnesses: readonly HarnessName[],
  how: InstallHow,
): Promise<[HarnessName, SitePlan | Objection][]> {
  const { digest } = desk.platform;
  const all = await findIn(desk, ...harnesses);
  return harnesses.map((harness) => {
    const found = all.filter(({ site }) => site.harness === harness);
    return [harness, planInstall(found, { ...how, digestOf: (text) => digest.sha256(text) })];
  });
}

export async function installAgents(
  desk: AgentsDesk,
  harnesses: readonly HarnessName[],
  how: InstallHow,
): Promise<SitePlan[]> {
  return evenIfOvertaken(async () => {
    const plans = await planAgents(desk, harnesses, how);
    await writeAgents(desk, plans);
    return plans;
  });
}

export async function writeAgents(desk: AgentsDesk, plans: readonly SitePlan[]): Promise<void> {
  if (desk.workspace !== null) {
    const shared = plans.filter(({ isShared, after }) => isShared && after !== null);
    await refuseRuledFiles(
      desk.workspace,
      shared.map(({ file }) => file.path),
    );
    await desk.workspace.store.prepare();
  }
  await applyInstall(desk, plans);
}

export async function planAgentRemoval(
  desk: AgentsDesk,
  harnesses: readonly HarnessName[],
  shared: boolean,
): Promise<Removals & { readonly others: readonly FileRecord[] }> {
  const { digest } = desk.platform;
  const others = await allRecords(desk.platform, desk.shelf);
  const found = await findIn(desk, ...harnesses);
  const plan = planUninstall(found, { shared, digestOf: (text) => digest.sha256(text) });
  return { ...plan, others };
}

/** What Git passes over is nobody's work. */
export async function refuseRuledRemovals(
  { workspace }: AgentsDesk,
  { removals }: Pick<Removals, "removals">,
): Promise<void> {
  const seen = removals.filter(({ found }) => found.standing !== "ignored");
  if (workspace !== null)
    await refuseRuledFiles(
      workspace,
      seen.map(({ found }) => found.file.path),
    );
}

/** What these harnesses have in the user's own settings, which stays when a project's are taken out. */
export async function leftToUser(
  surroundings: Surroundings,
  harnesses: readonly HarnessName[],
): Promise<Left[]> {
  const desk = userDesk(surroundings);
  const found = desk === null ? [] : await findIn(desk, ...harnesses);
  const digestOf = (text: string) => surroundings.platform.digest.sha256(text);
  return found
    .filter((one) => ["installed", "outdated", "changed"].includes(stateOf(one, digestOf).state))
    .map(({ site }) => ({
      path: site.path,
      why: "it is yours, for all your projects; add --user to take it out",
    }));
}

export async function removeAgents(
  desk: AgentsDesk,
  plan: Awaited<ReturnType<typeof planAgentRemoval>>,
): Promise<void> {
  const gone = new Set(
    [...plan.removals.map(({ found }) => found), ...plan.absent].map(({ site }) => site.path),
  );
  const kept = plan.others.filter(({ path, isShared }) => !gone.has(path) && !isShared);
  // The list is one for all worktrees, and another one may still need the name.
  const isStillHidden = (name: string) => kept.some(({ path }) => path.endsWith(`/${name}`));
  await applyUninstall(desk, plan, isStillHidden);
}
