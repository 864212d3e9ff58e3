import { describe, expect, test } from "vitest";
import { upkeepDueInMs } from "../../src/kernel/renewal";
import { elapsedMs } from "../../src/kernel/time";
import { isStale } from "../../src/kernel/validity";
import { byId, byKey, granted, ISSUE, one, refused, Scene, WT1, WT2, written } from "./scene";

describe("renew", () => {
  test("by the holder moves the expiry to now + TTL", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, ISSUE));
    scene.advance(100);
    const lease = one(scene.renew(ann, byKey(ISSUE)));
    expect(elapsedMs(first.expiresAt!, lease.expiresAt!)).toBe(100_000);
    expect(lease.fencingToken).toBe(first.fencingToken);
  });

  test("never shortens", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, ISSUE));
    scene.advance(100);
    const lease = one(scene.renew(ann, byKey(ISSUE), { ttlSecs: 60 }));
    expect(elapsedMs(first.expiresAt!, lease.expiresAt!)).toBe(0);
    expect(lease.ttlSecs).toBe(60);
  });

  test("by another is refused, whoever it claims to be", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    expect(refused(scene.renew(scene.actor("agent:bob"), byKey(ISSUE)))).toBe("E_LOCK_NOT_HELD");
    expect(refused(scene.renew(ann, byKey(ISSUE), { proofs: ["a guess"] }))).toBe("E_LOCK_NOT_HELD");
  });

  test("with the secret is accepted from anywhere", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    const script = scene.actor("agent:ann", "script", WT2);
    granted(scene.renew(script, byKey(ISSUE), { proofs: scene.proofs(ann) }));
    expect(scene.lease(ISSUE)?.sessionId).toBe("default");
  });

  test("after expiry is refused, though nobody took it", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    scene.advance(600);
    expect(refused(scene.renew(ann, byKey(ISSUE)))).toBe("E_LOCK_EXPIRED");
  });

  test("past the total lifetime is refused, and the hint says what would do", () => {
    const scene = new Scene();
    scene.policy = { ...scene.policy, maxTotalSecs: 1000 };
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    scene.advance(500);
    const outcome = scene.renew(ann, byKey(ISSUE));
    expect(outcome).toMatchObject({ code: "E_LIMIT", data: { left_secs: 500 } });
    granted(scene.renew(ann, byKey(ISSUE), { ttlSecs: 500 }));
    expect(refused(scene.renew(ann, byKey(ISSUE), { ttlSecs: 501 }))).toBe("E_LIMIT");
  });

  test("with --override-max and a reason goes past it", () => {
    const scene = new Scene();
    scene.policy = { ...scene.policy, maxTotalSecs: 600 };
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, ISSUE));
    scene.advance(100);
    for (const reason of [null, "", " "]) {
      expect(refused(scene.renew(ann, byKey(ISSUE), { overrideMax: true, reason }))).toBe("E_USAGE");
    }
    const outcome = scene.renew(ann, byKey(ISSUE), { overrideMax: true, reason: "long test" });
    expect(elapsedMs(first.expiresAt!, one(outcome).expiresAt!)).toBe(100_000);
    expect(written(outcome)?.reason).toBe("long test");
  });

  test("respects the TTL cap of the holder's type", () => {
    const scene = new Scene();
    scene.policy = { ...scene.policy, maxTotalSecs: 10 * 86_400 };
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    expect(refused(scene.renew(ann, byKey(ISSUE), { ttlSecs: 86_401 }))).toBe("E_LIMIT");
    expect(refused(scene.renew(ann, byKey(ISSUE), { ttlSecs: -1 }))).toBe("E_USAGE");
  });

  test("cannot turn a lease with an expiry into one without", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    expect(refused(scene.renew(ann, byKey(ISSUE), { ttlSecs: 0 }))).toBe("E_USAGE");
  });

  test("of a lease without expiry moves its beat and leaves it without: max(never, now + TTL)", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE, { ttlSecs: 0, reason: "migration" }));
    scene.advance(5000);
    expect(isStale(scene.lease(ISSUE)!, scene.now, scene.policy)).toBe(true);
    const lease = one(scene.renew(ann, byKey(ISSUE), { ttlSecs: 600 }));
    expect(lease.expiresAt).toBeNull();
    expect(lease.maxTotalSecs).toBeNull();
    expect(isStale(lease, scene.now, scene.policy)).toBe(false);
  });

  test("of several is all or nothing", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    granted(scene.acquire(scene.actor("agent:bob"), "file:b"));
    const before = scene.view;
    expect(refused(scene.renew(ann, [byKey("file:a"), byKey("file:b")]))).toBe("E_LOCK_NOT_HELD");
    expect(scene.view).toBe(before);
  });

  test("of a lease named twice renews it once", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const lease = one(scene.acquire(ann, "file:a"));
    expect(written(scene.renew(ann, [byKey("file:a"), byId(lease)]))?.leases).toHaveLength(1);
  });

  test("of nothing writes nothing; of too many is refused", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    expect(written(scene.renew(ann, []))).toBeNull();
    const many = Array.from({ length: 1001 }, (_, i) => byKey(`file:${i}`));
    expect(refused(scene.renew(ann, many))).toBe("E_LIMIT");
    expect(refused(scene.release(ann, ...many))).toBe("E_LIMIT");
    expect(refused(scene.heartbeat(ann, ...many))).toBe("E_LIMIT");
    expect(refused(scene.stop(ann, ...many))).toBe("E_LIMIT");
    expect(refused(scene.evict(ann, many))).toBe("E_LIMIT");
  });

  test("clears stop-idle", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    granted(scene.stop(ann, byKey("file:a")));
    expect(one(scene.renew(ann, byKey("file:a"))).stopIdleAt).toBeNull();
  });

  test("after a reboot restates the expiry on the clock that now counts", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE, { ttlSecs: 3600 }));
    scene.reboot({ upSecs: 50 });
    const lease = one(scene.renew(ann, byKey(ISSUE), { ttlSecs: 60 }));
    expect(lease.expiresAt?.clockId).toBe("boot-2");
    scene.advance(100);
    granted(scene.renew(ann, byKey(ISSUE), { ttlSecs: 60 }));
    scene.advance(3000);
    expect(refused(scene.acquire(scene.actor("agent:bob"), ISSUE))).toBe("E_LOCK_CONFLICT");
  });

  test("from another machine does not make the first one take its uptime for the lease's", () => {
    const scene = new Scene();
    scene.now = { ...scene.now, monotonicMs: 1e9 };
    const here = scene.now;
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    scene.now = { ...here, machineId: "m2", clockId: "boot-of-m2", monotonicMs: 2e9 };
    scene.advance(100);
    granted(scene.renew(scene.actor("agent:ann"), byKey(ISSUE)));
    scene.now = here;
    scene.advance(100);
    granted(scene.renew(ann, byKey(ISSUE)));
  });
});

describe("heartbeat", () => {
  test("moves the last beat, and only that", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, ISSUE));
    granted(scene.stop(ann, byKey(ISSUE)));
    const stopped = scene.lease(ISSUE)!;
    scene.advance(10);
    const outcome = scene.heartbeat(ann, byKey(ISSUE));
    expect(written(outcome)?.type).toBe("claim.heartbeat");
    expect(one(outcome)).toEqual({ ...stopped, lastBeat: one(outcome).lastBeat });
    expect(elapsedMs(first.lastBeat, one(outcome).lastBeat)).toBe(10_000);
  });

  test("on an unknown lease finds nothing; by another, after expiry: refused", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    expect(refused(scene.heartbeat(ann, byKey(ISSUE)))).toBe("E_NOT_FOUND");
    granted(scene.acquire(ann, ISSUE));
    expect(refused(scene.heartbeat(scene.actor("agent:bob"), byKey(ISSUE)))).toBe("E_LOCK_NOT_HELD");
    scene.advance(600);
    expect(refused(scene.heartbeat(ann, byKey(ISSUE)))).toBe("E_LOCK_EXPIRED");
  });

  test("of several is all or nothing", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    const before = scene.view;
    expect(refused(scene.heartbeat(ann, byKey("file:a"), byKey("file:b")))).toBe("E_NOT_FOUND");
    expect(scene.view).toBe(before);
  });
});

describe("release", () => {
  test("frees the key at once; the next token is higher", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, ISSUE));
    const outcome = scene.release(ann, byKey(ISSUE));
    expect(written(outcome)).toMatchObject({ type: "claim.released", ended: [{ how: "released" }] });
    expect(one(outcome)).toBe(first);
    expect(one(scene.acquire(scene.actor("agent:bob"), ISSUE)).fencingToken).toBe(2);
  });

  test("with a wrong or stale secret is refused: it cannot release the successor's lease", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const old = one(scene.acquire(ann, ISSUE));
    scene.advance(600);
    granted(scene.acquire(scene.actor("agent:bob"), ISSUE));
    expect(refused(scene.release(ann, byKey(ISSUE)))).toBe("E_LOCK_NOT_HELD");
    expect(refused(scene.release(ann, byId(old)))).toBe("E_FENCING_MISMATCH");
    expect(scene.lease(ISSUE)?.agentId).toBe("agent:bob");
  });

  test("of one's own lease that expired but was not taken succeeds", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    scene.advance(100_000);
    granted(scene.release(ann, byKey(ISSUE)));
    expect(scene.lease(ISSUE)).toBeUndefined();
  });

  test("of several is all or nothing", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    expect(refused(scene.release(ann, byKey("file:a"), byKey("file:b")))).toBe("E_NOT_FOUND");
    expect(scene.lease("file:a")).toBeDefined();
  });
});

describe("stop", () => {
  test("ends the session's leases 30 s later, unless it comes back", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "s", WT1, 100);
    const bob = scene.actor("agent:bob", "t", WT1, 200);
    granted(scene.guard(ann, "a"));
    expect(written(scene.stop(ann, byKey("file:a")))?.type).toBe("claim.stopped");
    scene.advance(29);
    expect(refused(scene.guard(bob, "a"))).toBe("E_LOCK_CONFLICT");
    scene.advance(1);
    expect(one(scene.guard(bob, "a")).stoleFrom).toMatchObject([{ why: "stop_idle" }]);
  });

  test("activity clears it only while the lease is valid", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    granted(scene.stop(ann, byKey("file:a")));
    scene.advance(30);
    expect(written(scene.upkeep(ann, byKey("file:a")))).toBeNull();
    expect(refused(scene.renew(ann, byKey("file:a")))).toBe("E_LOCK_EXPIRED");
    expect(scene.lease("file:a")?.stopIdleAt).not.toBeNull();
  });

  test("a second stop does not start the time again", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    granted(scene.stop(ann, byKey("file:a")));
    scene.advance(20);
    expect(written(scene.stop(ann, byKey("file:a")))).toBeNull();
    scene.advance(10);
    granted(scene.acquire(scene.actor("agent:bob"), "file:a"));
  });

  test("marks nobody else's leases, and no lapsed ones", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(scene.actor("agent:bob"), "file:a"));
    granted(scene.acquire(ann, "file:b", { ttlSecs: 10 }));
    scene.advance(10);
    expect(written(scene.stop(ann, byKey("file:a"), byKey("file:b"), byKey("file:c")))).toBeNull();
  });

  test("guard.stop_idle_secs sets the time", () => {
    const scene = new Scene();
    scene.policy = { ...scene.policy, stopIdleSecs: 5 };
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    granted(scene.stop(ann, byKey("file:a")));
    scene.advance(5);
    granted(scene.acquire(scene.actor("agent:bob"), "file:a"));
  });
});

describe("upkeep", () => {
  test("renews what is below half of its TTL and leaves the rest", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    granted(scene.acquire(ann, "file:b", { ttlSecs: 3600 }));
    scene.advance(301);
    const outcome = scene.upkeep(ann, byKey("file:a"), byKey("file:b"));
    expect(written(outcome)?.leases.map((lease) => lease.key)).toEqual(["file:a"]);
    expect(elapsedMs(scene.now, one(outcome).expiresAt!)).toBe(600_000);
  });

  test("leaves alone what the caller cannot prove", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:bob"), "file:a"));
    scene.advance(400);
    expect(written(scene.upkeep(scene.actor("agent:ann"), byKey("file:a"), byKey("file:x")))).toBeNull();
  });

  test("clears stop-idle even when nothing else is due", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    granted(scene.guard(ann, "b"));
    granted(scene.stop(ann, byKey("file:a"), byKey("file:b")));
    scene.advance(10);
    const kept = granted(scene.upkeep(ann, byKey("file:a"), byKey("file:b")));
    expect(kept.map((lease) => lease.stopIdleAt)).toEqual([null, null]);
  });

  test("moves the beat often enough for the shortest time that a beat must last", () => {
    const scene = new Scene();
    scene.policy = { ...scene.policy, unknownTtlSecs: 40 };
    const ann = scene.actor("agent:ann");
    granted(scene.guard(ann, "a"));
    for (let i = 0; i < 5; i++) {
      scene.advance(20);
      granted(scene.upkeep(ann, byKey("file:a")));
    }
    scene.seeAs("unknown");
    expect(refused(scene.guard(scene.actor("agent:bob", "t"), "a"))).toBe("E_LOCK_CONFLICT");
  });

  test("restates a beat that was read on another clock", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.guard(ann, "a"));
    scene.now = { ...scene.now, clockId: "boot-1+time:2", wallMs: scene.now.wallMs - 7_200_000 };
    expect(one(scene.upkeep(ann, byKey("file:a"))).lastBeat.clockId).toBe("boot-1+time:2");
  });

  test("keeps an active session's lease through a reboot into the past", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    scene.reboot({ wallSecs: -7200 });
    for (let i = 0; i < 20; i++) {
      scene.advance(60);
      granted(scene.upkeep(ann, byKey(ISSUE)));
    }
    expect(refused(scene.acquire(scene.actor("agent:bob"), ISSUE))).toBe("E_LOCK_CONFLICT");
  });

  test("says when it will next be due", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const dueInSecs = (text: string) => upkeepDueInMs(scene.lease(text)!, scene.now, scene.policy) / 1000;
    granted(scene.acquire(ann, "file:a"));
    granted(scene.guard(ann, "b"));
    expect([dueInSecs("file:a"), dueInSecs("file:b")]).toEqual([300, 60]);
    scene.advance(59);
    expect([dueInSecs("file:a"), dueInSecs("file:b")]).toEqual([241, 1]);
    expect(written(scene.upkeep(ann, byKey("file:a"), byKey("file:b")))).toBeNull();
    granted(scene.stop(ann, byKey("file:a")));
    expect(dueInSecs("file:a")).toBe(0);
    scene.reboot({ wallSecs: -7200, upSecs: 10 });
    granted(scene.upkeep(ann, byKey("file:a")));
    expect([dueInSecs("file:a"), dueInSecs("file:b")]).toEqual([290, 0]);
  });

  test("stops at the total lifetime", () => {
    const scene = new Scene();
    scene.policy = { ...scene.policy, maxTotalSecs: 700 };
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    for (let i = 0; i < 69; i++) {
      scene.advance(10);
      granted(scene.upkeep(ann, byKey(ISSUE)));
    }
    expect(refused(scene.acquire(scene.actor("agent:bob"), ISSUE))).toBe("E_LOCK_CONFLICT");
    scene.advance(10);
    granted(scene.acquire(scene.actor("agent:bob"), ISSUE));
  });
});

describe("a process-bound lease with an end", () => {
  const REF = "ref:refs/heads/work/x";
  const bounded = { bind: "process", ttlSecs: 0, atMostSecs: 60 } as const;

  test("ends although its process is there, when it has shown no life for so long", () => {
    const scene = new Scene();
    const [ann, bob] = [scene.actor("agent:ann"), scene.actor("agent:bob")];
    const first = one(scene.acquire(ann, REF, bounded));
    scene.advance(59);
    expect(refused(scene.acquire(bob, REF, bounded))).toBe("E_LOCK_CONFLICT");
    scene.advance(2);
    expect(one(scene.acquire(bob, REF, bounded)).fencingToken).toBeGreaterThan(first.fencingToken);
    expect(refused(scene.heartbeat(ann, byId(first)))).toBe("E_FENCING_MISMATCH");
  });

  test("goes on with its session's signs of life, and without an end it has none", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    one(scene.acquire(ann, REF, bounded));
    scene.advance(40);
    const kept = one(scene.acquire(ann, REF, bounded));
    expect(elapsedMs(kept.acquiredAt, kept.expiresAt!)).toBe(100_000);
    expect(one(scene.acquire(ann, "file:a", { bind: "process", ttlSecs: 600 })).expiresAt).toBeNull();
  });
});
