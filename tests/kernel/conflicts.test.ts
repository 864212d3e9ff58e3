import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { conflict, type Extent, ExtentIndex, keysConflict } from "../../src/kernel/conflicts";
import type { Reach } from "../../src/kernel/lease";
import { propertyRuns } from "./property";
import { granted, key, refused, Scene, WT1, WT2 } from "./scene";

describe("which keys conflict", () => {
  test.each([
    ["file:a", "file:a", true, "the same key conflicts with itself"],
    ["dir:d", "dir:d", true, ""],
    ["resource:db", "resource:db", true, ""],
    ["dir:d", "file:d/x", true, "a directory with a file inside"],
    ["dir:d", "file:d/e/f/x", true, "at any depth"],
    ["dir:d", "dir:d/e", true, "nested directories"],
    ["dir:.", "file:x", true, "the whole repository"],
    ["dir:.", "dir:d/e", true, ""],
    ["file:a", "file:b", false, "siblings never do"],
    ["dir:a", "dir:b", false, ""],
    ["dir:a", "file:b", false, ""],
    ["dir:a", "file:ab", false, "a name that only begins alike"],
    ["dir:a", "file:a-b/c", false, ""],
    ["dir:a", "dir:a0", false, ""],
    ["dir:d", "file:d", false, "a file where the directory is: one of them is not there"],
    ["file:d", "file:d/x", false, "a file contains nothing"],
    ["file:d", "dir:d/e", false, ""],
    ["dir:.", "resource:x", false, "paths with paths only"],
    ["dir:.", "scope:config", false, ""],
    ["dir:refs", "ref:refs/heads/x", false, ""],
    ["ref:refs/heads/a", "ref:refs/heads/a/b", false, "refs do not nest"],
    ["resource:a", "resource:a/b", false, ""],
    ["scope:config", "resource:config", false, ""],
  ])("%s and %s: %s %s", (a, b, answer) => {
    expect(keysConflict(key(a), key(b))).toBe(answer);
    expect(keysConflict(key(b), key(a))).toBe(answer);
  });

  test("both orders of asking are refused", () => {
    const scene = new Scene();
    granted(scene.acquire(scene.actor("agent:ann"), ["dir:d", "file:e/x"]));
    const bob = scene.actor("agent:bob");
    expect(refused(scene.acquire(bob, "file:d/x"))).toBe("E_LOCK_CONFLICT");
    expect(refused(scene.acquire(bob, "dir:e"))).toBe("E_LOCK_CONFLICT");
    expect(refused(scene.acquire(bob, "dir:."))).toBe("E_LOCK_CONFLICT");
    granted(scene.acquire(bob, ["file:e/y", "dir:f"]));
  });
});

describe("reach", () => {
  const extent = (text: string, reach: Reach, worktreeId: typeof WT1): Extent => ({
    key: key(text),
    reach,
    worktreeId,
  });

  test.each<[Reach, typeof WT1, Reach, typeof WT1, boolean, string]>([
    ["worktree", WT1, "worktree", WT2, false, "different worktrees: different files on disk"],
    ["worktree", WT1, "worktree", WT1, true, "the same worktree"],
    ["worktree", WT1, "repository", WT2, true, "one reaches the whole repository"],
    ["repository", WT1, "worktree", WT2, true, ""],
    ["repository", WT1, "repository", WT2, true, ""],
  ])("%s %s and %s %s: %s %s", (reachA, wtA, reachB, wtB, answer) => {
    expect(conflict(extent("file:d/x", reachA, wtA), extent("file:d/x", reachB, wtB))).toBe(answer);
    expect(conflict(extent("dir:d", reachA, wtA), extent("file:d/x", reachB, wtB))).toBe(answer);
    expect(conflict(extent("dir:d", reachA, wtA), extent("file:e/x", reachB, wtB))).toBe(false);
  });

  test("two agents guard one path in two worktrees; a lock on it then waits for both", () => {
    const scene = new Scene();
    granted(scene.guard(scene.actor("agent:ann", "a", WT1, 1), "x"));
    granted(scene.guard(scene.actor("agent:bob", "b", WT2, 2), "x"));
    expect(scene.view.leases.size).toBe(2);
    const outcome = scene.acquire(scene.actor("agent:cat"), "file:x");
    expect(outcome).toMatchObject({
      data: { holders: [{ agent_id: "agent:ann" }, { agent_id: "agent:bob" }] },
    });
  });
});

describe("the index of extents", () => {
  const name = fc.constantFrom(
    "file:a", "file:a/b", "file:a/b/c", "file:a-b/c", "file:ab", "file:a0", "file:b", "dir:.", "dir:a", "dir:a/b", "dir:a-b", "dir:a0", "dir:ab", "dir:b", "resource:a", "scope:a",
  ); // biome-ignore format: a list of ingredients
  const extent = fc.record({
    key: name.map(key),
    reach: fc.constantFrom<Reach>("repository", "worktree"),
    worktreeId: fc.constantFrom(WT1, WT2),
  });

  test("answers what comparing each with each would", () => {
    fc.assert(
      fc.property(fc.array(extent, { maxLength: 12 }), extent, (extents, other) => {
        const index = new ExtentIndex(extents);
        const found = new Set(index.conflictingWith(other));
        expect(found).toEqual(new Set(extents.filter((e) => conflict(e, other))));
        expect(index.conflictingWith(other)).toHaveLength(found.size);
        expect(index.conflictsWith(other)).toBe(found.size > 0);
      }),
      { numRuns: propertyRuns() },
    );
  });
});
