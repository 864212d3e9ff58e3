import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Layer, Task } from "../layer";
import { clear, fastDisk, makePlace, type Place } from "../linearizability/place";
import { MemoryLoad } from "./memory-load";

/** After a collection. What a daemon remembers of others is bounded, but not full at half time of a short run. */
const HEAP_GROWTH = { bytes: 4 << 20, perOperation: 16 };
/** Of the whole process: the collector gives back what it likes, when it likes. */
const RSS_GROWTH = { bytes: 64 << 20, perOperation: 16 };
const MOST_SAMPLES = 40;

/** Open files: so many clients at once, and some of the daemon's own. */
const FD_GROWTH = 40;

interface Sample {
  readonly fds: number;
  readonly operations: number;
  readonly heap: number;
  readonly rss: number;
}

/** A daemon that is asked a million times holds no more afterwards than half way: by clients that stay, and by many that come and go. */
export const daemonMemory: Layer = {
  name: "daemon memory",
  unit: "operations",
  inTest: 4_000,
  inVerify: 1_000_000,
  share: 0.04,
  mustMove: ["grants", "renewals", "releases", "refusals", "watches", "guard events", "clients that left"],
  async prove(task) {
    const { path } = await task.bundle("tests/verify/daemon/process.ts");
    const place = makePlace(fastDisk());
    try {
      await proveIn(task, place, path);
    } finally {
      clear(place);
    }
  },
};

async function proveIn(task: Task, place: Place, program: string): Promise<void> {
  const [root] = place.worktrees;
  mkdirSync(join(root!, "src"));
  writeFileSync(join(root!, "src/held.ts"), "export {};\n");
  appendFileSync(join(root!, ".cotenant/config.toml"), "\n[coordination]\nauto_renew_leases = true\n");
  const child = spawn(process.execPath, ["--expose-gc", program, root!], {
    cwd: root!,
    env: { ...place.env },
    stdio: ["pipe", "pipe", "inherit", "ipc"],
  });
  const gone = once(child, "exit");
  child.stdout!.resume();
  try {
    await once(child.stdout!, "data");
    const load = await MemoryLoad.on(place, program, task.seed);
    const samples = await sampled(task, child, load);
    await load.close();
    judge(task, samples);
  } finally {
    child.stdin!.end();
    const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
    await gone;
    clearTimeout(timer);
  }
}

/** Ever fewer, the longer it goes on. */
async function sampled(task: Task, child: ChildProcess, load: MemoryLoad): Promise<Sample[]> {
  let samples: Sample[] = [];
  let every = 100;
  const before = task.tried;
  while (task.goesOn) {
    const counted = await load.round();
    for (const [what, by] of Object.entries(counted)) task.count(what, by);
    task.tried = before + load.operations;
    if (load.operations < (samples.at(-1)?.operations ?? 0) + every) continue;
    child.send("measure");
    const [{ heapUsed, rss }] = (await once(child, "message")) as [NodeJS.MemoryUsage];
    const fds = readdirSync(`/proc/${child.pid}/fd`).length;
    samples.push({ operations: load.operations, heap: heapUsed, rss, fds });
    if (samples.length <= MOST_SAMPLES) continue;
    samples = samples.filter((_, at) => at % 2 === 0);
    every *= 2;
  }
  return samples;
}

function judge(task: Task, samples: readonly Sample[]): void {
  const all = samples.at(-1)?.operations ?? 0;
  const part = (from: number, to: number) =>
    samples.filter(({ operations }) => operations >= from * all && operations <= to * all);
  const [half, end] = [part(0.4, 0.6), part(0.85, 1)];
  const operations = all / 2;
  const opened = middle(end, "fds") - middle(half, "fds");
  task.count("open files at the end", middle(end, "fds"));
  if (opened > FD_GROWTH)
    task.broke(
      `the daemon has ${opened} more files open than half way: ${samples.map((sample) => `${sample.operations}: ${sample.fds}`).join(", ")}`,
      `npm run verify -- --layer "daemon memory" --seed ${task.seed}`,
    );
  for (const [what, bound] of [
    ["heap", HEAP_GROWTH],
    ["rss", RSS_GROWTH],
  ] as const) {
    const grown = middle(end, what) - middle(half, what);
    const most = bound.bytes + bound.perOperation * operations;
    task.count(`${what} at the end, KiB`, Math.round(middle(end, what) / 1024));
    if (grown > most)
      task.broke(
        `the daemon's ${what} grew by ${Math.round(grown / 1024)} KiB in the last ${operations} operations: ${samples
          .map((sample) => `${sample.operations}: ${Math.round(sample[what] / 1024)}`)
          .join(", ")}`,
        `npm run verify -- --layer "daemon memory" --seed ${task.seed}`,
      );
  }
}

function middle(samples: readonly Sample[], what: "heap" | "rss" | "fds"): number {
  const sorted = samples.map((sample) => sample[what]).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
