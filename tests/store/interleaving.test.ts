import { describe, expect, it } from "vitest";
import type { Lease } from "../../src/kernel/lease";
import { Counters, type Prng, type SimOptions, type SimWorld } from "../../src/platform/sim";
import { tidy } from "../../src/store/housekeeping";
import { Auditor } from "./auditor";
import { busyWorld, byKey, freshId, openParty, type Party, range, simSeeds } from "./stage";

const KEYS = [
  "file:a/x",
  "file:a/y",
  "file:a/b/z",
  "dir:a",
  "dir:a/b",
  "dir:.",
  "resource:r",
  "scope:config",
] as const;
const AGENTS = ["agent:a", "agent:b", "human:c"] as const;
const WORKTREES = ["wt:00000001", "wt:00000002"] as const;

/** What a caller may be told without anything being wrong. */
const FINE = new Set([
  "E_LOCK_CONFLICT",
  "E_QUEUED",
  "E_NOT_FOUND",
  "E_LOCK_NOT_HELD",
  "E_LOCK_EXPIRED",
  "E_FENCING_MISMATCH",
  "E_WAIT_TIMEOUT",
  "E_POLICY",
  "E_LIMIT",
  "E_STORE_BUSY",
]);

interface Trouble {
  readonly name: string;
  readonly options?: Partial<SimOptions>;
  /** Also these may be told. */
  readonly fine?: readonly string[];
  /** Before each step of the world. */
  strike?(world: SimWorld, random: Prng): void;
  plant?(world: SimWorld): void;
  readonly rotateBytes?: number;
}

const TROUBLES: Trouble[] = [
  { name: "nothing but each other" },
  { name: "rotations", rotateBytes: 4_000 },
  {
    name: "kills",
    rotateBytes: 8_000,
    strike: (world, random) => {
      if (random.chance(0.003) && world.living().length > 1) world.kill(random.pick(world.living()));
    },
  },
  {
    name: "stops",
    strike: (world, random) => {
      if (!random.chance(0.004)) return;
      for (const process of world.living()) if (process.isPaused) return world.resume(process);
      world.pause(random.pick(world.living()));
    },
  },
  {
    name: "power cuts",
    rotateBytes: 8_000,
    options: { writebackProbability: 0.1 },
    strike: (world, random) => {
      if (random.chance(0.0015)) world.powerCut({ wallJumpMs: random.between(-5_000, 30_000) });
    },
  },
  {
    name: "a full disk",
    fine: ["E_DISK"],
    plant: (world) => world.faults.add({ code: "ENOSPC", probability: 0.02 }),
  },
  {
    name: "failing syncs and power cuts",
    fine: ["E_DISK"],
    options: { syncFailuresReportedTo: "each-descriptor" },
    plant: (world) =>
      world.faults.add({
        code: "EIO",
        operations: ["datasync", "datasyncInBackground", "sync"],
        probability: 0.05,
      }),
    strike: (world, random) => {
      if (random.chance(0.001)) world.powerCut();
    },
  },
  {
    name: "clocks that jump",
    strike: (world, random) => {
      if (random.chance(0.003)) world.jumpWallClock(random.between(-100_000_000, 100_000_000));
    },
  },
  {
    name: "an index that is damaged",
    strike: (world, random) => {
      if (!random.chance(0.004)) return;
      const files = world.disk.paths().filter((path) => path.includes("/index/") && !path.endsWith("/"));
      if (files.length > 0) world.disk.install(random.pick(files), new Uint8Array(random.below(600)));
    },
  },
];

/** A process of one agent, doing one thing after the other. */
function program(auditor: Auditor, world: SimWorld, seed: number, index: number, trouble: Trouble) {
  const random = world.random(`program ${index}`);
  const agent = AGENTS[index % AGENTS.length]!;
  const worktree = WORKTREES[random.below(WORKTREES.length)]!;
  const { rotateBytes } = trouble;
  const fine = new Set([...FINE, ...(trouble.fine ?? [])]);
  return async (platform: Parameters<typeof openParty>[0]) => {
    const options = { worktree, ...(rotateBytes === undefined ? {} : { rotateBytes }) };
    const party = openParty(platform, agent, options);
    for (const _ of range(4 + (seed % 3))) {
      try {
        await step(party, random, auditor);
      } catch (error) {
        const { code } = error as { code?: string };
        if (code === undefined || !fine.has(code)) throw error;
      }
    }
  };
}

async function step(party: Party, random: Prng, auditor: Auditor): Promise<void> {
  const name = random.pick(KEYS);
  const reach = name.includes(":a") && random.chance(0.3) ? ("worktree" as const) : ("repository" as const);
  const choice = random.below(20);
  if (choice < 8) {
    const keys = [{ key: name, reach }];
    if (random.chance(0.3)) keys.push({ key: random.pick(KEYS), reach: "repository" });
    const requestId = random.chance(0.2) ? freshId(party.platform) : null;
    const wait = random.chance(0.25) ? { timeoutMs: random.between(1, 3_000) } : null;
    const ttlSecs = random.chance(0.2) ? 1 : 600;
    const acquire = () => party.acquire(keys, { ttlSecs, wait, requestId });
    const told = () =>
      auditor.told(`acquire ${name}`, ["claim.acquired", "claim.renewed"], acquire, requestId);
    const first = await told();
    if (requestId === null) return;
    const again = await told();
    expect(again.leases.map(ids)).toEqual(first.leases.map(ids));
  } else if (choice < 12) {
    await auditor.told(`release ${name}`, ["claim.released"], () => party.release(name));
  } else if (choice < 14) {
    await auditor.told(`renew ${name}`, ["claim.renewed"], () => party.renew(name, 700));
  } else if (choice === 14) {
    await auditor.told(`transfer ${name}`, ["claim.transferred"], () =>
      party.session.transfer(byKey(name), {
        toAgent: random.pick(AGENTS) as never,
        toWorktree: random.pick(WORKTREES) as never,
        toBranch: null,
        reason: "yours",
      }),
    );
  } else if (choice === 15) {
    await auditor.told(`evict ${name}`, ["claim.evicted"], () =>
      party.session.evict([byKey(name)], { reason: "enough" }),
    );
  } else if (choice === 16) {
    await auditor.told("gc", ["claim.evicted"], () => party.coordinator.gc({ actor: party.actor }));
  } else if (choice === 17) {
    await tidy(party.store, party.logActor, { compact: random.chance(0.5), flatIndex: {} });
  } else {
    const { leases } = await party.coordinator.snapshot();
    checkSnapshot([...leases.values()]);
  }
}

const ids = ({ leaseId }: Lease) => leaseId;

/** A reader never sees two holders of one thing, whatever goes on around it. */
function checkSnapshot(leases: readonly Lease[]): void {
  const byToken = new Set(leases.map((lease) => lease.fencingToken));
  expect(byToken.size, "two leases with one token").toBe(leases.length);
  Auditor.checkExclusion(leases);
}

async function play(trouble: Trouble, seed: number): Promise<Counters> {
  const world = busyWorld(seed, { traceLimit: 600, ...trouble.options });
  const auditor = new Auditor(world);
  try {
    trouble.plant?.(world);
    const chaos = world.random("chaos");
    const processes = 3 + (seed % 2);
    // Who died is followed by somebody else, as long as there is something left to strike.
    for (const generation of range(3)) {
      for (const index of range(processes))
        world.spawn(`p${generation}${index}`, program(auditor, world, seed, index, trouble));
      const { reason } = await world.run({
        maxSteps: 60_000,
        beforeStep: (w) => {
          if (w.living().length > 0 && generation < 2) trouble.strike?.(w, chaos);
        },
      });
      if (reason === "stuck") for (const process of world.living()) world.resume(process);
      const { reason: finally_ } = await world.run({ maxSteps: 60_000 });
      expect(finally_).toBe("finished");
    }
    world.faults.clear();
    world.spawn("last", async (platform) => {
      const party = openParty(platform, "agent:last");
      await party.session.acquire([], { ttlSecs: 1 }).catch(() => {});
      await auditor.told("last", ["claim.acquired"], () => party.acquire("resource:last"));
    });
    await world.run();
    auditor.audit();
    await auditor.auditIndex();
    return world.counters;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`${trouble.name}, seed ${seed}: ${message}\n${world.trace}`, { cause: error });
  }
}

describe("several processes, few keys, and", () => {
  const all = new Counters();

  it.each(TROUBLES)("$name", { timeout: 600_000 }, async (trouble) => {
    for (const seed of simSeeds(30)) all.add(await play(trouble, seed));
  });

  it("everything was tried that is said to have been", () => {
    const expected = [
      "crash.kill",
      "crash.pause",
      "crash.power",
      "fault.ENOSPC",
      "fault.ENOSPC.short-write",
      "fault.EIO.sync",
      "clock.wall-jumped-back",
      "lock.waited",
      "disk.write-split",
    ] as const;
    expect(expected.filter((name) => all.get(name) === 0)).toEqual([]);
  });
});
