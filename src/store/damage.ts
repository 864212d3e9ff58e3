import { CotenantError } from "../errors/cotenant-error";
import { ExtentIndex } from "../kernel/conflicts";
import { type Lease, type Slot, sameParty, slotOf } from "../kernel/lease";
import type { Damage, Replay } from "./replay";

/**
 * PROTOCOL 5: what of the damage writers must stop at, given the highest sequence known to be durable. Damage
 * above it is an unacknowledged tail, and none. A checkpoint was synced before it became part of the log, so
 * damage there is never a tail; and a log that ends before what was acknowledged is damaged, too, however
 * whole its lines are.
 */
export function acknowledgedDamage(replay: Replay, synced: number): Damage | null {
  const { damage, head } = replay;
  const acknowledged = Math.max(replay.highestSynced, synced);
  if (damage !== null) return damage.inCheckpoint || acknowledged >= damage.sequence ? damage : null;
  const inCheckpoint = !replay.isGrounded;
  const missing = { offset: head.offset, sequence: head.sequence + 1, inCheckpoint, isWholeLine: false };
  if (!replay.isGrounded) return { ...missing, why: "it does not begin with a whole checkpoint" };
  return acknowledged > head.sequence ? { ...missing, why: "lines are missing at its end" } : null;
}

export function corrupt(damage: Pick<Damage, "offset" | "sequence" | "why">, path: string): CotenantError {
  const { offset, sequence, why } = damage;
  return new CotenantError("E_LOG_CORRUPT", `the log is damaged at byte ${offset}: ${why}`, {
    data: { offset, sequence, path },
  });
}

/**
 * Of salvaged leases that could not all have stood at once, those that did. A grant ends what it replaces, so
 * of two that conflict the older one had ended, and the line that said so is among those that were lost.
 */
export function withoutReplaced(leases: readonly Lease[]): Map<Slot, Lease> {
  const all = new ExtentIndex(leases);
  const standing = new Set<Lease>();
  for (const lease of [...leases].sort((a, b) => b.fencingToken - a.fencingToken)) {
    const rivals = all.conflictingWith(lease).filter((other) => !sameParty(other, lease));
    if (!rivals.some((rival) => standing.has(rival))) standing.add(lease);
  }
  return new Map([...standing].map((lease) => [slotOf(lease), lease]));
}
