import { describe, expect, test } from "vitest";
import type { Lease } from "../../src/kernel/lease";
import { elapsedMs } from "../../src/kernel/time";
import { byId, byKey, granted, ISSUE, one, refused, Scene, WT1, WT2, written } from "./scene";

describe("acquire", () => {
  test("a free key is granted, with a token and the asked TTL", () => {
    const scene = new Scene();
    const lease = one(scene.acquire(scene.actor("agent:ann"), ISSUE));
    expect(lease).toMatchObject({
      key: ISSUE,
      agentId: "agent:ann",
      ttlSecs: 600,
      fencingToken: 1,
      stoleFrom: [],
    });
    expect(elapsedMs(lease.acquiredAt, lease.expiresAt!)).toBe(600_000);
    expect(lease.maxTotalSecs).toBe(86_400);
  });

  test("a second agent is refused, and told who holds it until when", () => {
    const scene = new Scene();
    const lease = one(scene.acquire(scene.actor("agent:ann"), ISSUE));
    const outcome = scene.acquire(scene.actor("agent:bob"), ISSUE);
    expect(outcome).toMatchObject({
      code: "E_LOCK_CONFLICT",
      data: { holders: [{ lease_id: lease.leaseId, agent_id: "agent:ann", worktree_id: WT1 }] },
    });
    expect(outcome).toHaveProperty("message", expect.stringContaining("agent:ann"));
    expect(outcome).toHaveProperty("message", expect.stringContaining("600 s left"));
  });

  test.each([
    ["another session", "agent:ann", "other", WT1],
    ["another worktree", "agent:ann", "default", WT2],
    ["another agent", "agent:bob", "default", WT1],
  ])("%s is another holder", (_, agent, session, worktree) => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), "file:a"));
    expect(refused(scene.acquire(scene.actor(agent, session, worktree), "file:a"))).toBe("E_LOCK_CONFLICT");
  });

  test("all keys or none: one busy, none taken", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), "file:b"));
    const before = scene.view;
    expect(refused(scene.acquire(scene.actor("agent:bob"), ["file:a", "file:b", "file:c"]))).toBe(
      "E_LOCK_CONFLICT",
    );
    expect(scene.view).toBe(before);
    expect(scene.lease("file:a")).toBeUndefined();
  });

  test("several keys are one event, in the order asked, with rising tokens", () => {
    const scene = new Scene();
    const outcome = scene.acquire(scene.actor("agent:ann"), ["file:c", "file:a", "file:b"]);
    expect(granted(outcome).map((lease) => [lease.key, lease.fencingToken])).toEqual([
      ["file:c", 1],
      ["file:a", 2],
      ["file:b", 3],
    ]);
    expect(scene.events).toHaveLength(1);
    expect(scene.view.nextToken).toBe(4);
  });

  test("a key named twice is one lease", () => {
    const scene = new Scene();
    expect(granted(scene.acquire(scene.actor("agent:ann"), ["file:a", "file:a"]))).toHaveLength(1);
    expect(scene.view.leases.size).toBe(1);
  });

  test("one key in both reaches is two leases, and both are answered", () => {
    const scene = new Scene();
    const both = granted(
      scene.acquire(scene.actor("agent:ann"), [
        { key: "file:a", reach: "worktree" },
        { key: "file:a", reach: "repository" },
      ]),
    );
    expect(both.map((lease) => lease.reach)).toEqual(["worktree", "repository"]);
  });

  test("reach means nothing for what is not a path", () => {
    const scene = new Scene();
    const lease = one(scene.acquire(scene.actor("agent:ann"), { key: ISSUE, reach: "worktree" }));
    expect(lease.reach).toBe("repository");
  });

  test("own leases never conflict: a file, then its directory, then the whole repository", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:d/x"));
    granted(scene.acquire(ann, "dir:d"));
    granted(scene.acquire(ann, "dir:."));
    expect(scene.view.leases.size).toBe(3);
    expect(scene.view.endings.size).toBe(0);
  });
});

describe("asking again", () => {
  test("for longer extends the lease, never past its total lifetime, and for less leaves it alone", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const leftSecs = (lease: Lease) => (lease.expiresAt!.monotonicMs - scene.now.monotonicMs) / 1000;
    const first = one(scene.acquire(ann, "file:a", { ttlSecs: 600 }));
    scene.advance(100);
    const longer = one(scene.acquire(ann, "file:a", { ttlSecs: 3_600 }));
    expect([longer.leaseId, longer.ttlSecs, leftSecs(longer)]).toEqual([first.leaseId, 3_600, 3_600]);
    const shorter = scene.acquire(ann, "file:a", { ttlSecs: 60 });
    expect([one(shorter), written(shorter)]).toEqual([longer, null]);
    scene.policy = { ...scene.policy, maxTtlSecs: {} };
    expect(leftSecs(one(scene.acquire(ann, "file:a", { ttlSecs: 100_000 })))).toBe(86_300);
  });

  test("gives the same lease and writes nothing while more than half of its TTL is left", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, ISSUE));
    scene.advance(299);
    const again = scene.acquire(ann, ISSUE);
    expect(written(again)).toBeNull();
    expect(one(again)).toBe(first);
  });

  test("renews it once half is gone, without a new token", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, ISSUE));
    scene.advance(300);
    const again = scene.acquire(ann, ISSUE);
    expect(written(again)?.type).toBe("claim.renewed");
    const lease = one(again);
    expect(lease.leaseId).toBe(first.leaseId);
    expect(lease.fencingToken).toBe(first.fencingToken);
    expect(elapsedMs(first.expiresAt!, lease.expiresAt!)).toBe(300_000);
  });

  test("never renews past the total lifetime", () => {
    const scene = new Scene();
    scene.policy = { ...scene.policy, maxTotalSecs: 700 };
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, ISSUE));
    scene.advance(500);
    expect(elapsedMs(first.acquiredAt, one(scene.acquire(ann, ISSUE)).expiresAt!)).toBe(700_000);
    expect(written(scene.acquire(ann, ISSUE))).toBeNull();
    scene.advance(200);
    expect(one(scene.acquire(ann, ISSUE)).fencingToken).toBe(2);
  });

  test("with some held and some new keys keeps the held and grants the new", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, "file:a"));
    const outcome = scene.acquire(ann, ["file:b", "file:a"]);
    expect(granted(outcome).map((lease) => lease.fencingToken)).toEqual([2, 1]);
    expect(written(outcome)?.leases.map((lease) => lease.key)).toEqual(["file:b"]);
    expect(granted(outcome)[1]).toBe(first);
  });

  test("without the old secret gives the lease a new one", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const first = one(scene.acquire(ann, ISSUE));
    const old = scene.proofs(ann);
    scene.loseSecrets(ann);
    const again = one(scene.acquire(ann, ISSUE));
    expect(again.leaseId).toBe(first.leaseId);
    expect(again.secretHash).not.toBe(first.secretHash);
    expect(refused(scene.renew(ann, byKey(ISSUE), { proofs: old }))).toBe("E_LOCK_NOT_HELD");
    granted(scene.renew(ann, byKey(ISSUE)));
  });

  test("from a one-shot command without the secret leaves a process-bound lease with its process", () => {
    const scene = new Scene();
    const harness = scene.actor("agent:ann", "s", WT1, 100);
    granted(scene.guard(harness, "a"));
    scene.loseSecrets(harness);
    const command = scene.actor("agent:ann", "s", WT1, 200);
    const lease = one(scene.acquire(command, { key: "file:a", reach: "worktree" }));
    expect(lease.holder.pid).toBe(100);
  });

  test("from a new process of the session binds a process-bound lease to that process", () => {
    const scene = new Scene();
    const first = one(scene.guard(scene.actor("agent:ann", "s", WT1, 100), "a"));
    const resumed = scene.actor("agent:ann", "s", WT1, 200);
    const outcome = scene.guard(resumed, "a");
    expect(one(outcome).leaseId).toBe(first.leaseId);
    expect(one(outcome).holder.pid).toBe(200);
    scene.seeAs("dead", 100);
    expect(refused(scene.guard(scene.actor("agent:bob", "t", WT1, 300), "a"))).toBe("E_LOCK_CONFLICT");
    expect(written(scene.guard(resumed, "a"))).toBeNull();
  });

  test("a start time that could not be read is no other process", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann", "s", WT1, 100);
    granted(scene.guard(ann, "a"));
    const unread = { ...ann, holder: { ...ann.holder, startTime: "" } };
    expect(written(scene.guard(unread, "a"))).toBeNull();
  });

  test("clears stop-idle while the lease is valid", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, "file:a"));
    granted(scene.stop(ann, byKey("file:a")));
    scene.advance(29);
    expect(one(scene.acquire(ann, "file:a")).stopIdleAt).toBeNull();
    scene.advance(60);
    expect(refused(scene.acquire(scene.actor("agent:bob"), "file:a"))).toBe("E_LOCK_CONFLICT");
  });

  test("moves the beat of a lease without a clock of its own, but not with every keystroke", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const first = one(scene.guard(ann, "a"));
    scene.advance(59);
    expect(written(scene.guard(ann, "a"))).toBeNull();
    scene.advance(1);
    expect(elapsedMs(first.lastBeat, one(scene.guard(ann, "a")).lastBeat)).toBe(60_000);
  });
});

describe("taking over", () => {
  test("an expired lease is a steal: recorded, and the token rises", () => {
    const scene = new Scene();
    const old = one(scene.acquire(scene.actor("agent:ann"), ISSUE));
    scene.advance(600);
    const outcome = scene.acquire(scene.actor("agent:bob"), ISSUE);
    expect(one(outcome)).toMatchObject({
      fencingToken: 2,
      stoleFrom: [{ leaseId: old.leaseId, agentId: "agent:ann", why: "expired" }],
    });
    expect(written(outcome)?.ended).toMatchObject([
      { leaseId: old.leaseId, how: "expired", successor: one(outcome).leaseId },
    ]);
  });

  test("a dead holder's process-bound lease is taken at once", () => {
    const scene = new Scene();
    granted(scene.guard(scene.actor("agent:ann", "s", WT1, 100), "a"));
    const bob = scene.actor("agent:bob", "t", WT1, 200);
    expect(refused(scene.guard(bob, "a"))).toBe("E_LOCK_CONFLICT");
    scene.seeAs("dead", 100);
    expect(one(scene.guard(bob, "a")).stoleFrom).toMatchObject([{ agentId: "agent:ann", why: "dead" }]);
  });

  test("a TTL-bound lease outlives its process", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), "file:a"));
    scene.seeAs("dead");
    expect(refused(scene.acquire(scene.actor("agent:bob"), "file:a"))).toBe("E_LOCK_CONFLICT");
  });

  test("a grant ends every lapsed lease that conflicts with it, in its own line", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), ["file:d/x", "file:e"]));
    granted(scene.guard(scene.actor("agent:cat", "s", WT2, 300), "d/y"));
    scene.seeAs("dead", 300);
    scene.advance(600);
    const outcome = scene.acquire(scene.actor("agent:bob"), "dir:d");
    expect(one(outcome).stoleFrom.map((s) => s.why)).toEqual(["expired", "dead"]);
    expect(scene.lease("file:d/x")).toBeUndefined();
    expect(scene.lease("file:d/y")).toBeUndefined();
    expect(scene.lease("file:e"), "not in the way: left for gc").toBeDefined();
  });

  test("an own lapsed lease inside is ended too, or it could come back beside a successor", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const file = one(scene.acquire(ann, "file:d/x", { ttlSecs: 60 }));
    scene.advance(60);
    expect(one(scene.acquire(ann, "dir:d")).stoleFrom).toMatchObject([{ leaseId: file.leaseId }]);
    expect(scene.lease("file:d/x")).toBeUndefined();
  });

  test("tokens strictly rise through release, steal and transfer", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const bob = scene.actor("agent:bob");
    const tokens = [one(scene.acquire(ann, ISSUE)).fencingToken];
    granted(scene.release(ann, byKey(ISSUE)));
    tokens.push(one(scene.acquire(bob, ISSUE)).fencingToken);
    scene.advance(600);
    tokens.push(one(scene.acquire(ann, ISSUE)).fencingToken);
    tokens.push(one(scene.transfer(ann, byKey(ISSUE), bob)).fencingToken);
    expect(tokens).toEqual([1, 2, 3, 4]);
  });

  test("a token from another machine lifts the counter for good, and a lower one changes nothing", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    expect(one(scene.acquire(ann, ISSUE, { aboveToken: 41 })).fencingToken).toBe(42);
    expect(one(scene.acquire(ann, "file:a", { aboveToken: 7 })).fencingToken).toBe(43);
    expect(one(scene.acquire(ann, "file:b")).fencingToken).toBe(44);
  });

  test.each([-1, 0.5, Number.NaN, 2 ** 52, Number.MAX_SAFE_INTEGER])(
    "%d is no token that could come from elsewhere",
    (aboveToken) => {
      const scene = new Scene();
      const ann = scene.actor("agent:ann");
      expect(scene.acquire(ann, ISSUE, { aboveToken })).toMatchObject({ refused: true, code: "E_LIMIT" });
      expect(scene.view.nextToken).toBe(1);
    },
  );

  test("the old lease's wall clock cannot bring it back", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const old = one(scene.acquire(ann, "file:d/x"));
    scene.reboot({ wallSecs: 700 });
    granted(scene.acquire(scene.actor("agent:bob"), "dir:d"));
    scene.stepWallClock(-600);
    expect(refused(scene.renew(ann, byId(old)))).toBe("E_FENCING_MISMATCH");
  });
});

describe("what acquire refuses at once", () => {
  test("nothing to lease", () => {
    const scene = new Scene();
    expect(refused(scene.acquire(scene.actor("agent:ann"), []))).toBe("E_USAGE");
  });

  test("more than 1,000 keys", () => {
    const scene = new Scene();
    const names = (n: number) => Array.from({ length: n }, (_, i) => `file:f${i}`);
    expect(granted(scene.acquire(scene.actor("agent:ann"), names(1000)))).toHaveLength(1000);
    expect(refused(scene.acquire(scene.actor("agent:bob"), names(1001)))).toBe("E_LIMIT");
  });

  test("fewer fresh ids than keys", () => {
    const scene = new Scene();
    const leaseIds = [scene.freshId()];
    expect(refused(scene.acquire(scene.actor("agent:ann"), ["file:a", "file:b"], { leaseIds }))).toBe(
      "E_USAGE",
    );
  });

  test.each([
    ["a reason", { reason: "x".repeat(1001) }],
    ["a note", { note: "x".repeat(1001) }],
  ])("%s that is too long", (_, options) => {
    const scene = new Scene();
    expect(refused(scene.acquire(scene.actor("agent:ann"), ISSUE, options))).toBe("E_LIMIT");
  });

  test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("a TTL of %s", (ttlSecs) => {
    const scene = new Scene();
    expect(refused(scene.acquire(scene.actor("agent:ann"), ISSUE, { ttlSecs }))).toBe("E_USAGE");
  });

  test.each([
    ["agent:ann", 86_400],
    ["ci:build", 86_400],
    ["human:eve", 30 * 86_400],
    ["admin:root", 30 * 86_400],
  ])("a TTL over the cap of %s", (agent, cap) => {
    const scene = new Scene();
    const actor = scene.actor(agent);
    expect(refused(scene.acquire(actor, ISSUE, { ttlSecs: cap + 1 }))).toBe("E_LIMIT");
    expect(one(scene.acquire(actor, ISSUE, { ttlSecs: cap })).maxTotalSecs).toBe(cap);
  });
});
