/**
 * The repository's file as it could last be read, kept where no commit reaches. Whoever enforces rules goes by it while the
 * file cannot be read: a commit that breaks the file must not switch the rules off. Losing it loses only that.
 */
export interface ConfigMemory {
  readonly file: string;
  readonly modes: { readonly file: number; readonly directory: number };
}

/** One for each worktree: they may stand on different commits. */
export function memoryOf(
  { controlDir, gitDir, commonDir }: Record<"controlDir" | "gitDir" | "commonDir", string>,
  modes: ConfigMemory["modes"],
): ConfigMemory {
  const name = gitDir === commonDir ? "main" : `worktree-${gitDir.slice(gitDir.lastIndexOf("/") + 1)}`;
  return { file: `${controlDir}/config/${name}.json`, modes };
}
