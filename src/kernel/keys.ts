import { type Branded, parseUlid, parseWorktreeId, printable, type Ulid } from "./ids";
import { isRefusal, type Refusal, refuse } from "./refusal";

/**
 * What can be leased. A key is canonical text, `kind:name`; only the parsers below make one, so that two
 * spellings of one thing can never become two keys.
 */
export type LeaseKey = Branded<"LeaseKey">;
/** Repository-relative, POSIX, NFC, without `.` or `..`; `.` alone is the whole repository. */
export type RepoPath = Branded<"RepoPath">;

export const KEY_KINDS = ["issue", "file", "dir", "resource", "ref", "worktree", "scope"] as const;
export type KeyKind = (typeof KEY_KINDS)[number];

/** Leaves room for the control plane's own prefix below the operating system's limit of 4096. */
export const MAX_PATH_BYTES = 2048;
export const MAX_SEGMENT_BYTES = 255;
const ROOT = "." as RepoPath;

export function kindOf(key: LeaseKey): KeyKind {
  return key.slice(0, key.indexOf(":")) as KeyKind;
}

export function nameOf(key: LeaseKey): string {
  return key.slice(key.indexOf(":") + 1);
}

export function isPathKey(key: LeaseKey): boolean {
  return key.startsWith("file:") || key.startsWith("dir:");
}

export function pathOf(key: LeaseKey): RepoPath {
  return nameOf(key) as RepoPath;
}

/** Of a key that is an issue's. */
export function issueOf(key: LeaseKey): Ulid {
  return nameOf(key) as Ulid;
}

/** Of an id that is one already. */
export function issueKeyOf(id: Ulid): LeaseKey {
  return `issue:${id}` as LeaseKey;
}

/** Of a path that is canonical already. */
export function dirKeyOf(path: RepoPath): LeaseKey {
  return `dir:${path}` as LeaseKey;
}

/** Any key in its canonical spelling. Paths must already be relative to the repository. */
export function parseKey(text: string): LeaseKey | Refusal {
  const colon = text.indexOf(":");
  const kind = text.slice(0, Math.max(colon, 0));
  const name = text.slice(colon + 1);
  switch (kind as KeyKind) {
    case "issue":
      return keyed("issue", parseUlid(name));
    case "file":
      return fileKey(name);
    case "dir":
      return dirKey(name);
    case "resource":
      return resourceKey(name);
    case "ref":
      return refKey(name);
    case "worktree":
      return keyed("worktree", parseWorktreeId(name));
    case "scope":
      return scopeKey(name);
    default:
      return refuse("E_USAGE", `"${printable(text)}" is not a key`, {
        hint: `a key is ${KEY_KINDS.map((k) => `${k}:…`).join(", ")}`,
      });
  }
}

export function issueKey(id: string): LeaseKey | Refusal {
  return keyed("issue", parseUlid(id));
}

export function worktreeKey(id: string): LeaseKey | Refusal {
  return keyed("worktree", parseWorktreeId(id));
}

export function fileKey(path: string): LeaseKey | Refusal {
  const parsed = parseRepoPath(path);
  if (isRefusal(parsed)) return parsed;
  if (parsed === ROOT) {
    return refuse("E_USAGE", "the repository's root is a directory", { hint: "use --dir ." });
  }
  return `file:${parsed}` as LeaseKey;
}

export function dirKey(path: string): LeaseKey | Refusal {
  return keyed("dir", parseRepoPath(path));
}

export function resourceKey(name: string): LeaseKey | Refusal {
  const normal = name.normalize("NFC");
  if (!/^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u.test(normal) || normal.trim() !== normal) {
    return refuse("E_USAGE", `"${printable(name)}" is not a resource name`, {
      hint: "use 1 to 200 printable characters, without spaces at either end",
    });
  }
  return `resource:${normal}` as LeaseKey;
}

export function scopeKey(name: string): LeaseKey | Refusal {
  if (/^[a-z][a-z0-9-]{0,63}$/.test(name)) return `scope:${name}` as LeaseKey;
  return refuse("E_USAGE", `"${printable(name)}" is not a scope`, {
    hint: "scopes are short lower-case words, such as config, gates or types",
  });
}

export function refKey(name: string): LeaseKey | Refusal {
  if (isFullRefName(name)) return `ref:${name}` as LeaseKey;
  return refuse("E_USAGE", `"${printable(name)}" is not a full ref name`, {
    hint: "write the whole name, for example refs/heads/topic/login",
  });
}

/** The rules of `git check-ref-format`, for names below `refs/`. */
export function isFullRefName(name: string): boolean {
  if (!name.startsWith("refs/") || utf8Length(name) > 1024) return false;
  if (/[\x00-\x20\x7f~^:?*[\\]/.test(name) || name.includes("..") || name.includes("@{")) return false;
  if (name.endsWith(".") || !isWellFormed(name)) return false;
  const segments = name.split("/");
  return segments.length > 2 && segments.every((s) => s !== "" && !s.startsWith(".") && !s.endsWith(".lock"));
}

/** Canonical form of a path that is already relative to the repository's root. */
export function parseRepoPath(text: string): RepoPath | Refusal {
  if (text === "." || text === "./") return ROOT;
  const path = withoutSlashesAtEnd(text.normalize("NFC"));
  if (path === "" || path.startsWith("/") || /^[A-Za-z]:[\\/]/.test(path))
    return escapes(text, "is outside the repository");
  if (/[\x00-\x1f\x7f-\x9f\u2028\u2029]/.test(path)) return escapes(text, "contains control characters");
  if (!isWellFormed(path)) return escapes(text, "is not valid Unicode");
  const segments = path.split("/");
  for (const segment of segments) {
    if (segment === "" || segment === ".") return escapes(text, "is not in its canonical form");
    if (segment === "..") return escapes(text, "climbs out with '..'");
    if (isGitDirectoryName(segment)) return escapes(text, "is inside Git's own directory");
    if (utf8Length(segment) > MAX_SEGMENT_BYTES) {
      return refuse("E_LIMIT", `a name in "${printable(text)}" is longer than ${MAX_SEGMENT_BYTES} bytes`);
    }
  }
  if (utf8Length(path) > MAX_PATH_BYTES) {
    return refuse("E_LIMIT", `"${printable(text)}" is longer than ${MAX_PATH_BYTES} bytes`);
  }
  return path as RepoPath;
}

/**
 * `.git` in every spelling that some file system resolves to it: any case, HFS+'s ignorable code points,
 * NTFS's short name, trailing dots and spaces, alternate data streams, and backslashes as separators.
 */
export function isGitDirectoryName(segment: string): boolean {
  const visible = segment.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, "");
  return visible.split("\\").some((part) => /^(\.git|git~1)[. ]*(:.*)?$/i.test(part));
}

/** `a/b/c` → `.`, `a`, `a/b`: every directory above a path, outermost first. The root has none above it. */
export function directoriesAbove(path: RepoPath): RepoPath[] {
  if (path === ROOT) return [];
  const above: RepoPath[] = [ROOT];
  for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) {
    above.push(path.slice(0, at) as RepoPath);
  }
  return above;
}

/** Whether `inner` lies strictly inside the directory `outer`. */
export function isInside(inner: RepoPath, outer: RepoPath): boolean {
  if (outer === ROOT) return inner !== ROOT;
  return inner.length > outer.length && inner.startsWith(outer) && inner[outer.length] === "/";
}

/** Without half of a surrogate pair. A Unicode pattern would say the same, and takes longer to compile than to look. */
export function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

export function utf8Length(text: string): number {
  let bytes = 0;
  for (const char of text) {
    const code = char.codePointAt(0)!;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}

/** By hand: the pattern for it takes time that grows with the square of the slashes. */
function withoutSlashesAtEnd(path: string): string {
  let end = path.length;
  while (path[end - 1] === "/") end--;
  return path.slice(0, end);
}

function keyed(kind: KeyKind, name: string | Refusal): LeaseKey | Refusal {
  return isRefusal(name) ? name : (`${kind}:${name}` as LeaseKey);
}

/** A path that leads to where nothing can be leased. */
export function escapes(text: string, why: string): Refusal {
  return refuse("E_PATH_ESCAPE", `"${printable(text)}" ${why}`, { data: { path: printable(text, 500) } });
}
