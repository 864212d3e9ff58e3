import type { LeaseStatus } from "../../../coordinator/contract";
import { type ChangeRequest, givenReason, requestIdOf } from "../../../coordinator/requests";
import { CotenantError, orThrow, usageError } from "../../../errors/cotenant-error";
import type { Ulid } from "../../../kernel/ids";
import { checkText } from "../../../kernel/policy";
import { pendingGates, readResults, resetLines } from "../../gates/results";
import type { ClaimsView } from "../../ledger/view";
import { ledgerView, workersOn } from "../../ledger/workers";
import { type AbandonedWork, abandonedWorkOn } from "../../snapshots/abandoned-work";
import { fieldChanges } from "../changes";
import { finishCheck } from "../claimable";
import { type Comment, encodeComment, newComment, readComments } from "../comments";
import { authorAt, type Desk, uniqueLabels, writerAt } from "../desk";
import { NO_WORKERS } from "../effective";
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
import { takenBack } from "../lost";
import { meant } from "../meant";
import { type Issue, type IssueState, isTerminal } from "../model";
import { type FilterRequest, queryAll } from "../query";
import type { IssueReader } from "../reader";
import { type FoundIssue, isFound } from "../resolve";
import { shortId } from "../short-id";
import { parseState, stateAfter } from "../states";
import { createIssues } from "./bulk-creation";
import { createIssue } from "./creation";
import { type ChangedIssue, changeIssue, countedBy, type IssueRequest } from "./issue-change";
import { type Listed, listing } from "./query";

export interface ShownIssue {
  /** With the state and the assignee that count. */
  readonly found: FoundIssue;
  readonly shortId: string;
  readonly comments: readonly Comment[];
  /** What comes before it; without a title, what is not here. */
  readonly needs: readonly {
    readonly id: string;
    readonly shortId: string | null;
    readonly title: string | null;
  }[];
  /** This clone's claim on it. */
  readonly claim: LeaseStatus | null;
  /** What the ledger says of claims; null where there is none. */
  readonly view: ClaimsView | null;
  readonly abandoned: AbandonedWork | null;
}

export interface UpdateRequest extends IssueRequest, FieldsRequest {
  readonly state?: string | undefined;
  readonly labels?: readonly string[];
  readonly removeLabels?: readonly string[];
  readonly removeFiles?: readonly string[];
  readonly removeContext?: readonly string[];
  /** With the state `done`: how it was done, or why it need not wait. */
  readonly reason?: string | undefined;
  /** With the state `done`: though it waits for another issue. */
  readonly allowBlocked?: boolean;
  /** Give the claim back as well. */
  readonly release?: boolean;
}

export interface Commented {
  readonly id: Ulid;
  readonly shortId: string;
  readonly comment: Comment;
  readonly replayed: boolean;
}

export interface ReasonRequest extends IssueRequest {
  readonly reason?: string | undefined;
}

export const issue = {
  create: createIssue,
  createMany: createIssues,

  /** One issue, from whichever copy is newest. */
  async show(desk: Desk, request: { readonly issue: string }): Promise<ShownIssue> {
    const { reader, workspace } = desk;
    const found = await meant(reader, request.issue);
    const { id, ahead, diverged, broken } = found;
    const view = workspace === null ? null : await ledgerView(workspace);
    const workers = workspace === null ? NO_WORKERS : await workersOn(workspace, id);
    const version = found.issue.stamp.version;
    const remarks = [
      ...(ahead === null
        ? []
        : [
            `version ${ahead.version} (${ahead.state}), written by ${ahead.agentId} in ${ahead.worktreeId}, is in no copy that can be seen from here`,
          ]),
      ...diverged.map(
        ({ root }) =>
          `${root ?? "HEAD"} has another version ${version}: compare the two, and change the issue once more`,
      ),
      ...broken.map(({ root }) => `${root ?? "HEAD"} has a copy that cannot be read`),
    ];
    workspace?.warnings.push(...remarks);
    return {
      found: countedBy(workers, found),
      shortId: shortId(id, await reader.ids()),
      comments: await readComments(reader, found),
      needs: await neededBy(reader, found),
      claim: workers.claims.get(id) ?? null,
      view,
      abandoned: workspace === null ? null : await abandonedWorkOn(workspace, reader, workers, found),
    };
  },

  /** Issues of all worktrees and of HEAD, each from its newest copy: the most urgent first, then by type, then the oldest. */
  list(desk: Desk, request: FilterRequest = {}): Promise<Listed> {
    return listing(desk, request, (setting, filter) => queryAll(setting, filter, "everywhere"));
  },

  async update(desk: Desk, request: UpdateRequest): Promise<ChangedIssue> {
    const { reader } = desk;
    const { labels: add = [], removeLabels: remove = [], removeFiles = [], removeContext = [] } = request;
    const fields = fieldsOf(request);
    const files = filesOf(request.files ?? []);
    const context = contextOf(request.context ?? []);
    const labels = labelsOf(add);
    const wanted = request.state === undefined ? null : parseState(request.state);
    const hasFiles = files.length + removeFiles.length > 0;
    const hasContext = Object.keys(context).length + removeContext.length > 0;
    const hasFields = Object.keys(fields).length > 0 || hasFiles || hasContext;
    if (!hasFields && labels.length + remove.length === 0 && wanted === null)
      throw new CotenantError("E_USAGE", "nothing to change was given", {
        hint: "say what: --state, --title, --description, --priority, --assignee, --label, --file, --context",
      });
    const resolution = resolutionOf(request, wanted);
    const lists = (before: Issue): Partial<Issue> => ({
      ...(hasFiles
        ? { files: [...new Set([...before.files, ...files])].filter((path) => !removeFiles.includes(path)) }
        : {}),
      ...(hasContext
        ? {
            context: Object.fromEntries(
              Object.entries({ ...before.context, ...context }).filter(
                ([name]) => !removeContext.includes(name),
              ),
            ),
          }
        : {}),
    });
    return changeIssue(
      desk,
      request,
      async (id) => {
        const checksNeeds = wanted === "done" && request.allowBlocked !== true;
        const check = checksNeeds ? await finishCheck(reader, id) : null;
        return async (current) => {
          check?.(current);
          const pending = wanted === "done" ? await pendingGates(reader, current) : [];
          const next: Partial<Issue> = {
            ...fields,
            ...lists(current.issue),
            ...(wanted === null ? {} : { state: stateAfter(current.issue, wanted, pending) }),
            ...(resolution === null ? {} : { resolution }),
          };
          const changes = fieldChanges(current.issue, next);
          const set = labelChange(current.labels, labels, remove, uniqueLabels(desk));
          const isSame =
            set.add.every((label) => current.labels.includes(label)) &&
            !set.remove.some((label) => current.labels.includes(label));
          if (Object.keys(changes).length === 0 && isSame) return null;
          const payload = { issue_id: id, changes, ...(isSame ? {} : { labels: set }) };
          return { fields: next, labels: set, events: [{ type: "issue.updated", payload }] };
        };
      },
      { releases: request.release === true },
    );
  },

  /** Only from the main worktree. A tombstone stays, and the caller's claim is given back: nothing is left to work on. */
  async delete(desk: Desk, request: ReasonRequest): Promise<ChangedIssue> {
    const { mainRoot, here, platform } = desk.reader.sources;
    const { reason = null } = request;
    const plan = async (id: Ulid) => {
      if (desk.workspace !== null && mainRoot !== null && mainRoot !== here.root)
        throw new CotenantError("E_POLICY", "an issue is deleted from the main worktree only", {
          hint: `cd ${mainRoot}, claim it there, and delete it`,
          data: { main_worktree: mainRoot },
        });
      return () => ({
        fields: {
          deleted_at: new Date(platform.clock.wallMs()).toISOString(),
          ...(reason === null ? {} : { resolution: reason }),
        },
        events: [{ type: "issue.deleted", payload: { issue_id: id, reason } } as const],
      });
    };
    return changeIssue(desk, request, plan, { releases: true });
  },

  async assign(desk: Desk, request: IssueRequest & { readonly assignee: string }): Promise<ChangedIssue> {
    return assignTo(desk, request, assigneeOf(request.assignee));
  },

  unassign(desk: Desk, request: IssueRequest): Promise<ChangedIssue> {
    return assignTo(desk, request, null);
  },

  /** Closes it without doing it. Its gates do not matter then. */
  async reject(desk: Desk, request: ReasonRequest): Promise<ChangedIssue> {
    const resolution = givenReason(request.reason, "rejecting an issue");
    return changeIssue(desk, request, async (id) => ({ issue }) => {
      if (issue.state === "rejected" && issue.resolution === resolution) return null;
      const state = stateAfter(issue, "rejected", []);
      const changes = { state: { from: issue.state, to: state } };
      return {
        fields: { state, resolution },
        events: [{ type: "issue.updated", payload: { issue_id: id, changes, reason: resolution } }],
      };
    });
  },

  /** Brings back what has ended, as ready. What was passed for the work that was not good enough has to be passed again. */
  async reopen(desk: Desk, request: ReasonRequest): Promise<ChangedIssue> {
    const { reader } = desk;
    const { reason = null } = request;
    const plan = async (id: Ulid) => {
      const by = await authorAt(desk);
      return async (current: FoundIssue) => {
        const { issue, state, isDeleted } = current;
        if (!isTerminal({ state }) && !isDeleted) return null;
        // What a deletion left of it, where nothing has the deletion any more, is what it was before.
        const open = isTerminal({ state }) || isTerminal(issue) ? "ready" : issue.state;
        const changes = { state: { from: isDeleted ? "deleted" : state, to: open } };
        const results = await readResults(reader, current);
        return {
          fields: { state: open, resolution: null, deleted_at: null },
          results: resetLines(reader.sources.platform, results, issue.gates, by),
          events: [{ type: "issue.updated", payload: { issue_id: id, changes, reason } } as const],
        };
      };
    };
    const takesBack = async (id: Ulid) => (await takenBack(reader, id)).isDeleted;
    return changeIssue(desk, request, plan, { takesBack });
  },

  /** Comments only ever come, so nobody needs a claim for one. */
  async comment(
    desk: Desk,
    request: ChangeRequest & { readonly issue: string; readonly text: string },
  ): Promise<Commented> {
    const { reader, workspace } = desk;
    const { id } = await meant(reader, request.issue);
    const short = shortId(id, await reader.ids());
    const by = (await workspace?.actorOrNull())?.agentId ?? "";
    const comment = newComment(reader.sources.platform, by, request.text);
    const writer = await writerAt(desk);
    const once = workspace === null ? null : requestIdOf(workspace, request);
    const event = { type: "issue.commented", payload: { issue_id: id, comment_id: comment.id } } as const;
    const changed = await writer.comment(id, encodeComment(comment), event, once);
    return { id, shortId: short, comment, replayed: !changed };
  },
};

function fieldsOf({ title, description, priority, assignee }: FieldsRequest): Partial<Issue> {
  return {
    ...(title === undefined ? {} : { title: titleOf(title) }),
    ...(description === undefined ? {} : { description: descriptionOf(description) }),
    ...(priority === undefined ? {} : { priority: priorityOf(priority) }),
    ...(assignee === undefined ? {} : { assignee: assigneeOf(assignee) }),
  };
}

/** How it was done, or why it need not wait. */
function resolutionOf({ reason, allowBlocked }: UpdateRequest, wanted: IssueState | null): string | null {
  if (wanted === "done") {
    if (allowBlocked === true) return givenReason(reason, "finishing an issue that waits for another");
    orThrow(checkText(reason ?? null, "reason"));
    return reason ?? null;
  }
  const flag = allowBlocked === true ? "allow-blocked" : reason === undefined ? null : "reason";
  if (flag === null) return null;
  throw usageError(`--${flag} goes with --state done`, `leave out --${flag}, or say what the issue becomes`);
}

function assignTo(desk: Desk, request: IssueRequest, assignee: string | null): Promise<ChangedIssue> {
  return changeIssue(desk, request, async (id) => ({ issue }) => {
    if (issue.assignee === assignee) return null;
    const changes = { assignee: { from: issue.assignee, to: assignee } };
    return {
      fields: { assignee },
      events: [{ type: "issue.updated", payload: { issue_id: id, changes } }],
    };
  });
}

async function neededBy(reader: IssueReader, { dependencies }: FoundIssue): Promise<ShownIssue["needs"]> {
  if (dependencies.length === 0) return [];
  const ids = await reader.ids();
  const found = await reader.findNamed(dependencies);
  return dependencies.map((id) => {
    const one = found.get(id) ?? null;
    return isFound(one)
      ? { id, shortId: shortId(one.id, ids), title: one.issue.title }
      : { id, shortId: null, title: null };
  });
}
