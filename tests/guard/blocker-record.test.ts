import { beforeEach, describe, expect, it } from "vitest";
import { GuardedAgent, harnessProcess, reasonOf, SILENT, TestClock, toldIn } from "../support/guard";
import { TestRepo } from "../support/repo";

let repo: TestRepo;
let clock: TestClock;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write("a.txt", "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
  repo.git("add", "a.txt");
  repo.git("commit", "--quiet", "--message", "first");
  clock = new TestClock();
});

const ada = (more = {}) => new GuardedAgent(repo, { session: "aaaaaaaa-1", clock, ...more });
const bob = (more = {}) => new GuardedAgent(repo, { session: "bbbbbbbb-2", clock, ...more });

/** Denied, and denied again at the retry. */
async function block(agent: GuardedAgent): Promise<void> {
  reasonOf(await agent.write("a.txt"));
  clock.aheadMs += 180_000;
  expect(reasonOf(await agent.write("a.txt"))).toContain("waiting_for_instruction");
}

const types = () =>
  repo
    .log()
    .map(({ event_type: type }) => type)
    .filter((type) => type.startsWith("contention."))
    .map((type) => type.slice("contention.".length));
const reported = async () => (await repo.ask("human:h", "guard", "report")).data["blocked"];
const open = async () => (await repo.ask("human:h", "guard", "status")).data["contentions"];

describe("the report of an agent that is blocked", () => {
  it("outlives its session, and says so, until the file is free", async () => {
    const holder = ada();
    await holder.write("a.txt");
    const me = bob();
    await block(me);
    await me.send("end");
    expect(types()).toEqual(["heartbeat", "retry", "blocked", "ended"]);
    expect(repo.log().at(-1)!.payload).toMatchObject({ how: "ended", files: [{ path: "a.txt" }] });
    expect(await reported()).toEqual([
      { blocked_file: "a.txt", agent_id: me.agentId, session_id: "bbbbbbbb-2", free: false, ended: true },
    ]);
    expect(await open()).toMatchObject([{ state: "blocked", ended: true, owner: holder.agentId }]);
    const shown = `${await repo.run("human:h", "guard", "report")}`;
    expect(shown).toContain(`a.txt: ${me.agentId} was still blocked when it ended`);
    expect(shown).not.toContain("waits for instruction");
    expect((await repo.ask("human:h", "status")).data["needs_a_person"]).toMatchObject([
      { code: "agent_blocked", message: expect.stringContaining("was still blocked when it ended") },
    ]);
    expect(await holder.write("a.txt"), "nobody waits for it any more").toEqual(SILENT);
    expect((await repo.ask("human:h", "gc")).status).toBe(0);
    expect(await reported()).toHaveLength(1);
    await holder.send("end");
    expect(repo.log().findLast(({ event_type: type }) => type === "contention.resolved")).toMatchObject({
      payload: { how: "released" },
    });
    expect([await reported(), await open()]).toEqual([[], []]);
  });

  it("says that it may go on once the file is free, until it asks again, or ends", async () => {
    for (const isResumed of [true, false]) {
      const holder = ada();
      await holder.write("a.txt");
      const me = bob();
      await block(me);
      await holder.send("end");
      for (const command of ["guard retry", "guard report"]) {
        const shown = await repo.run("human:h", ...command.split(" "));
        expect(shown.stdout, command).toContain(`tell ${me.agentId} to go on`);
        expect(shown.stdout, command).not.toContain("waits for instruction");
      }
      expect((await repo.run("human:h", "guard", "report")).stdout).toContain(
        `a.txt: ${me.agentId} may go on\n`,
      );
      expect((await repo.ask("human:h", "status")).data["needs_a_person"]).toMatchObject([
        { message: `${me.agentId} may go on: a.txt is free`, next: `tell ${me.agentId} to go on` },
      ]);
      if (isResumed) expect(await me.write("a.txt")).toEqual(SILENT);
      await me.send("end");
      expect(await reported()).toEqual([]);
    }
  });

  it("outlives the process that died, and goes for good once the file was free", async () => {
    expect((await repo.ask("agent:ann", "lock", "acquire", "a.txt")).status).toBe(0);
    const mine = harnessProcess();
    await block(bob({ harness: "codex", pid: mine.pid }));
    await mine.kill();
    expect(await reported()).toMatchObject([{ blocked_file: "a.txt", free: false, ended: true }]);
    expect((await repo.ask("human:h", "guard", "retry")).error).toMatchObject({ code: "E_BLOCKED" });
    expect((await repo.ask("human:h", "gc")).status).toBe(0);
    expect(await reported()).toHaveLength(1);
    // Given back without the guard; and whoever takes it next has never been in that agent's way.
    expect((await repo.ask("agent:ann", "lock", "release", "a.txt")).status).toBe(0);
    expect(await reported()).toEqual([]);
    await ada().write("a.txt");
    expect(await reported()).toEqual([]);
    expect((await repo.ask("human:h", "gc")).status).toBe(0);
    expect(repo.log().findLast(({ event_type: type }) => type === "contention.resolved")).toMatchObject({
      payload: { how: "released" },
    });
  });

  it("goes with the session where it only waited, or the file is free already", async () => {
    const holder = ada();
    await holder.write("a.txt");
    await bob().write("a.txt");
    await bob().send("end");
    expect(await open()).toEqual([]);
    const cyd = new GuardedAgent(repo, { session: "cccccccc-3", clock });
    await block(cyd);
    await holder.send("end");
    await cyd.send("end");
    expect(types().slice(-2)).toEqual(["resolved", "resolved"]);
    expect(await open()).toEqual([]);
  });

  it("is a live one's again when the session goes on in another process", async () => {
    const holder = ada();
    await holder.write("a.txt");
    const first = harnessProcess();
    await block(bob({ pid: first.pid }));
    await bob({ pid: first.pid }).send("failure");
    expect(repo.log().at(-1)).toMatchObject({ event_type: "contention.ended", payload: { how: "failed" } });
    await first.kill();
    const resumed = bob();
    expect(reasonOf(await resumed.write("a.txt"))).toContain("waiting_for_instruction");
    expect(await reported()).toMatchObject([{ agent_id: resumed.agentId, ended: false }]);
    expect(toldIn(await holder.write("a.txt"))).toContain(`${resumed.agentId} waits for a.txt`);
    const size = repo.logText().length;
    reasonOf(await resumed.write("a.txt"));
    expect(repo.logText()).toHaveLength(size);
    await holder.send("end");
    expect(await resumed.write("a.txt")).toEqual(SILENT);
    expect(await reported()).toEqual([]);
  });

  it("of a subagent is kept when that has finished, though its session goes on", async () => {
    const holder = ada();
    await holder.write("a.txt");
    const pid = harnessProcess().pid;
    const child = bob({ pid, subagent: "fedcba98-7" });
    await block(child);
    await child.send("done");
    expect(await reported()).toMatchObject([{ agent_id: `${bob().agentId}.fedcba98`, ended: true }]);
    await holder.send("end");
    expect(await reported()).toEqual([]);
  });
});

describe("a command over a directory in which somebody holds files", () => {
  const REMOVE = "rm -r sub";
  const cyd = () => new GuardedAgent(repo, { session: "cccccccc-3", clock });
  beforeEach(async () => {
    for (const file of ["sub/b.txt", "sub/deep/c.txt", "sub/d.txt"]) repo.write(file, "one\n");
    repo.git("add", "sub");
    repo.git("commit", "--quiet", "--message", "second");
  });

  /** Denied, and denied again at the retry. */
  async function blockRemoval(): Promise<string> {
    reasonOf(await bob().shell(REMOVE));
    clock.aheadMs += 180_000;
    return reasonOf(await bob().shell(REMOVE));
  }

  it("is refused with the file that is held, and the directory that was asked for", async () => {
    await ada().write("sub/b.txt");
    const said = [await bob().shell(REMOVE), await bob().shell(REMOVE)].map(reasonOf);
    for (const reason of said) expect(reason).toContain(`sub/b.txt (in sub) is held by ${ada().agentId}`);
    clock.aheadMs += 180_000;
    const stopped = reasonOf(await bob().shell(REMOVE));
    expect(stopped).toContain(`sub/b.txt (in sub) is still held by ${ada().agentId}`);
    expect(stopped).toContain('"blocked_file":"sub/b.txt"');
  });

  it("has the held file, not the directory, in every report", async () => {
    await ada().write("sub/b.txt");
    await blockRemoval();
    expect((await repo.ask("human:h", "guard", "report")).data).toMatchObject({
      reports: [{ blocked_file: "sub/b.txt", owner: ada().agentId }],
      blocked: [{ blocked_file: "sub/b.txt", wanted: "sub", agent_id: bob().agentId }],
    });
    const shown = (await repo.run("human:h", "guard", "report")).stdout;
    expect(shown).toContain(`sub/b.txt (in sub): ${bob().agentId} waits for instruction`);
    expect((await repo.run("human:h", "guard", "status")).stdout).toContain("sub/b.txt (in sub)");
    expect((await repo.ask("human:h", "status")).data["needs_a_person"]).toMatchObject([
      {
        message: `${bob().agentId} waits for instruction: sub/b.txt (in sub) is held by ${ada().agentId}`,
      },
    ]);
    expect(toldIn(await ada().write("sub/b.txt"))).toContain(
      `${bob().agentId} waits for sub/b.txt (in sub), which you hold`,
    );
    for (const named of ["sub", "sub/b.txt"])
      expect((await repo.ask("human:h", "guard", "retry", named)).error, named).toMatchObject({
        code: "E_BLOCKED",
        message: `sub/b.txt (in sub) is still held by ${ada().agentId}`,
        data: { reports: [{ blocked_file: "sub/b.txt" }] },
      });
    const next = /run 'cotenant (guard retry .+)'/.exec(shown)![1]!.split(" ");
    expect((await repo.ask("human:h", ...next)).error.code).toBe("E_BLOCKED");
    await ada().send("end");
    expect((await repo.run("human:h", ...next)).stdout).toContain(`sub is free: tell ${bob().agentId}`);
  });

  it("names all files that are held, and everybody who holds one", async () => {
    await ada().write("sub/b.txt", "sub/deep/c.txt");
    await cyd().write("sub/d.txt");
    const reason = await blockRemoval();
    expect(reason).toContain(
      `sub/b.txt, sub/d.txt, sub/deep/c.txt (in sub) are still held by ${ada().agentId} and ${cyd().agentId}`,
    );
    const { data } = await repo.ask("human:h", "guard", "report");
    expect(data["reports"]).toMatchObject([
      { blocked_file: "sub/b.txt", owner: ada().agentId },
      { blocked_file: "sub/d.txt", owner: cyd().agentId },
      { blocked_file: "sub/deep/c.txt", owner: ada().agentId },
    ]);
    for (const holder of [ada(), cyd()])
      expect(toldIn(await holder.send("prompt"))).toMatch(/waits for .*\(in sub\), which you hold/);
    // One of them has gone; the other is in the way.
    await ada().send("end");
    expect((await repo.ask("human:h", "guard", "report")).data["reports"]).toMatchObject([
      { blocked_file: "sub/d.txt", owner: cyd().agentId },
    ]);
  });
});
