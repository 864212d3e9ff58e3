import { beforeEach, describe, expect, it } from "vitest";
import { check, splitByKeys } from "./checker";
import { done, type Person, refused, Story, UNKNOWN } from "./story";

let story: Story;
let ann: Person;
let bob: Person;
let eve: Person;
beforeEach(() => {
  story = new Story();
  ann = story.person("agent:ann");
  bob = story.person("agent:bob");
  eve = story.person("human:eve");
});

const expectFine = () => expect(check(story.history).broken).toEqual([]);
const complaint = () => check(story.history).broken.join("\n");
const expectBroken = (words = "no order of these operations is possible") =>
  expect(complaint()).toContain(words);

const A = "file:src/a";

describe("what can happen is accepted", () => {
  it("one after the other", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    bob.asks([20, 30], [A], refused("E_LOCK_CONFLICT", first));
    ann.renews([40, 50], first, done([{ ...first, expiresMs: 1045 }]));
    ann.releases([60, 70], first);
    bob.gets([80, 90], [bob.lease("L2", A, 2, 1085)]);
    expectFine();
  });

  it("overlapping in whatever order explains the answers", () => {
    const first = ann.lease("L1", A, 1, 1005);
    const second = bob.lease("L2", A, 2, 1055);
    ann.gets([0, 10], [first]);
    // Bob has it before Ann hears that she has given it back, and a reader sees the one before the other.
    ann.releases([20, 100], first);
    bob.gets([30, 60], [second]);
    eve.reads([25, 95], [A], [first]);
    eve.reads([26, 96], [A], [second]);
    eve.reads([27, 97], [A], []);
    expectFine();
  });

  it("a takeover at the expiry, and a steal before it", () => {
    const first = ann.lease("L1", A, 1, 1005);
    const second = bob.lease("L2", A, 2, 2005);
    ann.gets([0, 10], [first]);
    bob.gets([1000, 1010], [second], ["L1"]);
    eve.gets([1020, 1030], [eve.lease("L3", A, 3, 2025)], ["L2"], true);
    bob.renews([1040, 1050], second, refused("E_FENCING_MISMATCH"));
    expectFine();
  });

  it("asking again for what one has, and for a directory around it", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    ann.gets([20, 30], [first]);
    ann.gets([40, 50], [ann.lease("L2", "dir:src", 2, 1045)]);
    bob.asks([60, 70], ["file:src/b"], refused("E_LOCK_CONFLICT", ann.lease("L2", "dir:src", 2, 1045)));
    expectFine();
  });

  it("several keys at once, and leases that reach one worktree only", () => {
    const far = story.person("agent:far", "wt:2");
    ann.gets(
      [0, 10],
      [ann.lease("L1", A, 1, 1005, { within: "wt:1" }), ann.lease("L2", "resource:r", 2, 1005)],
    );
    far.gets([20, 30], [far.lease("L3", A, 3, 1025, { within: "wt:2" })]);
    far.asks([40, 50], [A], refused("E_LOCK_CONFLICT", ann.lease("L1", A, 1, 1005)));
    expectFine();
  });

  it("handed over, and adopted by the new holder's first call", () => {
    const first = ann.lease("L1", A, 1, 1005);
    const heir = bob.lease("L2", A, 2, 1025);
    ann.gets([0, 10], [first]);
    ann.transfers([20, 30], first, bob, heir);
    ann.releases([40, 50], first, refused("E_FENCING_MISMATCH"));
    bob.releases([60, 70], heir);
    expectFine();
  });

  it("evicted, and an eviction of what is not there", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    eve.evicts([20, 30], first);
    eve.evicts([40, 50], first, refused("E_NOT_FOUND"));
    expectFine();
  });

  it("lapsed and given back by its holder, if nobody took it", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    ann.renews([1200, 1210], first, refused("E_LOCK_EXPIRED"));
    ann.releases([1300, 1310], first);
    expectFine();
  });

  it("bound to a process, and taken when that has died", () => {
    const first = ann.lease("L1", A, 1, null, { process: "agent:ann" });
    ann.gets([0, 10], [first]);
    bob.asks([9000, 9010], [A], refused("E_LOCK_CONFLICT", first));
    story.dies("agent:ann", 9020, 9030);
    bob.gets([9021, 9040], [bob.lease("L2", A, 2, 10_030)], ["L1"]);
    expectFine();
  });

  it("a guarded write while the lease is valid, and its refusal afterwards", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    ann.writes([20, 30], first);
    bob.gets([1006, 1010], [bob.lease("L2", A, 2, 2008)], ["L1"]);
    ann.writes([1020, 1030], first, refused("E_STALE"));
    expectFine();
  });

  it.each([
    ["took effect", true],
    ["did not", false],
  ])("a lost answer of an operation that %s", (_, didIt) => {
    const lost = ann.lease("L1", A, 1, null);
    ann.asks([0, 15], [A], UNKNOWN, { ids: ["L1"] });
    if (didIt) bob.asks([20, 30], [A], refused("E_LOCK_CONFLICT", lost));
    else bob.gets([20, 30], [bob.lease("L2", A, 1, 1025)]);
    expectFine();
  });

  it("a lost answer about several keys, whose tokens came in another order than they were asked for", () => {
    const [file, resource] = [ann.lease("L1", A, 1, null), ann.lease("L2", "resource:r", 2, null)];
    ann.asks([0, 15], ["resource:r", A], UNKNOWN, { ids: ["L2", "L1"] });
    bob.asks([20, 30], ["resource:r", A], refused("E_LOCK_CONFLICT", resource, file));
    eve.reads([40, 50], [A, "resource:r"], [file, resource]);
    expectFine();
  });

  it("a lease whose grant had its answer lost, and that its holder asks for again after others got higher tokens", () => {
    const lost = ann.lease("L1", A, 1, null);
    ann.asks([0, 15], [A], UNKNOWN, { ids: ["L1"] });
    bob.gets([20, 30], [bob.lease("L2", "resource:r", 2, null)]);
    ann.asks([40, 50], [A], done([lost]), { ids: ["L3"] });
    expectFine();
  });

  it("a renewal that was decided in time, and is written when a reader has seen the old expiry pass", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    ann.renews([990, 1050], first, done([{ ...first, expiresMs: 2000 }]));
    eve.reads([1010, 1020], [A], [{ ...first, valid: false }]);
    eve.reads([1030, 1040], [A], [{ ...first, expiresMs: 2000 }]);
    expectFine();
  });

  it("an operation that is never over takes effect late", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    ann.releases([20, Number.POSITIVE_INFINITY], first, UNKNOWN);
    bob.asks([30, 40], [A], refused("E_LOCK_CONFLICT", first));
    bob.gets([50, 60], [bob.lease("L2", A, 2, 1055)]);
    expectFine();
  });
});

describe("what cannot happen is caught", () => {
  it("a double grant", () => {
    ann.gets([0, 10], [ann.lease("L1", A, 1, 1005)]);
    bob.gets([20, 30], [bob.lease("L2", A, 2, 1025)]);
    expectBroken();
    expect(complaint()).toContain("file:src/a L1 #1 of agent:ann/s");
  });

  it("a double grant of calls that overlap", () => {
    ann.gets([0, 30], [ann.lease("L1", A, 1, 1005)]);
    bob.gets([10, 20], [bob.lease("L2", A, 2, 1015)]);
    eve.reads([40, 50], [A], [bob.lease("L2", A, 2, 1015)]);
    expectBroken();
  });

  it("a lost release: acknowledged, and the lease is still there", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    ann.releases([20, 30], first);
    bob.asks([40, 50], [A], refused("E_LOCK_CONFLICT", first));
    expectBroken();
  });

  it("a token that is reset", () => {
    const first = ann.lease("L1", A, 7, 1005);
    ann.gets([0, 10], [first]);
    ann.releases([20, 30], first);
    bob.gets([40, 50], [bob.lease("L2", A, 3, 1045)]);
    expectBroken();
  });

  it("a token that is reset for keys that have nothing to do with each other", () => {
    ann.gets([0, 10], [ann.lease("L1", A, 7, 1005)]);
    bob.gets([40, 50], [bob.lease("L2", "resource:r", 3, 1045)]);
    expectBroken("a token that is not above 7");
  });

  it("one token for two leases, and two tokens for one", () => {
    ann.gets([0, 50], [ann.lease("L1", A, 7, 1005)]);
    bob.gets([40, 50], [bob.lease("L2", "resource:r", 7, 1045)]);
    eve.reads([60, 70], [A], [ann.lease("L1", A, 8, 1005)]);
    expectBroken("token 7 was given to L1 and to L2");
    expectBroken("L1 has token 7 and 8");
  });

  it("half of an acquire of two keys", () => {
    const first = ann.lease("L1", A, 1, 1005);
    const second = ann.lease("L2", "resource:r", 2, 1005);
    ann.asks([0, 10], [A, "resource:r"], UNKNOWN, { ids: ["L1", "L2"] });
    bob.asks([20, 30], [A], refused("E_LOCK_CONFLICT", first));
    eve.reads([40, 50], ["resource:r"], []);
    expectBroken();
    story.operations.pop();
    eve.reads([40, 50], ["resource:r"], [{ ...second, expiresMs: null }]);
    expectFine();
  });

  it("an answer that leaves out one of the keys", () => {
    ann.asks([0, 10], [A, "resource:r"], done([ann.lease("L1", A, 1, 1005)]));
    expectBroken();
  });

  it("an acknowledged grant that is lost", () => {
    ann.gets([0, 10], [ann.lease("L1", A, 1, 1005)]);
    eve.reads([20, 30], [A], []);
    expectBroken();
  });

  it("a takeover before the expiry", () => {
    ann.gets([0, 10], [ann.lease("L1", A, 1, 1005)]);
    bob.gets([990, 1003], [bob.lease("L2", A, 2, 2000)], ["L1"]);
    expectBroken();
  });

  it("a lease that ends earlier, or later, than it was asked for", () => {
    ann.gets([0, 10], [ann.lease("L1", A, 1, 900)]);
    expectBroken();
    story.operations.length = 0;
    ann.gets([0, 10], [ann.lease("L1", A, 1, 1020)]);
    expectBroken();
  });

  it("an old lease that comes back", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    bob.gets([1006, 1010], [bob.lease("L2", A, 2, 2008)], ["L1"]);
    ann.renews([1020, 1030], first, done([{ ...first, expiresMs: 2025 }]));
    expectBroken();
  });

  it("a lease that was seen to have lapsed, and then is valid", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    eve.reads([1000, 1020], [A], [{ ...first, valid: false }]);
    ann.writes([1021, 1030], first);
    expectBroken();
  });

  it("a grant inside a directory that somebody holds, and around a file", () => {
    ann.gets([0, 10], [ann.lease("L1", "dir:src", 1, 1005)]);
    bob.gets([20, 30], [bob.lease("L2", A, 2, 1025)]);
    expectBroken();
    story.operations.length = 0;
    ann.gets([0, 10], [ann.lease("L1", A, 1, 1005)]);
    bob.gets([20, 30], [bob.lease("L2", "dir:.", 2, 1025)]);
    expectBroken();
  });

  it("a read of a state that never was", () => {
    const first = ann.lease("L1", A, 1, 1005);
    const second = ann.lease("L2", "file:src/b", 2, 1025);
    ann.gets([0, 10], [first]);
    eve.reads([11, 40], [A, "file:src/b"], [second]);
    ann.gets([20, 30], [second]);
    ann.reads([50, 60], ["dir:src"], []);
    bob.asks([70, 80], ["dir:src"], refused("E_LOCK_CONFLICT", first, second));
    expectBroken();
  });

  it("a read that is late: the state was that once, but before it was asked for", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    ann.releases([20, 30], first);
    eve.reads([40, 50], [A], [first]);
    expectBroken();
  });

  it("a read that shows an expiry from before the renewal", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    ann.renews([100, 110], first, done([{ ...first, expiresMs: 1105 }]));
    eve.reads([120, 130], [A], [first]);
    expectBroken();
  });

  it("two reads that see two changes in different orders", () => {
    const first = ann.lease("L1", "file:src/a", 1, 1005);
    const second = bob.lease("L2", "file:src/b", 2, 1005);
    eve.asks([0, 1], ["dir:src"], refused("E_QUEUED"));
    ann.gets([2, 100], [first]);
    bob.gets([2, 100], [second]);
    eve.reads([5, 90], ["file:src/a", "file:src/b"], [first]);
    expectFine();
    eve.reads([5, 90], ["file:src/a", "file:src/b"], [second]);
    expectBroken();
  });

  it("a release with a stale lease that is not refused", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    eve.evicts([20, 30], first);
    ann.releases([40, 50], first);
    expectBroken();
  });

  it("a release of somebody else's lease", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    bob.releases([20, 30], first);
    expectBroken();
  });

  it("a guarded write with a stale token", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    bob.gets([1006, 1010], [bob.lease("L2", A, 2, 2008)], ["L1"]);
    ann.writes([1020, 1030], first);
    expectBroken();
  });

  it("a guarded write that is refused while the lease stands", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    ann.writes([20, 30], first, refused("E_STALE"));
    expectBroken();
  });

  it("a lease of a living process that is taken for dead, and a dead one's that still excludes", () => {
    const first = ann.lease("L1", A, 1, null, { process: "agent:ann" });
    ann.gets([0, 10], [first]);
    story.dies("agent:ann", 500, 510);
    bob.gets([400, 410], [bob.lease("L2", A, 2, 1405)], ["L1"]);
    expectBroken();
    story.operations.pop();
    bob.asks([520, 530], [A], refused("E_LOCK_CONFLICT", first));
    expectBroken();
  });

  it("a takeover that does not end what it replaces", () => {
    ann.gets([0, 10], [ann.lease("L1", A, 1, 1005)]);
    bob.gets([1006, 1010], [bob.lease("L2", A, 2, 2008)], []);
    expectBroken();
  });

  it("a steal by force that nobody asked for", () => {
    const first = ann.lease("L1", A, 1, 1005);
    ann.gets([0, 10], [first]);
    bob.asks([20, 30], [A], {
      is: "done",
      leases: [bob.lease("L2", A, 2, 1025)],
      ended: [{ id: "L1", forced: true }],
    });
    expectBroken();
  });

  it("a refusal that names nobody, or somebody who is not in the way", () => {
    const other = ann.lease("L1", "file:src/b", 1, 1005);
    ann.gets([0, 10], [other]);
    bob.asks([20, 30], [A], refused("E_LOCK_CONFLICT"));
    expectBroken();
    story.operations.pop();
    bob.asks([20, 30], [A], refused("E_LOCK_CONFLICT", other));
    expectBroken();
  });

  it("a transfer with an instant in which the key is free", () => {
    const first = ann.lease("L1", A, 1, 1005);
    const heir = bob.lease("L2", A, 2, 1025);
    ann.gets([0, 10], [first]);
    ann.transfers([20, 60], first, bob, heir);
    eve.reads([30, 40], [A], []);
    expectBroken();
  });

  it("an effect of an operation whose process had been gone", () => {
    ann.asks([0, 10], [A], UNKNOWN, { ids: ["L1"] });
    eve.reads([20, 30], [A], []);
    bob.asks([40, 50], [A], refused("E_LOCK_CONFLICT", ann.lease("L1", A, 1, null)));
    expectBroken();
  });
});

describe("a history", () => {
  it("falls apart where keys have nothing to do with each other", () => {
    ann.gets([0, 10], [ann.lease("L1", A, 1, 1005)]);
    bob.gets([20, 30], [bob.lease("L2", "resource:r", 2, 1025)]);
    bob.gets([20, 30], [bob.lease("L3", "dir:src/x", 3, 1025)]);
    eve.reads([40, 50], null, []);
    expect(splitByKeys(story.operations).map((group) => group.length)).toEqual([2, 2, 2]);
    ann.asks([60, 70], ["dir:src", "resource:r"], refused("E_QUEUED"));
    expect(splitByKeys(story.operations).map((group) => group.length)).toEqual([5]);
  });

  it("that is wrong is told in words", () => {
    ann.gets([0, 10], [ann.lease("AAAAAA", A, 1, 1005)]);
    bob.gets([20, 30], [bob.lease("BBBBBB", A, 2, 1025)]);
    expect(complaint().split("\n")).toEqual([
      "no order of these operations is possible",
      "  before, answered:",
      "    [-20.00, -10.00] agent:ann/s acquire file:src/a for 1000 ms: file:src/a AAAAAA #1 until 985",
      "  so the state was:",
      "    file:src/a AAAAAA #1 of agent:ann/s; highest token 1",
      "  and this does not fit:",
      "    [0.00, 10.00] agent:bob/s acquire file:src/a for 1000 ms: file:src/a BBBBBB #2 until 1005",
    ]);
  });
});
