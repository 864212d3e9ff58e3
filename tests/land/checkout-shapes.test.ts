import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { openRepository } from "../../src/index";
import { DeadlyGit } from "../support/deadly-git";
import { Hub } from "../support/hub";
import { add, branchWith, exists, isClean, LANDER, land, landingRepo, outcomes } from "../support/landing";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(4);

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

const read = (file: string) => fs.readFileSync(path.join(repo.root, file), "utf8");

/** Main has a directory, a link to it and a file; the branch has a file, a directory and a directory instead. */
async function shapes(): Promise<void> {
  repo.write("real/file", "real\n");
  fs.symlinkSync("real", path.join(repo.root, "link"));
  repo.write("folder/one", "1\n");
  repo.write("folder/deep/two", "2\n");
  repo.write("plain", "plain\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "shapes");
  repo.git("checkout", "--quiet", "-b", "others");
  repo.git("rm", "--quiet", "-r", "folder", "link", "plain");
  repo.write("folder", "a file\n");
  repo.write("link/file", "a directory\n");
  repo.write("plain/inside", "a directory\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "others");
  repo.git("checkout", "--quiet", "main");
  await add(repo, "others");
}

describe("a checked-out target whose paths become something else", () => {
  it("follows: files become directories, directories and links the other way round", async () => {
    await shapes();
    expect(outcomes(await land(repo))).toEqual({ others: "landed" });
    expect([read("folder"), read("link/file"), read("plain/inside"), read("real/file")]).toEqual([
      "a file\n",
      "a directory\n",
      "a directory\n",
      "real\n",
    ]);
    expect(isClean(repo)).toBe(true);
  });

  it("stops where something that is not committed would go with a directory, and names it", async () => {
    await shapes();
    repo.write("folder/deep/mine", "mine\n");
    const ran = await land(repo);
    expectJsonRefused(ran, 9, "E_PROTECTED_REF");
    expect(ran.error.message).toContain("has folder/deep/mine, which is not committed there");
    expect(read("folder/deep/mine")).toBe("mine\n");
    fs.rmSync(path.join(repo.root, "folder/deep/mine"));
    expect(outcomes(await land(repo))).toEqual({ others: "landed" });
  });

  it("stops where a file or a link is in the place of a directory, and names it", async () => {
    branchWith(repo, "deep", { "new/file": "new\n" });
    await add(repo, "deep");
    fs.mkdirSync(path.join(path.dirname(repo.root), "elsewhere"));
    fs.symlinkSync("../elsewhere", path.join(repo.root, "new"));
    const ran = await land(repo);
    expectJsonRefused(ran, 9, "E_PROTECTED_REF");
    expect(ran.error.message).toContain("has new, which is not committed there");
    expect(fs.readdirSync(path.join(path.dirname(repo.root), "elsewhere"))).toEqual([]);
  });

  const kill = async () => {
    await shapes();
    const deadly = new DeadlyGit(path.dirname(repo.root));
    await repo.start(LANDER, ["land", "run"], { env: deadly.env("after", "read-tree") }).done;
    expect(read("folder")).toBe("a file\n");
  };

  it("is put back after a kill", async () => {
    await kill();
    await repo.prepare("agent:worker", "land", "remove", "others");
    await land(repo);
    expect(repo.git("status", "--porcelain")).toBe("");
    expect([read("folder/deep/two"), read("plain"), fs.readlinkSync(path.join(repo.root, "link"))]).toEqual([
      "2\n",
      "plain\n",
      "real",
    ]);
  });

  it("is put back but for what was edited since the kill", async () => {
    await kill();
    repo.write("folder", "edited\n");
    expectJsonRefused(await land(repo), 9, "E_PROTECTED_REF");
    expect(read("folder")).toBe("edited\n");
    expect(exists(repo, "plain/inside")).toBe(false);
  });
});

describe("a Git that ends while it moves the files of a checkout", () => {
  const big = (word: string) => `${word}\n`.repeat(50_000);
  const killed = async (name: string) => {
    await add(repo, name);
    const deadly = new DeadlyGit(path.dirname(repo.root));
    await repo.start(LANDER, ["land", "run"], { env: deadly.env("after", "read-tree") }).done;
  };

  it("leaves files away or half written: they are put back, and whole ones of others stay", async () => {
    repo.write("big", big("old"));
    repo.write("other", big("old"));
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "big");
    branchWith(repo, "one", { "a.txt": "new\n", big: big("new"), other: big("new"), more: big("more") });
    await killed("one");
    // As if it had been killed in the middle.
    fs.rmSync(path.join(repo.root, "a.txt"));
    fs.truncateSync(path.join(repo.root, "big"), 70_000);
    fs.truncateSync(path.join(repo.root, "more"), 4_096);
    repo.write("other", `${big("new").slice(0, 8_000)}edited\n`);
    await repo.prepare("agent:worker", "land", "remove", "one");
    await land(repo);
    expect(repo.git("status", "--porcelain")).toBe(" M other\n");
    expect(read("other")).toContain("edited");
    expect(read("big")).toBe(big("old"));
  });

  /** A branch with a file that Git cannot write while another file is there. */
  async function loudBranch() {
    repo.git("config", "filter.loud.clean", "cat");
    repo.git("config", "filter.loud.smudge", "cat");
    repo.git("config", "filter.loud.required", "true");
    repo.write(".gitattributes", "*.loud filter=loud\n");
    repo.write("x.loud", "old\n");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "loud");
    branchWith(repo, "one", { "x.loud": "new\n", "y.loud": "new\n" });
    await add(repo, "one");
    repo.git("config", "filter.loud.smudge", "if test -e .git/fails; then cat >/dev/null; exit 1; fi; cat");
    const fails = path.join(repo.root, ".git/fails");
    fs.writeFileSync(fails, "");
    return { fails, repository: await openRepository({ cwd: repo.root, agentId: LANDER }) };
  }

  it("because a filter fails: nothing has changed, and it lands once that is mended", async () => {
    const { fails } = await loudBranch();
    // What Git cannot write it has taken away already, and what is to be put back cannot be written either.
    expect((await land(repo)).error.code).toBe("E_GIT");
    fs.rmSync(fails);
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
    expect(isClean(repo)).toBe(true);
  });

  it("also lands once that is mended where the same process tries again, as dispatch does", async () => {
    const { repository, fails } = await loudBranch();
    const { stopped } = await repository.landRun();
    expect(stopped).toMatchObject({ code: "E_GIT" });
    fs.rmSync(fails);
    expect((await repository.landRun()).entries).toMatchObject([
      { branch: "refs/heads/one", outcome: "landed" },
    ]);
    expect(isClean(repo)).toBe(true);
    await repository.close();
  });

  it("leaves what a sparse checkout has no use for where it was", async () => {
    repo.write("in/a", "1\n");
    repo.write("out/a", "1\n");
    repo.write("out/b", "1\n");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "sparse");
    repo.git("checkout", "--quiet", "-b", "one");
    repo.git("rm", "--quiet", "out/a");
    repo.write("out/b", "2\n");
    repo.write("in/a", "2\n");
    repo.git("commit", "--quiet", "--all", "--message", "one");
    repo.git("checkout", "--quiet", "main");
    repo.git("sparse-checkout", "set", "--cone", "in");
    await killed("one");
    await repo.prepare("agent:worker", "land", "remove", "one");
    await land(repo);
    expect([isClean(repo), exists(repo, "out"), read("in/a")]).toEqual([true, false, "1\n"]);
    await add(repo, "one");
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
    expect([isClean(repo), exists(repo, "out"), read("in/a")]).toEqual([true, false, "2\n"]);
  });
});

describe("a checked-out target whose worktree somebody has deleted", () => {
  it("is said to be gone, with what to do", async () => {
    branchWith(repo, "one", { one: "1\n" });
    repo.git("checkout", "--quiet", "--detach");
    repo.git("worktree", "add", "--quiet", "../linked", "main");
    fs.rmSync(path.join(path.dirname(repo.root), "linked"), { recursive: true });
    await add(repo, "one");
    const ran = await land(repo);
    expect(ran.error.message).toContain("which is gone");
    repo.git("worktree", "prune");
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
  });
});

describe("a checked-out target with a submodule", () => {
  it("lands what moves it, and what comes after, though the submodule itself stays behind", async () => {
    const sub = TestRepo.make();
    sub.write("s", "1\n");
    sub.git("add", "--all");
    sub.git("commit", "--quiet", "--message", "s1");
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.root, "sub");
    repo.git("commit", "--quiet", "--message", "with a submodule");
    repo.git("checkout", "--quiet", "-b", "bump");
    const inside = repo.at("sub");
    inside.write("s", "2\n");
    inside.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-am", "s2");
    repo.git("commit", "--quiet", "-am", "bump");
    repo.git("checkout", "--quiet", "main");
    repo.git("submodule", "--quiet", "update");
    branchWith(repo, "later", { later: "later\n" });
    await add(repo, "bump", "later");
    expect(outcomes(await land(repo))).toEqual({ bump: "landed", later: "landed" });
    // As Git leaves it after a merge.
    expect(repo.git("status", "--porcelain")).toBe(" M sub\n");
    repo.write("a.txt", "edited\n");
    repo.git("branch", "more", repo.git("commit-tree", "-p", "main", "-m", "more", "main^{tree}").trim());
    await add(repo, "more");
    expectJsonRefused(await land(repo), 9, "E_PROTECTED_REF");
  });
});

describe("a checked-out target without a commit", () => {
  it("is left alone: what is pushed has landed on the remote only", async () => {
    const hub = new Hub();
    repo.git("remote", "add", "origin", hub.path);
    repo.git("push", "--quiet", "origin", "main");
    branchWith(repo, "one", { one: "1\n" });
    repo.git("checkout", "--quiet", "--orphan", "other");
    repo.git("rm", "--quiet", "-r", "--force", ".");
    repo.git("branch", "--quiet", "-D", "main");
    repo.git("symbolic-ref", "HEAD", "refs/heads/main");
    await add(repo, "one");
    const ran = await land(repo, "--push");
    expect(ran.data["entries"]).toMatchObject([{ outcome: "landed", remote_only: true }]);
    expect(ran.json.warnings?.join("\n")).toContain("has no commit yet");
    expect(repo.git("status", "--porcelain", "--branch")).toBe("## No commits yet on main\n");
    expect(hub.git("log", "--format=%s", "-1", "main").trim()).toBe("Merge branch 'one' into main");
  });
});
