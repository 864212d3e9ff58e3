import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { CotenantError } from "../../src/errors/cotenant-error";
import type { Git, GitOptions, GitResult } from "../../src/platform/git";
import { nodeGit } from "../../src/platform/git-node";
import { GuardedAgent } from "../support/guard";
import { TestRepo } from "../support/repo";

/** Gemini CLI switches Git's hooks off in its shell: the guard looks at commits itself. */
let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  for (const file of ["a.txt", "b.txt", "src/c.txt"]) repo.write(file, "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
});

const ada = () => new GuardedAgent(repo, { session: "aaaaaaaa-1" });
const gem = (cwd?: string) =>
  new GuardedAgent(repo, {
    session: "bbbbbbbb-2",
    harness: "gemini",
    ...(cwd === undefined ? {} : { cwd }),
  });
const commits = (command: string, cwd?: string) => gem(cwd).before("run_shell_command", { command });

describe("a commit in a shell where Git runs no hooks", () => {
  beforeEach(async () => {
    await ada().write("a.txt");
    await ada().write("src/c.txt");
    for (const file of ["a.txt", "b.txt", "src/c.txt", "new.txt"]) repo.write(file, "two\n");
  });

  it.each([
    "git commit -qm x -- a.txt",
    "git commit -m x a.txt",
    "git commit -am x",
    "git commit --all --message x",
    "git add -A && git commit -m x",
    "git add . && git commit -m x",
    "git add a.txt b.txt; git commit -m x",
    "git commit -m x -- src",
    "cd src && git commit -m x -- c.txt",
    "git -C src commit -m x c.txt",
    'git commit -m x -- "$FILES"',
    "bash -c 'git commit -am x'",
    "cd src; git add c.txt; cd ..; git commit -m x",
    "git -C src add c.txt && git commit -m x",
    "git add src/c.txt && cd src && git commit -m x",
    "git update-index a.txt && git commit -m x",
    "git rm --cached a.txt && git commit -m x",
    "git add --pathspec-from-file=list && git commit -m x",
    "git commit -m x --pathspec-from-file=list",
    "git commit -pm x",
  ])("is refused where somebody holds what it takes: %s", async (command) => {
    const { allowed, stdout } = await commits(command);
    expect(allowed).toBe(false);
    expect(stdout).toContain(ada().agentId);
  });

  it.each([
    "git commit -qm a.txt -- b.txt",
    "git commit -m 'a.txt' b.txt",
    "git commit --message a.txt new.txt",
    "git add b.txt new.txt && git commit -qm x",
    "git commit --allow-empty -m x",
    "git status && git log",
    "git commit -mfixall b.txt",
    "git add b.txt && git commit -mfixall",
    'git add b.txt && git commit -m "-a"',
    "git add b.txt && git commit -uall -m x",
    "git add b.txt && git commit -m x && git add -A",
    "git add a.txt; git commit -m x b.txt",
    "git commit --dry-run -am x",
    "git add -n . ; git commit -m x b.txt",
  ])("passes where it takes nobody's: %s", async (command) => {
    expect((await commits(command)).allowed).toBe(true);
  });

  it("goes by what is staged, too", async () => {
    repo.git("add", "b.txt");
    expect((await commits("git commit -m x")).allowed).toBe(true);
    repo.git("add", "a.txt");
    expect((await commits("git commit -m x")).allowed).toBe(false);
    // Of what is staged Git takes nothing along then.
    expect((await commits("git commit -m x -- b.txt")).allowed).toBe(true);
    expect((await commits("git commit -i -m x -- b.txt")).allowed).toBe(false);
  });

  it("leaves one's own alone, and leases nothing", async () => {
    await gem().before("write_file", { file_path: `${repo.root}/b.txt`, content: "" });
    const before = repo.logText();
    expect((await commits("git commit -m x -- b.txt new.txt")).allowed).toBe(true);
    expect(repo.logText()).toBe(before);
  });
});

describe("a commit of which Git does not say what it takes", () => {
  beforeEach(async () => {
    await ada().write("a.txt");
    for (const file of ["a.txt", "b.txt"]) repo.write(file, "two\n");
  });

  const tooSlow = (args: readonly string[]) => {
    throw new CotenantError("E_GIT_TIMEOUT", `git ${args[0]} did not end within 8000 ms`);
  };
  const failing = { status: 128, stdout: new Uint8Array(), stderr: "fatal: index file corrupt\n" };
  /** Which of Git's commands go wrong, and how. */
  const git = (
    isMeant: (args: readonly string[]) => boolean,
    instead: (args: readonly string[]) => GitResult,
  ) => {
    const real = nodeGit();
    return {
      run: (args: readonly string[], options: GitOptions) =>
        isMeant(args) ? instead(args) : real.run(args, options),
    };
  };
  const WAYS: [string, Git][] = [
    ["git status is too slow", git(([verb]) => verb === "status", tooSlow)],
    [
      "git status fails",
      git(
        ([verb]) => verb === "status",
        () => failing,
      ),
    ],
    [
      "git diff fails",
      git(
        ([verb]) => verb === "diff",
        () => failing,
      ),
    ],
    ["no command of Git's ends", git(() => true, tooSlow)],
  ];
  const commitWith = (one: Git, command: string, onFailure?: string) =>
    new GuardedAgent(repo, {
      session: "bbbbbbbb-2",
      harness: "gemini",
      git: one,
      ...(onFailure === undefined ? {} : { env: { COTENANT_GUARD_ON_FAILURE: onFailure } }),
    }).before("run_shell_command", { command });
  const failures = () =>
    fs
      .readFileSync(path.join(repo.control, "guard/failures.jsonl"), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { answer: string }).answer);

  it.each(WAYS)("is judged as guard.on_failure says: %s", async (_, one) => {
    const { allowed, stdout } = await commitWith(one, "git commit -am x");
    expect([allowed, failures()]).toEqual([false, ["refused"]]);
    expect(stdout).toContain(`a.txt (in .) is held by ${ada().agentId}`);
    expect(stdout).toContain("git commit -- <path>");
    expect((await commitWith(one, "git commit -am x", "closed")).allowed).toBe(false);
    expect((await commitWith(one, "git commit -am x", "open")).allowed).toBe(true);
    await ada().send("end");
    expect((await commitWith(one, "git commit -am x")).allowed, "nobody holds anything").toBe(true);
    expect((await commitWith(one, "git commit -am x", "closed")).allowed).toBe(false);
  });

  it("is judged by the files that it names, where it names them", async () => {
    for (const [, one] of WAYS.filter(([what]) => what !== "git diff fails")) {
      expect((await commitWith(one, "git commit -m x -- b.txt")).allowed).toBe(true);
      for (const specs of ["a.txt", "a.txt b.txt", ". ", "'*.txt'", ":/", ":!b.txt", '"$FILES"'])
        expect((await commitWith(one, `git commit -m x -- ${specs}`)).allowed, specs).toBe(false);
      expect((await commitWith(one, "git commit --dry-run -am x")).allowed).toBe(true);
    }
  });
});

it("is for the Git hooks to judge in every other harness", async () => {
  await ada().write("a.txt");
  repo.write("a.txt", "two\n");
  const bob = new GuardedAgent(repo, { session: "cccccccc-3" });
  expect((await bob.shell("git commit -am x")).allowed).toBe(true);
});
