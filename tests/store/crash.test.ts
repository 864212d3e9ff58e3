import { describe, expect, it } from "vitest";
import type { Grant } from "../../src/coordinator/contract";
import type { Platform } from "../../src/platform/platform";
import { tidy } from "../../src/store/housekeeping";
import { recover, TOKEN_LEAP } from "../../src/store/recover";
import type { SimWorld } from "../../testing/simulator";
import { stride } from "../support/sample";
import { Auditor } from "./auditor";
import {
  busyWorld,
  byKey,
  damageLine,
  freshId,
  logLines,
  openParty,
  type Party,
  type PartyOptions,
  simSeeds,
  zeroed,
} from "./stage";

/** What is interrupted. Each round has keys of its own, so that one world can go through many of them. */
interface Story {
  readonly name: string;
  /** Of the one who is interrupted. */
  readonly type?: "human";
  readonly options?: PartyOptions;
  /** Done in peace beforehand, by the same agent in another process. */
  prepare?(party: Party, round: number, auditor: Auditor, world: SimWorld): Promise<void>;
  act(party: Party, round: number, auditor: Auditor): Promise<unknown>;
  /** What a retry by the same agent must be able to do afterwards. */
  after?(party: Party, round: number, auditor: Auditor): Promise<unknown>;
}

const take = (party: Party, auditor: Auditor, ...keys: string[]) =>
  auditor.told(`acquire ${keys}`, ["claim.acquired", "claim.renewed"], () => party.acquire(keys));

const give = (party: Party, auditor: Auditor, ...keys: string[]) =>
  auditor.told(`release ${keys}`, ["claim.released"], () => party.release(...keys));

/** The retry after whatever happened; and away with it, so that the next round finds little to rebuild. */
async function takeAndGive(party: Party, auditor: Auditor, ...keys: string[]): Promise<void> {
  await take(party, auditor, ...keys);
  await give(party, auditor, ...keys);
}

const STORIES: Story[] = [
  {
    name: "acquire",
    act: (party, round, auditor) => take(party, auditor, `file:r${round}/x`),
    after: (party, round, auditor) => takeAndGive(party, auditor, `file:r${round}/x`),
  },
  {
    name: "acquire with a request id",
    act: (party, round, auditor) => withRequest(party, round, auditor),
    after: async (party, round, auditor) => {
      await withRequest(party, round, auditor);
      await takeAndGive(party, auditor, `resource:r${round}`);
    },
  },
  {
    name: "acquire of several keys",
    act: (party, round, auditor) => take(party, auditor, ...several(round)),
    after: (party, round, auditor) => takeAndGive(party, auditor, ...several(round)),
  },
  {
    name: "acquire of what has lapsed",
    prepare: async (party, round, _, world) => {
      const other = openParty(party.platform, `agent:other${round}`);
      await other.acquire([`file:r${round}/x`, `file:r${round}/y`], { ttlSecs: 1 });
      world.advance(1_500);
    },
    act: (party, round, auditor) => take(party, auditor, `dir:r${round}`),
    after: (party, round, auditor) => takeAndGive(party, auditor, `dir:r${round}`),
  },
  {
    name: "renew",
    prepare: (party, round, auditor) => take(party, auditor, `resource:r${round}`).then(() => {}),
    act: (party, round, auditor) =>
      auditor.told("renew", ["claim.renewed"], () => party.renew(`resource:r${round}`, 900)),
    after: (party, round, auditor) => takeAndGive(party, auditor, `resource:r${round}`),
  },
  {
    name: "release",
    prepare: (party, round, auditor) => take(party, auditor, `resource:r${round}`).then(() => {}),
    act: (party, round, auditor) => give(party, auditor, `resource:r${round}`),
    after: (party, round, auditor) => takeAndGive(party, auditor, `resource:r${round}`),
  },
  {
    name: "transfer",
    prepare: (party, round, auditor) => take(party, auditor, `resource:r${round}`).then(() => {}),
    act: (party, round, auditor) => transfer(party, round, auditor),
    after: async (party, round, auditor) => {
      const heir = openParty(party.platform, `agent:heir${round}`, { worktree: "wt:00000002" });
      // Handed over already, or still to be: at no instant could anybody else have had it.
      const [status] = await heir.coordinator.find([byKey(`resource:r${round}`)]);
      if (status!.lease.agentId === party.actor.agentId) await party.acquire(`resource:r${round}`);
      if (status!.lease.agentId === party.actor.agentId) await transfer(party, round, auditor);
      await give(heir, auditor, `resource:r${round}`);
    },
  },
  {
    name: "evict",
    type: "human",
    prepare: async (party, round, auditor) => {
      await take(openParty(party.platform, `agent:other${round}`), auditor, `file:r${round}/x`);
    },
    act: (party, round, auditor) =>
      auditor.told("evict", ["claim.evicted"], () =>
        party.session.evict([byKey(`file:r${round}/x`)], { reason: "enough" }),
      ),
    after: (party, round, auditor) =>
      auditor.told("steal", ["claim.acquired"], () =>
        party.acquire(`file:r${round}/x`, { steal: true, reason: "enough" }),
      ),
  },
  {
    name: "gc",
    prepare: async (party, round, _, world) => {
      await party.acquire([`file:r/x${round}`, `resource:r${round}`], { ttlSecs: 1 });
      world.advance(1_500);
    },
    act: (party, _, auditor) => sweepUp(party, auditor),
    after: (party, _, auditor) => sweepUp(party, auditor),
  },
  {
    name: "rotation by size",
    options: { rotateBytes: 1 },
    act: (party, round, auditor) => takeAndGive(party, auditor, `resource:r${round}`),
    after: (party, round, auditor) => takeAndGive(party, auditor, `resource:r${round}`),
  },
  {
    name: "an index that lags behind, and then follows",
    options: { indexLagBytes: 5_000 },
    act: async (party, round, auditor) => {
      await take(party, auditor, ...several(round));
      await takeAndGive(party, auditor, `resource:s${round}`);
      await give(party, auditor, ...several(round));
    },
    after: (party, round, auditor) => takeAndGive(party, auditor, ...several(round)),
  },
  {
    name: "rotation of a log that the index lags behind",
    options: { indexLagBytes: 1 << 20, rotateBytes: 4_000 },
    act: (party, round, auditor) => takeAndGive(party, auditor, `resource:r${round}`),
    after: (party, round, auditor) => takeAndGive(party, auditor, `resource:r${round}`),
  },
  {
    name: "rotation and packing",
    act: async (party, round, auditor) => {
      await take(party, auditor, `resource:r${round}`);
      await tidy(party.store, party.logActor, { compact: true, flatIndex: {} });
      await give(party, auditor, `resource:r${round}`);
    },
    after: (party, round, auditor) => takeAndGive(party, auditor, `resource:r${round}`),
  },
];

const several = (round: number) => [`file:r${round}/x`, `dir:r${round}/d`, `resource:r${round}`];

const sweepUp = (party: Party, auditor: Auditor) =>
  auditor.told("gc", ["claim.evicted"], () => party.coordinator.gc({ actor: party.actor }));

const transfer = (party: Party, round: number, auditor: Auditor) =>
  auditor.told("transfer", ["claim.transferred"], () =>
    party.session.transfer(byKey(`resource:r${round}`), {
      toAgent: `agent:heir${round}` as never,
      toWorktree: "wt:00000002" as never,
      toBranch: null,
      reason: "yours",
    }),
  );

function withRequest(party: Party, round: number, auditor: Auditor) {
  const requestId = requestIds.get(round) ?? freshId(party.platform);
  requestIds.set(round, requestId);
  return auditor.told(
    "acquire with a request id",
    ["claim.acquired", "claim.renewed"],
    () => party.acquire(`resource:r${round}`, { requestId }),
    requestId,
  );
}

const requestIds = new Map<number, ReturnType<typeof freshId>>();
const MOST_ROUNDS = 250;
const ROUNDS_PER_WORLD = 16;

type Strike = (world: SimWorld, victim: ReturnType<SimWorld["spawn"]>) => void;

/** One operation in so many is struck in a sample; the name of each test says what all of them are. */
const SAMPLE = 12;

/** Strikes before the first operation, then before the second, and so on, until one run goes through. */
async function sweep(story: Story, seed: number, strike: Strike): Promise<number> {
  const { first, step } = stride(SAMPLE);
  for (let round = first; round < MOST_ROUNDS; ) {
    // Crash after crash in one world, but not for ever: logs grow, and so does the time to read them.
    const world = busyWorld(seed * 1_000 + round, { traceLimit: 300, writebackProbability: 0.05 });
    const auditor = new Auditor(world);
    requestIds.clear();
    for (const end = round + ROUNDS_PER_WORLD * step; round < end; round += step) {
      try {
        const wentThrough = await interrupt(story, world, auditor, round, strike);
        const isLast = wentThrough || round + step >= end;
        auditor.audit();
        if (isLast || (round - first) % (8 * step) === 0) await auditor.auditIndex();
        if (wentThrough) return round;
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        const where = `${story.name}, seed ${seed}, struck at operation ${round}`;
        throw new Error(`${where}: ${message}\n${world.trace}`, { cause: error });
      }
    }
  }
  throw new Error(`${story.name} takes more than ${MOST_ROUNDS} operations`);
}

/** True when the story was over before its turn to be interrupted came. */
async function interrupt(
  story: Story,
  world: SimWorld,
  auditor: Auditor,
  round: number,
  strike: Strike,
): Promise<boolean> {
  // Another agent each time: one that holds much does more, and this would never end.
  const open = (platform: Platform) =>
    openParty(platform, `${story.type ?? "agent"}:v${round}`, story.options);
  const run = async (name: string, program: (party: Party) => Promise<unknown>) => {
    world.spawn(name, async (platform) => void (await program(open(platform))));
    await world.run();
  };
  if (story.prepare !== undefined)
    await run("prepare", (party) => story.prepare!(party, round, auditor, world));
  const victim = world.spawn("victim", (platform) => story.act(open(platform), round, auditor), {
    mayFail: true,
  });
  let step = 0;
  let isStruck = false;
  await world.run({
    beforeStep: () => {
      if (step++ !== round) return;
      isStruck = true;
      strike(world, victim);
    },
  });
  if (!isStruck && victim.error !== undefined) throw victim.error;
  // Somebody else goes on, and so does the agent itself.
  await run("next", async (party) => {
    await takeAndGive(openParty(party.platform, `agent:next${round}`), auditor, "resource:next");
    await story.after?.(party, round, auditor);
  });
  return !isStruck;
}

const kill: Strike = (world, victim) => world.kill(victim);
const cut: Strike = (world) => world.powerCut();

describe.each(STORIES)("$name", (story) => {
  it("killed at every operation", async () => {
    for (const seed of simSeeds(1)) expect(await sweep(story, seed, kill)).toBeGreaterThan(20);
  });

  it("without power at every operation", async () => {
    for (const seed of simSeeds(2)) expect(await sweep(story, 100 + seed, cut)).toBeGreaterThan(20);
  });
});

describe("recover", () => {
  it.each([
    ["killed", kill],
    ["without power", cut],
  ] as const)("%s at every operation", async (_, strike) => {
    for (const seed of simSeeds(1)) {
      const { first, step } = stride(SAMPLE);
      for (let at = first; at < MOST_ROUNDS; at += step) {
        const world = busyWorld(seed * 1_000 + at, { traceLimit: 300 });
        const run = async (program: (party: Party) => Promise<unknown>) => {
          const process = world.spawn("p", async (platform) => program(openParty(platform, "agent:v")));
          await world.run();
          return process.result;
        };
        try {
          for (const name of ["one", "two"]) await run((party) => party.acquire(`resource:${name}`));
          const third = (await run((party) => party.acquire("resource:three"))) as Grant;
          damageLine(world, 2, zeroed);
          const victim = world.spawn("victim", async (platform) => {
            const party = openParty(platform, "agent:v");
            return recover(party.store, party.logActor);
          });
          let done = 0;
          let isStruck = false;
          await world.run({
            beforeStep: () => {
              if (done++ !== at) return;
              isStruck = true;
              strike(world, victim);
            },
          });
          const held = (await run(async (party) => {
            await recover(party.store, party.logActor);
            const grant = await party.acquire("resource:four");
            const statuses = await party.coordinator.list({ lapsed: true });
            return { grant, keys: statuses.map(({ lease }) => lease.key as string) };
          })) as { grant: Grant; keys: string[] };
          expect(held.keys).toEqual(expect.arrayContaining(["resource:one", "resource:three"]));
          const [before, after] = [third, held.grant].map(({ leases }) => leases[0]!.fencingToken);
          expect(after! - before!).toBeGreaterThanOrEqual(TOKEN_LEAP);
          expect(logLines(world).every((line) => line !== null)).toBe(true);
          if (!isStruck) break;
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error);
          throw new Error(`seed ${seed}, struck at operation ${at}: ${message}\n${world.trace}`, {
            cause: error,
          });
        }
      }
    }
  });
});
