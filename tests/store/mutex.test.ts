import { describe, expect, it } from "vitest";
import { CONTROL, codeOf, enter, enterAs, quietWorld, range } from "./stage";

const LOCK = `${CONTROL}/locks/claims.lock`;
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Somebody sits on the mutex. */
async function taken(busyTimeoutMs = 1_000) {
  const world = quietWorld();
  const { party: holder, process: holding } = enterAs(world, "agent:holder");
  await holder.acquire("resource:one");
  let leave = () => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const sitting = holder.store.hold(holder.logActor, () => left);
  await settle();
  const { party, process } = enterAs(world, "agent:a", { busyTimeoutMs });
  return { world, holder, holding, party, process, leave, sitting };
}

describe("the mutex", () => {
  it("says who holds it when it stays taken", async () => {
    const { party, leave, sitting } = await taken();
    const refused = await party.acquire("resource:two").catch((error: unknown) => error);
    expect(refused).toMatchObject({
      code: "E_STORE_BUSY",
      message: expect.stringContaining("agent:holder"),
      data: { holder: { agent_id: "agent:holder", doing: "cotenant" } },
    });
    leave();
    await sitting;
    await party.acquire("resource:two");
  });

  it("is waited for as long as it goes from hand to hand, but not for ever", async () => {
    for (const { leavesAfterMs, refusal } of [
      { leavesAfterMs: 4_500, refusal: null },
      { leavesAfterMs: 60_000, refusal: "so many others use the store" },
    ]) {
      const { world, holder, holding, leave, sitting } = await taken();
      const { party } = enterAs(world, "agent:a", { busyTimeoutMs: 1_000, contendedTimeoutMs: 10_000 });
      const { files, timers } = holding.platform;
      const waiting = party.acquire("resource:two").then(
        () => null,
        (error: Error) => error,
      );
      // As each of those who take it would write who it is.
      const fd = await files.open(LOCK, "update");
      for (let atMs = 0; atMs < leavesAfterMs; atMs += 500) {
        const who = { pid: atMs, agent_id: "agent:many", doing: "t" };
        await files.writeAt(fd, new TextEncoder().encode(JSON.stringify(who).padEnd(511)), 0);
        await timers.sleep(500).done;
      }
      leave();
      await sitting;
      const error = await waiting;
      if (refusal === null) expect(error).toBeNull();
      else expect(error).toMatchObject({ code: "E_STORE_BUSY", message: expect.stringContaining(refusal) });
      await holder.release("resource:one");
    }
  });

  it("takes over a wait that outlived its caller", async () => {
    const { party, leave, sitting, world } = await taken();
    expect(await codeOf(party.acquire("resource:two"))).toBe("E_STORE_BUSY");
    const again = party.acquire("resource:two");
    await settle();
    leave();
    await sitting;
    await again;
    await enter(world, "agent:z", { busyTimeoutMs: 100 }).acquire("resource:three");
  });

  it("gives back a lock that came when nobody wanted it any more", async () => {
    const { party, leave, sitting, world } = await taken();
    expect(await codeOf(party.acquire("resource:two"))).toBe("E_STORE_BUSY");
    leave();
    await sitting;
    await settle();
    await enter(world, "agent:z", { busyTimeoutMs: 100 }).acquire("resource:three");
    await party.acquire("resource:two");
  });

  it("is free at once when its holder dies", async () => {
    const { party, holding, world } = await taken();
    const waiting = party.acquire("resource:two");
    await settle();
    world.kill(holding);
    await waiting;
  });

  it("is not lost for good when a wait for it fails", async () => {
    const { party, leave, sitting, world } = await taken();
    world.faults.add({ code: "EINTR", operations: ["lock"], times: 1 });
    const interrupted = party.acquire("resource:two").catch(() => {});
    await settle();
    leave();
    await sitting;
    await interrupted;
    await party.acquire("resource:two");
    await enter(world, "agent:z", { busyTimeoutMs: 100 }).acquire("resource:three");
  });

  it("is not kept by a caller who failed right after taking it", async () => {
    for (const operation of ["fstat", "stat"] as const) {
      const world = quietWorld();
      const a = enter(world, "agent:a");
      await a.acquire("resource:one");
      world.faults.add({
        code: "EIO",
        operations: [operation],
        path: (path) => path === LOCK,
        skip: operation === "stat" ? 1 : 0,
        times: 1,
      });
      expect(await codeOf(a.release("resource:one"))).toBe("E_DISK");
      await enter(world, "agent:b", { busyTimeoutMs: 100 }).acquire("resource:two");
    }
  });

  it("notices that its file was replaced against the rules", async () => {
    const world = quietWorld();
    const { party: a, process } = enterAs(world, "agent:a");
    await a.acquire("resource:one");
    await process.platform.files.unlink(LOCK);
    await enter(world, "agent:b").acquire("resource:two");
    await a.release("resource:one");
    expect(await codeOf(a.acquire("resource:two"))).toBe("E_LOCK_CONFLICT");
  });

  it("is the file that has its name: whoever locked one that was replaced waits for those who lock the new one", async () => {
    const world = quietWorld();
    const { party: a, process } = enterAs(world, "agent:a", { busyTimeoutMs: 1_000 });
    await a.acquire("resource:one");
    await process.platform.files.unlink(LOCK);
    const b = enter(world, "agent:b");
    const sitting = b.store.hold(b.logActor, () => b.platform.timers.sleep(5_000).done);
    await settle();
    expect(await codeOf(a.acquire("resource:two"))).toBe("E_STORE_BUSY");
    await sitting;
    await a.acquire("resource:two");
  });

  it("lets the callers of one process in one after the other", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("resource:one");
    let inside = 0;
    await Promise.all(
      range(10).map(() =>
        a.store.hold(a.logActor, async () => {
          expect(++inside).toBe(1);
          await settle();
          inside--;
        }),
      ),
    );
  });

  it("lets others in after a body that threw", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const failing = a.store.hold(a.logActor, async () => {
      throw new Error("a mistake");
    });
    await expect(failing).rejects.toThrow("a mistake");
    await enter(world, "agent:b", { busyTimeoutMs: 100 }).acquire("resource:one");
  });
});
