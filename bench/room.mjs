/** A scratch repository on the disk that TMPDIR names, and processes that work in it. */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const PROGRAM = fileURLToPath(new URL("../bin/cotenant", import.meta.url));
const WORKER = fileURLToPath(new URL("worker.mjs", import.meta.url));

export const ENV = {
  PATH: process.env.PATH,
  HOME: "/nonexistent",
  TMPDIR: tmpdir(),
  COTENANT_AGENT_ID: "agent:bench",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
};

/** Runs `body` in a new repository, which is gone afterwards. */
export async function inRepository(body, below = tmpdir()) {
  const root = mkdtempSync(join(below, "cotenant-bench-"));
  try {
    execFileSync("git", ["init", "-q", "."], { cwd: root, env: ENV });
    execFileSync(process.execPath, [PROGRAM, "init", "--quiet"], { cwd: root, env: ENV });
    return await body(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

export async function openAs(root, agentId, options = {}) {
  const { openRepository } = (await import("../dist/index.cjs")).default;
  return openRepository({ cwd: root, agentId, env: ENV, ...options });
}

/** Starts `count` workers at the same moment and answers what each of them measured. */
export async function crew(count, task) {
  const workers = Array.from({ length: count }, (_, index) => new Worker({ ...task, index }));
  await Promise.all(workers.map((worker) => worker.isReady));
  for (const worker of workers) worker.go();
  return Promise.all(workers.map((worker) => worker.result));
}

class Worker {
  constructor(task) {
    const child = spawn(process.execPath, [WORKER, JSON.stringify(task)], {
      env: ENV,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.child = child;
    this.isReady = this.#next();
    this.result = this.isReady.then(() => this.#next());
  }

  /** What it says next. Its exit may be noticed before its last words, the end of the channel never. */
  #next() {
    return new Promise((resolve, reject) => {
      this.child.once("message", resolve);
      this.child.once("disconnect", () => reject(new Error("a worker ended before it had said all")));
    });
  }

  go() {
    this.child.send("go");
  }
}
