import { CotenantError } from "../errors/cotenant-error";
import { gitBoolean } from "./git-config";

/** Where a caller stands, as Git sees it. All paths are absolute real paths. */
export interface Repository {
  readonly worktreeRoot: string;
  readonly gitDir: string;
  readonly commonDir: string;
  readonly isMainWorktree: boolean;
  /** Null when there is none (a bare repository's worktrees) or when Git itself does not record it. */
  readonly mainWorktreeRoot: string | null;
  /** The control plane: one for all worktrees. */
  readonly controlDir: string;
  readonly config: RepositoryConfig;
}

export interface RepositoryConfig {
  readonly ignoreCase: boolean;
  /** As written; null when it is not set. */
  readonly sharedRepository: string | null;
  readonly bare: boolean;
  readonly objectFormat: "sha1" | "sha256";
  readonly refFormat: "files" | "reftable";
}

export function repositoryConfig(values: ReadonlyMap<string, string | null>): RepositoryConfig {
  const flag = (key: string) => values.has(key) && gitBoolean(values.get(key)!) === true;
  // A key without a value means true, which Git reads as "group".
  const shared = values.has("core.sharedrepository")
    ? (values.get("core.sharedrepository") ?? "group")
    : null;
  return {
    ignoreCase: flag("core.ignorecase"),
    sharedRepository: shared,
    bare: flag("core.bare"),
    objectFormat: values.get("extensions.objectformat") === "sha256" ? "sha256" : "sha1",
    refFormat: values.get("extensions.refstorage") === "reftable" ? "reftable" : "files",
  };
}

/** `words` are Git's own, where it was asked. */
export function notARepository(start: string, words?: string): CotenantError {
  const said = words === undefined ? "" : ` (Git says: ${words})`;
  return new CotenantError("E_NOT_A_REPO", `${start} is not inside a Git repository${said}`, {
    data: { path: start, ...(words === undefined ? {} : { git: words }) },
  });
}

export function noWorktree(gitDir: string, isBare: boolean): CotenantError {
  return isBare
    ? new CotenantError("E_NOT_A_REPO", `${gitDir} is a bare repository: it has no working tree`, {
        hint: "run it in a clone, or make a working tree with 'git worktree add <directory>'; in a bare repository there are only 'cotenant hooks install --server', 'cotenant hooks status --server' and 'cotenant hooks uninstall --server'",
        data: { git_dir: gitDir, bare: true },
      })
    : new CotenantError("E_NOT_A_REPO", `${gitDir} is Git's own directory, not a working tree`, {
        hint: "change into the working tree and run the command there",
        data: { git_dir: gitDir, bare: false },
      });
}
