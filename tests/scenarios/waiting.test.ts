import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { type Ran, type Running, until } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

const range = (count: number) => [...Array(count).keys()];
let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

interface Waiter {
  readonly agent_id: string;
  readonly number: number;
}

const lock = (agent: string, ...args: string[]) => repo.ask(agent, "lock", "acquire", ...args);
/** Who holds it first: without a process, as what is done around those that wait. */
const hold = (agent: string, ...args: string[]) => repo.prepare(agent, "lock", "acquire", ...args);
const release = (agent: string, ...args: string[]) => repo.prepare(agent, "lock", "release", ...args);
const waiting = async () => {
  const { waiters } = await repo.prepare("agent:looks", "lock", "status");
  return (waiters as Waiter[]).map(({ agent_id }) => agent_id);
};

/** A process that waits, once its ticket is there and it has said so. */
async function waiter(agent: string, ...what: string[]): Promise<Running> {
  const process = repo.start(agent, ["lock", "acquire", ...what, "--wait", "--timeout", "100", "--json"]);
  await until(`${agent} waits`, async () => (await waiting()).includes(agent));
  await until(`${agent} says so`, async () => process.stderr.includes("waiting as number"));
  return process;
}

describe("S47: waiting", () => {
  it("serves waiters in order, and shows each its position", async () => {
    await hold("agent:a", "a.ts");
    const names = ["agent:w1", "agent:w2", "agent:w3"];
    const waiters: Running[] = [];
    for (const name of names) waiters.push(await waiter(name, "a.ts"));
    expect(await waiting()).toEqual(names);
    for (const [i, { stderr }] of waiters.entries()) expect(stderr).toContain(`waiting as number ${i + 1}`);

    await release("agent:a", "a.ts");
    for (const [i, name] of names.entries()) {
      const { lease } = await waiters[i]!.done;
      expect(lease.agent_id).toBe(name);
      expect(await waiting()).toEqual(names.slice(i + 1));
      await release(name, "a.ts");
    }
    const granted = repo
      .logOf("file:a.ts")
      .filter((line) => line.event_type === "claim.acquired")
      .map((line) => line.actor.agent_id);
    expect(granted).toEqual(["agent:a", ...names]);
  });

  it("passes a killed waiter's turn on", async () => {
    await hold("agent:a", "a.ts");
    const first = await waiter("agent:w1", "a.ts");
    const second = await waiter("agent:w2", "a.ts");
    first.kill("SIGKILL");
    await first.done;
    expect(await waiting()).toEqual(["agent:w2"]);
    await release("agent:a", "a.ts");
    expect((await second.done).lease.agent_id).toBe("agent:w2");
  });

  it("passes a stopped waiter's turn on, which then waits again", async () => {
    await hold("agent:a", "a.ts");
    const first = await waiter("agent:w1", "a.ts");
    const second = await waiter("agent:w2", "a.ts");
    first.kill("SIGSTOP");
    await release("agent:a", "a.ts");
    // It is free, and still the stopped one's: neither the next waiter nor anybody else may take it at once.
    expectJsonRefused(await lock("agent:c", "a.ts"), 1, "E_QUEUED");

    const { lease } = await second.done;
    expect(lease.agent_id).toBe("agent:w2");
    first.kill("SIGCONT");
    expectJsonRefused(await lock("agent:c", "a.ts"), 1, "E_LOCK_CONFLICT");
    await release("agent:w2", "a.ts");
    expect((await first.done).lease.fencing_token).toBeGreaterThan(lease.fencing_token);
  });

  it("ends with 12 and the position when the time is up", async () => {
    await hold("agent:a", "a.ts");
    await waiter("agent:w1", "a.ts");
    const timedOut = await lock("agent:b", "a.ts", "--wait", "--timeout", "1");
    expectJsonRefused(timedOut, 12, "E_WAIT_TIMEOUT");
    expect(timedOut.error.message).not.toContain("s left)");
    expect(timedOut.error.data).toMatchObject({ position: 2 });
    expect(timedOut.error.message).toMatch(/number 2 in the queue.*agent:a/);
    expect(await waiting()).toEqual(["agent:w1"]);

    const atOnce = await repo.run(
      "agent:b",
      "lock",
      "acquire",
      "a.ts",
      "--wait",
      "--timeout",
      "0",
      "--quiet",
    );
    expectRefused(atOnce, 12, "E_WAIT_TIMEOUT");
  });

  it("ends the wait at the holder's expiry and at its eviction", async () => {
    await hold("agent:a", "a.ts", "--ttl", "3");
    // Whoever comes to wait only after that gets it in the same way.
    const first = await lock("agent:w1", "a.ts", "--wait", "--timeout", "100");
    expect(first.lease.stole_from).toEqual([expect.objectContaining({ why: "expired" })]);

    const id = await repo.issue();
    await repo.prepare("agent:a", "claim", "acquire", id);
    const second = repo.start("agent:w2", ["claim", "acquire", id, "--wait", "--timeout", "100", "--json"]);
    await until("it waits", async () => (await waiting()).includes("agent:w2"));
    await repo.prepare("human:ada", "claim", "force-evict", id, "--reason", "r");
    expect((await second.done).lease.agent_id).toBe("agent:w2");
  });

  it("queues per conflicting key set: a directory waits for its files, others pass by", async () => {
    await hold("agent:a", "src/a.ts");
    const directory = await waiter("agent:w1", "--dir", "src");
    expectJsonRefused(await lock("agent:b", "src/b.ts"), 1, "E_QUEUED");
    await hold("agent:b", "lib/b.ts");
    expect((await lock("agent:a", "src/c.ts")).status, "a ticket does not bind whom it waits for").toBe(0);
    await release("agent:a", "src/a.ts", "src/c.ts");
    expect((await directory.done).lease.key).toBe("dir:src");
  });

  it.each(["SIGINT", "SIGTERM"] as const)(
    "%s ends it as such, and the place in the queue is given up",
    async (signal) => {
      await hold("agent:a", "a.ts");
      await repo.prepare("agent:a", "worktree", "lock");
      const ends = async (waits: Running) => {
        waits.kill(signal);
        const ended = await waits.done;
        expect(ended.status, "by the signal itself").toBe(null);
        expect(ended.json.error?.code).toBe("E_INTERRUPTED");
        expect(ended.stderr).toMatch(/^cotenant: interrupted /m);
        expect(await waiting()).toEqual([]);
      };
      await ends(await waiter("agent:w1", "a.ts"));
      const locks = repo.start("agent:w2", ["worktree", "lock", "--wait", "--json"]);
      await until("it waits", async () => (await waiting()).length === 1);
      await ends(locks);
      const next = repo.start("agent:w3", ["claim", "next", "--wait", "--json"]);
      await until("it waits", async () => next.stderr.includes("waiting"));
      await ends(next);
    },
  );
});

describe("S84: a crowd of waiters for one key", () => {
  it("each gets it once, in order, and none fails, nor does the holder's release", async () => {
    const crowd = range(36).map((i) => `agent:w${i}`);
    // What is told of a store that is busy comes soon, if at all.
    const env = { COTENANT_STORE_BUSY_TIMEOUT_SECS: "1" };
    const words = ["lock", "acquire", "a.ts", "--wait", "--timeout", "600", "--json"];
    await hold("agent:a", "a.ts");
    const waiters = new Map(
      crowd.map((agent) => [agent, repo.start(agent, words, { env, mostMs: 120_000 })]),
    );
    const ended: Ran[] = [];
    for (const { done } of waiters.values()) void done.then((ran) => ended.push(ran));
    let order: string[] = [];
    await until(
      "all wait, or one has failed",
      async () => {
        order = await waiting();
        return ended.length > 0 || order.length === crowd.length;
      },
      120_000,
    );
    expect(ended.map(({ stdout }) => stdout)).toEqual([]);

    expect((await repo.ask("agent:a", "lock", "release", "a.ts")).status).toBe(0);
    for (const agent of order) {
      expect((await waiters.get(agent)!.done).lease.agent_id).toBe(agent);
      await release(agent, "a.ts");
    }
    const granted = repo.logOf("file:a.ts").filter((line) => line.event_type === "claim.acquired");
    expect(granted.map((line) => line.actor.agent_id)).toEqual(["agent:a", ...order]);
  }, 240_000);
});
