import { type HolderRequest, proofOf } from "../../../coordinator/requests";
import type { Ulid } from "../../../kernel/ids";
import { releaseIfHeld } from "../../claims/operations";
import { workersOn } from "../../ledger/workers";
import { type Desk, writerAt } from "../desk";
import { effective, type Workers } from "../effective";
import { meantId } from "../meant";
import type { IssueState } from "../model";
import type { FoundIssue } from "../resolve";
import { shortId } from "../short-id";
import type { Change, WriteOptions } from "../writer";

/** What every operation that changes an issue takes; the caller has claimed it. */
export interface IssueRequest extends HolderRequest {
  /** Its id, short or whole. */
  readonly issue: string;
}

export interface ChangedIssue {
  /** As it stands now, with the state and the assignee that count. */
  readonly found: FoundIssue;
  readonly shortId: string;
  /** The state in its file, which a claim stands above. */
  readonly written: IssueState;
  readonly changed: boolean;
  readonly replayed: boolean;
  /** Whether the caller's claim was given back with it. */
  readonly isReleased: boolean;
}

/** Changes one issue under its claim. */
export async function changeIssue(
  desk: Desk,
  request: IssueRequest & { readonly reason?: string | undefined },
  plan: (id: Ulid) => Promise<Change>,
  more: {
    /** In place of what proves the claim. */
    readonly proof?: () => Promise<WriteOptions>;
    readonly takesBack?: (id: Ulid) => Promise<boolean>;
    readonly releases?: boolean;
  } = {},
): Promise<ChangedIssue> {
  const { reader, workspace } = desk;
  const id = await meantId(reader, request.issue);
  // Before the write: what is done must not be said to have failed because of what is read afterwards.
  const short = shortId(id, await reader.ids());
  const change = await plan(id);
  const writer = await writerAt(desk);
  const proof = await (more.proof?.() ?? (workspace === null ? {} : proofOf(workspace, request)));
  const takesBack = (await more.takesBack?.(id)) ?? false;
  const { found, changed, replayed, warnings } = await writer.update(id, change, { ...proof, takesBack });
  workspace?.warnings.push(...warnings);
  const isReleased =
    more.releases === true && workspace !== null && (await releaseIfHeld(workspace, id, request));
  const counted = await asCounted(desk, found);
  return { found: counted, shortId: short, written: found.state, changed, replayed, isReleased };
}

/** With the state and the assignee that count now, for whoever is told what a write came to. As written where nobody can tell. */
export async function asCounted({ workspace }: Desk, found: FoundIssue): Promise<FoundIssue> {
  if (workspace === null) return found;
  try {
    return countedBy(await workersOn(workspace, found.id), found);
  } catch {
    return found;
  }
}

export function countedBy(workers: Workers, found: FoundIssue): FoundIssue {
  const { state, assignee } = effective(workers, found);
  return { ...found, state, issue: { ...found.issue, state, assignee } };
}
