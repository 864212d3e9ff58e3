import { describe, expect, it } from "vitest";
import { makeUlid, type Ulid } from "../../src/kernel/ids";
import { tidy } from "../../src/store/housekeeping";
import {
  acquireRequest,
  codeOf,
  damageLine,
  enter,
  freshId,
  history,
  holding,
  type Party,
  quietWorld,
  range,
  sha256,
  submission,
} from "./stage";

const HOUR = 3_600_000;

async function onceIn(party: Party, requestId: Ulid): Promise<number> {
  const events = await history(party);
  return events.filter(({ payload }) => payload["request_id"] === requestId).length;
}

const compact = (party: Party) => tidy(party.store, party.logActor, { compact: true, flatIndex: {} });

describe("a request id", () => {
  it("is refused for other keys, and for other leases, than it was used with", async () => {
    const world = quietWorld();
    const a = enter(world, "human:a");
    await a.acquire(["resource:one", "resource:two"]);
    const [one, two] = [await holding(a, "resource:one"), await holding(a, "resource:two")];
    const id = () => freshId(a.platform);
    const twice = [
      (requestId: Ulid, which: number) =>
        a.coordinator.acquire(acquireRequest(a, `resource:new${which}`, { requestId })),
      (requestId: Ulid, which: number) =>
        a.coordinator.renew({
          ...[one, two][which]!,
          requestId,
          ttlSecs: 900,
          overrideMax: false,
          reason: null,
        }),
      (requestId: Ulid, which: number) => a.coordinator.heartbeat({ ...[one, two][which]!, requestId }),
      (requestId: Ulid, which: number) =>
        a.coordinator.release({ ...[one, two][which]!, requestId, reason: null }),
    ];
    for (const act of twice) {
      const requestId = id();
      expect((await act(requestId, 0)).changed).toBe(true);
      expect(await codeOf(act(requestId, 1))).toBe("E_USAGE");
      expect((await act(requestId, 0)).replayed).toBe(true);
    }
  });

  it("is remembered for longer than it is accepted: who was let in last may still be waiting for the mutex", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const requestId = freshId(a.platform);
    const request = acquireRequest(a, "resource:one", { requestId });
    await a.coordinator.acquire(request);
    await a.release("resource:one").catch(() => {});
    world.advance(24 * HOUR - 1_000);
    // It was accepted a second before it became too old; the log starts over before it gets in.
    const late = submission(a, request);
    world.advance(600_000);
    await compact(a);
    for (const path of world.disk.paths()) if (/\/archive\/./.test(path)) await a.platform.files.unlink(path);
    expect(await a.store.submit(late)).toMatchObject({ done: true, replayed: true });
  });

  it("answers whoever never heard of its release with what was released, however often the log began anew", async () => {
    const world = quietWorld();
    const a = enter(world, "human:a");
    await a.acquire(["resource:one"]);
    const released = { ...(await holding(a, "resource:one")), reason: null };
    const operationId = freshId(a.platform);
    const { leases } = await a.coordinator.release({ ...released, relay: { operationId } });
    expect(leases).toHaveLength(1);
    for (const _ of range(3)) {
      world.advance(10);
      await compact(a);
      const again = await a.coordinator.release({ ...released, relay: { operationId, isSecond: true } });
      expect(again).toEqual({ leases, changed: true, replayed: false });
    }
  });

  it("makes every operation one that is done once", async () => {
    const world = quietWorld();
    const a = enter(world, "human:a");
    const id = () => freshId(a.platform);
    await a.acquire(["resource:one", "resource:two", "resource:three"]);
    const one = await holding(a, "resource:one");
    const operations: [string, (requestId: Ulid) => Promise<{ changed: boolean; replayed: boolean }>][] = [
      ["acquire", (requestId) => a.coordinator.acquire(acquireRequest(a, "resource:new", { requestId }))],
      [
        "renew",
        (requestId) =>
          a.coordinator.renew({ ...one, requestId, ttlSecs: 900, overrideMax: false, reason: null }),
      ],
      ["heartbeat", (requestId) => a.coordinator.heartbeat({ ...one, requestId })],
      ["release", (requestId) => a.coordinator.release({ ...one, requestId, reason: null })],
      [
        "transfer",
        async (requestId) => {
          const { leases, ...rest } = await holding(a, "resource:two");
          return a.coordinator.transfer({
            ...rest,
            requestId,
            lease: leases[0]!,
            newLeaseId: id(),
            toAgent: "agent:b" as never,
            toWorktree: "wt:00000002" as never,
            toBranch: null,
            reason: "yours",
          });
        },
      ],
      [
        "evict",
        async (requestId) => {
          const { leases } = await holding(a, "resource:three");
          return a.coordinator.evict({ actor: a.actor, leases, requestId, reason: "enough" });
        },
      ],
    ];
    for (const [name, act] of operations) {
      const requestId = id();
      const first = await act(requestId);
      expect(first, name).toMatchObject({ changed: true, replayed: false });
      for (const _ of range(2))
        expect(await act(requestId), name).toMatchObject({ changed: false, replayed: true });
      await compact(a);
      const late = await act(requestId);
      expect(late, name).toMatchObject({ changed: false, replayed: true });
      expect(await onceIn(a, requestId), name).toBe(1);
    }
  });

  it("answers as the first call was answered", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:held");
    const { secrets } = await holding(a, "resource:held");
    const requestId = freshId(a.platform);
    const request = acquireRequest(a, ["resource:held", "resource:new"], { requestId, secrets });
    const first = await a.coordinator.acquire(request);
    const second = await a.coordinator.acquire(request);
    expect(second.leases).toEqual(first.leases);
  });

  it("is remembered also when there was nothing to do", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:r");
    const { secrets } = await holding(a, "resource:r");
    const requestId = freshId(a.platform);
    const request = acquireRequest(a, "resource:r", { requestId, secrets });
    expect(await a.coordinator.acquire(request)).toMatchObject({ changed: false });
    await a.release("resource:r");
    // A late duplicate of the request must not take the lease again.
    expect(await a.coordinator.acquire(request)).toMatchObject({ replayed: true });
    expect(await a.coordinator.list()).toEqual([]);
  });

  it("of another operation is refused", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const requestId = freshId(a.platform);
    await a.coordinator.acquire(acquireRequest(a, "resource:r", { requestId }));
    const heartbeat = { ...(await a.coordinator.find([{ key: "resource:r" as never, leaseId: null }])) };
    expect(heartbeat).toBeDefined();
    const ref = [{ key: "resource:r" as never, leaseId: null }];
    const base = { actor: a.actor, leases: ref, secrets: [], secretHash: "", requestId };
    expect(await codeOf(a.coordinator.heartbeat(base))).toBe("E_USAGE");
  });

  it("of another agent, or for other keys, is refused and never mistaken for success", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const b = enter(world, "agent:b");
    const requestId = freshId(a.platform);
    await a.coordinator.acquire(acquireRequest(a, "resource:r", { requestId }));
    expect(await codeOf(b.coordinator.acquire(acquireRequest(b, "resource:r", { requestId })))).toBe(
      "E_USAGE",
    );
    expect(await codeOf(a.coordinator.acquire(acquireRequest(a, "resource:s", { requestId })))).toBe(
      "E_USAGE",
    );
    for (const party of [a, b]) await compact(party);
    expect(await codeOf(b.coordinator.acquire(acquireRequest(b, "resource:r", { requestId })))).toBe(
      "E_USAGE",
    );
  });

  it("that is too old to be remembered, or comes from the future, is refused", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const made = (age: number) => makeUlid(world.wallMs - age, a.platform.random.bytes(10));
    for (const age of [25 * HOUR, -2 * HOUR, -25 * HOUR]) {
      const request = acquireRequest(a, "resource:r", { requestId: made(age) });
      expect(await codeOf(a.coordinator.acquire(request))).toBe("E_LIMIT");
    }
    await a.coordinator.acquire(acquireRequest(a, "resource:r", { requestId: made(23 * HOUR) }));
  });

  it("is remembered for longer than it is accepted, whoever rotates the log meanwhile", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const requestId = freshId(a.platform);
    const request = acquireRequest(a, "resource:r", { requestId, ttlSecs: 60 });
    await a.coordinator.acquire(request);
    world.advance(24 * HOUR - 5_000);
    // Another process rotates the log a little later than this one checks the age of its request.
    const { party: b, mutex } = holdingTheMutex(enter(world, "agent:b"));
    const late = await mutex(async () => {
      const retried = a.coordinator.acquire(request);
      await new Promise((resolve) => setImmediate(resolve));
      world.advance(6_000);
      const ground = await b.store.keeper.stand(b.logActor);
      await b.store.keeper.rotate(ground, b.logActor);
      return { retried };
    });
    expect(await late.retried).toMatchObject({ replayed: true });
    expect(await onceIn(a, requestId)).toBe(1);
  });

  it("in a line that was damaged is not taken for a new one", async () => {
    // A file system that tells times so coarsely that the damage does not show in them.
    const world = quietWorld(1, { mtimeGranularityMs: 3_600_000 });
    const a = enter(world, "agent:a");
    const request = acquireRequest(a, "resource:r", { requestId: freshId(a.platform) });
    await a.coordinator.acquire(request);
    await a.acquire("resource:more");
    damageLine(world, 1, (line) => line.replace(/"sum":"\w{4}/, '"sum":"0000'));
    expect(await codeOf(a.coordinator.acquire(request))).toBe("E_LOG_CORRUPT");
  });

  it("that an unknown outcome named can be used by who had some of the keys already", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const held = await a.coordinator.acquire(
      acquireRequest(a, "resource:held", { secretHash: sha256("shown") }),
    );
    const both = ["resource:held", "resource:new"];
    const fault = world.faults.add({ code: "EIO", operations: ["datasync", "sync"] });
    const failed = (await a.coordinator
      .acquire(acquireRequest(a, both, { secrets: ["shown"] }))
      .catch((error: unknown) => error)) as { data: { request_id: Ulid } };
    fault.remove();
    const { request_id: requestId } = failed.data;
    const again = await a.coordinator.acquire(acquireRequest(a, both, { secrets: ["shown"], requestId }));
    expect(again).toMatchObject({ replayed: true });
    expect(again.leases.map(({ key }) => key).sort()).toEqual(both);
    expect(again.leases.map(({ leaseId }) => leaseId)).toContain(held.leases[0]!.leaseId);
  });

  it.each([0, -700_000, 700_000])(
    "that an unknown outcome named can be used after a rotation, too (clock %s)",
    async (clock) => {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      await a.acquire("resource:warm");
      const fault = world.faults.add({ code: "EIO", operations: ["datasync", "sync"] });
      const failed = (await a.coordinator
        .acquire(acquireRequest(a, "resource:r"))
        .catch((error: unknown) => error)) as { data: { request_id: Ulid } };
      fault.remove();
      // The clock was wrong, and somebody sets it right; ids and segments are told apart by it.
      world.jumpWallClock(clock);
      await compact(enter(world, "agent:b"));
      await compact(enter(world, "agent:b"));
      const { request_id: requestId } = failed.data;
      expect(await a.coordinator.acquire(acquireRequest(a, "resource:r", { requestId }))).toMatchObject({
        replayed: true,
      });
    },
  );
});

function holdingTheMutex(party: Party) {
  return { party, mutex: <T>(body: () => Promise<T>) => party.store.hold(party.logActor, body) };
}
