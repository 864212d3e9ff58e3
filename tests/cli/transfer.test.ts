import * as fs from "node:fs";
import * as path from "node:path";
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

it("of one's own says afterwards who has it, also once the log was compacted", async () => {
  expect((await transfer("agent:a", "--reason", "for review")).status).toBe(0);
  const told = async () => (await repo.ask("agent:a", "claim", "renew", lease.lease_id)).error.message;
  const said = `that lease on issue:${id} is no more: handed to agent:b`;
  expect(await told()).toBe(said);
  await repo.prepare("agent:a", "gc", "--compact");
  fs.rmSync(path.join(repo.control, "index"), { recursive: true });
  expect(await told()).toBe(said);
  const { stdout } = await repo.run("agent:a", "events", "--type", "transferred");
  expect(stdout).toContain("to agent:b");
  expect(stdout).not.toContain("taken from");
});

describe("claim transfer of somebody else's claim", () => {
  it("is for those whom policy.evict allows, with a reason", async () => {
    expectRefused(await transfer("human:ada"), 64, "E_USAGE");
    expectRefused(await transfer("agent:c", "--reason", "mine"), 6, "E_LOCK_NOT_HELD");
    expect((await repo.askHere("agent:a", "claim", "renew", id)).status).toBe(0);
    expect((await transfer("human:ada", "--reason", "a is on leave")).status).toBe(0);
  });

  describe("that has run out", () => {
    const late = (agent: string) =>
      repo.askAt(601, agent, "claim", "transfer", id, "--to-agent", "agent:b", "--reason", "late");

    it.each([
      ["whoever may end it", "human:ada", "E_LOCK_NOT_HELD"],
      ["another agent", "agent:c", "E_LOCK_NOT_HELD"],
      ["its former holder", "agent:a", "E_LOCK_EXPIRED"],
    ])("tells %s that nobody holds it, and how it is had", async (_, agent, code) => {
      const { error } = await late(agent);
      expect(error.code).toBe(code);
      expect(error.message).toContain("has expired");
      expect(error.message).not.toMatch(/is held by (?!nobody)/);
      expect(error.hint).toContain("nobody holds it");
      const taking = /agent:b can take it with 'cotenant (.+)'/.exec(error.hint)![1]!.split(" ");
      const { data } = await repo.askAt(601, "agent:b", ...taking);
      expect(data.lease).toMatchObject({ agent_id: "agent:b", key: `issue:${id}` });
    });

    it("is nobody's also for its former holder who has lost the secret", async () => {
      fs.rmSync(path.join(repo.control, "secrets"), { recursive: true });
      const { error } = await late("agent:a");
      expect(error.message).toMatch(/^issue:\S+ is held by nobody: your lease has expired$/);
      expect(error.hint).toContain("agent:b can take it with");
    });

    it("is told the same once its end was logged", async () => {
      await repo.askAt(601, "agent:c", "gc");
      for (const agent of ["human:ada", "agent:a"])
        expect((await late(agent)).error.hint).toContain(
          `agent:b can take it with 'cotenant claim acquire ${id}'`,
        );
    });
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
