import { expect, it } from "vitest";
import { LooseObjects } from "../../src/git/loose-objects";
import { nameOfObject } from "../../src/git/object-name";
import { busyWorld } from "../store/stage";

const ROOT = "/repo/.git/objects";
const MOST_STEPS = 200;

/** Strikes after the first operation, then after the second, and so on, until one run goes through. */
it("leaves no object under its name whose content is not its own, and after a flush all of them", async () => {
  const counts = { torn: 0, whole: 0, flushed: 0 };
  for (const seed of [1, 2, 3, 4, 5]) {
    let isThrough = false;
    for (let steps = 0; steps < MOST_STEPS && !isThrough; steps++) {
      const world = busyWorld(seed * 1_000 + steps, { writebackProbability: 0.3 });
      world.disk.makePath(ROOT);
      const contents = ["one", "two", "three"].map((text) => new TextEncoder().encode(`${text} ${seed}`));
      let isFlushed = false;
      world.spawn("writer", async (platform) => {
        const objects = new LooseObjects(platform, ROOT, "sha256");
        for (const content of contents) await objects.write("blob", content);
        await objects.flush();
        isFlushed = true;
      });
      await world.run({ maxSteps: steps });
      isThrough = isFlushed;
      world.powerCut();
      const { platform } = world.attach("whoever comes next");
      const again = new LooseObjects(platform, ROOT, "sha256");
      for (const content of contents) {
        const oid = again.nameOf("blob", content);
        const bytes = await world.drive(
          platform.files.readFile(`${ROOT}/${oid.slice(0, 2)}/${oid.slice(2)}`),
        );
        if (isFlushed) counts.flushed++;
        if (bytes === null) {
          counts.torn++;
          expect(isFlushed, `seed ${seed}, after ${steps} steps`).toBe(false);
          continue;
        }
        counts.whole++;
        const whole = await platform.compression.inflate(bytes, 1 << 20);
        expect(nameOfObject(platform.digest, "sha256", whole), `seed ${seed}, after ${steps} steps`).toBe(
          oid,
        );
      }
    }
    expect(isThrough).toBe(true);
  }
  // Some were lost, some were there before anybody had promised it, and all that was promised.
  expect(counts.torn).toBeGreaterThan(0);
  expect(counts.whole).toBeGreaterThan(counts.flushed);
  expect(counts.flushed).toBe(15);
});

it.each([1, 2, 3, 4, 5, 6, 7, 8])(
  "keeps what was flushed into a directory that somebody else had just made (%i)",
  async (seed) => {
    const world = busyWorld(seed, { writebackProbability: 0 });
    world.disk.makePath(ROOT);
    const content = new TextEncoder().encode("one");
    let path = "";
    world.spawn("writer", async (platform) => {
      const objects = new LooseObjects(platform, ROOT, "sha256");
      const oid = objects.nameOf("blob", content);
      path = `${ROOT}/${oid.slice(0, 2)}/${oid.slice(2)}`;
      // A Git that was faster, and syncs nothing.
      await platform.files.makeDirectory(`${ROOT}/${oid.slice(0, 2)}`, 0o755);
      await objects.write("blob", content);
      await objects.flush();
    });
    await world.run();
    world.powerCut();
    const { platform } = world.attach("whoever comes next");
    expect(await world.drive(platform.files.readFile(path))).not.toBe(null);
  },
);
