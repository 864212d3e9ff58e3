import { describe, expect, it } from "vitest";
import { CONTROL, codeOf, encode, enter, LOG, quietWorld } from "./stage";

const LAG = { indexLagBytes: 1 << 20 };
const META = `${CONTROL}/index/resource/one/meta.json`;

describe("an index that may lag behind the log", () => {
  it("is not touched by what comes and goes", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a", LAG);
    await a.acquire("resource:first");
    const index = () => world.disk.paths().filter((path) => path.startsWith(`${CONTROL}/index/`));
    const before = index();
    await a.acquire("resource:one");
    expect(index()).toEqual(before);
    await a.release("resource:one");
    expect(index()).toEqual(before);
  });

  it("hides nothing: not from others, not from those who do not lag, not from readers", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a", LAG);
    await a.acquire("resource:first");
    await a.acquire(["resource:one", "dir:src"]);
    expect(world.disk.peek(META)).toBe(null);
    const lagging = enter(world, "agent:b", LAG);
    const prompt = enter(world, "agent:c");
    for (const other of [lagging, prompt]) {
      expect((await other.coordinator.list()).map(({ lease }) => lease.key).sort()).toEqual([
        "dir:src",
        "resource:first",
        "resource:one",
      ]);
      expect(await codeOf(other.acquire("resource:one"))).toBe("E_LOCK_CONFLICT");
      expect(await codeOf(other.acquire("file:src/deep/a.ts"))).toBe("E_LOCK_CONFLICT");
    }
    // It wrote nothing, but it had to know: what it read is in the index now.
    expect(world.disk.peek(META)).not.toBe(null);
    await a.release("resource:one");
    expect((await prompt.acquire("resource:one")).changed).toBe(true);
  });

  it("answers who holds it already from a read, as one that does not lag does", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a", LAG);
    await a.acquire("resource:first");
    await a.acquire("resource:one");
    const log = world.disk.peek(LOG)!.length;
    expect((await a.acquire("resource:one")).changed).toBe(false);
    expect(world.disk.peek(LOG)!.length).toBe(log);
  });

  it("follows when there is more than it may lag", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a", { indexLagBytes: 6_000 });
    await a.acquire("resource:first");
    await a.acquire("resource:one");
    expect(world.disk.peek(META)).toBe(null);
    for (let i = 0; i < 5; i++) await a.acquire(`resource:more${i}`);
    expect(world.disk.peek(META)).not.toBe(null);
  });

  it("is not trusted when the log is altered in what it lacks, or before that", async () => {
    for (const where of ["first", "one"]) {
      const world = quietWorld();
      const a = enter(world, "agent:a", LAG);
      await a.acquire("resource:first");
      await a.acquire("resource:one");
      await a.acquire("resource:two");
      const text = new TextDecoder().decode(world.disk.peek(LOG)!);
      world.advance(5);
      world.disk.install(LOG, encode(text.replace(`resource:${where}`, `resource:${where.toUpperCase()}`)));
      expect(await codeOf(a.acquire("resource:three")), where).toBe("E_LOG_CORRUPT");
    }
  });

  it("answers what was asked, and not all that it had to read for it", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a", LAG);
    await a.acquire("resource:first");
    const [taken] = (await a.acquire(["file:src/a", "resource:one"], { ttlSecs: 1 })).leases;
    world.advance(2_000);
    await enter(world, "agent:b", LAG).acquire(["file:src/a", "resource:one"]);
    const reader = enter(world, "agent:r").coordinator;
    const ask = async () => {
      const extents = [{ key: "dir:src", reach: "repository", worktreeId: a.actor.worktreeId }] as never;
      const overlapping = await reader.overlapping(extents);
      const none = await reader.overlapping([]);
      const endings = await reader.endings([{ key: taken!.key, leaseId: taken!.leaseId }]);
      return [overlapping.map(({ lease }) => lease.key), none, endings.map(({ key }) => key)];
    };
    expect(await ask()).toEqual([["file:src/a"], [], ["file:src/a"]]);
    // From the log alone.
    world.disk.install(`${CONTROL}/index/applied`, encode("rubbish"));
    expect(await ask()).toEqual([["file:src/a"], [], ["file:src/a"]]);
  });
});
