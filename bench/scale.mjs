/** Acquire in a store with many leases, or with a long past, beside an empty one; and the index made anew. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { figure, median, row } from "./figures.mjs";
import { inRepository, openAs } from "./room.mjs";

const LEASES = Number(process.env.BENCH_LEASES ?? 100_000);
const LINES = Number(process.env.BENCH_LINES ?? 1_000_000);
const REBUILT_LINES = 100_000;
const KEYS_AT_ONCE = 1_000;
const SAMPLES = 201;

export async function scale() {
  const rows = [];
  await inRepository(async (empty) => {
    await inRepository(async (full) => {
      const holder = await openAs(full, "agent:holder");
      for (let at = 0; at < LEASES; at += KEYS_AT_ONCE) {
        const keys = Array.from(
          { length: KEYS_AT_ONCE },
          (_, i) => `file:src/d${at / KEYS_AT_ONCE}/f${i}.ts`,
        );
        await holder.acquire(keys, { ttlSecs: 86_400 });
      }
      rows.push(await compare(`acquire with ${figure(LEASES)} active leases`, empty, full));
    });
    await inRepository(async (old) => {
      await writeLines(old, LINES);
      rows.push(await compare(`acquire after ${figure(LINES)} log lines`, empty, old));
    });
  });
  rows.push(await rebuild());
  return rows;
}

/** Both stores in turn, in one process each way: warm, as an agent's next call is. */
async function compare(what, empty, full) {
  const parties = await Promise.all([empty, full].map((root) => openAs(root, "agent:asking")));
  const times = [[], []];
  for (let n = 0; n < SAMPLES; n++) {
    for (const [which, party] of parties.entries()) {
      const key = `file:src/d7/new-${n}.ts`;
      const started = performance.now();
      await party.acquire(key);
      times[which].push(performance.now() - started);
      await party.release(key);
    }
  }
  const [before, after] = times.map(median);
  return row(what, `${figure(after)} ms`, `in an empty store ${figure(before)} ms`, after / before, "<= 1.5");
}

/** Two lines a round, many at once, so that they share their syncs. */
async function writeLines(root, lines) {
  const party = await openAs(root, "agent:past");
  const width = 256;
  for (let done = 0; done < lines; done += 2 * width) {
    const keys = Array.from({ length: width }, (_, i) => `resource:k${i}`);
    await Promise.all(keys.map((key) => party.acquire(key)));
    await Promise.all(keys.map((key) => party.release(key)));
  }
}

async function rebuild() {
  return inRepository(async (root) => {
    await writeLines(root, REBUILT_LINES);
    const control = join(root, ".git/cotenant");
    const segments = [join(control, "claims.jsonl")];
    const parsing = [];
    const rebuilding = [];
    for (let n = 0; n < 5; n++) {
      let started = performance.now();
      for (const file of segments) {
        for (const line of readFileSync(file, "utf8").split("\n")) if (line !== "") JSON.parse(line);
      }
      parsing.push(performance.now() - started);
      for (const name of readdirSync(join(control, "index")))
        rmSync(join(control, "index", name), { recursive: true });
      const party = await openAs(root, "agent:asking");
      started = performance.now();
      await party.acquire(`resource:after-${n}`);
      rebuilding.push(performance.now() - started);
    }
    const lines = readFileSync(segments[0], "utf8").split("\n").length - 1;
    const [ours, theirs] = [median(rebuilding), median(parsing)];
    return row(
      `the index made anew from ${figure(lines)} log lines`,
      `${figure(ours)} ms`,
      `parsing them ${figure(theirs)} ms`,
      ours / theirs,
      "<= 3",
    );
  });
}
