import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
let needed: string;
let blocked: string;
beforeEach(async () => {
  repo = TestRepo.make();
  needed = await repo.issue("Needed");
  const create = ["issue", "create", "--title", "Blocked", "--depends-on", needed];
  blocked = (await repo.prepare("agent:planner", ...create)).issue.id;
});

const ask = (...args: string[]) => repo.askHere("agent:a", ...args);
const because = ["--allow-blocked", "--reason", "the other one is nearly there"];

describe("an issue that waits for another", () => {
  it("is not claimed, with --if-ready neither, unless somebody says why", async () => {
    for (const more of [[], ["--if-ready"], ["--wait"]]) {
      const refused = await ask("claim", "acquire", blocked, ...more);
      expectJsonRefused(refused, 9, "E_POLICY");
      expect(refused.error.data).toMatchObject({ blocked_by: [needed] });
      expect(refused.error.hint).toContain("--allow-blocked --reason");
    }
    expectRefused(
      await repo.runHere("agent:a", "claim", "acquire", blocked, "--allow-blocked"),
      64,
      "E_USAGE",
    );
    expect((await ask("claim", "list")).data.leases).toEqual([]);
    const claimed = await ask("claim", "acquire", blocked, ...because);
    expect(claimed.lease.reason).toBe("the other one is nearly there");
    // Lists have what it is called, not its id alone.
    expect((await repo.runHere("agent:a", "issue", "show", blocked)).stdout).toMatch(
      /^ {2}needs +\w{4} {2}Needed$/m,
    );
    await repo.prepare("agent:b", "claim", "acquire", needed);
    expect((await repo.runHere("agent:b", "claim", "status")).stdout).toContain('"Needed"');
    // Whoever holds it may ask again.
    expect((await ask("claim", "acquire", blocked)).data.changed).toBe(false);
  });

  it("is not claimed as it is made, nor from a new worktree", async () => {
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    const create = ["claim", "create", "--title", "Next", "--depends-on", needed];
    expectJsonRefused(await ask(...create), 9, "E_POLICY");
    expectJsonRefused(await ask("worktree", "create", "--issue", blocked, "--claim"), 9, "E_POLICY");
    expect((await ask("issue", "list")).data["issues"]).toHaveLength(2);
    expect(repo.git("worktree", "list", "--porcelain").match(/^worktree /gm)).toHaveLength(1);
    expect((await ask(...create, ...because)).status).toBe(0);
    const there = await ask("worktree", "create", "--issue", blocked, "--claim", ...because);
    expect(there.lease.issue_id).toBe(blocked);
  });

  it("is not done, unless somebody says why; and is both once the other is over", async () => {
    await repo.prepare("agent:a", "claim", "acquire", blocked, ...because);
    for (const finish of [
      ["issue", "update", blocked, "--state", "done"],
      ["close", blocked, "--reason", "done it"],
    ]) {
      expectJsonRefused(await ask(...finish), 9, "E_POLICY");
      expect((await ask("issue", "show", blocked)).data.issue).toMatchObject({ state: "in_progress" });
    }
    expectJsonRefused(await ask("close", blocked, "--allow-blocked"), 64, "E_USAGE");
    const closed = await ask("close", blocked, ...because);
    expect(closed.data.issue).toMatchObject({ state: "done", resolution: "the other one is nearly there" });

    const other = await repo.prepare(
      "agent:b",
      "issue",
      "create",
      "--title",
      "Third",
      "--depends-on",
      needed,
    );
    await repo.prepare("agent:b", "claim", "acquire", needed);
    await repo.prepare("agent:b", "close", needed);
    await repo.prepare("agent:b", "claim", "acquire", other.issue.id);
    await repo.prepare("agent:b", "close", other.issue.id);
  });

  it("is not done because what it needs was added while it was worked on", async () => {
    await repo.prepare("agent:a", "claim", "acquire", needed);
    const late = await repo.issue("Found on the way");
    await repo.prepare("agent:a", "dep", "add", needed, late);
    expectJsonRefused(await ask("close", needed), 9, "E_POLICY");
    await repo.prepare("agent:a", "dep", "rm", needed, late);
    await repo.prepare("agent:a", "close", needed);
  });
});
