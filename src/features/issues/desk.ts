import { inspectConfig } from "../../config/load";
import type { Coordinator } from "../../coordinator/contract";
import type { Session } from "../../coordinator/session";
import type { Surroundings, Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import { headCommit } from "../../identity/head-commit";
import type { Repository } from "../../identity/repository";
import { listWorktrees } from "../../identity/worktree-list";
import { byKey } from "../../kernel/commands";
import type { Ulid, WorktreeId } from "../../kernel/ids";
import { issueKeyOf, issueOf } from "../../kernel/keys";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import { modesFor } from "../../store/layout";
import { CACHE_FORMAT, type CachePlace } from "./cache/file";
import type { StampNews } from "./cache/live";
import { IssueReader } from "./reader";
import { STAMP_KIND, stampFromFact, stampId, stampName, type WrittenStamp } from "./stamps";
import { type Enforcement, IssueWriter } from "./writer";

/** What operations on issues work with. */
export interface Desk {
  readonly reader: IssueReader;
  /** Null outside Git. */
  readonly workspace: Workspace | null;
}

export interface RepositoryDesk extends Desk {
  readonly workspace: Workspace;
}

export async function deskIn(workspace: Workspace): Promise<RepositoryDesk> {
  return { reader: await issuesIn(workspace), workspace };
}

/**
 * Outside Git issues live in a plain `.cotenant/`, in the current directory or above it. `refusal`: why no repository can be
 * opened; it is thrown where a plain directory may not take its place.
 */
export async function deskOutsideGit(surroundings: Surroundings, refusal: unknown): Promise<Desk> {
  if (!(refusal instanceof CotenantError) || refusal.code !== "E_NOT_A_REPO") throw refusal;
  // A bare repository, Git's own directory and one that Git cannot read are no place for a plain one.
  if (refusal.data["git_dir"] !== undefined || refusal.data["git"] !== undefined) throw refusal;
  // From the environment, or from files of the person or the machine.
  const { config } = await inspectConfig({ ...surroundings, worktreeRoot: null });
  if (config.values["worktree.mode"] === "on") throw refusal;
  const { platform, cwd } = surroundings;
  return { reader: plainIssues(platform, (await nearestData(platform, cwd)) ?? cwd), workspace: null };
}

async function nearestData({ files }: Platform, from: string): Promise<string | null> {
  for (let directory = from; ; directory = directory.slice(0, directory.lastIndexOf("/"))) {
    if ((await files.stat(`${directory}/.cotenant`))?.kind === "directory") return directory;
    if (directory === "" || !directory.includes("/")) return null;
  }
}

/** Who changes an issue; nobody is asked outside Git. */
export async function authorAt({ workspace }: Desk): Promise<string> {
  return workspace === null ? "" : (await workspace.agent()).agentId;
}

/** Namespaces of which an issue has one label at most. */
export function uniqueLabels({ workspace }: Desk): readonly string[] {
  return workspace?.config.values["issues.unique_labels"] ?? ["type"];
}

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

/** The same outside Git, where nothing is enforced. */
export async function writerAt({ reader, workspace }: Desk): Promise<IssueWriter> {
  return workspace === null ? new IssueWriter(reader, null, "off", "") : writerIn(workspace, reader);
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
    const entry = (await listed).find((worktree) => worktree.worktreeId === worktreeId);
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
  const refs = ids?.map((id) => byKey(issueKeyOf(id))) ?? null;
  const found = refs === null ? await coordinator.list({ kinds: ["issue"] }) : await coordinator.find(refs);
  const holders = new Map<Ulid, string>();
  for (const { lease, standing } of found)
    if (standing === "valid" && lease.key.startsWith("issue:"))
      holders.set(issueOf(lease.key), lease.worktreeId);
  return holders;
}
