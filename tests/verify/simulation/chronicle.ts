import type { Lease, Slot } from "../../../src/kernel/lease";
import { slotOf } from "../../../src/kernel/lease";
import { applyTo, type ClaimEvent } from "../../../src/kernel/view";
import { claimEventOf, decodeLine, type Line } from "../../../src/store/envelope";
import { unseal } from "../../../src/store/sealed";
import { leaseFromWire, list } from "../../../src/store/wire";
import type { SimWorld } from "../../../testing/simulator";
import { CONTROL, LOG, sha256 } from "../../store/stage";

/** An instant by every clock there is, as only an onlooker from outside can read it. */
export interface Moment {
  /** Operations of the world so far. */
  readonly step: number;
  readonly elapsedMs: number;
  readonly wallMs: number;
  readonly bootId: string;
}

export type LeaseView = ReadonlyMap<Slot, Lease>;

/** A line of the log, when it got there, and what the log said once it was there. */
export interface Entry {
  readonly line: Line;
  readonly event: ClaimEvent | null;
  readonly moment: Moment;
  /** The process that wrote it. */
  readonly process: string;
  readonly view: LeaseView;
  readonly before: LeaseView;
  /** The highest fencing token granted so far. */
  readonly token: number;
  /** Damaged on purpose: what it said may be lost. */
  isSpoiled: boolean;
}

const MARK = `${CONTROL}/index/synced`;
const digest = { sha256 };
const NOTHING: LeaseView = new Map();

/**
 * The log as it came to be: read from the disk after every operation that may have changed it, so that each line has
 * its instant and its writer. What the power or a full disk took away again is remembered as lost.
 */
export class Chronicle {
  /** What the log and its archive say now, oldest first. */
  entries: Entry[] = [];
  /** Everything that ever was in the log, by sum. */
  readonly bySum = new Map<string, Entry>();
  /** Sums of lines that were damaged on purpose, or set aside because of that. */
  readonly forgiven = new Set<string>();
  /** Damage to what was known to be durable was taken for a torn tail. */
  wronglySetAside = false;
  readonly #world: SimWorld;
  readonly #onEntry: (entry: Entry) => void;
  readonly #decoded = new Map<string, Line | null>();
  /** When each boot's monotonic clock was at zero. */
  readonly #boots = new Map<string, number>();
  /** Right before and right after each wall clock jump and boot. */
  readonly #jumps: Moment[] = [];
  #inode: number | null = null;
  #offset = 0;
  #spoiled: Entry | null = null;
  #mended: Entry | null = null;
  #mendedAtStep = -1;

  constructor(world: SimWorld, onEntry: (entry: Entry) => void) {
    this.#world = world;
    this.#onEntry = onEntry;
    this.noteBoot();
  }

  get now(): Moment {
    const { trace, elapsedMs, wallMs, bootId } = this.#world;
    return { step: trace.step, elapsedMs, wallMs, bootId };
  }

  get last(): Entry | undefined {
    return this.entries.at(-1);
  }

  /** Damaged below what was acknowledged, and not recovered yet. */
  get isSpoiled(): boolean {
    return this.#spoiled !== null;
  }

  /** Whether somebody who asked at that moment may have met the damage. */
  wasSpoiledSince(moment: Moment): boolean {
    return this.#spoiled !== null || this.#mendedAtStep >= moment.step;
  }

  noteBoot(): void {
    const { bootId, elapsedMs, monotonicMs } = this.#world;
    this.#boots.set(bootId, elapsedMs - monotonicMs);
  }

  /** Somebody may have read the clock as it was `before`, and be about to write what follows from that. */
  noteJump(before: Moment): void {
    this.#jumps.push(before, this.now);
  }

  hasJumped(from: Moment, to: Moment): boolean {
    return this.jumpsBetween(from, to).length > 0;
  }

  jumpsBetween(from: Moment, to: Moment): Moment[] {
    return this.#jumps.filter(({ step }) => step >= from.step && step <= to.step);
  }

  bootedAtMs(bootId: string): number {
    return this.#boots.get(bootId) ?? Number.NaN;
  }

  /** What the log said at that step, and every change of it until the other. */
  viewsBetween(from: Moment, to: Moment): Entry[] {
    const first = this.entries.findLastIndex((entry) => entry.moment.step <= from.step);
    return this.entries.slice(Math.max(0, first)).filter((entry) => entry.moment.step <= to.step);
  }

  /** After an append: only what was added. */
  grown(process: string): void {
    if (this.#world.disk.inodeOf(LOG) !== this.#inode) {
      this.look(process);
      return;
    }
    const bytes = this.#world.disk.peek(LOG, this.#offset);
    if (bytes === null) {
      this.look(process);
      return;
    }
    this.#offset += this.#take(bytes, process);
  }

  /** After anything else: everything. */
  look(process: string): void {
    const bytes = this.#world.disk.peek(LOG);
    this.#inode = this.#world.disk.inodeOf(LOG);
    this.#offset = 0;
    // A recovery that the power took back: the damaged log has its name again.
    const has = (damaged: Entry | null) => damaged !== null && bytes !== null && isDamagedBy(damaged, bytes);
    if (has(this.#mended) && !has(this.#spoiled)) this.#spoiled = this.#mended;
    const lines = bytes === null ? [] : this.#linesOf(bytes);
    const start = lines[0]?.sequence ?? this.#spoiled?.line.sequence ?? 0;
    const known = this.entries;
    this.entries = known.filter((entry) => entry.line.sequence < start);
    for (const line of lines) {
      this.#keepSpoiled(line.sequence);
      this.#add(line, process);
    }
    this.#keepSpoiled(Number.POSITIVE_INFINITY);
    this.#offset = bytes === null ? 0 : wholeLength(bytes);
    this.#settleSpoil(known, lines);
  }

  /**
   * While the log is damaged, what cannot be read is not lost yet; and it keeps its place, because whoever was at work
   * when it was damaged has added to it, and not to the line before it.
   */
  #keepSpoiled(next: number): void {
    const spoiled = this.#spoiled;
    if (spoiled !== null && spoiled.line.sequence <= next && !this.entries.includes(spoiled))
      this.entries.push(spoiled);
  }

  /** Somebody alters this line on the disk. */
  spoil(entry: Entry): void {
    entry.isSpoiled = true;
    this.#spoiled = entry;
    this.forgiven.add(entry.line.sum);
  }

  /** The damage is over: by `recover`, or because the next writer took it for a torn tail and set it aside. */
  #settleSpoil(known: readonly Entry[], lines: readonly Line[]): void {
    const spoiled = this.#spoiled;
    if (spoiled === null) return;
    if (lines[0]?.payload["recovered"] !== undefined && lines[0].sequence >= spoiled.line.sequence) {
      this.#mend();
      return;
    }
    const end = lines.at(-1)?.sequence ?? 0;
    if (end >= spoiled.line.sequence || this.#hasMore(spoiled)) return;
    this.#mend();
    this.wronglySetAside ||= this.#knownToBeDurable(known) >= spoiled.line.sequence;
    for (const { line } of known) if (line.sequence > end) this.forgiven.add(line.sum);
    this.entries = this.entries.filter(({ line }) => line.sequence <= end);
  }

  #mend(): void {
    this.#mended = this.#spoiled;
    this.#spoiled = null;
    this.#mendedAtStep = this.#world.trace.step;
  }

  /** The highest line that anybody can know to be on the disk. */
  get durable(): number {
    return this.#knownToBeDurable(this.entries);
  }

  /** PROTOCOL 5: what the lines themselves, and the mark beside the index, say. */
  #knownToBeDurable(known: readonly Entry[]): number {
    // A mark that was damaged too says nothing: nobody can tell then.
    const mark = unseal(digest, this.#world.disk.peek(MARK) ?? new Uint8Array());
    const marked = Number(mark?.["sequence"] ?? 0);
    return known.reduce((most, { line }) => Math.max(most, line.synced), marked);
  }

  /** Whether there is still something in the place of the damaged line. */
  #hasMore(spoiled: Entry): boolean {
    const whole = this.entries.indexOf(spoiled);
    const before = this.entries[whole - 1];
    const bytes = this.#world.disk.peek(LOG);
    // A log that was never known to be there may be lost with the power, damage and all.
    if (bytes === null) return this.#knownToBeDurable(this.entries) >= spoiled.line.sequence;
    const text = new TextDecoder().decode(bytes);
    const at = before === undefined ? 0 : text.indexOf(`"sum":"${before.line.sum}"}\n`);
    return at === -1 || text.length > at + (before === undefined ? 0 : before.line.sum.length + 10);
  }

  #take(bytes: Uint8Array, process: string): number {
    const length = wholeLength(bytes);
    for (const line of this.#linesOf(bytes.subarray(0, length))) this.#add(line, process);
    return length;
  }

  /** Whole lines; up to the first that is not one, unless the log is known to be damaged. */
  #linesOf(bytes: Uint8Array): Line[] {
    const lines: Line[] = [];
    for (const text of new TextDecoder().decode(bytes.subarray(0, wholeLength(bytes))).split("\n")) {
      if (text === "") continue;
      const line = this.#decode(text);
      if (line !== null) lines.push(line);
      else if (this.#spoiled === null) break;
    }
    return lines;
  }

  /** Of all lines in it that are whole: the end of one may be there, and the sector before it lost. */
  sumsIn(text: string): Set<string> {
    const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
    return new Set(lines.flatMap((line) => this.#decode(line)?.sum ?? []));
  }

  #decode(text: string): Line | null {
    let line = this.#decoded.get(text);
    if (line === undefined) {
      line = decodeLine(digest, text);
      this.#decoded.set(text, line);
    }
    return line;
  }

  #add(line: Line, process: string): void {
    const known = this.bySum.get(line.sum);
    if (known !== undefined) {
      if (!this.entries.includes(known)) this.entries.push(known);
      return;
    }
    const last = this.last;
    // Added to something that was lost under its writer's hands: not part of the log, and whoever is told of it is told
    // of something that is not there.
    const isOnLostGround = last !== undefined && line.prev !== last.line.sum && this.bySum.has(line.prev);
    if (isOnLostGround && line.payload["recovered"] === undefined) return;
    const before = last?.view ?? NOTHING;
    const event = claimEventOf(line);
    const view = viewAfter(before, line, event);
    let token = last?.token ?? 0;
    for (const lease of event?.leases ?? []) token = Math.max(token, lease.fencingToken);
    const entry: Entry = { line, event, moment: this.now, process, view, before, token, isSpoiled: false };
    this.bySum.set(line.sum, entry);
    this.entries.push(entry);
    this.#onEntry(entry);
  }
}

/** What a damaged line has in the place of its sum. */
export function damagedSum(sum: string): string {
  return "0".repeat(sum.length);
}

function isDamagedBy({ line }: Entry, bytes: Uint8Array): boolean {
  // Its number may have been given again, to a line that somebody has damaged since. And a recovery says which number
  // was lost, and follows the same line as the one that was: what a line itself has for a number is at its beginning.
  const beginning = `{"schema_version":${line.schemaVersion},"sequence":${line.sequence},`;
  const end = `"prev":"${line.prev}","sum":"${damagedSum(line.sum)}"}`;
  const lines = new TextDecoder().decode(bytes).split("\n");
  return lines.some((text) => text.startsWith(beginning) && text.endsWith(end));
}

function viewAfter(before: LeaseView, line: Line, event: ClaimEvent | null): LeaseView {
  if (event !== null) {
    const leases = new Map(before);
    applyTo({ leases, endings: new Map() }, event);
    return leases;
  }
  // What was salvaged is what counts from then on; every other checkpoint only repeats what is known.
  if (line.type !== "log.checkpoint" || line.payload["recovered"] === undefined) return before;
  const salvaged = line.payload["part"] === 1 ? new Map<Slot, Lease>() : new Map(before);
  for (const lease of leasesIn(line)) salvaged.set(slotOf(lease), lease);
  return salvaged;
}

export function leasesIn(checkpoint: Line): Lease[] {
  return list(checkpoint.payload, "leases").map(leaseFromWire);
}

function wholeLength(bytes: Uint8Array): number {
  return bytes.lastIndexOf(10) + 1;
}
