import { describe, expect, it } from "vitest";
import { tidy } from "../../src/store/housekeeping";
import {
  acquireRequest,
  addToLog,
  CONTROL,
  codeOf,
  damageLine,
  decode,
  encode,
  enter,
  enterAs,
  forgeLines,
  key,
  LOG,
  logLines,
  operationsSince,
  quietWorld,
  range,
  sha256,
  zeroed,
} from "./stage";

const SYNCED = `${CONTROL}/index/synced`;

/** Three acknowledged grants; lines 2, 3 and 4 of the log. */
async function threeGrants(seed = 1) {
  const world = quietWorld(seed);
  const a = enter(world, "agent:a");
  for (const name of ["one", "two", "three"]) await a.acquire(`resource:${name}`);
  return { world, a };
}

const grantOf = async (world: ReturnType<typeof quietWorld>, name: string) => {
  const far = quietWorld(9);
  const other = enter(far, "agent:other");
  const { leases } = await other.coordinator.acquire(acquireRequest(other, `resource:${name}`));
  const line = logLines(far).at(-1)!;
  const payload = line["payload"] as { leases: Record<string, unknown>[] };
  payload.leases[0]!["fencing_token"] = 50;
  return { payload: payload as Record<string, unknown>, leases, world };
};

describe("an unacknowledged tail", () => {
  it.each([
    ["half a line", (line: string) => line.slice(0, line.length / 2)],
    ["zeros", (line: string) => "\0".repeat(line.length)],
    ["a line without its end", (line: string) => line.trimEnd()],
    ["something else", () => "not a line at all\n"],
  ])("of %s is set aside by the next writer", async (_, tear) => {
    const { world, a } = await threeGrants();
    const whole = decode(world.disk.peek(LOG))!;
    const [line] = forgeLines(world, [{ type: "claim.released", payload: { leases: [], ended: [] } }]);
    addToLog(world, tear(line!));
    expect((await a.coordinator.list()).length).toBe(3);
    await enter(world, "agent:b").acquire("resource:four");
    expect(decode(world.disk.peek(LOG))!.startsWith(whole)).toBe(true);
    expect(logLines(world).map((l) => l?.["sequence"])).toEqual([1, 2, 3, 4, 5]);
    const torn = world.disk.paths().filter((path) => path.includes("/archive/torn-"));
    expect(torn.map((path) => decode(world.disk.peek(path)))).toEqual([tear(line!)]);
  });

  it.each(["in the same boot", "after another boot"])(
    "is set aside whole when its first line was lost and a later one was not, %s",
    async (when) => {
      const { world } = await threeGrants();
      const { payload } = await grantOf(world, "five");
      const [lost, kept] = forgeLines(world, [
        { type: "claim.released", payload: { leases: [], ended: [] }, synced: 3 },
        { type: "claim.acquired", payload, synced: 4 },
      ]);
      addToLog(world, `${zeroed(lost!.trimEnd())}\n${kept!}`);
      if (when === "after another boot") world.powerCut();
      const b = enter(world, "agent:b");
      // Nobody was told of the grant in there, so it is nobody's: to readers and to writers alike.
      expect((await b.coordinator.list()).map(({ lease }) => lease.key).sort()).toEqual(
        ["one", "three", "two"].map((name) => `resource:${name}`),
      );
      await b.acquire("resource:five");
      expect(logLines(world).map((l) => l?.["sequence"])).toEqual([1, 2, 3, 4, 5]);
    },
  );
});

describe("damage to what was acknowledged", () => {
  it.each([
    ["a flipped bit", (line: string) => line.replace("agent:a", "agent:b")],
    ["zeros", zeroed],
    ["half of it", (line: string) => line.slice(0, line.length / 2)],
  ])("stops writers, never readers: %s", async (_, harm) => {
    for (const index of [1, 2, 3]) {
      const { world } = await threeGrants();
      damageLine(world, index, harm);
      const damaged = decode(world.disk.peek(LOG));
      const b = enter(world, "agent:b");
      expect(await codeOf(b.coordinator.acquire(acquireRequest(b, "resource:four"))), `line ${index}`).toBe(
        "E_LOG_CORRUPT",
      );
      expect(decode(world.disk.peek(LOG))).toBe(damaged);
      expect((await b.coordinator.list()).length).toBe(2);
      expect((await b.coordinator.snapshot()).damage, `line ${index}`).not.toBe(null);
    }
  });

  it("shows also where only the lines themselves tell what was synced", async () => {
    const { world } = await threeGrants();
    damageLine(world, 1, zeroed);
    for (const path of world.disk.paths())
      if (path.startsWith(`${CONTROL}/index/`) && !path.endsWith("/")) world.disk.install(path, encode(""));
    const b = enter(world, "agent:b");
    expect(await codeOf(b.acquire("resource:four"))).toBe("E_LOG_CORRUPT");
  });

  it("shows when whole lines are missing at the end", async () => {
    const { world } = await threeGrants();
    const lines = decode(world.disk.peek(LOG))!.split("\n");
    world.disk.install(LOG, encode(`${lines.slice(0, 3).join("\n")}\n`));
    const b = enter(world, "agent:b");
    expect(await codeOf(b.acquire("resource:three"))).toBe("E_LOG_CORRUPT");
    expect((await b.coordinator.snapshot()).damage).not.toBe(null);
  });

  it.each(["with the index", "without the index"])("shows when the file is empty, %s", async (how) => {
    const { world } = await threeGrants();
    world.disk.install(LOG, encode(""));
    if (how === "without the index")
      for (const name of ["applied", "synced"]) world.disk.install(`${CONTROL}/index/${name}`, encode(""));
    const b = enter(world, "agent:b");
    expect(await codeOf(b.acquire("resource:four"))).toBe("E_LOG_CORRUPT");
  });

  it.each(["with the index", "without the index"])("shows in the segment's first line, %s", async (how) => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    await a.release("resource:one");
    const [checkpoint] = decode(world.disk.peek(LOG))!.split("\n");
    world.disk.install(LOG, encode(`${zeroed(checkpoint!)}\n`));
    if (how === "without the index")
      for (const name of ["applied", "synced"]) world.disk.install(`${CONTROL}/index/${name}`, encode(""));
    const b = enter(world, "agent:b");
    // Taken for a torn tail, it would be cut off, and tokens would start again at one.
    expect(await codeOf(b.acquire("resource:four"))).toBe("E_LOG_CORRUPT");
  });

  it("shows when the log is gone", async () => {
    const { world, a } = await threeGrants();
    const { files } = a.platform;
    await files.unlink(LOG);
    const b = enter(world, "agent:b");
    expect(await codeOf(b.acquire("resource:four"))).toBe("E_LOG_CORRUPT");
    expect((await b.coordinator.snapshot()).damage).not.toBe(null);
  });

  it("is not seen in a log that only looks different", async () => {
    const { world } = await threeGrants();
    // Touched, and grown by a line whose writer died before it could apply it.
    const [line] = forgeLines(world, [{ type: "claim.released", payload: { leases: [], ended: [] } }]);
    addToLog(world, line!);
    const b = enter(world, "agent:b");
    await b.acquire("resource:four");
    expect(logLines(world).map((l) => l?.["sequence"])).toEqual([1, 2, 3, 4, 5, 6]);
  });
});

describe("the synced mark", () => {
  it("of an earlier life does not count for a new log", async () => {
    const world = quietWorld();
    const { party: a, process } = enterAs(world, "agent:a");
    for (const name of ["one", "two", "three"]) await a.acquire(`resource:${name}`);
    const { files } = process.platform;
    for (const path of world.disk.paths().reverse()) {
      if (!path.startsWith(`${CONTROL}/`)) continue;
      if (path.endsWith("/")) await files.removeDirectory(path.slice(0, -1));
      else await files.unlink(path);
    }
    await enter(world, "agent:b").acquire("resource:one");
    const before = world.trace.step;
    await a.acquire("resource:two");
    expect(operationsSince(world, before).filter((what) => what.startsWith(`datasync ${LOG}`))).not.toEqual(
      [],
    );
  });

  it("never runs ahead of what is on the disk", async () => {
    for (const seed of range(20)) {
      const world = quietWorld(seed, { writebackProbability: 0.1 });
      const a = enter(world, "agent:a");
      for (const name of ["one", "two", "three"]) await a.acquire(`resource:${name}`);
      world.powerCut();
      const bytes = decode(world.disk.peek(SYNCED));
      const mark =
        bytes === null || bytes.startsWith("\0") || bytes === "" ? 0 : JSON.parse(bytes).value.sequence;
      expect(logLines(world).filter((line) => line !== null).length).toBeGreaterThanOrEqual(mark);
    }
  });
});

it("a key that is found nowhere stays free", async () => {
  const { a } = await threeGrants();
  expect(await a.coordinator.find([{ key: key("resource:none"), leaseId: null }])).toEqual([]);
});

describe("what no writer of ours can have meant", () => {
  const absurd: [string, (payload: Record<string, unknown>, lease: Record<string, unknown>) => void][] = [
    [
      "a token that nothing can be added to",
      (_, lease) => Object.assign(lease, { fencing_token: 2 ** 53 - 1 }),
    ],
    [
      "an instant beyond all numbers",
      (_, lease) => Object.assign(lease["expires_at_clock"]!, { monotonic_ms: null }),
    ],
    ["an instant that is none", (_, lease) => Object.assign(lease, { last_beat: "soon" })],
  ];

  it.each(absurd)("%s, is set aside like any torn line", async (_, spoil) => {
    const { world } = await threeGrants();
    const { payload } = await grantOf(world, "absurd");
    spoil(payload, (payload["leases"] as Record<string, unknown>[])[0]!);
    // JSON has no number for infinity; only other programs write one.
    const [line] = forgeLines(world, [{ type: "claim.acquired", payload }]);
    const body = line!
      .replace(/,"sum":"[^"]*"}\n$/, "}")
      .replace('"monotonic_ms":null', '"monotonic_ms":1e400');
    addToLog(world, `${body.slice(0, -1)},"sum":"${sha256(body).slice(0, 32)}"}\n`);
    const b = enter(world, "agent:b");
    await b.acquire("resource:four");
    expect((await b.coordinator.list()).map(({ lease }) => lease.key)).not.toContain("resource:absurd");
    await tidy(b.store, b.logActor, { compact: true, flatIndex: {} });
    await enter(world, "agent:c").acquire("resource:five");
    expect((await enter(world, "agent:c").coordinator.list()).length).toBe(5);
  });

  it("a line of no time", async () => {
    const { world } = await threeGrants();
    const [line] = forgeLines(world, [{ type: "claim.released", payload: { leases: [], ended: [] } }]);
    const body = line!
      .replace(/,"sum":"[^"]*"}\n$/, "}")
      .replace(/"timestamp":"[^"]*"/, '"timestamp":"soon"');
    addToLog(world, `${body.slice(0, -1)},"sum":"${sha256(body).slice(0, 32)}"}\n`);
    await enter(world, "agent:b").acquire("resource:four");
    expect(logLines(world).map((l) => l?.["timestamp"])).not.toContain("soon");
  });

  it("a byte order mark: it is damage, whatever reads past it", async () => {
    const { world } = await threeGrants();
    damageLine(world, 1, (line) => `\ufeff${line}`);
    expect(await codeOf(enter(world, "agent:b").acquire("resource:four"))).toBe("E_LOG_CORRUPT");
  });
});
