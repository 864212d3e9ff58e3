import * as fs from "node:fs";
import { beforeEach, describe, expect } from "vitest";
import { Hub } from "../support/hub";
import { add, branchWith, LANDER, land, landingRepo } from "../support/landing";
import { oneIn } from "../support/one-in";
import type { TestRepo } from "../support/repo";

const it = oneIn(4);

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

const branches = () => repo.git("branch", "--format=%(refname:short)").trim().split("\n");

/** A worktree of cotenant's with a branch that has something to land. */
async function worktreeFor(branch: string): Promise<TestRepo> {
  const { worktree } = await repo.prepare("agent:worker", "worktree", "create", branch);
  const there = repo.at(worktree.root);
  there.write(`${branch.replaceAll("/", "-")}.txt`);
  there.git("add", "--all");
  there.git("commit", "--quiet", "--message", branch);
  await add(repo, branch);
  return there;
}

describe("cleaning up after landings", () => {
  it("is not done unless asked for", async () => {
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    await land(repo);
    expect(branches()).toEqual(["main", "one"]);
  });

  it("deletes the branch and the worktree that was made for it, as land.clean says", async () => {
    const there = await worktreeFor("work/one");
    const ran = await repo.askWith({ COTENANT_LAND_CLEAN: "true" }, LANDER, "land", "run");
    const [entry] = ran.data["entries"] as { cleaned: string[] }[];
    expect(entry!.cleaned).toEqual([`removed the worktree ${there.root}`, "deleted the branch work/one"]);
    expect(fs.existsSync(there.root)).toBe(false);
    expect(branches()).toEqual(["main"]);
  });

  it("keeps a branch that has moved on", async () => {
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    repo.git(
      "branch",
      "--force",
      "one",
      repo.git("commit-tree", "-p", "one", "-m", "more", "one^{tree}").trim(),
    );
    expect((await land(repo, "--clean")).data["entries"]).toMatchObject([{ outcome: "landed", cleaned: [] }]);
    expect(branches()).toEqual(["main", "one"]);
  });

  it("keeps a worktree with anything that is not committed, and one that somebody holds something from", async () => {
    const dirty = await worktreeFor("work/dirty");
    dirty.write("notes.md", "mine\n");
    const held = await worktreeFor("work/held");
    const id = await repo.issue("Some work");
    await held.prepare("agent:worker", "claim", "acquire", id);
    const locked = await worktreeFor("work/locked");
    await locked.prepare("agent:worker", "worktree", "lock");
    const ran = await repo.ask(LANDER, "land", "run", "--clean");
    expect(ran.data).toMatchObject({ landed: 3 });
    for (const { root } of [dirty, held, locked]) expect(fs.existsSync(root)).toBe(true);
    expect(branches().sort()).toEqual(["main", "work/dirty", "work/held", "work/locked"]);
    expect(ran.stderr).toContain("agent:worker holds");
  });

  it("keeps a worktree that cotenant did not make, and its branch", async () => {
    branchWith(repo, "one", { one: "1" });
    repo.git("worktree", "add", "--quiet", "../own", "one");
    await add(repo, "one");
    await land(repo, "--clean");
    expect(fs.existsSync(repo.at("../own").root)).toBe(true);
    expect(branches()).toContain("one");
  });

  it("deletes the remote's branch only with --push, and only if it is what landed", async () => {
    const hub = new Hub();
    repo.git("remote", "add", "origin", hub.path);
    branchWith(repo, "one", { one: "1" });
    branchWith(repo, "two", { two: "2" });
    repo.git("push", "--quiet", "origin", "main", "one", "main:two");
    await add(repo, "one", "two");
    await land(repo, "--clean", "--push");
    expect(Object.keys(hub.refs("refs/heads/"))).toEqual(["refs/heads/main", "refs/heads/two"]);
    expect(branches()).toEqual(["main"]);
  });
});

describe("a branch that is there for more than one landing", () => {
  it("is kept while it waits, or was put aside, for another target", async () => {
    repo.git("branch", "release");
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    await add(repo, "one", "--target", "release");
    expect((await land(repo, "--clean")).data["entries"]).toMatchObject([{ outcome: "landed", cleaned: [] }]);
    const ran = await land(repo, "--clean", "--target", "release");
    expect(ran.data["entries"]).toMatchObject([{ outcome: "landed", cleaned: ["deleted the branch one"] }]);
  });

  it("is kept where it is protected, or others are to land on it, here and on the remote", async () => {
    const hub = new Hub();
    repo.git("remote", "add", "origin", hub.path);
    repo.git("branch", "release");
    for (const name of ["main", "stable", "next"]) {
      if (name !== "main") branchWith(repo, name, { [name]: name });
      repo.git("push", "--quiet", "origin", name);
    }
    repo.git("push", "--quiet", "origin", "release");
    branchWith(repo, "work", { work: "1" });
    repo.git("checkout", "--quiet", "--detach");
    repo.git("branch", "--force", "main", "work");
    repo.git("push", "--quiet", "origin", "main");
    await add(repo, "main", "stable", "next", "--target", "release");
    await add(repo, "work", "--target", "next");
    const env = { COTENANT_PUBLISH_PROTECTED: "stable" };
    const ran = await repo.askWith(
      env,
      LANDER,
      ...["land", "run", "--target", "release", "--clean", "--push"],
    );
    expect(ran.data["entries"]).toMatchObject([{ cleaned: [] }, { cleaned: [] }, { cleaned: [] }]);
    expect(ran.stderr).toContain("kept the branch main: it is protected");
    expect(branches()).toEqual(expect.arrayContaining(["main", "next", "release", "stable"]));
    for (const name of ["main", "stable", "next"]) expect(hub.head(name)).not.toBe("");
  });
});
