import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { cotenant, pictureOf, TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const idOf = async (worktree: TestRepo) =>
  (await worktree.prepare("agent:a", "worktree", "info")).worktree.worktree_id;

const fileOf = (worktree: TestRepo) =>
  path.join(worktree.git("rev-parse", "--absolute-git-dir").trim(), "cotenant-worktree.json");

const storedIn = (worktree: TestRepo) => JSON.parse(fs.readFileSync(fileOf(worktree), "utf8"));

describe("S19: outside Git", () => {
  it.each([
    ["init"],
    ["status"],
    ["claim acquire abcd"],
    ["claim renew abcd"],
    ["claim release abcd"],
    ["claim status"],
    ["lock acquire a.txt"],
    ["lock status"],
    ["worktree info"],
    ["gc"],
    ["recover"],
  ])("%s exits with 10 and says what to do", async (command) => {
    const outside = scratch();
    const ran = await cotenant(outside, command.split(" "));
    expectRefused(ran, 10, "E_NOT_A_REPO");
    expect(ran.stderr).toContain("git init");
    expectJsonRefused(await cotenant(outside, [...command.split(" "), "--json"]), 10, "E_NOT_A_REPO");
    expect(pictureOf(outside)).toEqual({});
  });

  it("issue commands work on a plain .cotenant/", async () => {
    const outside = scratch();
    const made = await cotenant(outside, ["issue", "create", "--title", "Plain work", "--json"]);
    const { issue } = made.data;
    const below = path.join(outside, "a/b");
    fs.mkdirSync(below, { recursive: true });
    for (const cwd of [outside, below]) {
      expect((await cotenant(cwd, ["issue", "show", issue.short_id])).stdout).toContain("Plain work");
      expect((await cotenant(cwd, ["issue", "list", "--json"])).data["issues"]).toHaveLength(1);
    }
    expectRefused(await cotenant(outside, ["claim", "acquire", issue.id]), 10, "E_NOT_A_REPO");
  });
});

describe("S20: the worktree's id", () => {
  it("stays through git worktree move, with the leases taken there", async () => {
    const repo = TestRepo.make();
    const feature = repo.addWorktree("feature");
    const id = (await feature.prepare("agent:a", "worktree", "init")).worktree.worktree_id;
    expect(id).toMatch(/^wt:[0-9a-f]{8}$/);
    const { lease } = await feature.prepare("agent:a", "lock", "acquire", "a.txt");
    expect(lease.worktree_id).toBe(id);

    repo.git("worktree", "move", "../feature", "../elsewhere");
    const moved = repo.at("../elsewhere");
    expect(await idOf(moved)).toBe(id);
    expect(storedIn(moved).relocated_at, "a read writes nothing").toBeUndefined();
    expect((await moved.ask("agent:a", "lock", "renew", "a.txt")).lease.lease_id).toBe(lease.lease_id);
    expect(storedIn(moved)).toMatchObject({
      worktree_id: id,
      root: moved.root,
      relocated_at: expect.stringMatching(/^\d{4}-/),
    });
    expect(await idOf(moved)).toBe(id);
    const { worktrees } = (await repo.ask("agent:a", "worktree", "list")).data;
    expect(worktrees).toContainEqual(
      expect.objectContaining({ worktree_id: id, root: moved.root, leases: 1 }),
    );
  });

  it("is a new one where its file was copied", async () => {
    const repo = TestRepo.make();
    const [first, second] = [repo.addWorktree("first"), repo.addWorktree("second")];
    const id = (await first.prepare("agent:a", "worktree", "init")).worktree.worktree_id;
    fs.copyFileSync(fileOf(first), fileOf(second));

    const fresh = await idOf(second);
    expect(fresh).toMatch(/^wt:[0-9a-f]{8}$/);
    expect(fresh).not.toBe(id);
    expect((await first.ask("agent:a", "lock", "acquire", "a.txt")).status).toBe(0);
    expectJsonRefused(await second.ask("agent:a", "lock", "acquire", "a.txt"), 1, "E_LOCK_CONFLICT");
    expect(storedIn(second)).toMatchObject({ worktree_id: fresh, root: second.root });
    expect(await idOf(first)).toBe(id);
    expect(await idOf(second)).toBe(fresh);
  });

  it("is computed by reads and stored by the first writing command, which Git does not notice", async () => {
    const repo = TestRepo.make();
    const before = await idOf(repo);
    expect(fs.existsSync(fileOf(repo))).toBe(false);
    await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    expect(storedIn(repo).worktree_id).toBe(before);
    expect(repo.git("status", "--porcelain")).toBe("");
  });
});
