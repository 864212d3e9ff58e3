import { describe, expect, it } from "vitest";
import type { LoggedEvent } from "../../src/coordinator/contract";
import { tidy } from "../../src/store/housekeeping";
import {
  acquireRequest,
  addToLog,
  CONTROL,
  codeOf,
  damageLine,
  decode,
  enter,
  enterAs,
  forgeLines,
  history,
  key,
  LOG,
  logLines,
  type Party,
  quietWorld,
  range,
  zeroed,
} from "./stage";

const compact = (party: Party) =>
  tidy(party.store, party.logActor, { compact: true, flatIndex: { note: "x" } });
const archive = (world: ReturnType<typeof quietWorld>) =>
  world.disk
    .paths()
    .filter((path) => path.startsWith(`${CONTROL}/archive/`) && !path.endsWith("/"))
    .map((path) => path.slice(`${CONTROL}/archive/`.length));

async function rotateNow(party: Party): Promise<void> {
  await party.store.hold(party.logActor, async () => {
    await party.store.keeper.rotate(await party.store.keeper.stand(party.logActor), party.logActor);
  });
}

/** A method with something between it and its callers. */
function hooked<A extends unknown[], R>(
  method: (...args: A) => R,
  hook: (...args: [...A, (...args: A) => R]) => R,
): (...args: A) => R {
  return function (this: unknown, ...args) {
    return hook(...args, method.bind(this));
  };
}

describe("rotation", () => {
  it("goes on from a line whose id names a time beyond all bounds", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:kept");
    const payload = { operation_id: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", leases: [], ended: [] };
    addToLog(world, forgeLines(world, [{ type: "claim.released", payload }]).join(""));
    await compact(a);
    const b = enter(world, "agent:b");
    expect((await b.coordinator.list()).map(({ lease }) => lease.key)).toEqual(["resource:kept"]);
    await b.acquire("resource:other");
  });

  it("starts a new segment once the old one is large, and loses nothing", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a", { rotateBytes: 4_000 });
    const b = enter(world, "agent:b");
    const tokens: number[] = [];
    await b.acquire("resource:kept");
    for (const i of range(20)) {
      const { leases } = await a.acquire(`resource:r${i % 3}`);
      tokens.push(leases[0]!.fencingToken);
      await a.release(`resource:r${i % 3}`);
    }
    expect(archive(world).length).toBeGreaterThan(2);
    expect([...tokens].sort((x, y) => x - y)).toEqual(tokens);
    const events = await history(a);
    expect(events.length).toBe(41);
    expect(events.map(({ sequence }) => sequence)).toEqual(
      [...events.map(({ sequence }) => sequence)].sort((x, y) => x - y),
    );
    // A process that had the old segment open goes on with the new one.
    await b.renew("resource:kept", 900);
    expect((await a.coordinator.list()).map(({ lease }) => lease.key)).toEqual(["resource:kept"]);
    const [first] = logLines(world);
    expect(first).toMatchObject({ event_type: "log.checkpoint" });
  });

  it("carries leases, endings, tokens and sequence numbers over, in parts where there are many", async () => {
    const world = quietWorld();
    const a = enter(world, "human:a");
    const b = enter(world, "human:b");
    await a.acquire(range(600).map((i) => `file:d/f${i}`));
    const [stolen] = (await a.acquire("resource:stolen")).leases;
    await b.acquire("resource:stolen", { steal: true, reason: "mine" });
    const leases = async (party: Party) =>
      (await party.coordinator.list({ lapsed: true }))
        .map(({ lease }) => lease)
        .sort((x, y) => x.fencingToken - y.fencingToken);
    const before = await leases(a);
    await compact(a);
    expect(logLines(world).map((line) => (line!["payload"] as { part: number }).part)).toEqual([1, 2]);
    expect(await leases(a)).toEqual(before);
    // Also from the log alone.
    world.powerCut();
    const c = enter(world, "human:a");
    expect(await leases(c)).toEqual(before);
    const endings = await c.coordinator.endings([{ key: stolen!.key, leaseId: stolen!.leaseId }]);
    expect(endings).toMatchObject([{ how: "forced", leaseId: stolen!.leaseId }]);
    expect((await c.acquire("resource:new")).leases[0]!.fencingToken).toBe(603);
    expect(logLines(world).map((line) => line!["sequence"])).toEqual([5, 6, 7]);
  });

  it("leaves the index as it is", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a", { rotateBytes: 3_000 });
    await a.acquire("resource:one");
    const metas = () => world.disk.paths().filter((path) => path.includes("/meta"));
    await a.acquire("resource:two");
    expect(archive(world)).toEqual(["claims-000001.jsonl"]);
    const step = world.trace.step;
    await enter(world, "agent:b").acquire("resource:three");
    const reads = world.trace.entries().filter((e) => e.step > step && e.what.startsWith(`read ${LOG}`));
    expect(reads).toEqual([]);
    expect(metas().length).toBe(3);
  });

  it("that fails does not fail the operation, and is tried again", async () => {
    for (const operations of [["rename"], ["link"], ["sync"], ["openForWriting"]] as const) {
      const world = quietWorld();
      const a = enter(world, "agent:a", { rotateBytes: 3_000 });
      await a.acquire("resource:one");
      const fault = world.faults.add({
        code: "EIO",
        operations: [...operations],
        path: (path) => path.includes("claims") && !path.includes("index") && !path.endsWith(".lock"),
      });
      await a.acquire("resource:two");
      expect(fault.struck, operations[0]).toBeGreaterThan(0);
      fault.remove();
      await a.acquire("resource:three");
      expect(archive(world), operations[0]).toEqual(["claims-000001.jsonl"]);
      expect((await a.coordinator.list()).length).toBe(3);
    }
  });

  it("keeps sequence numbers rising through many of them, also when two processes take turns", async () => {
    const world = quietWorld();
    const parties = ["agent:a", "agent:b"].map((agent) => enter(world, agent, { rotateBytes: 2_000 }));
    for (const i of range(12)) {
      await parties[i % 2]!.acquire(`resource:r${i}`);
      await parties[i % 2]!.release(`resource:r${i}`);
    }
    const sequences = (await history(parties[0]!)).map(({ sequence }) => sequence);
    expect(new Set(sequences).size).toBe(24);
  });
});

describe("history", () => {
  it("is whole while segments are packed and rotated under it", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const { party: b, process } = enterAs(world, "agent:b");
    for (const i of range(3)) {
      await a.acquire(`resource:r${i}`);
      if (i < 2) await rotateNow(a);
    }
    // The reader has listed the archive; before it reads on, everything there is packed and the log rotated.
    const { files } = process.platform;
    const readDirectory = files.readDirectory.bind(files);
    let done = false;
    files.readDirectory = async (path) => {
      const names = await readDirectory(path);
      if (path === `${CONTROL}/archive` && !done) {
        done = true;
        await compact(a);
      }
      return names;
    };
    const events = await history(b);
    expect(done).toBe(true);
    expect(events.map(({ payload }) => (payload["leases"] as { key: string }[])[0]!.key)).toEqual(
      range(3).map((i) => `resource:r${i}`),
    );
  });

  it("filters by key, lease and agent", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const b = enter(world, "agent:b");
    const { leases } = await a.acquire("resource:one");
    await b.acquire("resource:two");
    const types = async (filter: Parameters<typeof a.coordinator.history>[0]) => {
      const found: string[] = [];
      for await (const event of a.coordinator.history(filter))
        found.push(`${event.actor.agentId} ${event.type}`);
      return found;
    };
    expect(await types({ key: key("resource:one") })).toEqual(["agent:a claim.acquired"]);
    expect(await types({ agentId: b.actor.agentId })).toEqual(["agent:b claim.acquired"]);
    expect(await types({ leaseId: leases[0]!.leaseId })).toEqual(["agent:a claim.acquired"]);
    expect(await types({})).toEqual(["agent:a claim.acquired", "agent:b claim.acquired"]);
  });
});

describe("watch", () => {
  const settle = async (world: ReturnType<typeof quietWorld>) => {
    for (const _ of range(5)) {
      world.advance(600);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  it("tells of every event from now on, through rotations", async () => {
    const world = quietWorld(1, { watchDropProbability: 1 });
    const a = enter(world, "agent:a", { rotateBytes: 4_000 });
    await a.acquire("resource:before");
    const seen: LoggedEvent[] = [];
    const subscription = await enter(world, "agent:w").coordinator.watch((event) => seen.push(event));
    // No notice comes, and between two looks the log is rotated more than once.
    for (const i of range(12)) {
      await a.acquire(`resource:r${i}`);
      await a.release(`resource:r${i}`);
    }
    expect(archive(world).length).toBeGreaterThan(1);
    await settle(world);
    subscription.close();
    const told = seen.map(({ type, payload }) => {
      const [about] = [payload["leases"], payload["ended"]].flat() as { key: string }[];
      return `${type} ${about!.key}`;
    });
    expect(told).toEqual(
      range(12).flatMap((i) => [`claim.acquired resource:r${i}`, `claim.released resource:r${i}`]),
    );
    await a.acquire("resource:after");
    await settle(world);
    expect(seen.length).toBe(24);
  });

  it("goes on after a look that failed, and after a listener that threw", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:before");
    const seen: string[] = [];
    const { party: w } = enterAs(world, "agent:w");
    const subscription = await w.coordinator.watch((event) => {
      seen.push(event.type);
      if (seen.length === 1) throw new Error("a listener's own mistake");
    });
    const fault = world.faults.add({
      code: "EIO",
      operations: ["open", "read"],
      path: (path) => path === LOG,
      process: (name) => name.startsWith("agent:w"),
      times: 2,
    });
    await a.coordinator.acquire(acquireRequest(a, "resource:one"));
    await settle(world);
    expect(fault.struck).toBe(2);
    await a.coordinator.acquire(acquireRequest(a, "resource:two"));
    await settle(world);
    subscription.close();
    expect(seen.length).toBe(2);
  });

  it("says that the disk has failed when it cannot begin", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:before");
    world.faults.add({ code: "EIO", operations: ["read"], path: (path) => path === LOG });
    expect(await codeOf(a.coordinator.watch(() => {}))).toBe("E_DISK");
  });

  it("may start before there is anything to watch", async () => {
    const world = quietWorld();
    const seen: LoggedEvent[] = [];
    const subscription = await enter(world, "agent:w").coordinator.watch((event) => seen.push(event));
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    await settle(world);
    subscription.close();
    expect(seen.length).toBe(1);
  });
});

describe("tidying", () => {
  it("packs the archive, so that history reads on", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    expect(await compact(a)).toEqual({ compacted: true, packed: ["claims-000001.jsonl.gz"] });
    expect(archive(world)).toEqual(["claims-000001.jsonl.gz"]);
    expect((await history(a)).length).toBe(1);
    expect(JSON.parse(decode(world.disk.peek(`${CONTROL}/claims.index.json`))!)).toMatchObject({ note: "x" });
  });

  it("by two processes at once loses no segment", async () => {
    const world = quietWorld();
    const { party: a, process: first } = enterAs(world, "agent:a");
    const { party: b, process: second } = enterAs(world, "agent:b");
    await a.acquire("resource:one");
    await rotateNow(a);
    // Just before the first one's packed file gets its name, the second one starts on it, and dies half way.
    second.platform.files.writeAt = hooked(second.platform.files.writeAt, (fd, data, offset, writeAt) => {
      if (data[0] === 0x7b) return writeAt(fd, data, offset);
      void writeAt(fd, data.subarray(0, 100), offset);
      world.kill(second);
      throw Object.assign(new Error("dead"), { code: "EIO" });
    });
    first.platform.files.rename = hooked(first.platform.files.rename, async (from, to, rename) => {
      if (to.endsWith(".gz"))
        await tidy(b.store, b.logActor, { compact: false, flatIndex: {} }).catch(() => {});
      return rename(from, to);
    });
    await tidy(a.store, a.logActor, { compact: false, flatIndex: {} });
    expect((await history(enter(world, "agent:c"))).map(({ type }) => type)).toEqual(["claim.acquired"]);
  });

  it("says that the log is damaged when it is the first to notice", async () => {
    // A file system that tells times so coarsely that the damage does not show in them.
    const world = quietWorld(1, { mtimeGranularityMs: 3_600_000 });
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    await a.acquire("resource:two");
    damageLine(world, 1, zeroed);
    expect(await codeOf(compact(a))).toBe("E_LOG_CORRUPT");
  });

  it("mends a damaged index instead of failing", async () => {
    const world = quietWorld();
    const a = enter(world, "human:a");
    const { files } = a.platform;
    // The new segment gets another descriptor than the old one had.
    const early = await files.open("/repo/.git/something", "update-or-create");
    await a.acquire("scope:one", { ttlSecs: 0, reason: "for good" });
    await files.close(early);
    for (const path of world.disk.paths())
      if (path.includes("/index/indefinite/") && !path.endsWith("/"))
        world.disk.install(path, new Uint8Array(10));
    await compact(a);
    expect((await a.coordinator.list()).length).toBe(1);
  });
});
