import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COUNTERS } from "../../../testing/simulator";
import type { Layer, Task } from "../layer";
import { DIRECTED, tellDirected } from "./directed";
import { storyOf } from "./generate";
import { play } from "./player";
import { regressions } from "./regressions";
import { shrink } from "./shrink";
import type { Story } from "./story";
import { tell } from "./tell";

/** What no store operation can meet, or what only a store that is wrong could make happen. */
const NEVER: ReadonlySet<string> = new Set(["fault.EIO.other"]);

/** How often each directed story is told. */
export const TELLINGS = 8;
/** Seeds of one run lie apart from those of the next. */
const SEEDS_APART = 1_000_003;

/**
 * Kernel, store and local coordinator on the simulated platform: one seed is one story of several processes, with
 * everything that may go wrong, and an auditor that holds them to docs/GUARANTEES.md.
 */
export const simulation: Layer = {
  name: "simulation",
  unit: "seeds",
  inTest: 50,
  inVerify: 10_000,
  share: 0.2,
  mustMove: [
    ...COUNTERS.filter((name) => !NEVER.has(name)),
    ...["kill", "power", "pause", "clock", "time", "fault", "drop caches", "spoil index", "spoil log"].map(
      (strike) => `trouble.${strike}`,
    ),
    ...["expired", "dead", "stop_idle", "forced", "released", "transferred"].map((how) => `ended.${how}`),
    ...[
      "E_LOCK_CONFLICT",
      "E_QUEUED",
      "E_NOT_FOUND",
      "E_LOCK_NOT_HELD",
      "E_LOCK_EXPIRED",
      "E_FENCING_MISMATCH",
    ].map((code) => `answer.${code}`),
    ...["E_WAIT_TIMEOUT", "E_POLICY", "E_LIMIT", "E_DISK", "E_STORE_BUSY", "E_LOG_CORRUPT"].map(
      (code) => `answer.${code}`,
    ),
    "answer.done",
    "directed story",
    "kept story",
    "index.rebuilt",
    "log.recovered",
    "log.rotated",
    "queue.waited",
    "queue.served",
    "request.replayed",
    "request.retried after a crash",
    "request.retried after an unknown outcome",
    "takeover",
  ],

  async prove(task: Task): Promise<void> {
    const { stackTraceLimit } = Error;
    // Thousands of simulated failures, and nobody looks where they came from. A story that fails is told again with it.
    Error.stackTraceLimit = 0;
    try {
      // Who comes first in them is left to chance.
      for (let again = 0; again < TELLINGS; again++)
        for (const directed of DIRECTED) {
          if (!task.goesOn) break;
          const { broken, counters } = await tellDirected(directed, task.seed + again);
          for (const [name, count] of Object.entries(counters.toJSON())) task.count(name, count);
          if (broken !== null) task.broke(broken, `npm run verify -- --layer simulation --seed ${task.seed}`);
          task.count("directed story");
        }
      for (const { name, story } of regressions()) {
        if (!task.goesOn) break;
        const { broken } = await play(story);
        if (broken !== null)
          task.broke(`${name}: ${broken}`, "npx vitest run tests/verify/simulation.test.ts");
        task.count("kept story");
      }
      // The first is the one that the seed itself tells, so that it can be asked for.
      for (let index = 0; task.goesOn; index++) {
        const seed = (task.seed + index * SEEDS_APART) % 0x7fffffff;
        await tryOne(task, storyOf(seed), seed, stackTraceLimit);
        task.tried++;
      }
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  },
};

async function tryOne(task: Task, story: Story, seed: number, stackTraceLimit: number): Promise<void> {
  const { broken, counters, counts } = await play(story);
  for (const [name, count] of Object.entries(counters.toJSON())) task.count(name, count);
  for (const [name, count] of counts) task.count(name, count);
  if (broken === null) return;
  const shortest = await shrink(story, broken);
  Error.stackTraceLimit = stackTraceLimit;
  const verdict = await play(shortest);
  Error.stackTraceLimit = 0;
  const kept = join(tmpdir(), `cotenant-story-${seed}.json`);
  writeFileSync(kept, `${JSON.stringify({ showed: broken.split("\n")[0], story: shortest }, null, 2)}\n`);
  task.broke(
    `seed ${seed}: ${broken}\nshrunk from ${story.events.length} to ${shortest.events.length} events (${kept}):\n${tell(shortest, verdict)}`,
    `npm run verify -- --layer simulation --seed ${seed}`,
  );
}
