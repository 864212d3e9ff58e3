/** One clone of the ledger bench: claims issues one after the other until the time is over. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const task = JSON.parse(process.argv[2]);
const WAYS = { ledger: byLedger, branch: byBranch };

const act = await WAYS[task.way]();
process.send("ready");
process.once("message", async () => {
  const result = await act();
  process.send(result, () => process.exit(0));
});

/** Ours, through the library. */
async function byLedger() {
  const { openRepository } = (await import("../dist/index.cjs")).default;
  const repository = await openRepository({ cwd: task.root, agentId: `agent:m${task.index}`, env: task.env });
  return async () => {
    let [claims, retries] = [0, 0];
    const until = performance.now() + task.forMs;
    for (const issue of task.issues) {
      if (performance.now() > until) break;
      const { ledger } = await repository.acquire({ issue });
      if (ledger.isOffline) throw new Error("the remote was not reached");
      retries += ledger.retries;
      claims++;
    }
    return { claims, retries };
  };
}

/** Seed 004's algorithm: one branch, a checkout of it, pull, change, commit, push, and again when somebody was faster. */
async function byBranch() {
  return claimOnBranch;
}

async function claimOnBranch() {
  const git = (...args) => run("git", args, { cwd: task.root, env: task.env });
  let [claims, retries] = [0, 0];
  const until = performance.now() + task.forMs;
  for (const issue of task.issues) {
    for (let attempt = 0; ; attempt++) {
      if (performance.now() > until) return { claims, retries };
      await git("fetch", "-q", "origin", "seed");
      await git("reset", "-q", "--hard", "FETCH_HEAD");
      const file = join(task.root, ".cotenant/issues", issue, "issue.json");
      const atom = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(
        file,
        JSON.stringify({ ...atom, state: "in_progress", assignee: `agent:m${task.index}` }, null, 2),
      );
      await git("commit", "-q", "-am", `claim ${issue}`);
      try {
        await git("push", "-q", "origin", "HEAD:refs/heads/seed");
        claims++;
        break;
      } catch {
        retries++;
        const base = Math.min(5_000, 100 * 2 ** Math.min(attempt, 5));
        await new Promise((resolve) => setTimeout(resolve, base * (0.8 + 0.4 * Math.random())));
      }
    }
  }
  return { claims, retries };
}
