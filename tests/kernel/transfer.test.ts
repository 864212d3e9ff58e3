import { describe, expect, test } from "vitest";
import { elapsedMs } from "../../src/kernel/time";
import { byId, byKey, granted, ISSUE, OTHER_ISSUE, one, refused, Scene, WT1, WT2, written } from "./scene";

function handedOver(keyText: string, options = {}) {
  const scene = new Scene();
  const ann = scene.actor("agent:ann", "a", WT1, 1);
  const bob = scene.actor("agent:bob", "b", WT2, 2);
  const old = one(scene.acquire(ann, keyText, options));
  const outcome = scene.transfer(ann, byId(old), bob);
  return { scene, ann, bob, old, outcome, lease: one(outcome) };
}

describe("transfer", () => {
  test("is a new lease with a new token on the same key, in one line", () => {
    const { scene, old, outcome, lease } = handedOver(ISSUE);
    expect(lease).toMatchObject({
      key: ISSUE,
      agentId: "agent:bob",
      worktreeId: WT2,
      branch: "refs/heads/other",
      fencingToken: 2,
      secretHash: null,
      bind: "ttl",
      reason: "hand-over",
    });
    expect(lease.leaseId).not.toBe(old.leaseId);
    expect(written(outcome)).toMatchObject({
      type: "claim.transferred",
      ended: [{ leaseId: old.leaseId, how: "transferred", successor: lease.leaseId }],
    });
    expect(scene.view.leases.size).toBe(1);
  });

  test("leaves no instant in which a third party could take the key", () => {
    const { scene } = handedOver(ISSUE);
    expect(refused(scene.acquire(scene.actor("agent:cat"), ISSUE))).toBe("E_LOCK_CONFLICT");
  });

  test("ends the old holder's right at once", () => {
    const { scene, ann, old } = handedOver(ISSUE);
    expect(refused(scene.renew(ann, byId(old)))).toBe("E_FENCING_MISMATCH");
    expect(refused(scene.release(ann, byKey(ISSUE)))).toBe("E_LOCK_NOT_HELD");
    expect(refused(scene.acquire(ann, ISSUE))).toBe("E_LOCK_CONFLICT");
  });

  test.each([null, "", "  "])("needs a reason; %j is none", (reason) => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    expect(refused(scene.transfer(ann, byKey(ISSUE), scene.actor("agent:bob"), reason))).toBe("E_USAGE");
  });

  describe("by somebody whom policy.evict allows", () => {
    const setUp = (keyText = ISSUE) => {
      const scene = new Scene();
      const ann = scene.actor("agent:ann", "a", WT1, 1);
      const bob = scene.actor("agent:bob", "b", WT2, 2);
      const eve = scene.actor("human:eve", "e", WT1, 3);
      return { scene, ann, bob, eve, old: one(scene.acquire(ann, keyText)) };
    };

    test("hands over what another holds, with a new token, and ends that one's right", () => {
      const { scene, ann, bob, eve, old } = setUp();
      const outcome = scene.transfer(eve, byKey(ISSUE), bob, "ann is on leave");
      const lease = one(outcome);
      expect(lease).toMatchObject({
        agentId: "agent:bob",
        worktreeId: WT2,
        fencingToken: 2,
        secretHash: null,
      });
      const why = "handed to agent:bob by human:eve: ann is on leave";
      expect(written(outcome)).toMatchObject({
        type: "claim.transferred",
        reason: "ann is on leave",
        ended: [{ leaseId: old.leaseId, agentId: "agent:ann", how: "transferred", why }],
      });
      expect(refused(scene.prove(ann, byId(old)))).toBe("E_FENCING_MISMATCH");
      expect(scene.renew(ann, byId(old))).toMatchObject({
        message: `that lease on ${ISSUE} is no more: ${why}`,
        data: { end: "handed_over" },
      });
      expect(one(scene.renew(bob, byId(lease))).secretHash).not.toBeNull();
    });

    test("needs a reason, and the right", () => {
      const { scene, bob, eve, old } = setUp();
      expect(refused(scene.transfer(eve, byId(old), bob, " "))).toBe("E_USAGE");
      expect(refused(scene.transfer(bob, byId(old), bob))).toBe("E_LOCK_NOT_HELD");
      scene.policy = { ...scene.policy, evict: [] };
      expect(refused(scene.transfer(eve, byId(old), bob))).toBe("E_LOCK_NOT_HELD");
      expect(scene.lease(ISSUE)).toBe(old);
    });

    test("not what has run out, nor a live writer lock, nor one of several that nobody named", () => {
      const { scene, bob, eve, old } = setUp();
      scene.advance(601);
      expect(refused(scene.transfer(eve, byId(old), bob))).toBe("E_LOCK_NOT_HELD");
      const lock = setUp("worktree:wt:00000001");
      expect(refused(lock.scene.transfer(lock.eve, byId(lock.old), lock.bob))).toBe("E_LOCK_CONFLICT");
      const two = new Scene();
      for (const worktree of ["wt:00000003", "wt:00000004"] as never[])
        granted(two.guard(two.actor("agent:ann", "a", worktree), "x"));
      expect(refused(two.transfer(two.actor("human:eve"), byKey("file:x"), bob))).toBe("E_USAGE");
    });

    test("what has run out and was taken since is somebody's: no hint says otherwise", () => {
      const { scene, ann, bob, eve, old } = setUp();
      scene.advance(601);
      expect(scene.transfer(ann, byId(old), bob)).toMatchObject({
        code: "E_LOCK_EXPIRED",
        hint: expect.stringContaining("agent:bob can take it"),
      });
      granted(scene.gc(eve));
      granted(scene.acquire(scene.actor("agent:cat", "c", WT1, 4), ISSUE));
      for (const ref of [byId(old), { ...byId(old), key: null }])
        expect(`${(scene.transfer(ann, ref, bob) as { hint?: string }).hint}`).not.toContain("nobody holds");
    });

    test("one's own, without its secret, is taken again first", () => {
      const { scene, bob, eve } = setUp("file:x");
      granted(scene.acquire(eve, ISSUE));
      scene.loseSecrets(eve);
      expect(refused(scene.transfer(eve, byKey(ISSUE), bob))).toBe("E_LOCK_NOT_HELD");
    });
  });

  test("by another, of an expired, of an unknown lease: refused", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const bob = scene.actor("agent:bob");
    expect(refused(scene.transfer(ann, byKey(ISSUE), bob))).toBe("E_NOT_FOUND");
    granted(scene.acquire(ann, ISSUE));
    expect(refused(scene.transfer(bob, byKey(ISSUE), bob))).toBe("E_LOCK_NOT_HELD");
    scene.advance(600);
    expect(refused(scene.transfer(ann, byKey(ISSUE), bob))).toBe("E_LOCK_EXPIRED");
  });

  test("of a process-bound lease gives a TTL-bound one: the new process is not known yet", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "a", WT1, 1);
    granted(scene.guard(ann, "x"));
    const lease = one(scene.transfer(ann, byKey("file:x"), scene.actor("agent:bob", "b", WT2, 2)));
    expect(lease).toMatchObject({ bind: "ttl", ttlSecs: 600, maxTotalSecs: 86_400, reach: "worktree" });
    expect(elapsedMs(scene.now, lease.expiresAt!)).toBe(600_000);
    scene.seeAs("dead", 1);
    expect(refused(scene.guard(scene.actor("agent:cat", "c", WT2, 3), "x"))).toBe("E_LOCK_CONFLICT");
  });

  test("keeps no more TTL than the new holder's type may have", () => {
    const scene = new Scene();
    const eve = scene.actor("human:eve");
    granted(scene.acquire(eve, ISSUE, { ttlSecs: 10 * 86_400 }));
    expect(one(scene.transfer(eve, byKey(ISSUE), scene.actor("agent:bob"))).ttlSecs).toBe(86_400);
  });

  test("of a lease without expiry needs a place under the new holder's limit", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const bob = scene.actor("agent:bob");
    const forever = { ttlSecs: 0, reason: "migration" };
    granted(scene.acquire(ann, ISSUE, forever));
    granted(scene.acquire(bob, ["scope:config", "scope:gates"], forever));
    expect(refused(scene.transfer(ann, byKey(ISSUE), bob))).toBe("E_LIMIT");
    granted(scene.release(bob, byKey("scope:gates")));
    expect(one(scene.transfer(ann, byKey(ISSUE), bob)).expiresAt).toBeNull();
  });

  test("of a lease without expiry needs no second place in a full repository", () => {
    const scene = new Scene();
    scene.policy = { ...scene.policy, maxIndefinitePerRepo: 1 };
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE, { ttlSecs: 0, reason: "migration" }));
    granted(scene.transfer(ann, byKey(ISSUE), scene.actor("agent:bob")));
  });

  test("is refused while the giver keeps a lease that would conflict", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const bob = scene.actor("agent:bob", "b", WT2);
    granted(scene.acquire(ann, ["dir:d", "file:d/x"]));
    const outcome = scene.transfer(ann, byKey("dir:d"), bob);
    expect(outcome).toMatchObject({ code: "E_LOCK_CONFLICT", data: { holders: [{ key: "file:d/x" }] } });
    expect(refused(scene.transfer(ann, byKey("file:d/x"), bob))).toBe("E_LOCK_CONFLICT");
    granted(scene.release(ann, byKey("file:d/x")));
    granted(scene.transfer(ann, byKey("dir:d"), bob));
  });

  test("of a worktree's file into a worktree where somebody has that file is refused", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "a", WT1, 1);
    const bob = scene.actor("agent:bob", "b", WT2, 2);
    granted(scene.guard(ann, "x"));
    granted(scene.guard(scene.actor("agent:cat", "c", WT2, 3), "x"));
    expect(refused(scene.transfer(ann, byKey("file:x"), bob))).toBe("E_LOCK_CONFLICT");
  });

  test("never overwrites a lease that the new holder has already", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "a", WT1, 1);
    const bob = scene.actor("agent:bob", "b", WT2, 2);
    granted(scene.guard(ann, "x"));
    const theirs = one(scene.guard(bob, "x"));
    expect(refused(scene.transfer(ann, byKey("file:x"), bob))).toBe("E_LOCK_CONFLICT");
    granted(scene.renew(bob, byId(theirs)));
  });

  test("is a grant: it ends lapsed leases that conflict with the new one", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "a", WT1, 1);
    const cat = scene.actor("agent:cat", "c", WT2, 3);
    granted(scene.acquire(ann, ["file:d/x"], { ttlSecs: 60 }));
    granted(scene.acquire(ann, ["dir:d"], { ttlSecs: 600 }));
    scene.advance(60);
    const outcome = scene.transfer(ann, byKey("dir:d"), cat);
    expect(one(outcome).stoleFrom).toMatchObject([{ agentId: "agent:ann", why: "expired" }]);
    expect(scene.view.leases.size).toBe(1);
  });

  test("handed on before it was adopted", () => {
    const { scene, bob } = handedOver(ISSUE);
    const cat = scene.actor("agent:cat");
    expect(one(scene.transfer(bob, byKey(ISSUE), cat)).fencingToken).toBe(3);
    granted(scene.renew(cat, byKey(ISSUE)));
  });
});

describe("adoption", () => {
  test.each([
    ["acquire", "claim.renewed"],
    ["renew", "claim.renewed"],
    ["heartbeat", "claim.heartbeat"],
  ] as const)("by %s: the first call from that worktree makes it the caller's", (verb, type) => {
    const { scene, bob, lease } = handedOver(ISSUE);
    const outcome =
      verb === "acquire"
        ? scene.acquire(bob, ISSUE)
        : verb === "renew"
          ? scene.renew(bob, byKey(ISSUE))
          : scene.heartbeat(bob, byKey(ISSUE));
    expect(written(outcome)?.type).toBe(type);
    expect(one(outcome)).toMatchObject({
      leaseId: lease.leaseId,
      fencingToken: lease.fencingToken,
      sessionId: "b",
      branch: "refs/heads/work",
      holder: { pid: 2 },
    });
    expect(one(outcome).secretHash).not.toBeNull();
    granted(scene.release(bob, byKey(ISSUE)));
  });

  test("by release: given back at once", () => {
    const { scene, bob } = handedOver(ISSUE);
    granted(scene.release(bob, byKey(ISSUE)));
    expect(scene.view.leases.size).toBe(0);
  });

  test("by release also after it expired untaken", () => {
    const { scene, bob } = handedOver(ISSUE);
    scene.advance(600);
    granted(scene.release(bob, byKey(ISSUE)));
  });

  test("by upkeep that carries a secret for it", () => {
    const { scene, bob } = handedOver(ISSUE);
    expect(written(scene.upkeep(bob, byKey(ISSUE))), "no secret, no adoption").toBeNull();
    const outcome = scene.run({
      kind: "upkeep",
      actor: bob,
      leases: [byKey(ISSUE)],
      proofs: [],
      secretHash: "fresh",
    });
    expect(one(outcome)).toMatchObject({ sessionId: "b", secretHash: "fresh" });
  });

  test("by acquire of a directory around it: both are the caller's, and nobody else's session's", () => {
    const { scene, bob } = handedOver("file:d/x");
    const outcome = scene.acquire(bob, "dir:d");
    expect(granted(outcome).map((lease) => lease.key)).toEqual(["dir:d", "file:d/x"]);
    expect(written(outcome)?.leases.map((lease) => [lease.key, lease.sessionId])).toEqual([
      ["dir:d", "b"],
      ["file:d/x", "b"],
    ]);
    const otherSession = scene.actor("agent:bob", "b2", WT2, 4);
    expect(refused(scene.renew(otherSession, byKey("file:d/x")))).toBe("E_LOCK_NOT_HELD");
    granted(scene.renew(bob, byKey("file:d/x")));
  });

  test("by acquire of a file inside it", () => {
    const { scene, bob } = handedOver("dir:d");
    granted(scene.acquire(bob, "file:d/x"));
    expect(scene.lease("dir:d")).toMatchObject({ sessionId: "b" });
    expect(scene.lease("dir:d")?.secretHash).not.toBeNull();
  });

  test("by acquire of the same file in the other reach", () => {
    const { scene, bob } = handedOver("file:x");
    granted(scene.guard(bob, "x"));
    const all = [...scene.view.leases.values()];
    expect(all.map((lease) => [lease.reach, lease.sessionId])).toEqual([
      ["repository", "b"],
      ["worktree", "b"],
    ]);
  });

  test("not by an acquire that is refused", () => {
    const { scene, bob } = handedOver("file:d/x");
    granted(scene.acquire(scene.actor("agent:cat"), "file:d/y"));
    expect(refused(scene.acquire(bob, "dir:d"))).toBe("E_LOCK_CONFLICT");
    expect(scene.lease("file:d/x")?.secretHash).toBeNull();
  });

  test("not by unrelated keys, another worktree, another agent", () => {
    const { scene } = handedOver("file:d/x");
    granted(scene.acquire(scene.actor("agent:bob", "b", WT2), OTHER_ISSUE));
    expect(scene.lease("file:d/x")?.secretHash).toBeNull();
    const elsewhere = scene.actor("agent:bob", "b", WT1);
    expect(refused(scene.renew(elsewhere, byKey("file:d/x")))).toBe("E_LOCK_NOT_HELD");
    expect(refused(scene.acquire(elsewhere, "file:d/x"))).toBe("E_LOCK_CONFLICT");
    expect(refused(scene.renew(scene.actor("agent:cat", "b", WT2), byKey("file:d/x")))).toBe(
      "E_LOCK_NOT_HELD",
    );
  });

  test("happens once: another session of the same agent comes too late", () => {
    const { scene, bob } = handedOver(ISSUE);
    granted(scene.heartbeat(bob, byKey(ISSUE)));
    const late = scene.actor("agent:bob", "b2", WT2, 4);
    expect(refused(scene.heartbeat(late, byKey(ISSUE)))).toBe("E_LOCK_NOT_HELD");
    expect(refused(scene.acquire(late, ISSUE))).toBe("E_LOCK_CONFLICT");
  });

  test("of a lapsed lease by renew is too late", () => {
    const { scene, bob } = handedOver(ISSUE);
    scene.advance(600);
    expect(refused(scene.renew(bob, byKey(ISSUE)))).toBe("E_LOCK_EXPIRED");
    expect(one(scene.acquire(bob, ISSUE)).fencingToken).toBe(3);
  });

  test("on another machine restates the expiry on its clock: its uptime is not the lease's", () => {
    const { scene } = handedOver(ISSUE);
    scene.now = { ...scene.now, machineId: "m2", clockId: "boot-of-m2", monotonicMs: 9e9 };
    const bob = scene.actor("agent:bob", "b", WT2, 2);
    granted(scene.heartbeat(bob, byKey(ISSUE)));
    granted(scene.heartbeat(bob, byKey(ISSUE)));
    scene.advance(599);
    expect(refused(scene.acquire(scene.actor("agent:cat"), ISSUE))).toBe("E_LOCK_CONFLICT");
    scene.advance(3);
    granted(scene.acquire(scene.actor("agent:cat"), ISSUE));
  });
});
