import { isObject } from "../../codec/json";
import { isCount } from "../../kernel/bounds";
import { printable, type Ulid, ulidIn } from "../../kernel/ids";
import { readDocument } from "./document-text";

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

const ISSUE_SCHEMA = 1;
export const MAX_TITLE = 200;
export const MAX_DESCRIPTION = 1 << 20;

/** Which write made this copy: the newest of several copies has the highest version. */
export interface Stamp {
  readonly version: number;
  /** The worktree it was written in. */
  readonly origin: string;
  readonly lease_id: string | null;
  readonly fencing_token: number | null;
  readonly sequence: number | null;
  /** Versions that this one was made from, by digest; absent for a new issue. */
  readonly lineage?: string;
}

/** A document that belongs to an issue: a file of the repository. */
export interface DocumentRef {
  readonly path: string;
  readonly title: string | null;
  readonly added_at: string;
  readonly added_by: string;
}

/**
 * An issue as it stands in its file, field names and all. Labels, dependencies and comments have files of their own
 * beside it, which merge by themselves.
 */
export interface Issue {
  readonly schema_version: number;
  readonly id: Ulid;
  readonly title: string;
  readonly description: string;
  readonly state: IssueState;
  readonly priority: Priority;
  readonly assignee: string | null;
  /** Why it was rejected, or closed as it was. */
  readonly resolution: string | null;
  /** Keys of the gates that it has to pass before it is done. */
  readonly gates: readonly string[];
  readonly documents: readonly DocumentRef[];
  /** Files that whoever works on it expects to change. */
  readonly files: readonly string[];
  /** Whatever else whoever works on it should know, by name. */
  readonly context: Readonly<Record<string, string>>;
  readonly created_at: string;
  readonly created_by: string;
  readonly updated_at: string;
  readonly updated_by: string;
  /** When it was deleted. What is left is a tombstone, or any old worktree would bring it back. */
  readonly deleted_at: string | null;
  readonly stamp: Stamp;
  /** What somebody's editor or tool has added: kept, and not understood. */
  readonly extra: Readonly<Record<string, unknown>>;
}

/** A new one, with nothing said but what is given. */
export function newIssue(
  given: Pick<Issue, "id" | "title" | "created_at" | "created_by" | "stamp"> & Partial<Issue>,
): Issue {
  return {
    schema_version: ISSUE_SCHEMA,
    description: "",
    state: "ready",
    priority: "normal",
    assignee: null,
    resolution: null,
    gates: [],
    documents: [],
    files: [],
    context: {},
    updated_at: given.created_at,
    updated_by: given.created_by,
    deleted_at: null,
    extra: {},
    ...given,
  };
}

export type IssueReading =
  | { readonly issue: Issue }
  | { readonly broken: string; readonly isNewer?: boolean };

/** Everything but the stamp comes first, so that a diff shows what was changed before it shows that it was. */
export function encodeIssue({ extra, stamp, ...known }: Issue): string {
  return `${JSON.stringify({ ...known, ...extra, stamp }, null, 2)}\n`;
}

const KNOWN = new Set([
  "schema_version",
  "id",
  "title",
  "description",
  "state",
  "priority",
  "assignee",
  "resolution",
  "gates",
  "documents",
  "files",
  "context",
  "created_at",
  "created_by",
  "updated_at",
  "updated_by",
  "deleted_at",
  "stamp",
]);

/** An issue, or what is wrong with the text. Never throws: other people's editors wrote it. */
export function decodeIssue(text: string): IssueReading {
  const reading = readDocument(text, ISSUE_SCHEMA);
  if ("broken" in reading) return reading;
  const value = reading.document;
  const id = ulidIn(value["id"]);
  if (id === null) return { broken: "its id is not a ULID" };
  if (typeof value["title"] !== "string") return { broken: "it has no title" };
  if (!ISSUE_STATES.includes(value["state"] as IssueState))
    return { broken: `its state is "${printable(String(value["state"]))}"` };
  const wild = outOfBounds(value["stamp"]);
  if (wild !== null) return { broken: wild };
  return { issue: issueFrom(id, value) };
}

/** With what is missing, or of another kind than it should be, as if nobody had said anything. */
function issueFrom(id: Ulid, w: Readonly<Record<string, unknown>>): Issue {
  const text = (name: string) => (typeof w[name] === "string" ? (w[name] as string) : "");
  const textOrNull = (name: string) => (typeof w[name] === "string" ? (w[name] as string) : null);
  return {
    schema_version: ISSUE_SCHEMA,
    id,
    title: text("title"),
    description: text("description"),
    state: w["state"] as IssueState,
    priority: PRIORITIES.includes(w["priority"] as Priority) ? (w["priority"] as Priority) : "normal",
    assignee: textOrNull("assignee"),
    resolution: textOrNull("resolution"),
    gates: texts(w["gates"]),
    documents: listOf(w["documents"]).flatMap(documentFrom),
    files: texts(w["files"]),
    context: contextFrom(w["context"]),
    created_at: text("created_at"),
    created_by: text("created_by"),
    updated_at: text("updated_at"),
    updated_by: text("updated_by"),
    deleted_at: textOrNull("deleted_at"),
    stamp: stampFrom(w["stamp"]),
    extra: Object.fromEntries(Object.entries(w).filter(([name]) => !KNOWN.has(name) && name !== "__proto__")),
  };
}

/** PROTOCOL 26a: what goes on from one of these numbers must be a number that can be read again. */
function outOfBounds(stamp: unknown): string | null {
  const numbers = isObject(stamp) ? (["version", "fencing_token", "sequence"] as const) : [];
  const wild = numbers.find((name) => {
    const value = (stamp as Readonly<Record<string, unknown>>)[name];
    return typeof value === "number" && !isCount(value);
  });
  if (wild === undefined) return null;
  return `its stamp's ${wild} is out of bounds: ${(stamp as Readonly<Record<string, unknown>>)[wild]}`;
}

function stampFrom(value: unknown): Stamp {
  const stamp: Readonly<Record<string, unknown>> = isObject(value) ? value : {};
  const number = (name: string) => (isCount(stamp[name]) ? stamp[name] : null);
  const lineage = lineageFrom(stamp["lineage"]);
  return {
    version: number("version") ?? 0,
    origin: typeof stamp["origin"] === "string" ? stamp["origin"] : "",
    lease_id: typeof stamp["lease_id"] === "string" ? stamp["lease_id"] : null,
    fencing_token: number("fencing_token"),
    sequence: number("sequence"),
    ...(lineage === null ? {} : { lineage }),
  };
}

/** How many earlier versions a stamp names, at most. */
export const MOST_ANCESTORS = 32;
export const ANCESTOR_DIGITS = 16;
const LINEAGE = new RegExp(`^[0-9a-f]{${ANCESTOR_DIGITS}}(?: [0-9a-f]{${ANCESTOR_DIGITS}})*$`);

function lineageFrom(value: unknown): string | null {
  const isOne =
    typeof value === "string" &&
    value.length <= MOST_ANCESTORS * (ANCESTOR_DIGITS + 1) &&
    LINEAGE.test(value);
  return isOne ? value : null;
}

function documentFrom(value: unknown): DocumentRef[] {
  if (!isObject(value) || typeof value["path"] !== "string") return [];
  const { path, title, added_at, added_by } = value;
  const text = (field: unknown) => (typeof field === "string" ? field : "");
  return [
    {
      path: path as string,
      title: typeof title === "string" ? title : null,
      added_at: text(added_at),
      added_by: text(added_by),
    },
  ];
}

function contextFrom(value: unknown): Record<string, string> {
  if (!isObject(value)) return {};
  const entries = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string" && entry[0] !== "__proto__",
  );
  return Object.fromEntries(entries);
}

function texts(value: unknown): string[] {
  return listOf(value).filter((item) => typeof item === "string");
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function isTerminal(issue: Pick<Issue, "state">): boolean {
  return TERMINAL_STATES.includes(issue.state);
}
