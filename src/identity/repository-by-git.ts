import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import type { Git, GitResult } from "../platform/git";
import { gitWords } from "../platform/git-answers";
import type { Files } from "../platform/platform";
import { decode, joinPath } from "./path-text";
import { notARepository, noWorktree, type Repository, repositoryConfig } from "./repository-shape";

const QUESTIONS = [
  "--is-bare-repository",
  "--absolute-git-dir",
  "--git-common-dir",
  "--show-toplevel",
] as const;
const CONFIG_KEYS = "^(core\\.(ignorecase|sharedrepository|bare)|extensions\\.(objectformat|refstorage))$";

/** Git's own answer, for every layout that is not worth guessing at. Its refusals are passed on in its words. */
export async function askGitForRepository(
  files: Files,
  git: Git,
  directory: string,
  overrides: Readonly<Record<string, string>>,
): Promise<Repository> {
  const run = (...args: string[]) => git.run(args, { cwd: directory, env: overrides });
  // The top level comes last: where there is none Git answers all the others before it fails.
  const answer = await run("rev-parse", "--path-format=absolute", ...QUESTIONS);
  const lines = decode(answer.stdout).split("\n");
  if (answer.status !== 0) {
    const [bare, gitDir] = lines;
    if (lines.length === QUESTIONS.length && gitDir !== undefined) throw noWorktree(gitDir, bare === "true");
    throw refused(answer, directory);
  }
  // A path may hold a line break; then every question is asked by itself.
  const [, gitDirText, commonDirText, rootText] =
    lines.length === QUESTIONS.length + 1 ? lines : await oneByOne(run, directory);
  const [gitDir, commonDir, worktreeRoot] = await Promise.all(
    [gitDirText, commonDirText, rootText].map((path) => realPath(files, path ?? "", directory)),
  );
  const isMainWorktree = gitDir === commonDir;
  return {
    worktreeRoot: worktreeRoot!,
    gitDir: gitDir!,
    commonDir: commonDir!,
    isMainWorktree,
    mainWorktreeRoot: isMainWorktree ? worktreeRoot! : await mainWorktree(files, run, commonDir!),
    controlDir: joinPath(commonDir!, "cotenant"),
    config: repositoryConfig(await configValues(run, directory)),
  };
}

type Run = (...args: string[]) => ReturnType<Git["run"]>;

async function oneByOne(run: Run, directory: string): Promise<string[]> {
  const answers: string[] = [];
  for (const question of QUESTIONS) {
    const answer = await run("rev-parse", "--path-format=absolute", question);
    if (answer.status !== 0) throw refused(answer, directory);
    answers.push(decode(answer.stdout).replace(/\n$/, ""));
  }
  return answers;
}

async function realPath(files: Files, path: string, directory: string): Promise<string> {
  const real = await files.realPath(path);
  if (real !== null) return real;
  throw new CotenantError("E_GIT", `Git names a path that cannot be found: ${printable(path)}`, {
    hint: "check GIT_DIR, GIT_WORK_TREE and core.worktree; paths must be valid UTF-8",
    data: { path: printable(path, 500), cwd: directory },
  });
}

/** The first record of the list, unless it is bare or, with a separate Git directory, no worktree at all. */
async function mainWorktree(files: Files, run: Run, commonDir: string): Promise<string | null> {
  const answer = await run("worktree", "list", "--porcelain", "-z");
  if (answer.status !== 0) return null;
  const fields = decode(answer.stdout).split("\0\0")[0]?.split("\0") ?? [];
  const root = fields[0]?.replace(/^worktree /, "");
  if (root === undefined || fields.includes("bare")) return null;
  const real = await files.realPath(root);
  return real === commonDir ? null : real;
}

async function configValues(run: Run, directory: string): Promise<Map<string, string | null>> {
  const answer = await run("config", "--null", "--get-regexp", CONFIG_KEYS);
  // 1 means that none of them is set.
  if (answer.status > 1) throw refused(answer, directory);
  const values = new Map<string, string | null>();
  for (const record of decode(answer.stdout).split("\0")) {
    if (record === "") continue;
    const end = record.indexOf("\n");
    values.set(end === -1 ? record : record.slice(0, end), end === -1 ? null : record.slice(end + 1));
  }
  return values;
}

function refused(answer: GitResult, directory: string): CotenantError {
  const words = gitWords(answer.stderr, 500);
  if (/not a git repository/i.test(words)) return notARepository(directory, words);
  const data = { git: words, status: answer.status, cwd: directory };
  if (/dubious ownership|unsafe repository/i.test(words)) {
    return new CotenantError("E_GIT", `Git does not trust this repository's owner: ${words}`, {
      hint: "if you do, run: git config --global --add safe.directory <its path>",
      data,
    });
  }
  return new CotenantError("E_GIT", `Git cannot use this repository: ${words || `status ${answer.status}`}`, {
    hint: "run 'git status' there to see what Git says",
    data,
  });
}
