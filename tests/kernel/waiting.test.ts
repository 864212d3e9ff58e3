import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isRefusal } from "../../src/kernel/refusal";
import { inTheWay, isItsTurn, isVoid, wantsSame } from "../../src/kernel/tickets";
import { instantOf, later } from "../../src/kernel/time";
import { propertySeed } from "./property";
import { byKey, granted, ISSUE, one, refused, Scene, WT1, WT2 } from "./scene";

function queue() {
  const scene = new Scene();
  return {
    scene,
    ann: scene.actor("agent:ann", "a", WT1, 1),
    bob: scene.actor("agent:bob", "b", WT1, 2),
    cat: scene.actor("agent:cat", "c", WT2, 3),
  };
}

describe("tickets", () => {
  test("while a live waiter is ahead, an acquire without --wait is refused", () => {
    const { scene, ann, bob } = queue();
    scene.join(1, ann, ["file:a"]);
    const outcome = scene.acquire(bob, "file:a");
    expect(outcome).toMatchObject({ code: "E_QUEUED", data: { ahead: 1, waiting: ["agent:ann"] } });
    granted(scene.acquire(bob, "file:b"));
  });

  test("waiters are served in order", () => {
    const { scene, ann, bob } = queue();
    scene.join(1, ann, ["file:a"]);
    scene.join(2, bob, ["file:a"]);
    expect(refused(scene.acquire(bob, "file:a", { ticket: 2 }))).toBe("E_QUEUED");
    granted(scene.acquire(ann, "file:a", { ticket: 1 }));
  });

  test("held comes before queued: the holder is named", () => {
    const { scene, ann, bob, cat } = queue();
    granted(scene.acquire(cat, "file:a"));
    scene.join(1, ann, ["file:a"]);
    expect(refused(scene.acquire(bob, "file:a"))).toBe("E_LOCK_CONFLICT");
  });

  test("queue by conflicting key sets, not by equal keys", () => {
    const { scene, ann, bob } = queue();
    scene.join(1, ann, ["dir:d", "resource:db"]);
    expect(refused(scene.acquire(bob, ["file:z", "file:d/x"]))).toBe("E_QUEUED");
    granted(scene.acquire(bob, ["file:z", "file:e/x"]));
  });

  test("one's own ticket is never in one's way", () => {
    const { scene, ann } = queue();
    scene.join(1, ann, ["file:a"]);
    granted(scene.acquire(ann, "file:a"));
  });

  test("a number without a live ticket behind it is no place in the queue", () => {
    const { scene, ann, bob } = queue();
    scene.join(2, bob, ["file:a"]);
    expect(refused(scene.acquire(ann, "file:a", { ticket: 1 }))).toBe("E_QUEUED");
    scene.join(1, scene.actor("agent:cat"), ["file:z"]);
    expect(refused(scene.acquire(ann, "file:a", { ticket: 1 })), "somebody else's number").toBe("E_QUEUED");
  });

  test("bind no session that holds a lease they wait for: it would never be freed", () => {
    const { scene, ann, bob, cat } = queue();
    granted(scene.acquire(ann, "file:a"));
    scene.join(1, bob, ["file:a", "file:b"]);
    granted(scene.acquire(ann, "file:b"));
    scene.join(2, cat, ["file:c"]);
    expect(refused(scene.acquire(ann, "file:c"))).toBe("E_QUEUED");
  });

  test("the exemption is the session's, in every worktree, and ends with the lease", () => {
    const { scene, ann, bob } = queue();
    granted(scene.acquire(ann, "file:a"));
    scene.join(1, bob, ["file:a", "file:b"]);
    const elsewhere = { ...ann, worktreeId: WT2 };
    granted(scene.acquire(elsewhere, "file:b", { ttlSecs: 60 }));
    scene.advance(601);
    expect(refused(scene.acquire(ann, "file:b"))).toBe("E_QUEUED");
  });

  test("do not concern renewals, nor asking again for what is held", () => {
    const { scene, ann, bob } = queue();
    granted(scene.acquire(ann, ISSUE));
    scene.join(1, bob, [ISSUE]);
    scene.advance(400);
    granted(scene.acquire(ann, ISSUE));
    granted(scene.renew(ann, byKey(ISSUE)));
    granted(scene.upkeep(ann, byKey(ISSUE)));
  });

  test("a lapsed holder that comes back queues like anybody", () => {
    const { scene, ann, bob } = queue();
    granted(scene.acquire(ann, ISSUE));
    scene.join(1, bob, [ISSUE]);
    scene.advance(600);
    expect(refused(scene.acquire(ann, ISSUE))).toBe("E_QUEUED");
  });

  test("--steal jumps the queue only for those who may end a live lease, with a reason", () => {
    const { scene, ann, bob } = queue();
    scene.join(1, ann, ["file:a"]);
    const eve = scene.actor("human:eve");
    expect(refused(scene.acquire(bob, "file:a", { steal: true, reason: "hurry" }))).toBe("E_QUEUED");
    expect(refused(scene.acquire(eve, "file:a", { steal: true }))).toBe("E_QUEUED");
    granted(scene.acquire(eve, "file:a", { steal: true, reason: "hurry" }));
  });
});

describe("a ticket is void", () => {
  test("when its process is dead, never when that cannot be seen", () => {
    const { scene, ann } = queue();
    const ticket = scene.join(1, ann, ["file:a"]);
    expect(isVoid(ticket, scene.now, "dead")).toBe(true);
    expect(isVoid(ticket, scene.now, "unknown")).toBe(false);
    expect(isVoid(ticket, scene.now, "alive")).toBe(false);
  });

  test("when it has expired", () => {
    const { scene, ann } = queue();
    const ticket = scene.join(1, ann, ["file:a"]);
    scene.advance(299);
    expect(isVoid(ticket, scene.now, "alive")).toBe(false);
    scene.advance(1);
    expect(isVoid(ticket, scene.now, "alive")).toBe(true);
  });

  test("when a free key was not taken within 5 s", () => {
    const { scene, ann } = queue();
    const ticket = scene.join(1, ann, ["file:a"], { freeSince: instantOf(scene.now) });
    scene.advance(4.999);
    expect(isVoid(ticket, scene.now, "alive")).toBe(false);
    scene.advance(0.001);
    expect(isVoid(ticket, scene.now, "alive")).toBe(true);
  });
});

describe("whose turn it is", () => {
  test("the first ticket's whose keys nobody holds", () => {
    const { scene, ann, bob, cat } = queue();
    const held = one(scene.acquire(cat, "file:a"));
    const first = scene.join(1, ann, ["file:a"]);
    const second = scene.join(2, bob, ["dir:."]);
    const third = scene.join(3, bob, ["resource:db"]);
    expect(inTheWay(first, [held])).toEqual([held]);
    expect([first, second, third].map((t) => isItsTurn(t, scene.tickets, [held]))).toEqual([
      false,
      false,
      true,
    ]);
    expect([first, second, third].map((t) => isItsTurn(t, scene.tickets, []))).toEqual([true, false, true]);
  });

  test("is what the decision says, whoever waits and holds", () => {
    const keys = ["file:d/x", "file:d/y", "file:z", "dir:d", "dir:.", "resource:r"];
    const who = fc.nat(3);
    const wanted = fc.uniqueArray(fc.constantFrom(...keys), { minLength: 1, maxLength: 3 });
    const place = fc.constantFrom(WT1, WT2);
    const story = fc.array(fc.tuple(fc.boolean(), who, place, wanted), { minLength: 2, maxLength: 14 });
    const tell = (deeds: readonly [boolean, number, typeof WT1, string[]][]) => {
      const scene = new Scene();
      for (const [waits, agent, worktree, what] of deeds) {
        const actor = scene.actor(`agent:${agent}`, "s", worktree);
        if (waits) scene.join(scene.tickets.length + 1, actor, what);
        else scene.acquire(actor, what);
      }
      const valid = [...scene.view.leases.values()];
      for (const ticket of scene.tickets) {
        const again = Object.assign(new Scene(), { view: scene.view, tickets: scene.tickets });
        const actor = again.actor(ticket.agentId, "s", ticket.worktreeId);
        const outcome = again.acquire(actor, [...ticket.keys], { ticket: ticket.number });
        expect(isItsTurn(ticket, scene.tickets, valid), `number ${ticket.number}`).toBe(!isRefusal(outcome));
      }
    };
    fc.assert(fc.property(story, tell), { seed: propertySeed(), numRuns: 400 });
  });

  test("a lease handed to the waiter is not in its way", () => {
    const { scene, ann, bob } = queue();
    granted(scene.acquire(ann, "file:a"));
    const ticket = scene.join(1, bob, ["file:a"]);
    const moved = one(scene.transfer(ann, byKey("file:a"), bob));
    expect(inTheWay(ticket, [moved])).toEqual([]);
  });

  test("worktree-reach tickets of different worktrees want different things", () => {
    const { scene, ann, cat } = queue();
    const keys = [{ key: byKey("file:a").key!, reach: "worktree" as const }];
    const one = scene.join(1, ann, [], { keys });
    const two = scene.join(2, cat, [], { keys });
    expect(wantsSame(one, two)).toBe(false);
    expect(wantsSame(one, { ...two, worktreeId: WT1 })).toBe(true);
    expect(wantsSame(one, scene.join(3, cat, ["file:a"]))).toBe(true);
  });

  test("a ticket of another boot has a little grace", () => {
    const { scene, ann } = queue();
    const ticket = scene.join(1, ann, ["file:a"], { expiresAt: later(instantOf(scene.now), 1000) });
    scene.reboot();
    scene.advance(2.5);
    expect(isVoid(ticket, scene.now, "unknown")).toBe(false);
    scene.advance(0.5);
    expect(isVoid(ticket, scene.now, "unknown")).toBe(true);
  });
});
