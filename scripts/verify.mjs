/**
 * npm run verify: the whole programme of proofs, in one table.
 *
 *   npm run verify -- --minutes 10                        every layer, in about that time on two cores
 *   npm run verify -- --layer simulation --seed 7         one layer again, as a failure said
 *   npm run verify -- --layer harnesses                   the agents' own programs, from the npm registry: only on request
 *       --latest                                          their newest versions, not the pinned ones
 *       --record                                          keep what was seen, for docs/AGENTS.md and the recorded events
 *
 * A layer fails when a promise broke, and also when something that it should have met never happened.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism, cpus, tmpdir, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { ensureBuilt } from "./build.mjs";
import { ensureDebianPackages } from "./debian-packages.mjs";
import { ensureInstalled } from "./install.mjs";
import { optionsGiven, ROOT, say, seconds } from "./project.mjs";
import { table } from "./report.mjs";

/**
 * A layer ends a tenth after its time at the latest, unless the crowd that it has started leaves it no time to notice. One
 * that does not end then either hangs; so does one that repeats a seed for so long.
 */
const PATIENCE_MS = 60_000;
const REPEAT_MS = 45 * 60_000;
/** What a layer that tries all there is gets of the time, beside the shares of the others. */
const EXHAUSTIVE_SHARE = 0.08;

const values = optionsGiven({
  minutes: { type: "string", default: "10" },
  layer: { type: "string", multiple: true },
  seed: { type: "string" },
  least: { type: "string" },
  case: { type: "string" },
  json: { type: "string" },
  latest: { type: "boolean" },
  record: { type: "boolean" },
});

/** A number of the command line, or null when it was not given. */
function number(name) {
  if (values[name] === undefined) return null;
  const value = Number(values[name]);
  if (!(Number.isFinite(value) && value >= 0)) {
    say(`--${name} is not a number: ${values[name]}`);
    process.exit(2);
  }
  return value;
}

/** The layers as one program for plain Node. */
async function bundleLayers(room) {
  const esbuild = await import("esbuild");
  const path = join(room, "one-layer.cjs");
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const tool = join(ROOT, "node_modules/esbuild/lib/main.js");
  await esbuild.build({
    entryPoints: [join(ROOT, "tests/verify/one-layer.ts")],
    outfile: path,
    absWorkingDir: ROOT,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    // Some packages have a main file that no bundler can follow.
    mainFields: ["module", "main"],
    alias: { esbuild: tool },
    external: [tool],
    define: { __COTENANT_VERSION__: JSON.stringify(version) },
    plugins: [{ name: "own-address", setup: ({ onLoad }) => onLoad({ filter: /\.ts$/ }, withOwnAddress) }],
    logLevel: "warning",
  });
  return path;
}

/** A bundle is one module; each source keeps the address it was written with. */
function withOwnAddress({ path }) {
  const contents = readFileSync(path, "utf8")
    .replace(/import\.meta\.url(?!")/g, JSON.stringify(pathToFileURL(path).href))
    .replace(/\b__dirname(?=,)/g, JSON.stringify(dirname(path)));
  return { contents, loader: "ts" };
}

/** Answers the last line of its output, as JSON. What it says otherwise goes to our terminal. */
function runProgram(program, args, mostMs = 3 * PATIENCE_MS) {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
    // The certificates cost every child 38 ms; whoever downloads something takes them from the second one.
    env: {
      ...process.env,
      NODE_EXTRA_CA_CERTS: "",
      TEST_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS ?? "",
      TMPDIR: rooms.disk,
      TEST_MEMORY: rooms.memory,
    },
    detached: true,
  });
  running.add(child);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  return new Promise((resolve, reject) => {
    let isLate = false;
    const watchdog = setTimeout(() => {
      isLate = true;
      end(child);
    }, mostMs);
    child.on("error", reject);
    child.on("close", (status, signal) => {
      clearTimeout(watchdog);
      running.delete(child);
      // What a layer without time has left running.
      end(child);
      if (status === 0) resolve(JSON.parse(output.trim().split("\n").at(-1)));
      else if (isLate) reject(new Error(`no end within ${Math.round(mostMs / 60_000)} minutes`));
      else reject(new Error(`ended with ${signal ?? status}`));
    });
  });
}

const running = new Set();

/** Where the layers work, on a disk and in memory. All of it goes, also what a layer without time has left. */
const rooms = {
  disk: makeRoom(tmpdir()),
  memory: makeRoom(existsSync("/dev/shm") ? "/dev/shm" : tmpdir()),
};

process.on("exit", clear);

function makeRoom(parent) {
  const room = realpathSync(mkdtempSync(join(parent, "verify-")));
  // Some go on as another user there.
  chmodSync(room, 0o1777);
  return room;
}

function clear() {
  for (const child of running) end(child);
  for (const room of Object.values(rooms)) {
    unmountBelow(room);
    try {
      rmSync(room, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    } catch {
      // Somebody still writes there. What is left is in nobody's way.
    }
  }
}

function unmountBelow(room) {
  const mounts = existsSync("/proc/mounts") ? readFileSync("/proc/mounts", "utf8").split("\n") : [];
  for (const [, place] of mounts.map((line) => line.split(" ")))
    if (place?.startsWith(`${room}/`)) spawnSync("umount", ["--lazy", place]);
}

/** The whole group: a layer starts processes of its own. */
function end(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

async function runLayer(program, layer, givenMs) {
  const isTimed = values.seed === undefined && values.case === undefined;
  const effort = {
    layer: layer.name,
    // A seed repeats one story; a case is repeated whole.
    least: number("least") ?? (values.seed === undefined || values.case !== undefined ? layer.inVerify : 1),
    forMs: isTimed && layer.share > 0 ? givenMs : 0,
    ...(isTimed ? { atMostMs: givenMs } : {}),
    ...(values.seed === undefined ? {} : { seed: number("seed") }),
    only: values.case ?? null,
    isLatest: values.latest === true,
    isRecording: values.record === true,
  };
  const mostMs = isTimed ? givenMs * 1.1 + PATIENCE_MS : REPEAT_MS;
  const started = performance.now();
  say(`${layer.name}…`);
  try {
    const result = await runProgram(program, [JSON.stringify(effort)], mostMs);
    if (result.broke.length > 0) say(`${layer.name} BROKE: ${result.broke[0].what}`);
    return result;
  } catch (error) {
    say(`${layer.name} DIED: ${error.message}`);
    const broke = [
      { what: `the layer itself: ${error.message}`, replay: `npm run verify -- --layer ${layer.name}` },
    ];
    return {
      layer: layer.name,
      unit: layer.unit,
      seed: effort.seed ?? 0,
      tried: 0,
      counters: {},
      unmoved: [],
      isCutShort: false,
      skipped: null,
      broke,
      ms: performance.now() - started,
    };
  }
}

/** Two at a time, the longest first: the last to end should be a short one. */
const CORES = 2;
/** A layer starts, and ends what it is in the middle of: whoever comes last would pay for all of them. */
const OVERTIME = 1.15;

const weightOf = ({ share }) => share || EXHAUSTIVE_SHARE;

/**
 * First what `npm test` leaves out, alone, for it uses all cores itself. Of the others each gets its part of what is left when it
 * starts, so that all of them together keep to the minutes.
 */
async function runAll(program, layers, until) {
  const results = [];
  const allMs = until - performance.now();
  const first = layers.filter(({ isFirst }) => isFirst);
  const waiting = layers.filter(({ isFirst }) => !isFirst).sort((a, b) => weightOf(b) - weightOf(a));
  for (const layer of first)
    results.push(await runLayer(program, layer, waiting.length > 0 ? layer.share * allMs : allMs));
  const worker = async () => {
    for (let layer = waiting.shift(); layer !== undefined; layer = waiting.shift()) {
      const weights = [layer, ...waiting].reduce((sum, other) => sum + weightOf(other), 0);
      const leftMs = Math.max(0, until - performance.now());
      const partMs = ((weightOf(layer) / weights) * leftMs * CORES) / OVERTIME;
      results.push(await runLayer(program, layer, Math.min(leftMs, partMs)));
    }
  };
  await Promise.all(Array.from({ length: CORES }, worker));
  return layers.map(({ name }) => results.find(({ layer }) => layer === name));
}

function report(results, started) {
  const figure = (value) => value.toLocaleString("en").padStart(12);
  const verdict = ({ broke, unmoved, isCutShort, skipped }) => {
    if (skipped !== null) return "skipped";
    if (broke.length > 0) return `${broke.length} broke`;
    if (isCutShort) return "nothing until the time was up";
    return unmoved.length > 0 ? "not everything was tried" : "nothing";
  };
  const row = ({ layer, unit, tried, broke, unmoved, isCutShort, skipped, ms, seed }) => [
    layer,
    `${figure(tried)} ${unit}`,
    verdict({ broke, unmoved, isCutShort, skipped }),
    `${(ms / 1000).toFixed(1)} s`.padStart(8),
    String(seed).padStart(11),
  ];
  const head = ["what", "       tried", "broke", "    time", "       seed"];
  const lines = [head, ...results.map(row), ["together", "", "", seconds(started).padStart(8), ""]];
  process.stdout.write(`\n${table(lines)}\n\n`);
  for (const { layer, counters } of results) {
    const text = Object.entries(counters).map(([name, value]) => `${name} ${value.toLocaleString("en")}`);
    if (text.length > 0) process.stdout.write(`${layer}: ${text.join(" · ")}\n`);
  }
  for (const { layer, seed, tried, unmoved, isCutShort, skipped, broke } of results) {
    if (skipped !== null) {
      process.stdout.write(`\nSKIPPED ${layer}: ${skipped}\n`);
      continue;
    }
    for (const { what, replay } of broke)
      process.stdout.write(`\nBROKEN ${layer}: ${what}\n  again: ${replay}\n`);
    const what = isCutShort ? "NO TIME FOR" : "NEVER HAPPENED";
    for (const name of unmoved) process.stdout.write(`\n${what} ${layer}: ${name} (seed ${seed})\n`);
    if (tried === 0) process.stdout.write(`\nNOTHING TRIED ${layer}\n`);
  }
}

async function main() {
  const minutes = number("minutes");
  const started = performance.now();
  ensureInstalled();
  await ensureBuilt();
  ensureDebianPackages(["test", "verify"]);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));
  const program = await bundleLayers(rooms.disk);
  const known = await runProgram(program, []);
  const wanted = values.layer ?? known.filter(({ isOptIn }) => !isOptIn).map(({ name }) => name);
  const unknown = wanted.filter((name) => !known.some((layer) => layer.name === name));
  if (unknown.length > 0) {
    say(`no such layer: ${unknown.join(", ")}; there are ${known.map(({ name }) => name).join(", ")}`);
    return 2;
  }
  const memory = Math.round(totalmem() / 2 ** 30);
  say(`node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? "?"}, ${memory} GiB`);
  const layers = known.filter(({ name }) => wanted.includes(name));
  const results = await runAll(program, layers, started + minutes * 60_000);
  report(results, started);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`);
  const isFine = ({ broke, unmoved, isCutShort, skipped, tried }) =>
    skipped !== null || (broke.length === 0 && (isCutShort || (unmoved.length === 0 && tried > 0)));
  return results.every(isFine) ||
    (values.seed !== undefined && results.every(({ broke }) => broke.length === 0))
    ? 0
    : 1;
}

process.exitCode = await main();
