import type { Context } from "../../../cli/grammar/command";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import type { Ulid } from "../../../kernel/ids";
import { nodePlatform } from "../../../platform/node/node";
import { issuesIn, plainIssues, writerIn } from "../desk";
import type { Issue } from "../model";
import type { IssueReader } from "../reader";
import type { FoundIssue } from "../resolve";
import { shortId } from "../short-id";
import { IssueWriter } from "../writer";

/** What a command about issues works with. `workspace` is null outside Git. */
export interface Desk {
  readonly reader: IssueReader;
  readonly workspace: Workspace | null;
}

/** Issues live in a repository, or outside Git in a plain `.cotenant/` in the current directory or above it. */
export async function openDesk(context: Context): Promise<Desk> {
  try {
    const workspace = await context.workspace();
    return { reader: await issuesIn(workspace), workspace };
  } catch (error) {
    if (!(error instanceof CotenantError) || error.code !== "E_NOT_A_REPO") throw error;
    // A bare repository, Git's own directory and one that Git cannot read are no place for a plain one.
    if (error.data["git_dir"] !== undefined || error.data["git"] !== undefined) throw error;
    if (await needsWorktree(context)) throw error;
    const here = (await nearestData(process.cwd())) ?? process.cwd();
    return { reader: plainIssues(nodePlatform(), here), workspace: null };
  }
}

/** `worktree.mode = on`, from the environment or from files of the person or the machine. */
async function needsWorktree(context: Context): Promise<boolean> {
  const { inspectConfig } = await import("../../../config/load");
  const { config } = await inspectConfig({ ...context.surroundings(), worktreeRoot: null });
  return config.values["worktree.mode"] === "on";
}

/** Outside Git, and where nobody says who they are, enforcement is off. */
export async function writerAt({ reader, workspace }: Desk): Promise<IssueWriter> {
  return workspace === null ? new IssueWriter(reader, null, "off", "") : writerIn(workspace, reader);
}

async function nearestData(from: string): Promise<string | null> {
  const { files } = nodePlatform();
  for (let directory = from; ; directory = directory.slice(0, directory.lastIndexOf("/"))) {
    if ((await files.stat(`${directory}/.cotenant`))?.kind === "directory") return directory;
    if (directory === "" || !directory.includes("/")) return null;
  }
}

/** `state` and `assignee`: those that count, where they are shown; those that were written, where that is the answer. */
export function issueJson(
  {
    issue,
    labels,
    dependencies,
    state,
    assignee = issue.assignee,
  }: Pick<FoundIssue, "issue" | "labels" | "dependencies" | "state"> & { readonly assignee?: string | null },
  /** All ids there are, or the short one if it is known already. */
  all: readonly Ulid[] | string,
): Record<string, unknown> {
  const { extra: _, ...fields } = issue;
  const short = typeof all === "string" ? all : shortId(issue.id, all);
  return { ...fields, state, assignee, labels, dependencies, short_id: short };
}

/** Of an issue that has just been made. */
export function newIssueJson(
  issue: Issue,
  sets: { readonly labels: readonly string[]; readonly dependencies: readonly string[] },
  all: readonly Ulid[],
): Record<string, unknown> {
  return issueJson({ issue, ...sets, state: issue.state }, all);
}
