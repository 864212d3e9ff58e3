import { describe, expect, it } from "vitest";
import type { SimProcess } from "../../testing/simulator";
import { enter, enterAs, operationsSince, type Party, quietWorld, range } from "../store/stage";

const turn = () => new Promise((resolve) => setImmediate(resolve));

interface Waiter {
  readonly party: Party;
  readonly process: SimProcess;
  readonly done: ReturnType<Party["acquire"]>;
}

/** A lease, and waiters for what it keeps from them, each with its ticket. */
async function queued(holds: string, wants: readonly string[], options = {}) {
  const world = quietWorld(1, options);
  const holder = enter(world, "agent:h");
  await holder.acquire(holds, { ttlSecs: 86_400 });
  const waiters: Waiter[] = [];
  for (const [i, wanted] of wants.entries()) {
    const { party, process } = enterAs(world, `agent:${i}`);
    const done = party.acquire(wanted, { wait: { timeoutMs: 600_000 }, ttlSecs: 86_400 });
    done.catch(() => {});
    while ((await holder.coordinator.waiters()).length <= i) await turn();
    waiters.push({ party, process, done });
  }
  return { world, holder, waiters };
}

const told = async (party: Party) =>
  (await party.coordinator.waiters())
    .filter(({ freeSince }) => freeSince !== null)
    .map(({ number }) => number);

describe("a release wakes", () => {
  it("the one whose turn it is, and nobody else", async () => {
    const { world, holder, waiters } = await queued(
      "file:x",
      range(20).map(() => "file:x"),
    );
    for (const { process } of waiters) world.pause(process);
    expect(await told(holder)).toEqual([]);
    await holder.release("file:x");
    expect(await told(holder)).toEqual([1]);
  });

  it("all who may go at once, and none who is behind one of them", async () => {
    const wants = ["file:d/x", "file:d/y", "file:d/x", "dir:d", "file:d/z"];
    const { world, holder, waiters } = await queued("dir:d", wants);
    for (const { process } of waiters) world.pause(process);
    await holder.release("dir:d");
    expect(await told(holder)).toEqual([1, 2]);
  });

  it("in the ticket that is there: whoever watches it would not see another one", async () => {
    const { world, holder, waiters } = await queued("file:x", ["file:x"]);
    const { files } = holder.platform;
    const inode = async () => (await files.stat(holder.store.queue.path(1)))!.inode;
    const before = await inode();
    world.pause(waiters[0]!.process);
    await holder.release("file:x");
    expect([await told(holder), await inode()]).toEqual([[1], before]);
  });

  it("nobody to look through the queue: those behind are left alone", async () => {
    const { world, holder, waiters } = await queued(
      "file:x",
      range(20).map(() => "file:x"),
    );
    const last = world.trace.entries().at(-1)!.step;
    await holder.release("file:x");
    await waiters[0]!.done;
    const since = operationsSince(world, last);
    expect(since.filter((what) => /^readDirectory .*\/queue/.test(what)).length).toBeLessThan(8);
    // By whoever released it and by whoever got it, in their critical sections; not by the last in line.
    const ofTheLast = since.filter((what) => what.startsWith(`readFile ${holder.store.queue.path(20)}`));
    expect(ofTheLast.length).toBe(2);
  });

  it("whoever was behind a waiter that gives up, at once", async () => {
    const world = quietWorld();
    const [h, g] = [enter(world, "agent:h"), enter(world, "agent:g")];
    await h.acquire("file:x");
    await g.acquire("file:y");
    const enough = new AbortController();
    const both = enter(world, "agent:a").acquire(["file:x", "file:y"], {
      wait: { timeoutMs: 600_000, signal: enough.signal },
    });
    both.catch(() => {});
    await turn();
    const behind = enter(world, "agent:b").acquire("file:x", { wait: { timeoutMs: 600_000 } });
    await turn();
    await h.release("file:x");
    const beforeMs = world.monotonicMs;
    enough.abort();
    expect((await behind).leases[0]!.agentId).toBe("agent:b");
    expect(world.monotonicMs - beforeMs).toBeLessThan(500);
  });
});

describe("a waiter that hears of nothing", () => {
  it("finds out by itself when nothing can be watched", async () => {
    const { world, holder, waiters } = await queued("file:x", ["file:x", "file:x"], { isOutOfWatches: true });
    const beforeMs = world.monotonicMs;
    await holder.release("file:x");
    await waiters[0]!.done;
    expect(world.monotonicMs - beforeMs).toBeLessThan(500);
    await waiters[0]!.party.release("file:x");
    await waiters[1]!.done;
    expect(world.monotonicMs - beforeMs).toBeLessThan(1_500);
  });

  it("finds out by itself when every wake-up is lost", async () => {
    const wants = ["file:x", "file:x", "file:x"];
    const { world, holder, waiters } = await queued("file:x", wants, { watchDropProbability: 1 });
    const beforeMs = world.monotonicMs;
    await holder.release("file:x");
    for (const { done, party } of waiters) {
      await done;
      await party.release("file:x");
    }
    expect(world.monotonicMs - beforeMs).toBeLessThan(4_000);
  });

  it("is not stranded behind two in a row that are stopped", async () => {
    const { world, holder, waiters } = await queued("file:x", ["file:x", "file:x", "file:x"]);
    for (const { process } of waiters.slice(0, 2)) world.pause(process);
    const beforeMs = world.monotonicMs;
    await holder.release("file:x");
    await waiters[2]!.done;
    expect(world.monotonicMs - beforeMs).toBeLessThan(20_000);
    await waiters[2]!.party.release("file:x");
    for (const { process } of waiters.slice(0, 2)) world.resume(process);
    for (const { done, party } of waiters.slice(0, 2)) {
      await done;
      await party.release("file:x");
    }
  });

  it("passes over those before it that are dead", async () => {
    const { world, holder, waiters } = await queued("file:x", ["file:x", "file:x", "file:x"]);
    await holder.release("file:x");
    for (const { process } of waiters.slice(0, 2)) world.kill(process);
    const beforeMs = world.monotonicMs;
    await waiters[2]!.done;
    expect(world.monotonicMs - beforeMs).toBeLessThan(7_000);
  });
});

it("a wait for a lease does not end because the store is busy", async () => {
  const world = quietWorld();
  const holder = enter(world, "agent:h");
  await holder.acquire("file:x");
  const waiting = enter(world, "agent:a", { busyTimeoutMs: 1_000 }).acquire("file:x", {
    wait: { timeoutMs: 60_000 },
  });
  await turn();
  const sitter = enter(world, "agent:s");
  await sitter.store.hold(sitter.logActor, () => sitter.platform.timers.sleep(25_000).done);
  await holder.release("file:x");
  expect((await waiting).leases[0]!.agentId).toBe("agent:a");

  const late = enter(world, "agent:b", { busyTimeoutMs: 1_000 });
  const stuck = sitter.store.hold(sitter.logActor, () => sitter.platform.timers.sleep(25_000).done);
  const outcome = late.acquire("file:x", { wait: { timeoutMs: 5_000 } });
  await expect(outcome).rejects.toMatchObject({ code: "E_WAIT_TIMEOUT" });
  await stuck;
});
