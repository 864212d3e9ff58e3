import { type AnyCell, Cell } from "./cell";

export const SECTOR_BYTES = 512;
export const ZERO_SECTOR: Uint8Array = new Uint8Array(SECTOR_BYTES);

/**
 * A file's bytes in sectors that reach the platter one by one. Sectors are replaced, never changed in place,
 * so that a reference is a snapshot. Everything past the size is zero.
 */
export class FileContent {
  readonly size = new Cell(0);
  readonly sectors: Cell<Uint8Array>[] = [];
  readonly #markDirty: (cell: AnyCell) => void;

  constructor(markDirty: (cell: AnyCell) => void) {
    this.#markDirty = markDirty;
  }

  read(offset: number, length: number): Uint8Array {
    const end = Math.min(offset + length, this.size.current);
    if (end <= offset) return new Uint8Array(0);
    const bytes = new Uint8Array(end - offset);
    for (let at = offset; at < end; ) {
      const start = at % SECTOR_BYTES;
      const taken = Math.min(SECTOR_BYTES - start, end - at);
      const sector = this.sectors[Math.floor(at / SECTOR_BYTES)]?.current ?? ZERO_SECTOR;
      bytes.set(sector.subarray(start, start + taken), at - offset);
      at += taken;
    }
    return bytes;
  }

  /** What the platter has. */
  durable(): Uint8Array {
    const bytes = new Uint8Array(this.size.durable);
    for (let at = 0; at < bytes.length; at += SECTOR_BYTES) {
      const sector = this.sectors[at / SECTOR_BYTES]?.durable ?? ZERO_SECTOR;
      bytes.set(sector.subarray(0, Math.min(SECTOR_BYTES, bytes.length - at)), at);
    }
    return bytes;
  }

  write(data: Uint8Array, offset: number): void {
    const end = offset + data.length;
    for (let at = offset; at < end; ) {
      const start = at % SECTOR_BYTES;
      const taken = Math.min(SECTOR_BYTES - start, end - at);
      const cell = this.#sector(Math.floor(at / SECTOR_BYTES));
      const sector = cell.current.slice();
      sector.set(data.subarray(at - offset, at - offset + taken), start);
      this.#change(cell, sector);
      at += taken;
    }
    if (end > this.size.current) this.#change(this.size, end);
  }

  truncate(size: number): void {
    if (size < this.size.current) this.#zeroPast(size);
    if (size !== this.size.current) this.#change(this.size, size);
  }

  /** Brings back what the platter has in place of pages that were never written and are no longer dirty. */
  dropForgotten(): void {
    for (const cell of this.sectors) if (cell.isForgotten) cell.settle(cell.durable);
    if (!this.size.isForgotten) return;
    this.size.settle(this.size.durable);
    this.#zeroPast(this.size.current);
  }

  #zeroPast(size: number): void {
    const partial = size % SECTOR_BYTES;
    const first = Math.floor(size / SECTOR_BYTES);
    for (let index = first; index < this.sectors.length; index++) {
      const cell = this.sectors[index] as Cell<Uint8Array>;
      if (index > first || partial === 0) {
        if (cell.current !== ZERO_SECTOR) this.#change(cell, ZERO_SECTOR);
        continue;
      }
      this.#change(cell, zeroedFrom(cell.current, partial));
    }
  }

  #sector(index: number): Cell<Uint8Array> {
    while (this.sectors.length <= index) this.sectors.push(new Cell(ZERO_SECTOR));
    return this.sectors[index] as Cell<Uint8Array>;
  }

  #change<T>(cell: Cell<T>, value: T): void {
    cell.set(value);
    this.#markDirty(cell);
  }
}

export function zeroedFrom(sector: Uint8Array, start: number): Uint8Array {
  const copy = sector.slice();
  copy.fill(0, start);
  return copy;
}
