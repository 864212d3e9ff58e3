import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { type LeaseJson, type Ran, until } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

let repo: TestRepo;
let id: string;
let lease: LeaseJson;
beforeEach(async () => {
  repo = TestRepo.make();
  id = await repo.issue();
  lease = (await repo.prepare("agent:a", "claim", "acquire", id)).lease;
});

async function expectFencedOff(agent: string): Promise<void> {
  expectRefused(await repo.run(agent, "claim", "renew", id), 8, "E_FENCING_MISMATCH");
  for (const verb of ["renew", "heartbeat", "release"]) {
    for (const name of [id, lease.lease_id])
      expectRefused(await repo.runHere(agent, "claim", verb, name), 8, "E_FENCING_MISMATCH");
  }
  const handOver = await repo.runHere(
    agent,
    "claim",
    "transfer",
    id,
    "--to-agent",
    "agent:c",
    "--reason",
    "r",
  );
  expectRefused(handOver, 8, "E_FENCING_MISMATCH");
}

describe("S12: force-evict", () => {
  const evict = (agent: string, ...args: string[]) => repo.run(agent, "claim", "force-evict", ...args);

  it("without a reason exits with 64", async () => {
    expectRefused(await evict("human:ada", id), 64, "E_USAGE");
    expectRefused(
      await repo.runHere("human:ada", "claim", "force-evict", id, "--reason", " "),
      64,
      "E_USAGE",
    );
    expect((await repo.askHere("agent:a", "claim", "renew", id)).status).toBe(0);
  });

  it("by an agent exits with 9, as it does for a person's id inside a harness", async () => {
    expectRefused(await evict("agent:b", id, "--reason", "r"), 9, "E_POLICY");
    const inHarness = await repo.askWith(
      { CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: "f3b0c442-98fc-4c14-9afb-f4c8996fb924" },
      "human:ada",
      "claim",
      "force-evict",
      id,
      "--reason",
      "r",
    );
    expectJsonRefused(inHarness, 9, "E_POLICY");
    expect((await repo.askHere("agent:a", "claim", "renew", id)).status).toBe(0);
  });

  it("by a human with a reason ends it, logged with actor and reason, and fences off the old holder", async () => {
    const ran = await evict("human:ada", id, "--reason", "its machine is gone");
    expect(ran.status).toBe(0);
    expect(ran.stdout).toContain("agent:a");
    expect((await repo.askHere("agent:b", "claim", "status")).data.leases).toEqual([]);
    expect(repo.log().at(-1)).toMatchObject({
      event_type: "claim.evicted",
      actor: { agent_id: "human:ada" },
      payload: {
        reason: "its machine is gone",
        ended: [{ lease_id: lease.lease_id, agent_id: "agent:a", cause: "forced" }],
      },
    });
    await expectFencedOff("agent:a");
  });

  it("still fences off the old holder when somebody else has the issue", async () => {
    await repo.prepare("human:ada", "claim", "force-evict", id, "--reason", "r");
    const next = (await repo.prepare("agent:b", "claim", "acquire", id)).lease;
    expect(next.fencing_token).toBeGreaterThan(lease.fencing_token);
    await expectFencedOff("agent:a");
    expect((await repo.ask("agent:b", "claim", "renew", id)).lease.lease_id).toBe(next.lease_id);
  });
});

describe("S14: transfer", () => {
  const transfer = (from: string, to: string, ...args: string[]) =>
    repo.ask(from, "claim", "transfer", id, "--to-agent", to, "--reason", "over to you", ...args);

  it("makes the new holder hold it, and the old one does no longer", async () => {
    const moved = (await transfer("agent:a", "agent:b")).lease;
    expect(moved).toMatchObject({ key: lease.key, agent_id: "agent:b", reason: "over to you" });
    expect(moved.lease_id).not.toBe(lease.lease_id);
    expect(moved.fencing_token).toBeGreaterThan(lease.fencing_token);
    expect(repo.log().at(-1)).toMatchObject({
      event_type: "claim.transferred",
      actor: { agent_id: "agent:a" },
      payload: {
        reason: "over to you",
        leases: [{ agent_id: "agent:b" }],
        ended: [{ agent_id: "agent:a", cause: "transferred" }],
      },
    });
    await expectFencedOff("agent:a");
    expect((await repo.ask("agent:b", "claim", "renew", id)).lease.lease_id).toBe(moved.lease_id);
    expect((await repo.askHere("agent:b", "claim", "status", "--mine")).data.leases).toHaveLength(1);
  });

  it("is adopted by the new holder's acquire, too", async () => {
    const moved = (await transfer("agent:a", "agent:b")).lease;
    expect((await repo.ask("agent:b", "claim", "acquire", id)).lease.lease_id).toBe(moved.lease_id);
    expect((await repo.askHere("agent:b", "claim", "release", id)).status).toBe(0);
  });

  it("goes to the worktree it names, and is adopted only there", async () => {
    const feature = repo.addWorktree("feature");
    const { worktree_id } = (await feature.prepare("agent:b", "worktree", "init")).worktree;
    await transfer("agent:a", "agent:b", "--to-worktree", worktree_id);
    expectJsonRefused(await repo.ask("agent:b", "claim", "renew", id), 6, "E_LOCK_NOT_HELD");
    expectJsonRefused(await repo.askHere("agent:b", "claim", "acquire", id), 1, "E_LOCK_CONFLICT");
    expect((await feature.ask("agent:b", "claim", "renew", id)).lease).toMatchObject({ worktree_id });
  });

  it("leaves no instant in which a third party could have taken it", async () => {
    const holders = ["agent:a", ...Array.from({ length: 10 }, (_, i) => `agent:next-${i}`)];
    let hammering = true;
    const attempts: Ran[] = [];
    const hammer = async (agent: string) => {
      while (hammering) attempts.push(await repo.ask(agent, "claim", "acquire", id));
    };
    const hammers = ["agent:x", "agent:y", "agent:z"].map(hammer);
    try {
      for (const [turn, to] of holders.slice(1).entries()) {
        expect((await transfer(holders[turn]!, to)).lease.agent_id).toBe(to);
        await until("somebody has tried", () => attempts.length > turn);
      }
    } finally {
      hammering = false;
      await Promise.all(hammers);
    }

    expect(attempts.length).toBeGreaterThan(10);
    for (const attempt of attempts) expectJsonRefused(attempt, 1, "E_LOCK_CONFLICT");
    const lines = repo.logOf(`issue:${id}`);
    expect(lines.flatMap((line) => line.payload.leases.map(({ agent_id }) => agent_id))).toEqual(holders);
    const tokens = lines.map((line) => line.payload.leases[0]!.fencing_token);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  it("can be handed back", async () => {
    await transfer("agent:a", "agent:b");
    const back = (await transfer("agent:b", "agent:a")).lease;
    expect((await repo.ask("agent:a", "claim", "renew", id)).lease.lease_id).toBe(back.lease_id);
    expect((await repo.askHere("agent:a", "claim", "release", id)).status).toBe(0);
  });

  it("needs a reason and a target", async () => {
    expectRefused(await repo.run("agent:a", "claim", "transfer", id, "--to-agent", "agent:b"), 64, "E_USAGE");
    expectRefused(await repo.runHere("agent:a", "claim", "transfer", id, "--reason", "r"), 64, "E_USAGE");
    expectJsonRefused(await transfer("agent:a", "agent:b", "--to-worktree", "wt:00000000"), 4, "E_NOT_FOUND");
    expectJsonRefused(await transfer("agent:c", "agent:b"), 6, "E_LOCK_NOT_HELD");
  });
});
