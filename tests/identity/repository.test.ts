import * as fs from "node:fs";
import * as path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { CotenantError } from "../../src/errors/cotenant-error";
import { findRepository, type Repository } from "../../src/identity/repository";
import { nodePlatform } from "../../src/platform/node/node";
import { commit, countingGit, git, makeRepository, temporaryDirectory, tryGit, write } from "./temporary";

const platform = nodePlatform();
const home = temporaryDirectory();
const at = (...names: string[]) => path.join(home, ...names);

interface Layout {
  name: string;
  start: () => string;
  env?: Record<string, string>;
  /** Whether Git must be asked. Everything ordinary must do without. */
  asks?: true;
}

/** Everything is made once with real Git; each layout is then compared with `git rev-parse`. */
beforeAll(() => {
  const plain = makeRepository(at("plain"));
  commit(plain);
  fs.mkdirSync(at("plain/src/deep"), { recursive: true });
  write(at("plain/src/file.txt"));
  git(plain, "worktree", "add", "--quiet", at("linked"), "-b", "linked");
  git(plain, "worktree", "add", "--quiet", at("plain/inner"), "-b", "inner");
  git(plain, "worktree", "add", "--quiet", at("plain/.git/wt/hidden"), "-b", "hidden");
  fs.mkdirSync(at("linked/below"));
  fs.symlinkSync(plain, at("link-to-plain"));
  fs.symlinkSync(at("plain/src"), at("link-to-src"));

  const library = makeRepository(at("library"));
  commit(library);
  const superproject = makeRepository(at("super"));
  git(
    superproject,
    "-c",
    "protocol.file.allow=always",
    "submodule",
    "--quiet",
    "add",
    library,
    "vendor/library",
  );
  commit(superproject);
  git(at("super/vendor/library"), "worktree", "add", "--quiet", at("library-linked"), "-b", "x");

  fs.mkdirSync(at("apart"));
  git(at("apart"), "init", "--quiet", `--separate-git-dir=${at("apart.git")}`, ".");
  commit(at("apart"));
  git(at("apart"), "worktree", "add", "--quiet", at("apart-linked"), "-b", "x");

  makeRepository(at("moved-git"));
  fs.renameSync(at("moved-git/.git"), at("moved-git-data"));
  fs.symlinkSync(at("moved-git-data"), at("moved-git/.git"));

  git(home, "init", "--quiet", "--bare", at("bare.git"));
  git(home, "clone", "--quiet", "--bare", plain, at("full-bare.git"));
  git(at("full-bare.git"), "worktree", "add", "--quiet", at("of-bare"), "main");
  fs.mkdirSync(at("hub"));
  git(home, "clone", "--quiet", "--bare", plain, at("hub/.bare"));
  write(at("hub/.git"), "gitdir: ./.bare\n");
  git(at("hub"), "worktree", "add", "--quiet", at("hub/main"), "main");

  git(home, "clone", "--quiet", "--bare", plain, at("bare-dotgit/.git"));
  git(at("bare-dotgit/.git"), "worktree", "add", "--quiet", at("bare-dotgit/main"), "main");

  makeRepository(at("unborn"));
  makeRepository(at("with space & ünïcode ☃"));
  fs.mkdirSync(at("with space & ünïcode ☃/süb dir"));
  commit(makeRepository(at("plain/nested")));
  makeRepository(at("sha256"), "--object-format=sha256");

  const elsewhere = makeRepository(at("elsewhere"));
  fs.mkdirSync(at("elsewhere-tree/sub"), { recursive: true });
  git(elsewhere, "config", "core.worktree", at("elsewhere-tree"));
  const included = makeRepository(at("included"));
  write(at("included.inc"), "[core]\n\tignorecase = true\n");
  git(included, "config", "include.path", at("included.inc"));
  const sparse = makeRepository(at("sparse"));
  commit(sparse);
  git(sparse, "sparse-checkout", "set", "--cone", "src");
  const perWorktree = makeRepository(at("per-worktree"));
  git(perWorktree, "config", "extensions.worktreeConfig", "true");
  git(perWorktree, "config", "--worktree", "core.ignorecase", "true");

  makeRepository(at("has-empty-dotgit"));
  fs.mkdirSync(at("has-empty-dotgit/sub/.git"), { recursive: true });
  makeRepository(at("has-odd-head"));
  fs.mkdirSync(at("has-odd-head/sub"), { recursive: true });
  write(at("has-odd-head/sub/HEAD"), "nothing of Git's\n");
  fs.mkdirSync(at("nowhere/sub"), { recursive: true });
  fs.mkdirSync(at("broken-file"));
  write(at("broken-file/.git"), "gitdir: /does/not/exist\n");
  fs.mkdirSync(at("broken-format"));
  write(at("broken-format/.git"), "hello\n");
  const future = makeRepository(at("future"));
  git(future, "config", "core.repositoryformatversion", "1");
  git(future, "config", "extensions.fromTheFuture", "true");
  const badConfig = makeRepository(at("bad-config"));
  fs.appendFileSync(path.join(badConfig, ".git/config"), "[core\n");
  makeRepository(at("detached"));
  commit(at("detached"));
  git(at("detached"), "checkout", "--quiet", "--detach");
  fs.mkdirSync(at("line\nbreak"));
  makeRepository(at("line\nbreak"));
});

const LAYOUTS: Layout[] = [
  { name: "plain", start: () => at("plain") },
  { name: "a subdirectory", start: () => at("plain/src/deep") },
  { name: "a linked worktree", start: () => at("linked") },
  { name: "below a linked worktree", start: () => at("linked/below") },
  { name: "a worktree inside the main one", start: () => at("plain/inner") },
  { name: "a worktree inside .git", start: () => at("plain/.git/wt/hidden") },
  { name: "a submodule", start: () => at("super/vendor/library") },
  { name: "between a superproject and its submodule", start: () => at("super/vendor") },
  { name: "a linked worktree of a submodule", start: () => at("library-linked") },
  { name: "a separate Git directory", start: () => at("apart") },
  { name: "a linked worktree of a separate Git directory", start: () => at("apart-linked") },
  { name: "a link to the repository", start: () => at("link-to-plain") },
  { name: "a link to a subdirectory", start: () => at("link-to-src/deep") },
  { name: "a linked .git directory", start: () => at("moved-git") },
  { name: "a worktree of a bare repository", start: () => at("of-bare") },
  { name: "a worktree beside .bare", start: () => at("hub/main") },
  { name: "a worktree of a bare repository called .git", start: () => at("bare-dotgit/main") },
  { name: "above a bare repository called .git", start: () => at("bare-dotgit") },
  { name: "an unborn HEAD", start: () => at("unborn") },
  { name: "spaces and non-ASCII names", start: () => at("with space & ünïcode ☃/süb dir") },
  { name: "a nested independent repository", start: () => at("plain/nested") },
  { name: "SHA-256", start: () => at("sha256") },
  { name: "a sparse checkout", start: () => at("sparse") },
  { name: "a directory that is merely called .git", start: () => at("has-empty-dotgit/sub") },
  { name: "a HEAD that is none", start: () => at("has-odd-head/sub") },
  { name: "a detached HEAD", start: () => at("detached") },
  { name: "a line break in the path", start: () => at("line\nbreak") },
  { name: "core.worktree elsewhere", start: () => at("elsewhere"), asks: true },
  { name: "an include", start: () => at("included"), asks: true },
  { name: "core.* in a worktree's own configuration", start: () => at("per-worktree"), asks: true },
  { name: "GIT_DIR", start: () => at("nowhere"), env: { GIT_DIR: at("plain/.git") }, asks: true },
  {
    name: "GIT_DIR and GIT_WORK_TREE",
    start: () => at("nowhere/sub"),
    env: { GIT_DIR: at("plain/.git"), GIT_WORK_TREE: at("nowhere") },
    asks: true,
  },
  { name: "a relative GIT_DIR, as in hooks", start: () => at("plain"), env: { GIT_DIR: ".git" }, asks: true },
  {
    name: "GIT_DIR of a path with a line break",
    start: () => at("line\nbreak"),
    env: { GIT_DIR: at("line\nbreak/.git") },
    asks: true,
  },
  {
    name: "GIT_CEILING_DIRECTORIES elsewhere",
    start: () => at("plain/src"),
    env: { GIT_CEILING_DIRECTORIES: "/nowhere" },
    asks: true,
  },
  { name: "inside .git", start: () => at("plain/.git") },
  { name: "deep inside .git", start: () => at("plain/.git/refs/heads") },
  { name: "inside a linked worktree's Git directory", start: () => at("plain/.git/worktrees/linked") },
  {
    name: "inside a submodule's Git directory",
    start: () => at("super/.git/modules/vendor/library"),
    asks: true,
  },
  { name: "bare", start: () => at("bare.git") },
  { name: "inside bare", start: () => at("bare.git/refs") },
  { name: "a .git file that leads to a bare repository", start: () => at("hub") },
  { name: "no repository", start: () => at("nowhere/sub") },
  { name: "a .git file that leads nowhere", start: () => at("broken-file"), asks: true },
  { name: "a .git file that is none", start: () => at("broken-format"), asks: true },
  { name: "an extension nobody knows", start: () => at("future"), asks: true },
  { name: "a broken configuration", start: () => at("bad-config"), asks: true },
  {
    name: "below GIT_CEILING_DIRECTORIES",
    start: () => at("plain/src/deep"),
    env: { GIT_CEILING_DIRECTORIES: at("plain/src") },
    asks: true,
  },
];

describe("findRepository agrees with git rev-parse", () => {
  it.each(LAYOUTS)("$name", async ({ start, env = {}, asks }) => {
    const asked = countingGit();
    const ours = await findRepository(platform, start(), env, asked).catch((error: unknown) => error);
    const theirs = revParse(fs.realpathSync(start()), env);
    if (theirs === null) {
      expect(ours).toBeInstanceOf(CotenantError);
      expect(["E_NOT_A_REPO", "E_GIT"]).toContain((ours as CotenantError).code);
    } else {
      expect(ours).not.toBeInstanceOf(Error);
      const { worktreeRoot, gitDir, commonDir } = ours as Repository;
      expect({ worktreeRoot, gitDir, commonDir }).toEqual(theirs);
    }
    expect(asked.asked.length > 0).toBe(asks === true);
  });

  function revParse(cwd: string, env: Record<string, string>) {
    const answers = ["--show-toplevel", "--absolute-git-dir", "--git-common-dir"].map((question) =>
      tryGit(cwd, ["rev-parse", "--path-format=absolute", question], env),
    );
    if (answers.some(({ status }) => status !== 0)) return null;
    const [worktreeRoot, gitDir, commonDir] = answers.map(({ stdout }) =>
      fs.realpathSync(stdout.replace(/\n$/, "")),
    );
    return { worktreeRoot, gitDir, commonDir };
  }
});

describe("what it says about a repository", () => {
  const find = (start: string, env: Record<string, string> = {}) =>
    findRepository(platform, start, env, countingGit());
  const failure = async (start: string, env: Record<string, string> = {}) =>
    (await find(start, env).then(
      () => null,
      (error: unknown) => error,
    )) as CotenantError;

  it("knows main and linked worktrees apart and where the main one is", async () => {
    const main = await find(at("plain"));
    expect(main).toMatchObject({ isMainWorktree: true, mainWorktreeRoot: at("plain") });
    expect(main.controlDir).toBe(at("plain/.git/cotenant"));
    const linked = await find(at("linked"));
    expect(linked).toMatchObject({ isMainWorktree: false, mainWorktreeRoot: at("plain") });
    expect(linked.controlDir).toBe(main.controlDir);
    expect((await find(at("library-linked"))).mainWorktreeRoot).toBe(at("super/vendor/library"));
    for (const start of ["of-bare", "hub/main", "bare-dotgit/main", "apart-linked"]) {
      expect((await find(at(start))).mainWorktreeRoot).toBeNull();
    }
    // The same when Git is asked.
    const env = { GIT_CEILING_DIRECTORIES: "/nowhere" };
    expect((await find(at("linked"), env)).mainWorktreeRoot).toBe(at("plain"));
    expect((await find(at("of-bare"), env)).mainWorktreeRoot).toBeNull();
    expect((await find(at("apart-linked"), env)).mainWorktreeRoot).toBeNull();
  });

  it("finds it from a file and from what does not exist yet", async () => {
    expect((await find(at("plain/src/file.txt"))).worktreeRoot).toBe(at("plain"));
    expect((await find(at("plain/new/deep/file.txt"))).worktreeRoot).toBe(at("plain"));
    expect((await find(at("plain/inner/new.txt"))).worktreeRoot).toBe(at("plain/inner"));
  });

  it("reads the configuration that matters", async () => {
    const repository = makeRepository(at("configured"));
    expect((await find(repository)).config).toEqual({
      ignoreCase: false,
      sharedRepository: null,
      bare: false,
      objectFormat: "sha1",
      refFormat: "files",
    });
    git(repository, "config", "core.ignorecase", "yes");
    git(repository, "config", "core.sharedRepository", "0640");
    expect((await find(repository)).config).toMatchObject({ ignoreCase: true, sharedRepository: "0640" });
    const asked = await find(repository, { GIT_CEILING_DIRECTORIES: "/nowhere" });
    expect(asked.config).toEqual((await find(repository)).config);
    expect((await find(at("sha256"))).config.objectFormat).toBe("sha256");
    expect((await find(at("included"))).config.ignoreCase).toBe(true);
    expect((await find(at("per-worktree"))).config.ignoreCase).toBe(true);
  });

  it("says what is missing: a repository, or its working tree", async () => {
    const nowhere = await failure(at("nowhere"));
    expect(nowhere.code).toBe("E_NOT_A_REPO");
    expect(nowhere.hint).toContain("git init");
    expect((await failure(at("bare.git"))).message).toContain("bare");
    expect((await failure(at("bare.git"))).hint).toContain("git worktree add");
    expect((await failure(at("plain/.git"))).message).toContain("Git's own directory");
    const asked = await failure(at("bare.git"), { GIT_CEILING_DIRECTORIES: "/nowhere" });
    expect(asked).toMatchObject({ code: "E_NOT_A_REPO" });
    expect(asked.message).toContain("bare");
    expect((await failure(at("broken-file"))).code).toBe("E_NOT_A_REPO");
  });

  it("passes on Git's own words when Git refuses", async () => {
    const future = await failure(at("future"));
    expect(future.code).toBe("E_GIT");
    expect(future.message).toMatch(/fromthefuture/i);
    expect((await failure(at("bad-config"))).message).toContain("bad config");
  });

  // Only root can give a repository away.
  it.runIf(process.getuid?.() === 0)("does not trust what Git does not trust: another owner", async () => {
    const foreign = makeRepository(at("foreign"));
    for (const part of [".git", "."]) {
      fs.chownSync(path.join(foreign, part), 12345, 12345);
      const refused = await failure(foreign);
      expect(refused.code).toBe("E_GIT");
      expect(refused.message).toContain("dubious ownership");
      expect(refused.hint).toContain("safe.directory");
      fs.chownSync(path.join(foreign, part), 0, 0);
    }
    expect((await find(foreign)).worktreeRoot).toBe(foreign);
  });

  it("never lets the environment decide about something else than asked", async () => {
    const env = { GIT_INDEX_FILE: "/nowhere", GIT_PREFIX: "x/", GIT_AUTHOR_NAME: "x" };
    const asked = countingGit();
    expect((await findRepository(platform, at("plain"), env, asked)).worktreeRoot).toBe(at("plain"));
    expect(asked.asked).toEqual([]);
  });
});
