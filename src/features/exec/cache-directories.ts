import { fileFailure } from "../../errors/cotenant-error";
import { parentOf } from "../../identity/path-text";
import type { Environment } from "../../identity/repository";
import { overwriteFile } from "../../platform/overwrite-file";
import type { Files, Platform } from "../../platform/platform";
import { cacheEnvironment, ownerName } from "./caches";

const DIRECTORY = ".agent-cache";

export interface OwnCaches {
  readonly place: string;
  /** How tools are told to keep what they keep there. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Makes a place in a worktree for an agent's caches and outputs, which nobody commits. */
export async function makeCaches(
  { files, digest }: Pick<Platform, "files" | "digest">,
  worktreeRoot: string,
  agentId: string,
  env: Environment,
): Promise<OwnCaches> {
  const folder = `${worktreeRoot}/${DIRECTORY}`;
  const place = `${folder}/${ownerName(agentId, (text) => digest.sha256(text))}`;
  const { variables, directories } = cacheEnvironment(place, env);
  const named = Object.values(variables).filter((value) => value.startsWith(`${place}/`));
  try {
    const made = new Set([worktreeRoot]);
    for (const directory of [place, ...directories, ...named.map((file) => parentOf(file) ?? place)])
      await makeDirectories(files, directory, made);
    // Whatever the repository's own .gitignore says.
    await ignoreAll(files, `${folder}/.gitignore`);
  } catch (error) {
    throw fileFailure(error as Error, "making a place for the agent's caches", place);
  }
  return { place, variables: { ...variables, COTENANT_CACHE_ROOT: place } };
}

async function makeDirectories(files: Files, path: string, made: Set<string>): Promise<void> {
  if (made.has(path)) return;
  made.add(path);
  await makeDirectories(files, parentOf(path) ?? "/", made);
  await files.makeDirectory(path, 0o700);
}

async function ignoreAll(files: Files, path: string): Promise<void> {
  if ((await files.lstat(path)) === null) await overwriteFile(files, path, "*\n", 0o600);
}
