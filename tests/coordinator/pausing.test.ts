import { describe, expect, it } from "vitest";
import { pauseOf, pauseRepository, resumeRepository } from "../../src/coordinator/pause";
import type { Platform } from "../../src/platform/platform";
import { busyWorld, openParty, type Party, simSeeds } from "../store/stage";
import { stride } from "../support/sample";

const MOST_STEPS = 600;

/** The code of a refusal; null for a grant. */
const answerTo = (asked: Promise<unknown>): Promise<string | null> =>
  asked.then(
    () => null,
    (error: { code?: unknown }) => String(error.code ?? error),
  );

/** Strikes before the first operation, then before the second, and so on, until one run goes through. */
async function sweep(seed: number, how: "kill" | "power"): Promise<number> {
  const { first, step } = stride(4);
  for (let at = first; at < MOST_STEPS; at += step) {
    const world = busyWorld(seed * 1_000 + at, { traceLimit: 300, writebackProbability: 0.05 });
    const run = async (agent: string, program: (party: Party) => Promise<unknown>) => {
      const process = world.spawn(agent, (platform: Platform) => program(openParty(platform, agent)));
      await world.run();
      if (process.error !== undefined) throw process.error;
      return process.result;
    };
    await run("agent:before", (party) => party.acquire("file:held"));
    let isTold = false;
    const victim = world.spawn(
      "victim",
      async (platform) => {
        await pauseRepository(openParty(platform, "human:ada").session, "an upgrade");
        isTold = true;
      },
      { mayFail: true },
    );
    let done = 0;
    let isStruck = false;
    await world.run({
      beforeStep: () => {
        if (done++ !== at) return;
        isStruck = true;
        if (how === "kill") world.kill(victim);
        else world.powerCut();
      },
    });
    const where = `seed ${seed}, ${how} before operation ${at}`;
    const isPaused = (await run("agent:look", ({ coordinator }) => pauseOf(coordinator))) !== null;
    if (isTold) expect(isPaused, `${where}: acknowledged and lost`).toBe(true);
    const asked = await run("agent:next", (party) => answerTo(party.acquire("file:new")));
    // In the log or not: everybody sees the same, and grants follow it.
    expect(asked, where).toBe(isPaused ? "E_PAUSED" : null);
    // A retry of whoever was struck, and all goes on.
    await run("human:ada", ({ session }) => pauseRepository(session, "an upgrade"));
    expect(await run("agent:late", (party) => answerTo(party.acquire("file:late"))), where).toBe("E_PAUSED");
    await run("human:bob", ({ session }) => resumeRepository(session));
    expect(await run("agent:late", (party) => answerTo(party.acquire("file:late"))), where).toBe(null);
    if (!isStruck) return at;
  }
  throw new Error(`a pause takes more than ${MOST_STEPS} operations`);
}

describe("a pause", () => {
  it.each(["kill", "power"] as const)("holds once it was answered, %s at every operation", async (how) => {
    for (const seed of simSeeds(1)) expect(await sweep(seed, how)).toBeGreaterThan(10);
  });
});
