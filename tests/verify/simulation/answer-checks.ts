import type { LeaseStatus, LoggedEvent } from "../../../src/coordinator/contract";
import type { Lease } from "../../../src/kernel/lease";
import type { Snapshot } from "../../../src/store/reader";
import { type Call, wantedExtents } from "./call";
import type { Chronicle, Entry, Moment } from "./chronicle";
import { recordOf } from "./line-checks";
import { type Lapse, overlaps } from "./oracle";

export interface Ears {
  readonly chronicle: Chronicle;
  fail(promise: number, what: string): void;
  lapseAt(lease: Lease, call: Call, at: Moment): Lapse | null;
  /** Whether anybody else waited in the queue at any time during the call, or may have left a ticket. */
  hadCompany(call: Call): boolean;
}

interface Told {
  readonly code?: unknown;
  readonly message?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** Promise 6, and its other side: what a refusal says of a lease was true at some instant of the call. */
export function checkRefusal(call: Call, error: Told, ears: Ears): void {
  const what = `${call.party.agentId} is told ${error.code} (${error.message})`;
  if (error.code === "E_LOCK_CONFLICT") {
    checkHolders(call, error, what, ears);
    return;
  }
  if (error.code === "E_QUEUED") {
    if (!ears.hadCompany(call)) ears.fail(6, `${what}, but nobody waits`);
    return;
  }
  if (error.code !== "E_LOCK_EXPIRED" && error.code !== "E_FENCING_MISMATCH") return;
  const { chronicle } = ears;
  const leaseId = error.data?.["lease_id"];
  const at = chronicle.last;
  const lease = [...(at?.view.values() ?? [])].find((standing) => standing.leaseId === leaseId);
  if (lease === undefined || chronicle.hasJumped(call.began, call.ended!)) return;
  if (ears.lapseAt(lease, call, soon(call.ended!)) === null) ears.fail(3, `${what}, but holds it`);
}

/** One of the named holders, at least, was in the way, and validly so, at some instant between call and answer. */
function checkHolders(call: Call, error: Told, what: string, ears: Ears): void {
  const holders = error.data?.["holders"] as { lease_id: string; key: string }[] | undefined;
  if (holders === undefined || holders.length === 0) {
    ears.fail(6, `${what}, and nobody is named`);
    return;
  }
  const { chronicle } = ears;
  if (chronicle.isSpoiled || chronicle.hasJumped(call.began, call.ended!)) return;
  const views = chronicle.viewsBetween(call.began, call.ended!);
  for (const { lease_id: leaseId, key } of holders) {
    const states = views.flatMap((entry) =>
      [...entry.view.values()].filter((lease) => lease.leaseId === leaseId),
    );
    if (states.length === 0 && !wasLost(leaseId, call, chronicle))
      ears.fail(6, `${what}, but ${key} is nobody's lease`);
    // Not since its line was written: whoever decides several calls at once may be stopped before that.
    const isValid = states.some((lease) => ears.lapseAt(lease, call, barely(call.began)) === null);
    if (states.length > 0 && !isValid) ears.fail(6, `${what}, but ${key} had lapsed before it was asked`);
    const asked = wantedExtents(call.deed, call.party);
    const meets = asked.length === 0 || states.some((lease) => asked.some((e) => overlaps(e, lease)));
    if (states.length > 0 && !meets) ears.fail(6, `${what}, but ${key} is not in the way`);
  }
}

/** A refusal may rest on a line that was taken back since: by a full disk, or by a power cut. */
function wasLost(leaseId: string, call: Call, chronicle: Chronicle): boolean {
  return [...chronicle.bySum.values()].some(
    (entry) =>
      entry.moment.step <= call.ended!.step && [...entry.view.values()].some((l) => l.leaseId === leaseId),
  );
}

/** Promises 5 and 7: a reader sees what the log said at one instant of its call, whole. */
export function checkSnapshot(call: Call, snapshot: Snapshot, ears: Ears): void {
  const { chronicle } = ears;
  if (chronicle.isSpoiled || chronicle.forgiven.size > 0) return;
  if (snapshot.damage !== null) {
    ears.fail(5, `a reader sees damage: ${snapshot.damage.why}`);
    return;
  }
  const entry = chronicle.bySum.get(snapshot.head.sum);
  if (entry === undefined) {
    if (snapshot.head.sum !== "") ears.fail(5, "a reader stands on a line that never was");
    else if (knownAt(call.began, chronicle) > 0) ears.fail(5, "a reader sees nothing where there is a log");
    return;
  }
  if (entry.line.sequence < knownAt(call.began, chronicle))
    ears.fail(5, `a reader sees line ${entry.line.sequence}, and not what came before it asked`);
  compareViews(`a reader at line ${entry.line.sequence}`, snapshot.leases.values(), entry, ears);
}

export function compareViews(who: string, seen: Iterable<Lease>, entry: Entry, ears: Ears): void {
  const records = new Set([...seen].map(recordOf));
  const missing = [...entry.view.values()].filter((lease) => !records.delete(recordOf(lease)));
  for (const lease of missing) ears.fail(5, `${who} misses ${lease.key} of ${lease.agentId}`);
  for (const record of records) ears.fail(5, `${who} sees ${record}, which the log does not say`);
}

/** The last line that was there at that moment, and still is. */
function knownAt(moment: Moment, chronicle: Chronicle): number {
  return chronicle.entries.findLast((entry) => entry.moment.step <= moment.step)?.line.sequence ?? 0;
}

/** Whoever was valid throughout the call is listed, and nobody is who was not in the log at any instant of it. */
export function checkList(call: Call, statuses: readonly LeaseStatus[], ears: Ears): void {
  const { chronicle } = ears;
  if (chronicle.isSpoiled || chronicle.forgiven.size > 0 || chronicle.hasJumped(call.began, call.ended!))
    return;
  const views = chronicle.viewsBetween(call.began, call.ended!);
  if (views.length === 0) return;
  const listed = new Set<string>(statuses.map(({ lease }) => lease.leaseId));
  const [first, ...later] = views.map((entry) => entry.view);
  for (const [slot, lease] of first!) {
    const stays = later.every((view) => view.get(slot)?.leaseId === lease.leaseId);
    // Its holder may take it again meanwhile, for another process of its own, and that one may end.
    const isValid = [first!, ...later].every(
      (view) => !stays || ears.lapseAt(view.get(slot)!, call, soon(call.ended!)) === null,
    );
    if (stays && isValid && !listed.has(lease.leaseId)) ears.fail(5, `${lease.key} is missing from a list`);
  }
  const known = new Set<string>(views.flatMap(({ view }) => [...view.values()].map((l) => l.leaseId)));
  for (const { lease } of statuses)
    if (!known.has(lease.leaseId) && !wasLost(lease.leaseId, call, chronicle))
      ears.fail(5, `${lease.key} is listed, and the log does not say so`);
}

/** Promise 10: everything that was logged before somebody asks is told, once, and in its order. */
export function checkHistory(call: Call, events: readonly LoggedEvent[], ears: Ears): void {
  const { chronicle } = ears;
  checkOrder("history", events, ears);
  if (chronicle.isSpoiled || chronicle.forgiven.size > 0) return;
  const told = new Set(events.map(({ sequence }) => sequence));
  for (const { line, moment } of chronicle.entries) {
    const isDue = moment.step <= call.began.step && line.type !== "log.checkpoint";
    if (isDue && !told.has(line.sequence)) ears.fail(10, `history misses line ${line.sequence}`);
  }
}

/** What a watch was told: rising, known, and without a gap between the first and the last. */
export function checkWatched(events: readonly LoggedEvent[], ears: Ears): void {
  const { chronicle } = ears;
  if (chronicle.isSpoiled || chronicle.forgiven.size > 0 || events.length === 0) return;
  checkOrder("a watch", events, ears);
  const told = new Set(events.map(({ sequence }) => sequence));
  const [first, last] = [events[0]!.sequence, events.at(-1)!.sequence];
  for (const { line } of chronicle.entries) {
    const isBetween = line.sequence >= first && line.sequence <= last && line.type !== "log.checkpoint";
    if (isBetween && !told.has(line.sequence)) ears.fail(10, `a watch misses line ${line.sequence}`);
  }
}

function checkOrder(who: string, events: readonly LoggedEvent[], ears: Ears): void {
  let last = 0;
  for (const { sequence } of events) {
    if (sequence <= last) ears.fail(10, `${who} tells line ${sequence} after line ${last}`);
    last = sequence;
  }
}

/** Clocks are read in whole milliseconds, somewhere during a call: a little later, and a little earlier. */
function soon(moment: Moment): Moment {
  return { ...moment, elapsedMs: moment.elapsedMs + SLACK_MS, wallMs: moment.wallMs + SLACK_MS };
}

function barely(moment: Moment): Moment {
  return { ...moment, elapsedMs: moment.elapsedMs - SLACK_MS, wallMs: moment.wallMs - SLACK_MS };
}

export const SLACK_MS = 3;
