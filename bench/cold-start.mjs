/** Whole cold commands, start to exit, beside `node -e 0` in the same run. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 41);

export function coldStart({ program, env }) {
  const dir = mkdtempSync(join(tmpdir(), "cotenant-bench-"));
  try {
    execFileSync("git", ["init", "-q", "."], { cwd: dir, env });
    execFileSync(process.execPath, [program, "init", "--quiet"], { cwd: dir, env });
    let n = 0;
    const cotenant = (...args) => [process.execPath, [program, ...args]];
    const candidates = {
      "node -e 0": () => [process.execPath, ["-e", "0"]],
      "lock acquire (new key)": () => cotenant("lock", "acquire", `src/file-${n++}.ts`),
      "lock acquire (held already)": () => cotenant("lock", "acquire", "src/file-0.ts"),
      "lock status": () => cotenant("lock", "status", "--path", "src/file-0.ts"),
      "claim status": () => cotenant("claim", "status"),
      version: () => cotenant("version"),
    };
    const times = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
    // Interleaved, so that whatever else the machine does hits all of them alike.
    for (let round = 0; round < ROUNDS; round++) {
      for (const [name, make] of Object.entries(candidates)) {
        const [file, args] = make();
        const started = process.hrtime.bigint();
        const { status, stderr } = spawnSync(file, args, { cwd: dir, env });
        if (status !== 0) throw new Error(`${name} failed: ${stderr}`);
        times[name].push(Number(process.hrtime.bigint() - started) / 1e6);
      }
    }
    const floor = median(times["node -e 0"]);
    return Object.entries(times).map(([what, samples]) => ({
      what,
      median_ms: round2(median(samples)),
      p95_ms: round2(quantile(samples, 0.95)),
      ratio: round2(median(samples) / floor),
    }));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function quantile(samples, q) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
}

function median(samples) {
  return quantile(samples, 0.5);
}

function round2(value) {
  return Math.round(value * 100) / 100;
}
