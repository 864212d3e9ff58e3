/**
 * npm run bench: figures, never assertions. Each row stands beside its yardstick, measured in the same run, and the table
 * goes to bench/RESULTS.md with the machine's facts, after each part: a run that is stopped keeps what it has measured.
 *
 *   npm run bench                         everything
 *   npm run bench -- --only cold-start    one part, printed only
 */
import { spawnSync } from "node:child_process";
import { statfsSync, writeFileSync } from "node:fs";
import { cpus, release, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { coldStart } from "../bench/cold-start.mjs";
import { daemon } from "../bench/daemon.mjs";
import { figure } from "../bench/figures.mjs";
import { guard } from "../bench/guard.mjs";
import { guardDaemon } from "../bench/guard-daemon.mjs";
import { hooks } from "../bench/hooks.mjs";
import { land } from "../bench/land.mjs";
import { ledger } from "../bench/ledger.mjs";
import { publish } from "../bench/publish.mjs";
import { query } from "../bench/query.mjs";
import { scale } from "../bench/scale.mjs";
import { snapshot } from "../bench/snapshot.mjs";
import { contention, throughput } from "../bench/throughput.mjs";
import { waiters } from "../bench/waiters.mjs";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled } from "./install.mjs";
import { optionsGiven, ROOT, say, seconds } from "./project.mjs";
import { table } from "./report.mjs";

const PARTS = {
  "cold-start": coldStart,
  guard,
  "guard-daemon": guardDaemon,
  daemon,
  throughput,
  contention,
  waiters,
  scale,
  query,
  hooks,
  ledger,
  publish,
  land,
  snapshot,
};
const HEAD = ["what", "ours", "beside", "ratio", "target", ""];

const values = optionsGiven({ only: { type: "string", multiple: true } });
const wanted = values.only ?? Object.keys(PARTS);
const unknown = wanted.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  say(`no such part: ${unknown.join(", ")}; there are ${Object.keys(PARTS).join(", ")}`);
  process.exit(2);
}

ensureInstalled();
await ensureBuilt();
const started = performance.now();
const cells = [];
for (const [n, name] of wanted.entries()) {
  say(`${name}…`);
  const partStarted = performance.now();
  cells.push(...(await PARTS[name]()).map(cellsOf));
  say(`${name}: ${seconds(partStarted)}`);
  if (values.only === undefined)
    writeFileSync(join(ROOT, "bench/RESULTS.md"), page(cells, wanted.slice(n + 1)));
}
process.stdout.write(`${table([HEAD, ...cells])}\n${facts()}\n`);
say(`measured in ${seconds(started)}`);

function cellsOf({ what, ours, beside, ratio, target, met }) {
  const goal = target?.replace("<=", "≤").replace(">=", "≥") ?? "";
  return [what, ours, beside, figure(ratio), goal, met === null ? "" : met ? "met" : "MISSED"];
}

function facts() {
  const git = spawnSync("git", ["--version"], { encoding: "utf8" }).stdout.trim();
  const memory = Math.round(totalmem() / 2 ** 30);
  const load = spawnSync("uptime", { encoding: "utf8" }).stdout?.split("load average:")[1]?.trim() ?? "?";
  return [
    `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${memory} GiB, ${process.platform} ${release()}`,
    `Node ${process.version}, ${git}, file system type 0x${statfsSync(tmpdir()).type.toString(16)}`,
    `load average at the end: ${load}`,
  ].join("; ");
}

function page(lines, unmeasured) {
  const missed = lines.filter((line) => line.at(-1) === "MISSED");
  const stopped = unmeasured.length === 0 ? "" : `\nThis run was stopped before: ${unmeasured.join(", ")}.\n`;
  const markdown = (line) => `| ${line.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return `# Bench results

Written by \`npm run bench\`; do not edit. One run, everything interleaved with its yardstick. Trust ratios of 1.5 and more,
and measure on your own disk: almost everything here is the time of an \`fdatasync\`. Rates and waits of programs that go on
for long are taken after 300 rounds, those of a queue after 30.

${facts()}

${markdown(HEAD)}
|---|---|---|---|---|---|
${lines.map(markdown).join("\n")}

${missed.length === 0 ? "Every target was met." : `Short of the target: ${missed.map(([what]) => what.trim()).join("; ")}.`}
${stopped}`;
}
