import { expect, it } from "vitest";
import { Machine, sharedIssues } from "../support/machines";

async function standing(machine: Machine): Promise<unknown[]> {
  const { leases } = (await machine.ask("claim", "list")).data as unknown as { leases: { ledger: string }[] };
  return leases.map(({ ledger }) => ledger);
}

it("a claim that is not there any more counts for nothing after a resync, until it is pushed again", async () => {
  const { hub, first, ids } = await sharedIssues(2);
  const [id] = ids as [string];
  const { lease } = await first.ask("claim", "acquire", id);
  hub.git("update-ref", "-d", `refs/cotenant/claims/${id}`);
  expect((await first.ask("sync", "--force-resync", "--yes")).status).toBe(0);
  expect(await standing(first)).toEqual(["provisional"]);
  expect((await first.ask("sync")).status).toBe(0);
  expect(await standing(first)).toEqual(["confirmed"]);
  expect(hub.claim(id)).toMatchObject({ status: "held", lease_id: lease.lease_id });
});

it("another clone of the machine that took the ledger anew pushes its claims again with its next sync", async () => {
  const { hub, first, ids } = await sharedIssues(2);
  const [id] = ids as [string];
  const beside = Machine.clone(hub, "beside", { home: first.home });
  const { lease } = await beside.ask("claim", "acquire", id);
  hub.git("update-ref", "-d", `refs/cotenant/claims/${id}`);
  expect((await first.ask("sync", "--force-resync", "--yes")).status).toBe(0);
  expect((await beside.ask("sync")).status).toBe(0);
  expect(hub.claim(id)).toMatchObject({ status: "held", lease_id: lease.lease_id });
});

it("what somebody else has claimed meanwhile is theirs", async () => {
  const { hub, first, ids } = await sharedIssues(2);
  const [id] = ids as [string];
  await first.ask("claim", "acquire", id);
  hub.git("update-ref", "-d", `refs/cotenant/claims/${id}`);
  const second = Machine.clone(hub, "second");
  const { lease } = await second.ask("claim", "acquire", id);
  expect((await first.ask("sync", "--force-resync", "--yes")).status).toBe(0);
  expect(await standing(first)).toEqual(["provisional"]);
  await first.ask("sync");
  expect(await standing(first)).toEqual([]);
  expect(hub.claim(id)).toMatchObject({ status: "held", lease_id: lease.lease_id });
});
