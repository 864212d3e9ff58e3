import {
  hasLetter,
  isGiven,
  look,
  operands,
  optionValues,
  take,
  takeEntry,
  use,
  type Written,
} from "./arguments";
import { hasPattern, singleOf, type Value } from "./words";

/** HEAD, the index and the files of the worktree it runs in, all at once. */
const WHOLE: readonly Written[] = [use("checkout")];
/** HEAD or the index of everybody in the worktree it runs in, and no file. */
const MOVED: readonly Written[] = [use("checkout", { leavesFiles: true })];
/** The index or the branch of the worktree it runs in, and nobody's file. */
const OWN: readonly Written[] = [use("own")];
/** Files, but which cannot be told. */
const SOME: readonly Written[] = [take(null)];
/** Options of Git itself that take a value. */
const GLOBAL_VALUED = [
  "-c",
  "-C",
  "--git-dir",
  "--work-tree",
  "--namespace",
  "--exec-path",
  "--super-prefix",
  "--config-env",
];

/** What a Git command changes in the working tree, and what it moves. Its own directory is nobody's business here. */
export function gitWrites(args: readonly Value[]): Written[] {
  const at = subcommandAt(args);
  const name = at === -1 ? null : singleOf(args[at]!);
  if (name === null) return [];
  const reading = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const command = ["git", ...args.slice(at).map((arg) => singleOf(arg) ?? "…")].join(" ");
  const writes = reading === undefined ? [] : reading(args.slice(at + 1));
  return writes.map((write) =>
    write.use === undefined
      ? write
      : { ...write, use: { ...write.use, command, verb: name, args: args.slice(at + 1) } },
  );
}

/** Where it is meant, one step after the other: each `-C <directory>`, then the working tree that is named. */
export function gitDirectories(args: readonly Value[]): Value[] {
  const own = args.slice(0, Math.max(0, subcommandAt(args)));
  const steps = optionValues(own, ["-C"]);
  const tree = optionValues(own, ["--work-tree"]).at(-1);
  if (tree !== undefined) return [...steps, tree];
  const gitDir = optionValues(own, ["--git-dir"]).at(-1);
  if (gitDir === undefined) return steps;
  const beside = /^(.*?)\/?\.git\/?$/.exec(singleOf(gitDir) ?? "");
  if (beside === null) return [...steps, null];
  return [...steps, [beside[1] === "" ? (singleOf(gitDir)!.startsWith("/") ? "/" : ".") : beside[1]!]];
}

function subcommandAt(args: readonly Value[]): number {
  for (let i = 0; i < args.length; i++) {
    const text = singleOf(args[i]!);
    if (text === null || !text.startsWith("-")) return i;
    if (GLOBAL_VALUED.includes(text)) i++;
  }
  return -1;
}

/** Where the subcommand is, if it is none that is known: it may be somebody's alias. */
export function unknownVerb(args: readonly Value[]): { readonly at: number; readonly name: string } | null {
  const at = subcommandAt(args);
  const name = at === -1 ? null : singleOf(args[at]!);
  return name === null || isHarmlessGit(args) ? null : { at, name };
}

/** Whether it leaves the files of a working tree as they are, where it has no writes. */
export function isHarmlessGit(args: readonly Value[]): boolean {
  const at = subcommandAt(args);
  const name = (at === -1 ? null : singleOf(args[at]!)) ?? "";
  return HARMLESS.has(name) || Object.hasOwn(COMMANDS, name);
}

const HARMLESS: ReadonlySet<string> = new Set(
  "blame cat-file check-attr check-ignore check-ref-format config count-objects describe diff-files diff-index diff-tree fetch for-each-ref fsck grep help hash-object log ls-files ls-remote ls-tree merge-base name-rev notes push remote rev-list rev-parse shortlog show show-branch show-ref status tag var verify-commit version whatchanged".split(
    " ",
  ),
);

const COMMANDS: Readonly<Record<string, (args: readonly Value[]) => readonly Written[]>> = {
  add: () => OWN,
  stage: () => OWN,
  commit: () => OWN,
  "update-index": () => OWN,
  checkout,
  switch: (args) => moved(args, ["-c", "-C", "--create", "--force-create", "--orphan"]),
  restore: (args) => {
    const isStagedOnly =
      (isGiven(args, "--staged") || hasLetter(args, "S")) &&
      !isGiven(args, "--worktree") &&
      !hasLetter(args, "W");
    if (isStagedOnly) return OWN;
    return [...operands(args, ["-s", "--source"]).map(broughtBack), ...listed(args)];
  },
  stash,
  reset: (args) => {
    if (["--hard", "--merge", "--keep"].some((option) => isGiven(args, option))) return WHOLE;
    if (["--soft", "--mixed"].some((option) => isGiven(args, option))) return MOVED;
    const rest = operands(args);
    if (afterDashes(args).length > 0 || rest.length > 1 || listed(args).length > 0) return OWN;
    // Alone it takes everything out of the index; one word is a commit, or else a path.
    if (rest.length === 0) return MOVED;
    const moved = use("checkout", { base: rest[0]!, leavesFiles: true });
    return [...OWN, { ...moved, isPathUnlessCommit: true }];
  },
  clean: (args) => {
    if (isDryRun(args)) return [];
    const paths = operands(args, ["-e", "--exclude"]);
    return paths.length > 0 ? paths.map(look) : WHOLE;
  },
  branch: (args) => (["-m", "-M", "--move"].some((option) => isGiven(args, option)) ? MOVED : []),
  "symbolic-ref": (args) => {
    const [ref, ...rest] = operands(args, ["-m"]);
    const isWritten = rest.length > 0 || isGiven(args, "-d") || isGiven(args, "--delete");
    return isWritten && ref !== undefined && (singleOf(ref) ?? "HEAD") === "HEAD" ? MOVED : [];
  },
  "update-ref": (args) => {
    if (isGiven(args, "--stdin")) return MOVED;
    const [ref] = operands(args, ["-m"]);
    return ref === undefined ? [] : refWritten(ref);
  },
  "read-tree": (args) => {
    if (isDryRun(args)) return [];
    return hasLetter(args, "u") ? WHOLE : MOVED;
  },
  reflog: (args) => {
    const [verb, ...rest] = operands(args, ["--expire", "--expire-unreachable"]);
    if (!["expire", "delete", "drop"].includes(singleOf(verb ?? null) ?? "")) return [];
    if (isDryRun(args)) return [];
    if (isGiven(args, "--all") || rest.some((ref) => /stash/.test(singleOf(ref) ?? "stash")))
      return [use("stash")];
    return [];
  },
  rm: (args) => {
    if (isDryRun(args)) return [];
    return isGiven(args, "--cached") ? OWN : [...operands(args).map(takeEntry), ...listed(args)];
  },
  mv: (args) => {
    const paths = operands(args);
    return [
      ...paths.slice(0, -1).map((value): Written => ({ ...takeEntry(value), brings: "unless-file" })),
      ...(paths.length > 1 ? [{ ...takeEntry(paths.at(-1)!), names: paths.slice(0, -1) }] : []),
    ];
  },
  apply: (args) => {
    const isOnlyShown = ["--check", "--stat", "--numstat", "--summary"].some((option) =>
      isGiven(args, option),
    );
    if (isOnlyShown && !isGiven(args, "--apply")) return [];
    return isGiven(args, "--cached") ? OWN : [...WHOLE, ...patches(args)];
  },
  am: () => WHOLE,
  merge: (args) => (isGiven(args, "--quit") ? [] : WHOLE),
  pull: () => WHOLE,
  rebase: () => WHOLE,
  revert: () => WHOLE,
  "cherry-pick": () => WHOLE,
  "filter-branch": () => WHOLE,
  "filter-repo": () => WHOLE,
  subtree: (args) => (["add", "merge", "pull"].includes(singleOf(args[0] ?? null) ?? "") ? WHOLE : []),
  "sparse-checkout": (args) => (singleOf(args[0] ?? null) === "list" ? [] : WHOLE),
  bisect: (args) => (["log", "view", "visualize"].includes(singleOf(args[0] ?? null) ?? "") ? [] : WHOLE),
  "checkout-index": (args) => {
    if (optionValues(args, ["--prefix"]).length > 0 || isGiven(args, "--stdin")) return SOME;
    return hasLetter(args, "a") || isGiven(args, "--all") ? WHOLE : operands(args).map(broughtBack);
  },
  "merge-file": (args) =>
    hasLetter(args, "p") ? [] : operands(args, ["-L", "--marker-size"]).slice(0, 1).map(take),
  worktree: (args) => {
    const [verb, which] = operands(args);
    const takesAway = ["remove", "move"].includes(singleOf(verb ?? null) ?? "");
    return takesAway && which !== undefined
      ? readings(which).map((one) => use("worktree", { which: one }))
      : [];
  },
  diff: (args) => optionValues(args, ["--output"]).map(take),
  log: (args) => optionValues(args, ["--output"]).map(take),
  show: (args) => optionValues(args, ["--output"]).map(take),
  archive: (args) => optionValues(args, ["-o", "--output"]).map(take),
  bundle: (args) => (singleOf(args[0] ?? null) === "create" ? operands(args).slice(1, 2).map(take) : []),
};

const NEW_BRANCH = ["-b", "-B", "--orphan"];

function checkout(args: readonly Value[]): readonly Written[] {
  const paths = afterDashes(args);
  if (paths.length > 0) return paths.map(broughtBack);
  if (newBranchAt(args, NEW_BRANCH) !== -1) return moved(args, NEW_BRANCH);
  if (listed(args).length > 0) return SOME;
  const rest = operands(args, ["--conflict"]);
  // `git checkout HEAD~1 src/a.ts`: what follows a commit is a path. Words before it that are none are paths, too.
  if (rest.length > 1)
    return rest.map((value, i) => ({
      ...broughtBack(value),
      ...(i === 0 ? { isPathUnlessCommit: true } : {}),
    }));
  if (rest.length === 0) return isGiven(args, "-f") || isGiven(args, "--detach") ? WHOLE : [];
  return readings(rest[0]!).map((value) =>
    // A pattern stands for files.
    value !== null && hasPattern(value[0]!)
      ? broughtBack(value)
      : { ...use("checkout", { base: value }), ...broughtBack(value), isPathUnlessCommit: true },
  );
}

/** From a commit or the index, which may have more there than the working tree, and links. */
function broughtBack(value: Value): Written {
  return { ...takeEntry(value), brings: "always" };
}

/** HEAD goes elsewhere: to a new branch, where no file need change, or to one that is there. */
function moved(args: readonly Value[], creating: readonly string[]): readonly Written[] {
  const at = newBranchAt(args, creating);
  const branch = at === -1 ? null : createdBy(singleOf(args[at]!)!, creating, args[at + 1]);
  return [use("checkout", { branch, base: operands(args, creating)[0] ?? null })];
}

function createdBy(text: string, creating: readonly string[], next: Value | undefined): Value {
  if (creating.includes(text)) return next ?? null;
  return [text.startsWith("--") ? text.slice(text.indexOf("=") + 1) : text.slice(2)];
}

/** `-b x`, `-bx`, `--create=x`. */
function newBranchAt(args: readonly Value[], creating: readonly string[]): number {
  return args.findIndex((arg) => {
    const text = singleOf(arg) ?? "";
    return creating.some((option) =>
      option.startsWith("--") ? text === option || text.startsWith(`${option}=`) : text.startsWith(option),
    );
  });
}

/** One stash for all worktrees of a repository: also whoever puts away only its own moves what others count on. */
function stash(args: readonly Value[]): readonly Written[] {
  const verb = singleOf(args[0] ?? null);
  if (verb === "list" || verb === "show" || verb === "create") return [];
  const rest = operands(args.slice(1));
  const paths = afterDashes(args).map(take);
  switch (verb) {
    case "clear":
      return [...MOVED, use("stash")];
    case "drop":
    case "pop": {
      const taken = use("stash", { which: rest.length === 0 ? ["0"] : rest[0]! });
      return [...(verb === "pop" ? WHOLE : MOVED), taken];
    }
    case "branch":
      return [
        use("checkout", { branch: rest[0] ?? null }),
        use("stash", { which: rest.length < 2 ? ["0"] : rest[1]! }),
      ];
    default:
      return [...WHOLE, ...paths];
  }
}

function isDryRun(args: readonly Value[]): boolean {
  return hasLetter(args, "n") || isGiven(args, "--dry-run");
}

/** A ref that is written past everything that Git looks after. */
function refWritten(ref: Value): readonly Written[] {
  const name = singleOf(ref);
  if (name === null || name === "HEAD") return MOVED;
  if (name === "refs/stash") return [use("stash")];
  // The worktree that has this branch checked out is the one that is moved.
  return name.startsWith("refs/heads/") ? [use("checkout", { which: ref, leavesFiles: true })] : [];
}

/** Files with patches: what they are about is Git's to say. What comes by a pipe is not to be had beforehand. */
function patches(args: readonly Value[]): Written[] {
  const valued = ["-p", "-C", "--directory", "--exclude", "--include", "--whitespace"];
  const options = ["-p", "--directory"].flatMap((option) =>
    optionValues(args, [option]).map(
      (value) => `${option}${option === "-p" ? "" : "="}${singleOf(value) ?? ""}`,
    ),
  );
  return operands(args, valued).map((value) => ({ ...takeEntry(value), patch: options }));
}

/** Each of the things that a word may stand for. */
function readings(value: Value): Value[] {
  return value === null ? [null] : value.map((one) => [one]);
}

function afterDashes(args: readonly Value[]): Value[] {
  const at = args.findIndex((arg) => singleOf(arg) === "--");
  return at === -1 ? [] : args.slice(at + 1);
}

/** Paths that are read from a file. */
function listed(args: readonly Value[]): readonly Written[] {
  return args.some((arg) => singleOf(arg)?.startsWith("--pathspec-from-file")) ? SOME : [];
}
