import { beforeEach, describe, expect, it } from "vitest";
import { add, branchWith, land, landingRepo, outcomes } from "../support/landing";
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
