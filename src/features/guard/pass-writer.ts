import { configFiles } from "../../config/places";
import { keysConflict } from "../../kernel/conflicts";
import type { Holder, Lease } from "../../kernel/lease";
import { overwriteFile } from "../../platform/overwrite-file";
import { TreeNames } from "../../store/tree-names";
import type { Checking } from "./check";
import { type Contention, contentionName } from "./contention";
import { othersOn, wantingIn } from "./holders";
import {
  type Basis,
  type Being,
  callerOf,
  type Kept,
  type Mark,
  PASSES,
  type Pass,
  passName,
  REFUSALS,
  type Refusal,
  SETTLED_MS,
} from "./pass";
import { beatFile, stopMark, traceFile } from "./small-files";
import type { GuardedWorktree } from "./worktree";
import type { WriteTarget } from "./write-target";

/** Facts for which a check looks more closely, also at what is held already. */
const CLOSER = ["contention", "subagent", "guard-violation"];

/** Lets the next check of the same file through quickly. Whatever is unusual gets no pass. */
export async function writePass(
  checking: Checking,
  place: GuardedWorktree,
  target: WriteTarget,
  lease: Lease,
): Promise<void> {
  if (lease.bind !== "process") return;
  const basis = await basisOf(checking, place, target, lease);
  if (basis === null) return;
  const { layout, options } = place.coordinator.store;
  const pass: Pass = {
    ...basis,
    empty: CLOSER.map((kind) => `${layout.index}/facts/${kind}`),
    trace: { file: traceFile(place, target.key, place.worktreeId), mode: options.modes.file },
  };
  await leave(place, PASSES, pass);
}

/**
 * Lets the next attempt, if it comes too early, be refused quickly. Only where whoever is in the way holds the file for as
 * long as its process lives, here: then nothing else can free it without a word in the log.
 */
export async function writeRefusal(
  checking: Checking,
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
  contention: Contention,
): Promise<void> {
  const [target] = targets;
  if (targets.length !== 1 || target?.mode !== "take" || contention.state !== "waiting") return;
  try {
    const lease = await inTheWayOf(place, target);
    if (lease === null || !isForLife(place, lease)) return;
    const basis = await basisOf(checking, place, target, lease);
    if (basis === null) return;
    const { digest } = place.world.platform;
    const name = contentionName(digest, place.session.actor, target.key);
    const fact = await textOf(place, new TreeNames(place.coordinator.store.layout, digest).fact(name));
    if (fact === null || !says(fact.text, contention)) return;
    // While the repository is paused, that is the reason to name.
    const empty = [`${place.coordinator.store.layout.index}/facts/pause`];
    const refusal: Refusal = { ...basis, empty, contention, fact, owner: beingOf(lease.holder) };
    await leave(place, REFUSALS, refusal);
  } catch {
    // Then the next check takes as long as this one.
  }
}

async function inTheWayOf(place: GuardedWorktree, target: WriteTarget): Promise<Lease | null> {
  const others = await othersOn(place.coordinator, wantingIn(place), [target.key]);
  const held = others.find(
    ({ lease, standing }) => standing === "valid" && keysConflict(target.key, lease.key),
  );
  return held?.lease ?? null;
}

/** Nothing ends it by itself but the death of a process that can be seen from here; and no subagent's, who gives way. */
function isForLife({ who, world }: GuardedWorktree, lease: Lease): boolean {
  const { machineId, bootId, pidNamespace } = world.platform.processes.self();
  const { holder } = lease;
  return (
    lease.bind === "process" &&
    lease.expiresAt === null &&
    lease.stopIdleAt === null &&
    lease.sessionId !== who.sessionId &&
    holder.startTime !== "" &&
    holder.machineId === machineId &&
    holder.bootId === bootId &&
    holder.pidNamespace === pidNamespace
  );
}

function says(text: string, { retryAt, state }: Contention): boolean {
  return text.includes(`"state":"${state}"`) && text.includes(`"monotonicMs":${retryAt.monotonicMs}`);
}

/** What every quick answer rests on; null where it is not to be had quickly. */
async function basisOf(
  { report, world, wish }: Checking,
  place: GuardedWorktree,
  target: WriteTarget,
  lease: Lease,
): Promise<Basis | null> {
  if (wish?.kind !== "files" || wish.paths.length !== 1) return null;
  const caller = callerOf(report, wish.paths[0]!, world.env);
  const settings = await marksOf(place);
  if (caller === null || settings === null) return null;
  const { layout } = place.coordinator.store;
  const kept = await textOf(place, new TreeNames(layout, world.platform.digest).metaOf(lease));
  // The lease has changed meanwhile, or the index is about to be rebuilt.
  if (kept === null || !kept.text.includes(`"lease_id":"${lease.leaseId}"`)) return null;
  return {
    caller,
    directory: target.absolutePath.slice(0, target.absolutePath.lastIndexOf("/")) || "/",
    holder: beingOf(place.who.holder),
    lease: kept,
    settings,
    beat: beatFile(place),
    absent: [stopMark(place), layout.syncFailed],
    empty: [],
  };
}

function beingOf({ pid, startTime, bootId, pidNamespace }: Holder): Being {
  return { pid, startTime, bootId, pidNamespace };
}

async function textOf({ world }: GuardedWorktree, file: string): Promise<Kept | null> {
  const bytes = await world.platform.files.readFile(file);
  return bytes === null ? null : { file, text: new TextDecoder().decode(bytes) };
}

/** For the next check by the same caller. */
async function leave(place: GuardedWorktree, folder: string, basis: Basis): Promise<void> {
  const { files } = place.world.platform;
  const { layout, options } = place.coordinator.store;
  await files.makeDirectory(`${layout.guard}/${folder}`, options.modes.directory);
  const path = `${layout.guard}/${folder}/${passName(basis.caller)}`;
  await overwriteFile(files, path, `${JSON.stringify(basis)}\n`, options.modes.file);
}

/** Null when something was changed a moment ago. */
async function marksOf({ world, repository, coordinator }: GuardedWorktree): Promise<Mark[] | null> {
  const { platform, env, home } = world;
  const { worktreeRoot } = repository;
  const named = configFiles({ env, home, worktreeRoot }).map(({ file }) => file);
  const marks: Mark[] = [];
  const hooks = world.hooks === undefined ? [] : await world.hooks.marks(repository);
  if (hooks === null) return null;
  // Where the repository's file is not checked out, it counts as committed: whatever commits or checks out changes the index.
  const isCommittedOnly = (await platform.files.stat(named[0]!)) === null;
  if (isCommittedOnly) named.push(`${repository.gitDir}/index`);
  for (const file of [...named, `${coordinator.store.layout.root}/trust.json`]) {
    const stat = await platform.files.stat(file);
    if (stat !== null && Math.abs(platform.clock.wallMs() - stat.mtimeMs) < SETTLED_MS) return null;
    marks.push({ file, size: stat?.size ?? null, mtimeMs: stat?.mtimeMs ?? null });
  }
  return [...marks, ...hooks];
}
