import { hasLetter, isGiven, look, operands, take, type Written } from "./arguments";
import { singleOf, type Value } from "./words";

const WHOLE: readonly Written[] = [look([":/"])];
/** Options of Git itself that take a value. */
const GLOBAL_VALUED = ["-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path"];

/** What a Git command changes in the working tree. Its own directory is nobody's business here. */
export function gitWrites(args: readonly Value[]): Written[] {
  const at = subcommandAt(args);
  const name = at === -1 ? null : singleOf(args[at]!);
  if (name === null) return [];
  const reading = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return reading === undefined ? [] : [...reading(args.slice(at + 1))];
}

/** `git -C <directory> …`: where the rest of it is meant. */
export function gitDirectory(args: readonly Value[]): Value | undefined {
  const at = args.findIndex((arg) => singleOf(arg) === "-C");
  return at === -1 || at > subcommandAt(args) ? undefined : args[at + 1];
}

function subcommandAt(args: readonly Value[]): number {
  for (let i = 0; i < args.length; i++) {
    const text = singleOf(args[i]!);
    if (text === null || !text.startsWith("-")) return i;
    if (GLOBAL_VALUED.includes(text)) i++;
  }
  return -1;
}

/** Subcommands that leave the working tree as it is. */
export const HARMLESS_GIT: ReadonlySet<string> = new Set(
  "add blame branch cat-file commit config describe diff diff-tree fetch for-each-ref grep help log ls-files ls-remote ls-tree merge-base name-rev notes push reflog remote rev-list rev-parse shortlog show show-ref status symbolic-ref tag var version".split(
    " ",
  ),
);

const COMMANDS: Readonly<Record<string, (args: readonly Value[]) => readonly Written[]>> = {
  checkout,
  switch: (args) => (createsOnly(args, ["-c", "-C", "--create", "--force-create"]) ? [] : WHOLE),
  restore: (args) => {
    const isStagedOnly =
      (isGiven(args, "--staged") || hasLetter(args, "S")) &&
      !isGiven(args, "--worktree") &&
      !hasLetter(args, "W");
    return isStagedOnly ? [] : operands(args, ["-s", "--source"]).map(take);
  },
  stash: (args) => {
    const verb = singleOf(args[0] ?? null);
    if (verb === "list" || verb === "show" || verb === "drop" || verb === "clear" || verb === "create")
      return [];
    const paths = afterDashes(args);
    return paths.length > 0 ? paths.map(take) : WHOLE;
  },
  reset: (args) => (["--hard", "--merge", "--keep"].some((option) => isGiven(args, option)) ? WHOLE : []),
  clean: (args) => {
    if (isGiven(args, "-n") || isGiven(args, "--dry-run")) return [];
    const paths = operands(args, ["-e", "--exclude"]);
    return paths.length > 0 ? paths.map(look) : [look(["."])];
  },
  rm: (args) => (isGiven(args, "--cached") ? [] : operands(args).map(take)),
  mv: (args) => {
    const paths = operands(args);
    return [
      ...paths.slice(0, -1).map(take),
      ...(paths.length > 1
        ? [{ value: paths.at(-1)!, names: paths.slice(0, -1), mode: "take" as const }]
        : []),
    ];
  },
  apply: (args) =>
    ["--check", "--stat", "--numstat", "--summary", "--cached"].some((option) => isGiven(args, option))
      ? []
      : WHOLE,
  am: () => WHOLE,
  merge: (args) =>
    isGiven(args, "--abort") || operands(args).length > 0 || isGiven(args, "--continue") ? WHOLE : [],
  pull: () => WHOLE,
  rebase: () => WHOLE,
  revert: () => WHOLE,
  "cherry-pick": () => WHOLE,
  "sparse-checkout": () => WHOLE,
  bisect: () => WHOLE,
  "checkout-index": () => WHOLE,
};

function checkout(args: readonly Value[]): readonly Written[] {
  const paths = afterDashes(args);
  if (paths.length > 0) return paths.map(take);
  if (createsOnly(args, ["-b", "-B", "--orphan"])) return [];
  const rest = operands(args, ["-b", "-B", "--orphan", "--conflict"]);
  // `git checkout HEAD~1 src/a.ts`: what follows the commit is a path. One word alone is a branch, or else a path.
  if (rest.length > 1) return rest.slice(1).map(take);
  return rest.length === 0 && !isGiven(args, "-f") ? [] : WHOLE;
}

/** A new branch where HEAD is: no file changes. */
function createsOnly(args: readonly Value[], options: readonly string[]): boolean {
  if (!options.some((option) => isGiven(args, option))) return false;
  return operands(args, options).length === 0;
}

function afterDashes(args: readonly Value[]): Value[] {
  const at = args.findIndex((arg) => singleOf(arg) === "--");
  return at === -1 ? [] : args.slice(at + 1);
}
