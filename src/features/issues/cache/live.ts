import type { Ulid } from "../../../kernel/ids";
import type { Platform } from "../../../platform/platform";
import type { CommittedIssues } from "../committed";
import { ISSUES, type IssueFolder, type RawIssue } from "../folder";
import { decodeIssue, ISSUE_STATES } from "../model";
import { readOrSet } from "../or-set";
import type { WrittenStamp } from "../stamps";
import { Catalog } from "./catalog";
import { Doubts } from "./doubts";
import { type CachePlace, readCatalog, type Subject, writeCatalog } from "./file";
import {
  ABSENT,
  brokenEntry,
  DEPS_FILE,
  EMPTY,
  entryFrom,
  ISSUE_FILE,
  LABELS_FILE,
  STAT_NUMBERS,
  STATTED,
  type Table,
} from "./table";

/** What was written since a position in the log. */
export interface StampNews {
  /** Null: the control plane has forgotten it. */
  readonly stamps: ReadonlyMap<Ulid, WrittenStamp | null>;
  /** These are all there are. */
  readonly isAll: boolean;
  readonly position: string | null;
  readonly lines: number;
}

export interface CatalogSources {
  readonly platform: Platform;
  /** This worktree's folder first, then the main one's if that is another. */
  readonly folders: readonly IssueFolder[];
  /** Null outside Git. */
  readonly head: {
    readonly commit: () => Promise<string | null>;
    readonly at: (commit: string) => CommittedIssues;
  } | null;
  readonly news: (position: string | null) => Promise<StampNews>;
  /** Null: what is read is not kept. */
  readonly cache: CachePlace | null;
}

/** Reading again what costs no more than this is cheaper than writing the cache anew. */
const WORTH_SAVING = 32;
/** A file beyond this is nobody's issue. */
const LARGEST_FILE = 64 << 20;
const IDS_AT_ONCE = 20_000;

/**
 * The catalogue, brought up to date from the files themselves. Nothing in it is believed before it was looked at in
 * this process: names first, then every `issue.json`, and the sets beside it only where an answer depends on them. Where
 * somebody watches the folders and is sure, only what has changed is looked at.
 */
export class LiveCatalog {
  catalog: Catalog;
  readonly #sources: CatalogSources;
  readonly #startedMs: number;
  readonly #doubts: Doubts;
  /** Of the file that it came from, or went to. */
  #name: string | null;
  /** Whether that file says something that is not so, and does not say itself that it may not be. */
  #isFileStale = false;
  /** Of the folders' directories of issues, as they were last seen. */
  #inodes: number[] = [];
  #cost = 0;
  #hasNames = false;

  private constructor(sources: CatalogSources, catalog: Catalog, name: string | null, startedMs: number) {
    this.#sources = sources;
    this.catalog = catalog;
    this.#name = name;
    this.#startedMs = startedMs;
    this.#doubts = new Doubts(sources.cache, sources.folders);
  }

  static async open(sources: CatalogSources): Promise<LiveCatalog> {
    const { platform, cache, folders, head } = sources;
    const startedMs = platform.clock.monotonicMs();
    const kept = cache === null ? null : await readCatalog(platform, cache.path, subjectOf(sources));
    const catalog = kept?.catalog ?? Catalog.empty(folders.length, head !== null);
    const live = new LiveCatalog(sources, catalog, kept?.name ?? null, startedMs);
    if (kept === null) live.#cost = WORTH_SAVING + 1;
    return live;
  }

  /** Every id that is known anywhere gets its row; claimed ones may be in their holders' worktrees only. */
  async refreshNames(claimed: Iterable<Ulid> = []): Promise<void> {
    const { folders, head, news } = this.#sources;
    this.#doubts.ask(this.catalog.rows);
    const listings = await this.#list(folders);
    const commit = head === null ? null : await head.commit();
    const committed = commit === this.catalog.commit ? null : await this.#committed(commit);
    const written = await news(this.catalog.position);
    this.catalog = this.catalog.with(
      (function* () {
        for (const listing of listings) if (listing !== null) yield* listing.ids;
        if (committed !== null) yield* committed.copies.keys();
        for (const [id, stamp] of written.stamps) if (stamp !== null) yield id;
        yield* claimed;
      })(),
    );
    for (const [at, listing] of listings.entries()) if (listing !== null) this.#takeListing(at, listing);
    if (committed !== null) this.#takeCommitted(committed);
    this.catalog.commit = commit;
    this.#takeStamps(written);
    this.#hasNames = true;
  }

  ids(): Ulid[] {
    const { rows, places, stamps } = this.catalog;
    const ids: Ulid[] = [];
    for (let row = 0; row < rows; row++)
      if (stamps.version[row]! > 0 || places.some(({ table }) => table.columns.kind[row] !== ABSENT))
        ids.push(this.catalog.id(row));
    return ids;
  }

  /** Looks at the `issue.json` of every issue in the folders, and reads those that are not as they were. */
  async refreshIssues(): Promise<void> {
    await this.#doubts.settle(this.catalog, this.#name, this.#inodes);
    for (const [at, folder] of this.#sources.folders.entries()) {
      const { table } = this.catalog.places[at]!;
      const { rows, seen, changed } = await this.#changedAmong(at, this.#rowsAt(at), ISSUE_FILE);
      for (const index of changed) await this.#readCopy(folder, table, rows[index]!, seen, index);
      const doubtful = this.#doubts.of(at);
      if (doubtful !== null) await this.#refreshBothSets(at, (row) => doubtful[row] === 1);
    }
  }

  /** Rows of what is in a folder. */
  #rowsAt(place: number): number[] {
    const { rows, columns } = this.catalog.places[place]!.table;
    const there: number[] = [];
    for (let row = 0; row < rows; row++) if (columns.kind[row] !== ABSENT) there.push(row);
    return there;
  }

  /** So that a cache which is written after this is true in all that it says of these rows. */
  async #refreshBothSets(place: number, isMeant: (row: number) => boolean): Promise<void> {
    const rows = this.#rowsAt(place).filter(isMeant);
    await this.refreshSets(place, rows, DEPS_FILE);
    await this.refreshSets(place, rows, LABELS_FILE);
  }

  /** Looks at one of the sets of these rows of a place, and reads those that are not as they were. */
  async refreshSets(place: number, rows: readonly number[], file: typeof DEPS_FILE | typeof LABELS_FILE) {
    const folder = this.#sources.folders[place];
    // What is committed does not change.
    if (folder === undefined) return;
    const { table } = this.catalog.places[place]!;
    const { rows: due, seen, changed } = await this.#changedAmong(place, rows, file);
    for (const index of changed) {
      const row = due[index]!;
      const { values } = readOrSet(await folder.lines(this.catalog.id(row), STATTED[file]));
      if (file === LABELS_FILE) table.setLabels(row, values);
      else table.setText(row, { ...table.text(row), dependencies: values }, this.#rowOf);
      table.setStat(row, file, seen, index * STAT_NUMBERS);
      this.#cost++;
    }
  }

  /** Keeps what was read, if that is worth it. Never fails. */
  async save(): Promise<void> {
    const { platform, cache } = this.#sources;
    if (cache === null || !this.#hasNames) return;
    const { isUntold } = this.#doubts;
    // From now on somebody can say what has changed since, if once everything was looked at.
    if (isUntold) for (const at of this.#sources.folders.keys()) await this.#refreshBothSets(at, () => true);
    const isWorthIt = this.#cost > WORTH_SAVING || (isUntold && (this.#isFileStale || this.#name === null));
    if (isWorthIt) {
      this.#cost = 0;
      const subject = subjectOf(this.#sources);
      this.#name = await writeCatalog(platform, cache, subject, this.catalog, this.#startedMs);
      this.#isFileStale = false;
    }
    if (this.#name !== null && (isWorthIt || isUntold)) await this.#doubts.tell(this.#name);
  }

  // --- names ----------------------------------------------------------------------------------------------

  async #list(folders: readonly IssueFolder[]): Promise<(Listing | null)[]> {
    const listings: (Listing | null)[] = [];
    for (const [at, folder] of folders.entries()) {
      const seen = new Float64Array(STAT_NUMBERS);
      await this.#sources.platform.files.lstatAll(1, () => `${folder.root}/${ISSUES}`, seen);
      this.#inodes[at] = seen[0]!;
      const { listed } = this.catalog.places[at]!;
      // What this process itself has listed may have changed since within one tick of the file system's clock.
      const isSame = !this.#hasNames && seen.every((number, i) => number === listed![i]);
      if (!isSame) this.#cost += this.catalog.rows / 100;
      listings.push(isSame ? null : { ids: await folder.ids(), seen });
    }
    return listings;
  }

  #takeListing(at: number, { ids, seen }: Listing): void {
    const { table, listed } = this.catalog.places[at]!;
    const { kind } = table.columns;
    const isThere = new Uint8Array(table.rows);
    for (const id of ids) isThere[this.catalog.rowOf(id)] = 1;
    for (let row = 0; row < table.rows; row++) {
      if (isThere[row] === 0 && kind[row] !== ABSENT) table.clear(row, ABSENT);
      if (isThere[row] === 1 && kind[row] === ABSENT) {
        table.clear(row, EMPTY);
        table.setStat(row, ISSUE_FILE, UNSEEN, 0);
      }
    }
    listed!.set(seen);
  }

  async #committed(commit: string | null): Promise<Committed> {
    const before = this.catalog.commit;
    if (commit === null) return { isAll: true, copies: new Map() };
    const issues = this.#sources.head!.at(commit);
    const changed = before === null ? null : await issues.changedSince(before);
    const ids = changed ?? (await issues.ids());
    const copies = new Map<Ulid, RawIssue | null>(ids.map((id) => [id, null]));
    for (let at = 0; at < ids.length; at += IDS_AT_ONCE)
      for (const [id, raw] of await issues.read(ids.slice(at, at + IDS_AT_ONCE), [STATTED[ISSUE_FILE]]))
        copies.set(id, raw);
    return { isAll: changed === null, copies };
  }

  #takeCommitted({ isAll, copies }: Committed): void {
    const { table } = this.catalog.places.at(-1)!;
    this.#cost = WORTH_SAVING + 1;
    if (isAll)
      for (let row = 0; row < table.rows; row++)
        if (table.columns.kind[row] !== ABSENT) table.clear(row, ABSENT);
    for (const [id, raw] of copies) {
      const row = this.catalog.rowOf(id);
      if (raw === null) table.clear(row, isAll ? EMPTY : ABSENT);
      else table.setBare(row, entryOf(id, raw));
    }
  }

  #takeStamps({ stamps, isAll, position, lines }: StampNews): void {
    const columns = this.catalog.stamps;
    if (isAll) columns.version.fill(0);
    for (const [id, stamp] of stamps) {
      const row = this.catalog.rowOf(id);
      if (row === -1) continue;
      columns.version[row] = stamp?.version ?? 0;
      columns.state[row] = stamp === null ? 0 : ISSUE_STATES.indexOf(stamp.state);
      columns.isDeleted[row] = stamp?.isDeleted === true ? 1 : 0;
    }
    this.catalog.position = position;
    this.#cost += isAll ? stamps.size : lines / 4;
  }

  // --- files ----------------------------------------------------------------------------------------------

  /** Which of these have changed: places in `rows`, those of them that had to be looked at. */
  async #changedAmong(place: number, among: readonly number[], file: number) {
    const { table } = this.catalog.places[place]!;
    const { stats } = table.columns;
    const isUnknown = (row: number) => Number.isNaN(stats[table.statAt(row, file)]);
    const doubtful = this.#doubts.of(place);
    const rows = doubtful === null ? among : among.filter((row) => doubtful[row] === 1 || isUnknown(row));
    const prefix = `${this.#sources.folders[place]!.root}/${ISSUES}/`;
    const suffix = `/${STATTED[file]}`;
    const { catalog } = this;
    const seen = table.statsExpected(rows, file);
    const pathAt = (index: number) => prefix + catalog.id(rows[index]!) + suffix;
    await this.#sources.platform.files.lstatAll(rows.length, pathAt, seen);
    const changed = table.changedAmong(rows, file, seen);
    this.#isFileStale ||= changed.some((index) => !isUnknown(rows[index]!));
    return { rows, seen, changed };
  }

  /** What it looks like is taken before it is read: a change in between shows the next time. */
  async #readCopy(folder: IssueFolder, table: Table, row: number, seen: Float64Array, index: number) {
    const id = this.catalog.id(row);
    const sets = new Float64Array(2 * STAT_NUMBERS);
    const directory = folder.folder(id);
    const pathAt = (file: number) => `${directory}/${STATTED[DEPS_FILE + file]}`;
    await this.#sources.platform.files.lstatAll(2, pathAt, sets);
    const size = seen[index * STAT_NUMBERS + 1]!;
    const raw = size > LARGEST_FILE ? TOO_LARGE : await folder.read(id);
    if (raw === null) table.clear(row, EMPTY);
    else
      table.set(
        row,
        raw === TOO_LARGE ? brokenEntry(`it has ${Math.round(size / (1 << 20))} MB`) : entryOf(id, raw),
        this.#rowOf,
      );
    table.setStat(row, ISSUE_FILE, seen, index * STAT_NUMBERS);
    table.setStat(row, DEPS_FILE, sets, 0);
    table.setStat(row, LABELS_FILE, sets, STAT_NUMBERS);
    this.#cost++;
  }

  readonly #rowOf = (id: string): number => this.catalog.rowOf(id);
}

interface Listing {
  readonly ids: readonly Ulid[];
  readonly seen: Float64Array;
}

interface Committed {
  readonly isAll: boolean;
  readonly copies: ReadonlyMap<Ulid, RawIssue | null>;
}

const UNSEEN = new Float64Array(STAT_NUMBERS).fill(Number.NaN);
const TOO_LARGE: RawIssue = { text: "", labels: "", dependencies: "" };

function subjectOf({ folders, head }: CatalogSources): Subject {
  return { roots: folders.map(({ root }) => root), hasHead: head !== null };
}

function entryOf(id: Ulid, raw: RawIssue) {
  const sets = {
    labels: readOrSet(raw.labels).values,
    dependencies: readOrSet(raw.dependencies).values,
  };
  return entryFrom(id, decodeIssue(raw.text), sets);
}
