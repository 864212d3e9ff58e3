import { describe, expect, it } from "vitest";
import { tidy } from "../../src/store/housekeeping";
import { recover, TOKEN_LEAP } from "../../src/store/recover";
import {
  acquireRequest,
  CONTROL,
  codeOf,
  damageLine,
  decode,
  encode,
  enter,
  freshId,
  history,
  LOG,
  logLines,
  type Party,
  quietWorld,
  range,
  zeroed,
} from "./stage";

const mend = (party: Party) => recover(party.store, party.logActor);
const compact = (party: Party) => tidy(party.store, party.logActor, { compact: true, flatIndex: {} });
const heldKeys = async (party: Party) =>
  (await party.coordinator.list()).map(({ lease }) => lease.key as string).sort();

function loseIndex(world: ReturnType<typeof quietWorld>): void {
  for (const path of world.disk.paths())
    if (path.startsWith(`${CONTROL}/index/`) && !path.endsWith("/")) world.disk.install(path, encode(""));
}

describe("recover", () => {
  it("has nothing to do where nothing is wrong", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    expect(await mend(a)).toMatchObject({ recovered: false, leases: 0 });
    await a.acquire("resource:one");
    const before = decode(world.disk.peek(LOG));
    expect(await mend(a)).toMatchObject({ recovered: false, damage: null, leases: 1, keptAs: null });
    expect(decode(world.disk.peek(LOG))).toBe(before);
  });

  it("salvages every whole line, keeps the damaged file, and leaps ahead of every token", async () => {
    for (const index of [1, 2]) {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      for (const name of ["one", "two", "three"]) await a.acquire(`resource:${name}`);
      damageLine(world, index, zeroed);
      const damaged = decode(world.disk.peek(LOG));
      loseIndex(world);
      const b = enter(world, "agent:b");
      expect(await codeOf(b.acquire("resource:x"))).toBe("E_LOG_CORRUPT");
      const report = await mend(b);
      expect(report).toMatchObject({ recovered: true, salvagedLines: 3, leases: 2, leasesFromIndex: 0 });
      expect(decode(world.disk.peek(`${CONTROL}/archive/${report.keptAs}`))).toBe(damaged);
      const { leases } = await b.acquire("resource:x");
      expect(leases[0]!.fencingToken).toBeGreaterThanOrEqual(TOKEN_LEAP + 3);
      expect((await heldKeys(b)).length).toBe(3);
      expect(Number(logLines(world).at(-1)!["sequence"])).toBeGreaterThan(4);
      expect(await mend(b)).toMatchObject({ recovered: false });
    }
  });

  it("does not go on below a token that only an altered line still names", async () => {
    for (const [token, isBelieved] of [
      [50_000_000, true],
      [2 ** 51, false],
    ] as const) {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      await a.acquire("resource:one");
      await a.coordinator.acquire(acquireRequest(a, "resource:two", { aboveToken: 1_000 }));
      await a.acquire("resource:three");
      damageLine(world, 2, (line) => line.replace('"fencing_token":1001', `"fencing_token":${token}`));
      loseIndex(world);
      const { nextToken } = await mend(enter(world, "agent:b"));
      if (isBelieved) expect(nextToken).toBeGreaterThanOrEqual(token + TOKEN_LEAP);
      else expect(nextToken).toBeLessThan(50_000_000);
    }
  });

  it("keeps leases that only the index still knows", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    for (const name of ["one", "two", "three"]) await a.acquire(`resource:${name}`);
    damageLine(world, 2, zeroed);
    const b = enter(world, "agent:b");
    expect(await mend(b)).toMatchObject({ leases: 3, leasesFromIndex: 1 });
    expect(await codeOf(b.acquire("resource:two"))).toBe("E_LOCK_CONFLICT");
  });

  it("leaps ahead also of tokens that only the index knows, or that were seen elsewhere", async () => {
    const HIGH = 5 * TOKEN_LEAP;
    for (const known of ["as a lease", "as a lease that has ended", "elsewhere"]) {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      await a.acquire("resource:one");
      const aboveToken = known === "elsewhere" ? 0 : HIGH;
      await a.coordinator.acquire(acquireRequest(a, "resource:two", { aboveToken, requestId: null }));
      if (known === "as a lease that has ended") {
        const two = (await a.coordinator.list()).find(({ lease }) => lease.key === "resource:two")!;
        await enter(world, "human:h").session.evict([{ key: null, leaseId: two.lease.leaseId }], {
          reason: "r",
        });
        damageLine(world, 3, zeroed);
      }
      damageLine(world, 2, zeroed);
      const seen = known === "elsewhere" ? [HIGH] : [];
      const b = enter(world, "agent:b");
      expect((await recover(b.store, b.logActor, seen)).nextToken, known).toBeGreaterThan(HIGH + TOKEN_LEAP);
      const { leases } = await b.acquire("resource:x");
      expect(leases[0]!.fencingToken, known).toBeGreaterThan(HIGH + TOKEN_LEAP);
    }
  });

  it("gives nobody up whom a failing disk hides: it fails, and finds them later", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    world.disk.install(LOG, encode("rubbish\n"));
    const isLease = (path: string) => path.endsWith("/meta.json");
    const fault = world.faults.add({ code: "EIO", operations: ["readFile"], path: isLease });
    expect(await codeOf(mend(enter(world, "agent:b")))).toBe("E_DISK");
    fault.remove();
    expect(await mend(enter(world, "agent:b"))).toMatchObject({ recovered: true, leasesFromIndex: 1 });
    expect(await codeOf(enter(world, "agent:b").acquire("resource:one"))).toBe("E_LOCK_CONFLICT");
  });

  it("reads on in an index that is damaged as well", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const names = range(8).map((i) => `r${i}`);
    for (const name of names) await a.acquire(`resource:${name}`);
    for (const index of range(8)) damageLine(world, index + 1, zeroed);
    world.disk.install(`${CONTROL}/index/resource/r3/meta.json`, encode("rubbish"));
    const b = enter(world, "agent:b");
    expect(await mend(b)).toMatchObject({ leases: 7, leasesFromIndex: 7 });
  });

  it("does not bring back a lease beside the one that took its place", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const b = enter(world, "agent:b");
    await a.acquire("file:d/x");
    await a.release("file:d/x");
    await b.acquire("dir:d");
    // The release is lost. That the directory was granted afterwards proves that there was one.
    damageLine(world, 2, zeroed);
    loseIndex(world);
    const c = enter(world, "agent:c");
    expect(await heldKeys(c)).toEqual(["dir:d"]);
    await mend(c);
    expect(await heldKeys(c)).toEqual(["dir:d"]);
    expect(await codeOf(a.acquire("file:d/x"))).toBe("E_LOCK_CONFLICT");
  });

  it("starts from the segment before when the new one's first line is lost", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(["resource:one", "resource:two"]);
    await compact(a);
    await a.release("resource:one");
    await a.acquire("resource:three");
    damageLine(world, 0, zeroed);
    loseIndex(world);
    const b = enter(world, "agent:b");
    expect(await codeOf(b.acquire("resource:x"))).toBe("E_LOG_CORRUPT");
    await mend(b);
    expect(await heldKeys(b)).toEqual(["resource:three", "resource:two"]);
  });

  it.each(["packed", "plain"])(
    "starts from the newest archived segment when the log is gone (%s)",
    async (how) => {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      const { leases } = await a.acquire(["resource:one", "resource:two"]);
      if (how === "packed") await compact(a);
      else
        await a.store.hold(a.logActor, async () =>
          a.store.keeper.rotate(await a.store.keeper.stand(a.logActor), a.logActor),
        );
      loseIndex(world);
      await a.platform.files.unlink(LOG);
      const b = enter(world, "agent:b");
      expect(await mend(b)).toMatchObject({ recovered: true, leases: 2 });
      expect(await heldKeys(b)).toEqual(["resource:one", "resource:two"]);
      const next = await b.acquire("resource:x");
      expect(next.leases[0]!.fencingToken).toBeGreaterThanOrEqual(leases[1]!.fencingToken + TOKEN_LEAP);
      const sequences = (await history(b)).map(({ sequence }) => sequence);
      expect(new Set(sequences).size).toBe(sequences.length);
    },
  );

  it("starts from the index alone when nothing else is left", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(["resource:one", "resource:two"]);
    await a.platform.files.unlink(LOG);
    const b = enter(world, "agent:b");
    expect(await mend(b)).toMatchObject({ recovered: true, leases: 2, leasesFromIndex: 2, keptAs: null });
    const next = await b.acquire("resource:x");
    expect(next.leases[0]!.fencingToken).toBeGreaterThan(TOKEN_LEAP);
    // Sequence numbers go on, too: others know lines of the lost log by them.
    expect(Number(logLines(world).at(-1)!["sequence"])).toBeGreaterThan(2);
  });

  it("leaves the salvaged events in the history", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    for (const name of ["one", "two", "three"]) await a.acquire(`resource:${name}`);
    damageLine(world, 2, zeroed);
    await mend(a);
    await a.acquire("resource:four");
    const keys = (await history(a)).map(({ payload }) => (payload["leases"] as { key: string }[])[0]!.key);
    expect(keys).toEqual(["resource:one", "resource:three", "resource:four"]);
  });

  it("remembers request ids through it", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const request = acquireRequest(a, "resource:r", { requestId: freshId(a.platform) });
    await a.coordinator.acquire(request);
    await a.acquire("resource:two");
    await a.acquire("resource:three");
    damageLine(world, 2, zeroed);
    await mend(a);
    expect(await a.coordinator.acquire(request)).toMatchObject({ replayed: true });
  });

  it("refuses a log of a newer schema, untouched", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    const newer = `${JSON.stringify({ schema_version: 2, seq: "3", what: {} })}\n`;
    world.disk.install(LOG, encode(decode(world.disk.peek(LOG)) + newer));
    const before = decode(world.disk.peek(LOG));
    expect(await codeOf(mend(enter(world, "agent:b")))).toBe("E_SCHEMA_NEWER");
    expect(decode(world.disk.peek(LOG))).toBe(before);
  });

  it("goes further back when the newest segment of the archive is the damaged log itself", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    await compact(a);
    const before = logLines(world).length;
    expect(before).toBe(1);
    // As a rotation leaves it that lost the power before its rename was on the disk.
    damageLine(world, 0, zeroed);
    await a.platform.files.link(LOG, `${CONTROL}/archive/claims-000002.jsonl`);
    world.disk.spoil(`${CONTROL}/index/applied`, new Uint8Array(0));
    for (const path of world.disk.paths()) if (/meta[.@]/.test(path)) world.disk.spoil(path, null);
    const report = await mend(enter(world, "agent:b"));
    expect(report).toMatchObject({ recovered: true, leases: 1 });
    expect(await heldKeys(a)).toEqual(["resource:one"]);
    expect(Number(logLines(world)[0]!["sequence"])).toBeGreaterThan(2);
  });

  it("says that the disk has failed, and not only how", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    world.faults.add({ code: "EIO", operations: ["read"], path: (path) => path === LOG });
    expect(await codeOf(mend(a))).toBe("E_DISK");
  });

  it("can be repeated when it failed half way", async () => {
    for (const skip of range(80)) {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      for (const name of ["one", "two", "three"]) await a.acquire(`resource:${name}`);
      damageLine(world, 2, zeroed);
      const b = enter(world, "agent:b");
      const fault = world.faults.add({
        code: "ENOSPC",
        operations: ["append", "writeAt", "openForWriting", "rename", "link", "makeDirectory"],
        skip,
      });
      await mend(b).catch(() => {});
      fault.remove();
      await mend(b);
      expect(await heldKeys(b), `skip ${skip}`).toEqual(["resource:one", "resource:three", "resource:two"]);
      await b.acquire("resource:x");
      if (fault.struck === 0) return;
    }
    throw new Error("it has more steps than were tried");
  });
});
