/**
 * Variables of a Git command that may have started us, such as one that runs a hook. They lead to that command's repository,
 * worktree and index, wherever we go.
 */
const GIT_PLACES: readonly string[] = [
  "GIT_DIR",
  "GIT_WORK_TREE",
  "GIT_INDEX_FILE",
  "GIT_COMMON_DIR",
  "GIT_OBJECT_DIRECTORY",
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_PREFIX",
];

type Variables = Readonly<Record<string, string | undefined>>;

/** For another worktree than the one that we were started in. */
export function withoutGitPlaces(env: Variables): Variables {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !GIT_PLACES.includes(name)));
}
