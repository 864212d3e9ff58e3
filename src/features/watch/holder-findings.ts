import type { LeaseStatus } from "../../coordinator/contract";
import { type LeaseId, printable } from "../../kernel/ids";
import { type Holder, sameProcess } from "../../kernel/lease";
import { count, shellWord } from "../../kernel/printing";
import { endingCommand } from "../../kernel/words";
import { type Homeless, isOfPlaceAlone } from "../worktrees/homeless";
import type { Finding, Situation } from "./findings";

export function stale(valid: readonly LeaseStatus[], gone: ReadonlySet<LeaseId>): Finding[] {
  return valid
    .filter(({ stale: isStale, lease }) => isStale && !gone.has(lease.leaseId))
    .map(({ lease }) => ({
      code: "lease_stale",
      message: `${printable(lease.key)} is held without expiry by ${lease.agentId}, not heard of since ${new Date(lease.lastBeat.wallMs).toISOString()}`,
      next: `ask ${lease.agentId}; 'cotenant events --key ${printable(lease.key)}' shows what it did`,
    }));
}

/** Nothing ends it by itself, and whoever took it will not come back to it. */
export function withoutHolder(valid: readonly LeaseStatus[], gone: ReadonlySet<LeaseId>): Finding[] {
  return valid
    .filter(({ lease }) => gone.has(lease.leaseId))
    .map(({ lease }) => {
      const key = printable(lease.key);
      const way = endingCommand(lease);
      const look = `'cotenant events --key ${key}' shows what it did`;
      return {
        code: "holder_gone",
        message: `${key} is held without expiry by ${lease.agentId}, whose process ${lease.holder.pid} is gone; last heard of ${new Date(lease.lastBeat.wallMs).toISOString()}`,
        next: way === null ? look : `${look}; if nobody goes on with it: ${way}`,
      };
    });
}

/** Whoever holds them has lost the place to work in; without an expiry they stand for ever. */
export function ofGoneWorktrees(homeless: readonly Homeless[]): Finding[] {
  const places = new Map<string, Homeless[]>();
  for (const one of homeless) {
    const { lease } = one.status;
    const { worktreeId } = lease;
    // What reaches beyond a worktree that Git has forgotten is its holder's to end, and runs out or becomes stale.
    if (one.root === null && !isOfPlaceAlone(lease)) continue;
    places.set(worktreeId, [...(places.get(worktreeId) ?? []), one]);
  }
  return [...places].map(([worktreeId, [first, ...others]]) => {
    const { root, status } = first!;
    const more = others.length === 0 ? "" : ` and ${count(others.length, "other lease")}`;
    return {
      code: "worktree_gone",
      message: `${status.lease.agentId} holds ${printable(status.lease.key)}${more} from ${root === null ? worktreeId : printable(root, 500)}, which is gone`,
      next: root === null ? "cotenant gc" : `cotenant worktree remove ${shellWord(root)}`,
    };
  });
}

/** One agent id, several live holders: they would share leases and take each other's for their own. */
export function usedTwice(valid: readonly LeaseStatus[], { waiters, strangers }: Situation): Finding[] {
  const live = new Map<string, Holder[]>();
  const add = (agentId: string, holder: Holder) => {
    const known = live.get(agentId) ?? [];
    if (!known.some((other) => sameProcess(other, holder))) known.push(holder);
    live.set(agentId, known);
  };
  for (const { lease } of valid) if (lease.bind === "process") add(lease.agentId, lease.holder);
  for (const { agentId, holder } of waiters) add(agentId, holder);
  const processes = new Map<string, readonly Holder[]>([...live].filter(([, { length }]) => length > 1));
  for (const [agentId, holders] of strangers) if (!processes.has(agentId)) processes.set(agentId, holders);
  return [
    ...[...processes].map(
      ([agentId, holders]) => [agentId, "live processes", holders.map(({ pid }) => pid)] as const,
    ),
    ...[...usersOf(valid)].map(([agentId, users]) => [agentId, "users", [...users]] as const),
  ].flatMap(([agentId, whom, which]) =>
    which.length < 2
      ? []
      : {
          code: "agent_id_used_twice",
          message: `${agentId} is used by ${which.length} ${whom} at once (${which.join(", ")})`,
          next: "give each its own id: export COTENANT_AGENT_ID=agent:…",
        },
  );
}

function usersOf(valid: readonly LeaseStatus[]): Map<string, Set<string>> {
  const users = new Map<string, Set<string>>();
  for (const { lease } of valid) {
    const known = users.get(lease.agentId) ?? new Set();
    users.set(lease.agentId, known.add(lease.holder.user));
  }
  return users;
}
