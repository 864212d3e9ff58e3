import { CotenantError } from "../../../errors/cotenant-error";
import type { Ulid } from "../../../kernel/ids";
import { wayTo } from "../cycles";
import { type Desk, uniqueLabels } from "../desk";
import { labelsOf } from "../fields";
import { labelChange } from "../labels";
import { meantId } from "../meant";
import type { IssueReader } from "../reader";
import { isFound } from "../resolve";
import { shortId } from "../short-id";
import { type ChangedIssue, changeIssue, type IssueRequest } from "./issue-change";

/** Labels and dependencies: what an issue has any number of, and versions of it are merged by what was added and removed. */

export interface LabelRequest extends IssueRequest {
  readonly labels: readonly string[];
}

export interface NeedsRequest extends IssueRequest {
  /** Issues that have to be done before. */
  readonly needs: readonly string[];
}

export const label = {
  /** In a namespace of which an issue has one label at most, the new one replaces the old one. */
  async add(desk: Desk, request: LabelRequest): Promise<ChangedIssue> {
    const labels = labelsOf(request.labels);
    return changeIssue(desk, request, async (id) => (current) => {
      const change = labelChange(current.labels, labels, [], uniqueLabels(desk));
      if (change.add.every((one) => current.labels.includes(one))) return null;
      const payload = { issue_id: id, labels: change.add, replaced: change.remove };
      return { labels: change, events: [{ type: "label.added", payload }] };
    });
  },

  rm(desk: Desk, request: LabelRequest): Promise<ChangedIssue> {
    return changeIssue(desk, request, async (id) => (current) => {
      const remove = request.labels.filter((one) => current.labels.includes(one));
      if (remove.length === 0) return null;
      const payload = { issue_id: id, labels: remove };
      return { labels: { add: [], remove }, events: [{ type: "label.removed", payload }] };
    });
  },
};

export const dep = {
  /** What would close a circle is refused, with the circle. */
  add(desk: Desk, request: NeedsRequest): Promise<ChangedIssue> {
    return changeNeeds(desk, request, true);
  },

  rm(desk: Desk, request: NeedsRequest): Promise<ChangedIssue> {
    return changeNeeds(desk, request, false);
  },
};

function changeNeeds(desk: Desk, request: NeedsRequest, isAdding: boolean): Promise<ChangedIssue> {
  const { reader } = desk;
  return changeIssue(desk, request, async (id) => {
    const needs = new Set<Ulid>();
    for (const typed of request.needs) needs.add(await meantId(reader, typed));
    if (isAdding) for (const needed of needs) await refuseCircle(reader, id, needed);
    return ({ dependencies }) => {
      const changed = [...needs].filter((needed) => dependencies.includes(needed) !== isAdding);
      if (changed.length === 0) return null;
      const type = isAdding ? "dep.added" : "dep.removed";
      return {
        dependencies: isAdding ? { add: changed, remove: [] } : { add: [], remove: changed },
        events: changed.map((needed) => ({ type, payload: { issue_id: id, depends_on: needed } })),
      };
    };
  });
}

async function refuseCircle(reader: IssueReader, id: Ulid, needed: Ulid): Promise<void> {
  const way = await wayTo(needed, id, async (at) => {
    const found = (await reader.findNamed([at])).get(at) ?? null;
    return isFound(found) ? found.dependencies : [];
  });
  if (way === null) return;
  const ids = await reader.ids();
  const names = [id, ...way].map((at) => shortId(at, ids));
  throw new CotenantError("E_CYCLE", `it would close a circle: ${names.join(" → ")}`, {
    data: { cycle: [id, ...way] },
  });
}
