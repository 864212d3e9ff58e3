import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import type { IssueChange } from "./changes";
import type { Issue } from "./model";
import type { IssueReader } from "./reader";
import { type FoundIssue, isFound } from "./resolve";
import type { IssueWriter, WriteOptions } from "./writer";

/**
 * What the end of a claim undoes of what was written under it: an issue that nobody works on is ready, and whoever held
 * it is not its assignee any more. Null where there is nothing to undo; an assignment to somebody else stands.
 */
function putBack({ issue, state }: FoundIssue, holder: string): IssueChange | null {
  if (state !== "backlog" && state !== "ready" && state !== "in_progress") return null;
  const changes: Record<string, { from: unknown; to: unknown }> = {};
  const fields: { state?: Issue["state"]; assignee?: null } = {};
  if (state === "in_progress") {
    fields.state = "ready";
    changes["state"] = { from: state, to: "ready" };
  }
  if (issue.assignee === holder) {
    fields.assignee = null;
    changes["assignee"] = { from: holder, to: null };
  }
  if (Object.keys(changes).length === 0) return null;
  return {
    fields,
    events: [{ type: "issue.updated", payload: { issue_id: issue.id, changes, released: holder } }],
  };
}

/**
 * Before the release, under the claim itself: whoever dies in between leaves an issue that is ready and claimed, which
 * is in progress until the claim ends. Answers why it could not be done, if so: no release fails for that, because
 * what is written in progress without a claim counts as abandoned work.
 */
export async function writeBack(
  writer: IssueWriter,
  reader: IssueReader,
  { id, holder }: { readonly id: Ulid; readonly holder: string },
  options: WriteOptions,
): Promise<{ readonly isChanged: boolean; readonly failure: string | null }> {
  try {
    const found = await reader.find(id);
    if (!isFound(found) || found.isDeleted || putBack(found, holder) === null)
      return { isChanged: false, failure: null };
    const { changed } = await writer.update(id, (current) => putBack(current, holder), options);
    return { isChanged: changed, failure: null };
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return { isChanged: false, failure: `issue ${id} could not be put back to ready: ${error.message}` };
  }
}
