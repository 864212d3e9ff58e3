import type { Workspace } from "../coordinator/workspace";
import { isObject } from "../issues/document-text";
import { modesFor } from "../store/layout";

/**
 * What one hook of a commit found out, for the next ones of the same `git commit`: they need not ask Git again. Never a
 * reason to fail: whoever finds none, or one of another commit, looks for itself.
 */
export interface CommitNote {
  readonly isClean: boolean;
  readonly paths: readonly string[];
  readonly trailers: readonly string[];
}

/** Set by the hook's own line: the process that runs the hooks of one commit. */
const GIT_PID = "COTENANT_GIT_PID";
const SCHEMA = 1;
/** Git ends an index by a hash of it: 20 bytes, or 32. */
const HASH_BYTES = 20;

export async function keepNote(workspace: Workspace, note: CommitNote): Promise<void> {
  const place = await placeOf(workspace);
  const index = await indexMark(workspace);
  if (place === null || index === null) return;
  const { files } = workspace.surroundings.platform;
  const modes = modesFor(workspace.repository.config.sharedRepository);
  const text = JSON.stringify({ schema_version: SCHEMA, git: place.git, index, ...note });
  try {
    await files.makeDirectory(place.directory, modes.directory);
    const fd = await files.open(place.path, "update-or-create", modes.file);
    try {
      await files.truncate(fd, 0);
      await files.writeAt(fd, new TextEncoder().encode(text), 0);
    } finally {
      await files.close(fd);
    }
  } catch {
    // The next hook looks for itself.
  }
}

/** `"staged"`: only if the index is still the one that was looked at. `"committed"`: it has become a commit since. */
export async function findNote(
  workspace: Workspace,
  stage: "staged" | "committed",
): Promise<CommitNote | null> {
  const place = await placeOf(workspace);
  if (place === null) return null;
  try {
    const bytes = await workspace.surroundings.platform.files.readFile(place.path);
    const value: unknown = bytes === null ? null : JSON.parse(new TextDecoder().decode(bytes));
    if (!isObject(value) || value["schema_version"] !== SCHEMA || value["git"] !== place.git) return null;
    if (stage === "staged" && value["index"] !== (await indexMark(workspace))) return null;
    const { isClean, paths, trailers } = value;
    if (typeof isClean !== "boolean" || !areTexts(paths) || !areTexts(trailers)) return null;
    return { isClean, paths, trailers };
  } catch {
    return null;
  }
}

export async function dropNote(workspace: Workspace): Promise<void> {
  const place = await placeOf(workspace);
  if (place === null) return;
  try {
    await workspace.surroundings.platform.files.unlink(place.path);
  } catch {}
}

/** Null when nobody says which commit this is. */
async function placeOf(
  workspace: Workspace,
): Promise<{ directory: string; path: string; git: string } | null> {
  const { env, platform } = workspace.surroundings;
  const pid = env[GIT_PID];
  if (pid === undefined || !/^[1-9]\d{0,9}$/.test(pid)) return null;
  const git = await platform.processes.identify(Number(pid));
  if (git === null || git.startTime === "") return null;
  const { worktreeId } = (await workspace.worktree("read")).identity;
  const directory = `${workspace.repository.controlDir}/cache`;
  const path = `${directory}/commit-${worktreeId.replace(":", "-")}.json`;
  return { directory, path, git: `${git.bootId} ${git.pid} ${git.startTime}` };
}

/** Says which index it is without reading all of it. Null where Git was told to leave the hash out. */
async function indexMark({ repository, surroundings }: Workspace): Promise<string | null> {
  const { files } = surroundings.platform;
  const named = surroundings.env["GIT_INDEX_FILE"];
  const path =
    named === undefined
      ? `${repository.gitDir}/index`
      : named.startsWith("/")
        ? named
        : `${repository.worktreeRoot}/${named}`;
  const stat = await files.stat(path);
  if (stat === null || stat.size < HASH_BYTES) return null;
  const fd = await files.open(path, "read");
  try {
    const hash = await files.read(fd, stat.size - HASH_BYTES, HASH_BYTES);
    if (hash.every((byte) => byte === 0)) return null;
    return `${stat.size} ${stat.mtimeMs} ${Array.from(hash, (byte) => byte.toString(16)).join(".")}`;
  } finally {
    await files.close(fd);
  }
}

function areTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
