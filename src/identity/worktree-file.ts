import { CotenantError, during, fileFailure } from "../errors/cotenant-error";
import { parseWorktreeId, type WorktreeId } from "../kernel/ids";
import { utf8Length } from "../kernel/keys";
import { isRefusal } from "../kernel/refusal";
import type { Files, Platform } from "../platform/platform";
import { replaceFile } from "../platform/replace-file";
import { decode, isAbsolute, joinPath } from "./path-text";

/** The data plane's directory in every worktree. */
export const DATA_DIRECTORY = ".cotenant";
const NAME = "cotenant-worktree.json";
/** Where earlier versions kept it: among the files, where a stash or a commit could carry it to another worktree. */
const EARLIER_NAME = "worktree.json";
/** Names that `replaceFile` gives to what is not whole yet. */
const UNFINISHED = /\.new-[0-9a-f]{12}$/;
const SCHEMA_VERSION = 1;
const MAX_BYTES = 64 * 1024;

/** What a worktree must never commit. `init` has these lines in the `.gitignore` it writes, too. */
export const IGNORED_IN_DATA_DIRECTORY = [`/${EARLIER_NAME}*`, "*.new", "*.new-*"] as const;
/** Ignores itself as well; `init` replaces a file with exactly this text by one that is to be committed. */
export const PROVISIONAL_GITIGNORE = [
  "# Made by cotenant before 'cotenant init': keeps this worktree's own files out of 'git status'.",
  "/.gitignore",
  ...IGNORED_IN_DATA_DIRECTORY,
  "",
].join("\n");

export interface WorktreeIdentity {
  readonly worktreeId: WorktreeId;
  /** The branch when the file was written, for people; `currentBranch` knows the present one. */
  readonly branch: string | null;
  readonly root: string;
  readonly createdAt: string;
  readonly relocatedAt: string | null;
}

export type WorktreeFile =
  | { readonly kind: "missing" }
  | { readonly kind: "damaged"; readonly why: string }
  | { readonly kind: "whole"; readonly identity: WorktreeIdentity };

/** In the worktree's own Git directory, where nothing that works on files carries it elsewhere. */
export function worktreeFilePath(gitDir: string): string {
  return joinPath(gitDir, NAME);
}

export function earlierFilePath(root: string): string {
  return joinPath(joinPath(root, DATA_DIRECTORY), EARLIER_NAME);
}

export async function readWorktreeFile(files: Files, path: string): Promise<WorktreeFile> {
  let bytes: Uint8Array | null;
  try {
    bytes = await files.readFile(path);
  } catch (error) {
    if ((error as { code?: unknown })?.code === "EISDIR")
      return { kind: "damaged", why: "it is a directory" };
    throw fileFailure(error, "reading the worktree's identity", path);
  }
  if (bytes === null) return { kind: "missing" };
  if (bytes.length > MAX_BYTES) return { kind: "damaged", why: "it is too large" };
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(decode(bytes)) as Record<string, unknown>;
  } catch {
    return { kind: "damaged", why: "it is not JSON" };
  }
  if (typeof record !== "object" || record === null) return { kind: "damaged", why: "it is not an object" };
  const version = record["schema_version"];
  if (typeof version === "number" && version > SCHEMA_VERSION) throw newer(path, version);
  const identity = version === SCHEMA_VERSION ? identityFrom(record) : null;
  return identity === null
    ? { kind: "damaged", why: "fields are missing or wrong" }
    : { kind: "whole", identity };
}

function identityFrom(record: Record<string, unknown>): WorktreeIdentity | null {
  const { worktree_id: id, branch, root, created_at: createdAt, relocated_at: relocatedAt } = record;
  const worktreeId = typeof id === "string" ? parseWorktreeId(id) : null;
  if (worktreeId === null || isRefusal(worktreeId)) return null;
  if (typeof root !== "string" || typeof createdAt !== "string") return null;
  if (!isAbsolute(root) || root.includes("\0") || isTooLong(root)) return null;
  return {
    worktreeId,
    branch: typeof branch === "string" ? branch : null,
    root,
    createdAt,
    relocatedAt: typeof relocatedAt === "string" ? relocatedAt : null,
  };
}

/** What no file system has; to look there would fail. */
function isTooLong(path: string): boolean {
  return utf8Length(path) > 4_095 || path.split("/").some((name) => utf8Length(name) > 255);
}

function newer(path: string, version: number): CotenantError {
  return new CotenantError(
    "E_SCHEMA_NEWER",
    `${path} has schema ${version}; this cotenant knows ${SCHEMA_VERSION}`,
    {
      data: { path, found: version, known: SCHEMA_VERSION },
    },
  );
}

/** Whole or not at all: written beside, synced, renamed, and the directory synced. */
export async function writeWorktreeFile(
  platform: Platform,
  gitDir: string,
  identity: WorktreeIdentity,
): Promise<void> {
  const path = worktreeFilePath(gitDir);
  await during("writing the worktree's identity", path, async () => {
    // As open as the Git directory it is in.
    const mode = (((await platform.files.stat(gitDir))?.mode ?? 0o700) & 0o666) | 0o600;
    const record = {
      schema_version: SCHEMA_VERSION,
      worktree_id: identity.worktreeId,
      branch: identity.branch,
      root: identity.root,
      created_at: identity.createdAt,
      ...(identity.relocatedAt === null ? {} : { relocated_at: identity.relocatedAt }),
    };
    await replaceFile(platform, path, `${JSON.stringify(record, null, 2)}\n`, mode);
  });
}

/** Removes what a process that died while writing a file left beside it. One of `recentMs` may still be at it. */
export async function clearUnfinished(
  platform: Platform,
  { root, gitDir }: { readonly root: string; readonly gitDir: string },
  recentMs: number,
): Promise<void> {
  const { files, clock } = platform;
  const data = joinPath(root, DATA_DIRECTORY);
  for (const directory of [data, joinPath(data, "gates"), gitDir]) {
    if ((await files.lstat(directory))?.kind !== "directory") continue;
    for (const name of (await files.readDirectory(directory)) ?? []) {
      if (!UNFINISHED.test(name) || (directory === gitDir && !name.startsWith(NAME))) continue;
      const path = joinPath(directory, name);
      const stat = await files.lstat(path);
      if (stat?.kind === "file" && stat.mtimeMs < clock.wallMs() - recentMs) await files.unlink(path);
    }
  }
}

/** Moves a damaged file out of the way. */
export async function setAside(platform: Platform, path: string): Promise<string> {
  const aside = `${path}.damaged-${platform.clock.wallMs()}`;
  try {
    await platform.files.rename(path, aside);
  } catch (error) {
    // Another process of ours was faster.
    if ((error as { code?: unknown })?.code !== "ENOENT") {
      throw fileFailure(error, "setting aside a damaged file", path);
    }
  }
  return aside;
}

interface Modes {
  readonly directory: number;
  readonly file: number;
}

/** Makes `.cotenant/` where it is missing, never through a link. Its files are as open as the worktree they are in. */
export async function prepareDataDirectory(platform: Platform, root: string): Promise<Modes> {
  const { files } = platform;
  const rootMode = ((await files.stat(root))?.mode ?? 0o700) & 0o777;
  const modes = { directory: rootMode | 0o700, file: (rootMode & 0o666) | 0o600 };
  const directory = joinPath(root, DATA_DIRECTORY);
  if (await files.makeDirectory(directory, modes.directory)) await files.syncDirectory(root);
  else await refuseLink(platform, directory, "directory");
  const gitignore = joinPath(directory, ".gitignore");
  // Missing also when a process died between the two steps; what `init` or a person wrote stays.
  if ((await files.lstat(gitignore)) === null) {
    await replaceFile(platform, gitignore, PROVISIONAL_GITIGNORE, modes.file);
  }
  return modes;
}

/** A repository could commit a link there and have us read and write wherever it likes. What is missing is no link. */
export async function refuseLink(
  { files }: Platform,
  path: string,
  kind: "directory" | "file",
): Promise<void> {
  const stat = await files.lstat(path);
  if (stat === null || stat.kind === kind) return;
  throw new CotenantError("E_PATH_ESCAPE", `${path} is not a ${kind} of this worktree`, {
    hint: `remove the symbolic link or whatever has that name: a ${kind} belongs there`,
    data: { path },
  });
}
