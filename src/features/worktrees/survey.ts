import type { LeaseStatus } from "../../coordinator/contract";
import type { Workspace } from "../../coordinator/workspace";
import { decode } from "../../identity/path-text";
import { listWorktrees, type WorktreeEntry } from "../../identity/worktree-list";
import type { WorktreeId } from "../../kernel/ids";
import type { Git } from "../../platform/git";
import type { Liveness } from "../../platform/platform";
import { type Access, accessFact, accessIn } from "./access";
import { LONG_MS } from "./git-calls";
import { type WorktreeRecord, worktreeRecords } from "./records";
import { writerKey } from "./writer-lock";

/** What is in a working tree beyond its last commit. */
export interface Dirt {
  readonly staged: number;
  readonly changed: number;
  readonly untracked: number;
  readonly conflicts: number;
}

export interface GitState {
  readonly dirt: Dirt;
  /** Null where there is nothing to compare with. */
  readonly ahead: number | null;
  readonly behind: number | null;
  readonly comparedWith: string | null;
}

/** Somebody with leases taken from a worktree. */
interface Presence {
  readonly agentId: string;
  readonly sessionId: string;
  readonly leases: number;
  readonly lastBeat: string;
  /** Of the process, where leases are bound to one; else null. */
  readonly liveness: Liveness | null;
}

export interface Surveyed extends WorktreeEntry {
  readonly leases: readonly LeaseStatus[];
  readonly agents: readonly Presence[];
  readonly writer: LeaseStatus | null;
  readonly access: Access;
  readonly record: WorktreeRecord | null;
  /** Null where it is gone, was not asked for, or Git cannot say. */
  readonly state: GitState | null;
}

/** Every worktree, with who works there and what Git would say. Writes nothing, takes no lock. */
export async function surveyWorktrees(
  workspace: Workspace,
  { withGit }: { readonly withGit: boolean },
): Promise<Surveyed[]> {
  const { surroundings, repository, coordinator } = workspace;
  const { platform, git } = surroundings;
  const entries = await listWorktrees(platform, git, repository);
  const all = await coordinator.list();
  const ids = entries.flatMap(({ worktreeId }) => (worktreeId === null ? [] : [worktreeId]));
  const facts = await coordinator.facts({ names: ids.map(accessFact) });
  const records = await worktreeRecords(coordinator);
  const base = entries.find(({ isMain }) => isMain)?.branch ?? null;
  const states = withGit ? await gitStates(git, entries, base) : new Map<string, GitState>();
  const surveyed: Surveyed[] = [];
  for (const entry of entries) {
    const id = entry.worktreeId;
    const leases = all.filter(({ lease }) => lease.worktreeId === id);
    surveyed.push({
      ...entry,
      leases,
      agents: await presences(workspace, leases),
      writer: id === null ? null : writerOf(all, id),
      access: id === null ? "exclusive" : accessIn(facts, id),
      record: id === null ? null : (records.get(id) ?? null),
      state: states.get(entry.root) ?? null,
    });
  }
  return surveyed;
}

function writerOf(all: readonly LeaseStatus[], worktreeId: WorktreeId): LeaseStatus | null {
  const key = writerKey(worktreeId);
  return all.find(({ lease, standing }) => lease.key === key && standing === "valid") ?? null;
}

async function presences(workspace: Workspace, leases: readonly LeaseStatus[]): Promise<Presence[]> {
  const { processes } = workspace.surroundings.platform;
  const parties = new Map<string, LeaseStatus[]>();
  for (const status of leases) {
    const name = `${status.lease.agentId}\n${status.lease.sessionId}`;
    parties.set(name, [...(parties.get(name) ?? []), status]);
  }
  const found: Presence[] = [];
  for (const held of parties.values()) {
    const { agentId, sessionId } = held[0]!.lease;
    const bound = held.find(({ lease }) => lease.bind === "process");
    const lastBeat = Math.max(...held.map(({ lease }) => lease.lastBeat.wallMs));
    found.push({
      agentId,
      sessionId,
      leases: held.length,
      lastBeat: new Date(lastBeat).toISOString(),
      liveness: bound === undefined ? null : await processes.liveness(bound.lease.holder),
    });
  }
  return found;
}

const AT_ONCE = 4;

async function gitStates(
  git: Git,
  entries: readonly WorktreeEntry[],
  base: string | null,
): Promise<Map<string, GitState>> {
  const states = new Map<string, GitState>();
  const waiting = entries.filter(({ exists }) => exists);
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const state = await gitState(git, next, base);
      if (state !== null) states.set(next.root, state);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return states;
}

/** Git may not write its index for it, nor take a lock. */
const READ_ONLY = { GIT_OPTIONAL_LOCKS: "0" };

export async function gitState(
  git: Git,
  { root, gitDir, branch }: Pick<WorktreeEntry, "root" | "gitDir" | "branch">,
  base: string | null,
): Promise<GitState | null> {
  const options = { cwd: root, env: READ_ONLY, timeoutMs: LONG_MS };
  const place = ["--git-dir", gitDir, "--work-tree", root];
  const { status, stdout } = await git.run(
    [
      ...place,
      "status",
      "--porcelain=v2",
      "--branch",
      "-z",
      "--untracked-files=normal",
      "--ignore-submodules=none",
    ],
    options,
  );
  if (status !== 0) return null;
  const { dirt, upstream, ahead, behind } = parseStatus(decode(stdout));
  if (upstream !== null || base === null || base === branch)
    return { dirt, ahead, behind, comparedWith: ahead === null ? null : upstream };
  const range = `refs/heads/${base}...HEAD`;
  const counted = await git.run([...place, "rev-list", "--left-right", "--count", range, "--"], options);
  const numbers = /^(\d+)\t(\d+)/.exec(decode(counted.stdout));
  if (counted.status !== 0 || numbers === null)
    return { dirt, ahead: null, behind: null, comparedWith: null };
  return { dirt, ahead: Number(numbers[2]), behind: Number(numbers[1]), comparedWith: base };
}

/** What `git status --porcelain=v2 --branch -z` says, counted. */
export function parseStatus(text: string): {
  readonly dirt: Dirt;
  readonly upstream: string | null;
  readonly ahead: number | null;
  readonly behind: number | null;
} {
  let [staged, changed, untracked, conflicts] = [0, 0, 0, 0];
  let upstream: string | null = null;
  let [ahead, behind]: (number | null)[] = [null, null];
  const records = text.split("\0");
  for (let at = 0; at < records.length; at++) {
    const record = records[at]!;
    const [kind, xy = ""] = record.split(" ", 2);
    if (kind === "1" || kind === "2") {
      if (xy[0] !== ".") staged++;
      if (xy[1] !== ".") changed++;
      // A rename has its old name in a record of its own.
      if (kind === "2") at++;
    } else if (kind === "u") conflicts++;
    else if (kind === "?") untracked++;
    else if (record.startsWith("# branch.upstream ")) upstream = record.slice("# branch.upstream ".length);
    else {
      const numbers = /^# branch\.ab \+(\d+) -(\d+)$/.exec(record);
      if (numbers !== null) [ahead, behind] = [Number(numbers[1]), Number(numbers[2])];
    }
  }
  return {
    dirt: { staged, changed, untracked, conflicts },
    upstream,
    ahead: ahead ?? null,
    behind: behind ?? null,
  };
}

export function isDirty({ staged, changed, untracked, conflicts }: Dirt): boolean {
  return staged + changed + untracked + conflicts > 0;
}
