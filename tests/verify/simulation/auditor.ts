import type { Change, LeaseStatus, LoggedEvent } from "../../../src/coordinator/contract";
import type { Lease } from "../../../src/kernel/lease";
import type { Snapshot } from "../../../src/store/reader";
import type { Happening, SimProcess, SimWorld } from "../../../testing/simulator";
import { simCompression } from "../../../testing/simulator/compression";
import { CONTROL, decode, LOG } from "../../store/stage";
import {
  checkHistory,
  checkList,
  checkRefusal,
  checkSnapshot,
  checkWatched,
  compareViews,
  type Ears,
  SLACK_MS,
} from "./answer-checks";
import { type Call, partyOf, viewerOf } from "./call";
import { Chronicle, type Entry, type Moment } from "./chronicle";
import { type Bench, checkLine, recordOf } from "./line-checks";
import { isSameParty, isStale, type Lapse, lapseOf, type Party } from "./oracle";
import type { Deed, Lane } from "./story";
import { SyncWindow } from "./sync-window";

/** A success that somebody was told, and the lines that it rests on. */
interface Acknowledged {
  readonly call: Call;
  readonly what: string;
  readonly lines: readonly Entry[];
}

/** What a deed writes that nothing else writes. */
const EVENT_OF: Partial<Record<Deed["do"], string>> = {
  acquire: "claim.acquired",
  release: "claim.released",
  transfer: "claim.transferred",
  evict: "claim.evicted",
  stop: "claim.stopped",
};
const READS: ReadonlySet<string> = new Set(["snapshot", "list", "history"]);
/** In place of a process's name: all died at once, and any of them may have written the last line. */
export const EVERYBODY = "everybody";
const CENSUS = `${CONTROL}/index/census-`;
/** Operations that a reader has no business with. */
const CHANGES: ReadonlySet<string> = new Set([
  "openForWriting",
  "append",
  "writeAt",
  "truncate",
  "datasync",
  "datasyncInBackground",
  "sync",
  "syncDirectory",
  "rename",
  "link",
  "unlink",
  "makeDirectory",
  "removeDirectory",
  "chmod",
  "tryLock",
]);

/**
 * Watches one world from outside and holds it to docs/GUARANTEES.md: by every line of the log at the moment it is written, by
 * what callers were told, and by what is on the disk. Nothing that it finds is thrown: the first broken promise is
 * what the story is about, and the world stops there.
 */
export class Auditor implements Bench, Ears {
  readonly chronicle: Chronicle;
  readonly operations = new Map<string, string>();
  readonly window = new SyncWindow();
  readonly broken: string[] = [];
  highestToken = 0;
  /** The log is damaged by what ADR 0009 leaves open, and found out: nothing more can be said of this world. */
  isExcused = false;
  readonly #world: SimWorld;
  readonly #calls: Call[] = [];
  readonly #current = new Map<Lane, Call>();
  readonly #acknowledged: Acknowledged[] = [];
  /** Told that it had failed, without a doubt. */
  readonly #failed: Call[] = [];
  /** A failed sync of a directory may cost the archive's own name: what is lost then is history, and no lease. */
  #mayLoseNames = false;
  readonly #linesOf = new Map<string, Entry[]>();
  readonly #diedAt = new Map<SimProcess, number>();
  readonly #known = new Map<string, SimProcess>();

  constructor(world: SimWorld) {
    this.#world = world;
    this.chronicle = new Chronicle(world, (entry) => this.#onEntry(entry));
  }

  fail(promise: number, what: string): void {
    this.broken.push(promise === 0 ? what : `promise ${promise}: ${what}`);
  }

  // --- what goes on ---------------------------------------------------------------------------------------

  enter(process: SimProcess): void {
    this.#known.set(nameOf(process.identity), process);
  }

  left(process: SimProcess): void {
    if (!this.#diedAt.has(process)) this.#diedAt.set(process, this.#world.trace.step);
  }

  /** Everything that happens. Must cost next to nothing. */
  onOperation(happening: Happening): void {
    const { process, kind, path } = happening;
    // Of several lines the first may be there already, for all to see.
    if (happening.isHalfDone) {
      if (path === LOG) this.chronicle.grown(process);
      return;
    }
    if (path === LOG) {
      if (kind === "append") this.chronicle.grown(process);
      else if (kind === "rename" || kind === "truncate") {
        const wasSpoiled = this.chronicle.isSpoiled;
        this.chronicle.look(process);
        this.forgetLost();
        if (wasSpoiled && kind === "truncate") this.#checkSetAside();
      }
    }
    this.window.onOperation(happening);
    if (kind === "syncDirectory" && happening.error === "EIO") this.#mayLoseNames = true;
    // A reader may open what it could write; that alone changes nothing of a file that is there.
    if (CHANGES.has(kind) && !(kind === "openForWriting" && path.startsWith(CENSUS)))
      this.#checkReader(process, `${kind} ${path}`);
  }

  begin(lane: Lane, deed: Deed, process: SimProcess, isAlone: boolean): Call {
    const { now: began } = this.chronicle;
    const viewer = viewerOf(process);
    const call: Call = { deed, lane, party: partyOf(lane), process, viewer, began, isAlone, ended: null };
    this.#calls.push(call);
    this.#current.set(lane, call);
    return call;
  }

  end(call: Call): void {
    call.ended = this.chronicle.now;
    this.#current.delete(call.lane);
  }

  // --- answers --------------------------------------------------------------------------------------------

  /** A success: what was told is in the log, and on the disk. */
  granted(call: Call, change: Change): void {
    this.end(call);
    const what = `${call.party.agentId}'s ${call.deed.do}`;
    const endsLeases = ["release", "evict", "gc", "pretend"].includes(call.deed.do);
    const lines: Entry[] = [];
    // If the power goes now, they may be gone like a torn tail, and their tokens are given again.
    const isInWindow = this.window.excuses(call.process.name);
    for (const lease of change.leases) {
      const line = endsLeases ? this.#endOf(lease) : this.#lineOf(lease, call, change);
      if (line === null)
        this.fail(4, `${what} of ${lease.key} was acknowledged, and the log does not have it`);
      else lines.push(line);
      if (line !== null && !isInWindow && !this.chronicle.forgiven.has(line.line.sum))
        this.highestToken = Math.max(this.highestToken, lease.fencingToken);
    }
    if (change.changed && !change.replayed && call.deed.do !== "gc") {
      const isNow = ({ moment }: Entry) => moment.step >= call.began.step && moment.step <= call.ended!.step;
      if (change.leases.length > 0 && !lines.some(isNow))
        this.fail(10, `${what} was not done when it was asked`);
    }
    if (isInWindow) return;
    this.#acknowledged.push({ call, what, lines });
    this.#checkDurable(what, lines);
  }

  refused(call: Call, error: unknown): void {
    this.end(call);
    checkRefusal(call, error as { code?: unknown }, this);
    const { code, data } = error as { code?: unknown; data?: Record<string, unknown> };
    if (code === "E_DISK" && data?.["outcome"] !== "unknown") this.#failed.push(call);
  }

  sawSnapshot(call: Call, snapshot: Snapshot): void {
    this.end(call);
    checkSnapshot(call, snapshot, this);
  }

  sawList(call: Call, statuses: readonly LeaseStatus[]): void {
    this.end(call);
    checkList(call, statuses, this);
  }

  sawHistory(call: Call, events: readonly LoggedEvent[]): void {
    this.end(call);
    checkHistory(call, events, this);
  }

  sawEvents(events: readonly LoggedEvent[]): void {
    checkWatched(events, this);
  }

  // --- the whole ------------------------------------------------------------------------------------------

  /** Promise 4, after a power cut and at the end. */
  checkAcknowledged(): void {
    const { chronicle } = this;
    const present = new Set(chronicle.entries);
    for (const { what, lines } of this.#acknowledged) {
      for (const line of lines) {
        if (present.has(line) || chronicle.forgiven.has(line.line.sum)) continue;
        this.fail(4, `${what} was acknowledged and is lost (line ${line.line.sequence})`);
      }
    }
  }

  /** What was said to have failed was not done after all. */
  checkFailed(): void {
    for (const { deed, party, process, began, ended } of this.#failed) {
      const type = EVENT_OF[deed.do];
      const done = this.chronicle.entries.find(
        (entry) =>
          entry.line.type === type &&
          entry.process === process.name &&
          isSameParty(entry.line.actor, party) &&
          entry.moment.step >= began.step &&
          entry.moment.step <= ended!.step,
      );
      if (done !== undefined)
        this.fail(
          4,
          `${party.agentId}'s ${deed.do} was said to have failed, and is line ${done.line.sequence}`,
        );
    }
  }

  /** Promise 10, by the disk: every line is in the log or in the archive, and no secret is in either. */
  checkDisk(): void {
    const sums = new Set<string>();
    const secrets = this.#secrets();
    for (const path of this.#world.disk.paths()) {
      if (!path.startsWith(CONTROL) || path.endsWith("/") || path.startsWith(`${CONTROL}/secrets/`)) continue;
      const text = this.#contentOf(path);
      for (const secret of secrets) if (text.includes(secret)) this.fail(10, `a secret is in ${path}`);
      if (path === LOG || path.startsWith(`${CONTROL}/archive/claims-`))
        for (const sum of this.chronicle.sumsIn(text)) sums.add(sum);
    }
    // ADR 0009: what a rotation puts away in the window may have lost lines, and only the checkpoint is safe.
    if (this.#mayLoseNames || this.window.wasUsed) return;
    for (const { line } of this.chronicle.entries)
      if (!sums.has(line.sum) && !this.chronicle.forgiven.has(line.sum))
        this.fail(10, `line ${line.sequence} (${line.type}) is on record nowhere`);
  }

  /** Promise 5, at the end: what readers see, with the index and without it. */
  checkView(who: string, leases: Iterable<Lease>): void {
    const { last } = this.chronicle;
    if (last !== undefined) compareViews(who, leases, last, this);
  }

  // --- what the checks ask --------------------------------------------------------------------------------

  /** Whether what the log said of any of them was damaged on purpose, or lost because of that. */
  wasForgiven(leases: readonly Lease[]): boolean {
    const { forgiven } = this.chronicle;
    return leases.some(({ leaseId }) =>
      (this.#linesOf.get(leaseId) ?? []).some(({ line }) => forgiven.has(line.sum)),
    );
  }

  callOf(process: string, party: Party): Call | null {
    for (const call of this.#current.values())
      if (call.process.name === process && isSameParty(call.party, party)) return call;
    return null;
  }

  isAnybodys(process: string, party: Party): boolean {
    return (
      process === EVERYBODY && [...this.#current.values()].some((call) => isSameParty(call.party, party))
    );
  }

  lapses(lease: Lease, call: Call, entry: Entry): ReadonlySet<Lapse> {
    const lapses = this.#momentsOf(call, entry).map((at) => this.lapseAt(lease, call, at));
    return new Set(lapses.filter((lapse) => lapse !== null));
  }

  wasStale(lease: Lease, call: Call, entry: Entry): boolean {
    return this.#momentsOf(call, entry).some((at) => isStale(lease, call.viewer, at, this.chronicle));
  }

  /** When the clock may have been read: before the line was written, and much time may have passed since, or it was set. */
  #momentsOf(call: Call, { moment }: Entry): readonly Moment[] {
    const latest = { ...moment, elapsedMs: moment.elapsedMs + SLACK_MS, wallMs: moment.wallMs + SLACK_MS };
    const { elapsedMs, wallMs } = call.began;
    const jumps = this.chronicle.jumpsBetween(call.began, moment);
    return [latest, { ...moment, elapsedMs, wallMs }, ...(jumps.length > 0 ? [call.began] : []), ...jumps];
  }

  latestWallMs({ moment }: Entry): number {
    const jumps = this.chronicle.jumpsBetween({ ...moment, step: 0 }, moment);
    return Math.max(moment.wallMs, ...jumps.map(({ wallMs }) => wallMs));
  }

  hadLapsed(lease: Lease, call: Call): Lapse | null {
    const { began } = call;
    if (this.chronicle.hasJumped(began, this.chronicle.now)) return null;
    const earliest = { ...began, elapsedMs: began.elapsedMs - SLACK_MS, wallMs: began.wallMs - SLACK_MS };
    return this.lapseAt(lease, call, earliest);
  }

  lapseAt(lease: Lease, { viewer }: Call, at: Moment): Lapse | null {
    return lapseOf(lease, viewer, at, this.chronicle, (bound, moment) => this.#isDead(bound, moment));
  }

  hadCompany(call: Call): boolean {
    if ([...this.#world.faults.notRemoved].some((path) => path.includes("/queue/"))) return true;
    return this.#calls.some(
      ({ deed, began, ended, process, lane }) =>
        lane !== call.lane &&
        deed.do === "acquire" &&
        deed.waitMs !== null &&
        began.step <= call.ended!.step &&
        (ended === null || ended.step >= call.began.step || this.#diedAt.has(process)),
    );
  }

  // --- inside ---------------------------------------------------------------------------------------------

  #onEntry(entry: Entry): void {
    const { entries } = this.chronicle;
    checkLine(entry, entries.at(-2), this);
    for (const lease of [...(entry.event?.leases ?? []), ...(entry.event?.ended ?? [])]) {
      const lines = this.#linesOf.get(lease.leaseId);
      if (lines === undefined) this.#linesOf.set(lease.leaseId, [entry]);
      else lines.push(entry);
    }
  }

  /** Lines that were lost never counted: what they did may be done again. */
  forgetLost(): void {
    const { entries } = this.chronicle;
    const present = new Set(entries.filter((entry) => !entry.isSpoiled).map(({ line }) => line.sum));
    for (const [id, sum] of this.operations) if (!present.has(sum)) this.operations.delete(id);
  }

  #isDead({ holder }: Lease, at: Moment): boolean {
    const process = this.#known.get(nameOf(holder));
    const diedAt = process === undefined ? undefined : this.#diedAt.get(process);
    return diedAt !== undefined && diedAt <= at.step;
  }

  /** The line that says just this of the lease: the one that the call wrote, else the first. */
  #lineOf(lease: Lease, call: Call, { changed, replayed }: Change): Entry | null {
    const record = recordOf(lease);
    const lines = (this.#linesOf.get(lease.leaseId) ?? []).filter((entry) =>
      entry.event!.leases.some((logged) => recordOf(logged) === record),
    );
    const own = changed && !replayed ? lines.find(({ moment }) => moment.step >= call.began.step) : undefined;
    return own ?? lines[0] ?? null;
  }

  #endOf({ leaseId }: Lease): Entry | null {
    const lines = this.#linesOf.get(leaseId) ?? [];
    return lines.findLast((entry) => entry.event!.ended.some((gone) => gone.leaseId === leaseId)) ?? null;
  }

  /** Promise 4, at the very moment: if the power went now, it would still be there, and all that it relied on. */
  #checkDurable(what: string, lines: readonly Entry[]): void {
    const { chronicle } = this;
    if (lines.length === 0 || chronicle.forgiven.size > 0) return;
    const last = lines.reduce((most, { line }) => Math.max(most, line.sequence), 0);
    // Its own may have gone again before it was told: with the cache, after a failed sync.
    const relied = new Set([...chronicle.entries.filter(({ line }) => line.sequence <= last), ...lines]);
    const log = this.#durable(LOG);
    // What a checkpoint has taken over is safe with it; the lines themselves are history.
    const start = Number(/"sequence":(\d+),"event_type":"log.checkpoint"/.exec(log)?.[1] ?? 0);
    const there = chronicle.sumsIn(log);
    const missing = [...relied].filter(({ line }) => line.sequence >= start && !there.has(line.sum));
    if (missing.length === 0) return;
    const archive = `${CONTROL}/archive`;
    const archived = this.#world.disk
      .durableNames(archive)
      .filter((name) => name.startsWith("claims-"))
      .map((name) => chronicle.sumsIn(this.#durable(`${archive}/${name}`)));
    for (const { line } of missing)
      if (!archived.some((sums) => sums.has(line.sum)))
        this.fail(
          4,
          `${what} was acknowledged, and line ${line.sequence}, on which it relied, is not on the disk`,
        );
  }

  #durable(path: string): string {
    const bytes = this.#world.disk.peekDurable(path);
    return bytes === null ? "" : unpacked(path, bytes);
  }

  /** A damaged line that nothing says was durable passes for a torn tail, and its tokens are given again. */
  #checkSetAside(): void {
    const { chronicle } = this;
    if (chronicle.isSpoiled) return;
    if (chronicle.wronglySetAside) this.fail(4, "damage to what was acknowledged was taken for a torn tail");
    this.highestToken = chronicle.last?.token ?? 0;
  }

  /** Promise 9. */
  #checkReader(process: string, operation: string): void {
    for (const call of this.#current.values())
      if (call.isAlone && call.process.name === process && READS.has(call.deed.do))
        this.fail(9, `${call.party.agentId}'s ${call.deed.do} did ${operation}`);
  }

  #secrets(): Set<string> {
    const secrets = new Set<string>();
    for (const path of this.#world.disk.paths()) {
      if (!path.startsWith(`${CONTROL}/secrets/`) || path.endsWith("/")) continue;
      const text = decode(this.#world.disk.peek(path)) ?? "";
      // Of a line that the power has torn there may be no more than `"secret":"`, and the next one begins right there.
      for (const [, secret] of text.matchAll(/"secret":"([\w-]+)"/g)) secrets.add(secret!);
    }
    return secrets;
  }

  #contentOf(path: string): string {
    const bytes = this.#world.disk.peek(path);
    return bytes === null ? "" : unpacked(path, bytes);
  }
}

function unpacked(path: string, bytes: Uint8Array): string {
  try {
    return decode(path.endsWith(".gz") ? (simCompression.unpack(bytes) as Uint8Array) : bytes) ?? "";
  } catch {
    return "";
  }
}

function nameOf(identity: { bootId: string; pidNamespace: string; pid: number; startTime: string }): string {
  return `${identity.bootId} ${identity.pidNamespace} ${identity.pid} ${identity.startTime}`;
}
