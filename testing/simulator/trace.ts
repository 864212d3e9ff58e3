import { fnv1a } from "./prng";

export interface TraceEntry {
  readonly step: number;
  readonly elapsedMs: number;
  readonly process: string;
  readonly what: string;
  readonly result: string;
}

/** The last operations of a world, for printing a failing story, and a fingerprint of all of them. */
export class Trace {
  readonly #limit: number;
  #entries: TraceEntry[] = [];
  #step = 0;
  #hash = fnv1a("");

  constructor(limit: number) {
    this.#limit = limit;
  }

  get step(): number {
    return this.#step;
  }

  /** Equal for two worlds exactly when all their operations and results were, also those no longer kept. */
  get fingerprint(): string {
    return `${this.#step}-${(this.#hash >>> 0).toString(16).padStart(8, "0")}`;
  }

  record(elapsedMicros: number, process: string, what: string, result: string): void {
    this.#step++;
    this.#hash = fnv1a(
      result,
      fnv1a(what, fnv1a(process, Math.imul(this.#hash ^ elapsedMicros, 0x01000193))),
    );
    if (this.#limit === 0) return;
    this.#entries.push({ step: this.#step, elapsedMs: elapsedMicros / 1000, process, what, result });
    // Halving now and then costs less than shifting at every step.
    if (this.#entries.length > this.#limit * 2) this.#entries = this.#entries.slice(-this.#limit);
  }

  entries(): readonly TraceEntry[] {
    return this.#entries.slice(-this.#limit);
  }

  toString(): string {
    return this.entries()
      .map((e) => `${e.step} ${e.elapsedMs.toFixed(3)}ms ${e.process}: ${e.what} = ${e.result}`)
      .join("\n");
  }
}

export function summarize(value: unknown): string {
  if (value === undefined) return "ok";
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (Array.isArray(value)) return `${value.length} names`;
  if (typeof value === "object" && value !== null) {
    if ("inode" in value && "size" in value) return `#${value.inode} size ${value.size}`;
    if ("pid" in value) return `pid ${value.pid}`;
    return "object";
  }
  return String(value);
}
