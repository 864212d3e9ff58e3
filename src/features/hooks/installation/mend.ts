import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { isObjection } from "../../installer/files";
import { CLIENT_HOOKS } from "./block";
import { carryOut, type HooksWork } from "./install";
import { type HookState, type HooksSurvey, lookAtHooks, statesOf } from "./look";
import { hooksHome } from "./place";
import { planInstall } from "./plan";
import { type Mark, markOf, readRecord, writeSeen } from "./record";
import type { HooksWord, Upkeep } from "./upkeep";

/** What `hooks install` would do, where somebody wanted that before. Nothing that needs a person's leave is done. */
export async function mendHooks(upkeep: Upkeep): Promise<HooksWord | null> {
  const { platform, repository, modes } = upkeep;
  const record = await readRecord(platform, repository.controlDir);
  if (record === null) return null;
  const work: HooksWork = {
    platform,
    home: await hooksHome(upkeep, repository),
    names: CLIENT_HOOKS,
    control: { ...repository, modes },
  };
  const { scene, marks } = await look(work);
  const lacking = statesOf(scene).filter(isLacking);
  const program = record.program;
  if (program === null) return lacking.length === 0 ? null : notPutBack(lacking, scene, UNKNOWN);
  const plan = planInstall(scene, { program, shared: false, force: false });
  if (isObjection(plan)) {
    if (lacking.length > 0) return notPutBack(lacking, scene, plan);
    await remember(work, marks);
    return null;
  }
  // A worktree that is new may only lack the entries that its manager reads from its own files.
  if (lacking.length === 0 && (plan.entry === null || plan.entry.write === null)) {
    await remember(work, marks);
    return null;
  }
  try {
    await carryOut(work, scene, plan, program);
    const after = await look(work);
    const stillLacking = statesOf(after.scene).filter(isLacking);
    if (stillLacking.length > 0) return notPutBack(stillLacking, after.scene, UNKNOWN);
    await remember(work, after.marks);
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return lacking.length === 0 ? null : notPutBack(lacking, scene, error);
  }
  if (lacking.length === 0) return null;
  return {
    hooks: lacking.map(({ hook }) => hook),
    isPutBack: true,
    message: `${gone(lacking, scene)}; cotenant's lines are put back`,
    next: null,
  };
}

function isLacking({ state, isExecutable }: HookState): boolean {
  return state === "missing" || state === "foreign" || !isExecutable;
}

const UNKNOWN = {
  message: "they could not be put back",
  hint: "run: cotenant hooks install",
};

function notPutBack(
  lacking: readonly HookState[],
  scene: HooksSurvey,
  { message, hint }: { readonly message: string; readonly hint: string },
): HooksWord {
  return {
    hooks: lacking.map(({ hook }) => hook),
    isPutBack: false,
    message: `${gone(lacking, scene)}; ${printable(message, 600)}`,
    next: hint,
  };
}

function gone(lacking: readonly HookState[], { place }: HooksSurvey): string {
  const managers = new Set(
    lacking.map(({ manager }) => manager).filter((one) => one !== null && one !== "script"),
  );
  const by = managers.size === 0 ? "" : ` (${[...managers].join(", ")} has written its own)`;
  const where = place.setting === null ? "" : ` in ${printable(place.setting.value, 200)}`;
  return `Git no longer called cotenant in ${lacking.map(({ hook }) => hook).join(", ")}${where}${by}`;
}

/** What is looked at is marked first: a change in between is then seen by the next one who looks. */
async function look({
  platform,
  home,
  names,
  control,
}: HooksWork): Promise<{ scene: HooksSurvey; marks: Mark[] }> {
  const before = await lookAtHooks(home, names);
  const files = new Set([
    `${home.commonDir}/config`,
    `${control?.gitDir ?? home.gitDir}/config.worktree`,
    ...before.hooks.map(({ path }) => path),
    ...statesOf(before).map(({ path }) => path),
  ]);
  const { local, localPath } = before.lefthook;
  if (before.hooks.some(({ manager }) => manager === "lefthook"))
    files.add(local?.path ?? localPath ?? before.place.directory);
  const marks: Mark[] = [];
  for (const file of files) marks.push(await markOf(platform, file));
  return { scene: await lookAtHooks(home, names), marks };
}

async function remember({ platform, control }: HooksWork, marks: readonly Mark[]): Promise<void> {
  if (control === null) return;
  try {
    await writeSeen(platform, control, marks, control.modes);
  } catch {
    // Then the next one looks as closely.
  }
}
