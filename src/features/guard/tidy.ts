import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { factKind } from "../../kernel/facts";
import type { Platform } from "../../platform/platform";
import { CONTENTION, contentionFromFact, isReported } from "./contention";
import { isStillInTheWay, reachIn, SUBAGENT } from "./holders";
import { PASSES, REFUSALS } from "./pass";
import { isOver, recordResolved } from "./records";
import { SHELL } from "./shell/notes";
import { forgetFacts, UNFINISHED } from "./unfinished-work";
import { GUARD_VIOLATION } from "./violations";

/** Notes of the guard's that nobody will ask for again. */
const OLD_MS = 24 * 3_600_000;
/** For how long what nobody has settled is remembered apart from the log and its archive. */
const KEPT_MS: Readonly<Record<string, number>> = {
  [GUARD_VIOLATION]: 30 * OLD_MS,
  [UNFINISHED]: 30 * OLD_MS,
  [SUBAGENT]: OLD_MS,
};
const MOST_AT_ONCE = 500;

/** For `gc`: contentions of agents that are gone and nothing is in the way of, old violations, and files that calls left behind. */
export async function tidyGuard(workspace: Workspace, session: Session): Promise<number> {
  const { coordinator, surroundings } = workspace;
  const { platform } = surroundings;
  const reach = reachIn(workspace);
  const facts = await coordinator.facts({ kinds: [CONTENTION, ...Object.keys(KEPT_MS)] });
  const nowMs = platform.clock.wallMs();
  let gone = 0;
  for (const [name, { value }] of facts) {
    const contention = factKind(name) === CONTENTION ? contentionFromFact(value) : null;
    if (contention === null || !(await isOver(platform.processes, contention))) continue;
    if (await isStillInTheWay(coordinator, contention, reach)) continue;
    const how = isReported(contention.state) ? "released" : "abandoned";
    gone += await recordResolved({ session, world: { platform } }, [contention], how);
  }
  const old = [...facts].filter(([name, { value }]) => {
    const keptMs = KEPT_MS[factKind(name)];
    return keptMs !== undefined && !(Date.parse(String(value["at"])) > nowMs - keptMs);
  });
  if (old.length > 0)
    await forgetFacts(
      { session },
      old.slice(0, MOST_AT_ONCE).map(([name]) => name),
      "old notes of the guard",
    );
  await clearNotes(platform, coordinator.store.layout.guard, nowMs);
  return gone;
}

async function clearNotes({ files }: Platform, directory: string, nowMs: number): Promise<void> {
  for (const [folder, names, keptMs] of [
    [directory, /^(?:told|stopped|beat)-[0-9a-f]{32}$/, OLD_MS],
    // Written once, at the beginning of a session that may last.
    [directory, /^(?:home|family)-[0-9a-f]{32}$/, 30 * OLD_MS],
    [`${directory}/${SHELL}`, /^[0-9a-f]{16}-[0-9a-f]{16}$/, OLD_MS],
    [`${directory}/edits`, /^[0-9a-f]{32}$/, OLD_MS],
    [`${directory}/${PASSES}`, /^[0-9a-f]{16}$/, OLD_MS],
    [`${directory}/${REFUSALS}`, /^[0-9a-f]{16}$/, OLD_MS],
  ] as const)
    for (const name of (await files.readDirectory(folder)) ?? []) {
      if (!names.test(name)) continue;
      const stat = await files.lstat(`${folder}/${name}`);
      if (stat?.kind === "file" && stat.mtimeMs < nowMs - keptMs) await files.unlink(`${folder}/${name}`);
    }
}
