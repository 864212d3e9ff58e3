import { printable } from "../kernel/ids";
import { nameOf } from "../kernel/keys";
import type { Instant, Now } from "../kernel/time";
import { remainingMs } from "../kernel/time";
import { blockerReport, type Contention, isoOf, type Owner } from "./contention";
import type { Home } from "./home";
import type { Who } from "./who";

/** What a refused agent is told. */
export interface Words {
  readonly reason: string;
  readonly isHardStop: boolean;
  readonly code: "E_LOCK_CONFLICT" | "E_CONTENT_CHANGED" | "E_BLOCKED" | "E_POLICY";
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
  const { owner, retryAt } = contention;
  const left = Math.max(1, Math.ceil(remainingMs(retryAt, now) / 1000));
  return {
    isHardStop: false,
    code: "E_LOCK_CONFLICT",
    data: { files: [fileData(contention)], retry_at: isoOf(retryAt), too_early: true },
    reason: [
      `cotenant: ${subject(contention)} is held by ${owner.agentId}, and it is too early to try again.`,
      `retry_at: ${isoOf(retryAt)} (in ${left} s). This attempt did not count. Go on with other files meanwhile.`,
    ].join("\n"),
  };
}

/** A file that changed, and everybody who has held it since the denial: who of them it was, nobody knows. */
export interface Changed {
  readonly contention: Contention;
  readonly holders: readonly Owner[];
}

export function changedMeanwhile(changed: readonly Changed[]): Words {
  const agents = [...new Set(changed.flatMap(({ holders }) => holders.map(({ agentId }) => agentId)))];
  const last = changed.map(({ contention, holders }) => ({
    ...contention,
    owner: holders.at(-1) ?? contention.owner,
  }));
  return {
    isHardStop: false,
    code: "E_CONTENT_CHANGED",
    data: { files: last.map(fileData) },
    reason: [
      `cotenant: ${names(changed.map(({ contention }) => contention))} changed by ${agents.slice(0, MOST_NAMED).join(" or ")} while you waited: read it again, then write.`,
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

/** For people who see an agent stand still: what a hook waits for. Until when, whoever shows it says in their own form. */
export function waitsFor(waiting: readonly Contention[]): string {
  return `cotenant: ${files(waiting)} held by ${ownersOf(waiting)}; the agent waits`;
}

/** What an agent hears that has stood still in its hook, and may write now. */
export function hasWaited(waited: readonly Contention[], waitedMs: number, isTaken: boolean): string {
  const secs = Math.max(1, Math.round(waitedMs / 1000));
  const now = `${waited.length === 1 ? "it is" : "they are"} ${isTaken ? "yours" : "free"} now`;
  return `cotenant: waited ${secs} s for ${names(waited)}, which ${ownersOf(waited)} held; ${now}.`;
}

/** Of an agent that writes outside the worktree that it belongs to. */
export function outsideHome({
  what,
  root,
  home,
  who,
  isRefused,
}: {
  readonly what: string;
  readonly root: string;
  readonly home: Home;
  readonly who: Who;
  readonly isRefused: boolean;
}): Words {
  const [here, there] = [printable(root, 300), printable(home.root, 300)];
  const why = home.why === "claimed" ? "it holds a claim from there" : "it was started there";
  return {
    isHardStop: false,
    code: "E_POLICY",
    data: { what, worktree_root: root, home: home.root, setting: "guard.stay_in_worktree" },
    reason: [
      `cotenant: ${what} is for ${here}, but ${who.agentId} belongs to ${there} (${why}).${isRefused ? " Nothing was done." : ""}`,
      isRefused
        ? `Do it in ${there} instead. If it has to be done here, ask the person you work for: guard.stay_in_worktree says who may.`
        : `If that is not meant, take it back and do it in ${there} instead.`,
    ].join("\n"),
  };
}

function fileData({ path, owner }: Contention): Record<string, unknown> {
  return { path, owner: owner.agentId, lease_id: owner.leaseId };
}

function ownersOf(contentions: readonly Contention[]): string {
  const agents = [...new Set(contentions.map(({ owner }) => owner.agentId))];
  return agents.slice(0, MOST_NAMED).join(" and ");
}

function files(contentions: readonly Contention[]): string {
  return `${names(contentions)} ${contentions.length === 1 ? "is" : "are"}`;
}

const MOST_NAMED = 5;

/** What is in the way of a directory is mostly one file in it. */
function subject({ path, key, owner: { heldKey } }: Contention): string {
  if (heldKey === null || heldKey === key) return printable(path, 300);
  const held = printable(nameOf(heldKey), 300);
  const isInside = path === "." || nameOf(heldKey).startsWith(`${path}/`);
  return isInside ? `${held} (in ${printable(path, 300)})` : `${printable(path, 300)} (in ${held})`;
}

function names(contentions: readonly Contention[]): string {
  const shown = contentions.slice(0, MOST_NAMED).map(subject);
  const more = contentions.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}
