import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import type { CotenantError } from "../../src/errors/cotenant-error";
import { currentBranch } from "../../src/identity/branch";
import type { Git } from "../../src/platform/git";
import { nodePlatform } from "../../src/platform/node/node";
import { commit, countingGit, git, makeRepository, temporaryDirectory } from "./temporary";

const platform = nodePlatform();
const home = temporaryDirectory();

describe("the current branch", () => {
  it("is read from HEAD without asking Git", async () => {
    const asked = countingGit();
    const repository = makeRepository(path.join(home, "r"));
    const branch = () => currentBranch(platform, asked, path.join(repository, ".git"));
    expect(await branch()).toBe("main");
    commit(repository);
    git(repository, "checkout", "--quiet", "-b", "agents/copilot-1/ünïcode");
    expect(await branch()).toBe("agents/copilot-1/ünïcode");
    git(repository, "checkout", "--quiet", "--detach");
    expect(await branch()).toBeNull();
    git(repository, "symbolic-ref", "HEAD", "refs/other/x");
    expect(await branch()).toBe("refs/other/x");
    expect(asked.asked).toEqual([]);
  });

  it("has a limit: HEAD may hold anything", async () => {
    const repository = makeRepository(path.join(home, "long"));
    const head = path.join(repository, ".git/HEAD");
    const branch = () => currentBranch(platform, countingGit(), path.join(repository, ".git"));
    fs.writeFileSync(head, `ref: refs/heads/${"x/".repeat(2_000)}y\n`);
    expect(await branch()).toHaveLength(4_001);
    fs.writeFileSync(head, `ref: refs/heads/${"x/".repeat(40_000)}y\n`);
    await expect(branch()).rejects.toMatchObject({ code: "E_LIMIT" });
  });

  it("is Git's to tell where HEAD is a symbolic link", async () => {
    const repository = makeRepository(path.join(home, "old"));
    commit(repository);
    fs.rmSync(path.join(repository, ".git/HEAD"));
    fs.symlinkSync("refs/heads/main", path.join(repository, ".git/HEAD"));
    const asked = countingGit();
    expect(await currentBranch(platform, asked, path.join(repository, ".git"))).toBe("main");
    expect(asked.asked).toHaveLength(1);
  });

  it("is Git's to tell with reftable, whose HEAD file is a stand-in", async () => {
    const gitDir = path.join(home, "reftable");
    fs.mkdirSync(gitDir);
    fs.writeFileSync(path.join(gitDir, "HEAD"), "ref: refs/heads/.invalid\n");
    const answering = (status: number, stdout = ""): Git => ({
      run: (args, options) => {
        expect(args).toEqual(["symbolic-ref", "--quiet", "HEAD"]);
        expect(options.env).toEqual({ GIT_DIR: gitDir });
        return { status, stdout: new TextEncoder().encode(stdout), stderr: "fatal: no" };
      },
    });
    expect(await currentBranch(platform, answering(0, "refs/heads/topic\n"), gitDir)).toBe("topic");
    expect(await currentBranch(platform, answering(1), gitDir)).toBeNull();
    const failure = await currentBranch(platform, answering(128), gitDir).catch(
      (e: unknown) => e as CotenantError,
    );
    expect(failure).toMatchObject({ code: "E_GIT" });
  });
});
