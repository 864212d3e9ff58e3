import { beforeEach, describe, expect, it } from "vitest";
import { PAUSE_FACT, pauseToFact } from "../../src/kernel/pause";
import { isRefusal } from "../../src/kernel/refusal";
import { byId, byKey, granted, one, refused, Scene, WT2 } from "./scene";

let scene: Scene;
beforeEach(() => {
  scene = new Scene();
});
const pause = () =>
  scene.say(
    PAUSE_FACT,
    pauseToFact({ agentId: "human:ada", at: "2026-01-01T00:00:00.000Z", reason: "moving the database" }),
  );

describe("while a repository is paused", () => {
  it("nothing new is granted, and the refusal says who, since when and why", () => {
    pause();
    const outcome = scene.acquire(scene.actor("agent:a"), "file:a");
    expect(refused(outcome)).toBe("E_PAUSED");
    expect(isRefusal(outcome) && outcome.message).toBe(
      "nothing new is granted: paused by human:ada since 2026-01-01T00:00:00.000Z: moving the database",
    );
    expect(isRefusal(outcome) && outcome.data).toEqual({
      paused_by: "human:ada",
      paused_at: "2026-01-01T00:00:00.000Z",
      reason: "moving the database",
    });
  });

  it("what is held is granted again, renewed, proved, handed over, adopted and given back", () => {
    const [a, b] = [scene.actor("agent:a"), scene.actor("agent:b", "default", WT2)];
    const lease = one(scene.acquire(a, "file:a"));
    pause();
    expect(one(scene.acquire(a, "file:a")).leaseId).toBe(lease.leaseId);
    granted(scene.renew(a, byId(lease), { ttlSecs: 900 }));
    granted(scene.heartbeat(a, byId(lease)));
    granted(scene.prove(a, byId(lease)));
    const moved = one(scene.transfer(a, byId(lease), b));
    expect(one(scene.acquire(b, "file:a")).leaseId).toBe(moved.leaseId);
    granted(scene.release(b, byKey("file:a")));
    expect(refused(scene.acquire(b, "file:a"))).toBe("E_PAUSED");
  });

  it("whoever holds one of two asks for something new all the same", () => {
    const a = scene.actor("agent:a");
    granted(scene.acquire(a, "file:a"));
    pause();
    expect(refused(scene.acquire(a, ["file:a", "file:b"]))).toBe("E_PAUSED");
  });

  it("a file in a directory that its asker holds is nothing new; one beside it is", () => {
    const a = scene.actor("agent:a");
    granted(scene.acquire(a, "dir:src"));
    pause();
    granted(scene.guard(a, "src/deep/a.ts"));
    expect(refused(scene.guard(a, "lib/a.ts"))).toBe("E_PAUSED");
    expect(refused(scene.guard(scene.actor("agent:b"), "src/b.ts"))).toBe("E_PAUSED");
  });

  it("a lease that reaches one worktree covers nothing that reaches the repository", () => {
    const a = scene.actor("agent:a");
    granted(scene.acquire(a, { key: "dir:src", reach: "worktree" }));
    pause();
    expect(refused(scene.acquire(a, "file:src/a.ts"))).toBe("E_PAUSED");
    granted(scene.guard(a, "src/a.ts"));
  });

  it("a file that its holder has locked is nothing new to the guard", () => {
    const a = scene.actor("agent:a");
    granted(scene.acquire(a, "file:a"));
    pause();
    granted(scene.guard(a, "a"));
  });

  it("what has run out is new again, and what stands in the way is not stolen", () => {
    const a = scene.actor("agent:a");
    granted(scene.acquire(a, "file:a", { ttlSecs: 60 }));
    granted(scene.acquire(scene.actor("agent:b"), "file:b"));
    scene.advance(61);
    pause();
    expect(refused(scene.acquire(a, "file:a"))).toBe("E_PAUSED");
    const steal = { steal: true, reason: "it hangs" };
    expect(refused(scene.acquire(scene.actor("human:ada"), "file:b", steal))).toBe("E_PAUSED");
    granted(scene.evict(scene.actor("human:ada"), byKey("file:b")));
    granted(scene.gc(a));
  });

  it("a record that cannot be read holds until it is taken back", () => {
    scene.say(PAUSE_FACT, {});
    expect(refused(scene.acquire(scene.actor("agent:a"), "file:a"))).toBe("E_PAUSED");
    scene.say(PAUSE_FACT, null);
    granted(scene.acquire(scene.actor("agent:a"), "file:a"));
  });
});
