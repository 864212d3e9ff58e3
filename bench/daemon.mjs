/** The daemon: many clients at once, claims of many agents through the ledger, and what it costs while nobody asks. */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { figure, median, quantile, row, sleep } from "./figures.mjs";
import { allAtOnce, gitServer, issueOf, ulid, WHO } from "./ledger.mjs";
import { crew, ENV, inRepository, openAs, PROGRAM } from "./room.mjs";

const CLIENTS_SOURCE = fileURLToPath(new URL("daemon-clients.ts", import.meta.url));
const CLIENTS = 64;
const AGENTS = 8;
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const SLICE_MS = 2_000;
const IDLE_MS = Number(process.env.BENCH_IDLE_MS ?? 120_000);
const KEPT = 3;

export async function daemon() {
  return [...(await manyClients()), ...(await claimsThroughLedger()), ...(await idle())];
}

function manyClients() {
  return inRepository(async (root) => {
    const program = join(root, ".git/daemon-clients.cjs");
    const options = { bundle: true, platform: "node", format: "cjs", target: "node20", logLevel: "warning" };
    await build({ ...options, entryPoints: [CLIENTS_SOURCE], outfile: program });
    const bare = async () => 2 * (await crew(1, { kind: "bare", root, forMs: SLICE_MS }))[0].rate;
    const together = async (count) => {
      const all = await crew(count, { kind: "distinct", root, forMs: SLICE_MS });
      return 2 * all.map(({ rate }) => rate).reduce((a, b) => a + b, 0);
    };
    const samples = { bare: [], clients: [], one: [], eight: [] };
    const waits = [];
    cotenant(root, "daemon", "start");
    try {
      for (let round = 0; round < ROUNDS; round++) {
        samples.bare.push(await bare());
        const measured = await clients(program, root);
        samples.clients.push(measured.rate);
        waits.push(...measured.waits);
        samples.one.push(await together(1));
        samples.eight.push(await together(8));
      }
    } finally {
      cotenant(root, "daemon", "stop");
    }
    const at = Object.fromEntries(Object.entries(samples).map(([name, rates]) => [name, median(rates)]));
    const beside = `one bare append + fdatasync loop ${figure(at.bare)}/s`;
    const line = (what, rate, target) => row(what, `${figure(rate)}/s`, beside, rate / at.bare, target);
    const [p50, p99] = [median(waits), quantile(waits, 0.99)];
    return [
      line(
        `${CLIENTS} clients through the daemon, acquires and releases of distinct keys`,
        at.clients,
        ">= 4",
      ),
      row("  the same: p99 of one operation", `${figure(p99)} ms`, `p50 ${figure(p50)} ms`, p99 / p50),
      line("  one library process through the daemon, which keeps its secrets on the disk", at.one),
      line("  8 of them", at.eight),
    ];
  });
}

/** All clients in one process: so many would not leave the daemon a core. */
function clients(program, root) {
  const work = { root, clients: CLIENTS, warmUpMs: SLICE_MS, forMs: SLICE_MS };
  const child = spawn(process.execPath, [program, JSON.stringify(work)], {
    env: ENV,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    child.on("message", (said) => (said === "ready" ? child.send("go") : resolve(said)));
    child.on("exit", (status) => reject(new Error(`the clients ended with ${status}`)));
  });
}

/** One clone, eight agents in it, each a process that claims eight issues, one after the other. */
async function claimsThroughLedger() {
  const room = mkdtempSync(join(tmpdir(), "cotenant-bench-daemon-"));
  const times = { daemon: [], direct: [] };
  try {
    const { port, stop } = await hub(room);
    try {
      for (let round = 0; round < Math.min(ROUNDS, 3); round++)
        for (const way of ["direct", "daemon"]) times[way].push(await claimAll(room, port, way, round));
    } finally {
      stop();
    }
  } finally {
    rmSync(room, { recursive: true, force: true });
  }
  const [ours, theirs] = [median(times.daemon), median(times.direct)];
  return [
    row(
      `${AGENTS * AGENTS} claims of ${AGENTS} agents on one machine through the daemon and the ledger, git://`,
      `${figure(ours)} ms`,
      `without the daemon ${figure(theirs)} ms`,
      theirs / ours,
      ">= 4",
    ),
  ];
}

async function hub(room) {
  const env = { ...ENV, ...WHO };
  const git = (cwd, ...args) =>
    execFileSync("git", args, { cwd, env, stdio: ["ignore", "ignore", "inherit"] });
  git(room, "init", "-q", "--bare", "-b", "seed", "hub.git");
  const seed = join(room, "seed");
  git(room, "init", "-q", "-b", "seed", seed);
  for (let round = 0; round < 2 * ROUNDS; round++)
    for (let n = 0; n < AGENTS * AGENTS; n++) {
      const folder = join(seed, ".cotenant/issues", ulid(round, n));
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "issue.json"), JSON.stringify(issueOf(ulid(round, n)), null, 2));
    }
  git(seed, "add", "-A");
  git(seed, "commit", "-qm", "issues");
  git(seed, "push", "-q", join(room, "hub.git"), "seed");
  return gitServer(room);
}

/** How long it takes them all. Issues of its own, and a clone of its own, so that nothing is known already. */
async function claimAll(room, port, way, round) {
  const name = `${way}-${round}`;
  const [root, home] = [join(room, name), join(room, `home-${name}`)];
  const env = { ...ENV, ...WHO, HOME: home, XDG_DATA_HOME: home };
  if (way === "direct") env.COTENANT_NO_DAEMON = "1";
  mkdirSync(join(home, ".config/cotenant"), { recursive: true });
  // In a file: the daemon does not go by the environment of whoever starts it.
  writeFileSync(join(home, ".config/cotenant/config.toml"), '[sync]\nledger_branch = "cotenant-sync"\n');
  execFileSync("git", ["clone", "-q", join(room, "hub.git"), root], { env });
  execFileSync("git", ["remote", "set-url", "origin", `git://127.0.0.1:${port}/hub.git`], { cwd: root, env });
  const run = (...args) => execFileSync(process.execPath, [PROGRAM, ...args, "--quiet"], { cwd: root, env });
  run("sync", "--setup-ledger");
  if (way === "daemon") run("daemon", "start");
  try {
    const set = 2 * round + (way === "daemon" ? 1 : 0);
    const tasks = Array.from({ length: AGENTS }, (_, index) => {
      const issues = Array.from({ length: AGENTS }, (_, n) => ulid(set, index * AGENTS + n));
      return { way: "ledger", root, index, issues, env, forMs: 600_000 };
    });
    const { results, ms } = await timed(tasks);
    const claims = results.reduce((sum, result) => sum + result.claims, 0);
    if (claims !== AGENTS * AGENTS) throw new Error(`${claims} of ${AGENTS * AGENTS} were claimed`);
    return ms;
  } finally {
    if (way === "daemon") run("daemon", "stop");
  }
}

async function timed(tasks) {
  let started = 0;
  const results = await allAtOnce(tasks, () => {
    started = performance.now();
  });
  return { results, ms: performance.now() - started };
}

/** How often a daemon that nobody asks makes the machine wake up: all its threads, whatever for. */
function idle() {
  return inRepository(async (root) => {
    writeFileSync(join(root, ".cotenant/config.toml"), "[coordination]\nauto_renew_leases = true\n");
    execFileSync(process.execPath, [PROGRAM, "trust"], {
      cwd: root,
      env: { ...ENV, COTENANT_AGENT_ID: "human:bench" },
    });
    cotenant(root, "daemon", "start");
    const pid = pidIn(root);
    try {
      const none = await wakeUps(pid);
      const repository = await openAs(root, "agent:kept");
      for (let n = 0; n < KEPT; n++) await repository.acquire(`resource:kept-${n}`);
      const kept = await wakeUps(pid);
      const line = (what, perMinute) =>
        row(what, `${figure(perMinute)}/min`, "one in ten seconds 6/min", perMinute / 6, "<= 1");
      return [
        line("an idle daemon, wake-ups, no lease", none),
        line(`  the same, keeping ${KEPT} leases`, kept),
      ];
    } finally {
      cotenant(root, "daemon", "stop");
    }
  });
}

function pidIn(root) {
  const folder = join(root, ".git/cotenant/daemon");
  const [file] = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return JSON.parse(readFileSync(join(folder, file), "utf8")).pid;
}

/** Per minute. */
async function wakeUps(pid) {
  // What it had to do is done, and the heap has come to rest.
  await sleep(Math.min(20_000, IDLE_MS));
  const before = switches(pid);
  await sleep(IDLE_MS);
  return ((switches(pid) - before) / IDLE_MS) * 60_000;
}

function switches(pid) {
  let sum = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${task}/status`, "utf8");
    sum += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)[1]);
  }
  return sum;
}

function cotenant(root, ...args) {
  return execFileSync(process.execPath, [PROGRAM, ...args, "--quiet"], { cwd: root, env: ENV });
}
