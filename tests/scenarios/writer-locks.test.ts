import { describe, expect, it } from "vitest";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

function repository(): TestRepo {
  const repo = TestRepo.make();
  repo.write("a.txt");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

async function expired(repo: TestRepo, agent: string): Promise<number> {
  const { lease } = await repo.prepare(agent, "worktree", "lock", "--ttl", "1");
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  return lease.fencing_token;
}

describe("S55: a worktree's writer lock", () => {
  it("has one holder, with the record that programs know", async () => {
    const repo = repository();
    const ran = await repo.ask("agent:a", "worktree", "lock");
    const { worktree_id: id, lease_id: leaseId, fencing_token: token } = ran.lease;
    expect(ran.data["lock"]).toEqual({
      lock_id: leaseId,
      worktree_id: id,
      holder_id: expect.stringMatching(/^[^:]+:\d+:\d+:\d+$/),
      created_at: ran.lease.acquired_at,
      last_renewed_at: ran.lease.renewed_at,
      lease_expires_at: ran.lease.expires_at,
      fencing_token: token,
    });
    const second = await repo.ask("agent:b", "worktree", "lock");
    expectJsonRefused(second, 1, "E_LOCK_CONFLICT");
    expect(second.error.data.holders?.[0]?.agent_id).toBe("agent:a");
    const again = await repo.ask("agent:a", "worktree", "lock");
    expect(again.lease.lease_id).toBe(leaseId);
    expect(again.data.changed).toBe(false);
    expect((await repo.prepare("agent:a", "worktree", "list")).worktrees[0]).toMatchObject({
      locked_by: "agent:a",
      leases: 1,
    });
  });

  it("is renewed and given back by its holder alone, and not renewed once it has run out", async () => {
    const repo = repository();
    await repo.prepare("agent:a", "worktree", "lock", "--ttl", "60");
    expectJsonRefused(await repo.ask("agent:b", "worktree", "renew"), 6, "E_LOCK_NOT_HELD");
    expectJsonRefused(await repo.ask("agent:b", "worktree", "unlock"), 6, "E_LOCK_NOT_HELD");
    const renewed = await repo.ask("agent:a", "worktree", "renew", "--ttl", "600");
    expect(Date.parse(renewed.lease.expires_at!)).toBeGreaterThan(Date.now() + 300_000);
    expect((await repo.ask("agent:a", "worktree", "unlock")).status).toBe(0);
    await expired(repo, "agent:a");
    expectJsonRefused(await repo.ask("agent:a", "worktree", "renew"), 7, "E_LOCK_EXPIRED");
  });

  it("has none to give in a shared worktree", async () => {
    const repo = repository();
    await repo.prepare("agent:a", "worktree", "lock");
    expectJsonRefused(await repo.ask("agent:b", "worktree", "access", "shared"), 1, "E_LOCK_CONFLICT");
    expect((await repo.ask("agent:a", "worktree", "access", "shared")).data["changed"]).toBe(true);
    expectJsonRefused(await repo.ask("agent:b", "worktree", "lock"), 9, "E_POLICY");
    expect((await repo.askHere("agent:b", "worktree", "access")).data["access"]).toBe("shared");
    expect((await repo.ask("agent:b", "worktree", "access", "exclusive")).data["changed"]).toBe(true);
    expect((await repo.askHere("agent:b", "worktree", "lock")).status).toBe(0);
    expectJsonRefused(await repo.askHere("agent:b", "worktree", "access", "open"), 64, "E_USAGE");
  });
});

describe("S56: stealing a writer lock", () => {
  it("is refused while it is live, whoever asks and for whatever reason", async () => {
    const repo = repository();
    await repo.prepare("agent:a", "worktree", "lock");
    expectJsonRefused(await repo.ask("agent:b", "worktree", "steal"), 1, "E_LOCK_CONFLICT");
    const human = await repo.ask("human:ada", "worktree", "steal", "--reason", "I want it");
    expectJsonRefused(human, 1, "E_LOCK_CONFLICT");
  });

  it("gives a higher token once it has run out, says from whom, and keeps what was there first", async () => {
    const repo = repository();
    const token = await expired(repo, "agent:a");
    repo.write("unsaved.txt", "what agent:a was doing\n");
    const stolen = await repo.ask("agent:b", "worktree", "steal");
    expect(stolen.lease.fencing_token).toBeGreaterThan(token);
    expect(stolen.lease.stole_from).toEqual([
      expect.objectContaining({ agent_id: "agent:a", why: "expired" }),
    ]);
    const { snapshots } = (await repo.prepare("agent:b", "history")) as unknown as {
      snapshots: Record<string, unknown>[];
    };
    expect(snapshots).toEqual([
      expect.objectContaining({
        snapshot_id: stolen.data["snapshot_id"],
        automatic: "steal",
        consistency_level: "best_effort",
        warning: true,
        fencing_token: stolen.lease.fencing_token,
      }),
    ]);
    const types = repo.log().map(({ event_type: type }) => type);
    expect(types.indexOf("snapshot.ready"), "granted first, PROTOCOL 22").toBeGreaterThan(
      types.lastIndexOf("claim.acquired"),
    );
    expectJsonRefused(await repo.ask("agent:a", "worktree", "renew"), 8, "E_FENCING_MISMATCH");
    expectJsonRefused(await repo.ask("agent:a", "worktree", "unlock"), 8, "E_FENCING_MISMATCH");
  });

  it("goes to exactly one of many", async () => {
    const repo = repository();
    await expired(repo, "agent:a");
    const racing = Array.from({ length: 6 }, (_, n) =>
      repo.start(`agent:thief-${n}`, ["worktree", "steal", "--json"], { held: true }),
    );
    for (const one of racing) one.go();
    const ran = await Promise.all(racing.map(({ done }) => done));
    expect(ran.filter(({ status }) => status === 0)).toHaveLength(1);
    for (const one of ran) if (one.status !== 0) expectJsonRefused(one, 1, "E_LOCK_CONFLICT");
    const tokens = repo.logOf(`worktree:${ran.find(({ status }) => status === 0)!.lease.worktree_id}`);
    expect(tokens.filter(({ event_type: type }) => type === "claim.acquired")).toHaveLength(2);
  });
});
