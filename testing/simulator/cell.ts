/** A value as it was when a sync began; `persist` writes it, unless something newer was written already. */
export interface Capture {
  persist(): void;
}

/** A cell seen without its value's type. */
export interface AnyCell {
  readonly isDirty: boolean;
  capture(): Capture;
  forget(): void;
}

/**
 * One thing that a disk keeps or loses as a whole: a sector, a file's size, a directory entry. `current` is
 * the page cache, which all processes see; `durable` is the platter.
 */
export class Cell<T> implements AnyCell {
  #current: T;
  #durable: T;
  #version = 0;
  #durableVersion = 0;
  #cleanVersion = 0;

  constructor(initial: T) {
    this.#current = initial;
    this.#durable = initial;
  }

  get current(): T {
    return this.#current;
  }

  get durable(): T {
    return this.#durable;
  }

  /** Waiting to be written. */
  get isDirty(): boolean {
    return this.#version > this.#cleanVersion;
  }

  /** Never written, and the kernel has given up on it: a sync that failed leaves such cells. */
  get isForgotten(): boolean {
    return !this.isDirty && this.#durableVersion < this.#version;
  }

  set(value: T): void {
    this.#current = value;
    this.#version++;
  }

  capture(): Capture {
    const value = this.#current;
    const version = this.#version;
    return { persist: () => this.#persist(value, version) };
  }

  /** What a failed sync does to a page: no longer dirty, so no later sync writes it. */
  forget(): void {
    this.#cleanVersion = this.#version;
  }

  /** After a power cut, or when the cache is dropped: there is only one value left. */
  settle(value: T): void {
    this.#current = value;
    this.#durableVersion = this.#version;
    this.#cleanVersion = this.#version;
    this.#replaceDurable(value);
  }

  protected onDurableChange(_from: T, _to: T): void {}

  // Two syncs may finish in either order: the older one must not bring its older value back.
  #persist(value: T, version: number): void {
    if (version > this.#cleanVersion) this.#cleanVersion = version;
    if (version <= this.#durableVersion) return;
    this.#durableVersion = version;
    this.#replaceDurable(value);
  }

  #replaceDurable(value: T): void {
    const before = this.#durable;
    this.#durable = value;
    if (before !== value) this.onDurableChange(before, value);
  }
}
