import type { FactName } from "../../kernel/facts";
import { CONTENTION, type Contention, contentionFromFact, isoOf, type Owner, ownersOf } from "./contention";
import { holdersNow, reachOf } from "./holders";
import { isOver } from "./records";
import { appendText, guardFile } from "./small-files";
import { GUARD_VIOLATION, type GuardViolation, violationFromFact } from "./violations";
import { subject } from "./words";
import type { GuardedWorktree } from "./worktree";

/** What a session should hear at its next event: that others wait for what it holds, and what happened to its files. */
export async function newsFor(place: GuardedWorktree): Promise<string | null> {
  const { coordinator, who } = place;
  const facts = await coordinator.facts({ kinds: [CONTENTION, GUARD_VIOLATION] });
  const news: { id: string; text: string }[] = [];
  for (const [name, { value }] of facts) {
    if (name.startsWith(`${CONTENTION}:`)) {
      const contention = contentionFromFact(value);
      const own = contention === null ? null : await inItsWay(place, contention);
      if (contention !== null && own !== null)
        news.push({
          id: `${name} ${contention.state} ${contention.deniedAt.wallMs}`,
          text: waits({ ...contention, owner: own }),
        });
    } else {
      const violation = violationFromFact(value);
      if (violation.ownerSession === who.sessionId)
        news.push({
          id: violationNews(name, violation),
          text: `cotenant: ${violation.path}, which you hold, was changed by a shell command of ${violation.agentId} at ${violation.at}. Read it again before you write it.`,
        });
    }
  }
  if (news.length === 0) return null;
  const told = await readTold(place);
  const fresh = news.filter(({ id }) => !told.includes(id)).slice(0, MOST_LINES);
  if (fresh.length === 0) return null;
  await addTold(
    place,
    fresh.map(({ id }) => id),
    told,
  );
  return fresh.map(({ text }) => text).join("\n");
}

/** Each time that it happens is news. */
function violationNews(name: FactName, { at }: GuardViolation): string {
  return `${name} ${at}`;
}

/** Whether the session was told of it. */
export async function hasHeard(
  place: GuardedWorktree,
  name: FactName,
  violation: GuardViolation,
): Promise<boolean> {
  return (await readTold(place)).includes(violationNews(name, violation));
}

/** What this session holds of what somebody else waits for, by now; null where it is not in the way. */
async function inItsWay(
  { coordinator, world, who, settings }: GuardedWorktree,
  contention: Contention,
): Promise<Owner | null> {
  const { key, sessionId } = contention;
  if (sessionId === who.sessionId || (await isOver(world.platform.processes, contention))) return null;
  const wanting = { ...contention, reach: reachOf(settings.acrossWorktrees) };
  const owner = (await holdersNow(coordinator, wanting, [key])).get(key);
  if (owner === undefined) return null;
  const [first, ...also] = ownersOf({ owner }).filter((one) => one.sessionId === who.sessionId);
  return first === undefined ? null : { ...first, also };
}

const MOST_LINES = 10;
const LARGEST = 64 << 10;

function waits(contention: Contention): string {
  const { agentId, state, retryAt } = contention;
  const how =
    state === "waiting"
      ? `and tries again at ${isoOf(retryAt)}`
      : "and has stopped until somebody says how to go on";
  return `cotenant: ${agentId} waits for ${subject(contention)}, which you hold, ${how}. Commit it as soon as it is done; that frees it.`;
}

/** Once is enough. Not in the log: whether somebody was told twice matters to nobody else. */
async function readTold(place: GuardedWorktree): Promise<string[]> {
  const bytes = await place.world.platform.files.readFile(toldFile(place));
  return bytes === null || bytes.length > LARGEST ? [] : new TextDecoder().decode(bytes).split("\n");
}

async function addTold(
  place: GuardedWorktree,
  ids: readonly string[],
  told: readonly string[],
): Promise<void> {
  const { files } = place.world.platform;
  const { layout, options } = place.coordinator.store;
  const file = toldFile(place);
  await files.makeDirectory(layout.guard, options.modes.directory);
  if (told.length === 0) await files.unlink(file);
  await appendText(files, file, ids.map((id) => `${id}\n`).join(""), options.modes.file);
}

export function toldFile(place: GuardedWorktree): string {
  return guardFile(place, "told-", place.who.sessionId);
}
