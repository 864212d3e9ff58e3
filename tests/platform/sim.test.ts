import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Descriptor, Platform } from "../../src/platform/platform";
import { Counters, Prng, type SimOptions, SimWorld } from "../../testing/simulator";

const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest("hex");
const bytes = (text: string) => new TextEncoder().encode(text);
const text = (data: Uint8Array | null) => (data === null ? null : new TextDecoder().decode(data));
const range = (count: number) => [...Array(count).keys()];

function world(seed: number, options: Partial<SimOptions> = {}): SimWorld {
  const made = new SimWorld({ seed, sha256, ...options });
  made.disk.makePath("/d");
  return made;
}

function immediate(seed: number, options: Partial<SimOptions> = {}) {
  const made = SimWorld.immediate({ seed, sha256, writebackProbability: 0, ...options });
  made.disk.makePath("/d");
  return { world: made, process: made.attach("p"), ...made.attach("p").platform };
}

async function appendLine(platform: Platform, path: string, line: string): Promise<void> {
  const { files, locks } = platform;
  const fd = await files.open(path, "append");
  await locks.lock(fd);
  await files.append(fd, bytes(line));
  await locks.unlock(fd);
  await files.datasync(fd);
  await files.close(fd);
}

/** How often each outcome was seen over many seeds. */
async function outcomes(seeds: number, outcome: (seed: number) => unknown): Promise<Map<string, number>> {
  const seen = new Map<string, number>();
  for (const seed of range(seeds)) {
    const key = String(await outcome(seed));
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  return seen;
}

describe("determinism", () => {
  async function story(seed: number) {
    const w = world(seed, { watchDropProbability: 0.1 });
    w.faults.add({ code: "EINTR", operations: ["append"], probability: 0.05 });
    const noise = w.random("noise");
    for (const name of ["a", "b", "c", "d"]) {
      w.spawn(
        name,
        async (platform) => {
          const watch = platform.timers.watchDirectory("/d", () => {});
          for (const round of range(5)) {
            await appendLine(platform, "/d/log", `${name}${round} ${platform.random.bytes(2)}\n`);
            await platform.timers.sleep(round).done;
          }
          watch.close();
        },
        { mayFail: true },
      );
    }
    await w.run({ maxSteps: 20 });
    w.pause(w.living()[0]!);
    await w.run({ forMs: 5, beforeStep: () => void (noise.chance(0.01) && w.kill(noise.pick(w.living()))) });
    w.powerCut({ wallJumpMs: -1000 });
    const content = text(w.disk.peek("/d/log"));
    return {
      fingerprint: w.trace.fingerprint,
      trace: String(w.trace),
      content,
      counters: w.counters.toJSON(),
    };
  }

  it("gives the same schedule, content and counters for the same seed", async () => {
    const fingerprints = new Set<string>();
    for (const seed of range(40)) {
      const first = await story(seed);
      expect(await story(seed)).toEqual(first);
      fingerprints.add(first.fingerprint);
    }
    expect(fingerprints.size).toBe(40);
  });

  it("does not depend on how many microtask turns the program takes", async () => {
    const w = world(1);
    const deep = async (depth: number): Promise<void> => (depth === 0 ? undefined : deep(depth - 1));
    const slow = w.spawn("slow", async ({ timers, files }) => {
      for (const _ of range(3)) {
        await deep(500);
        await files.stat("/d");
      }
      return timers;
    });
    const start = w.monotonicMs;
    w.spawn("sleeper", ({ timers }) => timers.sleep(1000).done);
    await w.run({ until: () => !slow.isAlive });
    expect(w.monotonicMs - start).toBeLessThan(1000);
  });

  it("draws evenly and keeps its streams apart", () => {
    const prng = new Prng(7);
    const buckets = new Array<number>(10).fill(0);
    for (const _ of range(20_000)) buckets[prng.below(10)]!++;
    for (const count of buckets) expect(Math.abs(count - 2000)).toBeLessThan(250);
    const before = new Prng(7).stream("x").next();
    expect(prng.stream("x").next()).toBe(before);
    expect(prng.stream("y").next()).not.toBe(before);
    expect(new Prng(2 ** 40).next()).not.toBe(new Prng(0).next());
    expect(() => new Prng(0.5)).toThrow(RangeError);
  });
});

describe("scheduling", () => {
  it("finds a lost update between two processes, and none under the lock", async () => {
    const increment = async ({ files, locks }: Platform, isCareful: boolean) => {
      const fd = await files.open("/d/counter", "update-or-create");
      if (isCareful) await locks.lock(fd);
      const [old = 0] = await files.read(fd, 0, 1);
      await files.writeAt(fd, Uint8Array.of(old + 1), 0);
      await files.close(fd);
    };
    const total = (isCareful: boolean) =>
      outcomes(60, async (seed) => {
        const w = world(seed);
        for (const name of ["a", "b"]) w.spawn(name, (platform) => increment(platform, isCareful));
        expect((await w.run()).reason).toBe("finished");
        return w.disk.peek("/d/counter")?.[0];
      });
    expect([...(await total(true)).keys()]).toEqual(["2"]);
    const careless = await total(false);
    expect(careless.get("1")).toBeGreaterThan(5);
    expect(careless.get("2")).toBeGreaterThan(5);
  });

  it("stops at its bounds, says when it is stuck, and throws what a program throws", async () => {
    const w = world(3);
    const busy = w.spawn("busy", async ({ files }) => {
      for (;;) await files.stat("/d");
    });
    expect(await w.run({ maxSteps: 10 })).toEqual({ reason: "steps", steps: 10 });
    expect((await w.run({ forMs: 3 })).reason).toBe("time");
    w.kill(busy);
    w.spawn("stuck", async ({ files, locks }) => {
      for (const fd of [await files.open("/d/l", "append"), await files.open("/d/l", "append")]) {
        await locks.lock(fd);
      }
    });
    expect((await w.run()).reason).toBe("stuck");
    w.spawn("broken", async () => {
      throw new Error("assertion");
    });
    await expect(w.run()).rejects.toThrow("seed 3, step");
    const failing = w.spawn("failing", async ({ files }) => files.open("/none", "read"), { mayFail: true });
    await w.run();
    expect(failing.error).toMatchObject({ code: "ENOENT" });
  });

  it("shows half of a write to a reader without the lock, but never to another writer", async () => {
    const seen = await outcomes(60, async (seed) => {
      const w = world(seed, { splitWriteProbability: 0.5 });
      const reader = w.spawn("reader", async ({ files }) => {
        const lengths = new Set<number>();
        for (const _ of range(20)) lengths.add((await files.readFile("/d/f"))?.length ?? 0);
        return [...lengths].some((length) => length % 10 !== 0);
      });
      for (const name of ["a", "b"]) {
        w.spawn(name, async ({ files }) => {
          const fd = await files.open("/d/f", "append");
          for (const _ of range(3)) await files.append(fd, bytes(name.repeat(10)));
        });
      }
      await w.run();
      expect(text(w.disk.peek("/d/f"))).toMatch(/^(a{10}|b{10}){6}$/);
      return reader.result;
    });
    expect(seen.get("true")).toBeGreaterThan(5);
  });
});

describe("a write in progress", () => {
  it("ends when its process is stopped, so that nobody waits for it", async () => {
    const w = world(1, { splitWriteProbability: 1 });
    const [a, b] = [w.attach("a"), w.attach("b")];
    const mine = await w.drive(a.platform.files.open("/d/f", "append"));
    const theirs = await w.drive(b.platform.files.open("/d/f", "append"));
    const writing = a.platform.files.append(mine, bytes("aaaaaaaaaa"));
    await w.run({ maxSteps: 1 });
    expect(w.disk.peek("/d/f")!.length).toBeLessThan(10);
    w.pause(a);
    expect(w.disk.peek("/d/f")!.length).toBe(10);
    expect(await w.drive(b.platform.files.append(theirs, bytes("bbbb")))).toBe(4);
    w.resume(a);
    expect(await w.drive(writing)).toBe(10);
    expect(text(w.disk.peek("/d/f"))).toBe("aaaaaaaaaabbbb");
  });

  it("has its own copy of the data", async () => {
    const w = world(1);
    const { files } = w.attach("p").platform;
    const fd = await w.drive(files.open("/d/f", "append"));
    const buffer = bytes("before");
    const writing = files.append(fd, buffer);
    buffer.fill(0);
    await w.drive(writing);
    expect(text(w.disk.peek("/d/f"))).toBe("before");
  });
});

describe("files", () => {
  it("answer null, false or a code, as the interface says", () => {
    const { files, world: w } = immediate(1);
    const code = (action: () => unknown) => {
      try {
        action();
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
        return (error as { code: string }).code;
      }
      return "none";
    };
    w.disk.install("/d/f", bytes("hello"));
    expect(files.stat("/none")).toBeNull();
    expect(files.lstat("/d/f/below")).toBeNull();
    expect([files.readFile("/d/none"), files.readDirectory("/d/none"), files.realPath("/x/y")]).toEqual([
      null,
      null,
      null,
    ]);
    expect([
      files.unlink("/d/none"),
      files.removeDirectory("/d/none"),
      files.makeDirectory("/d", 0o700),
    ]).toEqual([false, false, false]);
    expect(files.removeDirectory("/d")).toBe(false);
    expect(code(() => files.open("/d/none", "read"))).toBe("ENOENT");
    expect(code(() => files.open("/d/none", "update"))).toBe("ENOENT");
    expect(code(() => files.open("/d/f", "create"))).toBe("EEXIST");
    expect(code(() => files.open("/d", "append"))).toBe("EISDIR");
    expect(code(() => files.readFile("/d"))).toBe("EISDIR");
    expect(code(() => files.rename("/d/none", "/d/x"))).toBe("ENOENT");
    expect(code(() => files.rename("/d", "/d/in"))).toBe("EINVAL");
    expect(code(() => files.link("/d/f", "/d/f"))).toBe("EEXIST");
    expect(code(() => files.chmod("/d/none", 0o600))).toBe("ENOENT");
    expect(code(() => files.unlink("/d"))).toBe("EISDIR");
    expect(code(() => files.syncDirectory("/d/none"))).toBe("ENOENT");
    expect(code(() => files.stat(`/${"x".repeat(256)}`))).toBe("ENAMETOOLONG");
    const fd = files.open("/d/f", "read") as Descriptor;
    expect(code(() => files.writeAt(fd, bytes("x"), 0))).toBe("EBADF");
    expect(text(files.read(fd, 1, 99) as Uint8Array)).toBe("ello");
    files.close(fd);
    expect(code(() => files.fstat(fd))).toBe("EBADF");
    expect(code(() => files.close(fd))).toBe("EBADF");
  });

  it("keep inodes, links, modes, owners, symlinks and open descriptors as POSIX does", () => {
    const { files, world: w } = immediate(2, { inodeReuseProbability: 1 });
    const fd = files.open("/d/f", "append", 0o640) as Descriptor;
    expect(files.append(fd, bytes("one"))).toBe(3);
    expect(files.writeAt(fd, bytes("two"), 0)).toBe(3);
    files.link("/d/f", "/d/g");
    files.unlink("/d/f");
    const first = files.fstat(fd);
    expect(first).toMatchObject({ kind: "file", size: 6, mode: 0o640, uid: 1000 });
    expect(files.stat("/d/g")).toEqual(first);
    w.disk.install("/d/new", bytes("new"));
    files.rename("/d/new", "/d/g");
    expect(text(files.read(fd, 0, 9) as Uint8Array)).toBe("onetwo");
    expect(files.stat("/d/g")).not.toMatchObject({ inode: (first as { inode: number }).inode });
    files.truncate(fd, 2);
    expect(files.append(fd, bytes("!"))).toBe(1);
    expect(text(files.read(fd, 0, 9) as Uint8Array)).toBe("on!");
    files.syncDirectory("/d");
    files.close(fd);
    const again = files.open("/d/again", "create");
    expect(files.fstat(again as Descriptor)).toMatchObject({ inode: (first as { inode: number }).inode });
    w.disk.symlink("../d/g", "/d/s");
    expect([files.realPath("/d/./../d/s"), files.lstat("/d/s")]).toMatchObject(["/d/g", { kind: "symlink" }]);
    w.disk.symlink("/d/loop", "/d/loop");
    expect(() => files.stat("/d/loop")).toThrow("ELOOP");
    files.chmod("/d/g", 0o200);
    expect(() => files.readFile("/d/g")).toThrow("EACCES");
    const other = w.attach("other", { uid: 7 }).platform;
    expect(() => other.files.chmod("/d/g", 0o777)).toThrow("EPERM");
    expect(() => other.files.unlink("/d/g")).toThrow("EACCES");
  });

  it("show every change in the time of change, unless the file system is coarse", () => {
    const fine = immediate(3);
    const coarse = immediate(3, { mtimeGranularityMs: 1000 });
    const times = ({ files }: Platform | typeof fine) => {
      const fd = files.open("/d/f", "append") as Descriptor;
      return range(5).map(() => {
        files.append(fd, bytes("x"));
        return (files.fstat(fd) as { mtimeMs: number }).mtimeMs;
      });
    };
    const seen = times(fine);
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
    expect(new Set(times(coarse)).size).toBe(1);
  });
});

describe("a power cut", () => {
  const SEEDS = 80;

  it("keeps what was synced, with its name, always", async () => {
    const seen = await outcomes(SEEDS, (seed) => {
      const { files, world: w } = immediate(seed, { writebackProbability: 0.2 });
      const fd = files.open("/d/f", "append") as Descriptor;
      files.append(fd, bytes("a".repeat(3000)));
      files.datasync(fd);
      files.syncDirectory("/d");
      files.append(fd, bytes("b".repeat(3000)));
      w.powerCut();
      return text(w.disk.peek("/d/f"))?.slice(0, 3000) === "a".repeat(3000);
    });
    expect([...seen.keys()]).toEqual(["true"]);
  });

  it("keeps, loses or zeroes each unsynced sector on its own", async () => {
    const shapes = new Set<string>();
    const seen = await outcomes(SEEDS * 3, (seed) => {
      const { files, world: w } = immediate(seed);
      w.disk.install("/d/f", bytes("old-".repeat(256)));
      const fd = files.open("/d/f", "update") as Descriptor;
      files.writeAt(fd, bytes("new-".repeat(512)), 0);
      w.powerCut();
      const content = text(w.disk.peek("/d/f"))!;
      expect(content.length % 512).toBe(0);
      expect(content.length).toBeGreaterThanOrEqual(1024);
      const sectors = range(content.length / 512).map((i) => content.slice(i * 512, i * 512 + 3));
      for (const sector of sectors.slice(0, 2)) expect(["old", "new"]).toContain(sector);
      for (const sector of sectors.slice(2)) expect(["\0\0\0", "new"]).toContain(sector);
      shapes.add(sectors.join());
      return content.length;
    });
    expect([...seen.keys()].sort()).toEqual(["1024", "1536", "2048"]);
    expect(shapes).toContain("old,old");
    expect(shapes).toContain("new,new,new,new");
    expect(shapes).toContain("old,old,\0\0\0,\0\0\0");
    // A later sector without an earlier one: the zeroed line before a whole one.
    expect([...shapes].some((shape) => /\0,new$/.test(shape))).toBe(true);
  });

  it("may undo an unsynced truncation", async () => {
    const seen = await outcomes(SEEDS, (seed) => {
      const { files, world: w } = immediate(seed);
      w.disk.install("/d/f", bytes("x".repeat(100)));
      files.truncate(files.open("/d/f", "update") as Descriptor, 40);
      w.powerCut();
      return text(w.disk.peek("/d/f"))!
        .replace(/^x+/, (xs) => `${xs.length}`)
        .replace(/\0+/, "+zeros");
    });
    expect(new Set(seen.keys())).toEqual(new Set(["100", "40", "40+zeros"]));
  });

  it("keeps or undoes each unsynced name on its own", async () => {
    const seen = await outcomes(SEEDS * 2, (seed) => {
      const { files, world: w } = immediate(seed);
      w.disk.install("/d/target", bytes("old"));
      w.disk.install("/d/gone", bytes("gone"));
      const fd = files.open("/d/tmp", "create") as Descriptor;
      files.append(files.open("/d/tmp", "append") as Descriptor, bytes("new"));
      files.sync(fd);
      files.rename("/d/tmp", "/d/target");
      files.unlink("/d/gone");
      files.makeDirectory("/d/sub", 0o700);
      w.powerCut();
      expect(w.disk.peek("/d/tmp")).toBeNull();
      return [
        text(w.disk.peek("/d/target")),
        text(w.disk.peek("/d/gone")),
        w.disk.paths().includes("/d/sub/"),
      ];
    });
    expect(seen.size).toBe(8);
  });

  it("keeps a rename once the directory is synced, and may split one that is not", async () => {
    const rename = (isSynced: boolean) =>
      outcomes(SEEDS, (seed) => {
        const { files, world: w } = immediate(seed);
        w.disk.install("/d/a", bytes("a"));
        files.rename("/d/a", "/d/b");
        if (isSynced) files.syncDirectory("/d");
        w.powerCut();
        return w.disk.paths().slice(1).join();
      });
    expect([...(await rename(true)).keys()]).toEqual(["/d/b"]);
    expect(new Set((await rename(false)).keys())).toEqual(new Set(["/d/a", "/d/b", "/d/a,/d/b", ""]));
  });

  it("kills everyone, changes the boot, restarts the monotonic clock and moves the wall clock", async () => {
    const w = world(5);
    let isAnswered = false;
    const process = w.spawn("p", async ({ timers }) => {
      await timers.sleep(10).done;
      isAnswered = true;
    });
    await w.run({ maxSteps: 1 });
    const before = { boot: w.bootId, wall: w.wallMs, id: process.platform.clock.clockId() };
    w.powerCut({ wallJumpMs: -3_600_000 });
    expect((await w.run()).reason).toBe("finished");
    expect([process.state, isAnswered]).toEqual(["killed", false]);
    expect(w.bootId).not.toBe(before.boot);
    expect(w.monotonicMs).toBeLessThan(31_000);
    expect(before.wall - w.wallMs).toBeGreaterThan(3_500_000);
    const next = w.attach("next").platform;
    expect(next.processes.self().pid).toBe(process.pid);
    expect(next.clock.clockId()).not.toBe(before.id);
    expect(await w.drive(next.processes.liveness(process.identity))).toBe("dead");
  });

  it("does not count what was written after a sync was called as covered by it", async () => {
    const seen = await outcomes(SEEDS, async (seed) => {
      const w = world(seed, { writebackProbability: 0 });
      const { files } = w.attach("p").platform;
      w.disk.install("/d/f", bytes(""));
      const fd = await w.drive(files.open("/d/f", "append"));
      await w.drive(files.append(fd, bytes("first")));
      const syncing = files.datasync(fd);
      const appending = files.append(fd, bytes("second"));
      await w.drive(Promise.all([syncing, appending]));
      const last = w.trace.entries().at(-1)!.what;
      w.powerCut();
      const content = text(w.disk.peek("/d/f"))!;
      expect(content.slice(0, 5)).toBe("first");
      return last.startsWith("datasync") ? content.slice(5) : "appended after the sync had ended";
    });
    expect(seen.get("")).toBeGreaterThan(3);
    expect(seen.get("second")).toBeGreaterThan(3);
  });

  it("does not let an older sync that ends later undo a newer one", async () => {
    for (const seed of range(SEEDS)) {
      const w = world(seed, { writebackProbability: 0 });
      const { files } = w.attach("p").platform;
      w.disk.install("/d/f", bytes(""));
      const fd = await w.drive(files.open("/d/f", "append"));
      await w.drive(files.append(fd, bytes("first")));
      const older = files.datasync(fd);
      await w.drive(Promise.all([files.append(fd, bytes("second")), older]));
      const oldest = files.datasync(fd);
      const appended = files.append(fd, bytes("third"));
      await w.drive(appended);
      await w.drive(Promise.all([oldest, files.datasync(fd)]));
      w.powerCut();
      expect(text(w.disk.peek("/d/f"))).toBe("firstsecondthird");
    }
  });

  it("leaves nothing of lost bytes behind the end of a file", async () => {
    const seen = await outcomes(SEEDS, (seed) => {
      const { files, world: w } = immediate(seed);
      w.disk.install("/d/f", bytes("kept"));
      files.append(files.open("/d/f", "append") as Descriptor, bytes("lost"));
      w.powerCut();
      const next = w.attach("next").platform.files;
      const fd = next.open("/d/f", "update") as Descriptor;
      const { size } = next.fstat(fd) as { size: number };
      next.truncate(fd, 20);
      expect(text(next.read(fd, size, 20) as Uint8Array)).toBe("\0".repeat(20 - size));
      return size;
    });
    expect(seen.size).toBe(2);
  });

  it("never leaves a directory under two names", async () => {
    const seen = await outcomes(SEEDS, (seed) => {
      const { files, world: w } = immediate(seed);
      w.disk.makePath("/d/a/in");
      files.rename("/d/a", "/d/b");
      w.powerCut();
      return w.disk.paths().filter((path) => path.endsWith("/in/"));
    });
    expect(new Set(seen.keys())).toEqual(new Set(["/d/a/in/", "/d/b/in/", ""]));
  });
});

describe("a failed sync", () => {
  const failing = (seed: number, options: Partial<SimOptions> = {}) => {
    const all = immediate(seed, options);
    all.world.disk.install("/d/f", bytes(""));
    const other = all.files.open("/d/f", "append") as Descriptor;
    const fd = all.files.open("/d/f", "append") as Descriptor;
    all.files.append(fd, bytes("data"));
    all.world.faults.add({ code: "EIO", operations: ["datasync"], times: 1 });
    expect(() => all.files.datasync(fd)).toThrow("EIO");
    return { ...all, fd, other };
  };

  it("is reported once to each open descriptor, and then forgotten with the data", async () => {
    const seen = await outcomes(60, (seed) => {
      const { files, fd, other, world: w } = failing(seed);
      files.datasync(fd);
      expect(() => files.datasync(other)).toThrow("EIO");
      files.datasync(other);
      files.datasync(files.open("/d/f", "append") as Descriptor);
      expect(text(files.readFile("/d/f") as Uint8Array)).toBe("data");
      w.powerCut();
      return text(w.disk.peek("/d/f"));
    });
    expect(new Set(seen.keys())).toEqual(new Set(["", "data", "\0\0\0\0"]));
  });

  it("can be kept from the others, and shows when the cache is dropped", async () => {
    const seen = await outcomes(40, (seed) => {
      const { files, other, world: w } = failing(seed, { syncFailuresReportedTo: "caller-only" });
      files.datasync(other);
      w.dropCaches();
      const content = text(files.readFile("/d/f") as Uint8Array)!;
      files.truncate(other, 8);
      expect(text(files.readFile("/d/f") as Uint8Array)).toBe(content + "\0".repeat(8 - content.length));
      return content;
    });
    expect(seen.size).toBe(3);
  });

  it("loses directory entries too", async () => {
    const seen = await outcomes(40, (seed) => {
      const { files, world: w } = immediate(seed);
      files.close(files.open("/d/f", "create") as Descriptor);
      w.faults.add({ code: "EIO", times: 1 });
      expect(() => files.syncDirectory("/d")).toThrow("EIO");
      files.syncDirectory("/d");
      w.powerCut();
      return w.disk.paths().includes("/d/f");
    });
    expect(seen.size).toBe(2);
  });
});

describe("faults", () => {
  it("strike where, when and whom the rule says, and are counted", async () => {
    const w = world(1);
    const rule = w.faults.add({
      code: "ESTALE",
      operations: ["stat"],
      path: (path) => path === "/d",
      process: (name) => name === "victim",
      skip: 1,
      times: 2,
    });
    const tries = async ({ files }: Platform) => {
      const results: string[] = [];
      for (const path of ["/", "/d", "/d", "/d", "/d"]) {
        const stat = async () => files.stat(path);
        results.push(
          await stat().then(
            () => "ok",
            (error: { code: string }) => error.code,
          ),
        );
      }
      return results.join();
    };
    const victim = w.spawn("victim", tries);
    const other = w.spawn("other", tries);
    await w.run();
    expect(victim.result).toBe("ok,ok,ESTALE,ESTALE,ok");
    expect(other.result).toBe("ok,ok,ok,ok,ok");
    expect([rule.struck, w.counters.get("fault.ESTALE")]).toEqual([2, 2]);
  });

  it("fill the disk with a short write and then an error, or an error at once", async () => {
    const seen = await outcomes(40, (seed) => {
      const { files, world: w } = immediate(seed);
      const fd = files.open("/d/f", "append") as Descriptor;
      w.faults.add({ code: "ENOSPC", operations: ["append"], times: 1 });
      try {
        const taken = files.append(fd, bytes("0123456789")) as number;
        expect(taken).toBeLessThan(10);
        expect(files.fstat(fd)).toMatchObject({ size: taken });
        expect(() => files.append(fd, bytes("rest"))).toThrow("ENOSPC");
        return "short";
      } catch (error) {
        expect(error).toMatchObject({ code: "ENOSPC" });
        expect(files.fstat(fd)).toMatchObject({ size: 0 });
        return "error";
      } finally {
        expect(files.append(fd, bytes("x"))).toBe(1);
      }
    });
    expect(new Set(seen.keys())).toEqual(new Set(["short", "error"]));
  });

  it("run out of descriptors for real, too", () => {
    const { files } = immediate(1, { maxDescriptors: 2 });
    files.open("/d/a", "append");
    files.open("/d/b", "append");
    expect(() => files.open("/d/c", "append")).toThrow("EMFILE");
    expect(files.stat("/d/c")).toBeNull();
  });
});

describe("locks", () => {
  it("belong to the open file, exclude within a process, and end with close, unlock and death", async () => {
    const { files, locks, world: w, process } = immediate(1);
    const open = (platform: Platform) => platform.files.open("/d/l", "update-or-create") as Descriptor;
    const [first, second] = [
      files.open("/d/l", "append") as Descriptor,
      files.open("/d/l", "append") as Descriptor,
    ];
    expect([locks.tryLock(first), locks.tryLock(first), locks.tryLock(second)]).toEqual([true, true, false]);
    locks.unlock(second);
    expect(locks.tryLock(second)).toBe(false);
    files.close(first);
    expect(locks.tryLock(second)).toBe(true);
    locks.unlock(second);

    const holder = open(process.platform);
    const child = w.attach("child");
    expect(process.platform.locks.tryLock(holder)).toBe(true);
    w.shareDescriptor(process, holder, child);
    w.kill(process);
    expect(locks.tryLock(second)).toBe(false);
    w.kill(child);
    expect(locks.tryLock(second)).toBe(true);
    expect(() => process.platform.files.stat("/d")).toThrow("dead");
    expect(() => locks.tryLock(files.open("/d/l", "read") as Descriptor)).toThrow("EBADF");
  });

  it("are granted to waiters in turn, without those who are stopped or dead", async () => {
    for (const seed of range(20)) {
      const w = world(seed);
      const order: string[] = [];
      const holder = w.attach("holder");
      const held = await w.drive(holder.platform.files.open("/d/l", "append"));
      await w.drive(holder.platform.locks.lock(held));
      const waiters = [];
      for (const name of ["a", "b", "c", "d"]) {
        const waiter = w.spawn(name, async ({ files, locks, timers }) => {
          const fd = await files.open("/d/l", "append");
          await locks.lock(fd);
          order.push(name);
          await timers.sleep(5).done;
        });
        waiters.push(waiter);
        await w.run({ forMs: 2 });
      }
      w.pause(waiters[0]!);
      w.kill(waiters[1]!);
      expect(order).toEqual([]);
      w.kill(holder);
      await w.run({ forMs: 2 });
      expect(order).toEqual(["c"]);
      w.resume(waiters[0]!);
      expect((await w.run()).reason).toBe("finished");
      expect(order).toEqual(["c", "d", "a"]);
      expect(w.counters.get("lock.waited")).toBe(4);
    }
  });

  it("reject a wait whose descriptor is closed, and hold through a stop", async () => {
    const w = world(4);
    const [a, b] = [w.attach("a"), w.attach("b")];
    const mine = await w.drive(a.platform.files.open("/d/l", "append"));
    const theirs = await w.drive(b.platform.files.open("/d/l", "append"));
    await w.drive(a.platform.locks.lock(mine));
    w.pause(a);
    const waiting = b.platform.locks.lock(theirs);
    w.advance(3_600_000);
    expect((await w.run()).reason).toBe("stuck");
    const closing = b.platform.files.close(theirs);
    await expect(w.drive(waiting)).rejects.toMatchObject({ code: "EBADF" });
    await w.drive(closing);
  });
});

describe("kill", () => {
  it("lets the operation in progress happen or not, and a write rarely in part", async () => {
    const seen = await outcomes(200, async (seed) => {
      const w = world(seed, { splitWriteProbability: 0 });
      const process = w.attach("p");
      const fd = await w.drive(process.platform.files.open("/d/f", "append"));
      let isAnswered = false;
      void Promise.resolve(process.platform.files.append(fd, bytes("0123456789"))).then(() => {
        isAnswered = true;
      });
      w.kill(process);
      expect((await w.run()).reason).toBe("finished");
      expect(isAnswered).toBe(false);
      const size = w.disk.peek("/d/f")!.length;
      return size === 0 || size === 10 ? size : "torn";
    });
    expect(seen.get("0")).toBeGreaterThan(50);
    expect(seen.get("10")).toBeGreaterThan(50);
    expect(seen.get("torn")).toBeGreaterThan(1);
    expect(seen.get("torn")).toBeLessThan(40);
  });

  it("never answers the dead, whose clock stands still", async () => {
    const w = world(1);
    const process = w.attach("p");
    const before = process.platform.clock.monotonicMs();
    w.kill(process);
    let isAnswered = false;
    const heard = () => {
      isAnswered = true;
    };
    void Promise.resolve(process.platform.files.stat("/d")).then(heard);
    void process.platform.locks.lock(3).then(heard);
    void process.platform.timers.sleep(0).done.then(heard);
    w.advance(1000);
    await w.run();
    expect([isAnswered, process.platform.clock.monotonicMs()]).toEqual([false, before]);
  });
});

describe("time", () => {
  it("moves on to the next sleeper when all sleep, and wakes in order of time", async () => {
    const w = world(1);
    const order: number[] = [];
    for (const ms of [500, 20, 3000]) {
      w.spawn(`sleep ${ms}`, async ({ timers }) => {
        await timers.sleep(ms).done;
        order.push(ms);
      });
    }
    const { wallMs, monotonicMs } = w;
    expect((await w.run({ forMs: 1000 })).reason).toBe("time");
    expect(order).toEqual([20, 500]);
    await w.run();
    expect(order).toEqual([20, 500, 3000]);
    expect(w.monotonicMs - monotonicMs).toBeGreaterThanOrEqual(3000);
    expect(w.monotonicMs - monotonicMs).toBeLessThan(3010);
    w.jumpWallClock(-60_000);
    expect(w.wallMs).toBeLessThan(wallMs);
    w.advance(1000);
    expect(w.monotonicMs - monotonicMs).toBeGreaterThanOrEqual(4000);
  });

  it("lets a sleeper be woken early, leaves a stopped one asleep, and moves in immediate mode as well", async () => {
    const w = world(1);
    const sleeper = w.spawn("p", async ({ timers }) => {
      const sleep = timers.sleep(10_000);
      void timers.sleep(5).done.then(() => sleep.wake());
      await sleep.done;
    });
    const start = w.monotonicMs;
    await w.run();
    expect([sleeper.state, w.monotonicMs - start < 10]).toEqual(["finished", true]);
    const stopped = w.spawn("stopped", ({ timers }) => timers.sleep(5).done);
    await w.run({ maxSteps: 1 });
    w.pause(stopped);
    w.advance(1000);
    expect((await w.run()).reason).toBe("stuck");
    w.resume(stopped);
    expect((await w.run()).reason).toBe("finished");

    const now = immediate(1);
    const before = now.clock.monotonicMs();
    await now.timers.sleep(5000).done;
    expect(now.clock.monotonicMs() - before).toBe(5000);
    expect(() => now.timers.sleep(2 ** 31)).toThrow(RangeError);
  });

  it("brings notices of changed directories, merged, and sometimes not at all", async () => {
    const notices = async (watchDropProbability: number) => {
      const w = world(1, { watchDropProbability });
      let count = 0;
      const watcher = w.attach("watcher");
      const watch = watcher.platform.timers.watchDirectory("/d", () => count++);
      watcher.platform.timers.watchDirectory("/none", () => count++);
      w.pause(watcher);
      w.spawn("writer", (platform) => appendLine(platform, "/d/f", "line"));
      await w.run();
      expect(count).toBe(0);
      w.resume(watcher);
      await w.run();
      watch.close();
      w.spawn("writer", (platform) => appendLine(platform, "/d/f", "line"));
      await w.run();
      return [count, w.counters.get("watch.coalesced") > 0, w.counters.get("watch.dropped") > 0];
    };
    expect(await notices(0)).toEqual([1, true, false]);
    expect(await notices(1)).toEqual([0, false, true]);
  });
});

describe("immediate mode", () => {
  it("grants waits and brings notices whose receivers use the platform themselves", async () => {
    const { files, locks, timers, world: w } = immediate(1);
    const sizes: unknown[] = [];
    const watch = timers.watchDirectory("/d", () => {
      sizes.push((files.stat("/d/f") as { size: number }).size);
      const fd = files.open("/d/f", "append") as Descriptor;
      if (sizes.length < 3) files.append(fd, bytes("x"));
      files.close(fd);
    });
    files.close(files.open("/d/f", "create") as Descriptor);
    await timers.sleep(1).done;
    expect(sizes).toEqual([0, 1, 2]);
    watch.close();

    const holder = w.attach("holder");
    const held = holder.platform.files.open("/d/f", "append") as Descriptor;
    await holder.platform.locks.lock(held);
    const waiting = locks.lock(files.open("/d/f", "append") as Descriptor);
    const timeout = timers.sleep(100);
    expect(await Promise.race([waiting.then(() => "locked"), timeout.done.then(() => "late")])).toBe("late");
    w.kill(holder);
    await waiting;
  });

  it("runs programs too", async () => {
    const { world: w } = immediate(1);
    const process = w.spawn("p", async (platform) => appendLine(platform, "/d/f", "line"));
    await w.run();
    expect([process.state, text(w.disk.peek("/d/f"))]).toEqual(["finished", "line"]);
  });
});

describe("processes", () => {
  it("are alive, dead or unknown by PROTOCOL 12", () => {
    const w = SimWorld.immediate({ seed: 1, sha256, pidReuseProbability: 1, hidesOtherUsersProcesses: true });
    const viewer = w.attach("viewer").platform.processes;
    const a = w.attach("a");
    expect(viewer.identify(a.pid)).toEqual(a.identity);
    expect(viewer.liveness(a.identity)).toBe("alive");
    w.kill(a, { becomesZombie: true });
    expect([viewer.liveness(a.identity), viewer.identify(a.pid)]).toEqual(["dead", null]);
    w.reap(a);
    expect(viewer.liveness(a.identity)).toBe("dead");
    const b = w.attach("b");
    expect(b.pid).toBe(a.pid);
    expect([viewer.liveness(a.identity), viewer.liveness(b.identity)]).toEqual(["dead", "alive"]);
    expect(viewer.liveness({ ...a.identity, startTime: "" })).toBe("alive");
    const container = w.attach("container", { namespaces: { pid: "9", monotonicOffsetMs: 5 } });
    expect(viewer.liveness(container.identity)).toBe("unknown");
    expect(container.platform.processes.liveness(b.identity)).toBe("unknown");
    w.kill(container);
    expect(viewer.liveness(container.identity)).toBe("unknown");
    const foreign = w.attach("foreign", { uid: 5 });
    expect(viewer.liveness({ ...foreign.identity, startTime: "1" })).toBe("alive");
    expect(viewer.liveness({ ...b.identity, machineId: "other", bootId: "other" })).toBe("unknown");
  });

  it("see the digest, the host and the file system they were given", () => {
    const { digest, processes, files, random, compression } = immediate(1, {
      networkFileSystem: () => "nfs",
      host: "h",
    });
    expect(digest.sha256("abc")).toMatch(/^ba7816bf/);
    const packed = compression.pack(bytes("segment")) as Uint8Array;
    expect(text(compression.unpack(packed) as Uint8Array)).toBe("segment");
    expect(() => compression.unpack(packed.subarray(0, 15))).toThrow("damaged");
    expect(() => compression.unpack(packed.with(15, 1))).toThrow("damaged");
    expect([processes.host(), files.networkFileSystem("/d"), random.bytes(4).length]).toEqual([
      "h",
      "nfs",
      4,
    ]);
  });
});

it("a mixed programme moves every counter", async () => {
  const total = new Counters();
  for (const seed of range(150)) {
    const w = world(seed, { watchDropProbability: 0.2, writebackProbability: 0.1 });
    const chaos = w.random("chaos");
    for (const code of ["ENOSPC", "EIO", "EROFS", "EINTR", "ESTALE", "EMFILE"] as const) {
      w.faults.add({ code, probability: 0.01 });
    }
    w.faults.add({ code: "EIO", operations: ["stat"], probability: 0.01 });
    const start = (name: string) =>
      w.spawn(
        name,
        async (platform) => {
          platform.timers.watchDirectory("/d", () => {});
          for (const round of range(6)) {
            await platform.files.stat("/d/log");
            await appendLine(platform, "/d/log", "x".repeat(chaos.between(1, 2000)));
            const fd = await platform.files.open(`/d/${name}`, "append");
            await platform.locks.tryLock(fd);
            await platform.files.readFile("/d/log");
            await platform.files.append(fd, bytes(`${round}`));
            await platform.files.rename(`/d/${name}`, `/d/${round % 2}`);
            await platform.files.close(fd);
          }
        },
        { mayFail: true },
      );
    for (const boot of range(3)) {
      for (const name of ["a", "b", "c"]) start(name);
      const beforeStep = () => {
        if (!chaos.chance(0.03) || w.living().length === 0) return;
        const process = chaos.pick(w.living());
        if (chaos.chance(0.4)) w.kill(process, { becomesZombie: chaos.chance(0.3) });
        else if (process.isPaused) w.resume(process);
        else w.pause(process);
        if (chaos.chance(0.3)) start("late");
        if (chaos.chance(0.1)) w.dropCaches();
      };
      await w.run({ maxSteps: 150, beforeStep });
      w.powerCut({ wallJumpMs: boot === 1 ? -1000 : 1000 });
    }
    total.add(w.counters);
  }
  expect(total.atZero()).toEqual([]);
});
