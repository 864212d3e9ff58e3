import { expect, it } from "vitest";
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
