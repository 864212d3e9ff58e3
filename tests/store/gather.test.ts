import { describe, expect, it } from "vitest";
import type { WorktreeId } from "../../src/kernel/ids";
import {
  acquireRequest,
  byKey,
  codeOf,
  enter,
  holding,
  key,
  place,
  quietWorld,
  range,
  submission,
} from "./stage";

const WT2 = "wt:00000002" as WorktreeId;

describe("what a decision is made from", () => {
  it("does not stop its walk at a lease that the same batch has ended", async () => {
    for (const seed of range(12)) {
      const world = quietWorld(seed);
      const a = enter(world, "agent:a");
      const { store } = a;
      const b = enter(world, "agent:b", { store });
      const c = enter(world, "agent:c", { store });
      await a.acquire("file:d/x");
      await c.acquire("file:d/y");
      const mine = await holding(a, "file:d/x");
      const [released, taken] = await Promise.allSettled([
        a.coordinator.release({ ...mine, reason: null }),
        b.coordinator.acquire(acquireRequest(b, "dir:d")),
      ]);
      expect(released.status).toBe("fulfilled");
      expect(taken, `seed ${seed}: agent:c holds a file in there`).toMatchObject({
        status: "rejected",
        reason: { code: "E_LOCK_CONFLICT" },
      });
    }
  });

  it("hands a lease over only if the giver keeps nothing that would be in the new holder's way", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    await a.acquire("file:d/x");
    await a.acquire("dir:d");
    const toB = { toAgent: "agent:b", toWorktree: WT2, toBranch: null, reason: "yours now" } as never;
    expect(await codeOf(a.session.transfer(byKey("dir:d"), toB))).toBe("E_LOCK_CONFLICT");
    await a.release("file:d/x");
    await a.session.transfer(byKey("dir:d"), toB);
  });

  it("counts the leases without expiry that a transfer adds to", async () => {
    const world = quietWorld();
    const a = enter(world, "human:a");
    const b = enter(world, "human:b");
    const indefinite = { ttlSecs: 0, reason: "for good" };
    await b.acquire(["scope:one", "scope:two"], indefinite);
    await a.acquire("scope:three", indefinite);
    const toB = {
      toAgent: b.actor.agentId,
      toWorktree: b.actor.worktreeId,
      toBranch: null,
      reason: "yours now",
    };
    expect(await codeOf(a.session.transfer(byKey("scope:three"), toB))).toBe("E_LIMIT");
  });

  it("sees everything in the way of those who wait for the same", async () => {
    for (const seed of range(12)) {
      const world = quietWorld(seed);
      const [rival, holder, third] = ["agent:rival", "agent:holder", "agent:third"].map((n) =>
        enter(world, n),
      );
      await rival!.acquire("file:d/x");
      await holder!.acquire("file:d/y");
      // The rival joins the queue for a directory in which it holds one file and the holder another.
      const request = acquireRequest(rival!, "dir:d");
      const outcome = await rival!.store.submit(submission(rival!, request, place(rival!)));
      expect(outcome).toMatchObject({ done: false, queue: { ahead: 0 } });
      expect(await codeOf(third!.acquire("file:d/x"))).toBe("E_LOCK_CONFLICT");
      const [ticket] = await third!.coordinator.waiters();
      expect(ticket?.freeSince, `seed ${seed}: it is not the rival's turn, agent:holder is in its way`).toBe(
        null,
      );
    }
  });

  it("finds a lease by its id alone", async () => {
    const world = quietWorld();
    const a = enter(world, "agent:a");
    const { leases } = await a.acquire(["file:a/b/c", "resource:r"]);
    const found = await a.coordinator.find([{ key: null, leaseId: leases[1]!.leaseId }]);
    expect(found.map(({ lease }) => lease.key)).toEqual([key("resource:r")]);
  });
});
