import { describe, expect, it } from "vitest";
import type { Fact, FactName } from "../../src/kernel/facts";
import type { Ulid } from "../../src/kernel/ids";
import type { Intention, Standing } from "../../src/store/guarded-write";
import { tidy } from "../../src/store/housekeeping";
import { recover } from "../../src/store/recover";
import type { SimWorld } from "../../testing/simulator";
import {
  byKey,
  CONTROL,
  codeOf,
  damageLine,
  enter,
  enterAs,
  freshId,
  logLines,
  type Party,
  quietWorld,
  range,
  zeroed,
} from "./stage";

const NOTE = "note:one" as FactName;
const KEY = "resource:guarded";

/** Writes one fact, and a file outside the store, under the lease on KEY. */
function write(
  party: Party,
  value: Fact | null,
  more: {
    name?: FactName;
    requestId?: Ulid;
    about?: string;
    lease?: string | null;
    body?: (standing: Standing) => Partial<Intention<string>>;
  } = {},
) {
  const { name = NOTE, requestId = null, about = "the note", lease = KEY, body } = more;
  return party.session.write<string>(lease === null ? [] : [byKey(lease)], {
    about,
    facts: [name],
    requestId,
    body: async (standing) => {
      if (standing.refusal !== null && lease !== null)
        throw Object.assign(new Error("unproved"), { refusal: standing.refusal });
      return {
        type: "note.written",
        payload: { size: 1 },
        facts: new Map([[name, value]]),
        answer: `line ${standing.sequence}`,
        result: { line: standing.sequence },
        ...body?.(standing),
      };
    },
  });
}

const factsOf = async (party: Party) =>
  Object.fromEntries([...(await party.coordinator.facts({ kinds: ["note"] }))].map(([n, f]) => [n, f.value]));

const refusalOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: { refusal?: { code: string } }) => error.refusal?.code ?? String(error),
  );

describe("a guarded write", () => {
  it("is logged with what it says, and everybody reads it", async () => {
    const world = quietWorld();
    const [a, b] = [enter(world, "agent:a"), enter(world, "agent:b")];
    await a.acquire(KEY);
    const written = await write(a, { text: "first" });
    expect(written).toMatchObject({ replayed: false, answer: "line 3", leases: [{ key: KEY }] });
    expect(logLines(world).at(-1)).toMatchObject({
      sequence: 3,
      event_type: "note.written",
      actor: { agent_id: "agent:a" },
      payload: { about: "the note", size: 1, facts: { "note:one": { text: "first" } } },
    });
    expect(await factsOf(b)).toEqual({ "note:one": { text: "first" } });
    await write(a, { text: "second" });
    expect(await factsOf(b)).toEqual({ "note:one": { text: "second" } });
    await write(a, null);
    expect(await factsOf(b)).toEqual({});
  });

  it("hears why its leases are not proved: never held, somebody else's, expired, taken over", async () => {
    const world = quietWorld();
    const [a, b] = [enter(world, "agent:a"), enter(world, "human:b")];
    expect(await refusalOf(write(a, {}))).toBe("E_NOT_FOUND");
    await b.acquire(KEY);
    expect(await refusalOf(write(a, {}))).toBe("E_LOCK_NOT_HELD");
    await b.release(KEY);
    await a.acquire(KEY, { ttlSecs: 5 });
    world.advance(6_000);
    expect(await refusalOf(write(a, {}))).toBe("E_LOCK_EXPIRED");
    await b.acquire(KEY);
    expect(await refusalOf(write(a, {}))).toBe("E_FENCING_MISMATCH");
    expect(await factsOf(b)).toEqual({});
    expect(logLines(world).some((line) => line?.["event_type"] === "note.written")).toBe(false);
  });

  it("is not done under an indefinite lease that shows no sign of life, until it is renewed", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("scope:config", { ttlSecs: 0, reason: "long" });
    world.advance(3_601_000);
    expect(await refusalOf(write(a, {}, { lease: "scope:config" }))).toBe("E_LOCK_EXPIRED");
    await a.renew("scope:config");
    expect(await refusalOf(write(a, {}, { lease: "scope:config" }))).toBe("done");
  });

  it("may go on without a lease where its body says so", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    expect(await write(a, { free: true }, { lease: null })).toMatchObject({ leases: [], answer: "line 2" });
    expect(await factsOf(a)).toEqual({ "note:one": { free: true } });
  });

  it("adopts a lease that was handed to its caller, in the line before its own", async () => {
    const world = quietWorld();
    const [a, b] = [enter(world, "agent:a"), enter(world, "agent:b")];
    await a.acquire(KEY);
    const { agentId: toAgent, worktreeId: toWorktree } = b.actor;
    await a.session.transfer(byKey(KEY), { toAgent, toWorktree, toBranch: null, reason: "take it" });
    expect(await write(b, { by: "b" })).toMatchObject({ answer: "line 5" });
    expect(logLines(world).map((line) => line?.["event_type"])).toEqual([
      "log.checkpoint",
      "claim.acquired",
      "claim.transferred",
      "claim.renewed",
      "note.written",
    ]);
    await b.release(KEY);
  });

  it("is done once, however often it is asked for with one request id", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(KEY);
    const requestId = freshId(a.platform);
    await write(a, { n: 1 }, { requestId });
    await write(a, { n: 2 });
    const again = await write(a, { n: 1 }, { requestId });
    expect(again).toMatchObject({ replayed: true, record: { result: { line: 3 }, about: "the note" } });
    await tidy(a.store, a.logActor, { compact: true, flatIndex: {} });
    expect(await write(a, { n: 1 }, { requestId })).toMatchObject({ replayed: true });
    expect(await factsOf(a)).toEqual({ "note:one": { n: 2 } });
    expect(await codeOf(write(a, {}, { requestId, about: "another" }))).toBe("E_USAGE");
    expect(await codeOf(a.acquire("resource:x", { requestId }))).toBe("E_USAGE");
    const b = enter(world, "agent:b");
    expect(await codeOf(write(b, {}, { requestId, lease: null }))).toBe("E_USAGE");
  });

  it("acts only when every line that it relies on is on the disk", async () => {
    const world = quietWorld();
    const { party: a, process } = enterAs(world, "agent:a");
    await a.acquire(KEY);
    // Somebody whose line is in the log, and not yet on the disk.
    const b = enter(world, "agent:b");
    const { files } = b.platform;
    Object.assign(files, { datasync: async () => {} });
    await b.acquire("resource:other");
    world.disk.spoil(`${CONTROL}/index/synced`, new Uint8Array());
    const before = world.trace.step;
    let syncedFirst = false;
    await write(
      a,
      {},
      {
        body: () => {
          syncedFirst = syncsOfLog(world, before) === 1;
          return {};
        },
      },
    );
    expect(syncedFirst).toBe(true);
    expect(process.isAlive).toBe(true);
  });

  it("is answered only when it is on the disk and settled", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(KEY);
    const before = world.trace.step;
    const order: string[] = [];
    await write(
      a,
      {},
      {
        body: () => ({
          carryOut: async () => void order.push(`carried out after ${syncsOfLog(world, before)} syncs`),
          settle: async () => void order.push(`settled after ${syncsOfLog(world, before)} syncs`),
        }),
      },
    );
    expect(order).toEqual(["carried out after 1 syncs", "settled after 1 syncs"]);
  });

  it("that could not be carried out says that it is logged, under which id", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(KEY);
    const fails = async () => {
      throw Object.assign(new Error("EIO"), { code: "EIO" });
    };
    const error = await write(a, { n: 1 }, { body: () => ({ carryOut: fails }) }).catch((e) => e);
    expect(error).toMatchObject({
      code: "E_DISK",
      data: { outcome: "unknown", request_id: expect.any(String) },
    });
    expect(await factsOf(a)).toEqual({ "note:one": { n: 1 } });
    await write(a, { n: 2 });
  });

  it("leaves nothing behind when its body refuses, or the disk is full", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire(KEY);
    const lines = logLines(world).length;
    const no = () => {
      throw new Error("no");
    };
    await expect(write(a, {}, { body: no })).rejects.toThrow("no");
    world.faults.add({
      code: "ENOSPC",
      operations: ["append"],
      times: 1,
      probability: 1,
      path: () => true,
      process: () => true,
    });
    expect(await codeOf(write(a, { n: 1 }))).toBe("E_DISK");
    expect(logLines(world)).toHaveLength(lines);
    expect(await factsOf(a)).toEqual({});
  });
});

describe("facts", () => {
  async function many(world: SimWorld, count: number): Promise<Party> {
    const a = enter(world, "agent:a");
    for (const i of range(count)) await write(a, { i }, { name: `note:n${i}` as FactName, lease: null });
    return a;
  }
  const allOf = (count: number) => Object.fromEntries(range(count).map((i) => [`note:n${i}`, { i }]));

  it("survive compaction, a lost index and recovery", async () => {
    const world = quietWorld();
    const a = await many(world, 20);
    await write(a, null, { name: "note:n3" as FactName, lease: null });
    const expected = allOf(20);
    delete expected["note:n3"];
    await tidy(a.store, a.logActor, { compact: true, flatIndex: {} });
    expect(await factsOf(enter(world, "agent:b"))).toEqual(expected);
    for (const path of world.disk.paths())
      if (path.startsWith(`${CONTROL}/index/`) && !path.endsWith("/")) world.disk.spoil(path, null);
    expect(await factsOf(enter(world, "agent:b"))).toEqual(expected);
    const c = enter(world, "agent:c");
    await c.acquire("resource:x");
    await c.acquire("resource:y");
    expect(await factsOf(enter(world, "agent:b"))).toEqual(expected);
    damageLine(world, 1, zeroed);
    expect((await recover(c.store, c.logActor)).recovered).toBe(true);
    expect(await factsOf(enter(world, "agent:b"))).toEqual(expected);
  });

  it("are not missed when one file of the index is gone, or says something else", async () => {
    for (const change of ["gone", "swapped", "garbage"] as const) {
      const world = quietWorld();
      await many(world, 5);
      const paths = world.disk.paths().filter((path) => path.includes("/index/facts/note/n"));
      expect(paths).toHaveLength(5);
      const bytes =
        change === "gone" ? null : change === "swapped" ? world.disk.peek(paths[1]!) : new Uint8Array(40);
      world.disk.spoil(paths[0]!, bytes);
      expect(await factsOf(enter(world, "agent:b"))).toEqual(allOf(5));
      const one = "note:n0" as FactName;
      const found = await enter(world, "agent:b").coordinator.facts({ names: [one] });
      expect(found.get(one)?.value).toEqual({ i: 0 });
      // And the next writer mends it.
      await enter(world, "agent:c").acquire("resource:x");
      await write(enter(world, "agent:c"), { i: 9 }, { name: "note:n9" as FactName, lease: null });
      expect(await factsOf(enter(world, "agent:b"))).toEqual({ ...allOf(5), "note:n9": { i: 9 } });
    }
  });

  it("are found by name, by kind, and not in a log that has none", async () => {
    const world = quietWorld();
    const empty = enter(world, "agent:e");
    expect(await factsOf(empty)).toEqual({});
    const a = await many(world, 3);
    await write(a, { other: 1 }, { name: "thing:Ä".replace("Ä", "X/y%z") as FactName, lease: null });
    const { coordinator } = a;
    expect([...(await coordinator.facts({ kinds: ["thing"] })).keys()]).toEqual(["thing:X/y%z"]);
    expect([
      ...(await coordinator.facts({ names: ["note:n1" as FactName, "note:none" as FactName] })).keys(),
    ]).toEqual(["note:n1"]);
    expect((await coordinator.facts({})).size).toBe(0);
  });

  it("have names that fit in a file name, and sizes that fit in a line", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    expect(await codeOf(write(a, { text: "x".repeat(17_000) }, { lease: null }))).toBe("E_LIMIT");
    await expect(write(a, {}, { name: "no such name" as FactName, lease: null })).rejects.toThrow();
    expect(await factsOf(a)).toEqual({});
  });
});

function syncsOfLog(world: SimWorld, since: number): number {
  return world.trace
    .entries()
    .filter(({ step, what }) => step > since && what.startsWith("datasync") && what.includes("claims.jsonl"))
    .length;
}
