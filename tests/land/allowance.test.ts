import { describe, expect, it } from "vitest";
import { add, branchWith, headOf, LANDER, land, landingRepo } from "../support/landing";
import { expectJsonRefused } from "../support/refusals";

describe("who may land", () => {
  it("agents may add and look, and are told who may run, pause and resume", async () => {
    const repo = landingRepo();
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    const before = headOf(repo);
    for (const args of [["run"], ["pause", "--reason", "x"], ["resume"]]) {
      const ran = await repo.ask("agent:worker", "land", ...args);
      expectJsonRefused(ran, 9, "E_POLICY");
      expect(ran.error.hint).toContain("policy.land");
      expect(ran.error.hint).toContain(`cotenant land ${args[0]}`);
    }
    expect(headOf(repo)).toBe(before);
    expect((await repo.ask("ci:github", "land", "run")).data["landed"]).toBe(1);
  });

  it("policy.land may be tightened by the repository, and loosened only with trust", async () => {
    const repo = landingRepo();
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    repo.write(".cotenant/config.toml", '[policy]\nland = ["ci:*"]\n');
    expectJsonRefused(await land(repo), 9, "E_POLICY");
    repo.write(".cotenant/config.toml", '[policy]\nland = ["*"]\n');
    expectJsonRefused(await repo.ask("agent:worker", "land", "run"), 9, "E_POLICY");
    await repo.prepare(LANDER, "trust");
    expect((await repo.ask("agent:worker", "land", "run")).data["landed"]).toBe(1);
  });

  it("checks that nobody trusts are not run, and nothing lands without them", async () => {
    const repo = landingRepo();
    repo.write(".cotenant/config.toml", '[land]\nchecks = ["touch ran"]\n');
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "second");
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    const ran = await land(repo);
    expectJsonRefused(ran, 9, "E_UNTRUSTED");
    expect(ran.error.hint).toContain("cotenant trust");
    await repo.prepare(LANDER, "trust");
    expect((await land(repo)).data).toMatchObject({ landed: 1, checks: 1 });
  });
});
