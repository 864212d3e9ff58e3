import { during } from "../errors/cotenant-error";
import { highestWithinReach, LARGEST_COUNT } from "../kernel/bounds";
import { fencingToken } from "../kernel/ids";
import { type Lease, type Slot, slotOf } from "../kernel/lease";
import type { Descriptor } from "../platform/platform";
import { decodeApplied } from "./applied";
import { acknowledgedDamage, withoutReplaced } from "./damage";
import type { LogActor } from "./envelope";
import { fileTime } from "./layout";
import { type Damage, Replay, replayLog } from "./replay";
import { archivedSegments, readSegment, segmentName } from "./segments";
import type { Store } from "./store";
import { SyncMark } from "./sync-mark";

/** Far enough above every token ever seen that no lost line can have granted a higher one. */
export const TOKEN_LEAP = 1_000_000;

export interface RecoveryReport {
  /** False when there was nothing to mend. */
  readonly recovered: boolean;
  readonly damage: { readonly offset: number; readonly why: string } | null;
  readonly salvagedLines: number;
  readonly leases: number;
  /** Leases that only the index still knew. */
  readonly leasesFromIndex: number;
  readonly nextToken: number;
  /** Where the damaged file is kept, in the archive. */
  readonly keptAs: string | null;
}

/** Salvages every whole line into a new segment, keeps the damaged file, and says what it did. */
export async function recover(
  store: Store,
  actor: LogActor,
  /** Tokens that are known from elsewhere: from what was written under them. */
  seenTokens: readonly number[] = [],
): Promise<RecoveryReport> {
  return during("recovering the log", store.layout.log, () =>
    store.hold(actor, () => mend(store, actor, seenTokens)),
  );
}

async function mend(store: Store, actor: LogActor, seenTokens: readonly number[]): Promise<RecoveryReport> {
  const { keeper, platform, layout } = store;
  const log = await keeper.attach();
  if (log === null && !(await keeper.hasBeen())) return nothingToDo(new Replay());
  const mark = new SyncMark(platform.files, platform.digest, layout, store.options.modes);
  const synced = await mark.reload();
  const looked = log === null ? null : await look(store, log.fd, log.stat.size, new Replay(), false);
  const damage = looked === null ? null : acknowledgedDamage(looked, synced);
  if (looked !== null && damage === null) {
    // A torn tail is no damage: the next writer, which this is, sets it aside.
    await keeper.stand(actor);
    return nothingToDo(looked);
  }
  const replay = await salvage(store, log, damage);
  const { leases, fromIndex, highestToken } = await standing(store, replay);
  const applied = decodeApplied(platform.digest, await platform.files.readFile(layout.applied));
  const known = Math.max(replay.head.nextToken, applied?.head.nextToken ?? 0, highestToken + 1);
  const highest = highestWithinReach([...replay.mentioned, ...seenTokens.map((token) => token + 1)], known);
  // Being cautious here too: what only the index still knows was said by a line that is lost.
  for await (const [name, fact] of store.index.facts.salvage())
    if (!replay.touchedFacts.has(name)) replay.facts.set(name, fact);
  replay.leases.clear();
  for (const [slot, lease] of leases) replay.leases.set(slot, lease);
  replay.head = {
    ...replay.head,
    sequence: Math.max(replay.head.sequence, replay.highestSynced, synced),
    nextToken: fencingToken(Math.min(highest + TOKEN_LEAP, LARGEST_COUNT)),
  };
  const lost = damage ?? { offset: 0, why: "the log is gone" };
  const keptAs = log === null ? null : damagedName(replay.head.segment, platform.clock.wallMs());
  const extra = {
    recovered: { damage: lost, salvaged_lines: replay.counted, leases_from_index: fromIndex.length },
  };
  const head = await keeper.startOver(replay, actor, keptAs, extra);
  return {
    recovered: true,
    damage: lost,
    salvagedLines: replay.counted,
    leases: leases.size,
    leasesFromIndex: fromIndex.length,
    nextToken: head.nextToken,
    keptAs,
  };
}

function nothingToDo(replay: Replay): RecoveryReport {
  return {
    recovered: false,
    damage: null,
    salvagedLines: replay.counted,
    leases: replay.leases.size,
    leasesFromIndex: 0,
    nextToken: replay.head.nextToken,
    keptAs: null,
  };
}

function look(store: Store, fd: Descriptor, size: number, replay: Replay, all: boolean): Promise<Replay> {
  return replayLog(store.platform.files, store.platform.digest, fd, size, replay, all);
}

/** Sorts between the segments before and after it, so that history reads its whole lines in their place. */
function damagedName(segment: number, wallMs: number): string {
  return segmentName(segment).replace(".jsonl", `.damaged-${fileTime(wallMs)}.jsonl`);
}

/**
 * Every whole line of the log. Where its checkpoint is lost, or all of it, the archived segment before it
 * ended in the same view that it began with.
 */
async function salvage(
  store: Store,
  log: { readonly fd: Descriptor; readonly stat: { readonly size: number } } | null,
  damage: Damage | null,
): Promise<Replay> {
  const needsBase = log === null || damage?.inCheckpoint === true;
  const base = needsBase ? await newestArchived(store) : null;
  if (log === null) return base ?? new Replay();
  const replay = await look(store, log.fd, log.stat.size, new Replay(), true);
  return base === null ? replay : onto(base, replay);
}

/** What the later stretch says, over what the earlier one ended with. */
function onto(base: Replay, later: Replay): Replay {
  for (const [slot, lease] of base.leases) if (!later.touched.has(slot)) later.leases.set(slot, lease);
  for (const [slot, lease] of base.touched) if (!later.touched.has(slot)) later.touched.set(slot, lease);
  for (const [slot, token] of base.tokens) if (!later.tokens.has(slot)) later.tokens.set(slot, token);
  for (const [id, ending] of base.endings) if (!later.endings.has(id)) later.endings.set(id, ending);
  for (const [id, request] of base.requests) if (!later.requests.has(id)) later.requests.set(id, request);
  for (const [name, fact] of base.facts) if (!later.touchedFacts.has(name)) later.facts.set(name, fact);
  for (const [name, fact] of base.touchedFacts)
    if (!later.touchedFacts.has(name)) later.touchedFacts.set(name, fact);
  later.newestMs = Math.max(later.newestMs, base.newestMs);
  later.head = {
    ...later.head,
    segment: Math.max(later.head.segment, base.head.segment + 1),
    sequence: Math.max(later.head.sequence, base.head.sequence),
    nextToken: fencingToken(Math.max(later.head.nextToken, base.head.nextToken)),
  };
  return later;
}

/**
 * What the archive ends with. A segment whose own first line is damaged counts on top of the one before it: after a
 * power cut in the middle of a rotation, the newest one may be the damaged log itself, under a second name.
 */
async function newestArchived(store: Store): Promise<Replay | null> {
  const { platform, layout } = store;
  const names = (await archivedSegments(platform.files, layout)).filter((name) => !name.includes("damaged"));
  let newest: Replay | null = null;
  for (const name of names.reverse()) {
    const replay = new Replay();
    await readSegment(platform, `${layout.archive}/${name}`, (line) => {
      replay.highestSynced = Math.max(replay.highestSynced, line.synced);
      replay.absorb(line, replay.head.offset + 1);
    });
    // Its lines were there all the time; what is counted is what had to be salvaged.
    replay.counted = 0;
    newest = newest === null ? replay : onto(replay, newest);
    if (replay.isGrounded) break;
  }
  return newest;
}

/** Being cautious: a lease whose line was lost still excludes others until it ends by itself. */
async function standing(
  store: Store,
  replay: Replay,
): Promise<{ leases: Map<Slot, Lease>; fromIndex: Lease[]; highestToken: number }> {
  const found: Lease[] = [];
  let highestToken = 0;
  for await (const lease of store.index.salvage()) {
    highestToken = Math.max(highestToken, lease.fencingToken);
    // What the salvaged lines know of, or of something later on the same key, they have the say on.
    const isKnown = (replay.tokens.get(slotOf(lease)) ?? 0) >= lease.fencingToken;
    if (!isKnown && !replay.endings.has(lease.leaseId)) found.push(lease);
  }
  const leases = withoutReplaced([...replay.leases.values(), ...found]);
  const fromIndex = found.filter((lease) => leases.get(slotOf(lease)) === lease);
  return { leases, fromIndex, highestToken };
}
