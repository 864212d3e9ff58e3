import { describe, expect, test } from "vitest";
import { decide } from "../../src/kernel/decide";
import type { Lease } from "../../src/kernel/lease";
import { EMPTY_VIEW, evolve, type View } from "../../src/kernel/view";
import { byId, byKey, granted, one, refused, Scene, WT1, WT2 } from "./scene";

/** A key may have several leases, one per worktree and one for the whole repository. */
describe("which lease a key means", () => {
  test("the caller's own, not the one that was there first", () => {
    const scene = new Scene();
    granted(scene.guard(scene.actor("agent:ann", "a", WT1, 1), "x"));
    const bob = scene.actor("agent:bob", "b", WT2, 2);
    const own = one(scene.guard(bob, "x"));
    expect(one(scene.release(bob, byKey("file:x"))).leaseId).toBe(own.leaseId);
  });

  test("the one whose secret the caller shows, wherever it stands", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "a", WT1, 1);
    const bob = scene.actor("agent:bob", "b", WT2, 2);
    const theirs = one(scene.guard(ann, "x"));
    granted(scene.guard(bob, "x"));
    const script = scene.actor("agent:script", "s", WT2, 3);
    const outcome = scene.renew(script, byKey("file:x"), { proofs: scene.proofs(ann) });
    expect(one(outcome).leaseId).toBe(theirs.leaseId);
  });

  test("of two own ones the valid one, else the one that reaches the repository", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "a", WT1, 1);
    const local = one(scene.guard(ann, "x"));
    const whole = one(scene.acquire(ann, "file:x", { ttlSecs: 60 }));
    expect(one(scene.heartbeat(ann, byKey("file:x"))).leaseId).toBe(whole.leaseId);
    scene.advance(60);
    expect(one(scene.heartbeat(ann, byKey("file:x"))).leaseId).toBe(local.leaseId);
    granted(scene.release(ann, byKey("file:x")));
    expect(one(scene.release(ann, byKey("file:x"))).leaseId).toBe(whole.leaseId);
  });

  test("a lease handed to the caller before somebody's in the same worktree", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "a", WT1, 1);
    const bob = scene.actor("agent:bob", "b", WT2, 2);
    granted(scene.guard(ann, "x"));
    granted(scene.guard(bob, "x"));
    const moved = one(scene.transfer(ann, byKey("file:x"), { ...bob, worktreeId: WT1 }));
    const there = scene.actor("agent:bob", "b", WT1, 2);
    expect(one(scene.heartbeat(there, byKey("file:x"))).leaseId).toBe(moved.leaseId);
  });

  test("both a key and an id: the id decides, and must be that key's", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const lease = one(scene.acquire(ann, "file:x"));
    granted(scene.heartbeat(ann, byId(lease)));
    granted(scene.heartbeat(ann, { key: null, leaseId: lease.leaseId }));
    expect(refused(scene.heartbeat(ann, { ...byKey("file:y"), leaseId: lease.leaseId }))).toBe("E_NOT_FOUND");
  });

  test("the same one whatever order the view was built in", () => {
    const scene = new Scene();
    const leases: Lease[] = [];
    for (const n of [1, 2, 3, 4]) {
      const actor = scene.actor(`agent:a${n}`, "s", `wt:0000001${n}` as typeof WT1, n);
      leases.push(one(scene.guard(actor, "x")));
    }
    const onlooker = scene.actor("agent:zed", "z", WT1, 9);
    const said = (order: readonly Lease[]) => {
      let view: View = EMPTY_VIEW;
      for (const lease of order) {
        view = evolve(view, { type: "claim.acquired", leases: [lease], ended: [], reason: null });
      }
      const command = {
        kind: "release" as const,
        actor: onlooker,
        leases: [byKey("file:x")],
        reason: null,
        proofs: [],
        secretHash: "h",
      };
      return decide(view, command, scene.at());
    };
    expect(said(leases)).toMatchObject({ code: "E_LOCK_NOT_HELD" });
    expect(said([...leases].reverse())).toEqual(said(leases));
  });

  test("a refused acquire names the same holders in whatever order the view was built", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), "file:d/a"));
    granted(scene.acquire(scene.actor("agent:bob"), "file:d/b"));
    const cat = scene.actor("agent:cat");
    const first = scene.acquire(cat, "dir:d");
    scene.view = { ...scene.view, leases: new Map([...scene.view.leases].reverse()) };
    expect(scene.acquire(cat, "dir:d")).toEqual(first);
  });
});
