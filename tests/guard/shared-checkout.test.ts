import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { GuardedAgent, harnessProcess, reasonOf, SILENT, toldIn } from "../support/guard";
import { TestRepo } from "../support/repo";

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
    ["git checkout a.txt", "work/bbbbbbbb"],
    ["git stash", "work/bbbbbbbb"],
  ])(
    "%s: is told how to work in a worktree of its own, by a command that works as printed",
    async (command, branch) => {
      await ada().write("a.txt");
      const hint = /cotenant (worktree create .+)$/m.exec(reasonOf(await bob().shell(command)))![1]!;
      const ran = await repo.ask("agent:b", ...hint.split(" "));
      expect(ran.data.worktree).toMatchObject({ branch, new_branch: true });
      // There it is alone.
      expect(await bob({ cwd: ran.data.worktree.root }).shell("git stash")).toEqual(SILENT);
    },
  );

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

it("a directory is not called held where one file in it is", async () => {
  await ada().write("sub/b.txt");
  const reason = reasonOf(await bob().shell("rm -rf sub"));
  expect(reason).toContain(`sub/b.txt (in sub) is held by ${ada().agentId}`);
});

describe("guard.stay_in_worktree", () => {
  const enforcing = { env: { COTENANT_GUARD_STAY_IN_WORKTREE: "enforce" } };
  const inMain = () => path.join(repo.root, "a.txt");

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
    const child = { ...enforcing, subagent: "child-1" };
    await bob({ ...child, cwd: linked.root }).write("a.txt");
    for (const cwd of [linked.root, repo.root]) {
      const me = bob({ ...child, cwd });
      expect(reasonOf(await me.write(inMain()))).toContain(`Do it in ${linked.root} instead`);
      expect(reasonOf(await me.shell(`echo x > ${inMain()}`))).toContain(linked.root);
      expect(reasonOf(await me.shell(`git -C ${repo.root} stash`))).toContain(linked.root);
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
