import { expect, it } from "vitest";
import { Feed } from "../../src/daemon/feed";
import { Keeper, type KeptPlace } from "../../src/daemon/keeper";
import { Sessions } from "../../src/daemon/sessions";
import type { Platform } from "../../src/platform/platform";
import { busyWorld, openParty, simSeeds } from "../store/stage";

const TTL_SECS = 300;
const HOURS_MS = 2 * 3_600_000;
const EDIT_EVERY_MS = 90_000;

/** The daemon, as far as it keeps leases, until the world ends. */
async function keeping(platform: Platform): Promise<void> {
  const own = openParty(platform, "agent:daemon");
  await own.store.prepare();
  const place = {
    surroundings: { platform },
    config: { values: { "coordination.auto_renew_leases": true } },
    coordinator: own.coordinator,
    store: own.store,
    engine: async () => own.coordinator,
    settleIn: () => own.store.prepare(),
  } as unknown as KeptPlace;
  const keeper = new Keeper(platform, async () => place, new Sessions(), new Feed(own.coordinator), {
    note: () => {},
  });
  keeper.start();
  await new Promise(() => {});
}

it("works for two hours on a lease of five minutes, renews nothing, and loses it within them once it is dead", async () => {
  for (const seed of simSeeds(3)) {
    const world = busyWorld(seed, { traceLimit: 100 });
    world.spawn("daemon", keeping);
    let edits = 0;
    const agent = world.spawn("agent", async (platform) => {
      const party = openParty(platform, "agent:ada");
      await party.acquire("file:src/app.ts", { ttlSecs: TTL_SECS });
      for (;;) {
        await platform.timers.sleep(EDIT_EVERY_MS).done;
        // Proves the lease, and does nothing else that would show that it is alive.
        const held = await party.coordinator.list();
        if (!held.some(({ lease }) => lease.agentId === "agent:ada")) throw new Error("it is lost");
        edits++;
      }
    });
    await world.run({ forMs: HOURS_MS, maxSteps: 5_000_000 });
    expect(edits, `seed ${seed}`).toBeGreaterThan((HOURS_MS / EDIT_EVERY_MS) * 0.9);
    world.kill(agent);
    const died = world.monotonicMs;
    let tookMs = Number.NaN;
    const waiting = world.spawn("bob", async (platform) => {
      const party = openParty(platform, "agent:bob");
      for (;;) {
        try {
          await party.acquire("file:src/app.ts", { ttlSecs: TTL_SECS });
          tookMs = platform.clock.monotonicMs() - died;
          return;
        } catch {
          await platform.timers.sleep(1_000).done;
        }
      }
    });
    await world.run({ forMs: 2 * TTL_SECS * 1000, maxSteps: 5_000_000, until: () => !waiting.isAlive });
    expect(tookMs, `seed ${seed}`).toBeLessThanOrEqual((TTL_SECS + 5) * 1000);
  }
});
