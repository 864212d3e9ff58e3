import { fileFailure } from "../errors/cotenant-error";
import { foldPath } from "../kernel/fold";
import { printable } from "../kernel/ids";
import {
  escapes,
  isGitDirectoryName,
  isWellFormed,
  MAX_PATH_BYTES,
  parseRepoPath,
  type RepoPath,
  utf8Length,
} from "../kernel/keys";
import { isRefusal, type Refusal, refuse } from "../kernel/refusal";
import type { Files, Platform } from "../platform/platform";
import { readDotGit } from "./git-directory";
import { below, isAbsolute, joinPath, parentOf, resolveFrom } from "./path-text";
import type { Repository } from "./repository-shape";

export interface CanonicalPath {
  /** What the key is made of: relative to `worktreeRoot`, NFC, folded where the repository ignores case. */
  readonly path: RepoPath;
  /** The real file, in its own spelling, for whoever wants to open it. */
  readonly absolutePath: string;
  /** Null when nothing is there and the text does not say either. */
  readonly isDirectory: boolean | null;
  /** The caller's worktree, or one of the same repository inside it that the path leads into. */
  readonly worktreeRoot: string;
}

const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/;
/** How an absolute path begins on Windows. */
const DRIVE = /^[A-Za-z]:[\\/]/;
/** Longer than any path an operating system takes, short enough to look at. */
const MAX_TEXT_BYTES = 2 * MAX_PATH_BYTES;

/**
 * The one spelling of a path a caller has typed, seen from `cwd`. Symbolic links are followed to the real
 * file, so that two names of one file are one key; what does not exist yet is taken as it is written.
 */
export async function canonicalPath(
  platform: Platform,
  repository: Repository,
  cwd: string,
  text: string,
): Promise<CanonicalPath | Refusal> {
  // A worktree may itself lie below some `.git`; only what is typed beyond its root counts.
  const typed = isAbsolute(text) ? (below(text, repository.worktreeRoot) ?? "") : text;
  const malformed = checkText(text, typed);
  if (malformed !== null) return malformed;
  // Absolute on another system, and here a name that no other system could check out.
  if (DRIVE.test(text) && !DRIVE.test(repository.worktreeRoot))
    return escapes(text, "is outside the repository");
  const { files } = platform;
  let place: FoundPath | Refusal;
  try {
    place = await locate(files, cwd, text);
  } catch (error) {
    place = refusalFor(error, text);
  }
  if (isRefusal(place)) return place;
  const root = await worktreeOf(files, repository, place, text);
  if (isRefusal(root)) return root;
  const relative = below(place.absolutePath, root)!;
  const path = parseRepoPath(relative === "" ? "." : foldPath(relative, repository.config.ignoreCase));
  if (isRefusal(path)) return path;
  return { path, absolutePath: place.absolutePath, isDirectory: place.isDirectory, worktreeRoot: root };
}

/** Of a repository, whether its file system folds case. */
export interface FoldingNames {
  readonly config: { readonly ignoreCase: boolean };
}

/** A path as Git has it, from the root of the worktree: nothing is looked up, so a link is itself. */
export function gitPath({ config }: FoldingNames, path: string): RepoPath | Refusal {
  return parseRepoPath(foldPath(path, config.ignoreCase));
}

function checkText(text: string, typed: string): Refusal | null {
  if (text === "")
    return refuse("E_USAGE", "an empty path names nothing", { hint: "use . for this directory" });
  if (CONTROL.test(text)) return escapes(text, "contains control characters");
  if (!isWellFormed(text)) return escapes(text, "is not valid Unicode");
  if (utf8Length(text) > MAX_TEXT_BYTES) {
    return refuse("E_LIMIT", `"${printable(text)}" is longer than ${MAX_TEXT_BYTES} bytes`, {
      hint: "use a shorter path",
    });
  }
  // Also where such a name does not exist: some other file system would take it for Git's directory.
  if (typed.split("/").some(isGitDirectoryName)) return escapes(text, "is inside Git's own directory");
  return null;
}

interface FoundPath {
  readonly absolutePath: string;
  readonly isDirectory: boolean | null;
  /** The deepest directory on the way that exists. */
  readonly existing: string;
}

/** Follows what exists as the operating system would, and appends what does not. */
async function locate(files: Files, cwd: string, text: string): Promise<FoundPath | Refusal> {
  const saysDirectory = /(?:^|\/)\.{0,2}$/.test(text);
  const whole = resolveFrom(cwd, text).replace(/(?<=.)\/+$/, "");
  const missing: string[] = [];
  for (let at: string | null = whole; at !== null; at = parentOf(at)) {
    const real = await files.realPath(at);
    if (real === null) {
      const name = at.slice(at.lastIndexOf("/") + 1);
      if (name === "..") return escapes(text, "has '..' after a directory that does not exist");
      if (name !== "" && name !== ".") missing.unshift(name);
      continue;
    }
    const isDirectory = (await files.stat(real))?.kind === "directory";
    if (missing.length === 0) {
      if (saysDirectory && !isDirectory) {
        return refuse("E_USAGE", `"${printable(text)}" is a file, not a directory`, {
          hint: "leave out the slash at its end",
        });
      }
      return { absolutePath: real, isDirectory, existing: isDirectory ? real : (parentOf(real) ?? "/") };
    }
    if (!isDirectory) {
      return refuse("E_USAGE", `"${printable(text)}" is below a file, not a directory`, {
        data: { file: real },
      });
    }
    // There, but without a real path: a link whose target is missing. What it will name cannot be known.
    if ((await files.lstat(joinPath(real, missing[0]!))) !== null) {
      return escapes(text, "is a symbolic link that leads nowhere");
    }
    return {
      absolutePath: joinPath(real, missing.join("/")),
      isDirectory: saysDirectory ? true : null,
      existing: real,
    };
  }
  return escapes(text, "is not a path");
}

/** The worktree that the place belongs to: the caller's, or another of the same repository inside it. */
async function worktreeOf(
  files: Files,
  repository: Repository,
  place: FoundPath,
  text: string,
): Promise<string | Refusal> {
  const { worktreeRoot, gitDir, commonDir } = repository;
  if (below(place.absolutePath, worktreeRoot) === null) return outside(text, place, worktreeRoot);
  // Git's directory may lie inside the tree, under any name.
  for (const directory of [gitDir, commonDir]) {
    const isInTree = below(directory, worktreeRoot) !== null;
    if (isInTree && below(place.absolutePath, directory) !== null) {
      return escapes(text, "is inside Git's own directory");
    }
  }
  for (let at: string | null = place.existing; at !== null && at !== worktreeRoot; at = parentOf(at)) {
    const dotGit = await readDotGit(files, at);
    if (dotGit === null) continue;
    if (dotGit !== "odd" && dotGit.commonDir === commonDir) return at;
    return refuse("E_PATH_ESCAPE", `"${printable(text)}" is in another repository, ${printable(at)}`, {
      hint: `run it there: cd ${at}`,
      data: { path: printable(text, 500), repository: at },
    });
  }
  return worktreeRoot;
}

function outside(text: string, place: FoundPath, worktreeRoot: string): Refusal {
  const real = printable(place.absolutePath, 500);
  return refuse("E_PATH_ESCAPE", `"${printable(text)}" is outside the worktree: it is ${real}`, {
    hint: `name a file inside ${worktreeRoot}, or run the command in the worktree the file is in`,
    data: { path: printable(text, 500), real_path: real, worktree: worktreeRoot },
  });
}

/** What the operating system says about a path that is a fault of the path, not of the machine. */
function refusalFor(error: unknown, text: string): Refusal {
  const code = (error as { code?: unknown })?.code;
  if (code === "ELOOP") return escapes(text, "goes round in a circle of symbolic links");
  if (code === "ENAMETOOLONG") {
    return refuse("E_LIMIT", `"${printable(text)}" is longer than this file system allows`, {
      hint: "use a shorter path",
    });
  }
  throw fileFailure(error, "resolving a path", text);
}
