/** One of several processes that do the same thing at once: `node worker.mjs '{"kind": …}'`. */
import { spawnSync } from "node:child_process";
import { closeSync, fdatasyncSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { rateOf } from "./figures.mjs";
import { openAs } from "./room.mjs";

const WARM_UP = 300;
/** Rounds in a queue are long ones, and so are commits; a Git that is started anew each time never gets warm. */
const SHORT_WARM_UPS = { queue: 30, publish: 30, addAndCommit: 1 };
const task = JSON.parse(process.argv[2]);

/** Each answers what one round is. */
const KINDS = {
  /** Durable acquire and release of a key of its own. */
  async distinct({ root, index }) {
    const repository = await openAs(root, `agent:w${index}`);
    return async (round) => {
      const key = `resource:w${index}-${round}`;
      await repository.acquire(key);
      await repository.release(key);
    };
  },
  /** Everybody wants the same key and waits in line for it. */
  async queue({ root, index }) {
    const repository = await openAs(root, `agent:w${index}`);
    return async () => {
      await repository.acquire("resource:one", { wait: { timeoutMs: 60_000 } });
      await repository.release("resource:one");
    };
  },
  async bare({ root, index }) {
    const fd = openSync(join(root, `bare-${index}`), "a");
    const line = Buffer.alloc(1_000, 0x61);
    process.on("exit", () => closeSync(fd));
    return () => {
      for (let i = 0; i < 2; i++) {
        writeSync(fd, line);
        fdatasyncSync(fd);
      }
    };
  },
  async properLockfile({ root, index, shared }) {
    const { default: lockfile } = await import("proper-lockfile");
    const file = join(root, shared ? "shared" : `file-${index}`);
    const options = { realpath: false, retries: { retries: 10_000, minTimeout: 1, maxTimeout: 20 } };
    return async () => {
      const release = await lockfile.lock(file, options);
      await release();
    };
  },
  /** One file of its own, published to a branch of its own, or to everybody's. */
  async publish({ root, index, shared, who = "w" }) {
    const repository = await openAs(root, `agent:${who}${index}`);
    const path = `dir-${index}/file-${index}.txt`;
    await repository.acquire({ file: path }, { bind: "process" });
    const branch = shared ? `work/all-${who}` : `work/${who}${index}`;
    return async (round) => {
      const changes = [{ op: "put", path, content: `${who} ${index} ${round} ${process.pid}\n` }];
      await repository.publish({ branch, message: `round ${round}`, changes });
    };
  },
  /** The same with Git alone: in a worktree of its own, or all in one checkout. */
  async addAndCommit({ root, index, shared }) {
    const cwd = shared ? root : join(root, `../worktree-${index}`);
    const path = `dir-${index}/file-${index}.txt`;
    const git = (...args) => spawnSync("git", args, { cwd, env: process.env }).status === 0;
    return (round) => {
      writeFileSync(join(cwd, path), `${index} ${round} ${process.pid}\n`);
      return git("add", path) && git("commit", "-qm", `round ${round}`, "--", path);
    };
  },
};

const act = await KINDS[task.kind](task);
// What is measured is a program that goes on for long, and not how soon it is compiled.
const warmUp = SHORT_WARM_UPS[task.kind] ?? WARM_UP;
for (let round = 1; round <= warmUp; round++) await act(-round);
process.send("ready");
await new Promise((resolve) => process.once("message", resolve));
const waits = [];
let failed = 0;
const rate = await rateOf(async (round) => {
  const started = performance.now();
  if ((await act(round)) === false) failed++;
  waits.push(performance.now() - started);
}, task.forMs);
process.send({ rate, waits, failed, done: warmUp + waits.length }, () => process.exit(0));
