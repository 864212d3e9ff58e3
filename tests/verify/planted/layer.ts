import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { Prng } from "../../../testing/simulator/prng";
import { bundleText, isInProgram, ROOT } from "../bundle";
import type { Effort, Layer, Result } from "../layer";
import { PLANTS, type Plant } from "../plants";

/** No plant hides longer from a layer that can see it. */
const MOST_MS = 120_000;

/** Where a layer is: bundled alone, in a moment; what all the others need would take most of the time. */
const HOMES: Readonly<Record<string, string>> = {
  properties: "properties/layer",
  simulation: "simulation/layer",
  "ledger simulation": "ledger/simulation-layer",
  "ledger soak": "ledger/soak-layer",
  crash: "injection/layer",
  error: "injection/layer",
  linearizability: "linearizability/layer",
  daemon: "daemon/layer",
  "daemon crash": "daemon/crash-layer",
  "daemon keeping": "daemon/keeping-layer",
  "daemon crowd": "daemon/crowd-layer",
  "daemon memory": "daemon/memory-layer",
  "daemon frames": "daemon/frames-layer",
  soak: "soak/layer",
  waiters: "soak/waiters-layer",
  clocks: "soak/clocks-layer",
  hostile: "hostile/layer",
  agents: "agents/layer",
  snapshots: "snapshots/layer",
  "publish crash": "publishing/crash-layer",
  publishers: "publishing/crowd-layer",
};

/**
 * The programme against itself: with a bug put in, every layer that says it would notice does. `npm test` tries
 * those that show at once.
 */
export const planted: Layer = {
  name: "planted bugs",
  unit: "bugs",
  inTest: 0,
  inVerify: PLANTS.length,
  share: 0,
  mustMove: [
    "properties",
    "simulation",
    "ledger simulation",
    "ledger soak",
    "crash",
    "error",
    "linearizability",
    "daemon",
    "daemon crash",
    "daemon keeping",
    "daemon crowd",
    "daemon memory",
    "daemon frames",
    "soak",
    "waiters",
    "clocks",
    "hostile",
    "agents",
    "snapshots",
    "publish crash",
    "publishers",
  ].map((layer) => `caught by ${layer}`),
  async prove(task) {
    // In another order each time: whatever a short run has no time for is tried in another one.
    const wanted = PLANTS.filter(({ name }) => task.only === null || name.includes(task.only));
    for (const [index, plant] of new Prng(task.seed, "plants").shuffle(wanted).entries()) {
      if (!task.goesOn) break;
      task.tried++;
      for (const layer of plant.caughtBy) {
        const { broke } = await runWith(plant, layer, join(task.scratch, `${index} ${layer}`));
        if (broke.length > 0) task.count(`caught by ${layer}`);
        else
          task.broke(
            `${layer} does not notice "${plant.name}"`,
            `npm run verify -- --layer "planted bugs" --case ${JSON.stringify(plant.name)}`,
          );
      }
    }
  },
};

/** The layer with the bug in it, in a process of its own, until it breaks or has had its time. */
export async function runWith(plant: Plant, layer: string, folder: string, seed = 1): Promise<Result> {
  const { path, isPlanted } = await bundleText(alone(layer), "tests/verify/alone.ts", folder, plant);
  // Some layers run the program itself, with the bug in it.
  if (!isPlanted && !(await isInProgram(plant.file)))
    throw new Error(`"${plant.name}": neither a layer nor the program has ${plant.file} in it`);
  const effort: Effort & { layer: string } = {
    layer,
    least: 1,
    forMs: MOST_MS,
    seed,
    plant,
    untilBroken: true,
    only: plant.inCase ?? null,
  };
  const { stdout } = await promisify(execFile)(process.execPath, [path, JSON.stringify(effort)], {
    cwd: ROOT,
    maxBuffer: 64 * 2 ** 20,
    timeout: 3 * MOST_MS,
  });
  return JSON.parse(stdout.trim().split("\n").at(-1)!) as Result;
}

/** A program that is this layer and nothing else. */
function alone(layer: string): string {
  const home = HOMES[layer];
  if (home === undefined) throw new Error(`nobody has said where the layer "${layer}" is`);
  return `import { serveLayers } from "./serve-layers";
    import * as found from "./${home}";
    serveLayers(Object.values(found));`;
}
