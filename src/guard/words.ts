import { printable } from "../kernel/ids";
import type { Instant, Now } from "../kernel/time";
import { remainingMs } from "../kernel/time";
import { blockerReport, type Contention, isoOf } from "./contention";

/** What a refused agent is told. */
export interface Words {
  readonly reason: string;
  readonly isHardStop: boolean;
  readonly code: "E_LOCK_CONFLICT" | "E_CONTENT_CHANGED" | "E_BLOCKED";
  /** For programs. */
  readonly data: Readonly<Record<string, unknown>>;
}

export function deniedFirst(denied: readonly Contention[]): Words {
  const [first] = denied;
  const { owner, retryAt, retrySecs } = first!;
  return {
    isHardStop: false,
    code: "E_LOCK_CONFLICT",
    data: { files: denied.map(fileData), retry_at: isoOf(retryAt), retry_interval_secs: retrySecs },
    reason: [
      `cotenant: ${files(denied)} held by ${owner.agentId}. Nothing was written.`,
      `retry_at: ${isoOf(retryAt)} (${retrySecs} s after the denial). Try the same write once more then; before that it is refused for as long as the file is held.`,
      "Go on with other files meanwhile, and do not write this one by another way.",
    ].join("\n"),
  };
}

export function tooEarly(contention: Contention, now: Instant): Words {
  const { path, owner, retryAt } = contention;
  const left = Math.max(1, Math.ceil(remainingMs(retryAt, now) / 1000));
  return {
    isHardStop: false,
    code: "E_LOCK_CONFLICT",
    data: { files: [fileData(contention)], retry_at: isoOf(retryAt), too_early: true },
    reason: [
      `cotenant: ${printable(path, 300)} is held by ${owner.agentId}, and it is too early to try again.`,
      `retry_at: ${isoOf(retryAt)} (in ${left} s). This attempt did not count. Go on with other files meanwhile.`,
    ].join("\n"),
  };
}

export function changedMeanwhile(changed: readonly Contention[]): Words {
  return {
    isHardStop: false,
    code: "E_CONTENT_CHANGED",
    data: { files: changed.map(fileData) },
    reason: [
      `cotenant: ${names(changed)} changed by ${changed[0]!.owner.agentId} while you waited: read it again, then write.`,
      "You have the lease now; this is refused only once.",
    ].join("\n"),
  };
}

export function hardStop(blocked: readonly Contention[], now: Now): Words {
  const reports = blocked.map((contention) => blockerReport(contention, now));
  return {
    isHardStop: true,
    code: "E_BLOCKED",
    data: { reports },
    reason: [
      `cotenant: ${files(blocked)} still held by ${blocked[0]!.owner.agentId} at the retry. Stop here and wait for instruction.`,
      ...reports.map((report) => JSON.stringify(report)),
      "Tell the person you work for. Do not skip this file, and do not write it by another way.",
      "When it is free: cotenant guard retry (cotenant guard report shows this again).",
    ].join("\n"),
  };
}

function fileData({ path, owner }: Contention): Record<string, unknown> {
  return { path, owner: owner.agentId, lease_id: owner.leaseId };
}

function files(contentions: readonly Contention[]): string {
  return `${names(contentions)} ${contentions.length === 1 ? "is" : "are"}`;
}

const MOST_NAMED = 5;

function names(contentions: readonly Contention[]): string {
  const shown = contentions.slice(0, MOST_NAMED).map(({ path }) => printable(path, 300));
  const more = contentions.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}
