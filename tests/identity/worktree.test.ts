import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import type { CotenantError } from "../../src/errors/cotenant-error";
import { findRepository } from "../../src/identity/repository";
import {
  ensureWorktreeIdentity,
  readWorktreeIdentity,
  settleWorktreeIdentity,
} from "../../src/identity/worktree";
import { listWorktrees } from "../../src/identity/worktree-list";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";
import { commit, countingGit, git, makeRepository, temporaryDirectory, write } from "./temporary";

const platform = nodePlatform();
const home = temporaryDirectory();
const asked = countingGit();
const find = (start: string) => findRepository(platform, start, {}, asked);
const read = async (root: string) => readWorktreeIdentity(platform, asked, await find(root));
const ensure = async (root: string) => ensureWorktreeIdentity(platform, asked, await find(root));
const file = (root: string) => path.join(gitDirOf(root), "cotenant-worktree.json");
const gitDirOf = (root: string) => git(root, "rev-parse", "--absolute-git-dir");
/** Where earlier versions had it. */
const earlier = (root: string) => path.join(root, ".cotenant/worktree.json");
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
      expect(fs.existsSync(file(root))).toBe(false);
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
    expect(fs.existsSync(path.join(main, ".cotenant"))).toBe(false);
    git(main, "worktree", "remove", linked);
    expect(fs.existsSync(linked)).toBe(false);
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

  it("is carried to another worktree neither by a stash nor by a commit", async () => {
    const { main, linked } = repositoryWithWorktree("carried");
    const original = (await ensure(main)).identity.worktreeId;
    write(path.join(main, "left-over"), "to be stashed");
    git(main, "stash", "push", "--quiet", "--all");
    git(linked, "stash", "pop", "--quiet");
    const other = (await ensure(linked)).identity.worktreeId;
    expect(other).not.toBe(original);
    expect((await ensure(main)).identity.worktreeId).toBe(original);
    git(main, "add", "--force", "--all");
    git(main, "commit", "--quiet", "--allow-empty", "-m", "whatever is there");
    git(linked, "merge", "--quiet", "main");
    expect((await ensure(linked)).identity.worktreeId).toBe(other);
  });

  it("is not shared by a copied repository", async () => {
    const { main } = repositoryWithWorktree("whole");
    const original = (await ensure(main)).identity.worktreeId;
    const copy = path.join(home, "whole-copy");
    fs.cpSync(main, copy, { recursive: true });
    expect((await ensure(copy)).standing).toBe("copied");
    expect((await read(copy)).identity.worktreeId).not.toBe(original);
  });

  it("is not shared by a copy that lies where the original was before it moved", async () => {
    const { main } = repositoryWithWorktree("swapped");
    const original = (await ensure(main)).identity.worktreeId;
    const moved = path.join(home, "swapped-there");
    fs.renameSync(main, moved);
    expect((await ensure(moved)).identity.worktreeId).toBe(original);
    fs.cpSync(moved, main, { recursive: true, preserveTimestamps: true });
    const { worktreeId } = (await ensure(main)).identity;
    expect(worktreeId).not.toBe(original);
    expect(await read(main)).toMatchObject({ standing: "stored", identity: { worktreeId } });
    expect((await read(moved)).identity.worktreeId).toBe(original);
  });

  it("is not shared by a copied linked worktree, though Git has one directory for both", async () => {
    const { linked } = repositoryWithWorktree("doubled");
    const original = (await ensure(linked)).identity.worktreeId;
    const copy = path.join(home, "doubled-copy");
    fs.cpSync(linked, copy, { recursive: true });
    const { standing, identity, warning } = await ensure(copy);
    expect({ standing, root: identity.root }).toEqual({ standing: "doubled", root: copy });
    expect(identity.worktreeId).not.toBe(original);
    expect(warning).toContain(linked);
    expect((await read(copy)).identity).toEqual(identity);
    expect(await read(linked)).toMatchObject({ standing: "stored", identity: { worktreeId: original } });
  });

  it("is not shared by two directories that the environment leads to", async () => {
    const { main } = repositoryWithWorktree("environment");
    const roots = ["one", "two"].map((name) => path.join(home, `environment-${name}`));
    const ids: string[] = [];
    for (const root of [...roots, ...roots]) {
      fs.mkdirSync(root, { recursive: true });
      const env = { GIT_DIR: path.join(main, ".git"), GIT_WORK_TREE: root };
      const repository = await findRepository(platform, root, env, nodeGit());
      ids.push((await ensureWorktreeIdentity(platform, nodeGit(), repository)).identity.worktreeId);
    }
    expect(ids[0]).not.toBe(ids[1]);
    expect(ids.slice(2)).toEqual(ids.slice(0, 2));
  });

  it("is given anew where two of a repository have one on record", async () => {
    const { main, linked } = repositoryWithWorktree("record");
    const original = (await ensure(main)).identity.worktreeId;
    fs.writeFileSync(file(linked), JSON.stringify({ ...stored(main), root: linked }));
    expect((await read(linked)).identity.worktreeId).toBe(original);
    const settled = await settleWorktreeIdentity(platform, asked, await find(linked));
    expect(settled.identity.worktreeId).not.toBe(original);
    expect(await read(linked)).toMatchObject({ standing: "stored", identity: settled.identity });
    expect(await settleWorktreeIdentity(platform, asked, await find(main))).toMatchObject({
      standing: "stored",
      identity: { worktreeId: original },
    });
  });

  const rooted = (root: string) =>
    `{"schema_version":1,"worktree_id":"wt:e32a2688","root":"${root}","created_at":""}`;
  it.each([
    ["no-json", "{"],
    ["null", "null"],
    ["list", "[]"],
    ["empty", "{}"],
    ["id", '{"schema_version":1,"worktree_id":"wt:xyz","root":"/","created_at":""}'],
    ["long-name", rooted(`/${"x".repeat(256)}`)],
    ["long-path", rooted(`/${"xx/".repeat(1_400)}`)],
    ["bytes", "\xff"],
  ])("is made anew when the file is damaged: %s", async (what, text) => {
    const { main } = repositoryWithWorktree(`damaged-${what}`);
    const { worktreeId } = (await ensure(main)).identity;
    fs.writeFileSync(file(main), text);
    const seen = await read(main);
    expect(seen).toMatchObject({ standing: "damaged", identity: { worktreeId } });
    expect(fs.readFileSync(file(main), "utf8")).toBe(text);
    const mended = await ensure(main);
    expect(mended.identity.worktreeId).toBe(worktreeId);
    expect(mended.warning).toContain("damaged");
    expect(await read(main)).toMatchObject({ standing: "stored", identity: { worktreeId } });
    const aside = fs.readdirSync(gitDirOf(main)).find((name) => name.includes("damaged"));
    expect(fs.readFileSync(path.join(gitDirOf(main), aside!), "utf8")).toBe(text);
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

  it("is the same for processes that come first at the same time", async () => {
    const { main } = repositoryWithWorktree("race");
    const ids = await Promise.all(Array.from({ length: 8 }, () => ensure(main)));
    expect(new Set(ids.map(({ identity }) => identity.worktreeId)).size).toBe(1);
    expect(fs.readdirSync(gitDirOf(main)).filter((name) => name.startsWith("cotenant"))).toEqual([
      "cotenant-worktree.json",
    ]);
  });

  it("needs no template", async () => {
    const main = makeRepository(path.join(home, "bare-bones"), "--template=");
    const { worktreeId } = (await read(main)).identity;
    expect((await ensure(main)).identity.worktreeId).toBe(worktreeId);
  });

  it("has a file as open as the Git directory is", async () => {
    const { main } = repositoryWithWorktree("modes");
    fs.chmodSync(path.join(main, ".git"), 0o750);
    await ensure(main);
    expect(fs.statSync(file(main)).mode & 0o777).toBe(0o640);
  });

  it("never asked Git for any of this", () => {
    expect(asked.asked).toEqual([]);
  });
});

describe("an identity that an earlier version kept among the files", () => {
  const all = nodeGit();
  const readAll = async (root: string) => readWorktreeIdentity(platform, all, await find(root));
  const ensureAll = async (root: string) => ensureWorktreeIdentity(platform, all, await find(root));
  const record = (root: string, id = "wt:0badcafe") =>
    JSON.stringify({
      schema_version: 1,
      worktree_id: id,
      branch: null,
      root,
      created_at: "2026-01-01T00:00:00Z",
    });

  it.each(["where it was", "moved since"])("is taken over once, %s", async (where) => {
    const { main } = repositoryWithWorktree(`earlier-${where.length}`);
    const root = where === "where it was" ? main : path.join(home, "nobody-here");
    write(earlier(main), record(root));
    expect((await readAll(main)).identity.worktreeId).toBe("wt:0badcafe");
    expect(fs.existsSync(file(main))).toBe(false);
    expect((await ensureAll(main)).identity).toMatchObject({ worktreeId: "wt:0badcafe", root: main });
    expect(fs.existsSync(earlier(main))).toBe(false);
    // What turns up there later does not count.
    write(earlier(main), record(main, "wt:12345678"));
    expect((await ensureAll(main)).identity.worktreeId).toBe("wt:0badcafe");
    expect(fs.existsSync(earlier(main))).toBe(true);
  });

  it("does not count where a stash brought it from a worktree that has lost it so", async () => {
    const { main, linked } = repositoryWithWorktree("earlier-stash");
    const original = (await readAll(main)).identity.worktreeId;
    write(earlier(linked), record(main, original));
    expect((await ensureAll(linked)).identity.worktreeId).not.toBe(original);
    expect((await ensureAll(main)).identity.worktreeId).toBe(original);
  });

  it("does not count where another worktree has taken it over", async () => {
    const { main, linked } = repositoryWithWorktree("earlier-twice");
    for (const root of [main, linked]) write(earlier(root), record(path.join(home, "nobody-here")));
    expect((await ensureAll(main)).identity.worktreeId).toBe("wt:0badcafe");
    expect((await ensureAll(linked)).identity.worktreeId).not.toBe("wt:0badcafe");
  });

  it.each([
    ["committed", true],
    ["damaged", false],
    ["of a newer version", false],
  ])("does not count when it is %s, and is left alone", async (what, isCommitted) => {
    const { main } = repositoryWithWorktree(`earlier-${what.replace(/ /g, "-")}`);
    const text = isCommitted ? record(main) : what === "damaged" ? "{" : '{"schema_version": 2}';
    write(earlier(main), text);
    if (isCommitted) git(main, "add", "--force", earlier(main));
    expect((await ensureAll(main)).identity.worktreeId).not.toBe("wt:0badcafe");
    expect(fs.readFileSync(earlier(main), "utf8")).toBe(text);
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
