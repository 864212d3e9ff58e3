import { describe, expect, test } from "vitest";
import type { FencingToken } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import { type Lease, type Slot, slotOf } from "../../src/kernel/lease";
import { LIMITS } from "../../src/kernel/policy";
import { byKey, granted, key, one, refused, Scene, written } from "./scene";

/**
 * No stop-watch: what these do with each-against-each comparison takes minutes, and the runner's own limit
 * ends it.
 */
const names = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, i) => `file:${prefix}/${i % 40}/deep/down/${i}`);

/** Ann holds that many; put there at once, for applying a grant copies the view. */
function crowded(count: number) {
  const scene = new Scene();
  const ann = scene.actor("agent:ann");
  const [pattern] = granted(scene.acquire(ann, "file:x"));
  const leases = new Map<Slot, Lease>();
  for (let i = 0; i < count; i++) {
    const key = `file:held-${Math.floor(i / 1000)}/${i % 40}/deep/down/${i % 1000}` as LeaseKey;
    const lease = { ...pattern!, key, leaseId: scene.freshId(), fencingToken: (i + 1) as FencingToken };
    leases.set(slotOf(lease), lease);
  }
  scene.view = { leases, endings: new Map(), nextToken: (count + 1) as FencingToken };
  return { scene, ann };
}

describe("many leases", () => {
  test("1,000 keys beside 50,000 leases: granted, asked again, renewed, released", () => {
    const { scene } = crowded(50_000);
    const bob = scene.actor("agent:bob");
    const keys = names(1000, "wanted");
    expect(granted(scene.acquire(bob, keys))).toHaveLength(1000);
    expect(written(scene.acquire(bob, keys))).toBeNull();
    scene.advance(301);
    expect(written(scene.acquire(bob, keys))?.leases).toHaveLength(1000);
    granted(scene.renew(bob, keys.map(byKey)));
    granted(scene.release(bob, ...keys.map(byKey)));
  });

  test("1,000 keys taken over from 1,000 lapsed leases", () => {
    const { scene } = crowded(10_000);
    scene.advance(600);
    const outcome = scene.acquire(scene.actor("agent:bob"), names(1000, "held-7"));
    expect(written(outcome)?.ended).toHaveLength(1000);
  });

  test("a directory over 50,000 leases: refused, then taken over", () => {
    const { scene } = crowded(50_000);
    const bob = scene.actor("agent:bob");
    expect(refused(scene.acquire(bob, "dir:."))).toBe("E_LOCK_CONFLICT");
    scene.advance(600);
    const outcome = scene.acquire(bob, "dir:.");
    expect(written(outcome)?.ended).toHaveLength(50_000);
    expect(one(outcome).stoleFrom).toHaveLength(LIMITS.stoleFrom);
  });

  test("gc of 100,000", () => {
    const { scene, ann } = crowded(100_000);
    expect(written(scene.gc(ann))).toBeNull();
    scene.advance(600);
    expect(written(scene.gc(ann))?.ended).toHaveLength(1000);
  });

  test("1,000 waiters for 1,000 keys each", () => {
    const { scene } = crowded(1000);
    const keys = names(1000, "wanted");
    const sets = [0, 1].map((n) =>
      keys.map((text) => ({ key: key(`${text}-${n}`), reach: "repository" as const })),
    );
    for (let i = 0; i < 1000; i++) scene.join(i, scene.actor(`agent:w${i}`), [], { keys: sets[i % 2]! });
    const bob = scene.actor("agent:bob");
    granted(scene.acquire(bob, keys));
    const contested = keys.map((text) => `${text}-1`);
    expect(scene.acquire(bob, contested)).toMatchObject({ code: "E_QUEUED", data: { ahead: 500 } });
  });
});
