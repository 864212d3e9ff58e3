import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import type { CotenantError } from "../../src/errors/cotenant-error";
import { findRepository } from "../../src/identity/repository";
import { ensureWorktreeIdentity, readWorktreeIdentity } from "../../src/identity/worktree";
import { listWorktrees } from "../../src/identity/worktree-list";
import { nodePlatform } from "../../src/platform/node/node";
import { commit, countingGit, git, makeRepository, temporaryDirectory, write } from "./temporary";

const platform = nodePlatform();
const home = temporaryDirectory();
const asked = countingGit();
const find = (start: string) => findRepository(platform, start, {}, asked);
const read = async (root: string) => readWorktreeIdentity(platform, asked, await find(root));
const ensure = async (root: string) => ensureWorktreeIdentity(platform, asked, await find(root));
const file = (root: string) => path.join(root, ".cotenant/worktree.json");
const stored = (root: string) => JSON.parse(fs.readFileSync(file(root), "utf8")) as Record<string, unknown>;

function repositoryWithWorktree(name: string): { main: string; linked: string } {
  const main = makeRepository(path.join(home, name));
  commit(main);
  const linked = path.join(home, `${name}-linked`);
  git(main, "worktree", "add", "--quiet", linked, "-b", "topic");
  return { main, linked };
}

describe("a worktree's identity", () => {
  it("is computed by reads, which leave no trace, and stays when it is stored", async () => {
    const { main, linked } = repositoryWithWorktree("first");
    for (const root of [main, linked]) {
      const before = await read(root);
      expect(before.standing).toBe("new");
      expect(before.identity.worktreeId).toMatch(/^wt:[0-9a-f]{8}$/);
      expect(fs.existsSync(path.join(root, ".cotenant"))).toBe(false);
      expect((await read(root)).identity.worktreeId).toBe(before.identity.worktreeId);
      const made = await ensure(root);
      expect(made.identity).toEqual(before.identity);
      const after = await read(root);
      expect(after).toMatchObject({ standing: "stored", warning: null, identity: before.identity });
      expect(stored(root)).toEqual({
        schema_version: 1,
        worktree_id: before.identity.worktreeId,
        branch: root === main ? "main" : "topic",
        root,
        created_at: before.identity.createdAt,
      });
    }
    expect((await read(main)).identity.worktreeId).not.toBe((await read(linked)).identity.worktreeId);
  });

  it("shows nowhere in git status, and lets the worktree be removed", async () => {
    const { main, linked } = repositoryWithWorktree("clean");
    await ensure(main);
    await ensure(linked);
    expect(git(main, "status", "--porcelain", "--untracked-files=all")).toBe("");
    expect(git(linked, "status", "--porcelain", "--untracked-files=all")).toBe("");
    expect(fs.readdirSync(path.join(main, ".cotenant")).sort()).toEqual([".gitignore", "worktree.json"]);
    git(main, "worktree", "remove", linked);
    expect(fs.existsSync(linked)).toBe(false);
  });

  it("does not touch what init or a person put there", async () => {
    const { main } = repositoryWithWorktree("kept");
    write(path.join(main, ".cotenant/.gitignore"), "/worktree.json*\n");
    write(path.join(main, ".cotenant/config.toml"), "");
    await ensure(main);
    expect(fs.readFileSync(path.join(main, ".cotenant/.gitignore"), "utf8")).toBe("/worktree.json*\n");
    expect(fs.readdirSync(path.join(main, ".cotenant")).sort()).toEqual([
      ".gitignore",
      "config.toml",
      "worktree.json",
    ]);
  });

  it("is not written again while nothing has changed", async () => {
    const { main } = repositoryWithWorktree("quiet");
    await ensure(main);
    const before = fs.statSync(file(main));
    git(main, "checkout", "--quiet", "-b", "other");
    await ensure(main);
    expect(fs.statSync(file(main)).ino).toBe(before.ino);
  });

  it("moves with git worktree move (scenario 20)", async () => {
    const { main, linked } = repositoryWithWorktree("moving");
    const { worktreeId } = (await ensure(linked)).identity;
    const target = path.join(home, "moved-there");
    git(main, "worktree", "move", linked, target);
    const seen = await read(target);
    expect(seen).toMatchObject({ standing: "moved", identity: { worktreeId, root: target } });
    expect(seen.warning).toContain(linked);
    expect(stored(target)["root"]).toBe(linked);
    await ensure(target);
    expect(stored(target)).toMatchObject({ worktree_id: worktreeId, root: target });
    expect(Date.parse(String(stored(target)["relocated_at"]))).toBeGreaterThan(Date.now() - 60_000);
    expect(await read(target)).toMatchObject({ standing: "stored", identity: { worktreeId } });
    // A new worktree in the old place is somebody else.
    git(main, "worktree", "add", "--quiet", linked, "-b", "successor");
    expect((await ensure(linked)).identity.worktreeId).not.toBe(worktreeId);
    expect((await read(target)).identity.worktreeId).toBe(worktreeId);
  });

  it("is told without what a terminal would obey, wherever its file says that it was", async () => {
    const { linked } = repositoryWithWorktree("obeying");
    await ensure(linked);
    fs.writeFileSync(file(linked), JSON.stringify({ ...stored(linked), root: "/\u001b[2J\u202e" }));
    const { standing, warning } = await read(linked);
    expect(standing).toBe("moved");
    expect(warning).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  it("moves also when another worktree has taken its old place since", async () => {
    const { main, linked } = repositoryWithWorktree("replaced");
    const { worktreeId } = (await ensure(linked)).identity;
    const target = path.join(home, "replaced-there");
    git(main, "worktree", "move", linked, target);
    git(main, "worktree", "add", "--quiet", linked, "-b", "successor");
    await ensure(linked);
    expect(await read(target)).toMatchObject({ standing: "moved", identity: { worktreeId } });
  });

  it("is one for one directory under two names", async (context) => {
    const { main } = repositoryWithWorktree("mounted");
    const { worktreeId } = (await ensure(main)).identity;
    const mount = path.join(home, "mounted-too");
    fs.mkdirSync(mount);
    // Only root may, and in many containers not even root.
    if (spawnSync("mount", ["--bind", main, mount]).status !== 0) return context.skip("cannot mount here");
    try {
      expect((await read(mount)).identity.worktreeId).toBe(worktreeId);
      expect((await ensure(mount)).identity.worktreeId).toBe(worktreeId);
      expect((await ensure(main)).identity.worktreeId).toBe(worktreeId);
    } finally {
      spawnSync("umount", [mount]);
    }
  });

  it("is not shared by a copy of another live worktree's file (scenario 20)", async () => {
    const { main, linked } = repositoryWithWorktree("copying");
    const original = (await ensure(main)).identity.worktreeId;
    write(file(linked), fs.readFileSync(file(main), "utf8"));
    const seen = await read(linked);
    expect(seen.standing).toBe("copied");
    expect(seen.identity.worktreeId).not.toBe(original);
    expect((await ensure(linked)).identity.worktreeId).toBe(seen.identity.worktreeId);
    expect(await read(linked)).toMatchObject({ standing: "stored", identity: { root: linked } });
    expect(await read(main)).toMatchObject({ standing: "stored", identity: { worktreeId: original } });
  });

  it("is not shared by a copied repository", async () => {
    const { main } = repositoryWithWorktree("whole");
    const original = (await ensure(main)).identity.worktreeId;
    const copy = path.join(home, "whole-copy");
    fs.cpSync(main, copy, { recursive: true });
    expect((await ensure(copy)).standing).toBe("copied");
    expect((await read(copy)).identity.worktreeId).not.toBe(original);
  });

  it.each([
    "{",
    "null",
    "[]",
    "{}",
    '{"schema_version":1,"worktree_id":"wt:xyz","root":"/","created_at":""}',
    "\xff",
  ])("is made anew when the file is damaged: %j", async (text) => {
    const { main } = repositoryWithWorktree(`damaged-${Buffer.from(text).toString("hex").slice(0, 20)}`);
    const { worktreeId } = (await ensure(main)).identity;
    fs.writeFileSync(file(main), text);
    const seen = await read(main);
    expect(seen).toMatchObject({ standing: "damaged", identity: { worktreeId } });
    expect(fs.readFileSync(file(main), "utf8")).toBe(text);
    const mended = await ensure(main);
    expect(mended.identity.worktreeId).toBe(worktreeId);
    expect(mended.warning).toContain("damaged");
    expect(await read(main)).toMatchObject({ standing: "stored", identity: { worktreeId } });
    const aside = fs.readdirSync(path.join(main, ".cotenant")).find((name) => name.includes("damaged"));
    expect(fs.readFileSync(path.join(main, ".cotenant", aside!), "utf8")).toBe(text);
    expect(git(main, "status", "--porcelain", "--untracked-files=all")).toBe("");
  });

  it("of a newer cotenant is left alone", async () => {
    const { main } = repositoryWithWorktree("newer");
    const text = '{"schema_version": 2, "worktree_id": "wt:12345678"}';
    write(file(main), text);
    for (const attempt of [read, ensure]) {
      const failure = await attempt(main).catch((error: unknown) => error as CotenantError);
      expect(failure).toMatchObject({ code: "E_SCHEMA_NEWER" });
    }
    expect(fs.readFileSync(file(main), "utf8")).toBe(text);
  });

  it("is not written through a link out of the worktree", async () => {
    const { main } = repositoryWithWorktree("linked-out");
    const target = path.join(home, "victim");
    fs.mkdirSync(target);
    fs.symlinkSync(target, path.join(main, ".cotenant"));
    const failure = await ensure(main).catch((error: unknown) => error as CotenantError);
    expect(failure).toMatchObject({ code: "E_PATH_ESCAPE" });
    expect(fs.readdirSync(target)).toEqual([]);
  });

  it("is the same for processes that come first at the same time", async () => {
    const { main } = repositoryWithWorktree("race");
    const ids = await Promise.all(Array.from({ length: 8 }, () => ensure(main)));
    expect(new Set(ids.map(({ identity }) => identity.worktreeId)).size).toBe(1);
    expect(fs.readdirSync(path.join(main, ".cotenant")).sort()).toEqual([".gitignore", "worktree.json"]);
  });

  it("needs no template", async () => {
    const main = makeRepository(path.join(home, "bare-bones"), "--template=");
    const { worktreeId } = (await read(main)).identity;
    expect((await ensure(main)).identity.worktreeId).toBe(worktreeId);
  });

  it("has files as open as the worktree is", async () => {
    const { main } = repositoryWithWorktree("modes");
    fs.chmodSync(main, 0o750);
    await ensure(main);
    expect(fs.statSync(path.join(main, ".cotenant")).mode & 0o777).toBe(0o750);
    expect(fs.statSync(file(main)).mode & 0o777).toBe(0o640);
  });

  it("never asked Git for any of this", () => {
    expect(asked.asked).toEqual([]);
  });
});

describe("the list of worktrees", () => {
  /** What `git worktree list` says, in our shape. */
  function byGit(root: string) {
    return git(root, "worktree", "list", "--porcelain")
      .split("\n\n")
      .map((record) => {
        const field = (name: string) => new RegExp(`^${name} ?(.*)$`, "m").exec(record)?.[1];
        return {
          root: field("worktree"),
          branch: field("branch")?.replace("refs/heads/", "") ?? null,
          exists: field("prunable") === undefined,
        };
      })
      .sort((a, b) => (a.root! < b.root! ? -1 : 1));
  }

  it("is Git's", async () => {
    const { main, linked } = repositoryWithWorktree("listing");
    git(main, "worktree", "add", "--quiet", "--detach", path.join(home, "detached ünï"));
    git(main, "worktree", "add", "--quiet", path.join(main, "inside"), "-b", "inside");
    git(main, "worktree", "add", "--quiet", path.join(home, "gone"), "-b", "gone");
    fs.rmSync(path.join(home, "gone"), { recursive: true });
    await ensure(linked);
    for (const from of [main, linked]) {
      const before = asked.asked.length;
      const ours = await listWorktrees(platform, asked, await find(from));
      expect(asked.asked.length).toBe(before);
      const comparable = ours
        .map(({ root, branch, exists }) => ({ root, branch, exists }))
        .sort((a, b) => (a.root < b.root ? -1 : 1));
      expect(comparable).toEqual(byGit(from));
      expect(ours[0]).toMatchObject({ root: main, isMain: true, gitDir: path.join(main, ".git") });
      expect(ours.filter(({ isMain }) => isMain)).toHaveLength(1);
      for (const entry of ours) {
        expect(entry.worktreeId).toBe(entry.exists ? (await read(entry.root)).identity.worktreeId : null);
      }
    }
  });

  it("has no main worktree where there is none, and survives one newer file", async () => {
    const { main } = repositoryWithWorktree("source");
    const bare = path.join(home, "list-bare.git");
    git(home, "clone", "--quiet", "--bare", main, bare);
    const [a, b] = [path.join(home, "bare-a"), path.join(home, "bare-b")];
    git(bare, "worktree", "add", "--quiet", a, "main");
    git(bare, "worktree", "add", "--quiet", b, "-b", "b");
    write(file(b), '{"schema_version": 99}');
    const ours = await listWorktrees(platform, asked, await find(a));
    expect(ours.map(({ root, isMain }) => ({ root, isMain }))).toEqual([
      { root: a, isMain: false },
      { root: b, isMain: false },
    ]);
    expect(ours.map(({ worktreeId }) => worktreeId !== null)).toEqual([true, false]);
  });

  it("understands relative paths between Git's directory and the worktree", async () => {
    const { main, linked } = repositoryWithWorktree("relative");
    // As `git worktree add --relative-paths` of newer versions writes them.
    const gitDir = path.join(main, ".git/worktrees/relative-linked");
    fs.writeFileSync(path.join(gitDir, "gitdir"), `${path.relative(gitDir, linked)}/.git\n`);
    fs.writeFileSync(path.join(linked, ".git"), `gitdir: ${path.relative(linked, gitDir)}\n`);
    const repository = await find(linked);
    expect(repository).toMatchObject({ worktreeRoot: linked, gitDir, isMainWorktree: false });
    const ours = await listWorktrees(platform, asked, repository);
    expect(ours.map(({ root }) => root)).toEqual([main, linked]);
  });
});
