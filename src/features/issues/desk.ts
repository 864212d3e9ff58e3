import type { Coordinator } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { headCommit } from "../../identity/head-commit";
import type { Repository } from "../../identity/repository";
import { listWorktrees } from "../../identity/worktree-list";
import type { Ulid, WorktreeId } from "../../kernel/ids";
import { issueOf, type LeaseKey } from "../../kernel/keys";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import { modesFor } from "../../store/layout";
import { CACHE_FORMAT, type CachePlace } from "./cache/file";
import type { StampNews } from "./cache/live";
import { IssueReader } from "./reader";
import { STAMP_KIND, stampFromFact, stampId, stampName, type WrittenStamp } from "./stamps";
import { type Enforcement, IssueWriter } from "./writer";

/** What the issues of a repository are read through. */
export interface IssuePlace {
  readonly platform: Platform;
  readonly git: Git;
  readonly repository: Repository;
  readonly coordinator: Pick<Coordinator, "facts" | "factsSince" | "list" | "find">;
  readonly worktreeId: WorktreeId | null;
  /** Only the files of this directory count: neither those of other worktrees nor what is committed. */
  readonly isAlone?: boolean;
}

/** The issues of a repository, as one worktree sees them. */
export async function issuesIn(workspace: Workspace): Promise<IssueReader> {
  const { repository, surroundings, coordinator } = workspace;
  const { platform, git } = surroundings;
  const { worktreeId } = (await workspace.worktree("read")).identity;
  const isAlone = workspace.config.values["worktree.mode"] === "off";
  const name = `issues-${worktreeId.replace(":", "-")}${isAlone ? "-alone" : ""}.v${CACHE_FORMAT}`;
  const place = { platform, git, repository, coordinator, worktreeId, isAlone };
  const modes = modesFor(repository.config.sharedRepository);
  const watcher = () => workspace.folderWatcher();
  return issuesAt(place, { path: `${repository.controlDir}/cache/${name}`, modes, watcher });
}

/** `cache` null: nothing is written, not even that. */
export function issuesAt(place: IssuePlace, cache: CachePlace | null): IssueReader {
  const { platform, git, repository, worktreeId, isAlone = false } = place;
  return new IssueReader({
    platform,
    git: isAlone ? null : git,
    here: { root: repository.worktreeRoot, worktreeId },
    mainRoot: isAlone ? null : repository.mainWorktreeRoot,
    rootOf: isAlone ? async (id) => (id === worktreeId ? repository.worktreeRoot : null) : rootsOf(place),
    stamps: (ids) => stampsOf(place, ids),
    stampNews: (position) => newsOf(place, position),
    commit: isAlone ? async () => null : () => headCommit(platform, git, repository),
    cache,
    holders: (ids) => holdersOf(place, ids),
  });
}

/** Outside Git there is only the plain directory: no other worktrees, no claims, nobody to prove anything to. */
export function plainIssues(platform: Platform, root: string): IssueReader {
  return new IssueReader({
    platform,
    git: null,
    here: { root, worktreeId: null },
    mainRoot: null,
    rootOf: async () => null,
    stamps: async () => new Map(),
    stampNews: async () => ({ stamps: new Map(), isAll: true, position: null, lines: 0 }),
    commit: async () => null,
    cache: null,
    holders: async () => new Map(),
  });
}

/** Whoever writes says who they are; a session makes the write a guarded one. */
export async function writerIn(workspace: Workspace, reader: IssueReader): Promise<IssueWriter> {
  const session = await workspace.session("write");
  const enforcement = workspace.config.values["worktree.enforce_leases"] as Enforcement;
  return new IssueWriter(reader, session, enforcement, session.actor.agentId);
}

/** Without anything for the log: what was logged before is only carried out. */
export async function underMutex(session: Session, act: () => Promise<void>): Promise<void> {
  await session.write([], {
    about: "finishing writes of issues",
    facts: [],
    body: async () => {
      await act();
      return null;
    },
  });
}

function rootsOf({ platform, git, repository }: IssuePlace): (worktreeId: string) => Promise<string | null> {
  let listed: ReturnType<typeof listWorktrees> | null = null;
  return async (worktreeId) => {
    listed ??= listWorktrees(platform, git, repository);
    const entry = (await listed).find((worktree) => worktree.worktreeId === (worktreeId as WorktreeId));
    return entry?.exists === true ? entry.root : null;
  };
}

async function stampsOf(
  { coordinator }: IssuePlace,
  ids: readonly Ulid[] | null,
): Promise<ReadonlyMap<Ulid, WrittenStamp>> {
  const facts = await coordinator.facts(
    ids === null ? { kinds: [STAMP_KIND] } : { names: ids.map(stampName) },
  );
  const stamps = new Map<Ulid, WrittenStamp>();
  for (const [name, { value }] of facts) {
    const id = stampId(name);
    const stamp = stampFromFact(value);
    if (id !== null && stamp !== null) stamps.set(id, stamp);
  }
  return stamps;
}

async function newsOf({ coordinator }: IssuePlace, position: string | null): Promise<StampNews> {
  const { facts, ...news } = await coordinator.factsSince(STAMP_KIND, position);
  const stamps = new Map<Ulid, WrittenStamp | null>();
  for (const [name, fact] of facts) {
    const id = stampId(name);
    if (id !== null) stamps.set(id, fact === null ? null : stampFromFact(fact.value));
  }
  return { stamps, ...news };
}

async function holdersOf(
  { coordinator }: IssuePlace,
  ids: readonly Ulid[] | null,
): Promise<ReadonlyMap<Ulid, string>> {
  const refs = ids?.map((id) => ({ key: `issue:${id}` as LeaseKey, leaseId: null })) ?? null;
  const found = refs === null ? await coordinator.list({ kinds: ["issue"] }) : await coordinator.find(refs);
  const holders = new Map<Ulid, string>();
  for (const { lease, standing } of found)
    if (standing === "valid" && lease.key.startsWith("issue:"))
      holders.set(issueOf(lease.key), lease.worktreeId);
  return holders;
}
