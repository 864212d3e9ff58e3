import { describe, expect, test } from "vitest";
import { isStale } from "../../src/kernel/validity";
import { byKey, granted, ISSUE, OTHER_ISSUE, one, refused, Scene, WT2 } from "./scene";

const FOREVER = { ttlSecs: 0, reason: "migration" };

describe("leases without expiry", () => {
  test.each([null, "", "  "])("need a reason; %j is none", (reason) => {
    const scene = new Scene();
    const options = { ttlSecs: 0, reason };
    expect(refused(scene.acquire(scene.actor("agent:ann"), ISSUE, options))).toBe("E_POLICY");
  });

  test("have no expiry and no total lifetime, and do not end by the clock", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    expect(one(scene.acquire(ann, ISSUE, FOREVER))).toMatchObject({ expiresAt: null, maxTotalSecs: null });
    scene.advance(365 * 86_400);
    scene.reboot({ wallSecs: 86_400, upSecs: 86_400 });
    expect(refused(scene.acquire(scene.actor("agent:bob"), ISSUE))).toBe("E_LOCK_CONFLICT");
  });

  test.each(["file:a", "dir:a", "resource:db", "ref:refs/heads/x"])("are not allowed on %s", (text) => {
    const scene = new Scene();
    expect(refused(scene.acquire(scene.actor("agent:ann"), text, FOREVER))).toBe("E_POLICY");
    scene.policy = { ...scene.policy, indefinite: ["file", "dir", "resource", "ref"] };
    granted(scene.acquire(scene.actor("agent:ann"), text, FOREVER));
  });

  test.each([ISSUE, "scope:config", `worktree:${WT2}`])("are allowed on %s", (text) => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), text, FOREVER));
  });

  test("are at most two per agent, whatever its session and worktree", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), ISSUE, FOREVER));
    granted(scene.acquire(scene.actor("agent:ann", "s2"), OTHER_ISSUE, FOREVER));
    const third = scene.actor("agent:ann", "s3", WT2);
    expect(refused(scene.acquire(third, "scope:config", FOREVER))).toBe("E_LIMIT");
    granted(scene.acquire(third, "scope:config"));
    granted(scene.acquire(scene.actor("agent:bob"), "scope:gates", FOREVER));
  });

  test("count all the keys of one operation", () => {
    const scene = new Scene();
    const keys = [ISSUE, OTHER_ISSUE, "scope:config"];
    expect(refused(scene.acquire(scene.actor("agent:ann"), keys, FOREVER))).toBe("E_LIMIT");
    granted(scene.acquire(scene.actor("agent:ann"), keys.slice(1), FOREVER));
  });

  test("do not count twice when asked for again", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, [ISSUE, OTHER_ISSUE], FOREVER));
    granted(scene.acquire(ann, [ISSUE, OTHER_ISSUE], FOREVER));
  });

  test("do not count once they are no longer valid", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, [ISSUE, OTHER_ISSUE], FOREVER));
    granted(scene.stop(ann, byKey(ISSUE)));
    scene.advance(30);
    granted(scene.acquire(ann, "scope:config", FOREVER));
  });

  test("are at most ten per repository; process-bound and finite leases do not count", () => {
    const scene = new Scene();
    for (let i = 0; i < 10; i++) {
      const actor = scene.actor(`agent:a${i}`);
      granted(scene.acquire(actor, `scope:s${i}`, FOREVER));
      granted(scene.acquire(actor, `file:f${i}`));
      granted(scene.guard(actor, `g${i}`));
    }
    expect(refused(scene.acquire(scene.actor("agent:ann"), ISSUE, FOREVER))).toBe("E_LIMIT");
  });

  test("stolen from their holder take its place under the limit", () => {
    const scene = new Scene();
    scene.policy = { ...scene.policy, maxIndefinitePerRepo: 1 };
    granted(scene.acquire(scene.actor("agent:ann"), ISSUE, FOREVER));
    const eve = scene.actor("human:eve");
    expect(refused(scene.acquire(eve, OTHER_ISSUE, FOREVER))).toBe("E_LIMIT");
    granted(scene.acquire(eve, ISSUE, { ...FOREVER, steal: true }));
  });

  test("once stale, stay so through every sign of life but a renewal", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE, FOREVER));
    scene.advance(3601);
    const stale = () => isStale(scene.lease(ISSUE)!, scene.now, scene.policy);
    for (const attempt of ["first", "second"]) {
      expect(refused(scene.prove(ann, byKey(ISSUE))), attempt).toBe("E_LOCK_EXPIRED");
      scene.upkeep(ann, byKey(ISSUE));
      granted(scene.acquire(ann, ISSUE, FOREVER));
      expect(refused(scene.heartbeat(ann, byKey(ISSUE))), attempt).toBe("E_LOCK_EXPIRED");
      expect(stale(), attempt).toBe(true);
    }
    granted(scene.stop(ann, byKey(ISSUE)));
    scene.upkeep(ann, byKey(ISSUE));
    expect(scene.lease(ISSUE)!.stopIdleAt).toBeNull();
    expect(stale()).toBe(true);
    granted(scene.renew(ann, byKey(ISSUE)));
    granted(scene.prove(ann, byKey(ISSUE)));
  });

  test("that were handed over and became stale are not revived by whoever adopts them", () => {
    const scene = new Scene();
    const [ann, bob] = [scene.actor("agent:ann"), scene.actor("agent:bob")];
    granted(scene.acquire(ann, ISSUE, FOREVER));
    granted(scene.transfer(ann, byKey(ISSUE), bob));
    scene.advance(3601);
    expect(refused(scene.prove(bob, byKey(ISSUE)))).toBe("E_LOCK_EXPIRED");
    granted(scene.acquire(bob, ISSUE, FOREVER));
    expect(refused(scene.prove(bob, byKey(ISSUE)))).toBe("E_LOCK_EXPIRED");
  });

  test("grow stale without a beat: they still exclude, until renewed", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE, FOREVER));
    const stale = () => isStale(scene.lease(ISSUE)!, scene.now, scene.policy);
    scene.advance(3600);
    expect(stale()).toBe(false);
    scene.advance(1);
    expect(stale()).toBe(true);
    expect(refused(scene.acquire(scene.actor("agent:bob"), ISSUE))).toBe("E_LOCK_CONFLICT");
    granted(scene.renew(ann, byKey(ISSUE)));
    expect(stale()).toBe(false);
  });

  test("finite and process-bound leases are never stale", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const finite = one(scene.acquire(ann, "file:a", { ttlSecs: 86_400 }));
    const bound = one(scene.guard(ann, "b"));
    scene.advance(80_000);
    expect(isStale(finite, scene.now, scene.policy)).toBe(false);
    expect(isStale(bound, scene.now, scene.policy)).toBe(false);
  });
});
