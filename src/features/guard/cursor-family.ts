import type { LeaseStatus } from "../../coordinator/contract";
import { type SessionId, trusted } from "../../kernel/ids";
import { sameProcess } from "../../kernel/lease";
import { type Checking, directoryOf } from "./check";
import { othersOn, wantingIn } from "./holders";
import { end, isGuards } from "./life";
import { whoIs } from "./who";
import { type GuardedWorktree, openWorktree, repositoryOf, sessionOf } from "./worktree";
import type { World } from "./world";
import type { WriteTarget } from "./write-target";

/**
 * Cursor's events name no parent: a subagent is a conversation like any other there. What knows is Cursor's own record,
 * `<its data>/projects/<project>/agent-transcripts/<parent>/subagents/<child>.jsonl`, which is written while a subagent works and
 * ends with a line that says so when its turn has ended. So it is looked at once somebody is in the way, and only among
 * conversations of one process.
 *
 * A subagent that has finished gives everything back: to whoever asks, because the one that asks may be too young to be on that
 * record itself. A parent and its child give way to each other.
 */
export async function settleRelatives(
  place: GuardedWorktree,
  targets: readonly WriteTarget[],
): Promise<void> {
  const keys = targets.map(({ key }) => key);
  const held = besides(place, await othersOn(place.coordinator, wantingIn(place), keys));
  const folder = transcriptsOf(place.world);
  if (held.size === 0 || folder === null) return;
  const { sessionId, agentId } = place.who;
  const mine = await lineOf(place.world, folder, sessionId);
  for (const [session, leases] of held) {
    const theirs = await lineOf(place.world, folder, session);
    if (await endFinished(place, folder, theirs, leases)) continue;
    if (!mine.includes(session) && !theirs.includes(sessionId)) continue;
    const refs = leases.map(({ lease: { key, leaseId } }) => ({ key, leaseId }));
    const reason = `${agentId} of the same family goes on with it`;
    await asOther(place, session, leases[0]!).session.release(refs, { reason });
  }
}

/** Before a command, which may be a commit of what a subagent has written: those that have finished hold nothing any more. */
export async function settleFinished(checking: Checking): Promise<void> {
  const { world, report } = checking;
  const folder = transcriptsOf(world);
  if (folder === null || (await world.platform.files.stat(folder)) === null) return;
  const repository = await repositoryOf(world, directoryOf(checking));
  if (repository === null) return;
  const place = await openWorktree(world, repository, await whoIs(world, report));
  for (const [session, leases] of besides(place, await place.coordinator.list()))
    await endFinished(place, folder, await lineOf(world, folder, session), leases);
}

/** What other conversations of this process hold, by conversation. */
function besides({ who }: GuardedWorktree, found: readonly LeaseStatus[]): Map<SessionId, LeaseStatus[]> {
  const held = new Map<SessionId, LeaseStatus[]>();
  for (const status of found) {
    const { lease, standing } = status;
    if (standing !== "valid" || !isGuards(lease)) continue;
    if (lease.sessionId === who.sessionId || !sameProcess(lease.holder, who.holder)) continue;
    held.set(lease.sessionId, [...(held.get(lease.sessionId) ?? []), status]);
  }
  return held;
}

async function endFinished(
  place: GuardedWorktree,
  folder: string,
  line: readonly SessionId[],
  leases: readonly LeaseStatus[],
): Promise<boolean> {
  const isSubagent = line.length > 1;
  if (!isSubagent || !(await hasFinished(place.world, transcript(folder, line), leases))) return false;
  await end(asOther(place, line[0]!, leases[0]!), "ended");
  return true;
}

/** As Cursor's own code makes the name; null where the environment does not say which project it is. */
function transcriptsOf({ env, home }: World): string | null {
  const project = env["CURSOR_PROJECT_DIR"];
  const data = env["CURSOR_DATA_DIR"]?.trim() || (home === null ? null : `${home}/.cursor`);
  if (project === undefined || data === null) return null;
  const name = project.replace(/[^a-zA-Z0-9]+/g, "-").replace(/^-|-$/g, "");
  return `${data}/projects/${name}/agent-transcripts`;
}

const MOST_GENERATIONS = 5;

/** A conversation, the one that started it, and so on: the last is the one that a person has opened. */
async function lineOf(world: World, folder: string, session: SessionId): Promise<SessionId[]> {
  const { files } = world.platform;
  const line = [session];
  const names = ((await files.readDirectory(folder)) ?? []).map((name) => trusted<SessionId>(name));
  for (let i = 0; i < MOST_GENERATIONS; i++) {
    let parent: SessionId | null = null;
    for (const name of names)
      if ((await files.stat(transcript(folder, [line.at(-1)!, name]))) !== null) parent = name;
    if (parent === null || line.includes(parent)) break;
    line.push(parent);
  }
  return line;
}

function transcript(folder: string, [child, parent]: readonly SessionId[]): string {
  return `${folder}/${parent ?? ""}/subagents/${child!}.jsonl`;
}

const TURN_ENDED = '{"type":"turn_ended"';

/** Its turn has ended, and nothing was heard of it since. */
async function hasFinished(world: World, file: string, leases: readonly LeaseStatus[]): Promise<boolean> {
  const { files } = world.platform;
  const stat = await files.stat(file);
  const lastHeardMs = Math.max(...leases.map(({ lease }) => lease.lastBeat.wallMs));
  if (stat === null || stat.mtimeMs < lastHeardMs) return false;
  const bytes = await files.readFile(file);
  const last = bytes === null ? "" : new TextDecoder().decode(bytes).trimEnd().split("\n").at(-1)!;
  return last.startsWith(TURN_ENDED);
}

function asOther(
  place: GuardedWorktree,
  sessionId: SessionId,
  { lease: { agentId } }: LeaseStatus,
): GuardedWorktree {
  const who = { ...place.who, sessionId, agentId, mainAgentId: agentId };
  const other = { ...place, who };
  return { ...other, session: sessionOf(other, agentId) };
}
