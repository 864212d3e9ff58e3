import { beforeEach, describe, expect, it } from "vitest";
import { openRepository } from "../../src/index";
import type { LeaseJson } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

let repo: TestRepo;
let id: string;
let lease: LeaseJson;
beforeEach(async () => {
  repo = TestRepo.make();
  id = await repo.issue();
  lease = (await repo.prepare("agent:a", "claim", "acquire", id)).lease;
});

const transfer = (agent: string, ...more: string[]) =>
  repo.run(agent, "claim", "transfer", id, "--to-agent", "agent:b", ...more);

describe("claim transfer of somebody else's claim", () => {
  it("is for those whom policy.evict allows, with a reason", async () => {
    expectRefused(await transfer("human:ada"), 64, "E_USAGE");
    expectRefused(await transfer("agent:c", "--reason", "mine"), 6, "E_LOCK_NOT_HELD");
    expect((await repo.askHere("agent:a", "claim", "renew", id)).status).toBe(0);
    expect((await transfer("human:ada", "--reason", "a is on leave")).status).toBe(0);
  });

  it("of one that has run out says so, and that nobody is in the way", async () => {
    const args = ["claim", "transfer", id, "--to-agent", "agent:b", "--reason", "late"];
    const { error } = await repo.askAt(601, "human:ada", ...args);
    expect(error.code).toBe("E_LOCK_NOT_HELD");
    expect(error.message).toContain("is nobody's any more: the lease of agent:a");
    expect(error.hint).toContain("nobody is in the way");
  });

  it("fences the old holder off, which hears who did it and why, and gives the new one a higher token", async () => {
    const ran = await transfer("human:ada", "--reason", "a is on leave");
    expect(ran.stdout).toMatch(/^issue:\S+ now belongs to agent:b in wt:[0-9a-f]{8} \(token 2\)\n$/);
    const told = "handed to agent:b by human:ada: a is on leave";
    for (const args of [
      ["claim", "renew", id],
      ["claim", "release", lease.lease_id],
      ["issue", "update", id, "--title", "mine after all"],
    ]) {
      const refused = await repo.askHere("agent:a", ...args);
      expect([6, 8], `${refused}`).toContain(refused.status);
    }
    const refused = await repo.run("agent:a", "claim", "heartbeat", id);
    expectRefused(refused, 8, "E_FENCING_MISMATCH");
    expect(refused.stderr).toContain(told);
    expect(repo.log().at(-1)).toMatchObject({
      event_type: "claim.transferred",
      actor: { agent_id: "human:ada" },
      payload: {
        reason: "a is on leave",
        leases: [{ agent_id: "agent:b", fencing_token: 2 }],
        ended: [{ agent_id: "agent:a", cause: "transferred", why: told }],
      },
    });
    const events = await repo.run("agent:a", "events", "--type", "transferred");
    expect(events.stdout).toMatch(/human:ada .*to agent:b {2}taken from agent:a {2}"a is on leave"/);
    const taken = (await repo.prepare("agent:b", "claim", "renew", id)).lease;
    expect(taken.fencing_token).toBe(2);
    await repo.prepare("agent:b", "issue", "update", id, "--title", "mine now");
  });

  it("follows policy.evict as it is set", async () => {
    const env = { COTENANT_POLICY_EVICT: "admin:*" };
    const args = ["claim", "transfer", id, "--to-agent", "agent:b", "--reason", "r"];
    expectJsonRefused(await repo.askWith(env, "human:ada", ...args), 6, "E_LOCK_NOT_HELD");
    expect((await repo.askWith(env, "admin:root", ...args)).status).toBe(0);
  });

  it("can be done by programs", async () => {
    const ada = await openRepository({ cwd: repo.root, agentId: "human:ada" });
    const { leases } = await ada.transfer({ issue: id }, { toAgent: "agent:b", reason: "a is on leave" });
    expect(leases).toMatchObject([{ agentId: "agent:b", fencingToken: 2 }]);
  });
});
