import type { Prng } from "../../../testing/simulator";

/** Text that has made trouble somewhere: keys of prototypes, ends of strings, numbers beyond numbers, other spellings. */
export const HOSTILE_TEXT: readonly string[] = [
  "__proto__", "constructor", "toString", "\u0000", "\u0001", "\u001b[31m", "\r\n", "\n", "\r", "\t", " ", "", "\ufeff",
  "\u2028", "\u202e", "\u200c", "\u200d", "\ud800", "\udfff", "\ufffd", "\u{1f4be}", "é", "e\u0301", "İ", "ſ", "K",
  "../", "..", "./", "/", "//", "\\", ":", "%2e%2e", "%", "~", "git~1", ".git", ".GIT", ".g\u200cit", ".git ", ".git.",
  ".git::$INDEX_ALLOCATION", ":$I30:$INDEX_ALLOCATION", "-", "--", "=", "'", '"', "`", "$(id)", "*", "?", "|", "<", "@{",
  "-1", "0", "00", "1e3", "1e400", "0x10", "1.5", "NaN", "Infinity", "9007199254740993", "99999999999999999999", "٣",
  "null", "true", "{}", "[]", "wt:", "file:", "dir:.", "agent:", "refs/heads/", ".lock", "meta.json", "meta@", "%deep",
]; // biome-ignore format: a list of ingredients

const HOSTILE_NUMBERS = [
  0, -0, -1, 1, 2, 1.5, 255, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 49, 2 ** 51, 2 ** 53 - 2, 2 ** 53 - 1, 2 ** 53, 1e21, 1e308, -1e308,
]; // biome-ignore format: a list of ingredients

/** Of the right type, in the wrong place. */
const PLAUSIBLE_TEXT = [
  "1970-01-01T00:00:00.000Z", "+275760-09-13T00:00:00.000Z", "-271821-04-20T00:00:00.000Z", "2026-02-30", "soon", "0",
  "file:a", "dir:.", "file:../../x", "file:a//b", "dir:", "file:.git/config", "ref:refs/heads/main", "resource: ", "scope:x",
  "worktree:..", "issue:x", "agent:a", "human:h", "default", "wt:00000001", "wt:zzzzzzzz", "claim.acquired", "claim.evicted",
  "claim.unheard", "log.checkpoint", "ttl", "process", "worktree", "repository", "forced", "released", "transferred",
  "01ARZ3NDEKTSV4RRFFQ69G5FAV", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "x".repeat(70_000),
]; // biome-ignore format: a list of ingredients

/** Makes bad input of good input; the same generator makes the same. */
export class Mutator {
  readonly prng: Prng;

  constructor(prng: Prng) {
    this.prng = prng;
  }

  /** One to four edits of bytes, as disks, editors and careless copies make them. */
  bytes(seed: Uint8Array): Uint8Array {
    let bytes: Uint8Array = seed.slice();
    for (let edits = this.prng.between(1, 4); edits > 0; edits--) bytes = this.#editBytes(bytes);
    return bytes;
  }

  text(seed: string): string {
    let text = seed;
    for (let edits = this.prng.between(1, 4); edits > 0; edits--) text = this.#editText(text);
    return text;
  }

  /** A JSON document with some values, keys or types changed. Answers text: not every number is a value. */
  json(seed: unknown): string {
    let value = structuredClone(seed);
    for (let edits = this.prng.between(1, 3); edits > 0; edits--)
      value = this.prng.chance(0.6) ? this.#editLeaf(value) : this.#editValue(value, 0);
    const text = JSON.stringify(value) ?? "null";
    if (this.prng.chance(0.03))
      return text.replace(/"[^"]*"(?=[,}\]])/, () => nested(this.prng.pick([10_000, 200_000])));
    if (!this.prng.chance(0.08)) return text;
    const numbers = [...text.matchAll(/(?<=[:,[])-?\d+(?:\.\d+)?/g)];
    if (numbers.length === 0) return text;
    const { index, 0: found } = this.prng.pick(numbers);
    return `${text.slice(0, index)}${this.prng.pick(["1e400", "-1e400", "1e-400"])}${text.slice(index + found.length)}`;
  }

  hostileText(): string {
    const { prng } = this;
    if (prng.chance(0.05))
      return prng.pick(["x", "/", "é", "\\", " "]).repeat(prng.pick([200, 256, 2_049, 70_000]));
    let text = "";
    for (let pieces = prng.between(1, 4); pieces > 0; pieces--) text += prng.pick(HOSTILE_TEXT);
    return text;
  }

  hostileValue(): unknown {
    const { prng } = this;
    switch (prng.below(8)) {
      case 0:
        return null;
      case 1:
        return prng.chance(0.5);
      case 2:
      case 3:
        return prng.pick(HOSTILE_NUMBERS);
      case 4:
        return prng.pick([[], {}, [null], [[]], { __proto__: null }]);
      case 5:
        return deep(prng.pick([3, 100, 1_000]));
      case 6:
        return JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
      default:
        return this.hostileText();
    }
  }

  #editBytes(bytes: Uint8Array): Uint8Array {
    const { prng } = this;
    const at = prng.below(bytes.length + 1);
    const to = Math.min(bytes.length, at + prng.pick([1, 2, 16, 512, 4096]));
    const without = (from: number, until: number) => join(bytes.subarray(0, from), bytes.subarray(until));
    switch (prng.below(11)) {
      case 0:
      case 1: {
        const flipped = bytes.slice();
        if (at < bytes.length) flipped[at] = bytes[at]! ^ (1 << prng.below(8));
        return flipped;
      }
      case 2:
        return bytes.slice(0, at);
      case 3:
        return without(at, to);
      case 4: // what a power cut leaves of a page
        return bytes.slice().fill(0, at, to);
      case 5:
        return join(bytes.subarray(0, to), bytes.subarray(at));
      case 6:
        return join(bytes.subarray(0, at), encode(this.hostileText()), bytes.subarray(at));
      case 7: // not UTF-8
        return join(bytes.subarray(0, at), prng.bytes(prng.between(1, 8)), bytes.subarray(at));
      case 8:
        return prng.chance(0.5) ? join(Uint8Array.of(0xef, 0xbb, 0xbf), bytes) : crlf(bytes);
      case 9:
        return join(bytes, prng.chance(0.5) ? new Uint8Array(prng.below(5_000)) : prng.bytes(prng.below(64)));
      default:
        return join(bytes.subarray(at), bytes.subarray(0, at));
    }
  }

  #editText(text: string): string {
    const { prng } = this;
    const at = prng.below(text.length + 1);
    const to = Math.min(text.length, at + prng.between(1, 6));
    switch (prng.below(7)) {
      case 0:
        return text.slice(0, at) + text.slice(to);
      case 1:
        return text.slice(0, to) + text.slice(at);
      case 2:
        return prng.chance(0.5) ? text.toUpperCase() : text.normalize(prng.pick(["NFD", "NFC", "NFKC"]));
      case 3:
        return (
          text.slice(0, at) +
          String.fromCharCode(prng.below(prng.pick([0x80, 0x100, 0x10000]))) +
          text.slice(to)
        );
      default:
        return text.slice(0, at) + this.hostileText() + text.slice(at);
    }
  }

  /** Well-formed and absurd: any one number or text becomes another. */
  #editLeaf(value: unknown): unknown {
    const leaves = leavesOf(value);
    if (leaves.length === 0) return this.hostileValue();
    const { holder, name } = this.prng.pick(leaves);
    const old = holder[name];
    if (typeof old === "number") holder[name] = this.prng.pick(HOSTILE_NUMBERS);
    else if (typeof old === "string" && this.prng.chance(0.5)) holder[name] = this.prng.pick(PLAUSIBLE_TEXT);
    else if (typeof old === "string") holder[name] = this.text(old);
    else holder[name] = this.prng.pick<unknown>([null, true, false, 0, "", {}]);
    return value;
  }

  #editValue(value: unknown, depth: number): unknown {
    const { prng } = this;
    if (typeof value !== "object" || value === null || (depth > 0 && prng.chance(0.15)))
      return this.hostileValue();
    if (Array.isArray(value)) return this.#editList([...value], depth);
    const record = value as Record<string, unknown>;
    const names = Object.keys(record);
    if (names.length === 0) return this.hostileValue();
    const name = prng.pick(names);
    const { [name]: old, ...rest } = record;
    if (prng.chance(0.12)) return rest;
    // As a parser makes it: a key of the object's own, and no prototype.
    if (prng.chance(0.05))
      return JSON.parse(`{"__proto__":{"polluted":1},${JSON.stringify(record).slice(1)}`);
    return { ...record, [name]: this.#editValue(old, depth + 1) };
  }

  #editList(list: unknown[], depth: number): unknown[] {
    const { prng } = this;
    if (list.length === 0) return [this.hostileValue()];
    const at = prng.below(list.length);
    switch (prng.below(4)) {
      case 0:
        list.splice(at, 1);
        return list;
      case 1:
        return [...list, structuredClone(list[at])];
      default:
        list[at] = this.#editValue(list[at], depth + 1);
        return list;
    }
  }
}

type Holder = Record<string | number, unknown>;

/** Where every value that is no list and no object stands. */
function leavesOf(value: unknown, found: { holder: Holder; name: string }[] = []): typeof found {
  if (typeof value !== "object" || value === null) return found;
  for (const [name, inner] of Object.entries(value)) {
    if (typeof inner === "object" && inner !== null) leavesOf(inner, found);
    else found.push({ holder: value as Holder, name });
  }
  return found;
}

function deep(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

/** Deeper than any stack, and no value that could be made into text again. */
function nested(levels: number): string {
  return "[".repeat(levels) + "]".repeat(levels);
}

function crlf(bytes: Uint8Array): Uint8Array {
  const found: number[] = [];
  for (const byte of bytes) found.push(...(byte === 10 ? [13, 10] : [byte]));
  return Uint8Array.from(found);
}

export function join(...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(parts));
}

export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
