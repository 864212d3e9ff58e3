import { isObject } from "../../codec/json";

/**
 * What one hook of a commit found out, for the next ones of the same `git commit`: they need not ask again. Never a
 * reason to fail: whoever finds none, or one of another commit, looks for itself.
 */
export interface CommitNote {
  readonly isClean: boolean;
  /** Leases of the committer's, or things on record, have to be looked at once it is committed. */
  readonly needsSettling: boolean;
  readonly paths: readonly string[];
  /** What the committer's own change rests on, to be said in the message. */
  readonly trailers: readonly string[];
  /** It is made of other commits, whose messages have to be looked at too. */
  readonly isMadeOfOthers: boolean;
}

/** Which commit a note is about: the process of Git's that runs its hooks, and the index it looks at. */
export interface NoteSubject {
  readonly git: string;
  /** Null when it has become a commit since. */
  readonly index: string | null;
}

/** Set by the hook's own line. */
const GIT_PID = "COTENANT_GIT_PID";
/** Git ends an index by a hash of it: 20 bytes, or 32. */
export const INDEX_HASH_BYTES = 20;
const SCHEMA = 2;

export function gitPid(env: Readonly<Record<string, string | undefined>>): number | null {
  const pid = env[GIT_PID];
  return pid !== undefined && /^[1-9]\d{0,9}$/.test(pid) ? Number(pid) : null;
}

/** Below the control plane. */
export function noteName(pid: number): string {
  return `cache/commit-${pid}.json`;
}

export function isNoteName(name: string): boolean {
  return /^commit-\d+\.json$/.test(name);
}

/** Null for a process that cannot be told from a later one with its number. */
export function gitMark(bootId: string, pid: number, startTime: string): string | null {
  return startTime === "" ? null : `${bootId} ${pid} ${startTime}`;
}

/** Says which index it is without reading all of it. Null where Git was told to leave the hash out. */
export function indexMark(
  { size, mtimeMs }: { readonly size: number; readonly mtimeMs: number },
  hash: Uint8Array,
): string | null {
  if (hash.length < INDEX_HASH_BYTES || hash.every((byte) => byte === 0)) return null;
  return `${size} ${mtimeMs} ${Array.from(hash, (byte) => byte.toString(16)).join(".")}`;
}

export function noteText(note: CommitNote, { git, index }: NoteSubject): string {
  return JSON.stringify({ schema_version: SCHEMA, git, index, ...note });
}

export function readNote(text: string, subject: NoteSubject): CommitNote | null {
  const value: unknown = JSON.parse(text);
  if (!isObject(value) || value["schema_version"] !== SCHEMA || value["git"] !== subject.git) return null;
  if (subject.index !== null && value["index"] !== subject.index) return null;
  const { isClean, needsSettling, paths, trailers, isMadeOfOthers } = value;
  if (typeof isClean !== "boolean" || typeof needsSettling !== "boolean") return null;
  if (typeof isMadeOfOthers !== "boolean" || !areTexts(paths) || !areTexts(trailers)) return null;
  return { isClean, needsSettling, paths, trailers, isMadeOfOthers };
}

function areTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
