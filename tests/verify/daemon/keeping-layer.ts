import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Workspace } from "../../../src/coordinator/workspace";
import type { LeaseKey } from "../../../src/kernel/keys";
import type { Holder } from "../../../src/kernel/lease";
import { thisMachine } from "../../../src/platform/node/this-machine";
import type { Layer, Task } from "../layer";
import { clear, fastDisk, makePlace, type Place } from "../linearizability/place";
import { Supervisor } from "./supervisor";

const TTL_SECS = 5;
const KEY = "resource:kept" as LeaseKey;
/** After its time a lease is over at once; the machine may be busy when we look. */
const LOOK_MS = 100;

/** An agent that works for longer than its lease lasts and never renews keeps it; once its process is killed, it does not (promise 6). */
export const daemonKeeping: Layer = {
  name: "daemon keeping",
  unit: "seconds",
  inTest: 12,
  inVerify: 120,
  share: 0.02,
  mustMove: ["looks", "renewals"],
  async prove(task) {
    const { path } = await task.bundle("tests/verify/daemon/process.ts");
    const place = makePlace(fastDisk());
    const supervisor = new Supervisor(place, path);
    const [root] = place.worktrees;
    writeFileSync(join(root!, ".cotenant/config.toml"), "[coordination]\nauto_renew_leases = true\n");
    // The agent: it only lives.
    const agent = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e9)"], { stdio: "ignore" });
    try {
      await supervisor.start();
      await work(task, place, agent);
    } finally {
      agent.kill("SIGKILL");
      await supervisor.end();
      for (const what of supervisor.trouble) task.broke(what, REPLAY);
      clear(place);
    }
  },
};

const REPLAY = 'npm run verify -- --layer "daemon keeping"';

async function work(task: Task, { worktrees, env }: Place, agent: ChildProcess): Promise<void> {
  const surroundings = { ...thisMachine(), env, home: env["HOME"]!, cwd: worktrees[0]!, isTerminal: false };
  const flags = { agentId: "agent:worker", session: "main", doing: "verification", isLongLived: true };
  const workspace = await Workspace.open(surroundings, flags);
  const session = await workspace.session("write");
  const holder = (await surroundings.platform.processes.identify(agent.pid!)) as Holder;
  const keys = [{ key: KEY, reach: "repository" as const }];
  const { leases } = await session.acquire(keys, { ttlSecs: TTL_SECS, holder, upkeep: false });
  const { leaseId, fencingToken, renewedAt } = leases[0]!;
  const mine = async () =>
    (await workspace.coordinator.find([{ key: KEY, leaseId }])).find(({ standing }) => standing === "valid");
  let renewedMs = renewedAt.wallMs;
  const before = task.tried;
  for (const begun = performance.now(); task.goesOn; await nap(LOOK_MS)) {
    task.tried = before + Math.floor((performance.now() - begun) / 1_000);
    const status = await mine();
    task.count("looks");
    if (status === undefined || status.lease.fencingToken !== fencingToken)
      return task.broke(`the lease of a living agent was gone after ${task.tried} s`, REPLAY);
    if (status.lease.renewedAt.wallMs !== renewedMs) task.count("renewals");
    renewedMs = status.lease.renewedAt.wallMs;
  }
  agent.kill("SIGKILL");
  const killed = performance.now();
  while ((await mine()) !== undefined) {
    if (performance.now() - killed > TTL_SECS * 1_000 + 1_000)
      return task.broke(`a killed agent's lease was kept for more than its ${TTL_SECS} s`, REPLAY);
    await nap(LOOK_MS);
  }
  task.count("lost after its process was killed");
}

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
