import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { openRepository } from "../../src/index";
import { GuardedAgent, reasonOf, SILENT, TestClock } from "../support/guard";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write("a.txt");
  repo.write("b.txt");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
});

const pause = (reason = "moving the database", who = "human:ada") =>
  repo.prepare(who, "pause", "--reason", reason);
const resume = (who = "human:ada") => repo.prepare(who, "resume");
const types = () => repo.log().map(({ event_type: type }) => type);
const paused =
  /^cotenant: nothing new is granted: paused by human:ada since \S+: moving the database \(E_PAUSED\)/;

describe("pause", () => {
  it("refuses what is new, with who, since when and why, and lets what is held go on", async () => {
    const id = await repo.issue();
    const other = await repo.issue("Other work");
    await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    await repo.prepare("agent:a", "claim", "acquire", id);
    const ran = await repo.run("human:ada", "pause", "--reason", "moving the database");
    expect(ran.stdout).toMatch(
      /^paused by human:ada since \S+: moving the database\n {2}next: cotenant resume/,
    );

    const refused = await repo.run("agent:b", "lock", "acquire", "b.txt");
    expectRefused(refused, 11, "E_PAUSED");
    expect(refused.stderr).toMatch(paused);
    expect(refused.stderr).toContain("a person ends the pause: cotenant resume");
    for (const args of [
      ["lock", "acquire", "a.txt", "b.txt"],
      ["claim", "acquire", other],
      ["claim", "next"],
      ["issue", "create", "--title", "new", "--claim"],
      ["worktree", "lock"],
      ["guard", "check", "b.txt"],
    ])
      expectJsonRefused(await repo.askHere("agent:b", ...args), 11, "E_PAUSED");

    await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    await repo.prepare("agent:a", "lock", "renew", "a.txt", "--ttl", "900");
    await repo.prepare("agent:a", "claim", "heartbeat", id);
    await repo.prepare("agent:a", "issue", "update", id, "--title", "Better words");
    await repo.prepare("agent:a", "claim", "transfer", id, "--to-agent", "agent:b", "--reason", "yours");
    await repo.prepare("agent:b", "claim", "acquire", id);
    await repo.prepare("agent:b", "claim", "release", id);
    await repo.prepare("agent:a", "lock", "release", "a.txt");
    expectJsonRefused(await repo.askHere("agent:a", "lock", "acquire", "a.txt"), 11, "E_PAUSED");

    expect((await resume()).resumed).toBe(true);
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
  });

  it("refuses a publish at once, however long it would wait for its branch", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    repo.write("a.txt", "new\n");
    await pause();
    const started = Date.now();
    const args = ["publish", "--branch", "work/a", "--message", "new", "--from-worktree", "a.txt"];
    const ran = await repo.askHere("agent:a", ...args);
    expectJsonRefused(ran, 11, "E_PAUSED");
    expect(Date.now() - started).toBeLessThan(10_000);
    await resume();
    await repo.prepare("agent:a", ...args);
  });

  it("twice names whoever was first; a new reason of theirs replaces the old one", async () => {
    const first = await pause();
    expect(first).toMatchObject({ paused_by: "human:ada", reason: "moving the database", changed: true });
    expect(await pause()).toEqual({ ...first, changed: false });
    expect(await pause("something else", "admin:root")).toEqual({ ...first, changed: false });
    const again = await repo.run("admin:root", "pause", "--reason", "mine");
    expect(again.stdout).toMatch(/^already paused by human:ada since \S+: moving the database\n/);
    expect(await pause("still moving it")).toEqual({ ...first, reason: "still moving it", changed: true });
    expect(types()).toEqual(["log.checkpoint", "repository.paused", "repository.paused"]);
  });

  it("and resume are for people, and say so to everybody else", async () => {
    for (const who of ["agent:a", "ci:build"]) {
      const refused = await repo.run(who, "pause", "--reason", "because");
      expectRefused(refused, 9, "E_POLICY");
      expect(refused.stderr).toContain(`only a person can pause a repository, and ${who} is not one`);
      expectJsonRefused(await repo.askHere(who, "resume"), 9, "E_POLICY");
    }
    expectJsonRefused(await repo.askHere("human:ada", "pause"), 64, "E_USAGE");
    expectJsonRefused(await repo.askHere("human:ada", "pause", "--reason", " "), 64, "E_USAGE");
    const inside = { CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: "11111111-2222-3333-4444-555555555555" };
    const ran = await repo.askWith(inside, "human:ada", "pause", "--reason", "because");
    expect(ran.status).not.toBe(0);
    expect(types()).not.toContain("repository.paused");
  });

  it("resume says so where nothing is paused, and makes no store for it", async () => {
    const ran = await repo.run("human:ada", "resume");
    expect(ran).toMatchObject({ status: 0, stdout: "not paused\n" });
    expect(fs.existsSync(repo.logFile)).toBe(false);
    await pause();
    expect(await resume("human:bob")).toMatchObject({ resumed: true, pause: { paused_by: "human:ada" } });
    expect(await resume()).toEqual({ resumed: false, pause: null });
  });

  it("is on top of status and doctor, which work as always, and in the events", async () => {
    await pause();
    const status = await repo.run("agent:a", "status");
    expect(status.stdout).toMatch(/^paused by human:ada since \S+: moving the database\n/);
    const { data } = await repo.askHere("agent:a", "status");
    expect(data["paused"]).toMatchObject({ paused_by: "human:ada", reason: "moving the database" });
    expect(data["needs_a_person"]).toMatchObject([{ code: "repository_paused", next: "cotenant resume" }]);
    const doctor = await repo.run("agent:a", "doctor");
    expect(doctor.stdout).toMatch(/^.*paused by human:ada since \S+: moving the database/m);
    for (const args of [
      ["claim", "list"],
      ["lock", "status"],
      ["guard", "status"],
      ["query", "available"],
    ])
      expect((await repo.askHere("agent:a", ...args)).status).toBe(0);
    await resume("human:bob");
    const events = await repo.run("agent:a", "events", "--type", "repository.");
    expect(events.stdout).toMatch(/repository\.paused +human:ada .*"moving the database"/);
    expect(events.stdout).toMatch(/repository\.resumed +human:bob /);
    expect((await repo.askHere("agent:a", "status")).data["paused"]).toBeNull();
  });

  it("survives compaction, gc and the loss of everything that is derived", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    await pause();
    await repo.prepare("agent:a", "gc", "--compact");
    expectJsonRefused(await repo.askHere("agent:b", "lock", "acquire", "b.txt"), 11, "E_PAUSED");
    fs.rmSync(`${repo.control}/index`, { recursive: true });
    expectJsonRefused(await repo.askHere("agent:b", "lock", "acquire", "b.txt"), 11, "E_PAUSED");
  });

  it("can be done by programs", async () => {
    const ada = await openRepository({ cwd: repo.root, agentId: "human:ada" });
    const bot = await openRepository({ cwd: repo.root, agentId: "agent:a" });
    expect(await ada.pause("an incident")).toMatchObject({ changed: true, pause: { reason: "an incident" } });
    expect(await bot.paused()).toMatchObject({ agentId: "human:ada" });
    await expect(bot.acquire({ file: "a.txt" })).rejects.toMatchObject({ code: "E_PAUSED" });
    await expect(bot.resume()).rejects.toMatchObject({ code: "E_POLICY" });
    expect(await ada.resume()).toMatchObject({ reason: "an incident" });
    await bot.acquire({ file: "a.txt" });
  });
});

describe("whoever waits while the repository is paused", () => {
  it("goes on waiting, keeps its place although what it waits for is free, and goes on after resume", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    const wait = ["lock", "acquire", "a.txt", "--wait", "--timeout", "60"];
    const first = repo.start("agent:b", wait);
    await until("it waits", () => first.stderr.includes("waiting as number 1"));
    await pause();
    await repo.prepare("agent:a", "lock", "release", "a.txt");
    const second = repo.start("agent:c", wait);
    await until("the other waits", () => second.stderr.includes("waiting as number 2"));
    // Longer than anybody keeps a place without taking what is free.
    await new Promise((resolve) => setTimeout(resolve, 6_500));
    expect((await repo.askHere("agent:a", "status")).data["waiters"]).toMatchObject([
      { agent_id: "agent:b" },
      { agent_id: "agent:c" },
    ]);
    expect(repo.logOf("file:a.txt").map(({ event_type: type }) => type)).toEqual([
      "claim.acquired",
      "claim.released",
    ]);
    await resume();
    expect(await first.done).toMatchObject({ status: 0 });
    await repo.prepare("agent:b", "lock", "release", "a.txt");
    expect(await second.done).toMatchObject({ status: 0 });
  });

  it("hears why when its time is up", async () => {
    await pause();
    const ran = await repo.run("agent:b", "lock", "acquire", "a.txt", "--wait", "--timeout", "1");
    expectRefused(
      { ...ran, stderr: ran.stderr.replace(/^waiting.*\n/gm, "") } as typeof ran,
      12,
      "E_WAIT_TIMEOUT",
    );
    expect(ran.stderr).toContain("paused by human:ada");
    expect(ran.stderr).toContain("cotenant resume");
    expect((await repo.askHere("agent:a", "status")).data["waiters"]).toEqual([]);
  });
});

describe("the guard while the repository is paused", () => {
  const clock = new TestClock();
  const ada = () => new GuardedAgent(repo, { session: "aaaaaaaa-1", clock, patienceSecs: 195 });
  const bob = () => new GuardedAgent(repo, { session: "bbbbbbbb-2", clock, patienceSecs: 195 });
  beforeEach(() => repo.write(".cotenant/config.toml", "# nothing\n"));

  it("lets files be written that are held, and refuses others at once with the reason", async () => {
    const agent = ada();
    expect(await agent.write("a.txt")).toEqual(SILENT);
    await pause();
    const before = clock.aheadMs;
    expect(await agent.write("a.txt")).toEqual(SILENT);
    const reason = reasonOf(await agent.write("b.txt"));
    expect(reason).toMatch(/^cotenant: b\.txt: nothing new is granted: paused by human:ada since /);
    expect(reason).toContain("moving the database");
    expect(reason).toContain("cotenant resume");
    expect(reasonOf(await agent.shell("rm -rf ."))).toContain("paused by human:ada");
    // A file of somebody else's too: there is nothing to wait for, and nothing to retry.
    expect(reasonOf(await bob().write("a.txt"))).toContain("paused by human:ada");
    expect(clock.aheadMs).toBe(before);
    expect(types().filter((type) => type.startsWith("contention."))).toEqual([]);
    await resume();
    expect(await agent.write("b.txt")).toEqual(SILENT);
  });

  it("does not wait for a file that was denied before", async () => {
    await ada().write("a.txt");
    const impatient = new GuardedAgent(repo, { session: "bbbbbbbb-2", clock });
    expect(reasonOf(await impatient.write("a.txt"))).toContain("retry_at");
    await pause();
    const before = clock.aheadMs;
    expect(reasonOf(await bob().write("a.txt"))).toContain("paused by human:ada");
    expect(reasonOf(await impatient.write("a.txt"))).toContain("paused by human:ada");
    expect(clock.aheadMs).toBe(before);
  });
});

it("grants nothing once a pause has been answered, however many ask at the same time", async () => {
  const files = Array.from({ length: 24 }, (_, i) => `f${i}.txt`);
  const asking = files.map((file, i) => repo.start(`agent:n${i}`, ["lock", "acquire", file, "--json"]));
  const pausing = repo.start("human:ada", ["pause", "--reason", "moving the database", "--json"]);
  const late = pausing.done.then(() =>
    Promise.all(["x", "y", "z"].map((file) => repo.start("agent:late", ["lock", "acquire", file]).done)),
  );
  const ran = await Promise.all(asking.map(({ done }) => done));
  expect((await pausing.done).status).toBe(0);
  expect((await late).map(({ status }) => status)).toEqual([11, 11, 11]);
  for (const { status } of ran) expect([0, 11]).toContain(status);
  const granted = ran.filter(({ status }) => status === 0).length;
  const log = repo.log();
  const at = log.findIndex(({ event_type: type }) => type === "repository.paused");
  const grants = (lines: typeof log) =>
    lines.filter(({ event_type: type }) => type === "claim.acquired").length;
  expect(grants(log.slice(0, at))).toBe(granted);
  expect(grants(log.slice(at))).toBe(0);
});

it("is told to whoever waits once, also when its ticket is lost and it takes its place again", async () => {
  await pause();
  const waiter = repo.start("agent:a", ["lock", "acquire", "a.txt", "--wait", "--timeout", "60"]);
  await until("it waits", () => waiter.stderr.includes("waiting as number 1"));
  const queue = path.join(repo.control, "queue");
  const tickets = () => fs.readdirSync(queue).filter((name) => /\d/.test(name));
  for (let i = 0; i < 2; i++) {
    for (const ticket of tickets()) fs.rmSync(path.join(queue, ticket));
    await until("it has another one", () => tickets().length > 0);
  }
  await resume();
  expect((await waiter.done).status).toBe(0);
  expect(waiter.stderr.match(/waiting as number 1: nothing new is granted/g)).toHaveLength(1);
});

it("says to a person in an agent's shell how to do it, and to an agent in its harness that it cannot", async () => {
  const repo = TestRepo.make();
  await repo.prepare("agent:b", "lock", "acquire", "a.ts");
  for (const words of [
    ["pause", "--reason", "x"],
    ["resume"],
    ["lock", "steal", "a.ts", "--reason", "x"],
    ["claim", "force-evict", "file:a.ts", "--reason", "x"],
    ["trust"],
  ]) {
    const { error } = await repo.ask("agent:a", ...words);
    expect(error.code, `${words}`).toBe("E_POLICY");
    expect(error.hint, `${words}`).toContain("a person here adds --agent-id human:<you>");
    const inside = await repo.askWith({ CLAUDECODE: "1" }, "agent:a", ...words);
    expect(inside.error.code, `${words}`).toBe("E_POLICY");
    expect(inside.error.hint, `${words}`).not.toContain("human:<you>");
  }
});

it("does not send people where the policy allows none", async () => {
  const repo = TestRepo.make();
  await repo.prepare("agent:b", "lock", "acquire", "a.ts");
  const env = { COTENANT_POLICY_EVICT: "ci:*" };
  const { error } = await repo.askWith(env, "agent:a", "lock", "steal", "a.ts", "--reason", "x");
  expect(error.code).toBe("E_POLICY");
  expect(error.hint).not.toContain("human:<you>");
});

it("says to whoever has no name that it is for people", async () => {
  for (const words of [["pause", "--reason", "x"], ["resume"]]) {
    const { error } = await TestRepo.make().ask("", ...words);
    expect(error.code).toBe("E_AGENT_ID_REQUIRED");
    expect(error.hint).toContain("--agent-id human:<you>");
  }
});
