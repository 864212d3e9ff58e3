import type { Context } from "../../../cli/grammar/command";
import { shellWord } from "../../../cli/terminal/render";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, orThrow } from "../../../errors/cotenant-error";
import type { LeaseRef } from "../../../kernel/commands";
import { printable, type Ulid } from "../../../kernel/ids";
import { dirKey, fileKey, issueKey, KEY_KINDS, type LeaseKey, parseKey } from "../../../kernel/keys";
import { nodePlatform } from "../../../platform/node/node";
import { byKey } from "../../locks/commands/targets";
import { issuesIn, plainIssues, writerIn } from "../desk";
import { wholeId } from "../meant";
import type { Issue } from "../model";
import type { IssueReader } from "../reader";
import type { FoundIssue } from "../resolve";
import { resolveId, shortId } from "../short-id";
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

/** A claim as people name it: by the issue's id, short or whole, or by the lease's id. */
export async function claimRef(workspace: Workspace, typed: string): Promise<LeaseRef> {
  const whole = wholeId(typed);
  if (whole !== null) {
    const key = orThrow(issueKey(whole));
    // The claim of an issue that is gone can still be given back by the issue's id.
    const onIssue = await workspace.coordinator.find([byKey(key)]);
    if (onIssue.length > 0) return byKey(key);
    const found = await (await issuesIn(workspace)).find(whole);
    return found === null ? { key: null, leaseId: whole } : byKey(key);
  }
  return byKey(orThrow(issueKey(resolveId(typed, await (await issuesIn(workspace)).ids()))));
}

/** A lease of any kind: a claim as `claimRef` has it, or a key as tables show it. A lock's path is not guessed to be an issue. */
export async function leaseMeant(
  workspace: Workspace,
  typed: string,
  /** The verb of `claim` for which it is meant. */
  verb: "approve" | "force-evict" | "transfer",
): Promise<LeaseRef> {
  if (typed.startsWith("issue:")) return claimRef(workspace, typed.slice("issue:".length));
  if (KEY_KINDS.some((kind) => typed.startsWith(`${kind}:`))) return byKey(orThrow(parseKey(typed)));
  try {
    return await claimRef(workspace, typed);
  } catch (error) {
    const key = await lockedPath(workspace, typed);
    if (key === null) throw error;
    const name = shellWord(key);
    const commands = {
      approve: `cotenant claim approve ${name}`,
      "force-evict": `cotenant claim force-evict ${name} --reason <why>`,
      transfer: `cotenant claim transfer ${name} --to-agent <id> --reason <why>`,
    };
    throw new CotenantError(
      "E_USAGE",
      `"${printable(typed, 200)}" is no issue; a lock is named by its key, ${key}`,
      {
        hint: `run: ${commands[verb]}`,
        data: { key },
      },
    );
  }
}

/** The key of a file or directory that a word may name: one that is there, that is leased, or that looks like a path. */
async function lockedPath(workspace: Workspace, typed: string): Promise<string | null> {
  try {
    const { path, isDirectory } = await workspace.path(typed);
    const keys = [orThrow(fileKey(path)), orThrow(dirKey(path))];
    const held = await workspace.coordinator.find(keys.map(byKey));
    if (held[0] !== undefined) return held[0].lease.key;
    if (isDirectory === null && !/[./]/.test(typed)) return null;
    return isDirectory === true ? keys[1]! : keys[0]!;
  } catch {
    return null;
  }
}

export function keyOfIssue(id: Ulid): LeaseKey {
  return orThrow(issueKey(id));
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
