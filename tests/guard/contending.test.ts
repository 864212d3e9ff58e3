import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { GuardedAgent, harnessProcess, reasonOf, SILENT, TestClock, toldIn } from "../support/guard";
import { TestRepo } from "../support/repo";

let repo: TestRepo;
let clock: TestClock;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write("a.txt", "one\n");
  repo.write("b.txt", "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
  repo.git("add", "a.txt", "b.txt");
  repo.git("commit", "--quiet", "--message", "first");
  clock = new TestClock();
});

const ada = (more = {}) => new GuardedAgent(repo, { session: "aaaaaaaa-1", clock, ...more });
const bob = (more = {}) => new GuardedAgent(repo, { session: "bbbbbbbb-2", clock, ...more });
const patient = { patienceSecs: 195 };

const contentions = () => repo.log().filter(({ event_type: type }) => type.startsWith("contention."));
const types = () => contentions().map(({ event_type: type }) => type.slice("contention.".length));
const payload = (at: number) => contentions()[at]!.payload as unknown as Record<string, unknown>;

describe("a file that is held", () => {
  it("is denied with the instant of the one retry, exactly so much later, and earlier attempts do not count", async () => {
    await ada().write("a.txt");
    const me = bob();
    const reason = reasonOf(await me.write("a.txt"));
    const { denied_at: denied, retry_at: retry } = payload(0) as { denied_at: string; retry_at: string };
    expect(Date.parse(retry) - Date.parse(denied)).toBe(180_000);
    expect(reason).toContain(`retry_at: ${retry}`);
    expect(reason).toContain(ada().agentId);
    const size = repo.logText().length;
    for (const aheadMs of [1_000, 100_000, 175_000]) {
      clock.aheadMs = aheadMs;
      expect(reasonOf(await me.write("a.txt"))).toContain("too early");
    }
    expect(repo.logText()).toHaveLength(size);
    expect(types()).toEqual(["heartbeat"]);
  });

  it("is waited for inside the hook, where there is patience for it", async () => {
    const holder = ada();
    await holder.write("a.txt");
    clock.onPause = async (aheadMs) => {
      if (aheadMs > 100_000 && types().length === 1) await holder.send("end");
    };
    const started = clock.platform.clock.monotonicMs();
    expect(toldIn(await bob(patient).write("a.txt"))).toBe(
      `cotenant: waited 180 s for a.txt, which ${holder.agentId} held; it is yours now.`,
    );
    expect(clock.platform.clock.monotonicMs() - started).toBeGreaterThanOrEqual(180_000);
    expect(types()).toEqual(["heartbeat", "resolved"]);
    expect(payload(1)).toMatchObject({ how: "granted" });
  });

  it("that changed meanwhile is granted and refused once: read it again", async () => {
    const holder = ada();
    await holder.write("a.txt");
    const me = bob();
    await me.write("a.txt");
    repo.write("a.txt", "two\n");
    await holder.send("end");
    clock.aheadMs = 180_000;
    const reason = reasonOf(await me.write("a.txt"));
    expect(reason).toContain(`changed by ${holder.agentId}`);
    expect(reason).toContain("read it again");
    expect(await me.write("a.txt")).toEqual(SILENT);
    expect(repo.logOf("file:a.txt").at(-1)!.payload.leases[0]).toMatchObject({ agent_id: me.agentId });
  });

  it("names everybody who held it meanwhile where it changed, and the last of them as its last owner", async () => {
    const first = ada();
    await first.write("a.txt");
    const me = bob();
    await me.write("a.txt");
    clock.aheadMs = 180_000;
    expect(reasonOf(await me.write("a.txt"))).toContain("waiting_for_instruction");
    await first.send("end");
    const second = new GuardedAgent(repo, { session: "cccccccc-3", clock });
    await second.write("a.txt");
    repo.write("a.txt", "two\n");
    await second.send("end");
    const { data } = await repo.ask("agent:x", "guard", "report");
    expect(data["reports"]).toMatchObject([{ owner: second.agentId }]);
    const reason = reasonOf(await me.write("a.txt"));
    expect(reason).toContain(`changed by ${first.agentId} or ${second.agentId} while you waited`);
  });

  it("at the retry as well stops the agent with the six-field report, which stays until it is resolved", async () => {
    const holder = ada();
    await holder.write("a.txt");
    const me = bob({ env: { CLAUDE_CODE_SESSION_ATTENDED: "1" } });
    await me.write("a.txt");
    clock.aheadMs = 180_000;
    const answer = await me.write("a.txt");
    expect(JSON.parse(answer.stdout)).toMatchObject({ continue: false, stopReason: reasonOf(answer) });
    const report = JSON.parse(
      reasonOf(answer)
        .split("\n")
        .find((line) => line.startsWith("{"))!,
    );
    expect(Object.keys(report)).toEqual([
      "blocked_file",
      "owner",
      "lock_age_secs",
      "last_heartbeat_at",
      "retry_interval_secs",
      "state",
    ]);
    expect(report).toMatchObject({
      blocked_file: "a.txt",
      owner: holder.agentId,
      retry_interval_secs: 180,
      state: "waiting_for_instruction",
    });
    expect(report.lock_age_secs).toBeGreaterThanOrEqual(180);
    expect(types()).toEqual(["heartbeat", "retry", "blocked"]);
    expect((payload(2)["reports"] as object[])[0]).toEqual(report);
    // No loops: the same answer at once, and nothing more in the log.
    clock.aheadMs = 400_000;
    expect(reasonOf(await me.write("a.txt"))).toContain("waiting_for_instruction");
    expect(types()).toHaveLength(3);
    await holder.send("end");
    expect(types()).toEqual(["heartbeat", "retry", "blocked", "resolved"]);
    expect(payload(3)).toMatchObject({ how: "released" });
    expect(await me.write("a.txt")).toEqual(SILENT);
  });

  it("is granted before its time when it is free by then, and refused while another has taken it", async () => {
    const holder = ada();
    await holder.write("a.txt");
    await bob().write("a.txt");
    await holder.send("end");
    const cyd = new GuardedAgent(repo, { session: "cccccccc-3", clock });
    expect(toldIn(await cyd.write("a.txt")), "a newcomer gets it at once").toContain("which you hold");
    const reason = reasonOf(await bob().write("a.txt"));
    expect(reason).toContain(`held by ${cyd.agentId}, and it is too early`);
    expect(reason).not.toContain(holder.agentId);
    await cyd.send("end");
    expect(await bob().write("a.txt"), "and so does whoever was denied").toEqual(SILENT);
  });

  it("and taken by another since: report, status, retry and the holder itself know who holds it now", async () => {
    const holder = ada();
    await holder.write("a.txt");
    const me = bob();
    await me.write("a.txt");
    clock.aheadMs = 180_000;
    await me.write("a.txt");
    await holder.send("end");
    const free = (await repo.ask("human:h", "guard", "status")).data["contentions"];
    expect(free).toMatchObject([{ agent_id: me.agentId, free: true, owner: null, retry_in_secs: 0 }]);
    expect((await repo.ask("human:h", "status")).data["needs_a_person"]).toMatchObject([
      {
        code: "agent_blocked",
        message: expect.stringContaining("is free"),
        next: `tell ${me.agentId} to go on`,
      },
    ]);
    const cyd = new GuardedAgent(repo, { session: "cccccccc-3", clock });
    expect(toldIn(await cyd.write("a.txt"))).toContain(`${me.agentId} waits for a.txt`);
    const shown = await Promise.all(
      ["status", "guard status", "guard report", "guard retry"].map((command) =>
        repo.run("human:h", ...command.split(" ")),
      ),
    );
    for (const ran of shown) {
      expect(`${ran}`).toContain(cyd.agentId);
      expect(`${ran}`).not.toContain(holder.agentId);
    }
    expect(shown.map(({ status }) => status)).toEqual([0, 0, 0, 11]);
    const { reports } = (await repo.ask("human:h", "guard", "report")).data as unknown as {
      reports: { owner: string; lock_age_secs: number }[];
    };
    expect(reports).toMatchObject([{ owner: cyd.agentId }]);
    expect((await repo.ask("human:h", "guard", "retry")).error.data["reports"]).toMatchObject([
      { owner: cyd.agentId },
    ]);
    expect((await repo.ask("human:h", "status")).data["needs_a_person"]).toMatchObject([
      { code: "agent_blocked", message: expect.stringContaining(`held by ${cyd.agentId}`) },
    ]);
  });

  it("is nobody's business when whoever wanted it has died", async () => {
    await ada().write("a.txt");
    const mine = harnessProcess();
    await bob({ pid: mine.pid }).write("a.txt");
    expect((await repo.ask("human:h", "guard", "status")).data["contentions"]).toHaveLength(1);
    await mine.kill();
    expect((await repo.ask("human:h", "guard", "status")).data["contentions"]).toEqual([]);
  });

  it("wakes whoever waits at its release, with on_release", async () => {
    const holder = ada();
    await holder.write("a.txt");
    clock.onPause = async (aheadMs) => {
      if (aheadMs > 5_000 && aheadMs < 7_000) await holder.send("end");
    };
    const env = { COTENANT_GUARD_RETRY: "on_release" };
    expect(toldIn(await bob({ ...patient, env }).write("a.txt"))).toMatch(
      /^cotenant: waited [67] s for a\.txt/,
    );
    expect(clock.aheadMs).toBeLessThan(30_000);
  });

  it("of an owner that died blocks nobody, whatever was agreed", async () => {
    const owner = harnessProcess();
    await ada({ pid: owner.pid }).write("a.txt");
    const me = bob();
    reasonOf(await me.write("a.txt"));
    await owner.kill();
    expect(await me.write("a.txt")).toEqual(SILENT);
    expect(types()).toEqual(["heartbeat", "resolved"]);
  });

  it("ends the wait when its owner dies meanwhile", async () => {
    const owner = harnessProcess();
    await ada({ pid: owner.pid }).write("a.txt");
    clock.onPause = async (aheadMs) => {
      if (aheadMs > 3_000) await owner.kill();
    };
    expect(toldIn(await bob(patient).write("a.txt"))).toMatch(/^cotenant: waited \d+ s for a\.txt/);
    expect(clock.aheadMs).toBeLessThan(30_000);
  });

  it("is nothing to a hook whose own harness has died", async () => {
    await ada().write("a.txt");
    const mine = harnessProcess();
    clock.onPause = () => mine.kill();
    expect(reasonOf(await bob({ ...patient, pid: mine.pid }).write("a.txt"))).toContain("held");
    expect(clock.aheadMs).toBeLessThan(30_000);
    expect(fs.existsSync(path.join(repo.control, "guard/failures.jsonl"))).toBe(false);
  });

  it("keeps its owner for an hour of thinking", async () => {
    const holder = ada();
    await holder.write("a.txt");
    clock.aheadMs = 3_600_000;
    reasonOf(await bob().write("a.txt"));
    expect(toldIn(await holder.write("a.txt"))).toContain("waits for a.txt");
  });
});

describe("several of them", () => {
  it("in one patch are all or nothing", async () => {
    await ada().write("b.txt");
    const me = new GuardedAgent(repo, { harness: "codex", session: "cccccccc-3", clock });
    expect(reasonOf(await me.write("a.txt", "b.txt"))).toContain("b.txt is held");
    expect(repo.logOf("file:a.txt")).toEqual([]);
    expect(await me.write("a.txt")).toEqual(SILENT);
  });

  it("in two repositories are all or nothing as well", async () => {
    const other = TestRepo.make();
    other.write(".cotenant/config.toml", "# nothing\n");
    other.write("x.txt");
    await new GuardedAgent(other, { session: "aaaaaaaa-1", clock }).write("x.txt");
    const me = new GuardedAgent(repo, { harness: "codex", session: "cccccccc-3", clock });
    reasonOf(await me.write("a.txt", path.join(other.root, "x.txt")));
    const last = repo.logOf("file:a.txt").at(-1)!;
    expect(last.event_type).toBe("claim.released");
    expect(await bob().write("a.txt")).toEqual(SILENT);
  });
});

describe("one edit that is reported twice", () => {
  it("has one lease, and one denial", async () => {
    const me = ada();
    expect(await Promise.all([me.write("a.txt"), me.write("a.txt")])).toEqual([SILENT, SILENT]);
    expect(repo.logOf("file:a.txt").filter(({ event_type: type }) => type === "claim.acquired")).toHaveLength(
      1,
    );
    const other = bob();
    await Promise.all([other.write("a.txt"), other.write("a.txt")]);
    expect(types()).toEqual(["heartbeat"]);
  });

  it("under two harnesses' names is still one agent's", async () => {
    const pid = harnessProcess().pid;
    const one = new GuardedAgent(repo, { harness: "claude", session: "dddddddd-4", pid, clock });
    const two = new GuardedAgent(repo, { harness: "codex", session: "dddddddd-4", pid, clock });
    expect([await one.write("a.txt"), await two.write("a.txt")]).toEqual([SILENT, SILENT]);
    await bob().write("b.txt");
    await one.write("b.txt");
    await two.write("b.txt");
    expect(types()).toEqual(["heartbeat"]);
    await two.send("end");
    expect(await bob().write("a.txt")).toEqual(SILENT);
  });
});

describe("subagents", () => {
  const family = () => {
    const pid = harnessProcess().pid;
    return [ada({ pid }), ada({ pid, subagent: "sub-one" }), ada({ pid, subagent: "sub-two" })] as const;
  };

  it("exclude each other, until they have finished", async () => {
    const [, one, two] = family();
    expect(await one.write("a.txt")).toEqual(SILENT);
    reasonOf(await two.write("a.txt"));
    await one.send("done");
    clock.aheadMs = 180_000;
    expect(await two.write("a.txt")).toEqual(SILENT);
  });

  it("give way to the agent that started them, and it to them; to nobody else", async () => {
    const [main, one, two] = family();
    expect(await one.write("a.txt")).toEqual(SILENT);
    expect(await main.write("a.txt")).toEqual(SILENT);
    expect(await one.write("a.txt")).toEqual(SILENT);
    expect(await two.write("b.txt")).toEqual(SILENT);
    reasonOf(await two.write("a.txt"));
    expect(await main.write("a.txt")).toEqual(SILENT);
    reasonOf(await bob().write("a.txt"));
    await main.send("end");
    clock.aheadMs = 180_000;
    expect(await bob().write("a.txt")).toEqual(SILENT);
  });
});

describe("the holder of a file that others want", () => {
  it("hears of it at its next event, once", async () => {
    const holder = ada();
    await holder.write("a.txt");
    await bob().write("a.txt");
    const told = toldIn(await holder.write("a.txt"));
    expect(told).toContain(`${bob().agentId} waits for a.txt`);
    expect(await holder.write("a.txt")).toEqual(SILENT);
  });
});
