import { describe, expect, it } from "vitest";
import type { Platform } from "../../src/platform/platform";
import { EVERYTHING } from "../../src/store/gather";
import type { SimWorld } from "../../testing/simulator";
import {
  acquireRequest,
  busyWorld,
  CONTROL,
  codeOf,
  encode,
  enter,
  enterAs,
  history,
  LOG,
  openParty,
  type Party,
  quietWorld,
  range,
} from "./stage";

describe("a reader", () => {
  it("finds nothing where there is nothing, and makes nothing", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    expect(await a.coordinator.list()).toEqual([]);
    expect(await a.coordinator.waiters()).toEqual([]);
    expect(world.disk.paths()).toEqual(["/repo/", "/repo/.git/"]);
  });

  it("writes nothing", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(["file:a/b", "dir:c"]);
    for (const cut of [false, true]) {
      if (cut) world.powerCut();
      const before = world.disk.paths().map((path) => [path, world.disk.peek(path)]);
      const b = enter(world, "agent:b");
      await b.coordinator.list();
      await b.coordinator.find([{ key: "dir:c" as never, leaseId: null }]);
      await b.coordinator.endings([{ key: null, leaseId: null }]);
      expect(world.disk.paths().map((path) => [path, world.disk.peek(path)])).toEqual(before);
    }
  });

  it("does not take an index that is being rebuilt for one that is empty", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(["resource:one", "resource:two"]);
    const { party: reader, process } = enterAs(world, "agent:r");
    // Between the reader's two looks at `applied` the whole index goes and comes back.
    const { files } = process.platform;
    const fstat = files.fstat.bind(files);
    const rebuild = async () => {
      const bytes = world.disk.peek(`${CONTROL}/index/resource/two/meta.json`)!;
      world.disk.install(`${CONTROL}/index/resource/two/meta.json`, encode("rubbish"));
      return bytes;
    };
    let looked = 0;
    files.fstat = async (fd) => {
      const stat = await fstat(fd);
      if (++looked !== 1) return stat;
      await rebuild();
      const { party: writer, process: writing } = enterAs(world, "agent:w");
      const stopped = { at: false };
      const open = writing.platform.files.open.bind(writing.platform.files);
      // The writer stops half way through its rebuild until the reader has gathered everything.
      writing.platform.files.open = async (path, mode, permissions) => {
        if (path.includes("/meta.json.new") && !stopped.at) {
          stopped.at = true;
          await new Promise<void>((resolve) => {
            goOn = resolve;
          });
        }
        return open(path, mode, permissions);
      };
      rebuilding = codeOf(writer.acquire("resource:two"));
      while (!stopped.at) await new Promise((resolve) => setImmediate(resolve));
      return stat;
    };
    let goOn = () => {};
    let rebuilding: Promise<unknown> = Promise.resolve();
    const readFile = files.readFile.bind(files);
    files.readFile = async (path) => {
      if (path === `${CONTROL}/index/applied` && looked > 0) {
        goOn();
        await rebuilding;
      }
      return readFile(path);
    };
    expect((await reader.coordinator.list()).length).toBe(2);
    expect(await rebuilding).toBe("E_LOCK_CONFLICT");
  });

  it("does not take a lease that has just come for the last one that there must be", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(["file:src/a", "file:src/c"]);
    const { party: reader, process } = enterAs(world, "agent:r");
    const { files } = process.platform;
    const readDirectory = files.readDirectory.bind(files);
    let hasCome = false;
    // The reader knows by now that there must be two; on its way to them a third one comes, before the second.
    files.readDirectory = async (path) => {
      if (path === `${CONTROL}/index/file` && !hasCome) {
        hasCome = true;
        await enter(world, "agent:b").acquire("file:src/b");
      }
      return readDirectory(path);
    };
    const keys = (await reader.coordinator.list()).map(({ lease }) => lease.key);
    expect(hasCome).toBe(true);
    expect(keys.sort()).toEqual(["file:src/a", "file:src/b", "file:src/c"]);
  });

  it("looks again when it meets a file that is being written", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    const { party: reader, process } = enterAs(world, "agent:r");
    const { files } = process.platform;
    const readFile = files.readFile.bind(files);
    let torn = 0;
    files.readFile = async (path) => {
      const bytes = await readFile(path);
      return bytes !== null && path.startsWith(`${CONTROL}/index`) && torn++ < 3
        ? bytes.slice(0, 100)
        : bytes;
    };
    const before = world.trace.step;
    expect((await reader.coordinator.list()).length).toBe(1);
    // And that is no reason to read the whole log.
    const reads = world.trace.entries().filter((e) => e.step > before && e.what.startsWith(`read ${LOG}`));
    expect(reads).toEqual([]);
  });

  it("answers from the log alone after another boot, until a writer has rebuilt the index", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(["file:a/b", "dir:c"]);
    world.powerCut();
    const b = enter(world, "agent:b");
    expect((await b.coordinator.list({ lapsed: true })).length).toBe(2);
    await b.acquire("resource:r");
    const before = world.trace.step;
    expect((await enter(world, "agent:c").coordinator.list({ lapsed: true })).length).toBe(3);
    const reads = world.trace.entries().filter((e) => e.step > before && e.what.startsWith(`read ${LOG}`));
    expect(reads).toEqual([]);
  });

  it("sees all keys of an operation or none, and never a state that did not exist", async () => {
    for (const seed of range(60)) {
      const world = busyWorld(seed, { splitWriteProbability: 0.2 });
      const groups = [
        ["file:a/1", "file:b/1", "resource:1"],
        ["file:a/2", "dir:c/2", "resource:2"],
        ["dir:d"],
      ];
      world.spawn("writer", async (platform) => {
        const a = openParty(platform, "agent:a", { rotateBytes: seed % 2 === 0 ? 6_000 : 1 << 20 });
        for (const round of range(3)) {
          const keys = groups[(round + seed) % 3]!;
          await a.acquire(keys);
          if ((round + seed) % 4 !== 0) await a.release(...keys);
        }
      });
      const sawHalf: string[] = [];
      world.spawn("reader", async (platform) => {
        const r = openParty(platform, "agent:r");
        for (const _ of range(6)) {
          const { leases } = await r.coordinator.snapshot();
          const keys = new Set([...leases.values()].map((lease) => lease.key as string));
          for (const group of groups) {
            const seen = group.filter((name) => keys.has(name)).length;
            if (seen !== 0 && seen !== group.length) sawHalf.push(`${[...keys]}`);
          }
        }
      });
      await world.run();
      expect(sawHalf, `seed ${seed}\n${world.trace}`).toEqual([]);
    }
  });

  it("does not take a log that is being made for one that is gone", async () => {
    const world = quietWorld();
    const writer = enter(world, "agent:a");
    const { platform } = world.attach("reader");
    const files = new Proxy(platform.files, {
      get: (target, name) => {
        const value = target[name as keyof typeof target];
        // Between the look for the log and the look for its traces.
        if (name === "readDirectory")
          return async (path: string) => {
            await writer.acquire("resource:first");
            return target.readDirectory(path);
          };
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const { damage, leases } = await openParty({ ...platform, files }, "agent:b").coordinator.snapshot();
    expect(damage).toBe(null);
    expect([...leases.keys()]).toEqual(["resource:first"]);
  });

  /** A reader for whom something happens right after it has read the census, which it reads first. */
  function interrupted(world: SimWorld, act: () => Promise<unknown>): Party {
    const { platform } = world.attach("reader");
    let isFirst = true;
    const read: Platform["files"]["read"] = async (fd, offset, length) => {
      const bytes = await platform.files.read(fd, offset, length);
      if (isFirst) {
        isFirst = false;
        await act();
      }
      return bytes;
    };
    const files = new Proxy(platform.files, {
      get: (target, name) => {
        if (name === "read") return read;
        const value = target[name as keyof typeof target];
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    return openParty({ ...platform, files }, "agent:b");
  }

  it("misses nothing when something else comes while it counts", async () => {
    const world = quietWorld();
    const writer = enter(world, "agent:a");
    await writer.acquire("dir:d");
    const reader = interrupted(world, () => writer.acquire("file:f"));
    const { leases } = await reader.coordinator.snapshot();
    expect([...leases.keys()].sort()).toEqual(["dir:d", "file:f"]);
  });

  it.each([
    ["in a directory", "file:d/lost", "file:d/new", "dir"],
    ["of a kind", "resource:lost", "resource:new", "resource"],
  ])("notices a lost lease %s although another comes while it counts", async (_, lost, fresh, kind) => {
    const world = quietWorld();
    const writer = enter(world, "agent:a");
    await writer.acquire(lost);
    const file = world.disk.paths().find((path) => path.includes("/lost/") && path.endsWith("meta.json"))!;
    await writer.platform.files.unlink(file);
    const reader = interrupted(world, () => writer.acquire(fresh));
    const { leases } = await reader.coordinator.snapshot();
    expect([...leases.keys()].sort(), kind).toEqual([lost, fresh].sort());
  });

  it("is not stopped by a disk that cannot be written", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const { leases } = await a.acquire("resource:one");
    world.faults.add({ code: "EROFS" });
    const b = enter(world, "agent:b");
    expect((await b.coordinator.list()).length).toBe(1);
    expect(await codeOf(b.acquire("resource:two"))).toBe("E_DISK");
    // What one holds already, one still holds.
    const again = await a.acquire("resource:one");
    expect(again.leases[0]!.leaseId).toBe(leases[0]!.leaseId);
  });

  it("reports a file system's failure as what it is", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    world.faults.add({ code: "EIO", operations: ["open", "readFile", "readDirectory"] });
    const b = enter(world, "agent:b");
    expect(await codeOf(b.coordinator.waiters() as Promise<unknown>)).toBe("E_DISK");
    expect(await codeOf(history(b))).toBe("E_DISK");
    expect(await codeOf(b.coordinator.list())).toBe("E_DISK");
    expect(
      await codeOf(b.coordinator.held({ actor: b.actor, keys: [], secrets: [], ttlSecs: 600, bind: "ttl" })),
    ).toBe("E_DISK");
  });

  it("never holds up a writer, nor waits for one", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    await a.store.hold(a.logActor, async () => {
      const b = enter(world, "agent:b");
      expect((await b.coordinator.list()).length).toBe(1);
      expect(await b.store.queue.load(b.store.now())).toEqual({ live: [], void: [], lapsed: [] });
      expect(EVERYTHING.everything).toBe(true);
    });
    await a.coordinator.acquire(acquireRequest(a, "resource:two"));
  });
});
