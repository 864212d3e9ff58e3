import type { Circumstances } from "./circumstances";
import { standingOf } from "./circumstances";
import type { Actor } from "./commands";
import type { Extent } from "./conflicts";
import { type Fact, type FactName, type FactRecord, factName } from "./facts";
import { printable } from "./ids";
import { isInside, isPathKey, kindOf, pathOf } from "./keys";
import { belongsTo, type Lease } from "./lease";
import { type Refusal, refuse } from "./refusal";
import type { View } from "./view";

/** The only fact of its kind: there while a person has stopped all new grants. */
export const PAUSE_FACT = factName("pause", "repository");

/** Who has stopped new grants, since when, and why. */
export interface Pause {
  readonly agentId: string;
  /** RFC 3339. */
  readonly at: string;
  readonly reason: string;
}

export function pauseToFact({ agentId, at, reason }: Pause): Fact {
  return { agent_id: agentId, at, reason };
}

/** Also one whose fields cannot be read stops grants: only `resume` ends a pause. */
export function pauseIn(facts: ReadonlyMap<FactName, FactRecord> | undefined): Pause | null {
  const value = facts?.get(PAUSE_FACT)?.value;
  if (value === undefined) return null;
  const { agent_id: agentId, at, reason } = value;
  return { agentId: String(agentId ?? ""), at: String(at ?? ""), reason: String(reason ?? "") };
}

export function pauseText({ agentId, at, reason }: Pause): string {
  return `paused by ${printable(agentId)} since ${printable(at, 40)}: ${printable(reason, 300)}`;
}

export function pauseData({ agentId, at, reason }: Pause): Record<string, unknown> {
  return { paused_by: agentId, paused_at: at, reason };
}

/** Refuses what would be new. */
export function refusePaused(
  view: View,
  wants: readonly Extent[],
  actor: Actor,
  at: Circumstances,
): Refusal | null {
  const pause = pauseIn(at.facts);
  if (pause === null || wants.length === 0) return null;
  const own = [...view.leases.values()].filter(
    (lease) => belongsTo(lease, actor) && standingOf(lease, at) === "valid",
  );
  if (notWithin(own, wants).length === 0) return null;
  return refuse("E_PAUSED", pausedMessage(pause), { data: pauseData(pause) });
}

export function pausedMessage(pause: Pause): string {
  return `nothing new is granted: ${pauseText(pause)}`;
}

/** What none of these leases covers. A path in a directory that is held is: whoever holds it may go on writing there. */
export function notWithin<E extends Extent>(held: readonly Lease[], wants: readonly E[]): E[] {
  return wants.filter((want) => !held.some((lease) => covers(lease, want)));
}

function covers({ key, reach }: Lease, want: Extent): boolean {
  if (reach === "worktree" && want.reach === "repository") return false;
  if (key === want.key) return true;
  return kindOf(key) === "dir" && isPathKey(want.key) && isInside(pathOf(want.key), pathOf(key));
}
