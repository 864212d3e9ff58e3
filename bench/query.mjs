/**
 * `query available` with many issues, a whole warm process, with a daemon that watches them and without, beside `node -e 0`, `git grep` and
 * `jq` over the same files.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { figure, median, row } from "./figures.mjs";
import { ENV, inRepository, PROGRAM } from "./room.mjs";

const SIZES = (process.env.BENCH_ISSUES ?? "1000,10000,100000").split(",").map(Number);
const TARGETS = { 1000: "<= 3", 10000: "<= 3", 100000: "<= 15" };
/** Beyond 20,000 issues the daemon does not watch them. */
const WATCHED = { 1000: "<= 3", 10000: "<= 3", 100000: null };
const ALONE = { ...ENV, COTENANT_NO_DAEMON: "1" };
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 11);
const STATES = [
  "done",
  "done",
  "done",
  "done",
  "done",
  "archived",
  "ready",
  "ready",
  "in_progress",
  "backlog",
];
const PRIORITIES = ["low", "normal", "normal", "high", "critical"];
const TYPES = ["bug", "task", "story", "chore"];
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** As somebody would who has no other tool: which are ready, and of what priority. */
const JQ = 'select(.state == "ready") | [.priority, .id, .title] | @tsv';

export async function query() {
  const rows = [];
  for (const size of SIZES) rows.push(...(await inRepository((root) => withDaemon(root, size))));
  return rows;
}

async function withDaemon(root, size) {
  const daemon = (verb) => run([process.execPath, PROGRAM, "daemon", verb], root);
  daemon("start");
  try {
    return await measure(root, size);
  } finally {
    daemon("stop");
  }
}

async function measure(root, size) {
  fill(root, size);
  for (const args of [
    ["add", "-A"],
    ["-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "-qm", "issues"],
  ])
    execFileSync("git", args, { cwd: root, env: ENV, stdio: "ignore" });
  const candidates = {
    bare: [process.execPath, "-e", "0"],
    ours: [process.execPath, PROGRAM, "query", "available"],
    watched: [process.execPath, PROGRAM, "query", "available"],
    watchedShort: [process.execPath, PROGRAM, "query", "available", "--limit", "10"],
    short: [process.execPath, PROGRAM, "query", "available", "--limit", "10"],
    grep: ["git", "grep", "-l", '"state": "ready"', "--", ".cotenant/issues"],
    jq: ["sh", "-c", `find .cotenant/issues -name issue.json -print0 | xargs -0 cat | jq -r '${JQ}'`],
  };
  const times = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
  // What was written in the last two seconds is not believed yet: the second look settles it. The daemon is asked to watch by the
  // first, and told by the next one after it has begun that the cache is true.
  for (let warm = 0; warm < 3; warm++) {
    run(candidates.watched, root, ENV);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
  }
  const rounds = Math.max(5, Math.round(size > 10_000 ? ROUNDS / 2 : ROUNDS));
  // Interleaved, so that whatever else the machine does hits all of them alike.
  for (let round = 0; round <= rounds; round++)
    for (const [name, command] of Object.entries(candidates)) {
      const spent = run(command, root, name.startsWith("watched") ? ENV : ALONE);
      if (round > 0) times[name].push(spent);
    }
  const at = Object.fromEntries(Object.entries(times).map(([name, samples]) => [name, median(samples)]));
  const what = `query available, ${figure(size)} issues, warm`;
  const ms = (value) => `${figure(value)} ms`;
  return [
    row(what, ms(at.ours), `node -e 0 ${ms(at.bare)}`, at.ours / at.bare, TARGETS[size] ?? null),
    row(
      `${what}, with a daemon`,
      ms(at.watched),
      `node -e 0 ${ms(at.bare)}`,
      at.watched / at.bare,
      WATCHED[size],
    ),
    row(
      `${what}, with a daemon, --limit 10`,
      ms(at.watchedShort),
      `node -e 0 ${ms(at.bare)}`,
      at.watchedShort / at.bare,
    ),
    row(`${what}, --limit 10`, ms(at.short), `node -e 0 ${ms(at.bare)}`, at.short / at.bare),
    row(what, ms(at.ours), `git grep over the same files ${ms(at.grep)}`, at.ours / at.grep),
    row(what, ms(at.ours), `jq over the same files ${ms(at.jq)}`, at.ours / at.jq),
  ];
}

function run([program, ...args], cwd, env = ENV) {
  const started = process.hrtime.bigint();
  const { status, stderr } = spawnSync(program, args, { cwd, env, maxBuffer: 1 << 30 });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed: ${stderr}`);
  return Number(process.hrtime.bigint() - started) / 1e6;
}

/** Six in ten are over; of the others half wait for something. The same ones in every run. */
function fill(root, size) {
  let seed = 7;
  const chance = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
  const ulid = (timeMs) => {
    let head = "";
    for (let time = timeMs, i = 0; i < 10; i++, time = Math.floor(time / 32)) head = DIGITS[time % 32] + head;
    return head + Array.from({ length: 16 }, () => DIGITS[Math.floor(chance() * 32)]).join("");
  };
  const ids = Array.from({ length: size }, (_, n) => ulid(1.7e12 + n * 60_000));
  const folder = join(root, ".cotenant/issues");
  mkdirSync(folder, { recursive: true });
  const stamp = { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null };
  for (const [n, id] of ids.entries()) {
    const at = new Date(1.7e12 + n * 60_000).toISOString();
    const line = (value) =>
      `${JSON.stringify({ op: "add", tag: ulid(1.7e12 + n), value, at, by: "agent:a" })}\n`;
    const issue = {
      schema_version: 1,
      id,
      title: `Work number ${n}`,
      description: "What has to be done, at some length. ".repeat(8),
      state: STATES[Math.floor(chance() * STATES.length)],
      priority: PRIORITIES[n % PRIORITIES.length],
      assignee: null,
      files: [`src/file-${n % 50}.ts`],
      ...{ created_at: at, created_by: "agent:a", updated_at: at, updated_by: "agent:a" },
      stamp,
    };
    mkdirSync(join(folder, id));
    writeFileSync(join(folder, id, "issue.json"), `${JSON.stringify(issue, null, 2)}\n`);
    writeFileSync(join(folder, id, "labels.or-set.jsonl"), line(`type:${TYPES[n % TYPES.length]}`));
    if (n > 10 && chance() < 0.5)
      writeFileSync(join(folder, id, "deps.or-set.jsonl"), line(ids[Math.floor(chance() * n)]));
  }
}
