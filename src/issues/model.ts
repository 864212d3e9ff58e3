import { parseUlid, printable, type Ulid } from "../kernel/ids";
import { isRefusal } from "../kernel/refusal";

export const ISSUE_STATES = [
  "backlog",
  "ready",
  "in_progress",
  "gated",
  "done",
  "rejected",
  "archived",
] as const;
export type IssueState = (typeof ISSUE_STATES)[number];
export const TERMINAL_STATES: readonly IssueState[] = ["done", "rejected", "archived"];
export const PRIORITIES = ["low", "normal", "high", "critical"] as const;
export type Priority = (typeof PRIORITIES)[number];

export const ISSUE_SCHEMA = 1;
export const MAX_TITLE = 200;
export const MAX_DESCRIPTION = 1 << 20;

/** Which write made this copy: the newest of several copies has the highest version. */
export interface Stamp {
  readonly version: number;
  readonly origin: string;
  readonly lease_id: string | null;
  readonly fencing_token: number | null;
  readonly sequence: number | null;
}

/** An issue as it stands in its file, field names and all. */
export interface Issue {
  readonly schema_version: number;
  readonly id: Ulid;
  readonly title: string;
  readonly description: string;
  readonly state: IssueState;
  readonly priority: Priority;
  readonly assignee: string | null;
  readonly created_at: string;
  readonly created_by: string;
  readonly updated_at: string;
  readonly stamp: Stamp;
}

export type IssueReading =
  | { readonly issue: Issue }
  | { readonly broken: string; readonly isNewer?: boolean };

export function encodeIssue(issue: Issue): string {
  return `${JSON.stringify(issue, null, 2)}\n`;
}

/** An issue, or what is wrong with the text. Never throws: other people's editors wrote it. */
export function decodeIssue(text: string): IssueReading {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { broken: "it is not JSON" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { broken: "it is not an object" };
  const w = value as Record<string, unknown>;
  const version = w["schema_version"];
  if (typeof version === "number" && version > ISSUE_SCHEMA)
    return { broken: `a newer cotenant wrote it (schema ${version})`, isNewer: true };
  const id = typeof w["id"] === "string" ? parseUlid(w["id"]) : null;
  if (id === null || isRefusal(id)) return { broken: "its id is not a ULID" };
  if (typeof w["title"] !== "string") return { broken: "it has no title" };
  if (!ISSUE_STATES.includes(w["state"] as IssueState))
    return { broken: `its state is "${printable(String(w["state"]))}"` };
  const text_ = (name: string) => (typeof w[name] === "string" ? (w[name] as string) : "");
  const stamp = (typeof w["stamp"] === "object" && w["stamp"] !== null ? w["stamp"] : {}) as Partial<Stamp>;
  const issue: Issue = {
    schema_version: ISSUE_SCHEMA,
    id,
    title: w["title"],
    description: text_("description"),
    state: w["state"] as IssueState,
    priority: PRIORITIES.includes(w["priority"] as Priority) ? (w["priority"] as Priority) : "normal",
    assignee: typeof w["assignee"] === "string" ? w["assignee"] : null,
    created_at: text_("created_at"),
    created_by: text_("created_by"),
    updated_at: text_("updated_at"),
    stamp: {
      version: typeof stamp.version === "number" ? stamp.version : 0,
      origin: typeof stamp.origin === "string" ? stamp.origin : "",
      lease_id: stamp.lease_id ?? null,
      fencing_token: stamp.fencing_token ?? null,
      sequence: stamp.sequence ?? null,
    },
  };
  return { issue };
}

export function isTerminal(issue: Issue): boolean {
  return TERMINAL_STATES.includes(issue.state);
}
