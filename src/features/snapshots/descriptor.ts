import { usageError } from "../../errors/cotenant-error";
import { printable, type Ulid } from "../../kernel/ids";
import { refuseNewer, SCHEMA_VERSION } from "../../store/schema";

export const CONSISTENCY_LEVELS = ["quiesced", "best_effort"] as const;
export type Consistency = (typeof CONSISTENCY_LEVELS)[number];

/** What made a snapshot be taken that nobody asked for. */
const OCCASIONS = ["steal", "remove", "restore", "resync", "dispatch"] as const;
export type Occasion = (typeof OCCASIONS)[number];

/** What is known of a snapshot, as it is stored and as programs see it. */
export interface Descriptor {
  readonly schema_version: number;
  readonly snapshot_id: Ulid;
  readonly worktree_id: string;
  /** Where the worktree was. */
  readonly root: string;
  /** The one before it, of the same worktree or of the one that it was restored from. */
  readonly parent: string | null;
  readonly tree: string;
  readonly commit: string;
  readonly created_at: string;
  readonly agent_id: string;
  readonly consistency_level: Consistency;
  /** Of the writer lock; null in a shared worktree, which has none. */
  readonly fencing_token: number | null;
  readonly note: string | null;
  readonly tags: readonly string[];
  readonly digest: string;
  readonly automatic: Occasion | null;
  readonly includes_ignored: boolean;
  readonly head: string | null;
  readonly branch: string | null;
  /** The user's index as a tree, where it says more than the commit; and of an unsettled merge each stage. */
  readonly index: string | null;
  readonly stages: string | null;
  readonly skipped: string | null;
  readonly files: number;
  readonly bytes: number;
  /** Repositories inside, which are kept by their commit alone. */
  readonly by_commit: readonly { readonly path: string; readonly commit: string }[];
  readonly left_out: readonly { readonly path: string; readonly why: string }[];
}

export function encodeDescriptor(descriptor: Descriptor): string {
  return `${JSON.stringify(descriptor, null, 2)}\n`;
}

/** Throws `E_SCHEMA_NEWER`; null for what is damaged. */
export function decodeDescriptor(text: string, what: string): Descriptor | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const record = value as Readonly<Record<string, unknown>>;
  refuseNewer(record["schema_version"], what);
  if (record["schema_version"] !== SCHEMA_VERSION) return null;
  const isText = (name: string) => typeof record[name] === "string";
  const isTextOrNull = (name: string) => record[name] === null || isText(name);
  const isWhole =
    TEXTS.every(isText) &&
    MAYBE_TEXTS.every(isTextOrNull) &&
    LISTS.every((name) => Array.isArray(record[name])) &&
    Number.isSafeInteger(record["files"]) &&
    OIDS.every((name) => record[name] === null || /^[0-9a-f]{40,64}$/.test(String(record[name])));
  return isWhole ? (value as Descriptor) : null;
}

const TEXTS = ["snapshot_id", "worktree_id", "root", "tree", "commit", "created_at", "agent_id", "digest"];
const MAYBE_TEXTS = ["parent", "note", "automatic", "head", "branch", "index", "stages", "skipped"];
const LISTS = ["tags", "by_commit", "left_out"];
const OIDS = ["tree", "commit", "head", "index", "stages", "skipped"];

/** Worth a second look before relying on it. */
export function warningsOf(descriptor: Descriptor): string[] {
  return [
    ...(descriptor.consistency_level === "best_effort" ? ["best_effort"] : []),
    // Everywhere else it is taken under a lock.
    ...(descriptor.fencing_token === null ? ["shared_worktree"] : []),
    ...(descriptor.by_commit.length > 0 ? ["repositories_by_commit"] : []),
    ...(descriptor.left_out.length > 0 ? ["left_out"] : []),
  ];
}

const TAG = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function checkTags(tags: readonly string[]): readonly string[] {
  const wrong = tags.find((tag) => !TAG.test(tag) || /^[0-9A-Za-z]{26}$/.test(tag) || tag === "latest");
  if (wrong === undefined && tags.length <= 20) return [...new Set(tags)];
  throw usageError(
    wrong === undefined ? "a snapshot has at most 20 tags" : `"${printable(wrong, 80)}" is not a tag`,
    "a tag is 1 to 64 letters, digits and . _ -, for example before-merge",
  );
}
