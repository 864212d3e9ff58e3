/**
 * sfc32 (Chris Doty-Humphrey's "small fast counter"), seeded from an integer and a stream name. Streams are
 * independent: drawing one more random byte in a process does not move the schedule, so a failing seed stays
 * close to its story while the program under test is being debugged.
 */
export class Prng {
  readonly #seed: number;
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, stream = "") {
    if (!Number.isSafeInteger(seed)) throw new RangeError(`a seed is an integer, not ${seed}`);
    this.#seed = seed;
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 0x1_0000_0000) | 0;
    this.#c = fnv1a(stream);
    for (let round = 0; round < 15; round++) this.next();
  }

  /** Depends on the seed and the name only, not on how much was drawn before. */
  stream(name: string): Prng {
    return new Prng(this.#seed, name);
  }

  /** An unsigned integer of 32 bits. */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** In [0, limit). */
  below(limit: number): number {
    return Math.floor((this.next() / 0x1_0000_0000) * limit);
  }

  /** In [low, high], both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /** Draws nothing when the answer is certain: a fault that is switched off leaves the story as it was. */
  chance(probability: number): boolean {
    if (probability <= 0) return false;
    if (probability >= 1) return true;
    return this.next() < probability * 0x1_0000_0000;
  }

  pick<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new RangeError("nothing to pick from");
    return choices[this.below(choices.length)] as T;
  }

  shuffle<T>(items: T[]): T[] {
    for (let last = items.length - 1; last > 0; last--) {
      const other = this.below(last + 1);
      [items[last], items[other]] = [items[other] as T, items[last] as T];
    }
    return items;
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at++) bytes[at] = this.next() >>> 24;
    return bytes;
  }

  hex(digits: number): string {
    let text = "";
    while (text.length < digits) text += this.next().toString(16).padStart(8, "0");
    return text.slice(0, digits);
  }
}

export function fnv1a(text: string, start = 0x811c9dc5): number {
  let hash = start | 0;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}
