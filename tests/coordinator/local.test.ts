import { describe, expect, it } from "vitest";
import { nodePlatform } from "../../src/platform/node/node";
import type { Platform } from "../../src/platform/platform";
import { acquireRequest, enter, openParty, quietWorld, range } from "../store/stage";
import { withMovableClock } from "../support/movable-clock";
import { scratch } from "../support/scratch";
import { describeCoordinator } from "./conformance";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const turn = () => new Promise((resolve) => setImmediate(resolve));

describeCoordinator("the local engine, on this machine,", (policy) => {
  const control = `${scratch()}/cotenant`;
  const { platform, advance } = withMovableClock();
  return {
    open: (agent, options = {}) => openParty(platform(), agent, { ...options, control, policy }),
    pass: async (ms) => {
      // Others need real time, too: to join a queue, to hear of a change.
      await pause(Math.min(ms, 60));
      advance(ms);
    },
    close: async () => {},
  };
});

describeCoordinator("the local engine, simulated,", (policy) => {
  const world = quietWorld();
  return {
    open: (agent, options = {}) => enter(world, agent, { ...options, policy }),
    pass: async (ms) => {
      await turn();
      world.advance(ms);
      await turn();
    },
    close: async () => {},
  };
});

describeCoordinator("the local engine, in one process for all,", (policy) => {
  const world = quietWorld();
  const { store } = enter(world, "agent:first");
  return {
    open: (agent, options = {}) => enter(world, agent, { ...options, policy, store }),
    pass: async (ms) => {
      await turn();
      world.advance(ms);
      await turn();
    },
    close: async () => {},
  };
});

/** A platform that counts how often the log is synced. */
function counting(platform: Platform): { platform: Platform; syncs: () => number } {
  let syncs = 0;
  const { files } = platform;
  const datasync = files.datasync.bind(files);
  const inBackground = files.datasyncInBackground.bind(files);
  files.datasync = (fd) => {
    syncs++;
    return datasync(fd);
  };
  files.datasyncInBackground = (fd) => {
    syncs++;
    return inBackground(fd);
  };
  return { platform, syncs: () => syncs };
}

describe("syncs", () => {
  it("are shared by calls that come together", async () => {
    const { platform, syncs } = counting(nodePlatform());
    const a = openParty(platform, "agent:a", { control: `${scratch()}/cotenant` });
    await a.acquire("resource:warm");
    const before = syncs();
    await Promise.all(range(64).map((i) => a.coordinator.acquire(acquireRequest(a, `file:f${i}`))));
    expect(syncs() - before).toBeLessThanOrEqual(2);
    expect((await a.coordinator.list()).length).toBe(65);
  });

  it("are not repeated for what is known to be on the disk", async () => {
    const { platform, syncs } = counting(nodePlatform());
    const a = openParty(platform, "agent:a", { control: `${scratch()}/cotenant` });
    await a.acquire("file:x");
    const before = syncs();
    for (const _ of range(5)) await a.acquire("file:x");
    await expect(
      openParty(nodePlatform(), "agent:b", { control: a.store.layout.root }).acquire("file:x"),
    ).rejects.toMatchObject({ code: "E_LOCK_CONFLICT" });
    expect(syncs() - before).toBe(0);
  });

  it("cover one operation each when they come one after the other", async () => {
    const { platform, syncs } = counting(nodePlatform());
    const a = openParty(platform, "agent:a", { control: `${scratch()}/cotenant` });
    await a.acquire("resource:warm");
    const before = syncs();
    for (const i of range(10)) await a.coordinator.acquire(acquireRequest(a, `file:f${i}`));
    expect(syncs() - before).toBe(10);
  });
});

describe("a look at many leases", () => {
  it("asks once for each process that holds them", async () => {
    const platform = quietWorld().attach("holder").platform;
    const { coordinator, acquire } = openParty(platform, "agent:a");
    const names = range(50).map((n) => `file:src/${n}.ts`);
    await acquire(names, { bind: "process" });
    let asked = 0;
    const liveness = platform.processes.liveness.bind(platform.processes);
    platform.processes.liveness = (holder) => {
      asked++;
      return liveness(holder);
    };
    expect(await coordinator.list()).toHaveLength(names.length);
    expect(asked).toBe(1);
  });

  it("is of one instant with where the log stands, and serves whoever asks for its own", async () => {
    const platform = quietWorld().attach("holder").platform;
    const { coordinator, acquire, session } = openParty(platform, "agent:a");
    await acquire(["file:a", "file:b"]);
    await openParty(platform, "agent:b").acquire("file:c");
    const { leases, head, damage } = await coordinator.survey();
    expect(damage).toBe(null);
    expect(head).toEqual(await coordinator.head());
    expect(leases).toHaveLength(3);
    const keysOf = (found: typeof leases) => found.map(({ lease }) => lease.key).sort();
    expect(keysOf(await session.mine(leases))).toEqual(["file:a", "file:b"]);
    expect(keysOf(await session.mine())).toEqual(["file:a", "file:b"]);
  });
});
