import type { Workspace } from "../../coordinator/workspace";
import { indexFile } from "../../platform/git-index";
import { overwriteFile } from "../../platform/overwrite-file";
import { modesFor } from "../../store/layout";
import {
  type CommitNote,
  gitMark,
  gitPid,
  INDEX_HASH_BYTES,
  indexMark,
  isNoteName,
  noteName,
  noteText,
  readNote,
} from "./note-format";

export async function keepNote(workspace: Workspace, note: CommitNote): Promise<void> {
  const place = await placeOf(workspace);
  const index = await stagedIndex(workspace);
  if (place === null || index === null) return;
  const { files } = workspace.surroundings.platform;
  const modes = modesFor(workspace.repository.config.sharedRepository);
  try {
    await files.makeDirectory(place.path.slice(0, place.path.lastIndexOf("/")), modes.directory);
    await overwriteFile(files, place.path, noteText(note, { git: place.git, index }), modes.file);
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
    const index = stage === "staged" ? await stagedIndex(workspace) : null;
    if (bytes === null || (stage === "staged" && index === null)) return null;
    return readNote(new TextDecoder().decode(bytes), { git: place.git, index });
  } catch {
    return null;
  }
}

export async function dropNote(workspace: Workspace): Promise<void> {
  const place = await placeOf(workspace);
  if (place === null) return;
  try {
    await workspace.surroundings.platform.files.unlink(place.path);
  } catch {
    // It is about no other commit, and gc takes it away.
  }
}

/** Those of commits that were given up. */
export async function clearNotes(
  { surroundings, repository }: Workspace,
  olderThanMs: number,
): Promise<void> {
  const { files } = surroundings.platform;
  const directory = `${repository.controlDir}/cache`;
  for (const name of (await files.readDirectory(directory)) ?? []) {
    const stat = isNoteName(name) ? await files.lstat(`${directory}/${name}`) : null;
    if (stat !== null && stat.mtimeMs < olderThanMs) await files.unlink(`${directory}/${name}`);
  }
}

/** Null when nobody says which commit this is. */
async function placeOf(workspace: Workspace): Promise<{ path: string; git: string } | null> {
  const { env, platform } = workspace.surroundings;
  const pid = gitPid(env);
  const process = pid === null ? null : await platform.processes.identify(pid);
  const git = process === null ? null : gitMark(process.bootId, process.pid, process.startTime);
  if (pid === null || git === null) return null;
  return { path: `${workspace.repository.controlDir}/${noteName(pid)}`, git };
}

async function stagedIndex({ repository, surroundings }: Workspace): Promise<string | null> {
  const { files } = surroundings.platform;
  const path = indexFile(surroundings.env, repository);
  const stat = await files.stat(path);
  if (stat === null || stat.size < INDEX_HASH_BYTES) return null;
  const fd = await files.open(path, "read");
  try {
    return indexMark(stat, await files.read(fd, stat.size - INDEX_HASH_BYTES, INDEX_HASH_BYTES));
  } finally {
    await files.close(fd);
  }
}
