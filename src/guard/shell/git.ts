import { everybody, hasLetter, isGiven, look, operands, take, type Written } from "./arguments";
import { singleOf, type Value } from "./words";

/** What everybody in the checkout shares. */
const WHOLE: readonly Written[] = [everybody()];
/** Options of Git itself that take a value. */
const GLOBAL_VALUED = ["-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path"];

/** What a Git command changes in the working tree. Its own directory is nobody's business here. */
export function gitWrites(args: readonly Value[]): Written[] {
  const at = subcommandAt(args);
  const name = at === -1 ? null : singleOf(args[at]!);
  if (name === null) return [];
  const reading = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const command = ["git", ...args.slice(at).map((arg) => singleOf(arg) ?? "…")].join(" ");
  const writes = reading === undefined ? [] : reading(args.slice(at + 1));
  return writes.map((write) =>
    write.everybody === undefined ? write : { ...write, everybody: { ...write.everybody, command } },
  );
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
  switch: (args) => moved(args, ["-c", "-C", "--create", "--force-create", "--orphan"]),
  restore: (args) => {
    const isStagedOnly =
      (isGiven(args, "--staged") || hasLetter(args, "S")) &&
      !isGiven(args, "--worktree") &&
      !hasLetter(args, "W");
    return isStagedOnly ? [] : operands(args, ["-s", "--source"]).map(take);
  },
  stash: (args) => {
    const verb = singleOf(args[0] ?? null);
    if (verb === "list" || verb === "show" || verb === "create") return [];
    // One stash for all worktrees of a repository: also whoever puts away only its own moves what others count on.
    return [everybody(verb === "branch" ? (args[1] ?? null) : null), ...afterDashes(args).map(take)];
  },
  reset: (args) => {
    const moves = ["--hard", "--merge", "--keep", "--soft", "--mixed"].some((option) =>
      isGiven(args, option),
    );
    if (moves) return WHOLE;
    if (afterDashes(args).length > 0) return [];
    const rest = operands(args);
    // Alone it takes everything out of the index; one word is a commit, or else a path.
    return rest.length === 0 || (rest.length === 1 && COMMIT.test(singleOf(rest[0]!) ?? "")) ? WHOLE : [];
  },
  clean: (args) => {
    if (isGiven(args, "-n") || isGiven(args, "--dry-run")) return [];
    const paths = operands(args, ["-e", "--exclude"]);
    return paths.length > 0 ? paths.map(look) : WHOLE;
  },
  branch: (args) => (["-m", "-M", "--move"].some((option) => isGiven(args, option)) ? WHOLE : []),
  "symbolic-ref": (args) => (operands(args, ["-m"]).length > 1 ? WHOLE : []),
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

/** What can only be a commit. */
const COMMIT = /^(?:(?:HEAD|@|ORIG_HEAD|FETCH_HEAD)(?:[~^@].*)?|[0-9a-f]{7,64})$/;
const NEW_BRANCH = ["-b", "-B", "--orphan"];

function checkout(args: readonly Value[]): readonly Written[] {
  const paths = afterDashes(args);
  if (paths.length > 0) return paths.map(take);
  if (NEW_BRANCH.some((option) => isGiven(args, option))) return moved(args, NEW_BRANCH);
  const rest = operands(args, ["--conflict"]);
  // `git checkout HEAD~1 src/a.ts`: what follows the commit is a path. One word alone is a branch, or else a path.
  if (rest.length > 1) return rest.slice(1).map(take);
  const isNothing = rest.length === 0 && !isGiven(args, "-f") && !isGiven(args, "--detach");
  return isNothing ? [] : [everybody(null, rest[0] ?? null)];
}

/** HEAD goes elsewhere: to a new branch, where no file need change, or to one that is there. */
function moved(args: readonly Value[], creating: readonly string[]): readonly Written[] {
  const at = args.findIndex((arg) => creating.includes(singleOf(arg) ?? ""));
  const rest = operands(args, creating);
  return [everybody(at === -1 ? null : (args[at + 1] ?? null), rest[0] ?? null)];
}

function afterDashes(args: readonly Value[]): Value[] {
  const at = args.findIndex((arg) => singleOf(arg) === "--");
  return at === -1 ? [] : args.slice(at + 1);
}
