import { describe, expect, test } from "vitest";
import { byId, byKey, granted, ISSUE, one, refused, Scene, WT1, WT2, written } from "./scene";

const WRITER = `worktree:${WT1}`;

describe("steal", () => {
  test("ends a live lease and takes its place in one line", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const old = one(scene.acquire(ann, ISSUE));
    const outcome = scene.acquire(scene.actor("human:eve"), ISSUE, { steal: true, reason: "urgent" });
    expect(one(outcome).stoleFrom).toEqual([{ leaseId: old.leaseId, agentId: "agent:ann", why: "forced" }]);
    expect(written(outcome)).toMatchObject({
      type: "claim.acquired",
      reason: "urgent",
      ended: [{ leaseId: old.leaseId, how: "forced", successor: one(outcome).leaseId }],
    });
    expect(refused(scene.renew(ann, byId(old)))).toBe("E_FENCING_MISMATCH");
  });

  test("ends every live lease in the way, of several holders", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), "file:d/x"));
    granted(scene.acquire(scene.actor("agent:bob"), "file:d/y"));
    const outcome = scene.acquire(scene.actor("human:eve"), "dir:d", { steal: true, reason: "freeze" });
    expect(one(outcome).stoleFrom.map((s) => s.agentId)).toEqual(["agent:ann", "agent:bob"]);
    expect(scene.view.leases.size).toBe(1);
  });

  test.each([null, "", "  "])("needs a reason; %j is none", (reason) => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), ISSUE));
    expect(refused(scene.acquire(scene.actor("human:eve"), ISSUE, { steal: true, reason }))).toBe("E_USAGE");
  });

  test("needs the policy's leave", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), ISSUE));
    const options = { steal: true, reason: "mine" };
    expect(refused(scene.acquire(scene.actor("agent:bob"), ISSUE, options))).toBe("E_POLICY");
    scene.policy = { ...scene.policy, evict: ["agent:bob"] };
    expect(refused(scene.acquire(scene.actor("human:eve"), ISSUE, options))).toBe("E_POLICY");
    expect(refused(scene.acquire(scene.actor("agent:bobby"), ISSUE, options))).toBe("E_POLICY");
    granted(scene.acquire(scene.actor("agent:bob"), ISSUE, options));
  });

  test("of a free or lapsed key is an ordinary grant that needs neither", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), ISSUE, { steal: true }));
    scene.advance(600);
    granted(scene.acquire(scene.actor("agent:bob"), ISSUE, { steal: true }));
  });

  test("never of a worktree's live writer lock", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), WRITER));
    const eve = scene.actor("human:eve", "default", WT2);
    const options = { steal: true, reason: "urgent" };
    expect(refused(scene.acquire(eve, WRITER, options))).toBe("E_LOCK_CONFLICT");
    scene.advance(600);
    expect(one(scene.acquire(eve, WRITER, options)).fencingToken).toBe(2);
  });

  test("all or nothing: a writer lock among the keys saves the others too", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), [WRITER, "file:a"]));
    const before = scene.view;
    const options = { steal: true, reason: "urgent" };
    expect(refused(scene.acquire(scene.actor("human:eve"), ["file:a", WRITER], options))).toBe(
      "E_LOCK_CONFLICT",
    );
    expect(scene.view).toBe(before);
  });
});

describe("evict", () => {
  test("by a human with a reason ends a live lease; its holder is told", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const lease = one(scene.acquire(ann, ISSUE));
    const outcome = scene.evict(scene.actor("human:eve"), byId(lease), "stuck");
    expect(written(outcome)).toMatchObject({
      type: "claim.evicted",
      reason: "stuck",
      leases: [],
      ended: [{ leaseId: lease.leaseId, how: "forced", successor: null }],
    });
    expect(scene.lease(ISSUE)).toBeUndefined();
    expect(refused(scene.renew(ann, byId(lease)))).toBe("E_FENCING_MISMATCH");
  });

  test.each([null, "", " \t"])("needs a reason; %j is none", (reason) => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), ISSUE));
    expect(refused(scene.evict(scene.actor("human:eve"), byKey(ISSUE), reason))).toBe("E_USAGE");
  });

  test("by an agent is refused while the lease lives, and allowed when it has lapsed", () => {
    const scene = new Scene();
    const lease = one(scene.acquire(scene.actor("agent:ann"), ISSUE));
    const bob = scene.actor("agent:bob");
    expect(refused(scene.evict(bob, byId(lease)))).toBe("E_POLICY");
    scene.advance(600);
    expect(written(scene.evict(bob, byId(lease)))?.ended).toMatchObject([{ how: "expired" }]);
  });

  test("of an unknown lease finds nothing", () => {
    const scene = new Scene();
    expect(refused(scene.evict(scene.actor("human:eve"), byKey(ISSUE)))).toBe("E_NOT_FOUND");
  });

  test("is all or nothing", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), "file:a"));
    const refs = [byKey("file:a"), byKey("file:b")];
    expect(refused(scene.evict(scene.actor("human:eve"), refs))).toBe("E_NOT_FOUND");
    expect(scene.lease("file:a")).toBeDefined();
  });

  test("never of a worktree's live writer lock, by whoever", () => {
    for (const terms of [{}, { ttlSecs: 0, reason: "release train" }]) {
      const scene = new Scene();
      const ann = scene.actor("agent:ann");
      granted(scene.acquire(ann, WRITER, terms));
      for (const who of [scene.actor("human:eve"), scene.actor("agent:bob"), ann])
        expect(refused(scene.evict(who, byKey(WRITER))), who.agentId).toBe("E_LOCK_CONFLICT");
    }
  });

  test("of a writer lock that has run out, or is stale: else nobody could ever write there again", () => {
    for (const { terms, secs } of [
      { terms: {}, secs: 600 },
      { terms: { ttlSecs: 0, reason: "release train" }, secs: 3_601 },
    ]) {
      const scene = new Scene();
      granted(scene.acquire(scene.actor("agent:ann"), WRITER, terms));
      scene.advance(secs);
      granted(scene.evict(scene.actor("human:eve"), byKey(WRITER)));
    }
  });

  test("by key means somebody else's lease, not the caller's own", () => {
    const scene = new Scene();
    const eve = scene.actor("human:eve", "default", WT1, 1);
    const ann = scene.actor("agent:ann", "s", WT2, 2);
    granted(scene.guard(eve, "a"));
    const theirs = one(scene.guard(ann, "a"));
    expect(one(scene.evict(eve, byKey("file:a"))).leaseId).toBe(theirs.leaseId);
  });

  test("by key means the lease in the caller's way", () => {
    const scene = new Scene();
    granted(scene.guard(scene.actor("agent:ann", "s", WT2, 2), "a"));
    const here = one(scene.guard(scene.actor("agent:bob", "s", WT1, 3), "a"));
    expect(one(scene.evict(scene.actor("human:eve"), byKey("file:a"))).leaseId).toBe(here.leaseId);
  });

  test("by key guesses nobody when several holders elsewhere could be meant", () => {
    const scene = new Scene();
    const ann = one(scene.guard(scene.actor("agent:ann", "s", WT1, 2), "a"));
    const bob = one(scene.guard(scene.actor("agent:bob", "s", WT2, 3), "a"));
    const eve = scene.actor("human:eve", "default", "wt:00000003" as typeof WT1);
    const outcome = scene.evict(eve, byKey("file:a"));
    expect(outcome).toMatchObject({ code: "E_USAGE" });
    expect(outcome).toHaveProperty("hint", expect.stringContaining(ann.leaseId));
    expect(outcome).toHaveProperty("hint", expect.stringContaining(bob.leaseId));
    granted(scene.evict(eve, byId(bob)));
  });
});

describe("gc", () => {
  test("logs the end of what is no longer valid, and nothing else", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "s", WT1, 100);
    granted(scene.acquire(ann, ["file:a", "file:b"]));
    granted(scene.guard(ann, "c"));
    granted(scene.acquire(ann, "file:d", { ttlSecs: 3600 }));
    granted(scene.acquire(ann, "file:e", { ttlSecs: 3600 }));
    granted(scene.stop(ann, byKey("file:e")));
    scene.advance(600);
    scene.seeAs("dead", 100);
    const event = written(scene.gc(scene.actor("agent:bob")));
    expect(event?.ended.map((gone) => [gone.key, gone.how])).toEqual([
      ["file:a", "expired"],
      ["file:b", "expired"],
      ["file:c", "dead"],
      ["file:e", "stop_idle"],
    ]);
    expect([...scene.view.leases.keys()]).toEqual(["file:d"]);
  });

  test("writes nothing when there is nothing to end", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), "file:a"));
    expect(written(scene.gc(scene.actor("agent:bob")))).toBeNull();
  });

  test("goes in steps of 1,000", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    for (const half of ["x", "y"]) {
      const keys = Array.from({ length: 700 }, (_, i) => `file:${half}/${i}`);
      granted(scene.acquire(ann, keys));
    }
    scene.advance(600);
    expect(written(scene.gc(ann))?.ended).toHaveLength(1000);
    expect(written(scene.gc(ann))?.ended).toHaveLength(400);
    expect(written(scene.gc(ann))).toBeNull();
  });
});
