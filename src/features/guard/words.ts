import { printable } from "../../kernel/ids";
import { nameOf } from "../../kernel/keys";
import { some } from "../../kernel/printing";
import type { Instant, Now } from "../../kernel/time";
import { remainingMs } from "../../kernel/time";
import { blockerReports, type Contention, heldPath, isoOf, type Owner, ownersOf } from "./contention";
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
  const { retryAt, retrySecs } = denied[0]!;
  return {
    isHardStop: false,
    code: "E_LOCK_CONFLICT",
    data: { files: denied.flatMap(fileData), retry_at: isoOf(retryAt), retry_interval_secs: retrySecs },
    reason: [
      `cotenant: ${files(denied)} held by ${agentsOf(denied)}. Nothing was written.`,
      `retry_at: ${isoOf(retryAt)} (${retrySecs} s after the denial). Try the same write once more then; before that it is refused for as long as the file is held.`,
      "Go on with other files meanwhile, and do not write this one by another way.",
    ].join("\n"),
  };
}

export function tooEarly(contention: Contention, now: Instant): Words {
  const { retryAt } = contention;
  const left = Math.max(1, Math.ceil(remainingMs(retryAt, now) / 1000));
  return {
    isHardStop: false,
    code: "E_LOCK_CONFLICT",
    data: { files: fileData(contention), retry_at: isoOf(retryAt), too_early: true },
    reason: [
      `cotenant: ${heldNow(contention)}, and it is too early to try again.`,
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
    data: { files: last.flatMap(fileData) },
    reason: [
      `cotenant: ${names(changed.map(({ contention }) => contention))} changed by ${agents.slice(0, MOST_NAMED).join(" or ")} while you waited: read it again, then write.`,
      "You have the lease now; this is refused only once.",
    ].join("\n"),
  };
}

export function hardStop(blocked: readonly Contention[], now: Now): Words {
  const reports = blocked.flatMap((contention) => blockerReports(contention, now));
  return {
    isHardStop: true,
    code: "E_BLOCKED",
    data: { reports },
    reason: [
      `cotenant: ${stillHeldBy(blocked)} at the retry. Stop here and wait for instruction.`,
      ...reports.map((report) => JSON.stringify(report)),
      "Tell the person you work for. Do not skip this file, and do not write it by another way.",
      "When it is free: cotenant guard retry (cotenant guard report shows this again).",
    ].join("\n"),
  };
}

/** For people who see an agent stand still: what a hook waits for. Until when, whoever shows it says in their own form. */
export function waitsFor(waiting: readonly Contention[]): string {
  return `cotenant: ${files(waiting)} held by ${agentsOf(waiting)}; the agent waits`;
}

/** What an agent hears that has stood still in its hook, and may write now. */
export function hasWaited(waited: readonly Contention[], waitedMs: number, isTaken: boolean): string {
  const secs = Math.max(1, Math.round(waitedMs / 1000));
  const now = `${waited.length === 1 ? "it is" : "they are"} ${isTaken ? "yours" : "free"} now`;
  return `cotenant: waited ${secs} s for ${names(waited)}, which ${agentsOf(waited)} held; ${now}.`;
}

/** Of an agent that writes outside the worktree that it belongs to. */
export function outsideHome(what: string, root: string, home: Home, who: Who, isRefused: boolean): Words {
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

/** What is wanted, and who is in the way. */
type InTheWayOf = Pick<Contention, "path" | "key" | "owner">;

function fileData(contention: Contention): Record<string, unknown>[] {
  return ownersOf(contention).map((owner) => {
    const path = heldPath(contention, owner);
    const wanted = path === contention.path ? {} : { wanted: contention.path };
    return { path, ...wanted, owner: owner.agentId, lease_id: owner.leaseId };
  });
}

export function agentsOf(contentions: readonly InTheWayOf[]): string {
  const agents = [...new Set(contentions.flatMap(ownersOf).map(({ agentId }) => agentId))];
  return agents.slice(0, MOST_NAMED).join(" and ");
}

function files(contentions: readonly InTheWayOf[]): string {
  const isOne = contentions.length === 1 && heldPaths(contentions[0]!).length === 1;
  return `${names(contentions)} ${isOne ? "is" : "are"}`;
}

/** `src/a.ts (in src) is held by agent:x`. */
export function heldNow(contention: InTheWayOf): string {
  return `${files([contention])} held by ${agentsOf([contention])}`;
}

export function stillHeldBy(contentions: readonly InTheWayOf[]): string {
  return `${files(contentions)} still held by ${agentsOf(contentions)}`;
}

const MOST_NAMED = 5;

/** What is in the way of a directory is mostly one file in it. */
export function subject(contention: InTheWayOf): string {
  const { path, key, owner } = contention;
  const held = heldPaths(contention);
  const said = printable(path, 300);
  if (held.length > 1 || held[0] !== path) {
    const shown = held.map((one) => printable(one, 300));
    return `${some(shown, MOST_NAMED)} (in ${said})`;
  }
  return owner.heldKey === null || owner.heldKey === key
    ? said
    : `${said} (in ${printable(nameOf(owner.heldKey), 300)})`;
}

function heldPaths(contention: InTheWayOf): string[] {
  return [...new Set(ownersOf(contention).map((owner) => heldPath(contention, owner)))];
}

function names(contentions: readonly InTheWayOf[]): string {
  return some(contentions.map(subject), MOST_NAMED);
}
