import { expect, it } from "vitest";
import { nodePlatform } from "../../src/platform/node/node";
import type { Descriptor, Files, Platform } from "../../src/platform/platform";
import { acquireRequest } from "../store/stage";
import { StageDaemon } from "./stage";

/** The real machine, which tells how often it was asked to sync. */
function countingSyncs(): { platform: Platform; syncs: () => number } {
  const real = nodePlatform();
  let syncs = 0;
  const files = new Proxy(real.files, {
    get(target, name: keyof Files) {
      const own = target[name];
      if (typeof own !== "function") return own;
      if (name !== "datasync" && name !== "datasyncInBackground") return own.bind(target);
      return (fd: Descriptor) => {
        syncs++;
        return target[name](fd);
      };
    },
  });
  return { platform: { ...real, files }, syncs: () => syncs };
}

it("what many clients ask for at once shares its syncs", async () => {
  const { platform, syncs } = countingSyncs();
  const daemon = new StageDaemon(platform);
  try {
    const clients = Array.from({ length: 32 }, (_, at) => daemon.client(`agent:n${at}`));
    // Connected, and greeted.
    await Promise.all(
      clients.map(({ party, coordinator }, at) =>
        coordinator.acquire(acquireRequest(party, `resource:first-${at}`)),
      ),
    );
    const before = syncs();
    for (let round = 0; round < 4; round++)
      await Promise.all(
        clients.map(({ party, coordinator }, at) =>
          coordinator.acquire(acquireRequest(party, `resource:then-${round}-${at}`)),
        ),
      );
    expect(syncs() - before).toBeGreaterThanOrEqual(4);
    expect(syncs() - before).toBeLessThan(32);
    for (const { coordinator } of clients) coordinator.close();
  } finally {
    await daemon.close();
  }
});
