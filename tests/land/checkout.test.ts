import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { DeadlyGit } from "../support/deadly-git";
import {
  add,
  branchWith,
  exists,
  firstParents,
  headOf,
  isClean,
  LANDER,
  land,
  landingRepo,
  outcomes,
} from "../support/landing";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import type { TestRepo } from "../support/repo";
import { sampleOf } from "../support/sample";
import { gitWithDoor } from "../support/slow-git";

const it = oneIn(4);

let repo: TestRepo;
beforeEach(async () => {
  repo = landingRepo();
  branchWith(repo, "one", { "a.txt": "changed\n", "deep/new.txt": "new\n" });
  repo.git("checkout", "--quiet", "one");
  repo.git("rm", "--quiet", "b.txt");
  repo.git("commit", "--quiet", "--message", "without b");
  repo.git("checkout", "--quiet", "main");
  await add(repo, "one");
});

const read = (file: string) => fs.readFileSync(path.join(repo.root, file), "utf8");
const gitFiles = () =>
  fs.readdirSync(path.join(repo.root, ".git")).filter((name) => /lock|cotenant-land/.test(name));

/** The run is refused, nothing has moved, and the entry waits. */
async function expectStopped(words: string): Promise<void> {
  const before = headOf(repo);
  const ran = await land(repo);
  expectJsonRefused(ran, 9, "E_PROTECTED_REF");
  expect(ran.error.message).toContain(words);
  expect(headOf(repo)).toBe(before);
  const { entries } = (await repo.askHere(LANDER, "land", "list")).data as unknown as {
    entries: { state: string }[];
  };
  expect(entries.map(({ state }) => state)).toEqual(["queued"]);
  expect(gitFiles()).toEqual([]);
}

describe("a target that is checked out", () => {
  it("moves with its index and files, and untracked files elsewhere stay", async () => {
    repo.write("notes.md", "mine\n");
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
    expect(repo.git("status", "--porcelain")).toBe("?? notes.md\n");
    expect([read("a.txt"), read("deep/new.txt"), exists(repo, "b.txt")]).toEqual([
      "changed\n",
      "new\n",
      false,
    ]);
    expect(gitFiles()).toEqual([]);
    expect((await repo.askHere(LANDER, "status")).data.leases).toEqual([]);
  });

  it("whatever its files are called", async () => {
    const names = [
      "-rf",
      "with space",
      'quote".txt',
      "back\\slash",
      "ünï/cödé",
      "tab\tname",
      "$(id)",
      ":(top)x",
      "*",
    ];
    branchWith(repo, "odd", Object.fromEntries(names.map((name) => [name, `${name}\n`])));
    await add(repo, "odd");
    expect(outcomes(await land(repo))).toEqual({ one: "landed", odd: "landed" });
    expect(repo.git("status", "--porcelain")).toBe("");
    for (const name of names) expect(read(name)).toBe(`${name}\n`);
  });

  it("in a linked worktree as well", async () => {
    repo.git("checkout", "--quiet", "--detach");
    repo.git("worktree", "add", "--quiet", "../linked", "main");
    const linked = repo.at("../linked");
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
    expect(isClean(linked)).toBe(true);
    expect(exists(linked, "deep/new.txt")).toBe(true);
  });

  it("stops with what to do where something is not committed", async () => {
    repo.write("a.txt", "edited\n");
    await expectStopped("has changes that are not committed");
    repo.git("add", "a.txt");
    await expectStopped("has changes that are not committed");
    expect(read("a.txt")).toBe("edited\n");
  });

  it("stops where an untracked file is in the way, also one that is ignored", async () => {
    repo.write("deep/new.txt", "mine\n");
    await expectStopped("deep/new.txt");
    fs.writeFileSync(path.join(repo.root, ".git/info/exclude"), "new.txt\n");
    await expectStopped("deep/new.txt");
    expect(read("deep/new.txt")).toBe("mine\n");
  });

  it("stops where Git was told not to look at a file that differs", async () => {
    repo.git("update-index", "--assume-unchanged", "a.txt");
    repo.write("a.txt", "secretly edited\n");
    await expectStopped("told not to look at");
    expect(read("a.txt")).toBe("secretly edited\n");
  });

  it("stops in the middle of a merge, and while another Git has the index", async () => {
    fs.writeFileSync(path.join(repo.root, ".git/MERGE_HEAD"), `${headOf(repo, "one")}\n`);
    await expectStopped("in the middle of a merge");
    fs.rmSync(path.join(repo.root, ".git/MERGE_HEAD"));
    fs.writeFileSync(path.join(repo.root, ".git/index.lock"), "");
    const ran = await land(repo);
    expectJsonRefused(ran, 9, "E_PROTECTED_REF");
    expect(ran.error.message).toContain("another Git is at work");
    expect(exists(repo, ".git/index.lock")).toBe(true);
    expect(isCleanNow()).toBe(true);
  });

  const isCleanNow = () => {
    fs.rmSync(path.join(repo.root, ".git/index.lock"), { force: true });
    return isClean(repo);
  };

  it("stops where somebody else has the writer lock, or edits a file that would change", async () => {
    await repo.prepare("agent:writer", "worktree", "lock");
    await expectStopped("is locked by agent:writer");
    await repo.prepare("agent:writer", "worktree", "unlock");
    await repo.prepare("agent:writer", "lock", "acquire", "a.txt");
    await expectStopped("a.txt, which agent:writer is editing there");
    await repo.prepare("agent:writer", "lock", "release", "a.txt");
    await repo.prepare("agent:writer", "lock", "acquire", "c.txt");
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
  });

  it("stops where it is shared, or checked out twice", async () => {
    await repo.prepare(LANDER, "worktree", "access", "shared");
    await expectStopped("is shared");
    await repo.prepare(LANDER, "worktree", "access", "exclusive");
    repo.git("worktree", "add", "--quiet", "--force", "../twice", "main");
    await expectStopped("checked out in");
  });
});

describe("killed while a checkout moves along", () => {
  const kill = async (when: "before" | "after", which: number | string) => {
    const deadly = new DeadlyGit(path.dirname(repo.root));
    const running = repo.start(LANDER, ["land", "run"], { env: deadly.env(when, which) });
    return { ran: await running.done, deadly };
  };

  for (const when of ["before", "after"] as const)
    it(`${when} the files moved: the next run puts everything right`, async () => {
      const { ran } = await kill(when, "read-tree");
      expect(ran.status).toBe(null);
      expect(firstParents(repo)).toEqual(["first"]);
      expect(gitFiles()).not.toEqual([]);
      const { findings } = (await repo.askHere(LANDER, "doctor")).data as unknown as {
        findings: { check: string; next: string | null }[];
      };
      expect(findings.find(({ check }) => check === "unfinished")?.next).toContain("cotenant land run");
      expect(outcomes(await land(repo))).toEqual({ one: "landed" });
      expect(isClean(repo)).toBe(true);
      expect([read("a.txt"), read("deep/new.txt")]).toEqual(["changed\n", "new\n"]);
      expect(gitFiles()).toEqual([]);
    });

  it("in a repository that is shared: others may read the lock that is left, which says whose it is", async () => {
    repo.git("config", "core.sharedRepository", "group");
    await kill("before", "read-tree");
    expect(fs.statSync(path.join(repo.root, ".git/index.lock")).mode & 0o777).toBe(0o660);
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
  });

  it("files of any name are put back, and what was new goes", async () => {
    const names = ["-rf", "with space", 'quote".txt', "ünï/cödé", "*"];
    branchWith(repo, "odd", Object.fromEntries(names.map((name) => [name, "new\n"])));
    await repo.prepare("agent:worker", "land", "remove", "one");
    await add(repo, "odd");
    await kill("after", "read-tree");
    for (const name of names) expect(read(name)).toBe("new\n");
    await repo.prepare("agent:worker", "land", "remove", "odd");
    await land(repo);
    for (const name of names) expect(exists(repo, name), name).toBe(false);
    expect(repo.git("status", "--porcelain")).toBe("");
  });

  it("and somebody edits a file before the next run: the edit stays", async () => {
    await kill("after", "read-tree");
    expect(read("a.txt")).toBe("changed\n");
    repo.write("a.txt", "changed, and edited by hand\n");
    const ran = await land(repo);
    expectJsonRefused(ran, 9, "E_PROTECTED_REF");
    expect(read("a.txt")).toBe("changed, and edited by hand\n");
    // Everything else is as it was.
    expect(repo.git("status", "--porcelain")).toBe(" M a.txt\n");
    expect(exists(repo, "b.txt")).toBe(true);
  });

  it("before and after each Git that it starts: it ends the same", async () => {
    const { deadly } = await kill("before", 1_000_000);
    const all = deadly.used;
    expect(all).toBeGreaterThan(10);
    const numbers = Array.from({ length: all }, (_, at) => at + 1);
    for (const [at, n] of sampleOf(numbers, 5).entries()) {
      repo = landingRepo();
      branchWith(repo, "one", { "a.txt": "changed\n", "deep/new.txt": "new\n" });
      await add(repo, "one");
      const { ran } = await kill(at % 2 === 0 ? "before" : "after", n);
      const after = await land(repo);
      expect(after.data, `${n} of ${all}: ${ran}\n${after}`).toMatchObject({ waiting: 0, parked: 0 });
      expect(firstParents(repo), `${n}`).toEqual(["Merge branch 'one' into main", "first"]);
      expect(isClean(repo), `${n}`).toBe(true);
      expect(gitFiles(), `${n}`).toEqual([]);
    }
  }, 300_000);
});

describe("a landing that is refused at the last moment", () => {
  it("puts the files back, but for what somebody has edited meanwhile", async () => {
    const moved = repo.git("commit-tree", "-p", "main", "-m", "moved", "main^{tree}").trim();
    const door = `echo by hand >> '${repo.root}/a.txt'; echo ${moved} > '${repo.root}/.git/refs/heads/main'`;
    const { env } = gitWithDoor("update-ref -m", door);
    const ran = await repo.askWith(env, LANDER, "land", "run");
    expectJsonRefused(ran, 9, "E_PROTECTED_REF");
    expect(ran.error.message).toContain("has changes that are not committed");
    expect(read("a.txt")).toBe("changed\nby hand\n");
    expect(repo.git("status", "--porcelain")).toBe(" M a.txt\n");
    expect(exists(repo, "deep/new.txt")).toBe(false);
    expect(firstParents(repo)).toEqual(["moved", "first"]);
  });
});
