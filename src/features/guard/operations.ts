import { type ChangeRequest, requestIdOf } from "../../coordinator/requests";
import type { Acquired } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { Alarm } from "./alarm";
import { checkTargets } from "./check";
import { heldPath, ownersOf } from "./contention";
import { type GuardFailure, readFailures } from "./failure";
import { overview, type SeenContention, seenContentions } from "./overview";
import { recordFreed } from "./records";
import { type SeenViolation, seenViolations, settleSeen } from "./violations";
import { namedAsHolder, parentAsHolder, type Who } from "./who";
import { stillHeldBy } from "./words";
import { Findings, openWorktree } from "./worktree";
import type { World } from "./world";
import { locate } from "./write-target";

/**
 * What people and programs may ask of the guard, besides what harnesses tell it (`run.ts`). `world` is the machine as the
 * caller sees it. See docs/GUARD.md.
 */

export { end as endSession, stop as stopSession } from "./life";
export type { SeenContention } from "./overview";
export type { SeenViolation } from "./violations";

/** The caller's own session here. */
export async function ownWorktree(workspace: Workspace, world: World) {
  const { agentId, sessionId } = await workspace.agent();
  const holder = world.platform.processes.self();
  return openWorktree(world, workspace.repository, { agentId, sessionId, mainAgentId: agentId, holder });
}

export interface PathsCheck extends ChangeRequest {
  readonly paths: readonly string[];
  /** For how long the retry may be waited for. */
  readonly patienceMs: number;
}

export interface CheckedPaths {
  /** From the worktree's root. */
  readonly held: readonly string[];
  /** The process that they are bound to. */
  readonly pid: number;
  readonly remarks: string | null;
  readonly changed: boolean;
  readonly replayed: boolean;
}

const WHO_WAITS = "take other work; 'cotenant guard status' shows who holds it and who waits";
const WORK_MS = 10_000;

/** A check for whoever is no harness: the caller's own identity, and errors as everywhere else. */
export async function checkPaths(
  workspace: Workspace,
  machine: World,
  check: PathsCheck,
): Promise<CheckedPaths> {
  const { paths, patienceMs } = check;
  const requestId = requestIdOf(workspace, check);
  const { agentId, sessionId } = await workspace.agent();
  const world: World = { ...machine, isAsked: true, found: new Findings() };
  const { platform, harnessPid, cwd } = world;
  const pid = harnessPid ?? world.parentPid;
  const holder = await (harnessPid === null ? parentAsHolder : namedAsHolder)(platform.processes, pid);
  const who: Who = { agentId, sessionId, mainAgentId: agentId, holder };
  // A name that Git would refuse is an error here, not something to be passed over.
  for (const path of paths) await workspace.path(path);
  const groups = await locate(
    world,
    cwd,
    paths.map((path) => ({ path, mode: "take" })),
  );
  const asked = { sessionId, subagent: null, cwd, tool: null, input: null, toolUseId: null };
  const flags = { isRecoverable: false, isBorrowed: false, isShowingWaits: false };
  const report = { harness: "claude", moment: "before", event: "PreToolUse", ...asked, ...flags } as const;
  const grants: Acquired[] = [];
  const onGrant = (grant: Acquired) => grants.push(grant);
  const alarm = new Alarm(platform, { workMs: WORK_MS, patienceMs: WORK_MS + patienceMs });
  const checking = { world, who, report, wish: null, alarm, requestId, onGrant };
  const verdict = await alarm.watch(() => checkTargets(checking, groups));
  if (!verdict.isAllowed) {
    const [first = "", ...words] = verdict.reason.replace(/^cotenant: /, "").split("\n");
    const retry = words.filter((line) => line.startsWith("retry_at: "));
    throw new CotenantError(verdict.code, [first, ...retry].join(" "), {
      ...(verdict.code === "E_LOCK_CONFLICT" ? { hint: WHO_WAITS } : {}),
      data: { ...verdict.data, words },
    });
  }
  return {
    held: groups.flatMap(({ targets }) => targets.map(({ path }) => path)),
    pid,
    remarks: verdict.tell,
    changed: grants.some(({ changed }) => changed),
    replayed: grants.some(({ replayed }) => replayed),
  };
}

/** All that a person may want to know, with what the guard itself could not decide lately. */
export async function guardStatus(workspace: Workspace) {
  const { store } = workspace;
  const failures: readonly GuardFailure[] = await readFailures(store.platform.files, store.layout);
  return { ...(await overview(workspace)), failures };
}

/** Those who were stopped, and may not go on by themselves. */
export async function blockedContentions(workspace: Workspace): Promise<SeenContention[]> {
  return (await seenContentions(workspace)).filter(({ contention: { state } }) => state !== "waiting");
}

export interface Retried {
  /** Put on record: their agents may go on. */
  readonly free: readonly SeenContention[];
  /** Whose one retry is still to come. */
  readonly waiting: readonly SeenContention[];
}

/** Looks whether those who are blocked may go on; of these paths, or of all where none is named. */
export async function retryBlocked(
  workspace: Workspace,
  world: World,
  named: readonly string[],
): Promise<Retried> {
  const paths = new Set<string>();
  for (const name of named) paths.add((await workspace.path(name)).path);
  const all = (await seenContentions(workspace)).filter(
    ({ contention }) =>
      paths.size === 0 ||
      paths.has(contention.path) ||
      ownersOf(contention).some((owner) => paths.has(heldPath(contention, owner))),
  );
  const isWaiting = ({ contention }: SeenContention) => contention.state === "waiting";
  const blocked = all.filter((seen) => !isWaiting(seen));
  const free = blocked.filter(({ isFree }) => isFree);
  const held = blocked.filter(({ isFree }) => !isFree);
  if (free.length > 0) await recordFreed(await ownWorktree(workspace, world), free.map(contentionOf));
  if (held.length > 0)
    throw new CotenantError("E_BLOCKED", stillHeldBy(held.map(contentionOf)), {
      data: { reports: held.flatMap(({ reports }) => reports) },
    });
  return { free, waiting: all.filter(isWaiting) };
}

function contentionOf({ contention }: SeenContention): SeenContention["contention"] {
  return contention;
}

/** Says that somebody has looked at what commands changed under leases of others: at these, or at all. */
export async function settleSeenViolations(
  workspace: Workspace,
  named: readonly string[] | "all",
): Promise<readonly SeenViolation[]> {
  const known = await seenViolations(workspace);
  const session = await workspace.session("write");
  const { worktreeId } = session.actor;
  const meant = new Set(named === "all" ? known : []);
  for (const word of named === "all" ? [] : named)
    for (const one of await namedBy(workspace, known, word, worktreeId)) meant.add(one);
  await settleSeen(session, [...meant]);
  return [...meant];
}

/** By its id, which is meant in every worktree; else by where the file is. */
async function namedBy(
  workspace: Workspace,
  known: readonly SeenViolation[],
  word: string,
  worktreeId: string,
): Promise<readonly SeenViolation[]> {
  const byId = known.filter(({ id }) => id === word);
  if (byId.length > 0) return byId;
  const { path } = await workspace.path(word);
  const found = known.filter(
    ({ violation }) =>
      violation.worktreeId === worktreeId &&
      (path === "." || violation.path === path || violation.path.startsWith(`${path}/`)),
  );
  if (found.length > 0) return found;
  throw new CotenantError("E_NOT_FOUND", `nothing is on record about "${printable(word, 200)}"`, {
    hint: "'cotenant guard status' lists what is, with its id",
  });
}
