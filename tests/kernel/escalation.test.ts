import { expect, it } from "vitest";
import { contendersIn, escalatedAmong } from "../../src/kernel/escalation";
import { byKey, granted, one, Scene } from "./scene";

function story() {
  const scene = new Scene();
  const [ann, bob] = [scene.actor("agent:ann"), scene.actor("agent:bob")];
  const look = (afterSecs: number) => {
    const leases = [...scene.view.leases.values()];
    return escalatedAmong(leases, contendersIn(scene.tickets, leases), scene.now, afterSecs);
  };
  return { scene, ann, bob, look };
}

it("a lease that is held and contended for longer than that is for a person; 0 is off", () => {
  const { scene, ann, bob, look } = story();
  const lease = one(scene.acquire(ann, "dir:src", { ttlSecs: 3_600 }));
  granted(scene.acquire(ann, "file:other", { ttlSecs: 3_600 }));
  scene.advance(500);
  scene.join(1, bob, ["file:src/x"]);
  scene.advance(59);
  expect(look(60)).toEqual([]);
  scene.advance(1);
  scene.join(2, scene.actor("agent:cat"), ["dir:src"]);
  expect(look(60)).toMatchObject([
    { lease: { leaseId: lease.leaseId }, contenders: [{ agentId: "agent:bob" }, { agentId: "agent:cat" }] },
  ]);
  expect(look(0)).toEqual([]);
  expect(look(61)).toEqual([]);
});

it("neither one that nobody waits for, nor one that somebody else has only just taken", () => {
  const { scene, ann, bob, look } = story();
  granted(scene.acquire(ann, "file:x", { ttlSecs: 3_600 }));
  scene.advance(1_000);
  expect(look(60)).toEqual([]);
  scene.join(1, bob, ["file:x"]);
  scene.advance(100);
  expect(look(60)).toHaveLength(1);
  granted(scene.transfer(ann, byKey("file:x"), scene.actor("agent:cat")));
  expect(look(60)).toEqual([]);
  scene.advance(60);
  expect(look(60)).toMatchObject([{ lease: { agentId: "agent:cat" } }]);
});

it("a holder that waits for something itself is not in its own way", () => {
  const { scene, ann, look } = story();
  granted(scene.acquire(ann, "file:x", { ttlSecs: 3_600 }));
  scene.join(1, ann, ["file:x"]);
  scene.advance(100);
  expect(look(60)).toEqual([]);
});
