import type { LeaseStatus } from "../coordinator/contract";
import type { LocalCoordinator } from "../coordinator/local";
import type { Now } from "../kernel/time";
import {
  type BlockerReport,
  blockerReport,
  CONTENTION,
  type Contention,
  contentionFromFact,
} from "./contention";
import { isGuards } from "./life";
import { type GuardViolation, guardViolations } from "./violations";

/** Everything about the guard that a person may want to know. */
export interface Overview {
  readonly leases: readonly LeaseStatus[];
  readonly contentions: readonly Seen[];
  readonly violations: readonly GuardViolation[];
}

/** A contention, and whether what was in its way still is. */
export interface Seen {
  readonly contention: Contention;
  readonly isFree: boolean;
  readonly report: BlockerReport;
}

export async function overview(coordinator: LocalCoordinator): Promise<Overview> {
  const all = await coordinator.list();
  return {
    leases: all.filter(({ lease }) => isGuards(lease)),
    contentions: await seenContentions(coordinator),
    violations: (await guardViolations(coordinator)).map(([, violation]) => violation),
  };
}

export async function seenContentions(coordinator: LocalCoordinator): Promise<Seen[]> {
  const facts = await coordinator.facts({ kinds: [CONTENTION] });
  const now: Now = coordinator.store.now();
  const found: Seen[] = [];
  for (const { value } of facts.values()) {
    const contention = contentionFromFact(value);
    if (contention === null) continue;
    const { key, worktreeId } = contention;
    const around = await coordinator.overlapping([{ key, reach: "worktree", worktreeId }]);
    const inTheWay = around.find(
      ({ lease, standing }) => standing === "valid" && lease.sessionId !== contention.sessionId,
    );
    found.push({ contention, isFree: inTheWay === undefined, report: blockerReport(contention, now) });
  }
  return found.sort((a, b) => a.contention.deniedAt.wallMs - b.contention.deniedAt.wallMs);
}
