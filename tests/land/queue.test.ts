import { beforeEach, describe, expect } from "vitest";
import { add, branchWith, firstParents, LANDER, land, landingRepo, outcomes } from "../support/landing";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import type { TestRepo } from "../support/repo";

const it = oneIn(4);

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

const list = async (...more: string[]) =>
  (await repo.askHere("agent:reader", "land", "list", ...more)).data["entries"] as {
    entry_id: string;
    branch: string;
    target: string;
    commit: string;
    state: string;
  }[];

const addedIds = async (...branches: string[]) => {
  const { entries } = (await add(repo, ...branches)) as unknown as {
    entries: { entry: { entry_id: string } }[];
  };
  return entries.map(({ entry }) => entry.entry_id);
};

describe("adding to the merge queue", () => {
  it("keeps the order in which branches came, and their commits of that moment", async () => {
    for (const name of ["one", "two", "three"]) branchWith(repo, name, { [name]: name });
    await add(repo, "two", "one");
    await add(repo, "three");
    const at = repo.git("rev-parse", "one").trim();
    repo.git("checkout", "--quiet", "one");
    repo.git("commit", "--quiet", "--allow-empty", "--message", "later");
    repo.git("checkout", "--quiet", "main");
    expect((await list()).map(({ branch }) => branch)).toEqual(["two", "one", "three"]);
    expect((await land(repo)).data["landed"]).toBe(3);
    expect(repo.git("merge-base", "main", "one").trim()).toBe(at);
  });

  it("a branch that is added again replaces its entry, at the end; unchanged, it stays", async () => {
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    const [first] = await addedIds("one");
    await add(repo, "two");
    expect(await add(repo, "one")).toMatchObject({
      entries: [{ changed: false, entry: { entry_id: first } }],
    });
    repo.git(
      "branch",
      "--force",
      "one",
      repo.git("commit-tree", "-p", "one", "-m", "x", "one^{tree}").trim(),
    );
    expect(await add(repo, "one")).toMatchObject({ entries: [{ changed: true, replaces: first }] });
    expect((await list()).map(({ branch }) => branch)).toEqual(["two", "one"]);
  });

  it("takes entries out, by branch, by id, or by the end of one", async () => {
    for (const name of ["one", "two", "three"]) branchWith(repo, name, { [name]: name });
    const ids = await addedIds("one", "two", "three");
    await repo.prepare("agent:worker", "land", "remove", "one");
    await repo.prepare("agent:worker", "land", "remove", ids[1]!);
    await repo.prepare("agent:worker", "land", "remove", ids[2]!.slice(-6).toLowerCase());
    expect(await list()).toEqual([]);
    expect(repo.git("branch", "--list", "one", "two", "three").trim().split("\n")).toHaveLength(3);
    expectJsonRefused(await repo.askHere("agent:worker", "land", "remove", "one"), 4, "E_NOT_FOUND");
  });

  it("each target has a queue of its own, and land.target names the usual one", async () => {
    repo.git("branch", "release");
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one", "--target", "release");
    await add(repo, "one");
    expect((await list()).map(({ target }) => target)).toEqual(["release", "main"]);
    expectJsonRefused(await repo.askHere("agent:worker", "land", "remove", "one"), 4, "E_AMBIGUOUS_ID");
    const ran = await repo.askWith({ COTENANT_LAND_TARGET: "release" }, LANDER, "land", "run");
    expect(ran.data).toMatchObject({ target: "release", landed: 1 });
    expect(firstParents(repo, "release")[0]).toBe("Merge branch 'one' into release");
    expect(firstParents(repo)).toEqual(["first"]);
  });

  it("refuses what cannot land", async () => {
    const refused = async (exit: number, code: string, ...args: string[]) =>
      expectJsonRefused(await repo.askHere("agent:worker", "land", "add", ...args), exit, code);
    await refused(4, "E_NOT_FOUND", "nowhere");
    await refused(64, "E_USAGE", "main");
    await refused(64, "E_USAGE", "a..b");
    await refused(64, "E_USAGE", "refs/tags/v1");
    await refused(64, "E_USAGE", "HEAD");
    branchWith(repo, "one", { one: "1" });
    await refused(9, "E_LIMIT", "one", "--message", "x".repeat(5_000));
    await refused(64, "E_USAGE", "one", "--method", "sqash");
    await refused(4, "E_NOT_FOUND", "one", "--target", "mian");
    expect(await list()).toEqual([]);
  });

  it("a target that only a remote may have is for the run to find", async () => {
    repo.git("remote", "add", "origin", repo.root);
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one", "--target", "elsewhere");
    expect((await list()).map(({ target }) => target)).toEqual(["elsewhere"]);
  });

  it("a run with nothing to do says what was put aside, and what waits for other targets", async () => {
    repo.git("branch", "release");
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one", "--target", "release");
    branchWith(repo, "two", { "a.txt": "two\n" });
    repo.write("a.txt", "ours\n");
    repo.git("commit", "--quiet", "--all", "--message", "ours");
    await add(repo, "two");
    await land(repo);
    const { stdout } = await repo.runHere(LANDER, "land", "run");
    expect(stdout).toContain("nothing waits to land on main");
    expect(stdout).toContain("1 branch was put aside: cotenant land list");
    expect(stdout).toContain("cotenant land run --target release");
  });

  it("shows branches first, and says of one of a remote how to have it here", async () => {
    branchWith(repo, "one", { one: "1" });
    const [id] = await addedIds("one");
    const { stdout } = await repo.runHere("agent:reader", "land", "list");
    expect(stdout.split("\n")[0]).toMatch(/^BRANCH .* ENTRY$/);
    expect(stdout.split("\n")[1]).toMatch(new RegExp(`^one .* ${id}$`));
    repo.git("update-ref", "refs/remotes/origin/work/two", "one");
    const ran = await repo.askHere("agent:worker", "land", "add", "origin/work/two");
    expect(ran.error.hint).toContain("git branch work/two origin/work/two");
    expect(ran.error.hint).toContain("cotenant land add work/two");
  });

  it("a branch that is named as a shell would read it is only a name", async () => {
    const name = `work/$(touch$IFS"pwned");&|'`;
    branchWith(repo, name, { one: "1" });
    await add(repo, name);
    const check = 'test "$COTENANT_LANDING_BRANCH" != "" && echo "$COTENANT_LANDING_BRANCH"';
    const ran = await repo.askWith({ COTENANT_LAND_CHECKS: check }, LANDER, "land", "run");
    expect(outcomes(ran)).toEqual({ [name]: "landed" });
    expect(repo.git("status", "--porcelain")).toBe("");
    expect(repo.git("log", "-1", "--format=%(trailers:key=Cotenant-Landed,valueonly)").trim()).toContain(
      name,
    );
  });
});

describe("pausing the merge queue", () => {
  it("tells whoever runs it by whom and why; others may add; resume goes on", async () => {
    branchWith(repo, "one", { one: "1" });
    await repo.prepare("human:bob", "land", "pause", "--reason", "release in progress");
    await add(repo, "one");
    const ran = await land(repo);
    expectJsonRefused(ran, 11, "E_PAUSED");
    expect(ran.error.message).toContain("human:bob");
    expect(ran.error.message).toContain("release in progress");
    expect((await repo.askHere("agent:x", "land", "list")).data["paused"]).toMatchObject([
      { target: "main", paused_by: "human:bob" },
    ]);
    expect((await repo.askHere(LANDER, "land", "pause", "--reason", "other")).data).toMatchObject({
      changed: false,
      paused_by: "human:bob",
    });
    expect((await repo.askHere(LANDER, "land", "resume")).data).toMatchObject({ changed: true });
    expect((await repo.askHere(LANDER, "land", "resume")).data).toMatchObject({
      changed: false,
      ended: null,
    });
    expect((await land(repo)).data["landed"]).toBe(1);
  });

  it("ends a run that is under way before its next landing", async () => {
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    await add(repo, "one", "two");
    // The first check pauses the queue, as a person would meanwhile.
    const pause = `COTENANT_AGENT_ID=human:bob '${process.execPath}' '${new URL("../../bin/cotenant", import.meta.url).pathname}' land pause --reason now`;
    const ran = await repo.askWith({ COTENANT_LAND_CHECKS: pause }, LANDER, "land", "run");
    expectJsonRefused(ran, 11, "E_PAUSED");
    expect(firstParents(repo)).toEqual(["first"]);
    expect((await list()).map(({ state }) => state)).toEqual(["queued", "queued"]);
  });
});
