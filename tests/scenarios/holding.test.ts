import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { type LeaseJson, until } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

const NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

let repo: TestRepo;
let id: string;
beforeEach(async () => {
  repo = TestRepo.make();
  id = await repo.issue();
});

/** Agent a's claim on the one issue. */
async function claimed(...args: string[]): Promise<LeaseJson> {
  return (await repo.prepare("agent:a", "claim", "acquire", id, ...args)).lease;
}

async function expired(): Promise<LeaseJson> {
  const lease = await claimed("--ttl", "1");
  await until(
    "it has run out",
    async () => (await repo.prepare("agent:b", "claim", "status")).leases.length === 0,
  );
  return lease;
}

describe("S7: TTL 0", () => {
  it("is refused without a reason", async () => {
    const acquire = ["claim", "acquire", id, "--ttl", "0"];
    for (const ran of [
      await repo.run("agent:a", ...acquire),
      await repo.runHere("agent:a", ...acquire, "--reason", ""),
      await repo.runHere("agent:a", ...acquire, "--reason", "  "),
    ]) {
      expectRefused(ran, 9, "E_POLICY");
      expect(ran.stderr).toContain("--reason");
    }
    expect((await repo.askHere("agent:a", "claim", "status")).data.leases).toEqual([]);
  });

  it("has no expiry with one, and is shown as indefinite", async () => {
    const args = ["claim", "acquire", id, "--ttl", "0", "--reason", "a long migration"];
    const { lease } = await repo.ask("agent:a", ...args);
    expect(lease).toMatchObject({
      expires_at: null,
      ttl_secs: 0,
      indefinite: true,
      reason: "a long migration",
    });
    for (const look of [["claim", "status"], ["status"], ["issue", "show", id]]) {
      expect((await repo.runHere("agent:a", ...look)).stdout).toContain("indefinite");
    }
    const refused = await repo.runHere("agent:b", "claim", "acquire", id);
    expectRefused(refused, 1, "E_LOCK_CONFLICT");
    expect(refused.stderr).toContain("without expiry");
  });

  it("is refused for kinds of key that the repository does not permit", async () => {
    const ran = await repo.run("agent:a", "lock", "acquire", "a.txt", "--ttl", "0", "--reason", "r");
    expectRefused(ran, 9, "E_POLICY");
  });
});

describe("S8: a third indefinite lease for one agent", () => {
  it("is refused by the limit, until one is given back", async () => {
    const ids = [id, await repo.issue("2"), await repo.issue("3")];
    const acquire = (agent: string, issue: string) =>
      repo.ask(agent, "claim", "acquire", issue, "--ttl", "0", "--reason", "r");
    for (const issue of ids.slice(0, 2))
      await repo.prepare("agent:a", "claim", "acquire", issue, "--ttl", "0", "--reason", "r");
    const third = await acquire("agent:a", ids[2]!);
    expectJsonRefused(third, 9, "E_LIMIT");
    expect(third.error.message).toContain("the limit is 2");
    expect((await acquire("agent:b", ids[2]!)).status).toBe(0);
    await repo.prepare("agent:b", "claim", "release", ids[2]!);
    await repo.prepare("agent:a", "claim", "release", ids[0]!);
    expect((await acquire("agent:a", ids[2]!)).status).toBe(0);
  });
});

describe("S9: heartbeat", () => {
  it("moves last_beat and nothing else", async () => {
    const { last_beat: before, ...rest } = await claimed();
    const ran = await repo.ask("agent:a", "claim", "heartbeat", id);
    const { last_beat: after, ...others } = ran.lease;
    expect(Date.parse(after)).toBeGreaterThan(Date.parse(before));
    expect(others).toEqual(rest);
    const { leases } = await repo.prepare("agent:b", "claim", "status");
    expect(leases).toEqual([expect.objectContaining({ last_beat: after, expires_at: rest.expires_at })]);
  });

  it("exits with 4 on an unknown lease", async () => {
    expectRefused(await repo.run("agent:a", "claim", "heartbeat", NOBODY), 4, "E_NOT_FOUND");
    expectRefused(await repo.runHere("agent:a", "claim", "heartbeat", id), 4, "E_NOT_FOUND");
    await claimed();
    await repo.prepare("agent:a", "claim", "release", id);
    expectRefused(await repo.runHere("agent:a", "claim", "heartbeat", id), 4, "E_NOT_FOUND");
  });

  it("is the holder's alone", async () => {
    await claimed();
    expectRefused(await repo.run("agent:b", "claim", "heartbeat", id), 6, "E_LOCK_NOT_HELD");
  });
});

describe("S10: renew", () => {
  it("by another exits with 6, also when it was refused the claim before", async () => {
    await claimed();
    expectRefused(await repo.runHere("agent:b", "claim", "acquire", id), 1, "E_LOCK_CONFLICT");
    expectRefused(await repo.run("agent:b", "claim", "renew", id), 6, "E_LOCK_NOT_HELD");
  });

  it("by the owner extends", async () => {
    const lease = await claimed();
    for (const name of [id, lease.lease_id]) {
      const renewed = (await repo.ask("agent:a", "claim", "renew", name, "--ttl", "1200")).lease;
      expect(Date.parse(renewed.expires_at!)).toBeGreaterThan(Date.parse(lease.expires_at!) + 590_000);
      expect(renewed).toMatchObject({ lease_id: lease.lease_id, fencing_token: lease.fencing_token });
    }
  });

  it("never shortens", async () => {
    const lease = await claimed();
    const renewed = (await repo.ask("agent:a", "claim", "renew", id, "--ttl", "5")).lease;
    // The same instant on the monotonic clock; read off the wall it may be a millisecond away.
    expect(Date.parse(renewed.expires_at!)).toBeGreaterThan(Date.parse(lease.expires_at!) - 10);
  });

  it("by another exits with 6 and names the holder", async () => {
    const lease = await claimed();
    for (const name of [id, lease.lease_id]) {
      const ran = await repo.run("agent:b", "claim", "renew", name);
      expectRefused(ran, 6, "E_LOCK_NOT_HELD");
      expect(ran.stderr).toContain("agent:a");
    }
  });

  it("after expiry exits with 7", async () => {
    const lease = await expired();
    for (const name of [id, lease.lease_id])
      expectRefused(await repo.run("agent:a", "claim", "renew", name), 7, "E_LOCK_EXPIRED");
    await repo.prepare("agent:b", "lock", "gc");
    expectRefused(await repo.runHere("agent:a", "claim", "renew", id), 7, "E_LOCK_EXPIRED");
  });

  it("past max_total_secs exits with 9, unless it is overridden with a reason", async () => {
    const lease = await claimed();
    expect(lease.max_total_secs).toBe(86_400);
    const ran = await repo.run("agent:a", "claim", "renew", id, "--ttl", "86400");
    expectRefused(ran, 9, "E_LIMIT");
    expect(ran.stderr).toMatch(/86400 s in all; 863\d\d s of that are left/);
    const override = ["claim", "renew", id, "--ttl", "86400", "--override-max"];
    expectRefused(await repo.runHere("agent:a", ...override), 64, "E_USAGE");
    const renewed = (await repo.ask("agent:a", ...override, "--reason", "a long build")).lease;
    expect(Date.parse(renewed.expires_at!)).toBeGreaterThan(Date.parse(lease.acquired_at) + 86_400_000);
    expect(repo.log().at(-1)).toMatchObject({
      event_type: "claim.renewed",
      payload: { reason: "a long build" },
    });
  });
});

describe("S11: release", () => {
  it("frees the key at once, and the next token is higher", async () => {
    const lease = await claimed();
    expect((await repo.ask("agent:a", "claim", "release", id)).lease.lease_id).toBe(lease.lease_id);
    expect((await repo.askHere("agent:a", "claim", "status")).data.leases).toEqual([]);
    const next = (await repo.prepare("agent:b", "claim", "acquire", id)).lease;
    expect(next.fencing_token).toBeGreaterThan(lease.fencing_token);
    expect(next.stole_from).toEqual([]);
  });

  it("of an expired lease that nobody took succeeds", async () => {
    await expired();
    expect((await repo.run("agent:a", "claim", "release", id)).status).toBe(0);
  });

  it("cannot release the successor's lease", async () => {
    await expired();
    const next = (await repo.prepare("agent:b", "claim", "acquire", id)).lease;
    expectRefused(await repo.run("agent:a", "claim", "release", id), 8, "E_FENCING_MISMATCH");
    expectRefused(await repo.runHere("agent:a", "claim", "release", next.lease_id), 6, "E_LOCK_NOT_HELD");
    expect((await repo.askHere("agent:b", "claim", "renew", id)).lease.lease_id).toBe(next.lease_id);
  });
});
