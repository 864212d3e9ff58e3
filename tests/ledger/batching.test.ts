import { describe, expect, it } from "vitest";
import { openRepository } from "../../src/index";
import { behindProxy, Machine, sharedIssues } from "../support/machines";

describe("a long-lived process with many callers", () => {
  it("takes many claims in few exchanges, each on its own merits", async () => {
    const { hub, proxy, first, ids, url } = await behindProxy(12);
    const second = Machine.clone(hub, "second", { url });
    const taken = ids.slice(0, 2);
    for (const id of taken) await second.prepare("claim", "acquire", id);
    const repository = await openRepository({
      cwd: first.repo.root,
      agentId: "agent:crew",
      env: first.libraryEnv(),
    });
    // Slower than anything that happens here, on however busy a machine.
    proxy.weather = { delayMs: 400 };
    const before = proxy.connections;
    const grants = await Promise.allSettled(ids.map((issue) => repository.acquire({ issue })));
    const exchanges = proxy.connections - before;
    for (const [i, grant] of grants.entries()) {
      if (taken.includes(ids[i]!))
        expect(grant).toMatchObject({ status: "rejected", reason: { code: "E_LOCK_CONFLICT" } });
      else
        expect(grant).toMatchObject({
          status: "fulfilled",
          value: { ledger: { isOffline: false, retries: 0 } },
        });
    }
    // One by one it would be one or two for each.
    expect(exchanges).toBeLessThan(ids.length / 2);
    for (const id of ids) expect(hub.claim(id)).toMatchObject({ status: "held" });
    const mid = proxy.connections;
    await Promise.all(ids.slice(2).map((issue) => repository.release({ issue })));
    expect(proxy.connections - mid).toBeLessThan(ids.length / 2);
    for (const id of ids.slice(2)) expect(hub.claim(id)).toMatchObject({ status: "released" });
  });

  it("several claims in one request are all or nothing, at the remote too", async () => {
    const { hub, first, ids } = await sharedIssues(3);
    const second = Machine.clone(hub, "second");
    await second.prepare("claim", "acquire", ids[2]!);
    const repository = await openRepository({
      cwd: first.repo.root,
      agentId: "agent:crew",
      env: first.libraryEnv(),
    });
    await expect(repository.acquire(ids.map((issue) => ({ issue })))).rejects.toMatchObject({
      code: "E_LOCK_CONFLICT",
    });
    expect(await repository.list()).toEqual([]);
    expect(Object.keys(hub.refs("refs/cotenant/claims/"))).toHaveLength(1);
    const { leases } = await repository.acquire([
      ...ids.slice(0, 2).map((issue) => ({ issue })),
      { file: "a.txt" },
    ]);
    expect(leases).toHaveLength(3);
    expect(leases[0]!.ttlSecs).toBe(3600);
    for (const id of ids.slice(0, 2)) expect(hub.claim(id)).toMatchObject({ agent_id: "agent:crew" });
  });
});
