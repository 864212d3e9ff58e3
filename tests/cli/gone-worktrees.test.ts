import * as fs from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
});

const leases = async () => (await repo.prepare("agent:looks", "status")).leases;
const keys = async () => (await leases()).map(({ key }) => key).sort();
const needs = async () =>
  (await repo.prepare("agent:looks", "status"))["needs_a_person"] as { code: string; next: string }[];
const indefinite = ["--ttl", "0", "--reason", "long work"];

describe("leases of a worktree that was deleted by hand", () => {
  it("are named by status, and end with 'worktree remove' of it, but for what others hold beyond it", async () => {
    const feature = repo.addWorktree("feature");
    const [mine, theirs] = [await repo.issue(), await repo.issue()];
    await feature.prepare("agent:a", "claim", "acquire", mine);
    await feature.prepare("agent:a", "lock", "acquire", "a.ts");
    await feature.prepare("agent:b", "claim", "acquire", theirs);
    await feature.prepare("agent:b", "worktree", "lock", ...indefinite);
    fs.rmSync(feature.root, { recursive: true });
    expect(await needs()).toContainEqual(
      expect.objectContaining({ code: "worktree_gone", next: `cotenant worktree remove ${feature.root}` }),
    );
    const { data } = await repo.askHere("agent:a", "worktree", "remove", "feature");
    expect(data).toMatchObject({
      was_gone: true,
      still_held: [{ agent_id: "agent:b", key: `issue:${theirs}` }],
    });
    expect((data["released"] as string[]).sort()).toEqual(
      [`issue:${mine}`, "file:a.ts", `worktree:${data.worktree.worktree_id}`].sort(),
    );
    expect(await keys()).toEqual([`issue:${theirs}`]);
    expect((await repo.ask("agent:a", "claim", "acquire", mine)).status).toBe(0);
  });

  it("do not use up what may be held without expiry, also where Git has forgotten the worktree", async () => {
    for (const name of ["one", "two"]) {
      const worktree = repo.addWorktree(name);
      await worktree.prepare("agent:a", "worktree", "lock", ...indefinite);
      fs.rmSync(worktree.root, { recursive: true });
    }
    repo.git("worktree", "prune");
    expectJsonRefused(await repo.askHere("agent:a", "worktree", "lock", ...indefinite), 9, "E_LIMIT");
    expect(await needs()).toContainEqual(
      expect.objectContaining({ code: "worktree_gone", next: "cotenant gc" }),
    );
    await repo.prepare("agent:looks", "gc");
    expect(await keys()).toEqual([]);
    await repo.prepare("agent:a", "worktree", "lock", ...indefinite);
  });
});
