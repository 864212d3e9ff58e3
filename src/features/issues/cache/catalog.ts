import { trusted, type Ulid } from "../../../kernel/ids";
import { RANDOM_HALF as HALF, shortLengths } from "../short-id";
import { STAT_NUMBERS, Table } from "./table";

const ID = 26;

/** What the control plane remembers of the last write of each issue, as far as queries need it; version 0: nothing. */
export interface StampColumns {
  readonly version: Float64Array;
  readonly state: Uint8Array;
  readonly isDeleted: Uint8Array;
}

/** A place in which issues stand. */
export interface CatalogPlace {
  readonly table: Table;
  /** What the directory of all issues looked like when it was listed; null for HEAD. */
  readonly listed: Float64Array | null;
}

/** Everything that is known of issues anywhere, in columns: row n is the same issue in all of them. */
export class Catalog {
  readonly rows: number;
  /** All ids, sorted, one after the other. */
  readonly names: string;
  /** Rows in the order of the random halves of their ids. */
  readonly byHalf: Uint32Array;
  /** How much of the random half names each, and no other. */
  readonly shortLengths: Uint8Array;
  readonly places: readonly CatalogPlace[];
  readonly stamps: StampColumns;
  /** The commit that the last place was read from, if it is HEAD. */
  commit: string | null;
  /** Up to where in the log the stamps reach; null: nothing is known of them. */
  position: string | null;

  constructor(
    given: Pick<
      Catalog,
      "rows" | "names" | "byHalf" | "shortLengths" | "places" | "stamps" | "commit" | "position"
    >,
  ) {
    this.rows = given.rows;
    this.names = given.names;
    this.byHalf = given.byHalf;
    this.shortLengths = given.shortLengths;
    this.places = given.places;
    this.stamps = given.stamps;
    this.commit = given.commit;
    this.position = given.position;
  }

  static empty(folders: number, hasHead: boolean): Catalog {
    const places: CatalogPlace[] = [];
    for (let at = 0; at < folders; at++) places.push({ table: Table.empty(0, true), listed: unknown() });
    if (hasHead) places.push({ table: Table.empty(0, false), listed: null });
    return new Catalog({
      rows: 0,
      names: "",
      byHalf: new Uint32Array(0),
      shortLengths: new Uint8Array(0),
      places,
      stamps: emptyStamps(0),
      commit: null,
      position: null,
    });
  }

  id(row: number): Ulid {
    return trusted(this.names.slice(row * ID, row * ID + ID));
  }

  /** -1 for an id that is not known. */
  rowOf(id: string): number {
    let [low, high] = [0, this.rows];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.id(middle) < id) low = middle + 1;
      else high = middle;
    }
    return low < this.rows && this.id(low) === id ? low : -1;
  }

  /** As `shortId`, without looking at every other id. */
  short(row: number): string {
    const from = row * ID + HALF;
    return this.names.slice(from, from + this.shortLengths[row]!).toLowerCase();
  }

  /** With rows for these ids as well. */
  with(ids: Iterable<string>): Catalog {
    const added = [...new Set(ids)].filter((id) => this.rowOf(id) === -1).sort();
    if (added.length === 0) return this;
    const rows = this.rows + added.length;
    const from = new Int32Array(rows).fill(-1);
    const to = new Int32Array(this.rows);
    const names: string[] = [];
    for (let row = 0, old = 0, fresh = 0; row < rows; row++) {
      const isOld = fresh >= added.length || (old < this.rows && this.id(old) < added[fresh]!);
      if (isOld) {
        from[row] = old;
        to[old] = row;
        names.push(this.id(old++));
      } else names.push(added[fresh++]!);
    }
    const byHalf = this.#halves(from, to, names);
    const lengths = shortLengths(byHalf, names);
    const bare = new Catalog({ ...this, rows, names: names.join(""), byHalf, shortLengths: lengths });
    const rowOf = (id: string) => bare.rowOf(id);
    const places = this.places.map(({ table, listed }) => ({ table: table.moved(from, to, rowOf), listed }));
    const stamps = emptyStamps(rows);
    for (let old = 0; old < this.rows; old++) {
      stamps.version[to[old]!] = this.stamps.version[old]!;
      stamps.state[to[old]!] = this.stamps.state[old]!;
      stamps.isDeleted[to[old]!] = this.stamps.isDeleted[old]!;
    }
    return new Catalog({ ...bare, places, stamps });
  }

  /** The old order with the new rows put in where they belong. */
  #halves(from: Int32Array, to: Int32Array, names: readonly string[]): Uint32Array {
    const half = (row: number) => names[row]!.slice(HALF);
    const byHalf = (a: number, b: number) => (half(a) < half(b) ? -1 : 1);
    const fresh = [...from.keys()].filter((row) => from[row] === -1).sort(byHalf);
    const merged = new Uint32Array(names.length);
    let next = 0;
    let at = 0;
    for (const old of this.byHalf) {
      const row = to[old]!;
      const own = half(row);
      while (next < fresh.length && half(fresh[next]!) < own) merged[at++] = fresh[next++]!;
      merged[at++] = row;
    }
    while (next < fresh.length) merged[at++] = fresh[next++]!;
    return merged;
  }
}

function emptyStamps(rows: number): StampColumns {
  return {
    version: new Float64Array(rows),
    state: new Uint8Array(rows),
    isDeleted: new Uint8Array(rows),
  };
}

function unknown(): Float64Array {
  return new Float64Array(STAT_NUMBERS).fill(Number.NaN);
}
