import { keysConflict } from "../../kernel/conflicts";
import type { Lease } from "../../kernel/lease";
import { TreeNames } from "../../store/tree-names";
import type { Checking } from "./check";
import { type Contention, contentionName } from "./contention";
import { REFUSALS, type Refusal } from "./pass";
import { basisOf, beingOf, leave, textOf } from "./passing";
import type { Place } from "./place";
import type { Target } from "./target";
import { othersOn, wantingIn } from "./yielding";

/**
 * Lets the next attempt, if it comes too early, be refused quickly. Only where whoever is in the way holds the file for as
 * long as its process lives, here: then nothing else can free it without a word in the log.
 */
export async function writeRefusal(
  checking: Checking,
  place: Place,
  targets: readonly Target[],
  contention: Contention,
): Promise<void> {
  const [target] = targets;
  if (targets.length !== 1 || target?.mode !== "take" || contention.state !== "waiting") return;
  try {
    const lease = await inTheWayOf(place, target);
    if (lease === null || !isForLife(place, lease)) return;
    const basis = await basisOf(checking, place, target, lease);
    if (basis === null) return;
    const { digest } = place.world.platform;
    const name = contentionName(digest, place.session.actor, target.key);
    const fact = await textOf(place, new TreeNames(place.coordinator.store.layout, digest).fact(name));
    if (fact === null || !says(fact.text, contention)) return;
    // While the repository is paused, that is the reason to name.
    const empty = [`${place.coordinator.store.layout.index}/facts/pause`];
    const refusal: Refusal = { ...basis, empty, contention, fact, owner: beingOf(lease.holder) };
    await leave(place, REFUSALS, refusal);
  } catch {
    // Then the next one takes as long as this.
  }
}

async function inTheWayOf(place: Place, target: Target): Promise<Lease | null> {
  const others = await othersOn(place.coordinator, wantingIn(place), [target.key]);
  const held = others.find(
    ({ lease, standing }) => standing === "valid" && keysConflict(target.key, lease.key),
  );
  return held?.lease ?? null;
}

/** Nothing ends it by itself but the death of a process that can be seen from here; and no subagent's, who gives way. */
function isForLife({ who, world }: Place, lease: Lease): boolean {
  const { machineId, bootId, pidNamespace } = world.platform.processes.self();
  const { holder } = lease;
  return (
    lease.bind === "process" &&
    lease.expiresAt === null &&
    lease.stopIdleAt === null &&
    lease.sessionId !== who.sessionId &&
    holder.startTime !== "" &&
    holder.machineId === machineId &&
    holder.bootId === bootId &&
    holder.pidNamespace === pidNamespace
  );
}

function says(text: string, { retryAt, state }: Contention): boolean {
  return text.includes(`"state":"${state}"`) && text.includes(`"monotonicMs":${retryAt.monotonicMs}`);
}
