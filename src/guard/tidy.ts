import type { LocalCoordinator } from "../coordinator/local";
import type { Session } from "../coordinator/session";
import type { Platform } from "../platform/platform";
import { CONTENTION, contentionFromFact } from "./contention";
import { forgetLeft } from "./left";
import { recordResolved } from "./records";
import { GUARD_VIOLATION, violationFromFact } from "./violations";

/** Notes of the guard's that nobody will ask for again. */
const OLD_MS = 24 * 3_600_000;
/** A trespass that nobody has committed since is left to the log and its archive. */
const REMEMBERED_MS = 30 * 24 * 3_600_000;

/** For `gc`: contentions of agents that are gone, old trespasses, and files that calls left behind. */
export async function tidyGuard(
  platform: Platform,
  coordinator: LocalCoordinator,
  session: Session,
): Promise<number> {
  const facts = await coordinator.facts({ kinds: [CONTENTION, GUARD_VIOLATION] });
  const nowMs = platform.clock.wallMs();
  let gone = 0;
  for (const { value } of facts.values()) {
    const contention = contentionFromFact(value);
    if (contention === null || (await platform.processes.liveness(contention.holder)) !== "dead") continue;
    gone += await recordResolved({ session, world: { platform } }, [contention], "abandoned");
  }
  const old = [...facts].filter(
    ([name, { value }]) =>
      name.startsWith(`${GUARD_VIOLATION}:`) &&
      !(Date.parse(violationFromFact(value).at) > nowMs - REMEMBERED_MS),
  );
  if (old.length > 0)
    await forgetLeft(
      { session },
      old.map(([name]) => name),
      "old trespasses",
    );
  await clearNotes(platform, coordinator.store.layout.guard, nowMs - OLD_MS);
  return gone;
}

async function clearNotes({ files }: Platform, directory: string, beforeMs: number): Promise<void> {
  for (const [folder, names] of [
    [directory, /^(?:shell|told|stopped)-[0-9a-f]{32}$/],
    [`${directory}/edits`, /^[0-9a-f]{32}$/],
  ] as const)
    for (const name of (await files.readDirectory(folder)) ?? []) {
      if (!names.test(name)) continue;
      const stat = await files.lstat(`${folder}/${name}`);
      if (stat?.kind === "file" && stat.mtimeMs < beforeMs) await files.unlink(`${folder}/${name}`);
    }
}
