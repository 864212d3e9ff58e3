/** Many command lines that wait for one key: from each release to the next grant, as the log tells it. */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { figure, median, quantile, row, sleep } from "./figures.mjs";
import { ENV, inRepository, PROGRAM } from "./room.mjs";

const CROWD = Number(process.env.BENCH_WAITERS ?? 200);
const KEY = "held.ts";
const FOR_LONG = ["--ttl", "86400"];

export function waiters() {
  return inRepository(async (root) => {
    await run(root, "agent:holder", ["acquire", KEY, ...FOR_LONG]);
    const crowd = Array.from({ length: CROWD }, async (_, n) => {
      await run(root, `agent:w${n}`, ["acquire", KEY, "--wait", "--timeout", "3600", ...FOR_LONG]);
      await run(root, `agent:w${n}`, ["release", KEY]);
    });
    const served = Promise.all(crowd);
    try {
      await Promise.race([served, allWait(root)]);
      await run(root, "agent:holder", ["release", KEY]);
      await served;
    } finally {
      for (const child of running) child.kill("SIGKILL");
    }
    const gaps = handOvers(join(root, ".git/cotenant/claims.jsonl"));
    if (gaps.length !== CROWD) throw new Error(`${gaps.length} of ${CROWD} waiters were served`);
    const [p50, p99] = [median(gaps), quantile(gaps, 0.99)];
    const what = `${CROWD} command-line waiters for one key, none failed: p99 of a hand-over`;
    return [row(what, `${figure(p99)} ms`, `p50 ${figure(p50)} ms`, p99 / p50, "<= 10")];
  });
}

const running = new Set();

/** One that fails ends the measurement: it would not be of what it says. */
function run(root, agent, words) {
  const env = { ...ENV, COTENANT_AGENT_ID: agent };
  const child = spawn(process.execPath, [PROGRAM, "lock", ...words], { cwd: root, env });
  running.add(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (text) => {
      said += text;
    });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status) => {
      running.delete(child);
      if (status === 0) resolve();
      else reject(new Error(`lock ${words[0]} by ${agent} ended with ${status}: ${said}`));
    });
  });
}

async function allWait(root) {
  const queue = join(root, ".git/cotenant/queue");
  const count = () =>
    existsSync(queue) ? readdirSync(queue).filter((name) => name.endsWith(".json")).length : 0;
  while (count() < CROWD) await sleep(50);
}

/** The times, in milliseconds, between a release and the grant after it. */
function handOvers(file) {
  const changes = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
    .filter(({ event_type: type }) => type === "claim.acquired" || type === "claim.released");
  return changes.flatMap(({ event_type: type, timestamp }, n) => {
    const isHandOver = type === "claim.acquired" && changes[n - 1]?.event_type === "claim.released";
    return isHandOver ? [Date.parse(timestamp) - Date.parse(changes[n - 1].timestamp)] : [];
  });
}
