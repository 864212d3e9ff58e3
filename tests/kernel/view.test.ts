import { describe, expect, test } from "vitest";
import { endedRecord, slotOf } from "../../src/kernel/lease";
import { applyTo, CLAIM_EVENTS, EMPTY_VIEW, evolve, tokenAfter } from "../../src/kernel/view";
import { byKey, granted, ISSUE, key, one, Scene, WT1, WT2, written } from "./scene";

describe("evolve", () => {
  test("leaves the old view as it was", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ISSUE));
    const before = scene.view;
    granted(scene.release(ann, byKey(ISSUE)));
    expect(before.leases.size).toBe(1);
    expect(scene.view.leases.size).toBe(0);
    expect(EMPTY_VIEW.leases.size).toBe(0);
  });

  test("an ending takes away the lease it names, never another one in its place", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    const old = one(scene.acquire(ann, ISSUE));
    granted(scene.release(ann, byKey(ISSUE)));
    granted(scene.acquire(scene.actor("agent:bob"), ISSUE));
    const late = {
      type: "claim.evicted" as const,
      leases: [],
      ended: [endedRecord(old, "forced")],
      reason: null,
    };
    expect(evolve(scene.view, late).leases).toEqual(scene.view.leases);
  });

  test("remembers every ending but a release", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ["file:a", "file:b"]));
    granted(scene.release(ann, byKey("file:a")));
    granted(scene.evict(scene.actor("human:eve"), byKey("file:b")));
    expect([...scene.view.endings.values()].map((gone) => [gone.key, gone.how])).toEqual([
      ["file:b", "forced"],
    ]);
  });

  test("the next token is above every token an event names, and never falls", () => {
    const scene = new Scene();
    const event = written(scene.acquire(scene.actor("agent:ann"), ["file:a", "file:b"]))!;
    expect(tokenAfter(EMPTY_VIEW.nextToken, event)).toBe(3);
    expect(tokenAfter(9 as typeof EMPTY_VIEW.nextToken, event)).toBe(9);
    const ended = [endedRecord(event.leases[1]!, "forced")];
    expect(tokenAfter(EMPTY_VIEW.nextToken, { ...event, leases: [], ended })).toBe(3);
  });

  test("in place and on a copy come to the same", () => {
    const scene = new Scene();
    const ann = scene.actor("agent:ann");
    granted(scene.acquire(ann, ["file:a", "file:b"]));
    granted(scene.transfer(ann, byKey("file:a"), scene.actor("agent:bob")));
    const maps = { leases: new Map(), endings: new Map() } as Parameters<typeof applyTo>[0];
    for (const event of scene.events) applyTo(maps, event);
    expect(maps.leases).toEqual(scene.view.leases);
    expect(maps.endings).toEqual(scene.view.endings);
  });
});

test("every event is of a known type", () => {
  const scene = new Scene();
  const ann = scene.actor("agent:ann");
  granted(scene.acquire(ann, ISSUE));
  granted(scene.heartbeat(ann, byKey(ISSUE)));
  granted(scene.renew(ann, byKey(ISSUE)));
  granted(scene.stop(ann, byKey(ISSUE)));
  granted(scene.transfer(ann, byKey(ISSUE), ann));
  granted(scene.evict(scene.actor("human:eve"), byKey(ISSUE)));
  granted(scene.acquire(ann, ISSUE));
  granted(scene.release(ann, byKey(ISSUE)));
  expect(new Set(scene.events.map((event) => event.type))).toEqual(new Set(CLAIM_EVENTS));
});

test("a slot is a key, and for worktree reach also the worktree", () => {
  const at = (reach: "repository" | "worktree", worktreeId: typeof WT1) =>
    slotOf({ key: key("file:a"), reach, worktreeId });
  expect(at("repository", WT1)).toBe(at("repository", WT2));
  expect(new Set([at("repository", WT1), at("worktree", WT1), at("worktree", WT2)]).size).toBe(3);
});

test("all leases on a key are found", () => {
  const scene = new Scene();
  granted(scene.guard(scene.actor("agent:ann", "a", WT1, 1), "x", "y"));
  granted(scene.guard(scene.actor("agent:bob", "b", WT2, 2), "x"));
  expect(
    [...scene.view.leases.values()].filter((lease) => lease.key === "file:x").map((lease) => lease.agentId),
  ).toEqual(["agent:ann", "agent:bob"]);
});
