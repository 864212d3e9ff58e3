import { afterEach, beforeEach, describe, expect } from "vitest";
import { clearAfterTheDead, wallClockEnv } from "../support/faketime";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run, until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});
afterEach(clearAfterTheDead);

/** A command on a machine whose wall clock is off. */
function shifted(by: string, agent: string, ...args: string[]): Promise<Ran> {
  const env = { COTENANT_AGENT_ID: agent, ...wallClockEnv(), FAKETIME: by };
  return run([PROGRAM, ...args, "--json"], { cwd: repo.root, env });
}

describe("S18: the clock goes back two hours, then forward three days", () => {
  const JUMPS = ["-2h", "+3d"];
  const JUMP_MS: Record<string, number> = { "-2h": -7_200_000, "+3d": 259_200_000 };

  it("no lease expires early, and nothing is granted twice", async () => {
    const { lease } = await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    for (const by of JUMPS) {
      expect((await shifted(by, "agent:b", "lock", "status")).data.leases).toHaveLength(1);
      expectJsonRefused(await shifted(by, "agent:b", "lock", "acquire", "a.txt"), 1, "E_LOCK_CONFLICT");
      expectJsonRefused(await shifted(by, "agent:b", "lock", "acquire", "--dir", "."), 1, "E_LOCK_CONFLICT");
      expect((await shifted(by, "agent:a", "lock", "renew", "a.txt")).lease.lease_id).toBe(lease.lease_id);
    }
    expectJsonRefused(await repo.askHere("agent:b", "lock", "acquire", "a.txt"), 1, "E_LOCK_CONFLICT");
    expect((await shifted("+3d", "agent:b", "gc")).data.leases).toEqual([]);
    expect((await repo.askHere("agent:a", "lock", "release", "a.txt")).lease.lease_id).toBe(lease.lease_id);
  });

  it.each(JUMPS)(
    "a lease taken while it is off by %s lasts as long as it should, and no longer",
    async (by) => {
      const { lease } = await shifted(by, "agent:a", "lock", "acquire", "a.txt", "--ttl", "3");
      expect(Math.abs(Date.parse(lease.acquired_at) - Date.now())).toBeGreaterThan(3_600_000);
      const grantedMs = Date.parse(lease.acquired_at) - JUMP_MS[by]!;
      const next = await until("it has run out", async () => {
        const ran = await repo.askHere("agent:b", "lock", "acquire", "a.txt");
        if (ran.status !== 0) expectJsonRefused(ran, 1, "E_LOCK_CONFLICT");
        return ran.status === 0 && ran;
      });
      // A little less than the TTL: the clock that is off begins to count when its process does.
      expect(Date.parse(next.lease.acquired_at) - grantedMs).toBeGreaterThan(2_900);
      expect(next.lease.stole_from).toEqual([
        expect.objectContaining({ lease_id: lease.lease_id, why: "expired" }),
      ]);
      expect(next.lease.fencing_token).toBeGreaterThan(lease.fencing_token);
    },
  );

  it("a lapsed lease does not come back with the clock", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.txt", "--ttl", "1");
    await until(
      "it has run out",
      async () => (await repo.prepare("agent:b", "lock", "status")).leases.length === 0,
    );
    for (const by of JUMPS) {
      expect((await shifted(by, "agent:b", "lock", "status")).data.leases).toEqual([]);
      expectJsonRefused(await shifted(by, "agent:a", "lock", "renew", "a.txt"), 7, "E_LOCK_EXPIRED");
    }
    expect((await shifted("-2h", "agent:b", "lock", "acquire", "a.txt")).status).toBe(0);
    expectJsonRefused(await repo.askHere("agent:a", "lock", "acquire", "a.txt"), 1, "E_LOCK_CONFLICT");
  });

  it("an indefinite lease is not stale because of the jump", async () => {
    const id = await repo.issue();
    await repo.prepare("agent:a", "claim", "acquire", id, "--ttl", "0", "--reason", "r");
    const [lease] = (await shifted("+3d", "agent:b", "claim", "status")).data.leases;
    expect(lease).toMatchObject({ stale: false, expires_at: null });
  });
});
