import { dirtyPaths } from "../../../identity/dirty-paths";
import { gitFailed, gitList } from "../../../platform/git-answers";
import { repositoryOf } from "../worktree";
import type { World } from "../world";
import { type Group, locate, type Named } from "../write-target";
import { hasLetter, isGiven, operands } from "./arguments";
import type { ShellWrite } from "./walk";
import { singleOf, type Value } from "./words";

/** Of `git commit`: short options that take a value, and long ones whose value is a word of its own. */
const VALUED_LETTERS = "mFCctSu";
const VALUED = [
  "--message",
  "--file",
  "--reuse-message",
  "--reedit-message",
  "--template",
  "--author",
  "--date",
  "--fixup",
  "--squash",
  "--cleanup",
  "--trailer",
];
/** What prepares a commit: its paths are taken along. */
const STAGING = ["add", "stage", "rm", "update-index"];
const EVERYTHING = ":(top)";

interface Step {
  readonly verb: string;
  readonly args: readonly Value[];
  readonly cwd: string | null;
}

/**
 * Files that a command line would commit, for harnesses in whose shells Git runs no hooks: nobody else is there to see whether
 * somebody holds them. Commands that commit besides `git commit` are not read.
 */
export async function committed(world: World, writes: readonly ShellWrite[]): Promise<readonly Group[]> {
  const steps = stepsOf(writes);
  const groups: Group[] = [];
  for (const [at, { verb, args, cwd }] of steps.entries()) {
    if (verb !== "commit" || cwd === null) continue;
    const before = steps.slice(0, at).filter((step) => STAGING.includes(step.verb));
    const paths = await pathsIn(world, cwd, readCommit(args), before);
    const named = paths.map((path): Named => ({ path, mode: "look", isEntry: true }));
    groups.push(...(await locate(world, cwd, named)));
  }
  return groups;
}

/**
 * What a command line may commit, by its own words alone: for whoever has asked Git in vain. Where it names no files, that is
 * anything in the worktree.
 */
export async function mayCommit(world: World, writes: readonly ShellWrite[]): Promise<readonly Group[]> {
  const groups: Group[] = [];
  for (const { verb, args, cwd } of stepsOf(writes)) {
    if (verb !== "commit" || cwd === null) continue;
    const { specs, isInclude, isDryRun } = readCommit(args);
    const repository = isDryRun ? null : await repositoryOf(world, cwd);
    if (repository === null) continue;
    const isNamed = specs.length > 0 && !isInclude && specs.every(isPlainPath);
    const paths = isNamed ? specs : [repository.worktreeRoot];
    const named = paths.map((path): Named => ({ path, mode: "look", isEntry: true }));
    groups.push(...(await locate(world, cwd, named)));
  }
  return groups;
}

/** Neither a pattern, nor one of Git's own signs: it means itself. */
function isPlainPath(spec: string): boolean {
  return !spec.startsWith(":") && !/[*?[\\]/.test(spec);
}

function stepsOf(writes: readonly ShellWrite[]): Step[] {
  return writes.flatMap(({ use, cwd }): Step[] =>
    use?.verb === undefined ? [] : [{ verb: use.verb, args: use.args ?? [], cwd }],
  );
}

async function pathsIn(
  world: World,
  cwd: string,
  { specs, isAll, isInclude, isDryRun }: Commit,
  before: readonly Step[],
): Promise<string[]> {
  const repository = await repositoryOf(world, cwd);
  if (repository === null || isDryRun) return [];
  const root = repository.worktreeRoot;
  const found = specs.length === 0 ? [] : await dirtyPaths(world.git, cwd, specs);
  // Of what is staged, Git takes nothing along then.
  if (specs.length === 0 || isInclude) {
    found.push(...(await staged(world, cwd)));
    if (isAll) found.push(...(await dirtyPaths(world.git, cwd, [EVERYTHING])));
    for (const step of before) found.push(...(await stagedBy(world, root, step)));
  }
  return [...new Set(found)].map((path) => `${root}/${path}`);
}

/** What an earlier step of the same command line puts into the index of this worktree. */
async function stagedBy(world: World, root: string, { args, cwd }: Step): Promise<string[]> {
  if (isGiven(args, "--dry-run") || hasLetter(args, "n")) return [];
  // Where it cannot be told where it runs, it may be here.
  if (cwd !== null && (await repositoryOf(world, cwd))?.worktreeRoot !== root) return [];
  const isAll =
    args.some((arg) =>
      /^--(?:al|all|update|patch|interactive|pathspec-from-file.*)$/.test(singleOf(arg) ?? ""),
    ) || ["A", "u", "p", "i"].some((letter) => hasLetter(args, letter));
  const specs = words(operands(args, ["--chmod", "--pathspec-from-file", "--cacheinfo"]));
  if (specs.length === 0 && !isAll) return [];
  return dirtyPaths(world.git, cwd ?? root, isAll || cwd === null ? [EVERYTHING] : specs);
}

interface Commit {
  readonly specs: readonly string[];
  readonly isAll: boolean;
  readonly isInclude: boolean;
  readonly isDryRun: boolean;
}

/** As Git reads it: an option's value is no option, and what follows `--` is a path. */
function readCommit(args: readonly Value[]): Commit {
  const specs: Value[] = [];
  const letters = new Set<string>();
  const long = new Set<string>();
  for (let i = 0; i < args.length; i++) {
    const text = singleOf(args[i]!);
    if (text === "--") {
      specs.push(...args.slice(i + 1));
      break;
    }
    if (text === null || !text.startsWith("-") || text === "-") specs.push(args[i]!);
    else if (text.startsWith("--")) {
      long.add(text.replace(/=.*$/s, ""));
      if (VALUED.includes(text)) i++;
    } else {
      const valued = [...text].findIndex((letter) => VALUED_LETTERS.includes(letter));
      for (const letter of text.slice(1, valued === -1 ? undefined : valued)) letters.add(letter);
      // `-m x`, `-am x`; of `-mx`, and of those whose value is optional, it is their own.
      if (valued === text.length - 1 && !"Su".includes(text[valued]!)) i++;
    }
  }
  // Chosen while it runs, or listed in a file: it may be anything.
  const isOdd =
    letters.has("p") || ["--patch", "--interactive", "--pathspec-from-file"].some((one) => long.has(one));
  return {
    specs: words(specs),
    isAll: isOdd || letters.has("a") || long.has("--all") || long.has("--al"),
    isInclude: isOdd || letters.has("i") || long.has("--include"),
    isDryRun: long.has("--dry-run"),
  };
}

/** What cannot be told is anything. */
function words(values: readonly Value[]): string[] {
  return values.map((value) => singleOf(value) ?? EVERYTHING);
}

async function staged({ git }: World, cwd: string): Promise<string[]> {
  const args = ["diff", "--cached", "--name-only", "--no-renames", "-z"];
  const { status, stdout, stderr } = await git.run(args, { cwd });
  if (status === 0) return gitList(new TextDecoder().decode(stdout));
  throw gitFailed(`Git cannot say what is staged in ${cwd}`, stderr, { cwd, status });
}
