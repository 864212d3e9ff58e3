import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { GuardedAgent, harnessProcess, reasonOf, SILENT, toldIn } from "../support/guard";
import { oneIn } from "../support/one-in";
import { PROGRAM } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(3);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write("a.txt", "one\n");
  repo.write("sub/b.txt", "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
});

const ada = (more = {}) => new GuardedAgent(repo, { session: "aaaaaaaa-1", ...more });
const bob = (more = {}) => new GuardedAgent(repo, { session: "bbbbbbbb-2", ...more });
const held = () => repo.log().flatMap(({ payload }) => (payload.leases ?? []).map(({ key }) => key));
const contentions = () => repo.log().filter(({ event_type: type }) => type.startsWith("contention."));

const newIssue = async () => {
  const { issue } = (await repo.ask("agent:c", "issue", "create", "--title", "t")).data;
  return issue.id;
};

const MOVES = [
  "git checkout -b topic",
  "git checkout main",
  "git switch -c topic",
  "git stash",
  "git stash pop",
  "git stash drop",
  "git stash push -- sub/b.txt",
  "git reset --hard",
  "git reset HEAD~1",
  "git clean -fd",
  "git rebase main",
  "cd sub && git pull",
];

describe("a command that moves what everybody in a checkout shares", () => {
  it.each(MOVES)("%s: is refused where another session works, and passes alone", async (command) => {
    expect(await bob().shell(command), "alone").toEqual(SILENT);
    await bob().send("end");
    await ada().write("a.txt");
    const reason = reasonOf(await bob().shell(command));
    expect(reason).toContain(`${ada().agentId} (a.txt) works here`);
    expect(reason).toContain("Nothing was run");
    expect(reason, "what is so, and not that a directory is held").not.toMatch(/ \. is held/);
    expect(await ada().shell(command), "whoever works there alone may").toEqual(SILENT);
    await ada().send("end");
    expect(await bob().shell(command), "and so may others afterwards").toEqual(SILENT);
    expect(contentions(), "nobody waits for it").toEqual([]);
  });

  it.each([
    ["git checkout -b topic", "topic"],
    ["git checkout -b other HEAD", "other"],
    ["git switch main", "work/bbbbbbbb"],
    ["git stash", "work/bbbbbbbb"],
    // Names that are taken, cannot be, or need quotes.
    ["git checkout -b main", "work/bbbbbbbb"],
    ["git checkout -b main/x", "work/bbbbbbbb"],
    ["git checkout -b '../x y'", "work/bbbbbbbb"],
    ['git checkout -b "a\'b&c"', "a'b&c"],
  ])(
    "%s: is told how to work in a worktree of its own, by a command that works as printed",
    async (command, branch) => {
      await ada().write("a.txt");
      const hint = /cotenant (worktree create .+)$/m.exec(reasonOf(await bob().shell(command)))![1]!;
      const words = execFileSync("sh", ["-c", `printf '%s\\n' ${hint}`], { encoding: "utf8" });
      const ran = await repo.ask("agent:b", ...words.trimEnd().split("\n"));
      expect(ran.data.worktree).toMatchObject({ branch, new_branch: true });
      // There it is alone.
      expect(await bob({ cwd: ran.data.worktree.root }).shell("git stash")).toEqual(SILENT);
    },
  );

  it("is offered a worktree that is not there yet, where the first name is taken", async () => {
    repo.git("branch", "work/bbbbbbbb");
    fs.mkdirSync(`${repo.root}.worktrees/work-bbbbbbbb-2`, { recursive: true });
    await ada().write("a.txt");
    expect(reasonOf(await bob().shell("git stash"))).toContain("worktree create work/bbbbbbbb-3\n");
    const off = { env: { COTENANT_WORKTREE_MODE: "off" } };
    expect(reasonOf(await bob(off).shell("git stash"))).not.toContain("worktree create");
  });

  it("is a path where the word names no commit, as for Git", async () => {
    await ada().write("a.txt");
    const reason = reasonOf(await bob().shell("git checkout a.txt"));
    expect(reason).toContain(`a.txt is held by ${ada().agentId}`);
    expect(await bob().shell("git checkout sub/b.txt && git reset sub/b.txt")).toEqual(SILENT);
    expect(held()).toContain("file:sub/b.txt");
    expect(reasonOf(await bob().shell("git checkout sub/b.txt a.txt"))).toContain("a.txt is held");
    for (const command of ["git checkout main", "git branch x && git checkout x", "git reset nothing"])
      expect(reasonOf(await bob().shell(command)), command).toContain("works here");
    repo.git("branch", "sub");
    expect(reasonOf(await bob().shell("git checkout sub")), "a ref counts first").toContain("works here");
  });

  it("is refused in any way that it can be written, and where it cannot be told where it would run", async () => {
    repo.git("config", "alias.away", "stash push");
    await ada().write("a.txt");
    for (const command of [
      "git update-ref HEAD HEAD~1",
      "git update-ref refs/heads/main HEAD~1",
      "git read-tree -u --reset HEAD",
      "git symbolic-ref HEAD refs/heads/x",
      "git checkout-index -f -a",
      "f() { git stash; }; f",
      "bash <<< 'git stash'",
      "trap 'git stash' EXIT",
      `env -C ${repo.root} git stash`,
      `GIT_DIR=${repo.root}/.git git stash`,
      'cd "$(git rev-parse --show-toplevel)" && git stash',
      "cd $SOMEWHERE && git stash",
      "git -C $SOMEWHERE stash",
      "git away -u",
    ])
      expect(reasonOf(await bob().shell(command)), command).toContain(`${ada().agentId} (a.txt) works`);
    const unknown = reasonOf(await bob().shell("cd $SOMEWHERE && git stash"));
    expect(unknown).toContain("Where it would run cannot be told");
    for (const command of [
      "cd $(mktemp -d) && git init && git checkout -b x",
      "git update-ref refs/tags/x HEAD",
    ])
      expect(await bob().shell(command), command).toEqual(SILENT);
  });

  it("counts whoever holds a claim or the writer lock from there, and nobody who works elsewhere or has died", async () => {
    const issue = await newIssue();
    await repo.ask("agent:c", "claim", "acquire", issue);
    expect(reasonOf(await bob().shell("git switch -c x"))).toContain("agent:c");
    await repo.ask("agent:c", "claim", "release", issue);
    const linked = repo.addWorktree("linked");
    await ada({ cwd: linked.root }).write(path.join(linked.root, "a.txt"));
    expect(await bob().shell("git switch -c x"), "another worktree has its own HEAD").toEqual(SILENT);
    const mortal = harnessProcess();
    await ada({ session: "dddddddd-4", pid: mortal.pid }).write("a.txt");
    reasonOf(await bob().shell("git switch -c x"));
    await mortal.kill();
    expect(await bob().shell("git switch -c x")).toEqual(SILENT);
  });

  it.each([
    "git stash list",
    "git status",
    "git commit -m x -- sub/b.txt",
    "git restore sub/b.txt",
    "git clean -n",
  ])("%s: is none", async (command) => {
    await ada().write("a.txt");
    expect(await bob().shell(command)).toEqual(SILENT);
  });

  it("goes by the directory that it is run for", async () => {
    const linked = repo.addWorktree("linked");
    await ada().write("a.txt");
    expect(await bob({ cwd: linked.root }).shell("git stash")).toEqual(SILENT);
    const abroad = { cwd: linked.root, session: "eeeeeeee-5" };
    expect(reasonOf(await bob(abroad).shell(`git -C ${repo.root} stash`))).toContain(ada().agentId);
  });
});

describe("a command that is run for another repository", () => {
  let other: TestRepo;
  beforeEach(() => {
    // With a quote: what is printed is taken by a shell as it is.
    other = repo.copy(path.join(path.dirname(repo.root), "bob's other"));
  });

  /** As printed, from where the agent stands. */
  const runAsPrinted = (line: string) =>
    execFileSync("sh", ["-c", line], {
      cwd: repo.root,
      encoding: "utf8",
      env: {
        ...process.env,
        PATH: `${path.dirname(PROGRAM)}:${process.env["PATH"]}`,
        COTENANT_AGENT_ID: "agent:b",
      },
    });
  const worktreesOf = (one: TestRepo) => one.git("worktree", "list", "--porcelain").match(/^worktree /gm);
  const inOther = () => ada({ cwd: other.root });

  it.each([
    ["git -C", () => `git -C "${other.root}" stash`],
    ["GIT_DIR", () => `GIT_DIR="${other.root}/.git" git checkout -b work/bbbbbbbb`],
    ["cd", () => `cd "${other.root}" && git switch main`],
  ])("is offered a worktree of that repository, not of its own: %s", async (_, command) => {
    await inOther().write("a.txt");
    const reason = reasonOf(await bob().shell(command()));
    expect(reason).toContain(`everybody in ${other.root} shares`);
    expect(reason).toContain("works there");
    runAsPrinted(/instead: (.+)$/m.exec(reason)![1]!);
    expect(worktreesOf(other)).toHaveLength(2);
    expect(worktreesOf(repo)).toHaveLength(1);
    expect(other.git("branch", "--list", "work/bbbbbbbb")).not.toBe("");
    other.write("sub/b.txt", "two\n");
    const undo = /undo \((.+?) -- <path>\)/.exec(reason)![1]!;
    runAsPrinted(`${undo} -- sub/b.txt`);
    expect(other.git("status", "--porcelain", "sub")).toBe("");
  });

  it("is told how to have an entry of that repository's stash", async () => {
    const linked = other.addWorktree("linked");
    linked.write("a.txt", "two\n");
    linked.git("stash");
    await ada({ cwd: linked.root }).write(path.join(linked.root, "a.txt"));
    const reason = reasonOf(await bob().shell(`git -C "${other.root}" stash pop`));
    runAsPrinted(/made it: (.+)$/m.exec(reason)![1]!);
    expect(fs.readFileSync(path.join(other.root, "a.txt"), "utf8")).toBe("two\n");
  });

  it("is told how to remove a worktree of that repository", async () => {
    const linked = other.addWorktree("linked");
    const there = ada({ cwd: linked.root });
    await there.write(path.join(linked.root, "a.txt"));
    const reason = reasonOf(await bob().shell(`git -C "${other.root}" worktree remove "${linked.root}"`));
    await there.send("end");
    runAsPrinted(/finished: (.+), which keeps/.exec(reason)![1]!);
    expect(fs.existsSync(linked.root)).toBe(false);
  });
});

describe("a worktree in which others work", () => {
  it("is neither removed nor moved by Git's own command, however it is named", async () => {
    const linked = repo.addWorktree("linked");
    const remove = (which: string) => `git worktree remove --force ${which}`;
    const ways = [linked.root, "../linked", "linked", '"$W"'].map(remove);
    const commands = [...ways, `git worktree move ${linked.root} ../other`];
    for (const command of commands) expect(await bob().shell(command), "nobody works there").toEqual(SILENT);
    await ada({ cwd: linked.root }).write(path.join(linked.root, "a.txt"));
    for (const command of commands) {
      const reason = reasonOf(await bob().shell(command));
      expect(reason, command).toContain(`${ada().agentId} (a.txt) works`);
      expect(reason).toContain(linked.root);
    }
    expect(reasonOf(await bob().shell(remove('"$W"')))).toContain("cannot tell which worktree");
    repo.addWorktree("free");
    for (const command of [remove("../free"), "git worktree list", "git worktree add ../x"])
      expect(await bob().shell(command), command).toEqual(SILENT);
  });

  it("is not moved from elsewhere by writing its branch", async () => {
    const linked = repo.addWorktree("linked");
    await ada({ cwd: linked.root }).write(path.join(linked.root, "a.txt"));
    const reason = reasonOf(await bob().shell("git update-ref refs/heads/linked HEAD"));
    expect(reason).toContain(`everybody in ${linked.root} shares`);
    expect(await bob().shell("git update-ref refs/heads/main HEAD")).toEqual(SILENT);
  });
});

describe("the stash, which all worktrees share", () => {
  const TAKING = ["git stash pop", "git stash drop", "git stash drop stash@{0}", "git stash clear"];
  const more = ["git stash branch x", "git update-ref -d refs/stash", "git reflog expire --expire=now --all"];

  it("loses no entry of another branch while others work in another worktree", async () => {
    const linked = repo.addWorktree("linked");
    linked.write("a.txt", "two\n");
    linked.git("stash");
    for (const command of TAKING) expect(await bob().shell(command), "nobody works there").toEqual(SILENT);
    await ada({ cwd: linked.root }).write(path.join(linked.root, "a.txt"));
    for (const command of [...TAKING, ...more]) {
      const reason = reasonOf(await bob().shell(command));
      expect(reason, command).toContain("takes stash@{0} (WIP on linked: ");
      expect(reason).toContain(`${ada().agentId} (a.txt) works in another worktree`);
    }
    const hint = /: (git stash apply .+)$/m.exec(reasonOf(await bob().shell("git stash pop")))![1]!;
    expect(await bob().shell(hint)).toEqual(SILENT);
    execFileSync("sh", ["-c", hint], { cwd: repo.root });
    expect(fs.readFileSync(path.join(repo.root, "a.txt"), "utf8")).toBe("two\n");
    repo.git("stash");
    for (const command of TAKING.slice(0, 3)) expect(await bob().shell(command), "its own").toEqual(SILENT);
    expect(reasonOf(await bob().shell("git stash clear"))).toContain("takes stash@{1}");
    expect(await ada({ cwd: linked.root }).shell("git stash drop 1")).toEqual(SILENT);
  });
});

it("a directory is not called held where one file in it is", async () => {
  await ada().write("sub/b.txt");
  const reason = reasonOf(await bob().shell("rm -rf sub"));
  expect(reason).toContain(`sub/b.txt (in sub) is held by ${ada().agentId}`);
});

describe("guard.stay_in_worktree", () => {
  const enforcing = { env: { COTENANT_GUARD_STAY_IN_WORKTREE: "enforce" } };
  const inMain = () => path.join(repo.root, "a.txt");
  const STRAYING: readonly ((main: string, other: string) => string)[] = [
    (main) => `git -C ${main} stash`,
    (main) => `git -C ${main} add a.txt`,
    (main) => `git -C ${main} commit -am x`,
    (main) => `cd ${main} && git commit -am x`,
    (main) => `git --git-dir=${main}/.git --work-tree=${main} commit -am x`,
    (main) => `git -C ${main} reset -- a.txt`,
    (main) => `git -C ${main} rm --cached a.txt`,
    (_, other) => `git worktree remove ${other}`,
  ];

  it("tells an agent that was started in a linked worktree that it writes in another one", async () => {
    const linked = repo.addWorktree("linked");
    const me = bob({ cwd: linked.root });
    expect(await me.write("a.txt")).toEqual(SILENT);
    const told = toldIn(await me.write(inMain()));
    expect(told).toContain(`belongs to ${linked.root} (it was started there)`);
    expect(held()).toHaveLength(2);
    const off = { COTENANT_GUARD_STAY_IN_WORKTREE: "off" };
    expect(await bob({ cwd: linked.root, env: off }).write(path.join(repo.root, "c.txt"))).toEqual(SILENT);
  });

  it("refuses it, where that is asked for: edits, commands, subagents, whatever directory it changes to", async () => {
    const linked = repo.addWorktree("linked");
    const other = repo.addWorktree("other");
    const child = { ...enforcing, subagent: "child-1" };
    await bob({ ...child, cwd: linked.root }).write("a.txt");
    for (const cwd of [linked.root, repo.root]) {
      const me = bob({ ...child, cwd });
      expect(reasonOf(await me.write(inMain()))).toContain(`Do it in ${linked.root} instead`);
      expect(reasonOf(await me.shell(`echo x > ${inMain()}`))).toContain(linked.root);
      for (const command of STRAYING)
        expect(reasonOf(await me.shell(command(repo.root, other.root))), command.toString()).toContain(
          `belongs to ${linked.root}`,
        );
      for (const command of ["git add a.txt && git commit -m x", `git -C ${linked.root} stash`])
        expect(await me.shell(cwd === linked.root ? command : `cd ${linked.root} && ${command}`)).toEqual(
          SILENT,
        );
    }
    expect(held()).toEqual(["file:a.txt"]);
    expect(await bob({ ...enforcing }).write("sub/b.txt"), "its parent, of the main worktree").toEqual(
      SILENT,
    );
  });

  it("lets whoever was started in the main worktree go anywhere, until it claims an issue from a linked one", async () => {
    const linked = repo.addWorktree("linked");
    const issue = await newIssue();
    const me = bob(enforcing);
    expect(await me.write("a.txt")).toEqual(SILENT);
    expect(await me.write(path.join(linked.root, "c.txt"))).toEqual(SILENT);
    const session = ["--agent-id", me.agentId, "--session", "bbbbbbbb-2"];
    expect((await linked.ask("", "claim", "acquire", issue, ...session)).status).toBe(0);
    expect(reasonOf(await me.write("sub/b.txt"))).toContain("it holds a claim from there");
    expect(await me.write(path.join(linked.root, "sub/b.txt"))).toEqual(SILENT);
  });

  it("has nothing to say where there are no linked worktrees", async () => {
    expect(await bob(enforcing).write("a.txt")).toEqual(SILENT);
    expect(
      fs.readdirSync(path.join(repo.control, "guard")).filter((name) => name.startsWith("home-")),
    ).toHaveLength(1);
  });
});
