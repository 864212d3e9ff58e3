import type { Coordinator, LoggedEvent } from "../../coordinator/contract";
import { CotenantError } from "../../errors/cotenant-error";
import { type LeaseId, trusted, type WorktreeId } from "../../kernel/ids";
import { isPathKey, type LeaseKey } from "../../kernel/keys";
import type { Reach } from "../../kernel/lease";
import { LIMITS } from "../../kernel/policy";
import { type AppendOnly, isGateWord } from "../issues/stamps";

/** What is known of a lease that once was. */
export interface KnownLease {
  readonly key: string;
  readonly token: number;
  readonly agentId: string;
  readonly grantedAtMs: number;
  /** When it ended, or will; null while nothing ends it. */
  endsAtMs: number | null;
}

/**
 * What the log can testify about commits: who held what when, and which contents of issues were written under a proved
 * lease. Claims that are kept elsewhere testify in the same way.
 */
export interface Witness {
  lease(leaseId: string): KnownLease | null;
  /** How this content of the issue was written: by its holder or creator, or by a word on a gate; null if it was not. */
  written(issueId: string, digest: string): Written | null;
}

type Written = "issue" | "gate";

/** One of this repository's own. */
export interface LoggedLease extends KnownLease {
  readonly key: LeaseKey;
  readonly leaseId: LeaseId;
  readonly worktreeId: WorktreeId;
  readonly reach: Reach;
  /** It ends with its process, and nobody knows when that was. */
  readonly isBound: boolean;
}

/** What the log of this repository says. */
export interface LogWitness extends Witness {
  /** Null for one of another repository. */
  lease(leaseId: string): LoggedLease | null;
  /** Leases of files and directories. */
  readonly paths: readonly LoggedLease[];
}

type Wire = Readonly<Record<string, unknown>>;

/** Reads as much of the log as leases of that time can be in. */
export async function witnessOf(coordinator: Coordinator, sinceMs: number): Promise<LogWitness> {
  const leases = new Map<string, LoggedLease>();
  const written = new Map<string, Written>();
  const from = { timeMs: sinceMs - LIMITS.ttlSecs * 1000 };
  const onUnreadable = (path: string) => {
    throw new CotenantError("E_LOG_CORRUPT", `${path} cannot be read, and may be what decides`, {
      hint: "'cotenant doctor' shows what is damaged, and 'cotenant recover' mends it",
      data: { path },
    });
  };
  for await (const event of coordinator.history({ from, ground: true, onUnreadable })) {
    for (const wire of listed(event.payload, "leases")) learn(leases, wire);
    for (const wire of listed(event.payload, "ended")) end(leases, wire, Date.parse(event.timestamp));
    for (const [name, how] of writtenIn(event))
      if (!written.has(name) || how === "gate") written.set(name, how);
  }
  return {
    lease: (leaseId) => leases.get(leaseId) ?? null,
    paths: [...leases.values()].filter(({ key }) => isPathKey(key)),
    written: (issueId, digest) => written.get(`${issueId} ${digest}`) ?? null,
  };
}

function learn(leases: Map<string, LoggedLease>, wire: Wire): void {
  const id = String(wire["lease_id"]);
  const expires = wire["expires_at"];
  const endsAtMs = typeof expires === "string" ? Date.parse(expires) : null;
  const known = leases.get(id);
  if (known !== undefined) {
    known.endsAtMs = endsAtMs;
    return;
  }
  leases.set(id, {
    leaseId: trusted(id),
    worktreeId: trusted(String(wire["worktree_id"])),
    reach: wire["reach"] === "worktree" ? "worktree" : "repository",
    isBound: wire["bind"] === "process",
    key: trusted(String(wire["key"])),
    token: Number(wire["fencing_token"]),
    agentId: String(wire["agent_id"]),
    grantedAtMs: Date.parse(String(wire["acquired_at"])),
    endsAtMs,
  });
}

function end(leases: Map<string, LoggedLease>, wire: Wire, atMs: number): void {
  const known = leases.get(String(wire["lease_id"]));
  // One that had expired long before somebody noticed ended when it expired.
  if (known !== undefined) known.endsAtMs = Math.min(known.endsAtMs ?? atMs, atMs);
}

/** A line has the digest of what it wrote; a checkpoint those of the last writes. */
function* writtenIn({ type, payload }: LoggedEvent): Generator<[name: string, how: Written]> {
  if (type === "issue.written" && typeof payload["digest"] === "string")
    yield [`${payload["issue_id"]} ${payload["digest"]}`, "issue"];
  const facts = payload["facts"];
  if (type === "log.checkpoint" && Array.isArray(facts)) {
    for (const fact of facts as Wire[]) yield* stampIn(String(fact["name"]), fact["value"] as Wire);
  } else if (typeof facts === "object" && facts !== null)
    for (const [name, value] of Object.entries(facts))
      if (value !== null) yield* stampIn(name, value as Wire);
}

function* stampIn(name: string, value: Wire): Generator<[name: string, how: Written]> {
  if (name.startsWith("stamp:") && typeof value["digest"] === "string")
    yield [
      `${name.slice("stamp:".length).toUpperCase()} ${value["digest"]}`,
      isGateWord(listed(value, "additions") as { file: AppendOnly }[]) ? "gate" : "issue",
    ];
}

function listed(payload: Wire, name: string): Wire[] {
  const value = payload[name];
  return Array.isArray(value) ? (value as Wire[]) : [];
}
