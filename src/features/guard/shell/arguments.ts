import { singleOf, type Value } from "./words";

/** Something that a command line may write, as the shell would name it. */
export interface Written {
  readonly value: Value;
  /** Where it is a directory: below it, under the names of these. */
  readonly names?: readonly Value[];
  /** When a directory is replaced, not filled: never (`-T`), or only where it is a link to one (`-n`). */
  readonly replaces?: "any" | "link";
  readonly mode: "take" | "look";
  /** A link of that name is itself removed, moved or replaced: what it leads to stays as it is. */
  readonly isEntry?: true;
  /**
   * It becomes a link to what `names` say, as seen from the link, or from where the shell stands; `second`: a second name
   * of the same file.
   */
  readonly link?: "from-link" | "from-shell" | "second";
  /** Files that nobody has named, or links, may come along: always, or unless it is a plain file. */
  readonly brings?: "always" | "unless-file";
  /** It is a patch for `git apply` with these options: what it names is written, not itself. */
  readonly patch?: readonly string[];
  /** Of a Git command that touches more than files that it names; it has no path of its own. */
  readonly use?: GitUse;
  /** By Git's own rule it is a path only if it does not name a commit. */
  readonly isPathUnlessCommit?: true;
}

/**
 * - `checkout`: HEAD, the index or every file of the worktree it runs in
 * - `stash`: takes entries from the stash, which all worktrees of a repository share
 * - `worktree`: takes a whole worktree away, or moves it
 * - `own`: the index and the branch of the worktree it runs in, as every commit does
 */
export type UseKind = "checkout" | "stash" | "worktree" | "own";

/** What a Git command touches besides files that it names. */
export interface GitUse {
  readonly kind: UseKind;
  /** As far as it can be read. */
  readonly command: string;
  /** The branch that it makes, and where that, or what is checked out, starts; null where it cannot be told. */
  readonly branch: string | null;
  readonly base: string | null;
  /** Which worktree, or which entry of the stash; null for any of them, or where it cannot be told. */
  readonly which: string | null;
  /** HEAD, the index or the stash alone: no file of the working tree is written. */
  readonly leavesFiles: boolean;
  /** Of those that make a commit, or prepare one: which it is, and its words. */
  readonly verb?: string;
  readonly args?: readonly Value[];
}

export function take(value: Value): Written {
  return { value, mode: "take" };
}

/** What is removed or moved away: a link is itself. */
export function takeEntry(value: Value): Written {
  return { value, mode: "take", isEntry: true };
}

export function look(value: Value): Written {
  return { value, mode: "look" };
}

export function use(
  kind: UseKind,
  more: {
    readonly branch?: Value;
    readonly base?: Value;
    readonly which?: Value;
    readonly leavesFiles?: boolean;
  } = {},
): Written {
  const { branch = null, base = null, which = null, leavesFiles = kind !== "checkout" } = more;
  const words = { branch: singleOf(branch), base: singleOf(base), which: singleOf(which) };
  return { value: [], mode: "look", use: { kind, command: "", ...words, leavesFiles } };
}

/** What is no option, nor the value of one of `valued`. */
export function operands(args: readonly Value[], valued: readonly string[] = []): Value[] {
  const found: Value[] = [];
  let isOver = false;
  for (let i = 0; i < args.length; i++) {
    const text = args[i] === null ? null : singleOf(args[i]!);
    if (!isOver && text === "--") isOver = true;
    else if (!isOver && text !== null && text.startsWith("-") && text !== "-") {
      if (valued.includes(text)) i++;
    } else found.push(args[i]!);
  }
  return found;
}

export function isGiven(args: readonly Value[], option: string): boolean {
  return args.some((arg) => singleOf(arg) === option);
}

/** Whether a letter is among the short options, as in `-rf`. */
export function hasLetter(args: readonly Value[], letter: string): boolean {
  return args.some((arg) => new RegExp(`^-[a-zA-Z]*${letter}`).test(singleOf(arg) ?? ""));
}

/** Values of options, as `-o x`, `-ox`, `--output x` and `--output=x`. */
export function optionValues(args: readonly Value[], options: readonly string[]): Value[] {
  const found: Value[] = [];
  for (const [i, arg] of args.entries()) {
    const text = singleOf(arg);
    if (text === null) continue;
    if (options.includes(text) && args[i + 1] !== undefined) found.push(args[i + 1]!);
    else
      for (const option of options)
        if (text.startsWith(`${option}=`)) found.push([text.slice(option.length + 1)]);
        else if (/^-[a-zA-Z]$/.test(option) && text.startsWith(option) && text.length > 2)
          found.push([text.slice(2)]);
  }
  return found;
}
