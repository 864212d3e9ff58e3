import type { LeaseStatus } from "../../coordinator/contract";
import { approveCommand, proposalText, standingText } from "../../coordinator/proposals";
import type { MissedDaemon, Workspace } from "../../coordinator/workspace";
import type { Escalated } from "../../kernel/escalation";
import { type LeaseId, printable } from "../../kernel/ids";
import type { Holder, Lease } from "../../kernel/lease";
import type { Pause } from "../../kernel/pause";
import type { Policy } from "../../kernel/policy";
import { count, duration, shellWord } from "../../kernel/printing";
import type { Proposal } from "../../kernel/proposals";
import { inTheWay, type Ticket } from "../../kernel/tickets";
import { elapsedMs, type Instant, type Now } from "../../kernel/time";
import { endingCommand } from "../../kernel/words";
import type { Damage } from "../../store/replay";
import { type PendingGate, passCommand } from "../gates/results";
import type { SeenContention } from "../guard/overview";
import type { SeenViolation } from "../guard/violations";
import { heldNow } from "../guard/words";
import type { HooksWord } from "../hooks/installation/upkeep";
import { objectionThen, type Violation } from "../hooks/violations";
import type { Homeless } from "../worktrees/homeless";
import { ofGoneWorktrees, stale, usedTwice, withoutHolder } from "./holder-findings";

/** Something that does not mend itself, and what can safely be done about it. */
export interface Finding {
  readonly code: string;
  readonly message: string;
  readonly next: string;
}

/** An issue whose holder went away without a release. */
interface LeftIssue {
  readonly shortId: string;
  readonly title: string;
  /** By whom, when, and where its changes are. */
  readonly words: string;
}

/** An issue that is done but for its gates. */
interface GatedIssue {
  readonly shortId: string;
  readonly title: string;
  /** The first of them. */
  readonly gate: PendingGate;
  readonly others: number;
}

/** What there is to look at. */
export interface Situation {
  /** Who has stopped new grants. */
  readonly pause: Pause | null;
  /** Evictions that wait for the approval of others. */
  readonly proposals: readonly Proposal[];
  /** Lapsed ones included. */
  readonly leases: readonly LeaseStatus[];
  readonly waiters: readonly Ticket[];
  readonly damage: Damage | null;
  readonly now: Now;
  /** Commits that were made around the hooks. */
  readonly violations: readonly Violation[];
  /** What is held and contended for too long. */
  readonly escalated: readonly Escalated[];
  /** Who was denied a file. */
  readonly contentions: readonly SeenContention[];
  /** What shell commands changed under somebody else's lease. */
  readonly trespasses: readonly SeenViolation[];
  /** Issues that somebody has left, the most urgent first. */
  readonly left: readonly LeftIssue[];
  /** Issues that are done but for their gates. */
  readonly gated: readonly GatedIssue[];
  /** Claims that the ledger has not confirmed. */
  readonly provisional: readonly LeaseStatus[];
  /** There is one, and this machine has never read it. */
  readonly isLedgerUnread: boolean;
  /** Leases of worktrees that are not there any more. */
  readonly homeless: readonly Homeless[];
  /** Live processes that use one name, none of them started by another. */
  readonly strangers: ReadonlyMap<string, readonly Holder[]>;
  /** Leases without expiry whose holder's process has ended. */
  readonly gone: ReadonlySet<LeaseId>;
  /** Hooks that were wanted and are gone. */
  readonly hooks: HooksWord | null;
  /** What somebody counts on a daemon for, while none is running. */
  readonly missedDaemon: MissedDaemon | null;
}

export function needsAPerson(workspace: Workspace, scene: Situation): Finding[] {
  const valid = scene.leases.filter(({ standing }) => standing === "valid");
  const found: readonly (Finding | null | readonly Finding[])[] = [
    paused(scene.pause),
    damaged(scene.damage),
    toApprove(scene.proposals, workspace.config.policy),
    untrusted(workspace),
    unasked(workspace, scene.isLedgerUnread),
    stale(valid, scene.gone),
    withoutHolder(valid, scene.gone),
    ofGoneWorktrees(scene.homeless),
    unlogged(scene),
    usedTwice(valid, scene),
    heldTooLong(scene),
    waitingLong(valid, scene),
    hooksGone(scene.hooks),
    withoutDaemon(scene.missedDaemon),
    violated(scene.violations),
    unconfirmed(scene.provisional),
    blocked(scene.contentions),
    trespassed(scene.trespasses),
    leftWork(scene.left),
    gatesToPass(scene.gated),
  ];
  return found.flatMap((one) => one ?? []);
}

function paused(pause: Pause | null): Finding | null {
  if (pause === null) return null;
  return {
    code: "repository_paused",
    message: `nothing new is granted until a person resumes: ${printable(pause.agentId)} has paused the repository`,
    next: "cotenant resume",
  };
}

function toApprove(proposals: readonly Proposal[], policy: Policy): Finding[] {
  return proposals.map((proposal) => ({
    code: "eviction_proposed",
    message: `${proposalText(proposal)} (${standingText(proposal, policy)})`,
    next: `whoever agrees, and is not ${proposal.proposedBy}, runs: ${approveCommand(proposal)}`,
  }));
}

const MOST_LISTED = 10;

/** The first of many findings of one kind; the rest is counted. */
function firstOf<T>(
  all: readonly T[],
  {
    code,
    told,
    rest,
  }: {
    readonly code: string;
    told(one: T): Omit<Finding, "code">;
    rest(more: string): Omit<Finding, "code">;
  },
): Finding[] {
  const more = all.length - MOST_LISTED;
  const findings = all.slice(0, MOST_LISTED).map(told);
  if (more > 0) findings.push(rest(count(more, "more issue")));
  return findings.map((finding) => ({ code, ...finding }));
}

/** Until somebody takes it. */
function leftWork(left: readonly LeftIssue[]): Finding[] {
  return firstOf(left, {
    code: "work_left",
    told: ({ shortId, title, words }) => ({
      message: `${shortId} "${printable(title, 80)}" was ${words}`,
      next: `take it over: cotenant claim acquire ${shortId}`,
    }),
    rest: (more) => ({ message: `and ${more} that somebody has left`, next: "cotenant query available" }),
  });
}

/** Nobody is told otherwise: whoever did the work has given it back. */
function gatesToPass(gated: readonly GatedIssue[]): Finding[] {
  return firstOf(gated, {
    code: "gate_pending",
    told: ({ shortId, title, gate, others }) => ({
      message: `${shortId} "${printable(title, 80)}" is done but for gate ${printable(gate.key, 80)}${others === 0 ? "" : ` and ${count(others, "other gate")}`}`,
      next: passCommand(shortId, gate),
    }),
    rest: (more) => ({ message: `and ${more} with gates to pass`, next: "cotenant query blocked" }),
  });
}

function hooksGone(word: HooksWord | null): Finding | null {
  if (word === null || word.next === null) return null;
  return { code: "hooks_gone", message: word.message, next: word.next };
}

function withoutDaemon(missed: MissedDaemon | null): Finding | null {
  return missed === null ? null : { code: "daemon_missing", message: missed.message, next: missed.next };
}

function unconfirmed(provisional: readonly LeaseStatus[]): Finding | null {
  const [first] = provisional;
  if (first === undefined) return null;
  const others = provisional.length === 1 ? "" : `, and ${count(provisional.length - 1, "other")}`;
  return {
    code: "claims_provisional",
    message: `the claim of ${first.lease.agentId} on ${printable(first.lease.key)}${others} is provisional: other machines do not know of it`,
    next: "run 'cotenant sync --reconcile' when the remote can be reached",
  };
}

function violated(violations: readonly Violation[]): Finding[] {
  return violations.map(({ commit, agentId, at, objections: [first] }) => ({
    code: "commit_violation",
    message: `${commit.slice(0, 12)} was committed by ${printable(agentId)} around the hooks at ${printable(at, 40)}${first === undefined ? "" : `: ${objectionThen(first)}`}`,
    next: `look at it ('git show ${commit.slice(0, 12)}'), and tell whoever it concerns; it is shown for a week, or until it is taken back or pushed`,
  }));
}

/** Nothing is skipped in silence, and only a person can say how to go on (docs/GUARD.md). */
function blocked(contentions: readonly SeenContention[]): Finding[] {
  return contentions
    .filter(({ contention }) => contention.state !== "waiting")
    .map(({ contention, contention: { agentId, path, owner }, isFree, isOver }) => ({
      code: "agent_blocked",
      message: isOver
        ? `${agentId} was still blocked when it ended: ${heldNow(contention)}`
        : isFree
          ? `${agentId} may go on: ${printable(path, 200)} is free`
          : `${agentId} waits for instruction: ${heldNow(contention)}`,
      next: isOver
        ? `once ${owner.agentId} has committed or stopped, see to it that what ${agentId} was to do there is done`
        : isFree
          ? `tell ${agentId} to go on`
          : `let ${owner.agentId} commit or stop; then 'cotenant guard retry'`,
    }));
}

function trespassed(trespasses: readonly SeenViolation[]): Finding[] {
  return trespasses.map(({ id, violation: { path, agentId, owner, at } }) => ({
    code: "lease_trespassed",
    message: `${printable(path, 200)} was changed by a command of ${agentId} under the lease of ${owner} (${at})`,
    next: `let ${owner} look at it ('git diff -- ${shellWord(path)}') before it commits; once somebody has: cotenant guard settle ${id}`,
  }));
}

function damaged(damage: Damage | null): Finding | null {
  if (damage === null) return null;
  return {
    code: "log_damaged",
    message: `the log is damaged (${damage.why}); readers go on, writers refuse`,
    next: "run 'cotenant recover': it keeps the damaged file",
  };
}

/** Others share their claims there, and this clone does not hear of them. */
function unasked({ config }: Workspace, isLedgerUnread: boolean): Finding | null {
  const named = config.namedOnly("sync.ledger_branch");
  if (named === null)
    return isLedgerUnread
      ? {
          code: "ledger_not_set_up",
          message: `claims are shared on the branch ${config.values["sync.ledger_branch"]}, and this machine has not read it yet`,
          next: "run 'cotenant sync --setup-ledger'",
        }
      : null;
  return {
    code: "ledger_untrusted",
    message: `${named.place} names a ledger that this clone does not trust yet: issues cannot be claimed here`,
    next: "run 'cotenant trust', then 'cotenant sync --setup-ledger'",
  };
}

function untrusted({ config }: Workspace): Finding | null {
  const loosening = config.untrusted.filter(({ does }) => does === "loosens");
  const [first] = loosening;
  if (first === undefined) return null;
  const keys = loosening.map(({ key }) => key).join(", ");
  return {
    code: "config_untrusted",
    message: `${first.place} sets ${keys}, which ${loosening.length === 1 ? "is" : "are"} not honoured before 'cotenant trust'`,
    next: "read 'cotenant trust --list'; then run 'cotenant trust', or take it out of the file",
  };
}

/** Nothing depends on it, but an audit that lacks the end of a lease for days is worth a word. */
const UNLOGGED_MS = 24 * 3600 * 1000;

function unlogged({ leases, now }: Situation): Finding | null {
  const old = leases.filter(
    ({ lease, standing }) =>
      standing !== "valid" && elapsedMs(lease.expiresAt ?? lease.lastBeat, now) > UNLOGGED_MS,
  );
  if (old.length === 0) return null;
  return {
    code: "end_unlogged",
    message: `${count(old.length, "lease")} ended more than a day ago, and nobody has logged it`,
    next: "run 'cotenant gc'",
  };
}

/** As long as a wait lasts when nobody says how long. */
const LONG_WAIT_MS = 300_000;

/** Its holder may well be alive: only a person can say who has to give way. */
function heldTooLong({ escalated, now }: Situation): Finding[] {
  return escalated.map(({ lease, contenders: [first, ...others] }) => {
    const { agentId, acquiredAt } = lease;
    const key = printable(lease.key);
    const more = others.length === 0 ? "" : ` and ${count(others.length, "other")}`;
    const way = endingCommand(lease);
    const since = ({ wallMs }: Instant) => new Date(wallMs).toISOString();
    return {
      code: "lease_escalated",
      message: `${agentId} has held ${key} since ${since(acquiredAt)}; ${first!.agentId}${more} ${others.length === 0 ? "has" : "have"} waited for it since ${since(first!.since)} (${duration(elapsedMs(first!.since, now))})`,
      next:
        way === null
          ? `ask ${agentId} to give it back; what it did: cotenant events --key ${key}`
          : `ask ${agentId} to give it back, or end it: ${way}`,
    };
  });
}

function waitingLong(valid: readonly LeaseStatus[], { waiters, now, escalated }: Situation): Finding[] {
  const leases = valid.map(({ lease }) => lease);
  // Said with the lease already.
  const isTold = (ticket: Ticket) =>
    inTheWay(ticket, leases).some((lease) => escalated.some((one) => one.lease.leaseId === lease.leaseId));
  return waiters
    .filter((ticket) => !isTold(ticket))
    .map((ticket) => ({ ticket, waitedMs: elapsedMs(ticket.joinedAt, now) }))
    .filter(({ waitedMs }) => waitedMs > LONG_WAIT_MS)
    .map(({ ticket, waitedMs }) => {
      const blockers: readonly Lease[] = inTheWay(ticket, leases);
      const [first] = blockers;
      const keys = ticket.keys.map(({ key }) => printable(key)).join(", ");
      const whom = first === undefined ? "" : `, held by ${first.agentId}`;
      return {
        code: "waits_long",
        message: `${ticket.agentId} has waited ${duration(waitedMs)} for ${keys}${whom}`,
        next:
          first === undefined
            ? "see 'cotenant lock status'"
            : `ask ${first.agentId}; 'cotenant events --key ${printable(first.key)}' shows what it did`,
      };
    });
}
