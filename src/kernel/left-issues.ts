import type { Decision } from "./circumstances";
import { type Fact, type FactName, parseFactName } from "./facts";
import { kindOf, type LeaseKey, nameOf } from "./keys";
import type { EndCause, Lease } from "./lease";
import { isRefusal } from "./refusal";
import type { Instant } from "./time";

/** Facts about issues whose claims ended without being given back, until somebody is granted them. */
export const LEFT_ISSUE = "left-issue";

/** Who left an issue, when, and where they worked, as far as this clone knows. */
export interface Leaver {
  readonly agentId: string;
  readonly at: string;
  readonly worktreeId: string | null;
  readonly branch: string | null;
}

/** Of the issues among these keys. A key that a damaged log made up has none: what is written must be readable again. */
export function leftNames(keys: readonly LeaseKey[]): FactName[] {
  return keys.flatMap((key) => {
    // In small letters: it becomes a file's name, also where file systems fold case.
    const name = kindOf(key) === "issue" ? parseFactName(`${LEFT_ISSUE}:${nameOf(key).toLowerCase()}`) : null;
    return name === null || isRefusal(name) ? [] : [name];
  });
}

/** `forcedAt`: when somebody ended it; null where it ended by itself, by time or with its last sign of life. */
export function leaverUnder(lease: Lease, how: EndCause, forcedAt: Instant | null = null): Leaver {
  const { agentId, worktreeId, branch, expiresAt, lastBeat } = lease;
  const end = forcedAt ?? (how === "expired" && expiresAt !== null ? expiresAt : lastBeat);
  return { agentId, at: new Date(end.wallMs).toISOString(), worktreeId, branch };
}

/** What a decision leaves: claims that it ends, and that are neither given back nor anybody else's now. */
export function leftBy({ event, leases }: Decision, now: Instant): Map<FactName, Fact | null> {
  const left = new Map<FactName, Fact | null>();
  const whole = new Map(leases.map((lease) => [lease.leaseId, lease]));
  for (const { leaseId, how, successor } of event?.ended ?? []) {
    const lease = whole.get(leaseId);
    if (lease === undefined || successor !== null || how === "released" || how === "transferred") continue;
    const { agentId, at, worktreeId, branch } = leaverUnder(lease, how, how === "forced" ? now : null);
    for (const name of leftNames([lease.key]))
      left.set(name, { agent_id: agentId, at, worktree_id: worktreeId, branch });
  }
  return left;
}

export function leaverFrom({ agent_id, at, worktree_id, branch }: Fact): Leaver {
  return {
    agentId: String(agent_id ?? ""),
    at: String(at ?? ""),
    worktreeId: typeof worktree_id === "string" ? worktree_id : null,
    branch: typeof branch === "string" ? branch : null,
  };
}
