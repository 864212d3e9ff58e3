/** One agent's work through the daemon where one is running: `node crash-client.cjs <worktree>`. Says what it was told. */
import { writeSync } from "node:fs";
import { Workspace } from "../../../src/coordinator/workspace";
import { engineInFront } from "../../../src/daemon/in-front";
import type { LeaseKey } from "../../../src/kernel/keys";
import { thisMachine } from "../../../src/platform/node/this-machine";

async function main(): Promise<void> {
  const surroundings = { ...thisMachine(), cwd: process.argv[2]!, isTerminal: false };
  const workspace = await Workspace.open(surroundings, {
    agentId: "agent:client",
    session: "main",
    doing: "verification",
    engine: (one) => engineInFront(one),
    isLongLived: true,
  });
  const session = await workspace.session("write");
  const lock = "resource:crash" as LeaseKey;
  const claim = "issue:01ARZ3NDEKTSV4RRFFQ69G5FAV" as LeaseKey;
  const ref = { key: lock, leaseId: null };
  const take = (key: LeaseKey) =>
    session.acquire([{ key, reach: "repository" }], { ttlSecs: 600, upkeep: false });
  const told = (what: string) => writeSync(1, `${what}\n`);
  await take(lock);
  told("acquired");
  await session.renew([ref], { ttlSecs: 700, overrideMax: false, reason: null });
  told("renewed");
  await session.release([ref]);
  told("released");
  await take(claim);
  told("claimed");
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${(error as Error).stack}\n`);
    process.exit(1);
  },
);
