/** Durable acquire + release per second, beside two bare appends with `fdatasync` on the same disk, and beside others. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { figure, median, quantile, row } from "./figures.mjs";
import { crew, ENV, inRepository } from "./room.mjs";

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const SLICE_MS = 1_500;

export async function throughput() {
  return inRepository(async (root) => {
    const together = async (count, kind, more = {}) =>
      sum((await crew(count, { kind, root, forMs: SLICE_MS, ...more })).map(({ rate }) => rate));
    const samples = { bare: [], one: [], eight: [], bareEight: [], theirs: [], theirsEight: [] };
    // Interleaved, so that whatever else the machine does hits all of them alike.
    for (let round = 0; round < ROUNDS; round++) {
      samples.bare.push(await together(1, "bare"));
      samples.one.push(await together(1, "distinct"));
      samples.eight.push(await together(8, "distinct"));
      samples.bareEight.push(await together(8, "bare"));
      samples.theirs.push(await together(1, "properLockfile"));
      samples.theirsEight.push(await together(8, "properLockfile", { shared: true }));
    }
    const at = Object.fromEntries(Object.entries(samples).map(([name, rates]) => [name, median(rates)]));
    const flock = flockRate(root);
    const perSecond = (rate) => `${figure(rate)}/s`;
    return [
      row(
        "durable acquire + release, one process, library",
        perSecond(at.one),
        `two bare append + fdatasync ${perSecond(at.bare)}`,
        at.one / at.bare,
        ">= 0.7",
      ),
      row(
        "8 processes, distinct keys",
        perSecond(at.eight),
        `one process ${perSecond(at.one)}`,
        at.eight / at.one,
        ">= 0.9",
      ),
      row(
        "8 processes, distinct keys",
        perSecond(at.eight),
        `8 × two bare append + fdatasync, a file each ${perSecond(at.bareEight)}`,
        at.eight / at.bareEight,
      ),
      row(
        "one process",
        perSecond(at.one),
        `proper-lockfile lock + unlock, not durable ${perSecond(at.theirs)}`,
        at.one / at.theirs,
      ),
      row(
        "8 processes",
        perSecond(at.eight),
        `8 × proper-lockfile on one file ${perSecond(at.theirsEight)}`,
        at.eight / at.theirsEight,
      ),
      row(
        "one process",
        perSecond(at.one),
        `flock(1), a process per lock, not durable ${perSecond(flock)}`,
        at.one / flock,
      ),
    ];
  });
}

export async function contention() {
  return inRepository(async (root) => {
    const rows = [];
    for (const [kind, what] of [
      ["distinct", "32 processes, distinct keys: p99 of acquire + release"],
      ["queue", "32 processes, one key, waiting in line: p99 of acquire + release"],
    ]) {
      const results = await crew(32, { kind, root, forMs: 10_000 });
      const waits = results.flatMap((result) => result.waits);
      const [p50, p99] = [median(waits), quantile(waits, 0.99)];
      const rounds = results.map((result) => result.waits.length);
      rows.push(row(what, `${figure(p99)} ms`, `p50 ${figure(p50)} ms`, p99 / p50, "<= 5"));
      const [least, most] = [Math.min(...rounds), Math.max(...rounds)];
      rows.push(
        row(
          "  the slowest process against the fastest",
          `${least} rounds`,
          `${most} rounds`,
          least / most,
          ">= 0.1",
        ),
      );
    }
    return rows;
  });
}

function flockRate(root) {
  const file = join(root, "flock");
  const started = performance.now();
  const rounds = 200;
  for (let i = 0; i < rounds; i++) {
    const { status } = spawnSync("flock", [file, "true"], { env: ENV });
    if (status !== 0) throw new Error("flock(1) failed");
  }
  return (rounds / (performance.now() - started)) * 1000;
}

function sum(values) {
  return values.reduce((a, b) => a + b, 0);
}
