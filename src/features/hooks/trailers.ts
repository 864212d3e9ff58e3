import type { Git } from "../../platform/git";

/** A lease that a commit rests on. */
interface LeaseTrailer {
  readonly leaseId: string;
  /** Null where there is none that could be one. */
  readonly token: number | null;
}

/** Which claim a commit's change of an issue rests on. */
export interface Trailer {
  readonly issueId: string;
  readonly leaseId: string | null;
  readonly token: number | null;
}

export interface Trailers {
  readonly agentId: string | null;
  readonly worktreeId: string | null;
  readonly issues: readonly Trailer[];
  /** Of files and directories. */
  readonly leases?: readonly LeaseTrailer[];
}

/** What a message says, which may be made of several. */
export interface ReadTrailers extends Trailers {
  readonly leases: readonly LeaseTrailer[];
  /** Everybody who is named; `agentId` is the last of them. */
  readonly agentIds: readonly string[];
  readonly worktreeIds: readonly string[];
}

const NONE = "none";
/** A commit that rests on hundreds of leases need not name them all: the log does. */
const MOST_LEASES = 20;

/** Leases before issues: what follows an issue is its claim. Then who, and where; with `names` also where there is no lease. */
export function trailerLines(
  { agentId, worktreeId, issues, leases = [] }: Trailers,
  names = false,
): string[] {
  if (!names && issues.length === 0 && leases.length === 0) return [];
  return [
    ...leases
      .slice(0, MOST_LEASES)
      .flatMap(({ leaseId, token }) => [`Cotenant-Lease: ${leaseId}`, `Cotenant-Token: ${token ?? NONE}`]),
    ...issues.flatMap(({ issueId, leaseId, token }) => [
      `Cotenant-Issue: ${issueId}`,
      `Cotenant-Lease: ${leaseId ?? NONE}`,
      `Cotenant-Token: ${token ?? NONE}`,
    ]),
    ...whoLines(agentId, worktreeId),
  ];
}

/** Who committed, and where. */
export function whoLines(agentId: string | null, worktreeId: string | null): string[] {
  return [
    ...(agentId === null ? [] : [`Cotenant-Agent: ${agentId}`]),
    ...(worktreeId === null ? [] : [`Cotenant-Worktree: ${worktreeId}`]),
  ];
}

const LINE = /^Cotenant-(Issue|Lease|Token|Agent|Worktree):[ \t]*(.*?)[ \t\r]*$/;

/**
 * What a commit's message says, wherever in it: a squash keeps whole messages, indented. Whoever wrote it may have written anything.
 * A lease belongs to the issue right before it, and a token to the lease right before it.
 */
export function parseTrailers(message: string): ReadTrailers {
  const issues: { issueId: string; leaseId: string | null; token: number | null }[] = [];
  const leases: { leaseId: string; token: number | null }[] = [];
  const agentIds: string[] = [];
  const worktreeIds: string[] = [];
  let issue: (typeof issues)[number] | null = null;
  let lease: { token: number | null } | null = null;
  for (const line of unindented(message).split("\n")) {
    const [, name, value = ""] = LINE.exec(line) ?? [];
    if (name === undefined) continue;
    const isNone = value === NONE || value === "";
    const above: typeof issue = name === "Lease" ? issue : null;
    issue = null;
    if (name === "Issue") {
      issue = { issueId: value, leaseId: null, token: null };
      issues.push(issue);
    } else if (name === "Lease" && above !== null) {
      above.leaseId = isNone ? null : value;
      lease = above;
      continue;
    } else if (name === "Lease" && !isNone) {
      const one = { leaseId: value, token: null };
      leases.push(one);
      lease = one;
      continue;
    } else if (name === "Token" && lease !== null) lease.token = tokenOf(value);
    else if (name === "Agent") agentIds.push(value);
    else if (name === "Worktree") worktreeIds.push(value);
    lease = null;
  }
  return {
    agentId: agentIds.at(-1) ?? null,
    worktreeId: worktreeIds.at(-1) ?? null,
    issues,
    leases,
    agentIds,
    worktreeIds,
  };
}

function tokenOf(value: string): number | null {
  return /^\d{1,15}$/.test(value) ? Number(value) : null;
}

/** A squash shows the messages of its commits as `git log` does. */
function unindented(message: string): string {
  return message.replaceAll(/^ {4}(?=Cotenant-)/gm, "");
}

/** A message without ours, so that they can be written anew: of an amended, squashed or reused one. */
export function withoutTrailers(message: string): string {
  return message
    .split("\n")
    .filter((line) => !LINE.test(unindented(line)))
    .join("\n");
}

/**
 * What a commit rests on that is made of others (an amended, rebased, picked or squashed one): what theirs rested on, for
 * issues that it `concerns`, and what is known of it anew. A lease that was given back since stays: it was held then.
 */
export function carried(
  earlier: ReadTrailers,
  fresh: Trailers,
  concerns: (issueId: string) => boolean,
): Trailers {
  const issues = [
    ...earlier.issues.filter(({ issueId, leaseId }) => leaseId !== null && concerns(issueId)),
    ...fresh.issues,
  ];
  const leases = [...earlier.leases, ...(fresh.leases ?? [])];
  const named = new Set(issues.filter(({ leaseId }) => leaseId !== null).map(({ issueId }) => issueId));
  return {
    // Who wrote it, unless somebody says so anew.
    agentId: fresh.agentId ?? earlier.agentId,
    worktreeId: fresh.worktreeId ?? earlier.worktreeId,
    // "None" says nothing where another says which.
    issues: uniqueBy(
      issues.filter(({ issueId, leaseId }) => leaseId !== null || !named.has(issueId)),
      ({ issueId, leaseId }) => `${issueId} ${leaseId}`,
    ),
    leases: uniqueBy(leases, ({ leaseId }) => leaseId),
  };
}

/** The last of each name. */
export function uniqueBy<T>(items: readonly T[], name: (item: T) => string): T[] {
  return [...new Map(items.map((item) => [name(item), item])).values()];
}

/** More commits than this nobody looks through: the newest have the highest tokens. */
const MOST_COMMITS = 5_000;

/** The tokens that commits of any branch say they were made under. Whoever wrote one may have written anything. */
export async function committedTokens(git: Git, cwd: string): Promise<number[]> {
  const args = ["log", "--all", `--max-count=${MOST_COMMITS}`, "--grep=^Cotenant-Token:", "--format=%B%x00"];
  const { status, stdout } = await git.run(args, { cwd, timeoutMs: 60_000 });
  if (status !== 0) return [];
  return new TextDecoder()
    .decode(stdout)
    .split("\0")
    .flatMap((message) => {
      const { issues, leases } = parseTrailers(message);
      return [...issues, ...leases].flatMap(({ token }) => token ?? []);
    });
}
