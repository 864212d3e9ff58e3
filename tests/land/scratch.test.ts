import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { add, branchWith, exists, headOf, LANDER, land, landingRepo, outcomes } from "../support/landing";
import { oneIn } from "../support/one-in";
import type { TestRepo } from "../support/repo";

const it = oneIn(4);

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

const checked = (line: string, env: Record<string, string> = {}) =>
  repo.askWith({ COTENANT_LAND_CHECKS: line, ...env }, LANDER, "land", "run");
const scratches = () => fs.readdirSync(`${repo.root}.worktrees`).filter((name) => !name.startsWith("."));

async function entries(...names: string[]): Promise<void> {
  for (const name of names) branchWith(repo, name, { [name]: name });
  await add(repo, ...names);
}

/** Every check passes, and the next ones find what they should. */
async function expectNextChecked(line: string): Promise<void> {
  await entries("later");
  expect(outcomes(await checked(line)).later).toBe("landed");
  expect(scratches()).toEqual(["cotenant-land-1"]);
}

describe("a worktree for checks, whatever a check has done to it", () => {
  it("without its .git, the repository around it is not taken for it", async () => {
    fs.appendFileSync(path.join(repo.root, ".git/info/exclude"), ".trees\n");
    await entries("one", "two", "three");
    repo.git("checkout", "--quiet", "--detach");
    repo.write("a.txt", "not committed\n");
    const before = headOf(repo, "HEAD");
    const ran = await checked("test -f a.txt && rm -r .git", { COTENANT_WORKTREE_DIRECTORY: ".trees" });
    expect(outcomes(ran)).toEqual({ one: "landed", two: "landed", three: "landed" });
    expect(fs.readFileSync(path.join(repo.root, "a.txt"), "utf8")).toBe("not committed\n");
    expect(headOf(repo, "HEAD")).toBe(before);
    expect(repo.git("status", "--porcelain")).toBe(" M a.txt\n");
    expect(fs.readdirSync(path.join(repo.root, ".trees"))).toEqual(["cotenant-land-1"]);
  });

  it("as a repository of its own, a link to another place, or with nothing left", async () => {
    await entries("one", "two", "three", "four");
    const aside = path.join(path.dirname(repo.root), "aside");
    fs.mkdirSync(aside);
    fs.writeFileSync(path.join(aside, "mine"), "mine\n");
    const line = [
      "test -f a.txt; top=$PWD; cd /; case $COTENANT_LANDING_BRANCH in",
      `one) rm $top/.git; git init --quiet $top;; two) rm -r $top; ln -s ${aside} $top;; three) rm -r $top;; esac`,
    ].join(" ");
    expect(outcomes(await checked(line))).toMatchObject({ one: "landed", two: "landed", four: "landed" });
    expect(fs.readdirSync(aside)).toEqual(["mine"]);
    await expectNextChecked("test -f a.txt && test -f four");
  });

  it("taken from Git, another one is made", async () => {
    await entries("one", "two");
    const line = "test -f a.txt || exit 1; git worktree remove --force $PWD || true";
    expect(outcomes(await checked(line))).toEqual({ one: "landed", two: "landed" });
    expect(repo.git("status", "--porcelain")).toBe("");
  });

  it("on a branch, it is found again, and the branch is free", async () => {
    await entries("one");
    await checked("git checkout --quiet -b made-by-check");
    repo.git("checkout", "--quiet", "made-by-check");
    repo.git("checkout", "--quiet", "main");
    await expectNextChecked("test -f one && ! git symbolic-ref --quiet HEAD");
  });

  it("with files that Git is told not to look at, the next checks see what is committed", async () => {
    await entries("one", "two");
    const poison =
      "grep -q base a.txt b.txt || exit 1; git update-index --assume-unchanged a.txt; git update-index --skip-worktree b.txt; echo bad | tee a.txt b.txt";
    expect(outcomes(await checked(poison))).toEqual({ one: "landed", two: "landed" });
    branchWith(repo, "changes", { "a.txt": "base, changed\n" });
    await add(repo, "changes");
    await expectNextChecked("grep -q base a.txt && grep -q base b.txt");
  });

  it("with only a part of the files, the next checks have all", async () => {
    await entries("one");
    expect(outcomes(await checked("git sparse-checkout set --cone nothing"))).toEqual({ one: "landed" });
    branchWith(repo, "deep", { "deep/er": "here\n" });
    await add(repo, "deep");
    expect(outcomes(await checked("test -f deep/er"))).toEqual({ deep: "landed" });
    expect(exists(repo, "deep/er")).toBe(true);
  });

  it("with locks of Gits that were killed, it is used all the same", async () => {
    await entries("one");
    await checked("touch $(git rev-parse --git-path index.lock) $(git rev-parse --git-path HEAD.lock)");
    await expectNextChecked("true");
    expect((await land(repo)).data).toMatchObject({ waiting: 0 });
  });
});

describe("what cannot be checked out for its checks", () => {
  it("stops the run, which names the entry and how to go on without it", async () => {
    repo.git("config", "filter.broken.clean", "cat");
    repo.git("config", "filter.broken.smudge", "false");
    repo.git("config", "filter.broken.required", "true");
    branchWith(repo, "one", { ".gitattributes": "one filter=broken\n", one: "1\n" });
    await add(repo, "one");
    await entries("two");
    const { error } = await checked("true");
    expect(error).toMatchObject({ code: "E_GIT", message: expect.stringMatching(/^one: /) });
    const words = /cotenant (land remove .*)$/.exec(error.hint)![1]!.split(" ");
    await repo.prepare(LANDER, ...words);
    expect(outcomes(await checked("true"))).toEqual({ two: "landed" });
  });
});
