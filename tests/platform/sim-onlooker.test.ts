import { expect, it } from "vitest";
import type { Descriptor } from "../../src/platform/platform";
import { type Happening, SimWorld } from "../../testing/simulator";
import { decode, encode, quietWorld, sha256 } from "../store/stage";

it("shows what would be left if the power went now", () => {
  const world = quietWorld();
  const { files } = world.attach("p").platform;
  const fd = files.open("/repo/.git/f", "append") as Descriptor;
  files.append(fd, encode("a".repeat(600)));
  expect(world.disk.peekDurable("/repo/.git/f")).toBe(null);
  files.datasync(fd);
  expect(world.disk.peekDurable("/repo/.git/f")).toBe(null);
  expect(world.disk.durableNames("/repo/.git")).toEqual([]);
  files.syncDirectory("/repo/.git");
  files.append(fd, encode("b".repeat(600)));
  expect(decode(world.disk.peekDurable("/repo/.git/f"))).toBe("a".repeat(600));
  expect(world.disk.durableNames("/repo/.git")).toEqual(["f"]);
  expect(decode(world.disk.peek("/repo/.git/f", 599))).toBe(`a${"b".repeat(600)}`);
});

it("spoils one file, and makes nothing else durable", () => {
  const world = quietWorld();
  const { files } = world.attach("p").platform;
  for (const name of ["one", "two"]) files.close(files.open(`/repo/.git/${name}`, "create") as Descriptor);
  files.syncDirectory("/repo/.git");
  const fd = files.open("/repo/.git/one", "append") as Descriptor;
  files.append(fd, encode("not synced"));
  world.disk.spoil("/repo/.git/two", encode("spoilt"));
  expect(decode(world.disk.peekDurable("/repo/.git/two"))).toBe("spoilt");
  expect(decode(world.disk.peekDurable("/repo/.git/one"))).toBe("");
  world.disk.spoil("/repo/.git/two", null);
  expect(world.disk.peek("/repo/.git/two")).toBe(null);
});

it("tells of every operation that ends, and what it failed with", () => {
  const seen: Happening[] = [];
  const world = quietWorld(1, { onOperation: (happening) => seen.push(happening) });
  const { files } = world.attach("p").platform;
  world.faults.add({ code: "EIO", operations: ["stat"], times: 1 });
  expect(() => files.stat("/repo")).toThrow("EIO");
  files.stat("/repo");
  expect(seen).toEqual([
    { process: "p", kind: "stat", path: "/repo", error: "EIO", isHalfDone: false },
    { process: "p", kind: "stat", path: "/repo", error: null, isHalfDone: false },
  ]);
});

it("tells of a write of which others see the first part, before the rest comes", async () => {
  const seen: Happening[] = [];
  const sizes: number[] = [];
  const world: SimWorld = new SimWorld({
    seed: 1,
    sha256,
    splitWriteProbability: 1,
    onOperation: (happening) => {
      if (happening.kind !== "append") return;
      seen.push(happening);
      sizes.push(world.disk.peek("/log")!.length);
    },
  });
  world.spawn("p", async ({ files }) => {
    const fd = await files.open("/log", "append");
    await files.append(fd, encode("two lines\nof a log\n"));
  });
  await world.run();
  expect(seen.map(({ isHalfDone }) => isHalfDone)).toEqual([true, false]);
  expect(sizes[0]).toBeLessThan(19);
  expect(sizes[1]).toBe(19);
});
