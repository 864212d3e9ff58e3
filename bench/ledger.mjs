/** Claims between machines: one ref for each claim, beside one branch with retries (seed 004), in one run over git://. */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { figure, median, row } from "./figures.mjs";
import { ENV, PROGRAM } from "./room.mjs";

const WORKER = fileURLToPath(new URL("ledger-worker.mjs", import.meta.url));
const CLONES = 8;
const FOR_MS = Number(process.env.BENCH_LEDGER_MS ?? 8_000);
const ROUNDS = Number(process.env.BENCH_LEDGER_ROUNDS ?? 3);
const ISSUES_EACH = 120;
export const WHO = {
  GIT_AUTHOR_NAME: "b",
  GIT_AUTHOR_EMAIL: "b@b",
  GIT_COMMITTER_NAME: "b",
  GIT_COMMITTER_EMAIL: "b@b",
};

export async function ledger() {
  const room = mkdtempSync(join(tmpdir(), "cotenant-bench-ledger-"));
  const rates = { ledger: [], branch: [] };
  const spreads = { ledger: [], branch: [] };
  const retries = { ledger: 0, branch: 0 };
  const claims = { ledger: 0, branch: 0 };
  try {
    for (let round = 0; round < ROUNDS; round++) {
      for (const way of ["branch", "ledger"]) {
        const results = await race(join(room, `${way}-${round}`), way);
        const counts = results.map((result) => result.claims);
        const all = counts.reduce((a, b) => a + b, 0);
        rates[way].push(all / (FOR_MS / 1000));
        spreads[way].push(Math.max(...counts) / Math.max(1, Math.min(...counts)));
        retries[way] += results.reduce((sum, result) => sum + result.retries, 0);
        claims[way] += all;
      }
    }
  } finally {
    rmSync(room, { recursive: true, force: true });
  }
  const [ours, theirs] = [median(rates.ledger), median(rates.branch)];
  const each = (way) => figure(retries[way] / Math.max(1, claims[way]));
  return [
    row(
      `claims through the ledger, ${CLONES} clones, distinct issues, git://`,
      `${figure(ours)}/s, ${each("ledger")} retries each`,
      `one branch with retries ${figure(theirs)}/s, ${each("branch")} retries each`,
      ours / theirs,
      ">= 6",
    ),
    row(
      "the same: the luckiest clone's claims, of the unluckiest's",
      `${figure(median(spreads.ledger))} ×`,
      `one branch ${figure(median(spreads.branch))} ×`,
      median(spreads.ledger),
      "<= 1.5",
    ),
  ];
}

/** A hub of its own, with clones that all begin at the same moment. */
async function race(room, way) {
  mkdirSync(room, { recursive: true });
  const env = { ...ENV, ...WHO };
  const git = (cwd, ...args) => execFileSync("git", args, { cwd, env, stdio: ["ignore", "pipe", "inherit"] });
  const hub = join(room, "hub.git");
  git(room, "init", "-q", "--bare", "-b", "seed", hub);
  const ids = Array.from({ length: CLONES }, (_, clone) =>
    Array.from({ length: ISSUES_EACH }, (_, n) => ulid(clone, n)),
  );
  const seed = join(room, "seed");
  git(room, "init", "-q", "-b", "seed", seed);
  for (const id of ids.flat()) {
    const folder = join(seed, ".cotenant/issues", id);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "issue.json"), JSON.stringify(issueOf(id), null, 2));
  }
  git(seed, "add", "-A");
  git(seed, "commit", "-qm", "issues");
  git(seed, "push", "-q", hub, "seed");
  const { port, stop } = await gitServer(room);
  try {
    const url = `git://127.0.0.1:${port}/hub.git`;
    const clones = ids.map((issues, index) => {
      const root = join(room, `clone-${index}`);
      git(room, "clone", "-q", hub, root);
      git(root, "remote", "set-url", "origin", url);
      const own = {
        ...env,
        HOME: join(room, `home-${index}`),
        XDG_DATA_HOME: join(room, `home-${index}`),
        COTENANT_SYNC_LEDGER_BRANCH: "cotenant-sync",
      };
      if (way === "ledger")
        execFileSync(process.execPath, [PROGRAM, "sync", "--setup-ledger", "--quiet"], {
          cwd: root,
          env: own,
        });
      return { way, root, index, issues, env: own, forMs: FOR_MS };
    });
    return await allAtOnce(clones);
  } finally {
    stop();
  }
}

export async function allAtOnce(tasks, onStart = () => {}) {
  const workers = tasks.map((task) => {
    const child = spawn(process.execPath, [WORKER, JSON.stringify(task)], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    return { child, ready: new Promise((resolve) => child.once("message", resolve)) };
  });
  await Promise.all(workers.map(({ ready }) => ready));
  const results = workers.map(
    ({ child }) =>
      new Promise((resolve, reject) => {
        child.once("message", resolve);
        child.once("exit", (status) => reject(new Error(`a clone ended with ${status}`)));
      }),
  );
  onStart();
  for (const { child } of workers) child.send("go");
  return Promise.all(results);
}

export async function gitServer(room) {
  const port = await new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port: free } = server.address();
      server.close(() => resolve(free));
    });
  });
  const args = [
    "daemon",
    "--reuseaddr",
    "--export-all",
    "--enable=receive-pack",
    "--listen=127.0.0.1",
    `--port=${port}`,
    `--base-path=${room}`,
    room,
  ];
  const child = spawn("git", args, { stdio: "ignore", env: ENV });
  const probe = () =>
    execFileSync("git", ["ls-remote", `git://127.0.0.1:${port}/hub.git`], { env: ENV, stdio: "ignore" });
  for (let tries = 0; ; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    try {
      probe();
      return { port, stop: () => child.kill() };
    } catch (error) {
      if (tries > 100) throw error;
    }
  }
}

export function ulid(clone, n) {
  return `01ARZ3NDEKTSV4RRFF${String(clone).padStart(2, "0")}${String(n).padStart(6, "0")}`;
}

export function issueOf(id) {
  const at = "2026-01-01T00:00:00.000Z";
  const stamp = { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null };
  return {
    schema_version: 1,
    id,
    title: "Some work",
    description: "",
    state: "ready",
    priority: "normal",
    assignee: null,
    created_at: at,
    created_by: "",
    updated_at: at,
    updated_by: "",
    stamp,
  };
}
