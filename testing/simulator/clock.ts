const MICROS_PER_MS = 1000;

/**
 * The machine's clocks, in whole microseconds so that sums are exact. `elapsedMicros` never restarts: timers
 * and run bounds use it; a power cut restarts only what programs see.
 */
export class SimClock {
  #elapsedMicros = 0;
  #bootedAtMicros: number;
  #wallOffsetMicros: number;

  constructor(startWallMs: number, uptimeMs: number) {
    this.#bootedAtMicros = -toMicros(uptimeMs);
    this.#wallOffsetMicros = toMicros(startWallMs);
  }

  get elapsedMicros(): number {
    return this.#elapsedMicros;
  }

  get wallMicros(): number {
    return this.#elapsedMicros + this.#wallOffsetMicros;
  }

  wallMs(): number {
    return Math.floor(this.wallMicros / MICROS_PER_MS);
  }

  monotonicMs(): number {
    return Math.floor((this.#elapsedMicros - this.#bootedAtMicros) / MICROS_PER_MS);
  }

  advanceMicros(micros: number): void {
    if (micros < 0) throw new RangeError("time does not go back; jump the wall clock instead");
    this.#elapsedMicros += micros;
  }

  advanceTo(elapsedMicros: number): void {
    this.advanceMicros(Math.max(0, elapsedMicros - this.#elapsedMicros));
  }

  jumpWall(ms: number): void {
    this.#wallOffsetMicros += toMicros(ms);
  }

  reboot(uptimeMs: number): void {
    this.#bootedAtMicros = this.#elapsedMicros - toMicros(uptimeMs);
  }
}

export function toMicros(ms: number): number {
  return Math.round(ms * MICROS_PER_MS);
}
