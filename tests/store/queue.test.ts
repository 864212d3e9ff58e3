import { expect, it } from "vitest";
import { tidy } from "../../src/store/housekeeping";
import { CONTROL, encode, enter, quietWorld } from "./stage";

it("a ticket that its waiter did not live to finish goes with the next tidying, and no other does", async () => {
  const world = quietWorld();
  const holder = enter(world, "agent:a");
  await holder.acquire("resource:r");
  const waiting = enter(world, "agent:b").acquire("resource:r", { wait: { timeoutMs: 60_000 } });
  const tickets = () => world.disk.paths().filter((path) => /\/queue\/./.test(path));
  while (tickets().length === 0) await new Promise((resolve) => setImmediate(resolve));
  const [ticket] = tickets();
  const unfinished = `${CONTROL}/queue/0000000007.json.new`;
  world.disk.install(unfinished, encode("{"));
  expect(tickets()).toEqual([ticket, unfinished]);
  await tidy(holder.store, holder.logActor, { compact: false, flatIndex: {} });
  expect(tickets()).toEqual([ticket]);
  await holder.release("resource:r");
  const { leases } = await waiting;
  expect(leases.map(({ agentId }) => agentId)).toEqual(["agent:b"]);
});
