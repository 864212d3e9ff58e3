import type { ErrorCode } from "../../errors/registry";
import { type PathChange, PLAIN_FILE } from "../../git/commit-text";
import { ExtentIndex } from "../../kernel/conflicts";
import {
  type AgentId,
  printable,
  type SessionId,
  type Ulid,
  ulidIn,
  type WorktreeId,
} from "../../kernel/ids";
import type { LeaseKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";

/** Who commits; null where nobody has said so. */
export interface Committer {
  readonly agentId: AgentId;
  readonly sessionId: SessionId;
  readonly worktreeId: WorktreeId;
}

/** An issue that a commit changes, and whether its new content was written under a claim of the committer's. */
export interface IssueEdit {
  readonly id: Ulid;
  readonly paths: readonly string[];
  /** New in this history, and made by `issue create`. */
  readonly isNew: boolean;
  /** The log has this very content, written by the committer in this worktree. */
  readonly isWritten: boolean;
  /** The same by the word on a gate of somebody who needs no claim for it. */
  readonly isGateWord: boolean;
  /** A merge made it: nobody's claim is behind it, and nobody wrote anything. */
  readonly isMerged: boolean;
}

export interface CommitQuestion {
  readonly changes: readonly { readonly path: string; readonly key: LeaseKey }[];
  readonly issues: readonly IssueEdit[];
  readonly committer: Committer | null;
  readonly worktreeId: WorktreeId;
  /** Every valid lease that can matter, none of them stale. */
  readonly leases: readonly Lease[];
}

/** Why a change may not be committed by this committer. */
export interface Objection {
  readonly code: ErrorCode;
  readonly path: string;
  readonly message: string;
  readonly hint: string;
  /** Whose it is, where it is somebody's. */
  readonly owner: string | null;
  readonly leaseId: string | null;
}

const GLOBAL: Readonly<Record<string, "config" | "gates">> = {
  ".cotenant/config.toml": "config",
  ".cotenant/gates/registry.json": "gates",
};
/** What concerns everybody. */
export const GLOBAL_FILES: readonly string[] = Object.keys(GLOBAL);
const STRUCTURAL = [
  /^\.cotenant\/issues\/([^/]+)\/(?:issue\.json|deps\.or-set\.jsonl|labels\.or-set\.jsonl)$/,
  // Each result is a write of its issue.
  /^\.cotenant\/gates\/results\/([^/]+)\.jsonl$/,
];
const COMMENTS = /^\.cotenant\/issues\/([^/]+)\/comments\.jsonl$/;

/** The id of the issue whose structure a path is part of; null for everything else, comments among it. */
export function issueOf(path: string): Ulid | null {
  return STRUCTURAL.reduce<Ulid | null>((id, pattern) => id ?? idIn(pattern.exec(path)), null);
}

/** The id of the issue whose comments a path has. */
export function commentsOf(path: string): Ulid | null {
  return idIn(COMMENTS.exec(path));
}

function idIn(found: RegExpExecArray | null): Ulid | null {
  const id = ulidIn(found?.[1]);
  return id === found?.[1] ? id : null;
}

/** Cotenant writes nothing but plain files: a link or a program is somebody's own doing, whatever its content. */
export function isPlain({ mode }: Pick<PathChange, "mode">): boolean {
  return mode === null || mode === PLAIN_FILE;
}

/**
 * The changes that the claims on issues rule. Comments are only ever added, by anybody; who deletes or rewrites one changes
 * the issue. `read` gives the texts of objects.
 */
export async function structuralChanges<C extends PathChange>(
  changes: readonly C[],
  read: (oids: readonly string[]) => Promise<ReadonlyMap<string, string>>,
): Promise<{ readonly id: Ulid; readonly change: C }[]> {
  const commented = changes.filter(({ path }) => commentsOf(path) !== null);
  const rewritten = commented.filter((change) => change.before !== null && isPlain(change));
  const texts = await read(
    rewritten.flatMap(({ before, oid }) => (oid === null ? [before!] : [before!, oid])),
  );
  const loses = ({ before, oid }: C) =>
    !keepsLines(texts.get(before!) ?? "", oid === null ? "" : (texts.get(oid) ?? ""));
  const lost = new Set([...commented.filter((change) => !isPlain(change)), ...rewritten.filter(loses)]);
  return changes.flatMap((change) => {
    const id = issueOf(change.path) ?? (lost.has(change) ? commentsOf(change.path) : null);
    return id === null ? [] : [{ id, change }];
  });
}

/** Whether every line is still there, in whatever order: merges of such files reorder them. */
export function keepsLines(before: string, after: string): boolean {
  const there = new Set(linesOf(after));
  return linesOf(before).every((line) => there.has(line));
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** Which scope a path belongs to: what concerns everybody. */
export function scopeOf(path: string): "config" | "gates" | null {
  return Object.hasOwn(GLOBAL, path) ? GLOBAL[path]! : null;
}

/** Everything that speaks against a commit. The same rules for the hook and for whoever looks later. */
export function judgeCommit(question: CommitQuestion): Objection[] {
  return [...issueObjections(question), ...fileObjections(question), ...scopeObjections(question)];
}

function issueObjections({ issues, committer, leases }: CommitQuestion): Objection[] {
  const byKey = new Map(leases.map((lease) => [lease.key as string, lease]));
  return issues.flatMap(({ id, paths, isNew, isWritten, isGateWord, isMerged }): Objection[] => {
    const lease = byKey.get(`issue:${id}`) ?? null;
    const isMine = lease !== null && committer !== null && isOf(lease, committer);
    if (isMine || isMerged || isGateWord) return [];
    const path = paths[0]!;
    if (lease !== null) {
      return [
        {
          code: "E_LOCK_NOT_HELD",
          path,
          message: `issue ${id} is claimed by ${lease.agentId} (${lease.worktreeId})`,
          hint: `leave it out, or wait for the claim: cotenant claim acquire ${id} --wait`,
          owner: lease.agentId,
          leaseId: lease.leaseId,
        },
      ];
    }
    // Finished under a claim that was given back since: proved when it was written, and unchanged.
    if (isNew || isWritten) return [];
    return [
      {
        code: "E_LEASE_REQUIRED",
        path,
        message: `issue ${id} was changed without a claim`,
        hint: `claim it, and commit again: cotenant claim acquire ${id}`,
        owner: null,
        leaseId: null,
      },
    ];
  });
}

/** An issue that somebody on another machine has claimed cannot be claimed here: its holder is named instead. */
export function namingHolders(
  objections: readonly Objection[],
  /** Who holds which issue elsewhere, in words, as far as it was heard. */
  elsewhere: ReadonlyMap<
    Ulid,
    { readonly agentId: string; readonly leaseId: string; readonly words: string }
  >,
): readonly Objection[] {
  return objections.map((objection) => {
    const id =
      objection.code === "E_LEASE_REQUIRED" ? (issueOf(objection.path) ?? commentsOf(objection.path)) : null;
    const holder = id === null ? undefined : elsewhere.get(id);
    if (holder === undefined) return objection;
    return {
      ...objection,
      message: `issue ${id} is claimed by ${holder.words}`,
      hint: `leave it out, or wait for the claim: cotenant claim acquire ${id} --wait`,
      owner: holder.agentId,
      leaseId: holder.leaseId,
    };
  });
}

function fileObjections({ changes, committer, worktreeId, leases }: CommitQuestion): Objection[] {
  const held = new ExtentIndex(leases);
  return changes.flatMap(({ path, key }): Objection[] => {
    const extent = { key, reach: "worktree", worktreeId } as const;
    const other = held.conflictingWith(extent).find((lease) => !mayCommit(lease, committer));
    if (other === undefined) return [];
    return [
      {
        code: "E_LOCK_CONFLICT",
        path,
        message: `${printable(path, 200)} is held by ${other.agentId} (${other.worktreeId})`,
        hint: "",
        owner: other.agentId,
        leaseId: other.leaseId,
      },
    ];
  });
}

function scopeObjections({ changes, committer, leases }: CommitQuestion): Objection[] {
  return changes.flatMap(({ path }): Objection[] => {
    const scope = scopeOf(path);
    if (scope === null) return [];
    const other = leases.find(
      ({ key, agentId }) => (key as string) === `scope:${scope}` && agentId !== committer?.agentId,
    );
    if (other === undefined) return [];
    return [
      {
        code: "E_LOCK_CONFLICT",
        path,
        message: `${path} is being changed by ${other.agentId}, who holds scope:${scope}`,
        hint: `wait until it is free: cotenant lock status`,
        owner: other.agentId,
        leaseId: other.leaseId,
      },
    ];
  });
}

/** What a session is called that has no name of its own: everybody's. */
const UNNAMED = "default";

/** One's own, and what subagents of one's session hold: those exclude each other only while they edit. */
export function mayCommit(lease: Lease, committer: Committer | null): boolean {
  if (committer === null || lease.agentId === committer.agentId) return committer !== null;
  const { sessionId, worktreeId } = committer;
  return sessionId !== UNNAMED && lease.sessionId === sessionId && lease.worktreeId === worktreeId;
}

/** A claim counts in the worktree that it was made in. */
export function isOf(lease: Lease, { agentId, worktreeId }: Committer): boolean {
  return lease.agentId === agentId && lease.worktreeId === worktreeId;
}
