import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { headCommit } from "../../src/identity/head-commit";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";
import { scratch } from "../support/scratch";

/** Git that must not be asked. */
const nobody = {
  run: () => {
    throw new Error("Git was asked");
  },
};

function repository() {
  const root = path.join(scratch(), "repo");
  fs.mkdirSync(root);
  const git = (...args: string[]) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  git("init", "--quiet", "--initial-branch", "main");
  const place = { gitDir: path.join(root, ".git"), commonDir: path.join(root, ".git"), worktreeRoot: root };
  const commit = () => git("commit", "--quiet", "--allow-empty", "--message", "x");
  const read = (who: Parameters<typeof headCommit>[1] = nobody, at = place) =>
    headCommit(nodePlatform(), who, at);
  return { root, git, place, commit, read };
}

describe("the commit of HEAD", () => {
  it("is null before the first one", async () => {
    expect(await repository().read()).toBeNull();
  });

  it("is read from a branch's file, from packed refs, and from a detached HEAD, without asking Git", async () => {
    const { git, commit, read } = repository();
    commit();
    expect(await read()).toBe(git("rev-parse", "HEAD"));
    git("checkout", "--quiet", "-b", "a/b");
    commit();
    git("pack-refs", "--all");
    expect(await read()).toBe(git("rev-parse", "HEAD"));
    commit();
    // Packed and loose: the loose one counts.
    expect(await read()).toBe(git("rev-parse", "HEAD"));
    git("checkout", "--quiet", "--detach", "main");
    expect(await read()).toBe(git("rev-parse", "main"));
    git("symbolic-ref", "refs/heads/other", "refs/heads/a/b");
    git("symbolic-ref", "HEAD", "refs/heads/other");
    expect(await read()).toBe(git("rev-parse", "a/b"));
  });

  it("is a linked worktree's own", async () => {
    const { root, git, commit, read, place } = repository();
    commit();
    git("worktree", "add", "--quiet", "-b", "feature", "../feature");
    commit();
    const linked = path.join(root, ".git/worktrees/feature");
    const at = { ...place, gitDir: linked, worktreeRoot: path.join(root, "../feature") };
    expect(await read(nobody, at)).toBe(git("rev-parse", "feature"));
    expect(await read()).toBe(git("rev-parse", "main"));
  });

  it("is Git's to say where HEAD is out of the ordinary", async () => {
    const { root, git, commit, read } = repository();
    commit();
    const head = path.join(root, ".git/HEAD");
    const real = nodeGit();
    git("update-ref", "refs/bisect/bad", "HEAD");
    fs.writeFileSync(head, "ref: refs/bisect/bad\n");
    expect(await read(real)).toBe(git("rev-parse", "main"));
    fs.writeFileSync(head, "ref: refs/heads/../../../etc/passwd\n");
    expect(await read(real)).toBeNull();
    fs.writeFileSync(head, "ref: refs/heads/.invalid\n");
    expect(await read(real)).toBeNull();
  });
});
