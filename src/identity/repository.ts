import { fileFailure } from "../errors/cotenant-error";
import type { Git } from "../platform/git";
import type { Files, Platform } from "../platform/platform";
import { type GitConfig, gitBoolean, parseGitConfig } from "./git-config";
import { type DotGit, readDotGit, readGitDirectory } from "./git-directory";
import { decode, joinPath, nameIn, parentOf, resolveFrom } from "./path-text";
import { askGitForRepository } from "./repository-by-git";
import { notARepository, noWorktree, type Repository, repositoryConfig } from "./repository-shape";

export type { Repository } from "./repository-shape";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that change which repository Git finds. With one of them set, only Git can say. */
const OVERRIDES = [
  "GIT_DIR",
  "GIT_WORK_TREE",
  "GIT_COMMON_DIR",
  "GIT_CEILING_DIRECTORIES",
  "GIT_DISCOVERY_ACROSS_FILESYSTEM",
] as const;

const KNOWN_EXTENSIONS = new Set([
  "objectformat",
  "refstorage",
  "worktreeconfig",
  "partialclone",
  "preciousobjects",
  "noop",
  "relativeworktrees",
]);
/** Only in effect, and only allowed, from repository format version 1 on. */
const NEW_EXTENSIONS = ["extensions.objectformat", "extensions.refstorage"];
/** Keys that a worktree's own configuration could override. */
const OVERRIDABLE = ["core.bare", "core.worktree", "core.ignorecase", "core.sharedrepository"];

/**
 * The repository around `start`, which may be a directory, a file, or something that does not exist yet.
 * Reads `.git` itself, because starting Git costs more than everything else a command does; asks Git
 * wherever the layout, the owner or the environment is out of the ordinary.
 */
export async function findRepository(
  platform: Platform,
  start: string,
  env: Environment,
  git: Git,
): Promise<Repository> {
  const { files } = platform;
  const directory = await nearestDirectory(files, start);
  const overrides: Record<string, string> = {};
  for (const name of OVERRIDES) if (env[name] !== undefined) overrides[name] = env[name];
  const ask = () => askGitForRepository(files, git, directory, overrides);
  if (Object.keys(overrides).length > 0) return ask();

  const found = await walkUp(files, directory);
  if (found === null) throw notARepository(start);
  if (found === "odd") return ask();
  if (found.kind === "inside-git") {
    const config = await readConfig(files, found.commonDir, found.gitDir);
    if (config === null || config.values.has("core.worktree")) return ask();
    throw noWorktree(found.gitDir, isTrue(config, "core.bare"));
  }
  if (found.owners.some((uid) => !isOurs(platform, uid))) return ask();
  const config = await readConfig(files, found.commonDir, found.gitDir);
  if (config === null) return ask();
  return (await assemble(files, found, config)) ?? ask();
}

interface FoundWorktree extends DotGit {
  readonly kind: "worktree";
  readonly worktreeRoot: string;
}

interface FoundInside {
  readonly kind: "inside-git";
  readonly gitDir: string;
  readonly commonDir: string;
}

async function walkUp(files: Files, directory: string): Promise<FoundWorktree | FoundInside | "odd" | null> {
  for (let at: string | null = directory; at !== null; at = parentOf(at)) {
    const dotGit = await readDotGit(files, at);
    if (dotGit === "odd") return "odd";
    if (dotGit !== null) return { ...dotGit, kind: "worktree", worktreeRoot: at };
    const itself = await readGitDirectory(files, at);
    if (itself !== null) return { ...itself, kind: "inside-git" };
  }
  return null;
}

/** Null wherever the linked worktree's or the main worktree's place is not what `.git` alone suggests. */
async function assemble(files: Files, found: FoundWorktree, config: GitConfig): Promise<Repository | null> {
  const { worktreeRoot, gitDir, commonDir } = found;
  const isMainWorktree = gitDir === commonDir;
  const bare = isTrue(config, "core.bare");
  const configured = await configuredWorktree(files, commonDir, config);
  // For a linked worktree Git ignores both core.bare and core.worktree of the common configuration.
  if (isMainWorktree && configured !== undefined && configured !== worktreeRoot) return null;
  if (isMainWorktree && bare) throw noWorktree(gitDir, true);
  const besideGit = nameIn(commonDir) === ".git" && !bare ? parentOf(commonDir) : null;
  return {
    worktreeRoot,
    gitDir,
    commonDir,
    isMainWorktree,
    mainWorktreeRoot: isMainWorktree ? worktreeRoot : (configured ?? besideGit),
    controlDir: joinPath(commonDir, "cotenant"),
    config: repositoryConfig(config.values),
  };
}

/** `core.worktree` as a real path: undefined when it is not set, null when it leads nowhere. */
async function configuredWorktree(files: Files, commonDir: string, config: GitConfig) {
  const value = config.values.get("core.worktree");
  if (value === undefined) return undefined;
  return value === null ? null : files.realPath(resolveFrom(commonDir, value));
}

/** Null whenever Git's own reading could differ from ours. */
async function readConfig(files: Files, commonDir: string, gitDir: string): Promise<GitConfig | null> {
  const text = await files.readFile(joinPath(commonDir, "config"));
  const config = parseGitConfig(text === null ? "" : decode(text));
  if (config === null || config.hasIncludes || !isOrdinary(config)) return null;
  if (!isTrue(config, "extensions.worktreeconfig")) return config;
  const own = await files.readFile(joinPath(gitDir, "config.worktree"));
  const ownConfig = parseGitConfig(own === null ? "" : decode(own));
  if (ownConfig === null || ownConfig.hasIncludes) return null;
  return OVERRIDABLE.some((key) => ownConfig.values.has(key)) ? null : config;
}

function isOrdinary(config: GitConfig): boolean {
  const version = config.values.get("core.repositoryformatversion") ?? "0";
  if (version !== "0" && version !== "1") return false;
  if (version === "0" && NEW_EXTENSIONS.some((key) => config.values.has(key))) return false;
  for (const [key, value] of config.values) {
    if (key.startsWith("extensions.") && !KNOWN_EXTENSIONS.has(key.slice("extensions.".length))) return false;
    if ((key === "core.bare" || key === "core.ignorecase") && gitBoolean(value) === undefined) return false;
  }
  return true;
}

function isTrue(config: GitConfig, key: string): boolean {
  const value = config.values.get(key);
  return value !== undefined && gitBoolean(value) === true;
}

/** Git trusts only what its user owns, unless `safe.directory` says otherwise, which only Git can read. */
function isOurs(platform: Platform, uid: number): boolean {
  const { user } = platform.processes.self();
  return !/^\d+$/.test(user) || Number(user) === uid;
}

async function nearestDirectory(files: Files, start: string): Promise<string> {
  for (let at: string | null = start.replace(/(?<=.)\/+$/, ""); at !== null; at = parentOf(at)) {
    try {
      const real = await files.realPath(at);
      if (real === null) continue;
      const isDirectory = (await files.stat(real))?.kind === "directory";
      return isDirectory ? real : (parentOf(real) ?? "/");
    } catch (error) {
      if ((error as { code?: unknown })?.code === "ELOOP") continue;
      throw fileFailure(error, "looking for the repository", at);
    }
  }
  return "/";
}
