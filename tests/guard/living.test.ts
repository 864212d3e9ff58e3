import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { runHook } from "../../src/features/guard/run";
import { GuardedAgent, harnessProcess, reasonOf, SILENT, TestClock, toldIn } from "../support/guard";
import { oneIn } from "../support/one-in";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(3);

let repo: TestRepo;
let clock: TestClock;
beforeEach(() => {
  repo = TestRepo.make();
  for (const file of ["a.txt", "b.txt", "src/c.txt"]) repo.write(file, "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
  repo.git("add", "a.txt", "b.txt", "src");
  repo.git("commit", "--quiet", "--message", "first");
  clock = new TestClock();
});

const ada = (more = {}) => new GuardedAgent(repo, { session: "aaaaaaaa-1", clock, ...more });
const bob = (more = {}) => new GuardedAgent(repo, { session: "bbbbbbbb-2", clock, ...more });
const held = () => {
  const keys = new Set<string>();
  for (const { payload } of repo.log()) {
    for (const { key } of payload.ended ?? []) keys.delete(key);
    for (const { key } of payload.leases ?? []) keys.add(key);
  }
  return [...keys].sort();
};

describe("where the guard has no business", () => {
  it("a repository that is not initialised: silence, and nothing is made", async () => {
    const bare = TestRepo.make();
    bare.write("a.txt");
    const before = bare.picture();
    const me = new GuardedAgent(bare, { session: "s" });
    expect(await me.write("a.txt")).toEqual(SILENT);
    expect(await me.shell("echo x > a.txt")).toEqual(SILENT);
    expect(await me.send("stop")).toEqual(SILENT);
    expect(await me.send("end")).toEqual(SILENT);
    expect(bare.picture()).toEqual(before);
  });

  it.each([
    "/etc/hosts",
    "/nowhere/at/all",
    "/tmp",
    "../outside.txt",
    ".git/config",
    ".git/hooks/x",
    "\0",
    "a\nb",
  ])("%j: silence", async (file) => {
    expect(await ada().before("Write", { file_path: file })).toEqual(SILENT);
    expect(held()).toEqual([]);
  });

  it("a link that leads out of every repository, or round in a circle", async () => {
    fs.symlinkSync(path.join(scratch(), "out.txt"), path.join(repo.root, "out"));
    fs.symlinkSync("circle", path.join(repo.root, "circle"));
    expect(await ada().write("out")).toEqual(SILENT);
    expect(await ada().write("circle/x")).toEqual(SILENT);
    expect(held()).toEqual([]);
  });
});

describe("whose the file is decides", () => {
  it("not where the agent stands", async () => {
    const me = ada({ cwd: scratch() });
    expect(await me.write(path.join(repo.root, "a.txt"))).toEqual(SILENT);
    expect(held()).toEqual(["file:a.txt"]);
    // It hears of the end there, too.
    await me.send("end");
    expect(held()).toEqual([]);
  });

  it("by the real file behind a link", async () => {
    fs.symlinkSync("a.txt", path.join(repo.root, "link"));
    await ada().write("link");
    expect(held()).toEqual(["file:a.txt"]);
    // It need not be there yet: whoever writes through the link makes it.
    fs.symlinkSync("new.txt", path.join(repo.root, "dangling"));
    await ada().write("dangling");
    expect(held()).toEqual(["file:a.txt", "file:new.txt"]);
    reasonOf(await bob().write("a.txt"));
  });

  it("also for files that are not there yet, in directories that are not there yet", async () => {
    await ada().write("new/deep/file.txt");
    expect(held()).toEqual(["file:new/deep/file.txt"]);
  });
});

describe("other worktrees", () => {
  it.each([
    ["warn", "Expect a merge"],
    ["off", ""],
  ])("%s: the same path is another file", async (mode, words) => {
    const env = { COTENANT_GUARD_ACROSS_WORKTREES: mode };
    const there = repo.addWorktree("topic");
    await ada({ env }).write("a.txt");
    const answer = await bob({ env, cwd: there.root }).write("a.txt");
    expect(toldIn(answer)).toContain(words);
    if (mode === "off") expect(answer).toEqual(SILENT);
    else expect(toldIn(answer)).toContain(ada().agentId);
  });

  it("enforce: it is the same one", async () => {
    const env = { COTENANT_GUARD_ACROSS_WORKTREES: "enforce" };
    const there = repo.addWorktree("topic");
    await ada({ env }).write("a.txt");
    reasonOf(await bob({ env, cwd: there.root }).write("a.txt"));
  });
});

describe("a session", () => {
  it("that stops gives its files up half a minute later, unless it goes on", async () => {
    const me = ada();
    await me.write("a.txt");
    await me.send("stop");
    clock.aheadMs = 26_000;
    reasonOf(await bob().write("a.txt"));
    await me.send("prompt", { prompt: "go on" });
    clock.aheadMs = 210_000;
    // The retry, in vain: the session goes on.
    expect(reasonOf(await bob().write("a.txt"))).toContain("waiting_for_instruction");
    await me.send("stop");
    clock.aheadMs = 241_000;
    expect(await bob().write("a.txt")).toEqual(SILENT);
  });

  it("goes on with any event of any of its agents, for all of them", async () => {
    const pid = harnessProcess().pid;
    const [main, sub] = [ada({ pid }), ada({ pid, subagent: "one" })];
    await sub.write("a.txt");
    await main.write("b.txt");
    await main.send("stop");
    clock.aheadMs = 20_000;
    await main.write("b.txt");
    clock.aheadMs = 60_000;
    reasonOf(await bob().write("a.txt"));
  });

  it.each(["end", "failure"] as const)(
    "that is over (%s) gives everything back, and says whose work it left",
    async (how) => {
      const me = ada();
      await me.write("a.txt");
      await me.write("b.txt");
      repo.write("a.txt", "two\n");
      await me.send(how);
      expect(held()).toEqual([]);
      expect(await bob().write("b.txt")).toEqual(SILENT);
      const told = toldIn(await bob().write("a.txt"));
      expect(told).toContain(`a.txt has uncommitted changes of ${me.agentId}`);
    },
  );

  it("goes on after an error that its harness recovers from", async () => {
    const me = new GuardedAgent(repo, { harness: "copilot", session: "cccccccc-3", clock });
    await me.before("edit", { path: path.join(repo.root, "a.txt") });
    await me.send("failure", { recoverable: true });
    expect(held()).toEqual(["file:a.txt"]);
    await me.send("failure", { recoverable: false });
    expect(held()).toEqual([]);
  });

  it("whose process died leaves word of its work as well", async () => {
    const owner = harnessProcess();
    const me = ada({ pid: owner.pid });
    await me.write("a.txt");
    repo.write("a.txt", "two\n");
    await owner.kill();
    expect(toldIn(await bob().write("a.txt"))).toContain(
      `uncommitted changes of ${me.agentId} (its process died)`,
    );
  });

  it("gives back what it has committed, at its next event, without any hook", async () => {
    const me = ada();
    for (const file of ["a.txt", "b.txt"]) {
      await me.write(file);
      repo.write(file, "two\n");
    }
    repo.git("commit", "--quiet", "--message", "a", "a.txt");
    await me.afterShell("git commit -m a a.txt");
    expect(held()).toEqual(["file:b.txt"]);
    expect(await bob().write("a.txt")).toEqual(SILENT);
    reasonOf(await bob().write("b.txt"));
  });

  it("keeps what it has changed again since it committed it", async () => {
    const me = ada();
    await me.write("a.txt");
    repo.write("a.txt", "two\n");
    repo.git("commit", "--quiet", "--message", "a", "a.txt");
    repo.write("a.txt", "three\n");
    await me.afterShell("true");
    expect(held()).toEqual(["file:a.txt"]);
  });

  it("never stages or commits anything", async () => {
    const [index, head] = [repo.git("ls-files", "--stage"), repo.git("log", "--format=%H")];
    const me = ada();
    await me.write("a.txt");
    repo.write("a.txt", "two\n");
    await bob().write("a.txt");
    await me.afterShell("ls");
    await me.send("stop");
    await me.send("end");
    expect([repo.git("ls-files", "--stage"), repo.git("log", "--format=%H")]).toEqual([index, head]);
  });
});

describe("signs of life", () => {
  it("come about once a minute, for everything that the session holds", async () => {
    const me = ada();
    await me.write("a.txt");
    await me.write("b.txt");
    const size = repo.logText().length;
    await me.write("b.txt");
    expect(repo.logText()).toHaveLength(size);
    clock.aheadMs = 120_000;
    await me.write("b.txt");
    const beats = repo
      .log()
      .at(-1)!
      .payload.leases.map(({ key }) => key);
    expect([
      ...repo
        .log()
        .at(-2)!
        .payload.leases.map(({ key }) => key),
      ...beats,
    ]).toEqual(expect.arrayContaining(["file:a.txt", "file:b.txt"]));
  });
});

describe("gc", () => {
  it("takes back what the dead waited for, and clears away old notes", async () => {
    await ada().write("a.txt");
    await ada().write("a.txt");
    const waiting = harnessProcess();
    await bob({ pid: waiting.pid }).write("a.txt");
    await ada().send("stop");
    const notes = () => fs.readdirSync(path.join(repo.control, "guard")).sort();
    const edits = path.join(repo.control, "guard/edits");
    expect(notes()).toEqual(expect.arrayContaining(["edits", expect.stringMatching(/^stopped-/)]));
    expect((await repo.ask("human:me", "gc")).status).toBe(0);
    expect(fs.readdirSync(edits)).toHaveLength(1);
    expect((await repo.ask("human:me", "guard", "status")).data["contentions"]).toHaveLength(1);
    await waiting.kill();
    const old = new Date(Date.now() - 2 * 86_400_000);
    for (const name of fs.readdirSync(edits)) fs.utimesSync(path.join(edits, name), old, old);
    expect((await repo.ask("human:me", "gc")).status).toBe(0);
    expect(fs.readdirSync(edits)).toEqual([]);
    expect((await repo.ask("human:me", "guard", "status")).data["contentions"]).toEqual([]);
    expect(repo.log().at(-1)).toMatchObject({
      event_type: "contention.resolved",
      payload: { how: "abandoned" },
    });
  });
});

describe("shell commands", () => {
  it.each([
    "echo x > a.txt",
    "cd src && sed -i s/a/b/ ../a.txt",
    "bash -c 'tee a.txt' <<EOF\nx\nEOF",
    "rm -rf .",
    "mv a.txt z.txt",
    "cp b.txt a.txt",
    "git checkout -- a.txt",
    "git stash && ls",
    "git reset --hard",
    "touch *.txt",
    "(true; (cat b.txt > a.txt))",
  ])("%s: is refused before it runs, naming the owner", async (command) => {
    await ada().write("a.txt");
    expect(reasonOf(await bob().shell(command))).toContain(ada().agentId);
  });

  it.each(["cat a.txt", "echo x > c.txt", "git status", "rm b.txt", "cp a.txt c.txt", "npm test"])(
    "%s: is let through",
    async (command) => {
      await ada().write("a.txt");
      expect(await bob().shell(command)).toEqual(SILENT);
    },
  );

  it("lease what they write, and not what Git ignores", async () => {
    repo.write(".gitignore", "dist/\n");
    await ada().shell("echo x > a.txt && echo y > dist/out.js");
    expect(held()).toEqual(["file:a.txt"]);
    expect(await bob().shell("rm -rf dist && echo z > dist/out.js")).toEqual(SILENT);
  });

  it("that changed what others hold are put on record with both names, and both hear of it", async () => {
    const owner = ada();
    await owner.write("a.txt");
    const command = "node build.js";
    clock.aheadMs = 60_000;
    expect(await bob().shell(command)).toEqual(SILENT);
    repo.write("a.txt", "trespass\n");
    expect(toldIn(await bob().afterShell(command))).toContain(`${owner.agentId} holds it`);
    const line = repo.log().find(({ event_type: type }) => type === "guard.violated")!;
    expect(line.payload).toMatchObject({
      command,
      files: [{ path: "a.txt", agent_id: bob().agentId, owner: owner.agentId }],
    });
    expect(toldIn(await owner.write("a.txt"))).toContain(`changed by a shell command of ${bob().agentId}`);
    expect(await owner.write("a.txt")).toEqual(SILENT);
    const { findings } = {
      findings: (await repo.ask("human:me", "status")).data["needs_a_person"] as object[],
    };
    expect(findings).toContainEqual(expect.objectContaining({ code: "lease_trespassed" }));
  });

  it("that are reported twice are on record once, and their agent hears of it whichever report comes first", async () => {
    await ada().write("a.txt");
    const { world } = bob();
    // Cursor runs what was registered for Claude Code as well, and takes no word from there.
    const said = (moment: "before" | "after", registeredFor: "claude" | "cursor") => {
      const event = moment === "before" ? "preToolUse" : "postToolUse";
      const shell = { tool_name: "Shell", tool_input: { command: "node build.js" } };
      const base = { conversation_id: "c0c0c0c0", generation_id: "g", workspace_roots: [repo.root] };
      const text = JSON.stringify({ ...base, hook_event_name: event, ...shell });
      return runHook(world, { harness: registeredFor, event, patienceMs: 5_000 }, { text });
    };
    for (const order of [["claude", "cursor"] as const, ["cursor", "claude"] as const]) {
      clock.aheadMs += 60_000;
      for (const one of order) expect(await said("before", one)).toEqual({ ...SILENT, stdout: "{}\n" });
      repo.write("a.txt", `trespass, ${order[0]} first\n`);
      const answers = new Map<string, string>();
      for (const one of order) answers.set(one, (await said("after", one)).stdout);
      expect(answers.get("cursor"), `${order}`).toContain(`${ada().agentId} holds it`);
      expect(answers.get("claude")).toBe("{}\n");
    }
    expect(repo.log().filter(({ event_type: type }) => type === "guard.violated")).toHaveLength(2);
  });

  it("are named by their first words only: the rest may hold keys", async () => {
    await ada().write("a.txt");
    const command =
      "API_KEY=hunter2 curl https://u:hunter2@x.invalid --data y --header hunter2 > /dev/null; node x";
    clock.aheadMs = 60_000;
    await bob().shell(command);
    repo.write("a.txt", "trespass\n");
    await bob().afterShell(command);
    expect(repo.logText()).toContain("guard.violated");
    expect(repo.logText()).not.toContain("hunter2");
  });

  it("are not blamed for what its holder wrote meanwhile, nor for what did not change", async () => {
    const owner = ada();
    await owner.write("a.txt");
    await owner.write("b.txt");
    clock.aheadMs = 60_000;
    await bob().shell("node build.js");
    await owner.write("a.txt");
    repo.write("a.txt", "mine\n");
    expect(await bob().afterShell("node build.js")).toEqual(SILENT);
    expect(repo.logText()).not.toContain("guard.violated");
  });

  it("are compared inside directories that others hold, by what Git says", async () => {
    expect((await repo.ask("agent:carol", "lock", "acquire", "--dir", "src")).status).toBe(0);
    clock.aheadMs = 60_000;
    await bob().shell("node build.js");
    repo.write("src/c.txt", "trespass\n");
    repo.write("src/new.txt", "trespass\n");
    expect(toldIn(await bob().afterShell("node build.js"))).toContain("agent:carol holds it");
    const line = repo.log().find(({ event_type: type }) => type === "guard.violated")!;
    expect(
      (line.payload as unknown as { files: { path: string }[] }).files.map(({ path: p }) => p).sort(),
    ).toEqual(["src/c.txt", "src/new.txt"]);
  });
});

it("a repository that cannot be opened any more keeps no session from giving back what it holds elsewhere", async () => {
  const other = repo.copy(path.join(scratch(), "other"));
  const me = ada({ mayFail: true });
  await me.write("a.txt");
  await me.write(path.join(other.root, "b.txt"));
  fs.writeFileSync(path.join(other.root, ".git/config"), "[core\n  bad");
  await me.send("stop");
  expect(repo.log().at(-1)!.event_type).toBe("claim.stopped");
  await me.send("end");
  expect(held()).toEqual([]);
  expect(fs.readFileSync(path.join(repo.control, "guard/failures.jsonl"), "utf8")).toContain(
    "bad config line",
  );
});
