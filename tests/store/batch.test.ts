import { describe, expect, it } from "vitest";
import type { Place } from "../../src/store/queue-admission";
import {
  acquireRequest,
  CONTROL,
  codeOf,
  encode,
  enter,
  enterAs,
  freshId,
  history,
  holding,
  key,
  LOG,
  logLines,
  operationsSince,
  type Party,
  place,
  quietWorld,
  range,
  sha256,
  submission,
} from "./stage";

/** Several parties whose calls share one store, hence one critical section and one sync. */
function together(seed: number, ...agents: string[]) {
  const world = quietWorld(seed);
  const { party: first, process } = enterAs(world, agents[0]!);
  const rest = agents.slice(1).map((agent) => enterIn(first, agent));
  return { world, process, parties: [first, ...rest] };

  function enterIn(host: Party, agent: string): Party {
    return enter(world, agent, { store: host.store });
  }
}

const codes = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.map((r) => (r.status === "fulfilled" ? "ok" : (r.reason as { code: string }).code));

describe("calls that come together", () => {
  it("share one critical section, one write and one sync", async () => {
    const { world, parties } = together(1, ...range(20).map((i) => `agent:a${i}`));
    await parties[0]!.acquire("resource:warm");
    const before = world.trace.step;
    await Promise.all(parties.map((p, i) => p.coordinator.acquire(acquireRequest(p, `resource:r${i}`))));
    const done = operationsSince(world, before);
    const count = (prefix: string) => done.filter((what) => what.startsWith(prefix)).length;
    expect([count(`append ${LOG}`), count(`datasync`), count("tryLock")]).toEqual([1, 1, 1]);
    expect(logLines(world).length).toBe(22);
  });

  it("exclude each other: one winner", async () => {
    const { world, parties } = together(1, ...range(20).map((i) => `agent:a${i}`));
    const results = await Promise.allSettled(
      parties.map((p) => p.coordinator.acquire(acquireRequest(p, "resource:r"))),
    );
    expect(codes(results).filter((c) => c === "ok").length).toBe(1);
    expect(new Set(codes(results))).toEqual(new Set(["ok", "E_LOCK_CONFLICT"]));
    expect(logLines(world).length).toBe(2);
  });

  it("with one request id have the effect of one", async () => {
    const { world, parties } = together(1, "agent:a");
    const [a] = parties as [Party];
    const requestId = freshId(a.platform);
    const request = acquireRequest(a, "resource:r", { requestId });
    const [first, second] = await Promise.all([
      a.coordinator.acquire(request),
      a.coordinator.acquire(request),
    ]);
    expect(first).toMatchObject({ changed: true, replayed: false });
    expect(second).toMatchObject({ changed: false, replayed: true, leases: first.leases });
    expect(logLines(world).length).toBe(2);
  });

  it("fail together when nothing can be written, and leave no trace", async () => {
    for (const seed of range(20)) {
      const { world, parties } = together(seed, "agent:a", "agent:b", "agent:c");
      await parties[0]!.acquire("resource:warm");
      const before = world.disk.peek(LOG);
      world.faults.add({ code: "ENOSPC", operations: ["append"], path: (path) => path === LOG });
      const results = await Promise.allSettled(
        parties.map((p, i) => p.coordinator.acquire(acquireRequest(p, `resource:r${i}`))),
      );
      expect(codes(results)).toEqual(["E_DISK", "E_DISK", "E_DISK"]);
      expect(world.disk.peek(LOG)).toEqual(before);
      world.faults.clear();
      // The simulated disk may owe one more ENOSPC for the write it cut short.
      await parties[0]!.coordinator.acquire(acquireRequest(parties[0]!, "resource:r0")).catch(() => {});
      const step = world.trace.step;
      await parties[1]!.coordinator.acquire(acquireRequest(parties[1]!, "resource:r1"));
      // A full disk is no reason to build the index anew, with what little room there may be.
      expect(operationsSince(world, step).filter((what) => what.startsWith(`read ${LOG}`))).toEqual([]);
    }
  });

  it("fail together, and one that had queued behind another of them leaves no place behind", async () => {
    for (const seed of range(20)) {
      const { world, parties } = together(seed, "agent:a", "agent:b", "agent:c");
      const [a, b, c] = parties as [Party, Party, Party];
      await a.acquire("resource:warm");
      world.faults.add({ code: "ENOSPC", operations: ["append"], path: (path) => path === LOG });
      const results = await Promise.allSettled([
        a.store.submit(submission(a, acquireRequest(a, "resource:r"))),
        b.store.submit(submission(b, acquireRequest(b, "resource:r"), place(b))),
      ]);
      expect(codes(results)).toEqual(["E_DISK", "E_DISK"]);
      world.faults.clear();
      expect(await c.coordinator.waiters(), `seed ${seed}`).toEqual([]);
    }
  });

  it("are told that the outcome is unknown when part of a failed write could not be taken back", async () => {
    let known = 0;
    let unknown = 0;
    for (const seed of range(30)) {
      const { world, parties } = together(seed, "agent:a", "agent:b", "agent:c");
      await parties[0]!.acquire("resource:warm");
      world.faults.add({ code: "ENOSPC", operations: ["append"], path: (path) => path === LOG, times: 1 });
      world.faults.add({ code: "EIO", operations: ["truncate"], path: (path) => path === LOG });
      const results = await Promise.allSettled(
        parties.map((p, i) => p.coordinator.acquire(acquireRequest(p, `resource:r${i}`))),
      );
      world.faults.clear();
      const after = enter(world, "agent:z");
      await after.acquire("resource:after");
      const held = (await after.coordinator.list()).map(({ lease }) => lease.key);
      for (const [i, result] of results.entries()) {
        if (result.status === "fulfilled") continue;
        const error = result.reason as { code: string; data: { outcome?: string } };
        expect(error.code).toBe("E_DISK");
        if (error.data.outcome === "unknown") unknown++;
        else {
          known++;
          expect(held, `seed ${seed}`).not.toContain(`resource:r${i}`);
        }
      }
    }
    expect(known).toBeGreaterThan(0);
    expect(unknown).toBeGreaterThan(0);
  });

  it("are refused at once where they are refused, whatever becomes of the sync", async () => {
    const { world, parties } = together(1, "agent:a", "agent:b", "agent:c");
    const [a, b, c] = parties as [Party, Party, Party];
    await a.acquire("resource:held");
    world.faults.add({ code: "EIO", operations: ["datasync", "datasyncInBackground", "sync"] });
    const results = await Promise.allSettled([
      b.coordinator.acquire(acquireRequest(b, "resource:free")),
      c.coordinator.acquire(acquireRequest(c, "resource:held")),
    ]);
    expect(codes(results)).toEqual(["E_DISK", "E_LOCK_CONFLICT"]);
  });

  /** A batch whose second call meets a damaged index, after the first has had its effect on the queue. */
  async function damagedHalfWay() {
    const made = together(1, "agent:a", "agent:b", "agent:c");
    const [a, b, c] = made.parties as [Party, Party, Party];
    await a.acquire(["resource:held", "resource:other"]);
    made.world.disk.install(`${CONTROL}/index/resource/other/meta.json`, encode("rubbish"));
    return { ...made, a, b, c };
  }

  it("do not take their effect on the queue twice when the index turns out damaged", async () => {
    const { a, b, c } = await damagedHalfWay();
    const [waiting, other] = await Promise.all([
      b.store.submit(submission(b, acquireRequest(b, "resource:held"), place(b))),
      c.store.submit(submission(c, acquireRequest(c, "resource:other"))),
    ]);
    expect(waiting).toMatchObject({ done: false, queue: { ahead: 0 } });
    expect(other).toMatchObject({ done: false, refusal: { code: "E_LOCK_CONFLICT" } });
    expect((await a.coordinator.waiters()).length).toBe(1);
    await b.store.leaveQueue((waiting as { queue: Place }).queue, b.logActor, b.coordinator.policy);
    expect((await a.coordinator.waiters()).length).toBe(0);
  });

  it("keep their place in the queue when the index turns out damaged", async () => {
    const { world, a, b, c } = await damagedHalfWay();
    const request = acquireRequest(b, "resource:held");
    const joined = await b.store.submit(submission(b, request, place(b)));
    await enter(world, "agent:d").store.submit(
      submission(enter(world, "agent:d"), acquireRequest(c, "resource:held"), place(c)),
    );
    await a.release("resource:held");
    const [granted] = await Promise.all([
      b.store.submit(submission(b, request, (joined as { queue: Place }).queue)),
      c.store.submit(submission(c, acquireRequest(c, "resource:other"))),
    ]);
    expect(granted).toMatchObject({ done: true });
  });

  it("are not done after they were reported to have failed", async () => {
    const { world, b, c } = await damagedHalfWay();
    // The first call fails on one bad read; the second meets the damage and has everything decided anew.
    world.faults.add({
      code: "EIO",
      operations: ["readDirectory"],
      path: (path) => path === `${CONTROL}/queue`,
      times: 1,
    });
    const results = await Promise.allSettled([
      b.coordinator.acquire(acquireRequest(b, "resource:new")),
      c.coordinator.acquire(acquireRequest(c, "resource:other")),
    ]);
    expect(codes(results)).toEqual(["E_DISK", "E_LOCK_CONFLICT"]);
    expect(logLines(world).length).toBe(2);
  });
});

describe("what a reader sees of a write that is taken back", () => {
  it("is never acknowledged as held", async () => {
    const world = quietWorld();
    const { party: a, process } = enterAs(world, "agent:a");
    const b = enter(world, "agent:b", { store: a.store });
    await a.acquire("resource:warm");
    const { files } = process.platform;
    const append = files.append.bind(files);
    const onlooker = enter(world, "agent:a");
    let answer: unknown = "not asked";
    files.append = async (fd, data) => {
      if (!new TextDecoder().decode(data).includes("claim.acquired")) return append(fd, data);
      // The first of two lines reaches the disk, the second does not.
      const firstLine = data.indexOf(10) + 1;
      await append(fd, data.subarray(0, firstLine));
      const { secrets } = request;
      answer = await onlooker.coordinator.held({ ...request, secrets });
      throw Object.assign(new Error("full"), { code: "ENOSPC" });
    };
    const secret = "the secret";
    const request = acquireRequest(a, "resource:r", { secretHash: sha256(secret), secrets: [secret] });
    const results = await Promise.allSettled([
      a.coordinator.acquire(request),
      b.coordinator.acquire(acquireRequest(b, "resource:s")),
    ]);
    expect(codes(results)).toEqual(["E_DISK", "E_DISK"]);
    expect(answer).toBe(null);
  });
});

it("an acquire of 1,000 keys is one line, and so is their release", async () => {
  const world = quietWorld();
  const a = enter(world, "agent:a");
  const keys = range(1_000).map((i) => `file:d${i % 10}/f${i}`);
  const { leases } = await a.acquire(keys);
  expect(leases.length).toBe(1_000);
  await a.coordinator.release({ ...(await holding(a, ...keys)), reason: null });
  expect(logLines(world).length).toBe(3);
  expect(await a.coordinator.list()).toEqual([]);
  expect(await codeOf(a.acquire(range(1_001).map((i) => `file:x${i}`)))).toBe("E_LIMIT");
  expect((await history(a)).map((event) => event.type)).toEqual(["claim.acquired", "claim.released"]);
  expect(key("file:d0/f0")).toBe("file:d0/f0");
});
