import { configFiles } from "../config/places";
import type { Lease } from "../kernel/lease";
import { TreeNames } from "../store/tree-names";
import type { Checking } from "./check";
import { callerOf, type Mark, PASSES, type Pass, passName, SETTLED_MS } from "./pass";
import type { Place } from "./place";
import type { Target } from "./target";
import { wishOf } from "./tools";
import { beatFile, stopMark, traceFile } from "./traces";

/** Facts for which a check looks more closely, also at what is held already. */
const CLOSER = ["contention", "subagent", "guard-violation"];

/** Lets the next check of the same file through quickly. Whatever is unusual gets no pass. */
export async function writePass(
  { report, world }: Checking,
  place: Place,
  target: Target,
  lease: Lease,
): Promise<void> {
  const wish = wishOf(report);
  if (wish?.kind !== "files" || wish.paths.length !== 1 || lease.bind !== "process") return;
  const caller = callerOf(report, wish.paths[0]!, world.env);
  const settings = await marksOf(place);
  if (caller === null || settings === null) return;
  const { layout, options } = place.coordinator.store;
  const { files, digest } = world.platform;
  const file = new TreeNames(layout, digest).metaOf(lease);
  const bytes = await files.readFile(file);
  // Somebody has been faster, or the index is about to be made anew.
  if (bytes === null || !new TextDecoder().decode(bytes).includes(`"lease_id":"${lease.leaseId}"`)) return;
  const { pid, startTime, bootId, pidNamespace } = place.who.holder;
  const pass: Pass = {
    caller,
    directory: target.absolutePath.slice(0, target.absolutePath.lastIndexOf("/")) || "/",
    holder: { pid, startTime, bootId, pidNamespace },
    lease: { file, text: new TextDecoder().decode(bytes) },
    settings,
    beat: beatFile(place),
    absent: [stopMark(place), layout.syncFailed],
    empty: CLOSER.map((kind) => `${layout.index}/facts/${kind}`),
    trace: { file: traceFile(place, target.key, place.worktreeId), mode: options.modes.file },
  };
  await files.makeDirectory(`${layout.guard}/${PASSES}`, options.modes.directory);
  const path = `${layout.guard}/${PASSES}/${passName(caller)}`;
  const text = new TextEncoder().encode(`${JSON.stringify(pass)}\n`);
  const fd = await files.open(path, "update-or-create", options.modes.file);
  try {
    await files.writeAt(fd, text, 0);
    await files.truncate(fd, text.length);
  } finally {
    await files.close(fd);
  }
}

/** Null when something was changed a moment ago. */
async function marksOf({ world, repository, coordinator }: Place): Promise<Mark[] | null> {
  const { platform, env, home } = world;
  const { worktreeRoot } = repository;
  const named = configFiles({ env, home, worktreeRoot }).map(({ file }) => file);
  const marks: Mark[] = [];
  for (const file of [...named, `${coordinator.store.layout.root}/trust.json`]) {
    const stat = await platform.files.stat(file);
    if (stat !== null && Math.abs(platform.clock.wallMs() - stat.mtimeMs) < SETTLED_MS) return null;
    marks.push({ file, size: stat?.size ?? null, mtimeMs: stat?.mtimeMs ?? null });
  }
  return marks;
}
