import type { LeaseStatus } from "../../coordinator/contract";
import type { Workspace } from "../../coordinator/workspace";
import { remainingMs } from "../../kernel/time";
import {
  type BlockerReport,
  blockerReports,
  CONTENTION,
  type Contention,
  contentionFromFact,
} from "./contention";
import { holdersNow, holdersSince, isStillInTheWay, reachIn } from "./holders";
import { isGuards } from "./life";
import { isOver } from "./records";
import { type SeenViolation, seenViolations } from "./violations";

/** Everything about the guard that a person may want to know. */
export interface Overview {
  readonly leases: readonly LeaseStatus[];
  readonly contentions: readonly SeenContention[];
  /** Those that somebody still has to look at. */
  readonly violations: readonly SeenViolation[];
}

/** A contention as things stand now. */
export interface SeenContention {
  /** Its owner is whoever holds the file now; where nobody does, whoever held it last. */
  readonly contention: Contention;
  readonly isFree: boolean;
  /** The agent is over: nobody waits, and nobody can be told to go on. */
  readonly isOver: boolean;
  /** Until its one retry, or its next attempt, is due; 0 when it is. */
  readonly retryInMs: number;
  /** One for each file that is held. */
  readonly reports: readonly BlockerReport[];
}

export async function overview(workspace: Workspace): Promise<Overview> {
  return {
    leases: (await workspace.coordinator.list()).filter(({ lease }) => isGuards(lease)),
    contentions: await seenContentions(workspace),
    violations: (await seenViolations(workspace)).filter(({ isOpen }) => isOpen),
  };
}

/**
 * Those of agents that are still there, and of the others whatever they were stopped by and still is in the way. `gc` puts
 * the rest on record as settled.
 */
export async function seenContentions(workspace: Workspace): Promise<SeenContention[]> {
  const { coordinator } = workspace;
  const reach = reachIn(workspace);
  const { processes } = coordinator.store.platform;
  const facts = await coordinator.facts({ kinds: [CONTENTION] });
  const found: SeenContention[] = [];
  for (const { value } of facts.values()) {
    const recorded = contentionFromFact(value);
    if (recorded === null) continue;
    const hasEnded = await isOver(processes, recorded);
    if (hasEnded && !(await isStillInTheWay(coordinator, recorded, reach))) continue;
    const { key } = recorded;
    const owner = (await holdersNow(coordinator, { ...recorded, reach }, [key])).get(key);
    const last = owner ?? (await holdersSince(coordinator, recorded, reach)).at(-1)!;
    const contention = { ...recorded, owner: last };
    const now = coordinator.store.now();
    found.push({
      contention,
      isFree: owner === undefined,
      isOver: hasEnded,
      retryInMs: owner === undefined ? 0 : Math.max(0, remainingMs(recorded.retryAt, now)),
      reports: blockerReports(contention, now),
    });
  }
  return found.sort((a, b) => a.contention.deniedAt.wallMs - b.contention.deniedAt.wallMs);
}
