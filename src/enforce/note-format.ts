import { isObject } from "../issues/document-text";

/**
 * What one hook of a commit found out, for the next ones of the same `git commit`: they need not ask again. Never a
 * reason to fail: whoever finds none, or one of another commit, looks for itself.
 */
export interface CommitNote {
  readonly isClean: boolean;
  /** The committer holds leases on what is committed. */
  readonly isHeld: boolean;
  readonly paths: readonly string[];
  readonly trailers: readonly string[];
}

/** Which commit a note is about: the process of Git's that runs its hooks, and the index it looks at. */
export interface NoteSubject {
  readonly git: string;
  /** Null when it has become a commit since. */
  readonly index: string | null;
}

/** Set by the hook's own line. */
export const GIT_PID = "COTENANT_GIT_PID";
/** Git ends an index by a hash of it: 20 bytes, or 32. */
export const INDEX_HASH_BYTES = 20;
const SCHEMA = 1;

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
  const { isClean, isHeld, paths, trailers } = value;
  if (typeof isClean !== "boolean" || typeof isHeld !== "boolean") return null;
  return areTexts(paths) && areTexts(trailers) ? { isClean, isHeld, paths, trailers } : null;
}

function areTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
