import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { conflict, type Extent } from "../../src/kernel/conflicts";
import type { FencingToken, LeaseId, WorktreeId } from "../../src/kernel/ids";
import { type Lease, type Slot, slotOf } from "../../src/kernel/lease";
import { IndexTree } from "../../src/store/index-tree";
import { layoutOf, PRIVATE } from "../../src/store/layout";
import { propertySeed } from "../kernel/property";
import { lease as sample } from "./samples";
import { CONTROL, key, quietWorld, sha256 } from "./stage";

const KEYS = [
  "file:a",
  "file:a/b",
  "file:a/b/c",
  "file:a/meta.json",
  "file:x/y",
  "dir:.",
  "dir:a",
  "dir:a/b",
  "dir:a/b/c/d",
  "dir:x",
  `file:a/${"long/".repeat(180)}end`,
  `dir:a/${"long/".repeat(180)}end`,
  `dir:a/${"long/".repeat(170)}end`,
  "resource:r",
  "resource:R",
  "ref:refs/heads/x",
  "ref:refs/heads/x/y",
  "scope:s",
].map(key);
const WORKTREES = ["wt:00000001", "wt:00000002"] as WorktreeId[];

const extent: fc.Arbitrary<Extent> = fc
  .tuple(fc.constantFrom(...KEYS), fc.boolean(), fc.constantFrom(...WORKTREES))
  .map(([k, narrow, worktreeId]) => {
    const isPath = k.startsWith("file:") || k.startsWith("dir:");
    return { key: k, reach: narrow && isPath ? "worktree" : "repository", worktreeId };
  });
const change = fc.record({ extent, gone: fc.boolean(), indefinite: fc.boolean() });
const batches = fc.array(fc.array(change, { minLength: 1, maxLength: 4 }), { maxLength: 12 });

let made = 0;

function leaseOn({ key: k, reach, worktreeId }: Extent, indefinite: boolean): Lease {
  const leaseId = `01KDVDNA00YW26MSR5${(++made).toString(16).toUpperCase().padStart(8, "0")}` as LeaseId;
  const fencingToken = made as FencingToken;
  const expiresAt = indefinite ? null : sample.expiresAt;
  return { ...sample, leaseId, fencingToken, key: k, reach, worktreeId, expiresAt };
}

const ids = (leases: Iterable<Lease>) => [...leases].map(({ leaseId }) => leaseId).sort();

describe("the index", () => {
  it("answers every question as going through all leases would", async () => {
    await fc.assert(
      fc.asyncProperty(batches, fc.array(extent, { minLength: 1, maxLength: 6 }), async (all, questions) => {
        const world = quietWorld();
        world.disk.makePath(`${CONTROL}/index`);
        const { files } = world.attach("p").platform;
        const open = () => new IndexTree(files, { sha256 }, layoutOf(CONTROL), PRIVATE);
        const writer = open();
        const plain = new Map<Slot, Lease>();
        await writer.clear("b0", 0, 0);
        let sequence = 0;
        let name = await writer.apply({ slots: new Map(), endings: new Map(), facts: new Map() }, sequence);
        for (const batch of all) {
          const slots = new Map<Slot, Lease | null>();
          for (const { extent: place, gone, indefinite } of batch)
            slots.set(slotOf(place), gone ? null : leaseOn(place, indefinite));
          name = await writer.apply({ slots, endings: new Map(), facts: new Map() }, ++sequence);
          for (const [slot, lease] of slots) {
            if (lease === null) plain.delete(slot);
            else plain.set(slot, lease);
          }
        }
        // The writer itself, which remembers, and somebody who starts from nothing.
        const reader = open();
        await reader.standOn(name, sequence);
        for (const index of [writer, reader]) {
          const everything: Lease[] = [];
          for await (const lease of index.all()) everything.push(lease);
          expect(ids(everything)).toEqual(ids(plain.values()));
          for (const question of questions) {
            const expected = [...plain.values()].filter((lease) => conflict(question, lease));
            expect(ids(await index.conflicting(question))).toEqual(ids(expected));
            const onKey = [...plain.values()].filter((lease) => lease.key === question.key);
            expect(ids(await index.onKey(question.key))).toEqual(ids(onKey));
          }
          const indefinite = [...plain.values()].filter((lease) => lease.expiresAt === null);
          expect(ids(await index.indefinite())).toEqual(ids(indefinite));
        }
        await writer.prune(0);
        const after: Lease[] = [];
        for await (const lease of writer.all()) after.push(lease);
        expect(ids(after)).toEqual(ids(plain.values()));
      }),
      { numRuns: 150, seed: propertySeed() },
    );
  });

  it("grows with what it holds", async () => {
    const world = quietWorld();
    world.disk.makePath(`${CONTROL}/index`);
    const { files } = world.attach("p").platform;
    const writer = new IndexTree(files, { sha256 }, layoutOf(CONTROL), PRIVATE);
    await writer.clear("b0", 0, 0);
    const all = new Map<Slot, Lease>();
    let name = await writer.apply({ slots: new Map(), endings: new Map(), facts: new Map() }, 0);
    for (let round = 0; round < 12; round++) {
      const slots = new Map<Slot, Lease | null>();
      for (let i = 0; i < 30; i++) {
        const extentOf: Extent = {
          key: key(`file:d${round}/e${i}/f`),
          reach: "repository",
          worktreeId: WORKTREES[0]!,
        };
        const lease = leaseOn(extentOf, false);
        slots.set(slotOf(lease), lease);
        all.set(slotOf(lease), lease);
      }
      name = await writer.apply({ slots, endings: new Map(), facts: new Map() }, round + 1);
    }
    expect(name.capacity).toBeGreaterThan(1_000);
    const reader = new IndexTree(files, { sha256 }, layoutOf(CONTROL), PRIVATE);
    await reader.standOn(name, 12);
    const found: Lease[] = [];
    for await (const lease of reader.all()) found.push(lease);
    expect(ids(found)).toEqual(ids(all.values()));
    const inside = { key: key("dir:d3"), reach: "repository" as const, worktreeId: WORKTREES[0]! };
    expect((await reader.conflicting(inside)).length).toBe(30);
    // Only the largest one is left after pruning.
    await writer.prune(0);
    expect(world.disk.paths().filter((path) => path.includes("/census-")).length).toBe(1);
  });
});
