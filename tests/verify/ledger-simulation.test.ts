import { expect, it } from "vitest";
import type { LeaseId } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import { complaints, prove } from "./layer";
import { SimStory } from "./ledger/sim-story";
import { ledgerSimulation } from "./ledger/simulation-layer";

it("claims between simulated machines keep every promise, whatever network and processes do", async () => {
  const result = await prove(ledgerSimulation, { least: ledgerSimulation.inTest });
  expect(complaints(result)).toEqual([]);
}, 600_000);

it("the same seed tells the same story", async () => {
  const [one, other] = [await new SimStory(7).play(), await new SimStory(7).play()];
  expect(other).toEqual(one);
  expect((await new SimStory(8).play()).fingerprint).not.toBe(one.fingerprint);
});

it("what activity renews here is pushed as well, and once", async () => {
  const story = new SimStory(3);
  await story.alone(async ({ session, platform }, issue) => {
    const key = `issue:${issue}` as LeaseKey;
    await session.acquire([{ key, reach: "repository" }], { ttlSecs: 6 });
    const expiries = () => story.server.claims.get(issue)!.map(({ record }) => record.expiresAtMs!);
    expect(expiries()).toHaveLength(1);
    await session.showLife();
    expect(expiries()).toHaveLength(1);
    await platform.timers.sleep(4_000).done;
    await session.showLife();
    await session.showLife();
    expect(expiries()).toHaveLength(2);
    expect(expiries()[1]).toBeGreaterThan(expiries()[0]!);
  });
});

it("a claim that is granted anew within one call is another lease", async () => {
  const story = new SimStory(3);
  await story.alone(async ({ session, party }, issue) => {
    const claim = async () =>
      (await session.acquire([{ key: `issue:${issue}` as LeaseKey, reach: "repository" }], { ttlSecs: 6 }))
        .leases[0]!;
    const first = await claim();
    await session.release([{ key: first.key, leaseId: first.leaseId }]);
    // Others had it since: what is remembered here is old, and so is the token that is granted on the strength of it.
    const { record } = story.server.tip(issue)!;
    const since = {
      record: { ...record, leaseId: "01KDVDNVGDXPHJEY4QFXYN2PFC" as LeaseId, token: 7 },
      oid: "f".repeat(40),
    };
    story.server.claims.get(issue)!.push({ ...since, atMs: 0, clockMs: 0, isPublish: false });
    const second = await claim();
    expect(second.fencingToken).toBe(8);
    const granted = new Map<string, number>();
    for await (const { type, payload } of party.coordinator.history())
      if (type === "claim.acquired")
        for (const lease of (payload as { leases: { lease_id: string; fencing_token: number }[] }).leases)
          granted.set(lease.lease_id, lease.fencing_token);
    expect([...granted.values()].sort()).toEqual([1, 2, 8]);
    await session.release([{ key: second.key, leaseId: null }]);
  });
});
