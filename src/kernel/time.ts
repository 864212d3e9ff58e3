/**
 * An instant is kept twice: the wall clock for people, and a monotonic reading for the check. Monotonic
 * readings compare only within one clock, that is one boot and one time namespace.
 */
export interface Instant {
  readonly wallMs: number;
  readonly clockId: string;
  readonly monotonicMs: number;
}

/** `now`, and the machine it was read on: rules across boots need to know whether it is the same machine. */
export interface Now extends Instant {
  readonly machineId: string;
}

/** Across boots only the wall clock is left; it may be off by a little. */
const OTHER_BOOT_GRACE_MS = 2_000;

export function instantOf(now: Now): Instant {
  return { wallMs: now.wallMs, clockId: now.clockId, monotonicMs: now.monotonicMs };
}

export function later(instant: Instant, byMs: number): Instant {
  return {
    wallMs: instant.wallMs + byMs,
    clockId: instant.clockId,
    monotonicMs: instant.monotonicMs + byMs,
  };
}

export function elapsedMs(since: Instant, now: Instant): number {
  return since.clockId === now.clockId ? now.monotonicMs - since.monotonicMs : now.wallMs - since.wallMs;
}

/** Milliseconds until `deadline`, negative once it has passed; exact within one clock, cautious across clocks. */
export function remainingMs(deadline: Instant, now: Instant): number {
  return deadline.clockId === now.clockId
    ? deadline.monotonicMs - now.monotonicMs
    : deadline.wallMs + OTHER_BOOT_GRACE_MS - now.wallMs;
}

/** The boot part of a clock id, without the time namespace. */
export function bootOf(clockId: string): string {
  const plus = clockId.indexOf("+");
  return plus === -1 ? clockId : clockId.slice(0, plus);
}

/** The one that a Linux machine boots with; every other one may have clocks that were set ahead or back. */
const INITIAL_TIME_NAMESPACE = "4026531834";

/** Whether the monotonic reading is the machine's uptime. */
export function isUptime({ clockId }: Pick<Instant, "clockId">): boolean {
  const namespace = clockId.slice(bootOf(clockId).length + 1);
  return namespace === "" || namespace === INITIAL_TIME_NAMESPACE;
}

export function makeClockId(bootId: string, timeNamespace: string): string {
  return timeNamespace === "" ? bootId : `${bootId}+${timeNamespace}`;
}
