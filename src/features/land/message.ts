import type { ObjectId } from "../../git/object-name";
import { printable } from "../../kernel/ids";
import { parseTrailers, type Trailer, trailerLines, uniqueBy } from "../hooks/trailers";
import { branchName } from "../publish/branch-rules";
import { cleanMessage, withLines } from "../publish/message";
import type { LandEntry } from "./entry";

/** A commit of the branch, as far as messages go. */
export interface Told {
  readonly oid: ObjectId;
  readonly message: string;
  /** `Ada Lovelace <ada@example.org>` */
  readonly author: string;
}

/** Who lands, and under which right. */
export interface Lander {
  readonly agentId: string;
  readonly worktreeId: string;
  /** The claims that the landing is pushed under, where they are shared between machines. */
  readonly rights: readonly Trailer[];
}

const MOST_SUBJECTS = 50;
const MOST_AUTHORS = 20;

/** What landed, and why, for `git log --format='%(trailers:key=Cotenant-Landed)'`. */
function landedLines({ branch, issueId }: LandEntry, commit: ObjectId): string[] {
  return [
    `Cotenant-Landed: ${branchName(branch)} ${commit}`,
    ...(issueId === null ? [] : [`Cotenant-Landed-Issue: ${issueId}`]),
  ];
}

/** What somebody wrote, without lines that only a landing writes, as Git reads them: in any case, with a space before the colon. */
function own(text: string): string {
  return cleanMessage(withoutLanded(text));
}

function withoutLanded(text: string): string {
  return text.replaceAll(/^Cotenant-Landed(?:-Issue)?[ \t]*:.*\n?/gim, "");
}

/** Of a landing by merge. */
export function mergeMessage(entry: LandEntry, lander: Lander): string {
  const said = entry.message ?? `Merge branch '${branchName(entry.branch)}' into ${branchName(entry.target)}`;
  const { agentId, worktreeId, rights } = lander;
  const lines = trailerLines({ agentId, worktreeId, issues: rights }, true);
  return withLines(own(said), [...landedLines(entry, entry.commit), ...lines]);
}

/** Of a landing as one commit: what the branch's commits say, on whose claims they rest, and who wrote them. */
export function squashMessage(
  entry: LandEntry,
  commits: readonly Told[],
  lander: Lander,
  author: string,
): string {
  const said = entry.message ?? messageOf(entry, commits);
  const read = commits.map(({ message }) => parseTrailers(message));
  const { agentId, worktreeId } = lander;
  const issues = uniqueBy(
    [...read.flatMap((one) => one.issues.filter(({ leaseId }) => leaseId !== null)), ...lander.rights],
    ({ issueId, leaseId }) => `${issueId} ${leaseId}`,
  );
  const leases = read.flatMap((one) => one.leases);
  const authors = [...new Set(commits.map((one) => one.author))].filter((one) => one !== author);
  return withLines(own(said), [
    ...authors.slice(0, MOST_AUTHORS).map((one) => `Co-authored-by: ${one}`),
    ...landedLines(entry, entry.commit),
    ...trailerLines({ agentId, worktreeId, issues, leases }, true),
  ]);
}

function messageOf({ branch }: LandEntry, commits: readonly Told[]): string {
  const [first] = commits;
  if (first === undefined) return `Land ${branchName(branch)}`;
  if (commits.length === 1) return emptied(first.message, `Land ${branchName(branch)}`);
  const subjects = commits.map(({ message }) => `* ${subjectOf(message)}`);
  const more = subjects.length - MOST_SUBJECTS;
  const listed = [...subjects.slice(0, MOST_SUBJECTS), ...(more > 0 ? [`* and ${more} more`] : [])];
  return `Land ${branchName(branch)}\n\n${listed.join("\n")}`;
}

/** A message of nothing but our own lines has no words of its own. */
function emptied(message: string, otherwise: string): string {
  try {
    return own(message);
  } catch {
    return otherwise;
  }
}

function subjectOf(message: string): string {
  return printable(message.trimStart().split("\n", 1)[0]!.trim(), 200);
}

/** Of one commit that is replayed: as it was, and what it was before. */
export function replayedMessage(entry: LandEntry, commit: Told, lander: Lander): string {
  const said = withoutLanded(commit.message).trimEnd();
  const message = said === "" ? `Land ${branchName(entry.branch)}` : said;
  const rights = trailerLines({ agentId: null, worktreeId: null, issues: lander.rights });
  return withLines(message, [...landedLines(entry, commit.oid), ...rights]);
}
