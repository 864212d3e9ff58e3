import { describe, expect, test } from "vitest";
import { byId, byKey, granted, ISSUE, one, refused, Scene, WT1, written } from "./scene";

/** By docs/ERRORS.md, on a lease that has ended: expired → 7; evicted, stolen or transferred → 8; released or unknown → 4. */
describe("what a former holder is told", () => {
  const setUp = () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "a", WT1, 1);
    const bob = scene.actor("agent:bob", "b", WT1, 2);
    const eve = scene.actor("human:eve", "e", WT1, 3);
    const lease = one(scene.acquire(ann, ISSUE));
    const told = () => {
      const codes = [
        refused(scene.renew(ann, byId(lease))),
        refused(scene.heartbeat(ann, byId(lease))),
        refused(scene.transfer(ann, byId(lease), bob)),
      ];
      expect(new Set(codes).size).toBe(1);
      return codes[0];
    };
    return { scene, ann, bob, eve, lease, told };
  };

  test("expired, still there", () => {
    const { scene, told } = setUp();
    scene.advance(600);
    expect(told()).toBe("E_LOCK_EXPIRED");
  });

  test("expired, swept by gc", () => {
    const { scene, bob, lease, ann, told } = setUp();
    scene.advance(600);
    granted(scene.gc(bob));
    expect(told()).toBe("E_LOCK_EXPIRED");
    expect(refused(scene.release(ann, byId(lease)))).toBe("E_LOCK_EXPIRED");
  });

  test("expired, then taken over", () => {
    const { scene, bob, told } = setUp();
    scene.advance(600);
    granted(scene.acquire(bob, ISSUE));
    expect(told()).toBe("E_FENCING_MISMATCH");
  });

  test("stopped and idle, swept by gc", () => {
    const { scene, ann, bob, told } = setUp();
    granted(scene.stop(ann, byKey(ISSUE)));
    scene.advance(30);
    expect(told()).toBe("E_LOCK_EXPIRED");
    granted(scene.gc(bob));
    expect(told()).toBe("E_LOCK_EXPIRED");
  });

  test("evicted", () => {
    const { scene, ann, eve, lease, told } = setUp();
    granted(scene.run({ kind: "evict", actor: eve, leases: [byId(lease)], reason: "its machine hangs" }));
    expect(told()).toBe("E_FENCING_MISMATCH");
    expect(scene.renew(ann, byId(lease))).toMatchObject({
      message: `that lease on ${ISSUE} is no more: evicted by human:eve: its machine hangs`,
      data: { end: "evicted" },
    });
  });

  test("evicted after it had run out: nobody took anything away", () => {
    const { scene, bob, lease, told } = setUp();
    scene.advance(600);
    granted(scene.run({ kind: "evict", actor: bob, leases: [byId(lease)], reason: "tidy up" }));
    expect(told()).toBe("E_LOCK_EXPIRED");
  });

  test("overruled, with the words of whoever decided it", () => {
    const { scene, ann, eve, lease, told } = setUp();
    const refs = { leases: [byId(lease)], reason: "agent:bob has it", isOverruled: true };
    granted(scene.run({ kind: "evict", actor: eve, ...refs }));
    expect(told()).toBe("E_FENCING_MISMATCH");
    expect(scene.renew(ann, byId(lease))).toMatchObject({
      message: `that lease on ${ISSUE} is no more: agent:bob has it`,
      data: { end: "overruled" },
    });
  });

  test("stolen", () => {
    const { scene, ann, eve, lease, told } = setUp();
    granted(scene.acquire(eve, ISSUE, { steal: true, reason: "urgent" }));
    expect(told()).toBe("E_FENCING_MISMATCH");
    expect(scene.renew(ann, byId(lease))).toMatchObject({
      message: `that lease on ${ISSUE} is no more: taken over by human:eve: urgent`,
      data: { end: "taken_over" },
    });
  });

  test("transferred, also after the new holder released", () => {
    const { scene, ann, bob, lease, told } = setUp();
    const event = written(scene.transfer(ann, byId(lease), bob));
    // `why` is for what somebody else has done: audits tell by it whether it took a right.
    expect(event!.ended[0]).toMatchObject({ toAgent: "agent:bob" });
    expect(event!.ended[0]).not.toHaveProperty("why");
    expect(told()).toBe("E_FENCING_MISMATCH");
    expect(scene.renew(ann, byId(lease))).toMatchObject({
      message: `that lease on ${ISSUE} is no more: handed to agent:bob`,
      data: { end: "handed_over" },
    });
    granted(scene.release(bob, byKey(ISSUE)));
    expect(told()).toBe("E_FENCING_MISMATCH");
  });

  test("released", () => {
    const { scene, ann, lease, told } = setUp();
    granted(scene.release(ann, byId(lease)));
    expect(told()).toBe("E_NOT_FOUND");
    expect(refused(scene.release(ann, byId(lease)))).toBe("E_NOT_FOUND");
  });

  test("unknown", () => {
    const { scene, ann, lease } = setUp();
    const unknown = { key: null, leaseId: scene.freshId() };
    expect(refused(scene.renew(ann, unknown))).toBe("E_NOT_FOUND");
    expect(refused(scene.renew(ann, byKey("file:nobody")))).toBe("E_NOT_FOUND");
    expect(refused(scene.renew(ann, { ...byKey("file:other"), leaseId: lease.leaseId }))).toBe("E_NOT_FOUND");
  });

  test("its process died", () => {
    const { scene, ann, bob } = setUp();
    const lease = one(scene.guard(ann, "x"));
    scene.seeAs("dead", 1);
    expect(refused(scene.renew(ann, byId(lease)))).toBe("E_FENCING_MISMATCH");
    granted(scene.gc(bob));
    expect(refused(scene.renew(ann, byId(lease)))).toBe("E_FENCING_MISMATCH");
  });
});
