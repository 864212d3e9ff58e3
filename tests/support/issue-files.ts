import * as fs from "node:fs";
import * as path from "node:path";
import { ulid } from "./ulid";

export interface IssueFile {
  readonly id?: string;
  readonly title?: string;
  readonly state?: string;
  readonly priority?: string;
  readonly description?: string;
  readonly files?: readonly string[];
  readonly documents?: readonly { readonly path: string; readonly title: string | null }[];
  readonly labels?: readonly string[];
  readonly dependencies?: readonly string[];
  readonly version?: number;
}

/** An issue as a merge or an editor would leave it: files, and nothing in the log. Answers its id. */
export function writeIssue(root: string, given: IssueFile = {}): string {
  const { labels = [], dependencies = [], version = 1, id = ulid(), ...fields } = given;
  const folder = path.join(root, ".cotenant/issues", id);
  fs.mkdirSync(folder, { recursive: true });
  const at = "2026-01-01T00:00:00.000Z";
  const stamp = { version, origin: "", lease_id: null, fencing_token: null, sequence: null };
  const documents = (fields.documents ?? []).map((document) => ({ ...document, added_at: at, added_by: "" }));
  const issue = {
    schema_version: 1,
    id,
    title: "Some work",
    description: "",
    state: "ready",
    priority: "normal",
    assignee: null,
    created_at: at,
    created_by: "",
    updated_at: at,
    updated_by: "",
    ...fields,
    documents,
    stamp,
  };
  fs.writeFileSync(path.join(folder, "issue.json"), `${JSON.stringify(issue, null, 2)}\n`);
  const lines = (values: readonly string[]) =>
    values
      .map(
        (value, n) =>
          `${JSON.stringify({ op: "add", tag: ulid(1_700_000_000_000 + n), value, at, by: "" })}\n`,
      )
      .join("");
  if (labels.length > 0) fs.writeFileSync(path.join(folder, "labels.or-set.jsonl"), lines(labels));
  if (dependencies.length > 0) fs.writeFileSync(path.join(folder, "deps.or-set.jsonl"), lines(dependencies));
  return id;
}
