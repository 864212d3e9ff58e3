/** Settings of harnesses that have the guard asked: putting it in, taking it out, how it stands, and trying it. */
import { nearest } from "../../config/nearest";
import type { Surroundings, Whereabouts, Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { HARNESS_NAMES, type HarnessName } from "../../identity/harness";
import { printable } from "../../kernel/ids";
import { HARNESSES } from "../guard/harness";
import { isInUse } from "../guard/worktree";
import { type Via, viaFlag } from "./command-line";
import { type CanaryReport, isWell, nothingCovered, type RealReport, wasTried } from "./coverage";
import { hindrances } from "./hindrances";
import {
  findIn,
  type HarnessLevel,
  type InstallHow,
  installAgents,
  leftToUser,
  planAgentRemoval,
  planAgents,
  projectLevel,
  refuseRuledRemovals,
  removeAgents,
  userLevel,
} from "./installation";
import type { Found, Removals, SitePlan } from "./plan";
import type { Grounds } from "./sites";
import { isPresent, type SiteState, stateOf, writerOf } from "./state";

export { VIA_NAMES, viaName } from "./command-line";
export type { RealReport } from "./coverage";
export { type Coverage, WAY_WORDS, WAYS } from "./coverage";
export {
  type HarnessLevel,
  installAgents,
  planAgentRemoval,
  planAgents,
  projectLevel,
  removeAgents,
} from "./installation";
export type { Removal, SitePlan } from "./plan";

export function harnessNamed(word: string): HarnessName {
  const found = HARNESS_NAMES.find((name) => name === word.toLowerCase());
  if (found !== undefined) return found;
  const near = nearest(word.toLowerCase(), [...HARNESS_NAMES]);
  throw new CotenantError("E_USAGE", `there is no harness "${printable(word, 60)}"`, {
    hint: `${near === null ? "" : `did you mean ${near}? `}use one of ${HARNESS_NAMES.join(", ")}`,
  });
}

/** Where somebody looks from: a worktree, or a place outside of any. */
export interface AgentsAround {
  readonly surroundings: Surroundings;
  readonly workspace: Workspace | null;
}

export async function agentsAround(where: Whereabouts): Promise<AgentsAround> {
  const surroundings = where.surroundings();
  try {
    return { surroundings, workspace: await where.workspace() };
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_NOT_A_REPO")
      return { surroundings, workspace: null };
    throw error;
  }
}

/** The user's own settings. */
export function ownLevel(surroundings: Surroundings): HarnessLevel {
  const at = userLevel(surroundings);
  if (at !== null) return at;
  throw new CotenantError("E_USAGE", "--user needs a home directory, and there is none", {
    hint: "set HOME, or install in the project without --user",
  });
}

/** How events are to get to the guard, and what has to be done before settings may say so. */
export interface Way {
  readonly via: Via;
  readonly remarks: readonly string[];
  /** Once it is certain that settings will be written. */
  prepare(): Promise<void>;
}

/** Plans first, so that a refusal leaves no trace; with `isDry` that is all. */
export async function addAgents(
  at: HarnessLevel,
  harnesses: readonly HarnessName[],
  { way, isDry, ...how }: Omit<InstallHow, "via"> & { readonly way: Way; readonly isDry: boolean },
): Promise<{ readonly plans: readonly SitePlan[]; readonly remarks: readonly string[] }> {
  const wishes = { ...how, via: way.via };
  const planned = await planAgents(at, harnesses, wishes);
  if (!isDry) await way.prepare();
  const plans = isDry ? planned : await installAgents(at, harnesses, wishes);
  const changed = plans.filter(({ after }) => after !== null);
  const remarks = [
    ...new Set(changed.flatMap((plan) => plan.remarks)),
    ...(changed.length > 0 ? way.remarks : []),
  ];
  return { plans, remarks };
}

export async function takeOutAgents(
  at: HarnessLevel,
  harnesses: readonly HarnessName[],
  shared: boolean,
): Promise<Pick<Removals, "removals" | "left">> {
  const plan = await planAgentRemoval(at, harnesses, shared);
  await refuseRuledRemovals(at, plan);
  await removeAgents(at, plan);
  const theirs = at.level === "user" ? [] : await leftToUser(at.surroundings, harnesses);
  return { removals: plan.removals, left: [...plan.left, ...theirs] };
}

/** What has to be done besides for the guard to do anything at all, where these settings count. */
export async function setUpRemarks(
  { workspace }: AgentsAround,
  { level }: Pick<HarnessLevel, "level">,
  isShared: boolean,
): Promise<string[]> {
  if (level === "user") {
    const isHere = workspace !== null && !(await isInUse(workspace.surroundings, workspace.repository));
    return [
      `the guard lets everything pass in repositories where cotenant was never used${isHere ? ", as in this one" : ""}: run 'cotenant init' there`,
    ];
  }
  if (!isShared || workspace === null) return [];
  const { files } = workspace.surroundings.platform;
  return (await files.stat(`${workspace.repository.worktreeRoot}/.cotenant/config.toml`)) === null
    ? ["in other clones the guard lets everything pass: run 'cotenant init', and commit .cotenant/ as well"]
    : [];
}

/** One file, and how it stands. */
export interface Seen {
  readonly found: Found;
  readonly state: SiteState;
  /** As it is to be called: whoever wrote into a file of ours has to look after it, whatever it starts. */
  readonly standing: SiteState["state"];
  /** False when our lines name a program that is gone. */
  readonly isProgramThere: boolean;
  /** False when they ask a daemon of another place, as after the repository was moved. */
  readonly isDaemonHere: boolean;
}

/** Every file of these harnesses, of this worktree if there is one, and of the user. `hookBase`: where the daemon's files are. */
async function seenAgents(
  { surroundings, workspace }: AgentsAround,
  harnesses: readonly HarnessName[],
  hookBase: string | null,
): Promise<Seen[]> {
  const { platform } = surroundings;
  const levels = [workspace === null ? null : projectLevel(workspace), userLevel(surroundings)];
  const seen: Seen[] = [];
  for (const at of levels) {
    if (at === null) continue;
    for (const found of await findIn(at, ...harnesses)) {
      const state = stateOf(found, (text) => platform.digest.sha256(text));
      const named = state.program === null ? [] : [state.program.node, state.program.program];
      const stats = await Promise.all(named.map((path) => platform.files.stat(path)));
      const isProgramThere = stats.every((stat) => stat !== null);
      const isDaemonHere = state.via === null || state.via.daemon === hookBase;
      const isAsSaid = (isProgramThere && isDaemonHere) || state.state === "changed";
      seen.push({
        found,
        state,
        standing: isAsSaid ? state.state : "outdated",
        isProgramThere,
        isDaemonHere,
      });
    }
  }
  return seen;
}

function groundsOf({ surroundings: { home, env }, workspace }: AgentsAround): Grounds {
  return { root: workspace?.repository.worktreeRoot ?? null, home, env };
}

export interface AgentListing {
  readonly harness: HarnessName;
  /** It has something in the user's home. */
  readonly isPresent: boolean;
  /** Files with anything of ours. */
  readonly files: readonly Seen[];
}

export async function listAgents(
  around: AgentsAround,
  harnesses: readonly HarnessName[],
  hookBase: string | null,
): Promise<AgentListing[]> {
  const { files } = around.surroundings.platform;
  const seen = await seenAgents(around, harnesses, hookBase);
  const listings: AgentListing[] = [];
  for (const harness of harnesses) {
    const all = seen.filter(({ found }) => found.site.harness === harness);
    const known = all.map(({ found }) => found);
    const hasOurs = ({ found, state: { state } }: Seen) =>
      state !== "missing" && (state !== "unreadable" || found.record !== null);
    listings.push({
      harness,
      isPresent: await isPresent(files, harness, groundsOf(around), known),
      files: all.filter(hasOurs),
    });
  }
  return listings;
}

/** What the daemon of a repository has done for harnesses so far. */
export interface GuardDaemon {
  /** By harness. */
  readonly events: Readonly<Record<string, number>>;
  /** Where it is asked over HTTP; null where it is not. */
  readonly httpPort: number | null;
}

/** What it takes to try harnesses on a machine. */
interface Trying {
  /** Plays a session through what is installed. */
  fly(found: Found, env: Readonly<Record<string, string>>): Promise<CanaryReport>;
  /** The daemon that answers here; null where none does. */
  daemon(): Promise<GuardDaemon | null>;
}

export interface Examined {
  readonly seen: Seen;
  readonly canary: CanaryReport | null;
  /** Whether the daemon has answered; null where it is not asked, or no canary was sent. */
  readonly isByDaemon: boolean | null;
  /** Why the harness does not run these hooks. */
  readonly hindrances: readonly string[];
}

export interface AgentsExamination {
  readonly examined: readonly Examined[];
  readonly remarks: readonly string[];
  readonly isFine: boolean;
  /** Only a daemon is missing; the settings are as they should be. */
  readonly lacksOnlyDaemon: boolean;
}

type Writer = ReturnType<typeof writerOf>;

export interface ExamineRequest {
  readonly harnesses: readonly HarnessName[];
  /** Whoever names a harness wants to see it asking. */
  readonly areNamed: boolean;
  readonly hookBase: string | null;
  /** Null: only the settings are looked at. */
  readonly trying: Trying | null;
  readonly program: InstallHow["program"];
  /** Runs the harnesses' own programs, with the command lines that are in settings, or would be; null where nobody wants that. */
  readonly tryReal:
    | ((trials: readonly (Writer & { readonly harness: HarnessName })[]) => Promise<RealReport[]>)
    | null;
}

/** Looks at what has harnesses ask here, tries it, and says what keeps it from working. */
export async function examineAgents(
  around: AgentsAround,
  request: ExamineRequest,
): Promise<AgentsExamination & { readonly real: readonly RealReport[] | null }> {
  const { harnesses, areNamed, hookBase, trying, program, tryReal } = request;
  const { surroundings, workspace } = around;
  const { files, digest } = surroundings.platform;
  const seen = await seenAgents(around, harnesses, hookBase);
  const ours = seen.filter(({ state: { state } }) => ["installed", "outdated", "changed"].includes(state));
  const mainRoot = workspace?.repository.mainWorktreeRoot ?? null;
  const look = { files, digest, grounds: groundsOf(around), mainRoot, machine: "" };
  const examined = await Promise.all(
    ours.map(async (one): Promise<Examined> => {
      const flown = trying === null ? { canary: null, isByDaemon: null } : await flyCanaries(one, trying);
      return { seen: one, ...flown, hindrances: await hindrances(look, one.found.site) };
    }),
  );
  const ofHarness = (harness: HarnessName) => ours.find(({ found }) => found.site.harness === harness);
  const real =
    (await tryReal?.(
      harnesses.map((harness) => {
        const one = ofHarness(harness);
        return { harness, ...writerOf(one?.isProgramThere === true ? one.state : null, program) };
      }),
    )) ?? null;
  const broken = seen.filter(({ state, found }) => state.state === "unreadable" && found.record !== null);
  const missing = harnesses.filter((harness) => areNamed && ofHarness(harness) === undefined);
  const isIdle =
    ours.length > 0 && workspace !== null && !(await isInUse(surroundings, workspace.repository));
  const kept = examined.flatMap(({ seen: { found }, hindrances: reasons }) =>
    reasons.map((why) => `${HARNESSES[found.site.harness].title} ${why}`),
  );
  const remarks = [
    ...(isIdle
      ? [
          "cotenant was never used in this repository, so the guard lets everything pass in it: run 'cotenant init'",
        ]
      : []),
    ...broken.map(({ found, state }) => `${found.site.shown} cannot be read: ${state.why}`),
    ...missing.map(
      (name) => `${HARNESSES[name].title} does not ask cotenant: cotenant agent install ${name}`,
    ),
    ...new Set(kept),
    ...twice(ours),
    ...new Set(examined.flatMap(withoutDaemon)),
    ...(real === null ? [] : realRemarks(real, areNamed)),
  ];
  const isFine =
    (real ?? []).every((one) => isWell(one, areNamed)) &&
    !isIdle &&
    broken.length + missing.length + kept.length === 0 &&
    examined.every(({ seen: one, canary }) => one.isProgramThere && canary?.isAlive !== false);
  const failed = examined.filter(({ canary }) => canary?.why != null);
  const lacksOnlyDaemon = failed.every(({ canary }) => canary!.why === NO_DAEMON);
  return { examined, real, remarks, isFine, lacksOnlyDaemon };
}

const NO_DAEMON = "no daemon is running";

/**
 * Where the daemon is asked first, the same must come of it with the daemon and without. Where there is nothing to fall back to, one
 * canary has to do.
 */
async function flyCanaries(
  { found, state: { via } }: Seen,
  trying: Trying,
): Promise<Pick<Examined, "canary" | "isByDaemon">> {
  const before = via === null ? null : await trying.daemon();
  // Whoever else listens there is not shown the token.
  if (via?.http != null && before?.httpPort !== via.http.port) {
    const others = `the daemon does not listen on port ${via.http.port}, which others may have`;
    const why = before === null ? NO_DAEMON : others;
    return { canary: { isAlive: false, why, coverage: nothingCovered() }, isByDaemon: false };
  }
  const canary = await trying.fly(found, {});
  if (via === null) return { canary, isByDaemon: null };
  const after = await trying.daemon();
  const events = (daemon: GuardDaemon | null) => daemon?.events[found.site.harness] ?? 0;
  const isByDaemon = before !== null && events(after) > events(before);
  if (!canary.isAlive || via.http !== null) return { canary, isByDaemon };
  const alone = await trying.fly(found, { COTENANT_NO_DAEMON: "1" });
  return {
    canary: alone.isAlive ? canary : { ...alone, why: `without the daemon: ${alone.why}` },
    isByDaemon,
  };
}

function withoutDaemon({ seen: { found, state, isDaemonHere }, isByDaemon, canary }: Examined): string[] {
  if (state.via === null || isByDaemon !== false) return [];
  const { harness } = found.site;
  const { title } = HARNESSES[harness];
  if (!isDaemonHere)
    return [
      `${title} asks the daemon of another place: cotenant agent install ${harness}${viaFlag(state.via)}`,
    ];
  return state.via.http === null
    ? [`no daemon answers ${title}'s hooks at present, so that the program does; the next hook starts one`]
    : [
        `no daemon answers ${title}, which can write nothing until one does: ${canary?.why === NO_DAEMON ? "cotenant daemon start" : `cotenant agent install ${harness} --via http`}`,
      ];
}

/** Both run then, with one effect; each costs its start. */
function twice(ours: readonly Seen[]): string[] {
  const count = new Map<HarnessName, number>();
  for (const { found } of ours) count.set(found.site.harness, (count.get(found.site.harness) ?? 0) + 1);
  return [...count].flatMap(([harness, many]) =>
    many > 1
      ? [`${HARNESSES[harness].title} asks ${many} times for every write, from ${many} files; once is enough`]
      : [],
  );
}

const OUTCOMES: Readonly<Record<RealReport["outcome"], string>> = {
  passed: "passed",
  failed: "failed",
  protocol_changed: "protocol changed",
  not_installed: "not installed",
  not_triable: "not tried",
};

/** What came of running a harness's own program, in words. */
export function realWord({ outcome, version }: RealReport): string {
  return `${OUTCOMES[outcome]}${version === null ? "" : ` (${printable(version, 40)})`}`;
}

function realRemarks(reports: readonly RealReport[], areNamed: boolean): string[] {
  const told = reports.filter((one) => one.why !== null && (areNamed || one.outcome !== "not_installed"));
  return [
    ...told.map((one) => `${HARNESSES[one.harness].title}, ${realWord(one)}: ${one.why}`),
    ...(reports.some(wasTried) || areNamed ? [] : ["no harness's own program was found, so none was tried"]),
  ];
}
