import { beforeEach, describe, expect, it } from "vitest";
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

it("is for the Git hooks to judge in every other harness", async () => {
  await ada().write("a.txt");
  repo.write("a.txt", "two\n");
  const bob = new GuardedAgent(repo, { session: "cccccccc-3" });
  expect((await bob.shell("git commit -am x")).allowed).toBe(true);
});
