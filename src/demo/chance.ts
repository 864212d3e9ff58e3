/**
 * Seeded choices (mulberry32): equal seeds and streams choose alike. Each agent has a stream of its own, so that
 * one that is killed early does not change what the others will do.
 */
export class Chance {
  #state: number;

  constructor(seed: number, stream = "") {
    this.#state = seed | 0;
    for (const char of stream) this.#state = Math.imul(this.#state ^ char.codePointAt(0)!, 0x01000193);
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  /** A whole number in [low, high]. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  happens(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.between(0, choices.length - 1)]!;
  }

  /** `count` different ones, in a new order. */
  some<T>(choices: readonly T[], count: number): T[] {
    const left = [...choices];
    const chosen: T[] = [];
    while (chosen.length < count && left.length > 0)
      chosen.push(...left.splice(this.between(0, left.length - 1), 1));
    return chosen;
  }
}
