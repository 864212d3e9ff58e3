import { policyError } from "../../errors/cotenant-error";
import { printable, type Ulid } from "../../kernel/ids";
import { gitFailed } from "../../platform/git-answers";
import { CommittedIssues } from "./committed";
import { IssueFolder } from "./folder";
import { type IssueReader, usable } from "./reader";
import { copyFrom, type FoundIssue, isFound, versionOf } from "./resolve";

/** More branches than this nobody looks through: then it cannot be told, and counts as if one had it. */
const MOST_TIPS = 500;

/**
 * Where the newest write of an issue still is, which none of the copies has that are usually looked at: a branch, here or
 * at a remote, or a worktree. Null: nowhere. Its branch was thrown away, and only the control plane remembers it.
 */
export async function placeOfNewest(
  { sources }: IssueReader,
  { id, ahead }: FoundIssue,
): Promise<string | null> {
  const { git, here, platform } = sources;
  if (ahead === null || git === null) return "a copy that can be seen from here";
  const ask = async (...args: string[]) => {
    const { status, stdout, stderr } = await git.run(args, { cwd: here.root, timeoutMs: 60_000 });
    if (status === 0) return new TextDecoder().decode(stdout);
    throw gitFailed("Git cannot list branches", stderr);
  };
  const tips = new Map<string, string>();
  for (const line of (
    await ask("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes")
  ).split("\n")) {
    const [oid, ref] = line.split(" ");
    if (oid !== undefined && ref !== undefined) tips.set(oid, ref.replace(/^refs\/(?:heads|remotes)\//, ""));
  }
  for (const field of (await ask("worktree", "list", "--porcelain", "-z")).split("\0")) {
    const [word, value] = [field.slice(0, field.indexOf(" ")), field.slice(field.indexOf(" ") + 1)];
    if (word === "HEAD" && !/^0+$/.test(value) && !tips.has(value)) tips.set(value, "a detached HEAD");
    if (word !== "worktree") continue;
    const raw = await new IssueFolder(platform, value).read(id, ahead);
    if (raw !== null && versionOf(copyFrom("elsewhere", value, raw)) >= ahead.version) return value;
  }
  if (tips.size > MOST_TIPS) return `one of ${tips.size} branches`;
  for (const [oid, name] of tips) {
    const raw = (await new CommittedIssues(git, here.root, oid).read([id], ["issue.json"])).get(id);
    if (raw !== undefined && versionOf(copyFrom("HEAD", null, raw)) >= ahead.version) return name;
  }
  return null;
}

/** A deleted issue that can be taken back, because nothing has its deletion any more; else why it cannot. */
export async function takenBack(reader: IssueReader, id: Ulid): Promise<FoundIssue> {
  const found = await reader.find(id);
  if (!isFound(found) || !found.isDeleted || found.ahead === null) return usable(id, found);
  const place = await placeOfNewest(reader, found);
  if (place === null) return found;
  throw policyError(
    `issue ${id} was deleted by ${found.ahead.agentId}, and ${printable(place, 300)} has that`,
    "what was deleted comes back only when no branch and no worktree has its deletion any more",
    { id, deleted: true, place: printable(place, 300) },
  );
}

/** What a person can do about a write that nothing has any more. */
export function takeBackHint(id: Ulid): string {
  return `cotenant claim acquire ${id} --reopen && cotenant issue reopen ${id}`;
}
