import type { Ended, Lease } from "../../../src/kernel/lease";
import { slotOf } from "../../../src/kernel/lease";
import { leaseToWire } from "../../../src/store/wire";
import { type Call, wantedExtents } from "./call";
import { type Entry, leasesIn } from "./chronicle";
import { isHandedTo, isSameParty, type Lapse, overlaps, type Party } from "./oracle";

/** What the checks of a line may ask of whoever watches. */
export interface Bench {
  fail(promise: number, what: string): void;
  /** What that caller was doing when the line was written; null when it was doing nothing. */
  callOf(process: string, party: Party): Call | null;
  /** Whether it was written in everybody's last moment, by one of those who were doing something. */
  isAnybodys(process: string, party: Party): boolean;
  /** Why the lease had lapsed when the line was there, for whoever wrote it; one reason for each time the clock was set. */
  lapses(lease: Lease, call: Call, entry: Entry): ReadonlySet<Lapse>;
  /** Whether it had no expiry, and nobody had been heard of for so long that it was stale. */
  wasStale(lease: Lease, call: Call, entry: Entry): boolean;
  /** The latest that the wall clock has said until then: what was forgotten at that time stays in the archive. */
  latestWallMs(entry: Entry): number;
  /** Whether it had lapsed before the call began. */
  hadLapsed(lease: Lease, call: Call): Lapse | null;
  /** Ids of operations that the log knows of, and the sum of their line. */
  readonly operations: Map<string, string>;
  /** The highest token that anybody was ever granted or told. */
  readonly highestToken: number;
}

const DAY_MS = 24 * 3600 * 1000;
const ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Everything that one line of the log must be, given the lines before it and what its writer was asked for. */
export function checkLine(entry: Entry, previous: Entry | undefined, bench: Bench): void {
  checkChain(entry, previous, bench);
  if (entry.line.type === "log.checkpoint") {
    checkCheckpoint(entry, previous, bench);
    return;
  }
  if (entry.event === null) {
    bench.fail(10, `line ${entry.line.sequence} says nothing`);
    return;
  }
  const call = bench.callOf(entry.process, entry.line.actor);
  if (call === null && bench.isAnybodys(entry.process, entry.line.actor)) {
    checkOnce(entry, bench);
    return;
  }
  if (call === null) {
    bench.fail(10, `${where(entry)} is by ${entry.line.actor.agentId}, who was doing nothing`);
    return;
  }
  checkOnce(entry, bench);
  checkTokens(entry, previous, bench);
  for (const gone of entry.event.ended) checkEnding(entry, gone, call, bench);
  for (const lease of entry.event.leases) checkUpdate(entry, lease, call, bench);
  checkExclusion(entry, entry.event.leases, bench);
  checkWhole(entry, call, bench);
}

function checkChain({ line }: Entry, previous: Entry | undefined, bench: Bench): void {
  if (previous === undefined) return;
  const isSalvage = line.payload["recovered"] !== undefined;
  // A damaged line's number may be given again: nobody can read the line that had it.
  const last = previous.line.sequence - (isSalvage && previous.isSpoiled ? 1 : 0);
  if (isSalvage ? line.sequence <= last : line.sequence !== last + 1)
    bench.fail(10, `line ${line.sequence} (${line.type}) comes after line ${last}`);
  if (!isSalvage && line.prev !== previous.line.sum)
    bench.fail(10, `line ${line.sequence}: the chain is broken`);
}

/** PROTOCOL 8: the whole view, the next token, and the request ids of a day. */
function checkCheckpoint(entry: Entry, previous: Entry | undefined, bench: Bench): void {
  const { line } = entry;
  const nextToken = Number(line.payload["next_token"]);
  if (nextToken <= bench.highestToken)
    bench.fail(2, `${where(entry)} starts with token ${nextToken} after ${bench.highestToken}`);
  if (line.payload["recovered"] !== undefined) {
    checkExclusion(entry, [...entry.view.values()], bench);
    return;
  }
  if (line.payload["parts"] !== 1 || previous === undefined) return;
  const carried = new Map(leasesIn(line).map((lease) => [slotOf(lease) as string, recordOf(lease)]));
  for (const [slot, lease] of entry.before)
    if (carried.get(slot) !== recordOf(lease)) bench.fail(5, `${where(entry)} carries ${lease.key} wrongly`);
  if (carried.size !== entry.before.size)
    bench.fail(5, `${where(entry)} carries ${carried.size} leases of ${entry.before.size}`);
  const requests = new Set((line.payload["requests"] as { request_id: string }[]).map((r) => r.request_id));
  for (const id of bench.operations.keys()) {
    const isRequest = id.startsWith("request ");
    const age = bench.latestWallMs(entry) - timeOf(id.slice("request ".length));
    if (isRequest && age < DAY_MS && !requests.has(id.slice("request ".length)))
      bench.fail(8, `${where(entry)} forgets ${id}`);
  }
}

/** Promise 8, by the log. */
function checkOnce(entry: Entry, bench: Bench): void {
  const { request_id: requestId, operation_id: operationId } = entry.line.payload;
  const id = requestId === undefined ? `operation ${operationId}` : `request ${requestId}`;
  const bare = String(requestId ?? operationId);
  for (const known of [`request ${bare}`, `operation ${bare}`])
    if (bench.operations.has(known)) bench.fail(8, `${where(entry)}: ${known} was done before`);
  bench.operations.set(id, entry.line.sum);
}

/** Promise 2: every new lease's token is above every one before it, whatever its key. */
function checkTokens(entry: Entry, previous: Entry | undefined, bench: Bench): void {
  let highest = Math.max(previous?.token ?? 0, bench.highestToken);
  for (const lease of entry.event!.leases) {
    if (entry.before.get(slotOf(lease))?.leaseId === lease.leaseId) continue;
    if (lease.fencingToken <= highest)
      bench.fail(2, `${where(entry)}: ${lease.key} gets token ${lease.fencingToken} after ${highest}`);
    highest = Math.max(highest, lease.fencingToken);
  }
}

/** A lease ends by its holder's hand, because it had lapsed, or by somebody who may and says why. */
function checkEnding(entry: Entry, gone: Ended, call: Call, bench: Bench): void {
  const lease = entry.before.get(slotOf(gone));
  const what = `${where(entry)}: ${call.party.agentId} ends ${gone.agentId}'s ${gone.key}`;
  if (lease?.leaseId !== gone.leaseId) {
    bench.fail(3, `${what}, which is not there (${gone.how})`);
    return;
  }
  if (gone.how === "released" || gone.how === "transferred") {
    const isForced = gone.how === "transferred" && gone.why !== undefined;
    if (isForced) checkForce(entry, lease, what, call, bench);
    else if (!isOwn(lease, call.party)) bench.fail(3, `${what} (${gone.how})`);
    const lapse = gone.how === "transferred" ? bench.hadLapsed(lease, call) : null;
    if (lapse !== null) bench.fail(3, `${what}: handed over although ${lapse}`);
    return;
  }
  if (gone.how !== "forced") {
    const lapses = bench.lapses(lease, call, entry);
    const isTrue = ([...lapses] as string[]).includes(gone.how);
    if (!isTrue) bench.fail(1, `${what} as ${gone.how}, but it is ${[...lapses].join(", ") || "valid"}`);
    return;
  }
  checkForce(entry, lease, what, call, bench);
}

function checkForce(entry: Entry, lease: Lease, what: string, call: Call, bench: Bench): void {
  if (!/^(human|admin):/.test(call.party.agentId)) bench.fail(10, `${what} by force, without the right to`);
  if (entry.event!.reason === null) bench.fail(10, `${what} by force, without a reason`);
  const isWriterLock = lease.key.startsWith("worktree:") && call.deed.do !== "evict";
  if (isWriterLock && !bench.wasStale(lease, call, entry))
    bench.fail(1, `${what}: a live writer lock was stolen`);
}

/** Promise 3: only who holds a lease can do something with it, and only while it is valid. */
function checkUpdate(entry: Entry, lease: Lease, call: Call, bench: Bench): void {
  const before = entry.before.get(slotOf(lease));
  const what = `${where(entry)}: ${call.party.agentId} has ${entry.line.type} on ${lease.key}`;
  if (before?.leaseId !== lease.leaseId) {
    const isGrant = entry.line.type === "claim.acquired" || entry.line.type === "claim.transferred";
    if (!isGrant) bench.fail(3, `${what}, which it does not hold`);
    return;
  }
  if (before.fencingToken !== lease.fencingToken) bench.fail(2, `${what}: the token changed`);
  if (!isOwn(before, call.party)) {
    bench.fail(3, `${what}, which is ${before.agentId}'s`);
    return;
  }
  const lapse = bench.hadLapsed(before, call);
  if (lapse !== null && recordOf(before) !== recordOf(lease))
    bench.fail(3, `${what}, which was over when it was asked for (${lapse})`);
}

/** Promise 1, and more: a grant ends what it replaces, so no two holders' leases conflict, valid or not. */
function checkExclusion(entry: Entry, leases: readonly Lease[], bench: Bench): void {
  for (const lease of leases) {
    for (const other of entry.view.values()) {
      if (other.leaseId === lease.leaseId || !overlaps(other, lease)) continue;
      if (isSameParty(other, lease) || isHandedTo(other, lease) || isHandedTo(lease, other)) continue;
      bench.fail(1, `${where(entry)}: ${nameOf(lease)} beside ${nameOf(other)}`);
    }
  }
}

/** Promise 7: who took one of the keys has all of them. */
function checkWhole(entry: Entry, { deed, party }: Call, bench: Bench): void {
  if (entry.line.type !== "claim.acquired") return;
  if (deed.do !== "acquire") {
    bench.fail(10, `${where(entry)}: nobody asked for it (${deed.do})`);
    return;
  }
  for (const extent of wantedExtents(deed, party)) {
    const lease = entry.view.get(slotOf(extent as never));
    if (lease === undefined || !isOwn(lease, party))
      bench.fail(
        7,
        `${where(entry)}: ${deed.keys.length} keys were asked for, and ${extent.key} is not there`,
      );
  }
}

function isOwn(lease: Lease, party: Party): boolean {
  return isSameParty(lease, party) || isHandedTo(lease, party);
}

const records = new WeakMap<Lease, string>();

/** A lease in full, to be compared. */
export function recordOf(lease: Lease): string {
  let record = records.get(lease);
  if (record === undefined) {
    record = JSON.stringify(leaseToWire(lease));
    records.set(lease, record);
  }
  return record;
}

function nameOf({ agentId, sessionId, worktreeId, key, reach }: Lease): string {
  return `${key} of ${agentId} (${sessionId}, ${worktreeId}, ${reach})`;
}

function where({ line }: Entry): string {
  return `line ${line.sequence} (${line.type})`;
}

function timeOf(ulid: string): number {
  let ms = 0;
  for (const digit of ulid.slice(0, 10)) ms = ms * 32 + ULID_DIGITS.indexOf(digit);
  return ms;
}
