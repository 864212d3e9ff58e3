import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { gitWithDoor, KILL_CALLER } from "../support/slow-git";

const it = oneIn(5);

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

describe("a writer lock that was lost", () => {
  const lose = async (repo: TestRepo, how: string) => {
    await expired(repo, "agent:a");
    expect((await repo.askHere("agent:a", "worktree", "renew")).status).toBe(7);
    if (how === "logged by gc") await repo.prepare("agent:b", "gc");
    if (how !== "taken over and given back") return;
    await repo.prepare("agent:b", "worktree", "lock");
    await repo.prepare("agent:b", "worktree", "unlock");
  };

  it.each([
    ["expired", 7, "E_LOCK_EXPIRED"],
    ["logged by gc", 7, "E_LOCK_EXPIRED"],
    ["taken over and given back", 8, "E_FENCING_MISMATCH"],
  ])("%s: no snapshot by its former holder until it takes the lock again", async (how, status, code) => {
    const repo = TestRepo.make();
    repo.write("a.txt", "a\n");
    await lose(repo, how);
    const before = (await repo.prepare("agent:a", "history", "--all"))["snapshots"];
    for (const command of ["snapshot", "snapshot --consistency best_effort"]) {
      const ran = await repo.ask("agent:a", ...command.split(" "));
      expectJsonRefused(ran, status, code);
      expect(ran.error.hint).toContain("cotenant worktree lock");
    }
    expect((await repo.prepare("agent:a", "history", "--all"))["snapshots"]).toEqual(before);
    expect((await repo.ask("agent:c", "snapshot")).status, "somebody else has lost nothing").toBe(0);
    await repo.prepare("agent:a", "worktree", "lock");
    expect((await repo.ask("agent:a", "snapshot")).status).toBe(0);
    await repo.prepare("agent:a", "worktree", "unlock");
    expect((await repo.ask("agent:a", "snapshot")).status, "it has been told").toBe(0);
  });

  it("only for as long as a snapshot took is nobody's loss", async () => {
    const repo = TestRepo.make();
    repo.write("a.txt", "a\n");
    const { env } = gitWithDoor("ls-files", KILL_CALLER);
    expect((await repo.start("agent:a", ["snapshot"], { env }).done).status).toBe(null);
    expect((await repo.ask("agent:a", "snapshot")).status).toBe(0);
  });
});

describe("a shared worktree", () => {
  it("is marked as high risk wherever it or a snapshot of it is shown", async () => {
    const repo = repository();
    const texts = async () => {
      const shown: string[] = [];
      for (const command of [
        "status",
        "info",
        "worktree list",
        "worktree info",
        "worktree access",
        "history",
        "info latest",
      ])
        if (!(await repo.runHere("agent:b", ...command.split(" "))).stdout.includes("high risk"))
          shown.push(command);
      return shown;
    };
    await repo.prepare("agent:a", "snapshot");
    expect(await texts(), "none of them").toHaveLength(7);
    expect((await repo.run("agent:a", "worktree", "access", "shared")).stdout).toContain("high risk");
    expect((await repo.run("agent:a", "snapshot")).stdout).toContain("high risk");
    expect(await texts()).toEqual([]);
    expect((await repo.ask("agent:b", "status")).data.worktree).toMatchObject({
      access: "shared",
      high_risk: true,
    });
    expect((await repo.ask("agent:b", "worktree", "info")).data.worktree).toMatchObject({ high_risk: true });
    expect((await repo.ask("agent:b", "history")).data["snapshots"]).toMatchObject([
      { warnings: ["best_effort", "shared_worktree"] },
      { warnings: [] },
    ]);
  });
});
