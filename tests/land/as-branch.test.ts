import { beforeEach, describe, expect, it } from "vitest";
import { Hub } from "../support/hub";
import { add, branchWith, LANDER, land, landingRepo, outcomes } from "../support/landing";
import type { TestRepo } from "../support/repo";

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

describe("land run --as-branch", () => {
  it("does not replace a branch at which something else has landed", async () => {
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    await add(repo, "one");
    await land(repo);
    repo.git("branch", "queue/two", "main");
    await add(repo, "two");
    const ran = await land(repo, "--as-branch", "queue");
    expect(ran.error).toMatchObject({ code: "E_PROTECTED_REF" });
    expect(repo.git("rev-parse", "queue/two")).toBe(repo.git("rev-parse", "main"));
    expect(outcomes(await land(repo, "--as-branch", "other"))).toEqual({ two: "landed" });
  });

  it("says that entries are handed over, not landed, and what comes first where nothing is pushed", async () => {
    const hub = new Hub();
    repo.git("remote", "add", "origin", hub.path);
    repo.git("push", "--quiet", "origin", "main");
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    await add(repo, "one");
    const said = await repo.start(LANDER, ["land", "run", "--as-branch", "queue"]).done;
    expect(said.stdout).toContain("main: 1 handed over\n  one: is at queue/one as ");
    const next = /next: push it \((git push .*?)\), then: (gh .*)$/m.exec(said.stdout)!;
    expect(next[2]).toBe("gh pr create --base main --head queue/one --fill");
    repo.git(...next[1]!.replace("<remote>", "origin").split(" ").slice(1));
    expect(hub.head("queue/one")).not.toBe("");
    await add(repo, "two");
    const pushed = await repo.start(LANDER, ["land", "run", "--as-branch", "queue", "--push"]).done;
    expect(pushed.stdout).toContain("    next: gh pr create");
    const listed = await repo.start(LANDER, ["land", "list", "--all"]).done;
    expect(listed.stdout).toMatch(/as [0-9a-f]{12}, at queue\/one +main/m);
  });

  it("refuses a prefix that makes no branch, with words that fit, also while nothing waits", async () => {
    for (const prefix of ["", "a b", "/"])
      expect((await land(repo, `--as-branch=${prefix}`)).error).toMatchObject({ code: "E_USAGE" });
    branchWith(repo, "one", { one: "1\n" });
    await add(repo, "one");
    const { error } = await land(repo, "--as-branch", "main");
    expect(error.code).toBe("E_USAGE");
    expect(error.hint).toContain("--as-branch");
  });
});
