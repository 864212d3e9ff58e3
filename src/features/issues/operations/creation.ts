import { type ChangeRequest, requestIdOf } from "../../../coordinator/requests";
import { usageError } from "../../../errors/cotenant-error";
import { makeUlid, type Ulid } from "../../../kernel/ids";
import { knownGates } from "../../gates/registry";
import { type Desk, uniqueLabels } from "../desk";
import {
  assigneeOf,
  contextOf,
  descriptionOf,
  type FieldsRequest,
  filesOf,
  labelsOf,
  priorityOf,
  titleOf,
} from "../fields";
import { labelChange } from "../labels";
import { meantId } from "../meant";
import { type Issue, newIssue } from "../model";
import { shortId } from "../short-id";
import { parseState } from "../states";
import { type Draft, IssueWriter } from "../writer";

export interface CreateRequest extends ChangeRequest, FieldsRequest {
  readonly labels?: readonly string[];
  /** Issues that have to be done before. */
  readonly dependsOn?: readonly string[];
  /** Gates that it has to pass. */
  readonly gates?: readonly string[];
  /** `backlog` or `ready`. Default `ready`. */
  readonly state?: string | undefined;
}

export interface CreatedIssue extends Draft {
  readonly shortId: string;
  /** Its file. */
  readonly path: string;
  readonly replayed: boolean;
}

/** What an issue is made of, each part checked but for what it depends on. */
export type DraftFields = Pick<
  Issue,
  "title" | "description" | "priority" | "assignee" | "files" | "context" | "gates" | "state"
> &
  Pick<Draft, "labels" | "dependencies">;

/** Needs no lease. With a request id that was used before, it is the issue that was made then. */
export async function createIssue(desk: Desk, request: CreateRequest): Promise<CreatedIssue> {
  const others = await desk.reader.ids();
  const draft = await draftOf(desk, request);
  const creator = await creatorAt(desk);
  const once = desk.workspace === null ? null : requestIdOf(desk.workspace, request);
  const issue = await creator.createOne(draft, once);
  return createdIssue(desk, issue, draft, shortId(issue.id, others));
}

export function createdIssue(
  { reader }: Desk,
  issue: Issue,
  { labels, dependencies, issue: wanted }: Draft,
  short: string,
): CreatedIssue {
  const { id } = issue;
  const path = `${reader.here.folder(id)}/issue.json`;
  return { issue, labels, dependencies, shortId: short, path, replayed: id !== wanted.id };
}

/** Empty where nobody says who they are: creating needs no name. */
export async function creatorName({ workspace }: Desk): Promise<string> {
  return (await workspace?.actorOrNull())?.agentId ?? "";
}

/** Without a name the issue says so too, and the log does not. */
export async function creatorAt({ reader, workspace }: Desk): Promise<IssueWriter> {
  const caller = (await workspace?.actorOrNull()) ?? null;
  if (workspace === null || caller === null) {
    await workspace?.worktree("write");
    return new IssueWriter(reader, null, "off", "");
  }
  return new IssueWriter(reader, await workspace.session("write"), "off", caller.agentId);
}

/** `id`: of one that a request names; else a new one. */
export async function draftOf(desk: Desk, request: CreateRequest, id: Ulid | null = null): Promise<Draft> {
  const { reader } = desk;
  const dependencies: Ulid[] = [];
  for (const typed of request.dependsOn ?? []) dependencies.push(await meantId(reader, typed));
  const state = parseState(request.state ?? "ready");
  if (state !== "ready" && state !== "backlog")
    throw usageError(`a new issue cannot be ${state}`, "use --state backlog or ready");
  const { title, description = "", priority = "normal", assignee } = request;
  const fields = {
    title: titleOf(title),
    description: descriptionOf(description),
    priority: priorityOf(priority),
    assignee: assignee === undefined ? null : assigneeOf(assignee),
    files: filesOf(request.files ?? []),
    context: contextOf(request.context ?? []),
    gates: await knownGates(reader, request.gates ?? []),
    state,
    labels: labelsOf(request.labels ?? []),
    dependencies,
  };
  return draftFrom(desk, fields, await creatorName(desk), id);
}

export function draftFrom(
  desk: Desk,
  { labels, dependencies, ...fields }: DraftFields,
  creator: string,
  id: Ulid | null = null,
): Draft {
  const { clock, random } = desk.reader.sources.platform;
  const issue = newIssue({
    ...fields,
    id: id ?? makeUlid(clock.wallMs(), random.bytes(10)),
    created_at: new Date(clock.wallMs()).toISOString(),
    created_by: creator,
    stamp: { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null },
  });
  return { issue, labels: labelChange([], labels, [], uniqueLabels(desk)).add, dependencies };
}
