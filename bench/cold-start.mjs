/** Whole cold commands, start to exit, beside `node -e 0` in the same run. */
import { spawnSync } from "node:child_process";
import { figure, median, row } from "./figures.mjs";
import { ENV, inRepository, openAs, PROGRAM } from "./room.mjs";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 41);
const LEASES = 1_000;

export async function coldStart() {
  let n = 0;
  // What agents and hooks wait for all day, and what they rarely ask for.
  const often = await measured("<= 1.6", () => ({
    "cotenant lock acquire (new key)": () => ["lock", "acquire", `src/file-${n++}.ts`],
    "cotenant lock acquire (held already)": () => ["lock", "acquire", "src/file-0.ts"],
    "cotenant lock release": () => ["lock", "release", `src/file-${n - 1}.ts`],
    "cotenant lock status": () => ["lock", "status", "--path", "src/file-0.ts"],
    "cotenant claim status": () => ["claim", "status"],
    "cotenant status": () => ["status"],
    "cotenant hook pre-commit": () => ["hook", "pre-commit"],
  }));
  const rarely = await measured("<= 2", () => ({
    "cotenant version": () => ["version"],
    "cotenant issue list": () => ["issue", "list"],
    "cotenant events": () => ["events"],
  }));
  const many = await measured("<= 2.5", async (root) => {
    const holder = await openAs(root, "agent:holder");
    const keys = Array.from({ length: LEASES }, (_, i) => `file:src/f${i}.ts`);
    await holder.acquire(keys, { ttlSecs: 86_400 });
    return { [`cotenant lock status, ${figure(LEASES)} leases`]: () => ["lock", "status"] };
  });
  return [...often, ...rarely, ...many];
}

/** `prepare` answers the commands by their names, each of them anew for every round. */
function measured(target, prepare) {
  return inRepository(async (root) => {
    const candidates = await prepare(root);
    const timed = (name, args) => {
      const started = process.hrtime.bigint();
      const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, env: ENV });
      if (status !== 0) throw new Error(`${name} failed: ${stderr}`);
      return Number(process.hrtime.bigint() - started) / 1e6;
    };
    const bare = [];
    const times = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
    // Interleaved, so that whatever else the machine does hits all of them alike.
    for (let round = 0; round <= ROUNDS; round++) {
      const floorMs = timed("node", ["-e", "0"]);
      // The first round warms the disk's caches.
      if (round > 0) bare.push(floorMs);
      for (const [name, make] of Object.entries(candidates)) {
        const ms = timed(name, [PROGRAM, ...make()]);
        if (round > 0) times[name].push(ms);
      }
    }
    const floor = median(bare);
    return Object.entries(times).map(([what, samples]) =>
      row(
        what,
        `${figure(median(samples))} ms`,
        `node -e 0 ${figure(floor)} ms`,
        median(samples) / floor,
        target,
      ),
    );
  });
}
