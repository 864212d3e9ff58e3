import { beforeEach, describe, expect } from "vitest";
import { GuardedAgent, reasonOf, TestClock } from "../support/guard";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write("a.txt");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
});

const escalateAfter = (secs: number) =>
  repo.write(".cotenant/config.toml", `[coordination]\nescalate_after_secs = ${secs}\n`);
const escalations = () => repo.log().filter(({ event_type: type }) => type === "lease.escalated");
const findings = async () => {
  const { needs_a_person: all } = (await repo.askHere("human:ada", "status")).data;
  return (all as { code: string; message: string; next: string }[]).filter(
    ({ code }) => code === "lease_escalated",
  );
};
const wait = (agent: string, ...keys: string[]) =>
  repo.start(agent, ["lock", "acquire", ...keys, "--wait", "--timeout", "60"]);
const seconds = (secs: number) => new Promise((resolve) => setTimeout(resolve, secs * 1000));

describe("coordination.escalate_after_secs", () => {
  it("puts a lease that is held and waited for among what needs a person, and on record once", async () => {
    escalateAfter(2);
    const { lease } = await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    expect(await findings()).toEqual([]);
    const waiters = ["b", "c", "d", "e"].map((name) => wait(`agent:${name}`, "a.txt"));
    for (const waiter of waiters) await until("it waits", () => waiter.stderr.includes("waiting as"));
    await until("it is on record", () => escalations().length > 0);
    // Long enough for everybody else to have noticed, too.
    await seconds(6);
    expect(escalations()).toHaveLength(1);
    expect(escalations()[0]!.payload).toMatchObject({
      lease_id: lease.lease_id,
      key: "file:a.txt",
      agent_id: "agent:a",
      held_since: lease.acquired_at,
    });
    const { stdout: told } = await repo.run("human:ada", "events", "--type", "lease.escalated");
    expect(told).toMatch(
      /lease\.escalated +agent:[bcde] +file:a\.txt {2}held by agent:a since \S+Z {2}agent:[bcde](?: and \d others?)? wait(?:s|ed)? since \S+Z\n$/,
    );
    const before = repo.logText();
    const [found, ...others] = await findings();
    expect(others).toEqual([]);
    expect(found!.message).toMatch(
      /^agent:a has held file:a\.txt since \S+; agent:[bcde] and 3 others have waited for it since \S+ \(\d+s\)$/,
    );
    expect(repo.logText()).toBe(before);
    const command = /or end it: (cotenant .*)$/.exec(found!.next)?.[1];
    expect(command).toBe(`cotenant claim force-evict ${lease.lease_id} --reason <why>`);
    const ended = await repo.run("human:ada", "claim", "force-evict", lease.lease_id, "--reason", "…");
    expect(ended.status).toBe(0);
    await until("somebody got it", () => repo.logOf("file:a.txt").length > 2);
    for (const waiter of waiters) waiter.kill("SIGKILL");
    await Promise.all(waiters.map(({ done }) => done));
    expect(await findings()).toEqual([]);
    await repo.prepare("agent:a", "gc");
    expect(repo.log().map(({ event_type: type }) => type)).toContain("lease.settled");
  });

  it("counts an agent that the guard has denied, which puts it on record at its next attempt", async () => {
    escalateAfter(100);
    const clock = new TestClock();
    const agent = (session: string) => new GuardedAgent(repo, { session, clock });
    const holder = agent("aaaaaaaa-1");
    await holder.write("a.txt");
    const denied = agent("bbbbbbbb-2");
    await denied.write("a.txt");
    expect(escalations()).toEqual([]);
    clock.aheadMs = 120_000;
    for (let i = 0; i < 3; i++) expect(reasonOf(await denied.write("a.txt"))).toContain("too early");
    expect(escalations()).toHaveLength(1);
    expect(escalations()[0]!.payload).toMatchObject({
      agent_id: holder.agentId,
      waiting: [{ agent_id: denied.agentId }],
    });
  });

  it("is put on record by gc where nobody else has come by, once", async () => {
    escalateAfter(30);
    const issue = await repo.issue();
    await repo.prepare("agent:a", "claim", "acquire", issue, "--ttl", "7200");
    const waiter = repo.start("agent:b", ["claim", "acquire", issue, "--wait", "--timeout", "7200"]);
    await until("it waits", () => waiter.stderr.includes("waiting as number 1"));
    for (let i = 0; i < 2; i++) expect((await repo.askAt(60, "agent:c", "gc")).status).toBe(0);
    expect(escalations()).toHaveLength(1);
    const { needs_a_person: found } = (await repo.askAt(60, "human:ada", "status")).data;
    expect(found).toMatchObject([
      { code: "lease_escalated", next: expect.stringContaining(`claim force-evict ${issue} --reason <why>`) },
    ]);
    waiter.kill("SIGKILL");
    await waiter.done;
  });

  it("is off by default", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.txt", "--ttl", "7200");
    const waiter = repo.start("agent:b", ["lock", "acquire", "a.txt", "--wait", "--timeout", "7200"]);
    await until("it waits", () => waiter.stderr.includes("waiting as number 1"));
    await repo.askAt(3_600, "agent:c", "gc");
    expect(escalations()).toEqual([]);
    const { needs_a_person: found } = (await repo.askAt(3_600, "human:ada", "status")).data;
    expect(found).toMatchObject([{ code: "waits_long" }]);
    waiter.kill("SIGKILL");
    await waiter.done;
  });
});
