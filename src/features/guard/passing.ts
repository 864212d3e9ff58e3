import { configFiles } from "../../config/places";
import type { Holder, Lease } from "../../kernel/lease";
import { overwriteFile } from "../../platform/overwrite-file";
import { TreeNames } from "../../store/tree-names";
import type { Checking } from "./check";
import {
  type Basis,
  type Being,
  callerOf,
  type Kept,
  type Mark,
  PASSES,
  type Pass,
  passName,
  SETTLED_MS,
} from "./pass";
import type { Place } from "./place";
import type { Target } from "./target";
import { wishOf } from "./tools";
import { beatFile, stopMark, traceFile } from "./traces";

/** Facts for which a check looks more closely, also at what is held already. */
const CLOSER = ["contention", "subagent", "guard-violation"];

/** Lets the next check of the same file through quickly. Whatever is unusual gets no pass. */
export async function writePass(
  checking: Checking,
  place: Place,
  target: Target,
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

/** What every quick answer rests on; null where it is not to be had quickly. */
export async function basisOf(
  { report, world }: Checking,
  place: Place,
  target: Target,
  lease: Lease,
): Promise<Basis | null> {
  const wish = wishOf(report);
  if (wish?.kind !== "files" || wish.paths.length !== 1) return null;
  const caller = callerOf(report, wish.paths[0]!, world.env);
  const settings = await marksOf(place);
  if (caller === null || settings === null) return null;
  const { layout } = place.coordinator.store;
  const kept = await textOf(place, new TreeNames(layout, world.platform.digest).metaOf(lease));
  // Somebody has been faster, or the index is about to be made anew.
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

export function beingOf({ pid, startTime, bootId, pidNamespace }: Holder): Being {
  return { pid, startTime, bootId, pidNamespace };
}

export async function textOf({ world }: Place, file: string): Promise<Kept | null> {
  const bytes = await world.platform.files.readFile(file);
  return bytes === null ? null : { file, text: new TextDecoder().decode(bytes) };
}

/** For the next check by the same caller. */
export async function leave(place: Place, folder: string, basis: Basis): Promise<void> {
  const { files } = place.world.platform;
  const { layout, options } = place.coordinator.store;
  await files.makeDirectory(`${layout.guard}/${folder}`, options.modes.directory);
  const path = `${layout.guard}/${folder}/${passName(basis.caller)}`;
  await overwriteFile(files, path, `${JSON.stringify(basis)}\n`, options.modes.file);
}

/** Null when something was changed a moment ago. */
async function marksOf({ world, repository, coordinator }: Place): Promise<Mark[] | null> {
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
