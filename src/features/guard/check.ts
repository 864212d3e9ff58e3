import type { Acquired } from "../../coordinator/session";
import { CotenantError } from "../../errors/cotenant-error";
import { resolveFrom } from "../../identity/path-text";
import type { Repository } from "../../identity/repository";
import type { Ulid } from "../../kernel/ids";
import type { Alarm } from "./alarm";
import { ALLOWED, allowedSaying, canTell, saying, type Verdict } from "./answers";
import { strayed } from "./home";
import { writePass } from "./pass-writer";
import type { Report } from "./report";
import { DEFAULT_SETTINGS } from "./settings";
import { hasStopped, isBeatDue, leaveTrace } from "./small-files";
import { type Wish, wishOf } from "./tools";
import { type Who, whoIs } from "./who";
import { Findings, type GuardedWorktree, openWorktree, repositoryOf } from "./worktree";
import type { World } from "./world";
import { type Group, locate, type Named, type WriteTarget } from "./write-target";

/** One event, and all that it takes to decide about it. */
export interface Checking {
  readonly world: World;
  /** Where it is known already: for callers that are no harness. */
  readonly who?: Who;
  readonly report: Report;
  /** What its tool is about to write, or has written. */
  readonly wish: Wish | null;
  readonly alarm: Alarm;
  /** Of a caller that may ask again without knowing what came of it. */
  readonly requestId?: Ulid | null;
  readonly onGrant?: (grant: Acquired) => void;
}

export function checkingOf(world: World, report: Report, alarm: Alarm): Checking {
  return { world: { ...world, found: new Findings() }, report, wish: wishOf(report), alarm };
}

/** Where the agent stands. */
export function directoryOf({ world, report }: Pick<Checking, "world" | "report">): string {
  return report.cwd ?? world.cwd;
}

/** Where a shell command runs: where its tool says, else where the agent stands. */
export function shellDirectory(checking: Checking, { cwd }: Extract<Wish, { kind: "shell" }>): string {
  return cwd === null ? directoryOf(checking) : resolveFrom(directoryOf(checking), cwd);
}

/** Before a tool runs. */
export async function check(checking: Checking): Promise<Verdict> {
  const { world, wish } = checking;
  if (wish === null) return ALLOWED;
  const cwd = directoryOf(checking);
  if (wish.kind === "shell") {
    const repository = world.hooks === undefined ? null : await repositoryOf(world, cwd);
    const word = await hooksWord(checking, repository === null ? [] : [repository]);
    const { checkShell } = await import("./shell/check");
    return saying(word, await checkShell(checking, wish));
  }
  const named = wish.paths.map((path): Named => ({ path, mode: "take" }));
  const groups = await locate(world, cwd, named);
  const word = await hooksWord(
    checking,
    groups.map(({ repository }) => repository),
  );
  return saying(word, await checkTargets(checking, groups));
}

/** Hooks that were gone: whoever works here should know, also where they are back. */
export async function hooksWord(
  { world, report }: Checking,
  repositories: readonly Repository[],
): Promise<string | null> {
  const words: string[] = [];
  for (const repository of repositories) {
    const word = (await world.hooks?.lookAfter(repository).catch(() => null)) ?? null;
    if (word !== null && canTell(report)) words.push(`cotenant: ${word}`);
  }
  return words.length === 0 ? null : words.join("\n");
}

/** Everything or nothing, also where the files lie in several repositories. */
export async function checkTargets(checking: Checking, groups: readonly Group[]): Promise<Verdict> {
  if (groups.length === 0) return ALLOWED;
  const { world, report } = checking;
  const who = checking.who ?? (await whoIs(world, report));
  const taken: { place: GuardedWorktree; grant: Acquired }[] = [];
  const tells: string[] = [];
  for (const { repository, targets } of groups) {
    const place = await openWorktree(world, repository, who);
    if (place.settings !== DEFAULT_SETTINGS) checking.alarm.allowWork(place.settings.deadlineMs);
    if (await hasStopped(place)) {
      const { wake } = await import("./life");
      await wake(place);
    }
    const away = (await refusedByRule(place, targets)) ?? (await strayed(checking, place, targets[0]!.path));
    const { verdict, grant } =
      away?.isAllowed === false ? { verdict: away, grant: null } : await take(checking, place, targets);
    // Also a session that is only ever refused is alive.
    if (await isBeatDue(place)) await place.session.showLife();
    if (!verdict.isAllowed) {
      for (const earlier of taken) await giveBack(earlier.place, earlier.grant);
      return verdict;
    }
    if (grant !== null) {
      taken.push({ place, grant });
      checking.onGrant?.(grant);
    }
    if (place.notice !== null && canTell(report)) tells.push(place.notice);
    if (verdict.tell !== null) tells.push(verdict.tell);
    // Once for each file is enough.
    if (away?.isAllowed === true && away.tell !== null && grant?.isNew === true && canTell(report))
      tells.push(away.tell);
  }
  const abroad = taken.filter(({ place, grant }) => grant.isNew && isAbroad(checking, place));
  if (abroad.length > 0) {
    const { rememberRoots } = await import("./session-roots");
    const roots = abroad.map(({ place }) => place.repository.worktreeRoot);
    await rememberRoots(world, who, roots);
  }
  if (tells.length === 0) await givePass(checking, groups, taken);
  return allowedSaying(...tells);
}

/** Mostly there are no rules. */
async function refusedByRule(
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
): Promise<Verdict | null> {
  if (place.settings.pathRules.length === 0) return null;
  const { forbidden } = await import("./path-rules");
  return forbidden(place, targets);
}

/** Mostly it is one file, and the next edit is of the same one. */
async function givePass(
  checking: Checking,
  groups: readonly Group[],
  taken: readonly { readonly place: GuardedWorktree; readonly grant: Acquired }[],
): Promise<void> {
  const targets = groups.flatMap((group) => group.targets);
  const [target, first] = [targets[0], taken[0]];
  const lease = first?.grant.leases[0];
  if (targets.length !== 1 || target?.mode !== "take" || first === undefined || lease === undefined) return;
  try {
    await writePass(checking, first.place, target, lease);
  } catch {
    // Then the next one takes as long as this.
  }
}

/** The harness tells of its end only where it stands. */
function isAbroad(checking: Checking, { repository }: GuardedWorktree): boolean {
  return !`${directoryOf(checking)}/`.startsWith(`${repository.worktreeRoot}/`);
}

export interface Outcome {
  readonly verdict: Verdict;
  /** Null where nothing was taken. */
  readonly grant: Acquired | null;
}

/** Facts that a check has to look at when there are any. Mostly there are none. */
const DECIDING = ["contention", "subagent"];
const PAUSE = "pause";
const NEWS = ["contention", "guard-violation"];
const ON_GRANT = ["left"];

async function take(
  checking: Checking,
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
): Promise<Outcome> {
  const seen = await place.coordinator.glance([...DECIDING, ...NEWS, ...ON_GRANT, PAUSE]);
  const outcome = await takeUnlessPaused(checking, place, targets, seen);
  const { verdict } = outcome;
  if (!verdict.isAllowed || !canTell(checking.report) || !seen.some((kind) => NEWS.includes(kind)))
    return outcome;
  const { newsFor } = await import("./news");
  return { ...outcome, verdict: allowedSaying(verdict.tell, await newsFor(place)) };
}

/** What is held may be written while the repository is paused; for anything else there is nothing to wait for. */
async function takeUnlessPaused(
  checking: Checking,
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  seen: readonly string[],
): Promise<Outcome> {
  if (seen.includes(PAUSE)) {
    const { refusedWhilePaused } = await import("./pause");
    const verdict = await refusedWhilePaused(place, targets);
    if (verdict !== null) return { verdict, grant: null };
  }
  try {
    return await takeKnowing(checking, place, targets, seen);
  } catch (error) {
    // Paused since the glance.
    if (!(error instanceof CotenantError) || error.code !== "E_PAUSED") throw error;
    const { refusedByPause } = await import("./pause");
    return { verdict: refusedByPause(error.message, error.data, targets), grant: null };
  }
}

async function takeKnowing(
  checking: Checking,
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  seen: readonly string[],
): Promise<Outcome> {
  if (!seen.some((kind) => DECIDING.includes(kind)) && targets.every(({ mode }) => mode === "take")) {
    try {
      const grant = await acquire(place, targets, checking.requestId);
      return { verdict: await granted(checking, place, targets, grant, seen), grant };
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  const { contend } = await import("./contend");
  return contend(checking, place, targets);
}

/** What a grant brings along: mostly nothing. */
export async function granted(
  { report }: Pick<Checking, "report">,
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  grant: Acquired,
  seen: readonly string[],
): Promise<Verdict> {
  if (!grant.isNew) {
    await leaveTrace(place, targets);
    return ALLOWED;
  }
  const isRemarkable =
    grant.ended.some(({ agentId }) => agentId !== place.who.agentId) ||
    seen.includes("left") ||
    (place.settings.acrossWorktrees === "warn" && (await hasLinkedWorktrees(place)));
  if (!isRemarkable) return ALLOWED;
  const { remarks } = await import("./unfinished-work");
  const tell = await remarks(place, targets, grant);
  return allowedSaying(canTell(report) ? tell : null);
}

async function hasLinkedWorktrees({ world, repository }: GuardedWorktree): Promise<boolean> {
  return (await world.platform.files.stat(`${repository.commonDir}/worktrees`)) !== null;
}

/** By what a lease says of itself, this one came from the guard. */
export const GUARD_NOTE = "guard";

export function acquire(
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  requestId: Ulid | null = null,
): Promise<Acquired> {
  const reach = place.settings.acrossWorktrees === "enforce" ? "repository" : "worktree";
  return place.session.acquire(
    targets.map(({ key }) => ({ key, reach })),
    { ttlSecs: 0, bind: "process", note: GUARD_NOTE, requestId, upkeep: false },
  );
}

/** What was new in a grant that is not to stand. */
export async function giveBack({ session }: GuardedWorktree, { fresh }: Acquired): Promise<void> {
  if (fresh.length === 0) return;
  const refs = fresh.map(({ key, leaseId }) => ({ key, leaseId }));
  await session.release(refs, { reason: "not all that was wanted could be had" });
}

export function isConflict(error: unknown): boolean {
  return error instanceof CotenantError && (error.code === "E_LOCK_CONFLICT" || error.code === "E_QUEUED");
}
