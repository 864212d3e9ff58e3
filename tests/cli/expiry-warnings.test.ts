import { describe, expect, it } from "vitest";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";

describe("a lease with less than 10 % of its time left", () => {
  it("is warned of on any command of its holder, and of nobody else", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", id, "--ttl", "10");
    expect((await repo.ask("agent:a", "status")).json.warnings).toBeUndefined();
    const almost = Date.parse(lease.expires_at!) - 1_500;
    await until("little of it is left", () => Date.now() > almost);
    const warned = await until("it is warned of", async () => {
      const ran = await repo.askHere("agent:a", "status");
      return ran.json.warnings !== undefined && ran;
    });
    expect(Date.parse(lease.expires_at!) - Date.now()).toBeLessThan(1_000);
    expect(warned.json.warnings).toEqual([expect.stringContaining(`cotenant claim renew ${lease.lease_id}`)]);
    expect(warned.stderr).toContain("warning");
    const [mine, others] = await Promise.all([
      repo.run("agent:a", "lock", "status"),
      repo.ask("agent:b", "status"),
    ]);
    expect(mine.stderr).toContain(`issue:${id}`);
    expect(others.json.warnings).toBeUndefined();
  });

  it("can be told sooner by configuration, and is renewed by writing commands before that", async () => {
    const repo = TestRepo.make();
    const { lease } = await repo.prepare("agent:a", "lock", "acquire", "a.ts", "--ttl", "4");
    const env = { COTENANT_COORDINATION_LEASE_RENEWAL_THRESHOLD_PCT: "100" };
    expect((await repo.askWith(env, "agent:a", "status")).json.warnings).toHaveLength(1);
    const half = Date.parse(lease.acquired_at) + 2_100;
    await until("half of it has passed", () => Date.now() > half);
    await repo.prepare("agent:a", "lock", "acquire", "b.ts");
    const renewed = (await repo.ask("agent:a", "lock", "status")).data.leases.find(
      ({ key }) => key === "file:a.ts",
    );
    expect(Date.parse(renewed!.expires_at!)).toBeGreaterThan(Date.parse(lease.expires_at!));
  });
});
