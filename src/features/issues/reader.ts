import { CotenantError, notFoundError } from "../../errors/cotenant-error";
import { isUlid, type Ulid, type WorktreeId } from "../../kernel/ids";
import type { Git } from "../../platform/git";
import type { Platform } from "../../platform/platform";
import type { CachePlace } from "./cache/file";
import { LiveCatalog, type StampNews } from "./cache/live";
import { CommittedIssues } from "./committed";
import { ISSUES, IssueFolder, type RawIssue } from "./folder";
import {
  type Copy,
  copyFrom,
  type FoundIssue,
  isFound,
  type Layer,
  resolve,
  type UnreadableIssue,
  versionOf,
} from "./resolve";
import { COMMENTS, RESULTS, type WrittenStamp } from "./stamps";

/** Where issues may stand, and what is known of them. */
export interface IssueSources {
  readonly platform: Platform;
  /** The directory that holds `.cotenant/`, and its worktree's id where there is one. */
  readonly here: { readonly root: string; readonly worktreeId: WorktreeId | null };
  /** Null where it is this one, or there is none. */
  readonly mainRoot: string | null;
  /** Null outside Git. */
  readonly git: Git | null;
  /** The root of a worktree; null when it is gone. Asked only where a stamp or a claim names another one. */
  readonly rootOf: (worktreeId: string) => Promise<string | null>;
  /** The last writes, of these issues or of all. */
  readonly stamps: (ids: readonly Ulid[] | null) => Promise<ReadonlyMap<Ulid, WrittenStamp>>;
  /** What was written since a position in the log. */
  readonly stampNews: (position: string | null) => Promise<StampNews>;
  /** The commit of HEAD; null before the first one. */
  readonly commit: () => Promise<string | null>;
  /** Where what was read may be kept for the next command; null: nowhere. */
  readonly cache: CachePlace | null;
  /** In whose worktree each claimed issue is worked on. */
  readonly holders: (ids: readonly Ulid[] | null) => Promise<ReadonlyMap<Ulid, string>>;
}

/** Layered reads: never leased, never locked, and nothing is written. */
export class IssueReader {
  readonly sources: IssueSources;
  readonly here: IssueFolder;
  /** Null where it is this one. */
  readonly main: IssueFolder | null;
  readonly #head: CommittedIssues | null;
  #live: Promise<LiveCatalog> | null = null;

  constructor(sources: IssueSources) {
    const { platform, here, mainRoot, git } = sources;
    this.sources = sources;
    this.here = new IssueFolder(platform, here.root);
    this.main = mainRoot === null || mainRoot === here.root ? null : new IssueFolder(platform, mainRoot);
    this.#head = git === null ? null : new CommittedIssues(git, here.root);
  }

  /** Every id that is known anywhere, deleted ones among them. */
  async ids(): Promise<Ulid[]> {
    const live = await this.live();
    await live.refreshNames();
    await live.save();
    return live.ids();
  }

  /** What is known of all issues, as of the last command. */
  live(): Promise<LiveCatalog> {
    const { platform, git, here, commit, stampNews, cache } = this.sources;
    const folders = [this.here, ...(this.main === null ? [] : [this.main])];
    const head =
      git === null ? null : { commit, at: (id: string) => new CommittedIssues(git, here.root, id) };
    this.#live ??= LiveCatalog.open({ platform, folders, head, news: stampNews, cache });
    return this.#live;
  }

  async find(id: Ulid): Promise<FoundIssue | UnreadableIssue | null> {
    return (await this.findAll([id])).get(id) ?? null;
  }

  /** An issue that can be read and has not been deleted, or the error a person can act on. */
  async get(id: Ulid): Promise<FoundIssue> {
    return usable(id, await this.find(id));
  }

  /** Of those that another issue names: what is no id is nobody's. */
  async findNamed(names: readonly string[]): Promise<ReadonlyMap<string, FoundIssue | UnreadableIssue>> {
    return this.findAll(names.filter(isUlid));
  }

  /** `inHead`: those of which HEAD may have the newest copy. Git is not asked about the others. */
  async findAll(
    ids: readonly Ulid[],
    inHead: readonly Ulid[] = ids,
  ): Promise<Map<Ulid, FoundIssue | UnreadableIssue>> {
    // One by one costs more for each, and nothing for the others.
    const stamps = await this.sources.stamps(ids.length > 2_000 ? null : ids);
    const holders = await this.sources.holders(ids.length > 50 ? null : ids);
    const committed = (await this.#head?.read(inHead)) ?? new Map<Ulid, RawIssue>();
    const found = new Map<Ulid, FoundIssue | UnreadableIssue>();
    for (const id of ids) {
      const stamp = stamps.get(id) ?? null;
      const copies = await this.copies(id, stamp, holders.get(id) ?? null, committed.get(id) ?? null);
      const resolved = resolve(id, copies, stamp);
      if (resolved !== null) found.set(id, resolved);
    }
    return found;
  }

  /** Every copy that there is of one issue. */
  async copies(
    id: Ulid,
    stamp: WrittenStamp | null,
    holder: string | null,
    committed: RawIssue | null,
  ): Promise<Copy[]> {
    const copies: Copy[] = [];
    const seen = new Set<string>();
    const look = async (layer: Layer, folder: IssueFolder | null) => {
      if (folder === null || seen.has(folder.root)) return;
      seen.add(folder.root);
      const raw = await folder.read(id, stamp);
      if (raw !== null) copies.push(copyFrom(layer, folder.root, raw));
    };
    const { here } = this.sources;
    if (holder !== null && holder !== here.worktreeId) await look("holder", await this.#folderOf(holder));
    await look("worktree", this.here);
    await look("main", this.main);
    if (stamp !== null && stamp.worktreeId !== here.worktreeId)
      await look("elsewhere", await this.#folderOf(stamp.worktreeId));
    if (committed !== null) copies.push(copyFrom("HEAD", null, committed));
    return copies;
  }

  /** What HEAD has of it, read before the mutex is taken: the mutex never covers a Git command. */
  async committed(id: Ulid): Promise<RawIssue | null> {
    const raw = (await this.#head?.read([id]))?.get(id) ?? null;
    if (raw === null) return null;
    const own = await this.here.read(id);
    const isNewer =
      own === null || versionOf(copyFrom("HEAD", null, raw)) > versionOf(copyFrom("worktree", "", own));
    // Of one that is newest there, what goes with it has to be at hand as well.
    if (!isNewer) return raw;
    const comments = await committedFile(this.sources, `issues/${id}/${COMMENTS}`);
    return { ...raw, comments, results: await committedResults(this.sources, id) };
  }

  async #folderOf(worktreeId: string): Promise<IssueFolder | null> {
    const root = await this.sources.rootOf(worktreeId);
    return root === null ? null : new IssueFolder(this.sources.platform, root);
  }
}

/** What HEAD has of its gate results. By Git: never under the mutex. */
export function committedResults(sources: Pick<IssueSources, "git" | "here">, id: Ulid): Promise<string> {
  return committedFile(sources, `${RESULTS}/${id}.jsonl`);
}

async function committedFile(
  { git, here }: Pick<IssueSources, "git" | "here">,
  path: string,
): Promise<string> {
  const answer = await git?.run(["cat-file", "blob", `HEAD:.cotenant/${path}`], { cwd: here.root });
  return answer?.status === 0 ? new TextDecoder().decode(answer.stdout) : "";
}

/** The issue, or the error a person can act on. */
export function usable(id: Ulid, found: FoundIssue | UnreadableIssue | null): FoundIssue {
  if (found === null) {
    throw notFoundError(
      `there is no issue ${id} in any worktree that can be seen from here`,
      "'cotenant issue list' shows what there is",
      { id },
    );
  }
  if (!isFound(found)) throw unreadable(found);
  if (!found.isDeleted) return found;
  throw notFoundError(
    `issue ${id} was deleted by ${found.ahead?.agentId ?? found.issue.updated_by}`,
    found.ahead === null
      ? "'cotenant issue list' shows what there is"
      : `if the branch with that was thrown away: cotenant claim acquire ${id} --reopen && cotenant issue reopen ${id}`,
    { id, deleted: true },
  );
}

function unreadable({ id, broken }: UnreadableIssue): CotenantError {
  const [copy] = broken;
  const reading = copy?.reading;
  const why = reading !== undefined && "broken" in reading ? reading.broken : "it is another issue's";
  const data = { id, layer: copy?.layer ?? null, why };
  const isNewer = reading !== undefined && "broken" in reading && reading.isNewer === true;
  return isNewer
    ? new CotenantError("E_SCHEMA_NEWER", `issue ${id} cannot be read: ${why}`, { data })
    : notFoundError(`issue ${id} cannot be read: ${why}`, `mend ${ISSUES}/${id}/issue.json`, data);
}
