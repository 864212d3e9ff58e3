import type { Ulid } from "../../kernel/ids";
import { newUlid } from "../../platform/new-ulid";
import type { Platform } from "../../platform/platform";
import type { Issue } from "./model";
import { encodeSetLine, readOrSet, type SetLine } from "./or-set";
import { type Addition, DEPENDENCIES, EVENTS, LABELS, RESULTS } from "./stamps";

/** What one write changes of an issue. */
export interface IssueChange {
  readonly fields?: Partial<Omit<Issue, "id" | "schema_version" | "stamp">>;
  readonly labels?: SetChange;
  readonly dependencies?: SetChange;
  /** Lines for the issue's gate results. */
  readonly results?: readonly string[];
  readonly events: readonly DataEvent[];
}

export interface SetChange {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** For `events/local.jsonl`: the data plane's own story, which is committed and merged with the issues. */
export interface DataEvent {
  readonly type: `${"issue" | "dep" | "label" | "gate" | "doc"}.${string}`;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** Who writes, when, and on the strength of what. */
export interface Author {
  readonly agentId: string;
  readonly sessionId: string;
  readonly worktreeId: string;
  readonly leaseId: string | null;
  readonly at: string;
}

/** The lines that a change adds to the files which only grow. */
export function additionsOf(
  platform: Pick<Platform, "clock" | "random">,
  change: IssueChange,
  sets: { readonly labels: string; readonly dependencies: string },
  author: Author,
): Addition[] {
  const ulid = () => newUlid(platform);
  return [
    ...setLines(change.labels, sets.labels, author, ulid).map((line) => ({ file: LABELS, line }) as const),
    ...setLines(change.dependencies, sets.dependencies, author, ulid).map(
      (line) => ({ file: DEPENDENCIES, line }) as const,
    ),
    ...(change.results ?? []).map((line) => ({ file: RESULTS, line }) as const),
    ...change.events.map((event) => ({ file: EVENTS, line: eventLine(event, author, ulid()) }) as const),
  ];
}

/** What is there already is not added again, and what is not there is not removed. */
function setLines(change: SetChange | undefined, text: string, author: Author, ulid: () => Ulid): string[] {
  if (change === undefined) return [];
  const { tags } = readOrSet(text);
  const { at, agentId: by } = author;
  const removals = [...new Set(change.remove)].flatMap((value): SetLine[] => {
    const seen = tags.get(value);
    return seen === undefined ? [] : [{ op: "remove", tags: seen, value, at, by }];
  });
  const additions = [...new Set(change.add)]
    .filter((value) => !tags.has(value) || change.remove.includes(value))
    .map((value): SetLine => ({ op: "add", tag: ulid(), value, at, by }));
  return [...removals, ...additions].map(encodeSetLine);
}

/** Without host, process, sequence and `prev`: union merges reorder lines, and clones are none of each other's business. */
function eventLine({ type, payload }: DataEvent, author: Author, id: Ulid): string {
  const { agentId, sessionId, worktreeId, leaseId, at } = author;
  const actor = { agent_id: agentId, session_id: sessionId, worktree_id: worktreeId, lease_id: leaseId };
  return `${JSON.stringify({ schema_version: 1, event_id: id, event_type: type, timestamp: at, actor, payload })}\n`;
}

/** What a change did, field by field, as events tell it. */
export function fieldChanges(
  before: Issue,
  after: Partial<Issue>,
): Record<string, { from: unknown; to: unknown }> {
  const changes: Record<string, { from: unknown; to: unknown }> = {};
  for (const [name, to] of Object.entries(after)) {
    if (name === "updated_at" || name === "updated_by" || name === "stamp") continue;
    const from = before[name as keyof Issue];
    if (JSON.stringify(from) === JSON.stringify(to)) continue;
    // Long texts are in the issue itself.
    changes[name] = name === "description" ? { from: null, to: null } : { from, to };
  }
  return changes;
}
