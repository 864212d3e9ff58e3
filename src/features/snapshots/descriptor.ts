import * as v from "valibot";
import { CotenantError } from "../../errors/cotenant-error";
import { printable, type Ulid } from "../../kernel/ids";
import { refuseNewer, SCHEMA_VERSION } from "../../store/schema";

export const CONSISTENCY_LEVELS = ["quiesced", "best_effort"] as const;
export type Consistency = (typeof CONSISTENCY_LEVELS)[number];

/** What made a snapshot be taken that nobody asked for. */
export const OCCASIONS = ["steal", "remove", "restore", "resync", "dispatch"] as const;
export type Occasion = (typeof OCCASIONS)[number];

const oid = v.pipe(v.string(), v.regex(/^[0-9a-f]{40,64}$/));
/** Nobody but us writes it: it is taken as it is. */
const asIs = <T>() => v.fallback(v.any() as v.GenericSchema<T>, null as T & null);
const list = <T>() => v.custom<readonly T[]>(Array.isArray);
const WHOLE = v.object({
  schema_version: v.literal(SCHEMA_VERSION),
  snapshot_id: v.custom<Ulid>((id) => typeof id === "string"),
  worktree_id: v.string(),
  /** Where the worktree was. */
  root: v.string(),
  /** The one before it, of the same worktree or of the one that it was restored from. */
  parent: v.nullable(v.string()),
  tree: oid,
  commit: oid,
  created_at: v.string(),
  agent_id: v.string(),
  consistency_level: asIs<Consistency>(),
  /** Of the writer lock; null in a shared worktree, which has none. */
  fencing_token: asIs<number | null>(),
  note: v.nullable(v.string()),
  tags: list<string>(),
  digest: v.string(),
  automatic: v.custom<Occasion | null>((said) => said === null || typeof said === "string"),
  includes_ignored: asIs<boolean>(),
  head: v.nullable(oid),
  branch: v.nullable(v.string()),
  /** The user's index as a tree, where it says more than the commit; and of an unsettled merge each stage. */
  index: v.nullable(oid),
  stages: v.nullable(oid),
  skipped: v.nullable(oid),
  files: v.pipe(v.number(), v.safeInteger()),
  bytes: asIs<number>(),
  /** Repositories inside, which are kept by their commit alone. */
  by_commit: list<{ readonly path: string; readonly commit: string }>(),
  left_out: list<{ readonly path: string; readonly why: string }>(),
});

/** What is known of a snapshot, as it is stored and as programs see it. */
export type Descriptor = Readonly<v.InferOutput<typeof WHOLE>>;

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
  refuseNewer((value as Readonly<Record<string, unknown>>)["schema_version"], what);
  return v.is(WHOLE, value) ? value : null;
}

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
  throw new CotenantError(
    "E_USAGE",
    wrong === undefined ? "a snapshot has at most 20 tags" : `"${printable(wrong, 80)}" is not a tag`,
    { hint: "a tag is 1 to 64 letters, digits and . _ -, for example before-merge" },
  );
}
