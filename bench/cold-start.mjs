/** Whole cold commands, start to exit, beside `node -e 0` in the same run. */
import { spawnSync } from "node:child_process";
import { figure, median, row } from "./figures.mjs";
import { ENV, inRepository, PROGRAM } from "./room.mjs";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 41);

export function coldStart() {
  return inRepository((root) => {
    let n = 0;
    const cotenant = (...args) => [PROGRAM, ...args];
    const candidates = {
      "node -e 0": () => ["-e", "0"],
      "cotenant lock acquire (new key)": () => cotenant("lock", "acquire", `src/file-${n++}.ts`),
      "cotenant lock acquire (held already)": () => cotenant("lock", "acquire", "src/file-0.ts"),
      "cotenant lock release": () => cotenant("lock", "release", `src/file-${n - 1}.ts`),
      "cotenant lock status": () => cotenant("lock", "status", "--path", "src/file-0.ts"),
      "cotenant claim status": () => cotenant("claim", "status"),
      "cotenant status": () => cotenant("status"),
      "cotenant version": () => cotenant("version"),
    };
    const times = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
    // Interleaved, so that whatever else the machine does hits all of them alike.
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [name, make] of Object.entries(candidates)) {
        const started = process.hrtime.bigint();
        const { status, stderr } = spawnSync(process.execPath, make(), { cwd: root, env: ENV });
        if (status !== 0) throw new Error(`${name} failed: ${stderr}`);
        // The first round warms the disk's caches.
        if (round > 0) times[name].push(Number(process.hrtime.bigint() - started) / 1e6);
      }
    }
    const { "node -e 0": bare, ...ours } = times;
    const floor = median(bare);
    return Object.entries(ours).map(([what, samples]) =>
      row(
        what,
        `${figure(median(samples))} ms`,
        `node -e 0 ${figure(floor)} ms`,
        median(samples) / floor,
        "<= 2",
      ),
    );
  });
}
