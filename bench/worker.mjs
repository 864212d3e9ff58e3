/** One of several processes that do the same thing at once: `node worker.mjs '{"kind": …}'`. */
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { rateOf } from "./figures.mjs";
import { openAs } from "./room.mjs";

const WARM_UP = 300;
/** Rounds in a queue are long ones. */
const WARM_UP_IN_QUEUE = 30;
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
};

const act = await KINDS[task.kind](task);
// What is measured is a program that goes on for long, and not how soon it is compiled.
const warmUp = task.kind === "queue" ? WARM_UP_IN_QUEUE : WARM_UP;
for (let round = 1; round <= warmUp; round++) await act(-round);
process.send("ready");
await new Promise((resolve) => process.once("message", resolve));
const waits = [];
const rate = await rateOf(async (round) => {
  const started = performance.now();
  await act(round);
  waits.push(performance.now() - started);
}, task.forMs);
process.send({ rate, waits }, () => process.exit(0));
