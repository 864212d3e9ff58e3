import type { Session } from "../../coordinator/session";
import { type AgentId, parseAgentId } from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import { isRefusal } from "../../kernel/refusal";
import { escapeName } from "../../store/layout";
import { GUARD_NOTE } from "./check";
import { CONTENTION, type Contention, contentionFromFact, isReported, withoutHarness } from "./contention";
import { dirtyKeys, headMovedAtMs } from "./git-state";
import { isFinished, isStillInTheWay, reachOf, subagentName } from "./holders";
import { toldFile } from "./news";
import { isOver, recordEnded, recordFreed, recordResolved } from "./records";
import type { Report } from "./report";
import { forgetRoots, rememberedRoots } from "./session-roots";
import { clearStopMark, markStopped } from "./small-files";
import { forgetFacts, recordUnfinished, unfinishedName } from "./unfinished-work";
import { whoIs } from "./who";
import { type GuardedWorktree, openWorktree, repositoryOf, sessionOf } from "./worktree";
import type { World } from "./world";

/** What happens to a session's leases besides edits: it stops, goes on, commits, ends. */

/** The worktrees in which a session may hold something. */
export interface SessionPlaces {
  readonly places: readonly GuardedWorktree[];
  /** Why others could not be opened: that is no reason to leave out these. */
  readonly failures: unknown[];
}

/** Where its harness stands, and where it has been. */
export async function placesOf(world: World, report: Report): Promise<SessionPlaces> {
  const who = await whoIs(world, report);
  const roots = [report.cwd ?? world.cwd, ...(await rememberedRoots(world, who))];
  const places = new Map<string, GuardedWorktree>();
  const failures: unknown[] = [];
  for (const root of roots)
    try {
      const repository = await repositoryOf(world, root);
      if (repository === null || places.has(repository.worktreeRoot)) continue;
      places.set(repository.worktreeRoot, await openWorktree(world, repository, who));
    } catch (error) {
      failures.push(error);
    }
  return { places: [...places.values()], failures };
}

/** The turn is over: what the session holds ends after `guard.stop_idle_secs`, unless it goes on. */
export async function stop(place: GuardedWorktree): Promise<number> {
  let stopped = 0;
  for (const session of await sessionsOf(place)) stopped += (await session.stop(isGuards)).leases.length;
  if (stopped > 0) await markStopped(place);
  return stopped;
}

/** Whatever a session does shows that it has not stopped. */
export async function wake(place: GuardedWorktree): Promise<void> {
  for (const session of await sessionsOf(place)) await session.showLife();
  await clearStopMark(place);
}

/** A subagent has finished; its files go to whoever of its session wants them next. */
export async function subagentDone(place: GuardedWorktree): Promise<void> {
  const { who, session } = place;
  if (who.agentId === who.mainAgentId) return;
  await withdraw(place, "finished");
  const mine = (await session.mine()).map(({ lease }) => lease);
  if (mine.length === 0) return;
  const name = subagentName(who.agentId);
  await session.write([], {
    about: who.agentId,
    facts: [name],
    body: async ({ facts, now }) => {
      const known = facts.get(name);
      // Some harnesses say it twice.
      if (known !== undefined && mine.every((lease) => isFinished(known.value, lease))) return null;
      return {
        type: "guard.subagent_done",
        payload: { session_id: who.sessionId },
        facts: new Map([[name, { session_id: who.sessionId, at: new Date(now.wallMs).toISOString() }]]),
        answer: true,
      };
    },
  });
}

/** The session is over, or has failed: everything that the guard gave it is given back. */
export async function end(place: GuardedWorktree, why: "ended" | "failed"): Promise<number> {
  const reason = why === "failed" ? "the session failed" : "the session ended";
  const released: Lease[] = [];
  const gone: AgentId[] = [];
  for (const session of await sessionsOf(place)) {
    released.push(...(await releaseOf(session, () => true, reason)));
    gone.push(session.actor.agentId);
  }
  await freed(place, released);
  await withdraw(place, why);
  await forgetSubagents(place, gone);
  await clearStopMark(place);
  await place.world.platform.files.unlink(toldFile(place));
  // Git may not answer: everything else is done by then.
  await noteUnfinished(place, released, why === "failed" ? "its session failed" : "its session ended");
  return released.length;
}

/** In each of its worktrees; a failure in one does not keep the others from being given back. */
export async function endAll({ places, failures }: SessionPlaces, why: "ended" | "failed"): Promise<void> {
  for (const place of places) await end(place, why).catch((error: unknown) => failures.push(error));
  if (failures.length === 0 && places[0] !== undefined) await forgetRoots(places[0].world, places[0].who);
}

/**
 * Gives back what is in HEAD and was not changed since. `committed`: what the commit that has just been made holds; null
 * where it is not known which commit that was, only that HEAD has moved since the lease was taken.
 */
export async function releaseCommitted(
  place: GuardedWorktree,
  committed: ReadonlySet<LeaseKey> | null,
): Promise<Lease[]> {
  const sessions = await sessionsOf(place);
  const movedAtMs = await headMovedAtMs(place);
  const may = (lease: Lease) =>
    lease.worktreeId === place.worktreeId &&
    (committed === null ? lease.acquiredAt.wallMs < movedAtMs : committed.has(lease.key));
  const candidates: LeaseKey[] = [];
  for (const session of sessions)
    for (const { lease } of await session.mine())
      if (isGuards(lease) && may(lease)) candidates.push(lease.key);
  if (candidates.length === 0) return [];
  const dirty = await dirtyKeys(place, candidates);
  const released: Lease[] = [];
  for (const session of sessions)
    released.push(...(await releaseOf(session, (lease) => may(lease) && !dirty.has(lease.key), "committed")));
  await freed(place, released);
  return released;
}

/** Whether the guard holds anything for the session here. */
export async function holdsFiles(place: GuardedWorktree): Promise<boolean> {
  for (const session of await sessionsOf(place))
    if ((await session.mine()).some(({ lease }) => isGuards(lease))) return true;
  return false;
}

/** What people left uncommitted in these files is committed now, whoever did it. */
export async function forgetCommitted(place: GuardedWorktree, keys: readonly LeaseKey[]): Promise<void> {
  const { coordinator, world, worktreeId } = place;
  if ((await coordinator.glance(["left"])).length === 0) return;
  const names = keys.map((key) => unfinishedName(world.platform.digest, worktreeId, key));
  const known = [...(await coordinator.facts({ names })).keys()];
  if (known.length > 0) await forgetFacts(place, known, "committed");
}

export function isGuards({ note, bind }: Lease): boolean {
  return note === GUARD_NOTE && bind === "process";
}

// --- inside -----------------------------------------------------------------------------------------------

async function releaseOf(
  session: Session,
  which: (lease: Lease) => boolean,
  reason: string,
): Promise<Lease[]> {
  const mine = (await session.mine())
    .map(({ lease }) => lease)
    .filter((lease) => isGuards(lease) && which(lease));
  const released: Lease[] = [];
  for (let at = 0; at < mine.length; at += AT_ONCE) {
    const refs = mine.slice(at, at + AT_ONCE).map(({ key, leaseId }) => ({ key, leaseId }));
    released.push(...(await session.release(refs, { reason })).leases);
  }
  return released;
}

const AT_ONCE = 500;

/** Whoever was blocked by what has just been given back hears of it. */
async function freed(place: GuardedWorktree, released: readonly Lease[]): Promise<void> {
  if (released.length === 0) return;
  const ids = new Set(released.map(({ leaseId }) => leaseId));
  const [live, over]: [Contention[], Contention[]] = [[], []];
  for (const contention of await contentions(place)) {
    const { owner, state } = contention;
    if (!isReported(state) || owner.leaseId === null || !ids.has(owner.leaseId)) continue;
    const isGone = await isOver(place.world.platform.processes, contention);
    (isGone ? over : live).push(contention);
  }
  if (live.length > 0) await recordFreed(place, live);
  // Nobody is left who could try again.
  if (over.length > 0) await recordResolved(place, over, "released");
}

/** Whoever is over waits for nothing. What it was stopped by stays on record while it is in the way. */
async function withdraw(place: GuardedWorktree, how: "ended" | "failed" | "finished"): Promise<void> {
  const { who, coordinator, settings } = place;
  const reach = reachOf(settings.acrossWorktrees);
  const [kept, gone]: [Contention[], Contention[]] = [[], []];
  for (const contention of await contentions(place)) {
    if (contention.sessionId !== who.sessionId) continue;
    if (how === "finished" && withoutHarness(contention.agentId) !== withoutHarness(who.agentId)) continue;
    (await isStillInTheWay(coordinator, contention, reach)) ? kept.push(contention) : gone.push(contention);
  }
  if (gone.length > 0) await recordResolved(place, gone, "ended");
  if (kept.length > 0) await recordEnded(place, kept, how);
}

async function contentions({ coordinator }: GuardedWorktree): Promise<Contention[]> {
  const facts = await coordinator.facts({ kinds: [CONTENTION] });
  return [...facts.values()].map(({ value }) => contentionFromFact(value)).filter((found) => found !== null);
}

async function forgetSubagents(
  { coordinator, session }: GuardedWorktree,
  gone: readonly AgentId[],
): Promise<void> {
  const names = gone.map(subagentName);
  const known = [...(await coordinator.facts({ names })).keys()];
  if (known.length > 0) await forgetFacts({ session }, known, "finished subagents");
}

async function noteUnfinished(
  place: GuardedWorktree,
  released: readonly Lease[],
  why: string,
): Promise<void> {
  const here = released.filter(({ worktreeId }) => worktreeId === place.worktreeId);
  const dirty = await dirtyKeys(
    place,
    here.map(({ key }) => key),
  );
  const works = here.filter(({ key }) => dirty.has(key));
  await recordUnfinished(
    place,
    works.map(({ key, worktreeId, agentId }) => ({ key, worktreeId, agentId, why })),
  );
}

/**
 * The session as each of its agents: its main one, every subagent that has ever asked for something, and either of them
 * under the name that another harness's settings gave it.
 */
async function sessionsOf(place: GuardedWorktree): Promise<Session[]> {
  const { world, coordinator, who } = place;
  const { files, digest } = world.platform;
  const { secrets } = coordinator.store.layout;
  const file = `${escapeName(who.sessionId, (text) => digest.sha256(text))}.json`;
  const base = withoutHarness(who.mainAgentId);
  const agents = new Set<AgentId>([who.mainAgentId, who.agentId]);
  for (const name of (await files.readDirectory(secrets)) ?? []) {
    const agent = parseAgentId(unescaped(name));
    if (isRefusal(agent)) continue;
    const tail = withoutHarness(agent);
    if (tail !== base && !tail.startsWith(`${base}.`)) continue;
    if ((await files.stat(`${secrets}/${name}/${file}`)) !== null) agents.add(agent);
  }
  return [...agents].map((agentId) => sessionOf(place, agentId));
}

function unescaped(text: string): string {
  return text.replace(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
