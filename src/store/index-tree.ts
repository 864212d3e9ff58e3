import type { Extent } from "../kernel/conflicts";
import { conflict } from "../kernel/conflicts";
import type { FactName, FactRecord } from "../kernel/facts";
import { type LeaseId, trusted, type WorktreeId } from "../kernel/ids";
import {
  directoriesAbove,
  dirKeyOf,
  isInside,
  isPathKey,
  KEY_KINDS,
  type KeyKind,
  kindOf,
  type LeaseKey,
  pathOf,
  type RepoPath,
} from "../kernel/keys";
import { type Ended, isIndefinite, type Lease, type Slot, slotParts } from "../kernel/lease";
import type { Digest, Files } from "../platform/platform";
import { Census, type CensusName, CrowdedCensus, DamagedCensus } from "./census";
import { FactTree } from "./fact-tree";
import type { Layout, Modes } from "./layout";
import type { EndingRecord } from "./replay";
import { DamagedIndex, damagedAsNull, TreeFiles, understood } from "./tree-files";
import { isMeta, isOurs, isUnfinished, TreeNames } from "./tree-names";
import { endedFromWire, endedToWire, leaseFromWire, leaseToWire, text, timeMs } from "./wire";

/** What the log says of some slots, and of leases that ended, to be brought into the index. */
export interface Changes {
  readonly slots: ReadonlyMap<Slot, Lease | null>;
  readonly endings: ReadonlyMap<LeaseId, EndingRecord>;
  readonly facts: ReadonlyMap<FactName, FactRecord | null>;
}

/**
 * The path tree: one small file per lease, in directories that mirror the repository's, so that a process
 * that starts from nothing can ask "is anything leased here, above, or below?" by looking at a few names.
 * A census beside it says how many there must be. Derived from the log; nothing here is ever synced.
 */
export class IndexTree {
  readonly facts: FactTree;
  readonly #names: TreeNames;
  readonly #tree: TreeFiles;
  #census: { readonly name: CensusName; readonly table: Census; asOf: number } | null = null;
  #nextToken = Number.POSITIVE_INFINITY;

  constructor(
    private readonly files: Files,
    private readonly digest: Digest,
    private readonly layout: Layout,
    private readonly modes: Modes,
  ) {
    this.#names = new TreeNames(layout, digest);
    this.#tree = new TreeFiles(files, digest, modes);
    this.facts = new FactTree(this.#tree, this.#names, {
      count: (what) => this.#count(what),
      add: (what, step) => this.#add(what, step),
      flush: async () => this.#census?.table.flush(),
      asOf: () => this.#census?.asOf ?? 0,
    });
  }

  /**
   * Before anything else is asked: which build of the index this is, and up to which line of the log. For a reader, who
   * has no lock, also the next token at that line: what was granted since may come at any moment, and must not be
   * counted in place of something that is missing.
   */
  async standOn(
    name: CensusName,
    sequence: number,
    nextToken: number = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    this.#nextToken = nextToken;
    const before = this.#census;
    if (before?.name.build === name.build && before.name.capacity === name.capacity) {
      if (before.asOf !== sequence) before.table.forget();
      before.asOf = sequence;
      return;
    }
    this.forget();
    this.#census = { name, table: this.#table(name), asOf: sequence };
    await before?.table.close();
  }

  // --- asking ---------------------------------------------------------------------------------------

  /** All leases on a key, of either reach. */
  async onKey(key: LeaseKey): Promise<Lease[]> {
    const expected = await this.#count(ON + key);
    if (expected === 0) return [];
    // Mostly it is one, for everybody: where that is whole, there is no need to look for more.
    const only = expected === 1 ? await this.#readLease(this.#names.meta(key, null)) : null;
    if (only !== null && this.#isCounted(only)) return [only];
    const directory = this.#names.directory(key);
    const found: Lease[] = [];
    for (const name of await this.#tree.list(directory)) {
      const lease = isMeta(name) ? await this.#readLease(`${directory}/${name}`) : null;
      if (lease !== null) found.push(lease);
    }
    if (found.filter((lease) => this.#isCounted(lease)).length !== expected)
      throw new DamagedIndex(directory);
    return found;
  }

  /** Every lease, valid or not, that conflicts with the extent. `enough` may end a long walk early. */
  async conflicting(extent: Extent, enough: (lease: Lease) => boolean = () => false): Promise<Lease[]> {
    const found: Lease[] = [];
    const add = (lease: Lease) => {
      if (!conflict(extent, lease)) return false;
      found.push(lease);
      return enough(lease);
    };
    for (const lease of await this.onKey(extent.key)) if (add(lease)) return found;
    if (!isPathKey(extent.key)) return found;
    for (const above of directoriesAbove(pathOf(extent.key)))
      for (const lease of await this.onKey(dirKeyOf(above))) if (add(lease)) return found;
    if (kindOf(extent.key) === "dir")
      for await (const lease of this.#inside(pathOf(extent.key))) if (add(lease)) return found;
    return found;
  }

  async *all(): AsyncGenerator<Lease> {
    for (const lease of await this.onKey(ROOT)) yield lease;
    yield* this.#inside(pathOf(ROOT));
    for (const kind of KEY_KINDS) if (kind !== "file" && kind !== "dir") yield* this.ofKind(kind);
  }

  /** All on keys of one kind that is no path. */
  async *ofKind(kind: KeyKind): AsyncGenerator<Lease> {
    const expected = await this.#count(OF + kind);
    if (expected === 0) return;
    let found = 0;
    for await (const lease of this.#below(this.#names.tree(kind))) {
      if (this.#isCounted(lease)) found++;
      yield lease;
    }
    if (found !== expected) throw new DamagedIndex(this.#names.tree(kind));
  }

  /** Whatever is still whole, whether it should be there or not. */
  async *salvage(): AsyncGenerator<Lease> {
    for (const kind of KEY_KINDS) yield* this.#below(this.#names.tree(kind), true);
  }

  async indefinite(): Promise<Lease[]> {
    const directory = this.#names.tree("indefinite");
    const found: Lease[] = [];
    let missing = await this.#count(MARKERS);
    for (const name of await this.#tree.list(directory)) {
      const key = isUnfinished(name) ? null : await this.#readMarker(`${directory}/${name}`, name);
      if (key === null) continue;
      missing--;
      // The marker may be older than the lease's end; the lease's own file decides.
      found.push(...(await this.onKey(key)).filter((lease) => lease.leaseId === name));
    }
    if (missing > 0) throw new DamagedIndex(directory);
    return found;
  }

  async ending(leaseId: LeaseId): Promise<EndingRecord | null> {
    const path = this.#names.ending(leaseId);
    const value = await this.#tree.read(path);
    if (value === null) return null;
    const record = understood(path, () => ({
      ended: endedFromWire(value),
      atMs: timeMs(value, "ended_at"),
    }));
    if (record.ended.leaseId !== leaseId) throw new DamagedIndex(path);
    return record;
  }

  // --- changing (under the mutex) ---------------------------------------------------------------------

  /** Answers which census holds now, for `applied` to name. A failure leaves an index that says too much. */
  async apply(changes: Changes, sequence: number): Promise<CensusName> {
    const fresh: Lease[] = [];
    for (const lease of changes.slots.values()) {
      if (lease === null) continue;
      if (!(await this.#tree.overwrite(this.#names.metaOf(lease), leaseToWire(lease)))) fresh.push(lease);
      if (isIndefinite(lease)) await this.#mark(lease);
    }
    // A count never lags behind its files: up before, down after, and written out in between.
    await this.#recount(
      fresh.map(({ key }) => key),
      1,
    );
    for (const lease of fresh)
      await this.#tree.createIn(
        this.#names.directory(lease.key),
        this.#names.metaOf(lease),
        leaseToWire(lease),
      );
    const gone: LeaseKey[] = [];
    for (const [slot, lease] of changes.slots) {
      const { key, worktreeId } = slotParts(slot);
      // Came and went since: a count never lags behind its files.
      if (lease !== null || (await this.#count(ON + key)) === 0) continue;
      if (await this.#drop(key, worktreeId)) gone.push(key);
    }
    await this.#recount(gone, -1);
    for (const ending of changes.endings.values()) await this.#putEnding(ending);
    await this.facts.apply(changes.facts);
    this.#census!.asOf = sequence;
    return this.#census!.name;
  }

  /** Forgets what is known of the disk: another process may have changed it behind our back. */
  forget(): void {
    this.#tree.forget();
    this.#census?.table.forget();
  }

  /** Lets go of the files that it keeps open. */
  async close(): Promise<void> {
    const before = this.#census;
    this.#census = null;
    this.forget();
    await before?.table.close();
  }

  /** Starts from nothing, for about so many leases and facts. */
  async clear(build: string, leases: number, facts: number): Promise<void> {
    await this.#census?.table.close();
    this.#census = null;
    this.forget();
    const { index, applied, synced } = this.layout;
    await this.#tree.empty(index, [applied, synced]);
    const name: CensusName = { build, capacity: Census.capacityFor(leases * 2 + facts) };
    const table = this.#table(name);
    await table.create([], this.modes.file);
    this.#census = { name, table, asOf: 0 };
  }

  /** Removes what no longer says anything: empty directories, stale markers, old endings, leftovers of writes. */
  async prune(olderThanMs: number): Promise<void> {
    this.#tree.forget();
    const indefinite = new Set((await this.indefinite()).map((lease) => lease.leaseId as string));
    const markers = this.#names.tree("indefinite");
    for (const name of await this.#tree.list(markers)) {
      if (indefinite.has(name) || !(await this.#tree.remove(`${markers}/${name}`))) continue;
      if (!isUnfinished(name)) await this.#add(MARKERS, -1);
    }
    await this.#census?.table.flush();
    const ended = this.#names.tree("ended");
    for (const name of await this.#tree.list(ended)) {
      const value = await this.#tree.read(`${ended}/${name}`).catch(() => null);
      const isWanted = value !== null && Date.parse(String(value["ended_at"])) >= olderThanMs;
      if (!isWanted) await this.#tree.remove(`${ended}/${name}`);
    }
    const current = this.#census === null ? "" : this.#names.census(this.#census.name);
    for (const name of await this.#tree.list(this.layout.index)) {
      const path = `${this.layout.index}/${name}`;
      if (this.#names.isCensus(name) && path !== current) await this.#tree.remove(path);
    }
    for (const kind of KEY_KINDS) await this.#pruneEmpty(this.#names.tree(kind));
  }

  #isCounted(lease: Lease): boolean {
    return lease.fencingToken < this.#nextToken;
  }

  // --- counting ---------------------------------------------------------------------------------------

  async #count(what: string): Promise<number> {
    if (this.#census === null) throw new DamagedIndex("no census");
    try {
      return await this.#census.table.count(what);
    } catch (error) {
      if (error instanceof DamagedCensus) throw new DamagedIndex(error.message);
      throw error;
    }
  }

  async #recount(keys: readonly LeaseKey[], step: number): Promise<void> {
    if (keys.length === 0) return;
    for (const key of keys) for (const what of countedFor(key)) await this.#add(what, step);
    await this.#census!.table.flush();
  }

  async #add(what: string, step: number): Promise<void> {
    for (;;) {
      const { name, table } = this.#census!;
      try {
        return await table.add(what, step);
      } catch (error) {
        if (!(error instanceof CrowdedCensus)) throw error;
      }
      const entries = await table.entries();
      // Twice what fits: hash tables of one size and many sizes of entries may crowd anywhere.
      await this.#enlarge(entries, Math.max(name.capacity * 2, Census.capacityFor(entries.length)));
    }
  }

  /** The old one stays where it is, for those who still go by the old `applied`. */
  async #enlarge(entries: Awaited<ReturnType<Census["entries"]>>, capacity: number): Promise<void> {
    const { name, table, asOf } = this.#census!;
    const larger: CensusName = { build: name.build, capacity };
    const next = this.#table(larger);
    await next.create(entries, this.modes.file);
    this.#census = { name: larger, table: next, asOf };
    await table.close();
  }

  #table(name: CensusName): Census {
    return new Census(this.files, this.digest, this.#names.census(name), name.capacity);
  }

  // --- walking ----------------------------------------------------------------------------------------

  /**
   * Leases on what is inside a directory: all that should be there, or an error. It does not stop at as many as there
   * should be: for a reader, who has no lock, one of them may have come since they were counted.
   */
  async *#inside(path: RepoPath): AsyncGenerator<Lease> {
    const expected = await this.#count(INSIDE + path);
    if (expected === 0) return;
    let found = 0;
    for (const tree of ["file", "dir"] as const) {
      const places = [this.#names.path(tree, path)];
      // The root has them below it anyway.
      if (path !== ".") places.push(this.#names.deep(tree));
      for (const place of places) {
        for await (const lease of this.#below(place)) {
          if (!isInside(pathOf(lease.key), path)) continue;
          if (this.#isCounted(lease)) found++;
          yield lease;
        }
      }
    }
    if (found < expected) throw new DamagedIndex(this.#names.path("file", path));
  }

  async *#below(directory: string, lenient = false): AsyncGenerator<Lease> {
    for (const name of await this.#tree.list(directory)) {
      if (!isOurs(name)) yield* this.#below(`${directory}/${name}`, lenient);
      if (!isMeta(name)) continue;
      const reading = this.#readLease(`${directory}/${name}`);
      const lease = lenient ? await reading.catch(damagedAsNull) : await reading;
      if (lease !== null) yield lease;
    }
  }

  // --- single files -----------------------------------------------------------------------------------

  /** True when there was one. */
  async #drop(key: LeaseKey, worktreeId: WorktreeId | null): Promise<boolean> {
    const was = await this.#tree.remove(this.#names.meta(key, worktreeId));
    await this.#tree.removeDirectory(this.#names.directory(key));
    return was;
  }

  async #mark(lease: Lease): Promise<void> {
    const path = this.#names.marker(lease.leaseId);
    if (await this.#tree.has(path)) return;
    await this.#add(MARKERS, 1);
    await this.#census!.table.flush();
    const marker = { lease_id: lease.leaseId, key: lease.key };
    await this.#tree.createIn(this.#names.tree("indefinite"), path, marker);
  }

  async #putEnding(record: EndingRecord): Promise<void> {
    const value = { ...endedToWire(record.ended), ended_at: new Date(record.atMs).toISOString() };
    const path = this.#names.ending(record.ended.leaseId);
    if (!(await this.#tree.overwrite(path, value)))
      await this.#tree.createIn(this.#names.tree("ended"), path, value);
  }

  async #readLease(path: string): Promise<Lease | null> {
    const value = await this.#tree.read(path);
    if (value === null) return null;
    const lease = understood(path, () => leaseFromWire(value));
    // Whole, but in another's place.
    if (this.#names.metaOf(lease) !== path) throw new DamagedIndex(path);
    return lease;
  }

  /** The key of the lease that it speaks of. */
  async #readMarker(path: string, name: string): Promise<LeaseKey | null> {
    const marker = await this.#tree.read(path);
    if (marker === null) return null;
    if (marker["lease_id"] !== name) throw new DamagedIndex(path);
    return understood(path, () => trusted(text(marker, "key")));
  }

  async #pruneEmpty(directory: string): Promise<void> {
    for (const name of await this.#tree.list(directory)) {
      if (isOurs(name) && isUnfinished(name)) await this.#tree.remove(`${directory}/${name}`);
      else if (!isOurs(name)) await this.#pruneEmpty(`${directory}/${name}`);
    }
    await this.#tree.removeDirectory(directory);
  }
}

const ROOT: LeaseKey = trusted("dir:.");
/** What is counted: leases on a key, inside a directory (files and directories together), of a kind. */
const ON = "on ";
const INSIDE = "in ";
const OF = "of ";
/** And the markers of leases without expiry. */
const MARKERS = "indefinite";

function countedFor(key: LeaseKey): string[] {
  if (!isPathKey(key)) return [ON + key, OF + kindOf(key)];
  return [ON + key, ...directoriesAbove(pathOf(key)).map((above) => INSIDE + above)];
}

export function endingsOf(ended: readonly Ended[], atMs: number): EndingRecord[] {
  return ended.filter((gone) => gone.how !== "released").map((gone) => ({ ended: gone, atMs }));
}
