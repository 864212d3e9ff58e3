import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Census, CrowdedCensus, DamagedCensus } from "../../src/store/census";
import { propertySeed } from "../kernel/property";
import { quietWorld, range, sha256 } from "./stage";

const PATH = "/census";
const digest = { sha256 };

/** The root of the simulated disk belongs to root: everything happens in a directory of ours. */
async function room(capacity = 256) {
  const world = quietWorld();
  world.disk.makePath("/d");
  const { files } = world.attach("p").platform;
  const open = () => new Census(files, digest, `/d${PATH}`, capacity);
  const census = open();
  await census.create([], 0o600);
  return { world, files, census, open };
}

describe("the census", () => {
  it("counts up and down, for whoever reads it after a flush", async () => {
    const { census, open } = await room();
    await census.add("a", 1);
    await census.add("a", 1);
    await census.add("b", 1);
    expect([await census.count("a"), await census.count("b"), await census.count("c")]).toEqual([2, 1, 0]);
    expect(await open().count("a")).toBe(0);
    await census.flush();
    expect(await open().count("a")).toBe(2);
    await census.add("a", -1);
    await census.add("b", -1);
    await census.add("c", -1);
    await census.flush();
    const again = open();
    expect([await again.count("a"), await again.count("b"), await again.count("c")]).toEqual([1, 0, 0]);
  });

  it("agrees with a plain map, whatever comes", async () => {
    const steps = fc.array(fc.tuple(fc.nat(40), fc.constantFrom(1, 1, -1)), { maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(steps, fc.nat(5), async (all, flushEvery) => {
        const { census, open } = await room();
        const plain = new Map<string, number>();
        for (const [i, [n, step]] of all.entries()) {
          const what = `thing ${n}`;
          await census.add(what, step);
          plain.set(what, Math.max(0, (plain.get(what) ?? 0) + step));
          if (i % (flushEvery + 1) === 0) await census.flush();
        }
        await census.flush();
        const again = open();
        for (const [what, count] of plain) expect(await again.count(what)).toBe(count);
      }),
      { numRuns: 100, seed: propertySeed() },
    );
  });

  it("says when there is no room, and fits into a larger one", async () => {
    const { census, files } = await room(256);
    let added = 0;
    await expect(
      (async () => {
        for (const i of range(300)) {
          await census.add(`thing ${i}`, 1);
          added++;
        }
      })(),
    ).rejects.toThrow(CrowdedCensus);
    expect(added).toBeGreaterThan(100);
    const entries = await census.entries();
    expect(entries.length).toBe(added);
    const larger = new Census(files, digest, "/d/larger", Census.capacityFor(added));
    await larger.create(entries, 0o600);
    for (const i of range(added)) expect(await larger.count(`thing ${i}`)).toBe(1);
    expect(Census.capacityFor(0)).toBe(256);
    expect(Census.capacityFor(100_000)).toBe(524_288);
  });

  it("uses the room of what is no longer counted", async () => {
    const { census } = await room(256);
    for (const i of range(3_000)) {
      await census.add(`thing ${i}`, 1);
      await census.add(`thing ${i}`, -1);
    }
    expect(await census.entries()).toEqual([]);
  });

  it.each([
    ["is gone", () => null],
    ["is empty", () => new Uint8Array(0)],
    ["is cut in half", (bytes: Uint8Array) => bytes.slice(0, bytes.length / 2)],
    ["is something else", (bytes: Uint8Array) => bytes.map((_, i) => i % 251)],
    ["is all zeros, as a lost page reads", (bytes: Uint8Array) => bytes.fill(0)],
    [
      "has slipped by an entry",
      (bytes: Uint8Array) => Uint8Array.from([...bytes.slice(16), ...bytes.slice(0, 16)]),
    ],
  ])("notices that its file %s", async (_, harm) => {
    const { census, open, world, files } = await room();
    await census.add("a", 1);
    await census.flush();
    const bytes = harm(world.disk.peek(`/d${PATH}`)!);
    if (bytes === null) await files.unlink(`/d${PATH}`);
    else world.disk.install(`/d${PATH}`, bytes);
    await expect(open().count("a")).rejects.toThrow(DamagedCensus);
  });

  it("is not taken for another one, of the same size", async () => {
    const { census, open, world, files } = await room();
    await census.add("a", 1);
    await census.flush();
    const other = new Census(files, digest, "/d/other", 256);
    await other.create([], 0o600);
    world.disk.install(`/d${PATH}`, world.disk.peek("/d/other")!);
    await expect(open().count("a")).rejects.toThrow(DamagedCensus);
  });

  it("notices every flipped bit in what it counts", async () => {
    const { census, open, world } = await room();
    await census.add("a", 3);
    await census.flush();
    const bytes = world.disk.peek(`/d${PATH}`)!;
    const at = range(bytes.length / 16).find((entry) => bytes[entry * 16 + 11] === 3)! * 16;
    for (const i of range(16).map((byte) => at + byte)) {
      const flipped = bytes.slice();
      flipped[i]! ^= 1;
      world.disk.install(`/d${PATH}`, flipped);
      await expect(open().count("a"), `byte ${i}`).rejects.toThrow(DamagedCensus);
    }
  });
});
