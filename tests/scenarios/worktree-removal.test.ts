import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import { pictureOf, TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { gitWithDoor, KILL_CALLER } from "../support/slow-git";
import { treePicture } from "../support/tree-picture";

const it = oneIn(5);

function repository(where = "repo"): { repo: TestRepo; feature: TestRepo } {
  const repo = TestRepo.make(path.join(scratch(), where));
  repo.write("a.txt", "a\n");
  repo.write(".gitignore", "*.log\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return { repo, feature: repo.addWorktree("feature") };
}

const removed = (repo: TestRepo, ...flags: string[]) =>
  repo.ask("agent:a", "worktree", "remove", "feature", ...flags);

async function restoredFrom(repo: TestRepo, id: unknown): Promise<TestRepo> {
  await repo.prepare("agent:b", "restore", String(id), "--path", "../back");
  return repo.at("../back");
}

describe("S61: worktree remove", () => {
  it("keeps what exists nowhere else as a snapshot first", async () => {
    const { repo, feature } = repository();
    feature.write("a.txt", "changed\n");
    feature.write("new/untracked.txt", "new\n");
    feature.write("staged.txt", "staged\n");
    feature.git("add", "staged.txt");
    feature.write("staged.txt", "and changed since\n");
    const files = treePicture(feature.root);
    const index = feature.git("ls-files", "-s");
    const { data } = await removed(repo);
    expect(fs.existsSync(feature.root)).toBe(false);
    expect(repo.git("worktree", "list", "--porcelain")).not.toContain(feature.root);
    expect(repo.git("branch", "--list", "feature").trim()).toBe("feature");
    const back = await restoredFrom(repo, data["snapshot_id"]);
    expect(treePicture(back.root)).toEqual(files);
    expect(back.git("ls-files", "-s")).toBe(index);
  });

  it("says which claims it gives back, and which issues are written nowhere else", async () => {
    const { repo, feature } = repository();
    const [done, open] = [await repo.issue(), await repo.issue()];
    for (const id of [done, open]) await feature.prepare("agent:a", "claim", "acquire", id);
    await feature.prepare("agent:a", "issue", "update", done, "--state", "done");
    const { stdout } = await repo.runHere("agent:a", "worktree", "remove", "feature");
    expect(stdout).toMatch(/given back: .*issue:/);
    expect(stdout).toContain(`issue:${open}`);
    expect(stdout).toMatch(/issue \w+ is done there only: no commit has that/);
    expect(stdout).toMatch(/not committed is snapshot \w+, and nowhere else/);
    expect((await repo.prepare("agent:b", "claim", "acquire", open)).lease.agent_id).toBe("agent:b");
  });

  it("is refused with --no-snapshot, and nothing is gone", async () => {
    const { repo, feature } = repository();
    feature.write("new.txt", "new\n");
    const files = treePicture(feature.root);
    expectJsonRefused(await removed(repo, "--no-snapshot"), 9, "E_POLICY");
    expect(treePicture(feature.root)).toEqual(files);
  });

  it("just removes one that has nothing of its own", async () => {
    const { repo, feature } = repository();
    feature.write("debug.log", "ignored\n");
    expect((await removed(repo, "--no-snapshot")).data["snapshot_id"]).toBe(null);
    expect(fs.existsSync(feature.root)).toBe(false);
    expect(fs.readdirSync(path.dirname(feature.root)).sort()).toEqual(["repo"]);
  });

  it("keeps ignored files with --ignored", async () => {
    const { repo, feature } = repository();
    feature.write("debug.log", "ignored\n");
    const back = await restoredFrom(repo, (await removed(repo, "--ignored")).data["snapshot_id"]);
    expect(fs.readFileSync(path.join(back.root, "debug.log"), "utf8")).toBe("ignored\n");
  });

  it("keeps commits that no branch leads to", async () => {
    const { repo, feature } = repository();
    feature.git("checkout", "--quiet", "--detach");
    feature.write("a.txt", "on no branch\n");
    feature.git("commit", "--quiet", "--all", "--message", "lone");
    const lone = feature.git("rev-parse", "HEAD").trim();
    feature.git("checkout", "--quiet", "feature");
    expectJsonRefused(await removed(repo, "--no-snapshot"), 9, "E_POLICY");
    const { data } = await removed(repo);
    repo.git("reflog", "expire", "--expire=now", "--all");
    repo.git("gc", "--quiet", "--prune=now");
    expect(repo.git("cat-file", "-t", lone).trim()).toBe("commit");
    expect(
      repo.git("merge-base", "--is-ancestor", lone, `refs/cotenant/snapshots/${data["snapshot_id"]}`),
    ).toBe("");
  });

  it("keeps commits that only a ref of its own leads to, or that HEAD was on before a new beginning", async () => {
    const { repo, feature } = repository();
    const commit = (message: string) => feature.git("commit-tree", "-m", message, "HEAD^{tree}").trim();
    const [own, before] = [commit("its own"), commit("before")];
    feature.git("update-ref", "refs/worktree/mine", own);
    feature.git("checkout", "--quiet", before);
    feature.git("checkout", "--quiet", "--orphan", "new");
    feature.git("rm", "-r", "--quiet", "--force", ".");
    const { data } = await repo.ask("agent:a", "worktree", "remove", "../feature");
    const ref = `refs/cotenant/snapshots/${data["snapshot_id"]}`;
    for (const lone of [own, before])
      expect(repo.git("merge-base", "--is-ancestor", lone, ref), "not to be thrown").toBe("");
  });

  it("keeps what Git was told not to look at", async () => {
    const { repo, feature } = repository();
    feature.git("update-index", "--assume-unchanged", "a.txt");
    feature.git("update-index", "--skip-worktree", ".gitignore");
    feature.write("a.txt", "mine alone\n");
    expect(feature.git("status", "--porcelain")).toBe("");
    expectJsonRefused(await removed(repo, "--no-snapshot"), 9, "E_POLICY");
    const back = await restoredFrom(repo, (await removed(repo)).data["snapshot_id"]);
    expect(fs.readFileSync(path.join(back.root, "a.txt"), "utf8")).toBe("mine alone\n");
    const other = repo.addWorktree("other");
    other.git("update-index", "--assume-unchanged", "a.txt");
    const same = await repo.ask("agent:a", "worktree", "remove", "other", "--no-snapshot");
    expect(same.data["snapshot_id"], "it is as it was committed").toBe(null);
  });

  it("is refused while somebody else works there, while a merge is under way, and of the main one", async () => {
    const { repo, feature } = repository();
    await feature.prepare("agent:b", "lock", "acquire", "a.txt");
    expectJsonRefused(await removed(repo), 1, "E_LOCK_CONFLICT");
    await feature.prepare("agent:b", "lock", "release", "a.txt");
    fs.writeFileSync(path.join(repo.root, ".git/worktrees/feature/MERGE_HEAD"), "");
    expectJsonRefused(await removed(repo), 9, "E_POLICY");
    fs.rmSync(path.join(repo.root, ".git/worktrees/feature/MERGE_HEAD"));
    expectJsonRefused(await repo.ask("agent:a", "worktree", "remove", "."), 9, "E_POLICY");
    expectJsonRefused(await repo.ask("agent:a", "worktree", "remove", "elsewhere"), 4, "E_NOT_FOUND");
    repo.git("worktree", "lock", "--reason", "on a stick", feature.root);
    const locked = await removed(repo);
    expectJsonRefused(locked, 9, "E_POLICY");
    expect(locked.error.message).toContain("on a stick");
  });

  it("is refused when a repository inside has something that nobody else has", async () => {
    const { repo, feature } = repository("d\u00e9j\u00e0/repo");
    const inner = TestRepo.make(path.join(feature.root, "inner"));
    inner.write("x.txt");
    inner.git("add", "--all");
    inner.git("commit", "--quiet", "--message", "only here");
    expectJsonRefused(await removed(repo), 9, "E_POLICY");
    expect(fs.existsSync(path.join(inner.root, "x.txt"))).toBe(true);
    expect((await repo.prepare("agent:a", "history", "--all"))["snapshots"], "nothing was needed").toEqual(
      [],
    );
    const elsewhere = path.join(path.dirname(repo.root), "elsewhere.git");
    inner.git("clone", "--quiet", "--bare", ".", elsewhere);
    inner.git("remote", "add", "origin", elsewhere);
    inner.git("fetch", "--quiet", "origin");
    expect((await removed(repo)).status).toBe(0);
  });

  it("puts a worktree back in which somebody writes after it was kept", async () => {
    const { repo, feature } = repository();
    feature.write("new.txt", "new\n");
    // The last thing before it is deleted is a look at it, where it was put aside.
    const spoil = `cd "$(dirname ${JSON.stringify(feature.root)})"/.cotenant-gone-*/tree && echo late >> new.txt`;
    const { env } = gitWithDoor(".cotenant-gone-", spoil);
    const args = ["worktree", "remove", "feature", "--json"];
    expectJsonRefused(await repo.start("agent:a", args, { env }).done, 9, "E_CONSISTENCY_UNAVAILABLE");
    expect(fs.readFileSync(path.join(feature.root, "new.txt"), "utf8")).toBe("new\nlate\n");
    expect(feature.git("status", "--porcelain")).toBe("?? new.txt\n");
    expect(fs.readdirSync(path.dirname(feature.root)).sort()).toEqual(["feature", "repo"]);
    expect((await removed(repo)).status).toBe(0);
  });

  it("killed before the last look: the next one puts it back", async () => {
    const { repo, feature } = repository();
    feature.write("new.txt", "new\n");
    const files = treePicture(feature.root);
    const { env } = gitWithDoor(".cotenant-gone-", KILL_CALLER);
    expect((await repo.start("agent:a", ["worktree", "remove", "feature"], { env }).done).status).toBe(null);
    expect(fs.existsSync(feature.root)).toBe(false);
    expect((await repo.askHere("agent:b", "doctor")).stdout).toContain("is being removed");
    await repo.ask("agent:b", "doctor", "--strict", "--repair");
    expect(treePicture(feature.root)).toEqual(files);
    expect(feature.git("status", "--porcelain")).toBe("?? new.txt\n");
  });

  it("killed after it: the next one finishes", async () => {
    const { repo, feature } = repository();
    feature.write("new.txt", "new\n");
    const { env } = gitWithDoor(".cotenant-gone-", KILL_CALLER);
    expect((await repo.start("agent:a", ["worktree", "remove", "feature"], { env }).done).status).toBe(null);
    const beside = path.dirname(feature.root);
    const aside = fs.readdirSync(beside).find((name) => name.startsWith(".cotenant-gone-"));
    fs.writeFileSync(path.join(beside, aside!, "checked"), "");
    await repo.ask("agent:b", "gc");
    expect(repo.git("worktree", "list", "--porcelain")).not.toContain("feature");
    expect(fs.readdirSync(path.dirname(feature.root)).sort()).toEqual(["repo"]);
    const { snapshots } = (await repo.prepare("agent:b", "history", "--all")) as unknown as {
      snapshots: { snapshot_id: string }[];
    };
    const back = await restoredFrom(repo, snapshots[0]!.snapshot_id);
    expect(fs.readFileSync(path.join(back.root, "new.txt"), "utf8")).toBe("new\n");
  });

  it("keeps what is in a shared worktree, too", async () => {
    const { repo, feature } = repository();
    feature.write("new.txt", "new\n");
    await feature.prepare("agent:a", "worktree", "access", "shared");
    const back = await restoredFrom(repo, (await removed(repo)).data["snapshot_id"]);
    expect(fs.readFileSync(path.join(back.root, "new.txt"), "utf8")).toBe("new\n");
  });

  it("works from inside the worktree that goes", async () => {
    const { feature } = repository();
    feature.write("new.txt", "new\n");
    const ran = await feature.ask("agent:a", "worktree", "remove", ".");
    expect(ran.status, `${ran}`).toBe(0);
    expect(fs.existsSync(feature.root)).toBe(false);
  });
});

describe("a worktree that was deleted by hand", () => {
  const listed = (repo: TestRepo) => repo.git("worktree", "list", "--porcelain");

  it.each(["at once", "after gc and a repair"])("is removed, and made again, %s", async (when) => {
    const { repo, feature } = repository();
    const other = repo.addWorktree("other");
    await feature.prepare("agent:a", "worktree", "access", "shared");
    for (const { root } of [feature, other]) fs.rmSync(root, { recursive: true });
    if (when !== "at once")
      for (const command of ["gc", "doctor --strict --repair"])
        await repo.ask("agent:a", ...command.split(" "));
    const { data } = await removed(repo);
    expect(data).toMatchObject({
      worktree: { root: feature.root, branch: "feature" },
      was_gone: true,
      kept_ref: null,
    });
    expect(listed(repo)).not.toContain(feature.root);
    expect(listed(repo), "another one is another matter").toContain(other.root);
    expect((await repo.ask("agent:a", "worktree", "create", "feature")).status).toBe(0);
    // Without a word before: the branch is free, whatever Git has on record.
    expect((await repo.ask("agent:a", "worktree", "create", "other", "--path", other.root)).status).toBe(0);
    expect(repo.at(other.root).git("status", "--porcelain", "--branch")).toBe("## other\n");
    const { worktrees } = (await repo.ask("agent:a", "worktree", "list")).data;
    expect(worktrees.map((one) => (one as unknown as { access: string }).access)).toEqual([
      "exclusive",
      "exclusive",
      "exclusive",
    ]);
  });

  it("leaves a foreign repository in its place as it is", async () => {
    const { repo, feature } = repository();
    feature.git("checkout", "--quiet", "-b", "mine");
    fs.rmSync(feature.root, { recursive: true });
    const foreign = TestRepo.make(feature.root);
    foreign.write("theirs.txt", "theirs\n");
    const before = pictureOf(feature.root);
    const beside = () => fs.readdirSync(path.dirname(feature.root)).sort();
    const around = beside();
    const { worktrees } = (await repo.ask("agent:a", "worktree", "list")).data;
    expect(worktrees[1]).toMatchObject({ root: feature.root, exists: false, worktree_id: null });
    const args = ["worktree", "create", "mine", "--path", feature.root];
    expectJsonRefused(await repo.ask("agent:a", ...args), 9, "E_POLICY");
    expect(listed(repo), "what is refused changes nothing").toContain(feature.root);
    const { data } = await repo.ask("agent:a", "worktree", "remove", "../feature");
    expect(data["was_gone"]).toBe(true);
    expect(listed(repo)).not.toContain(feature.root);
    expect((await repo.ask("agent:a", "worktree", "create", "mine", "--path", "../free")).status).toBe(0);
    expect(pictureOf(feature.root)).toEqual(before);
    expect(beside()).toEqual([...around, "free"].sort());
  });

  it("has what only its record led to kept: commits of no branch, and what was staged", async () => {
    const { repo, feature } = repository();
    feature.git("checkout", "--quiet", "--detach");
    feature.git("commit", "--quiet", "--allow-empty", "--message", "lone");
    const lone = feature.git("rev-parse", "HEAD").trim();
    feature.write("staged.txt", "staged\n");
    feature.git("add", "staged.txt");
    fs.rmSync(feature.root, { recursive: true });
    const { data } = await repo.ask("agent:a", "worktree", "remove", "../feature");
    const ref = String(data["kept_ref"]);
    expect(repo.git("merge-base", "--is-ancestor", lone, ref), "not to be thrown").toBe("");
    expect(repo.git("show", `${ref}:staged.txt`)).toBe("staged\n");
  });

  it("is not forgotten where somebody has locked it in Git, for it may come back", async () => {
    const { repo, feature } = repository();
    repo.git("worktree", "lock", "--reason", "on a stick", feature.root);
    fs.rmSync(feature.root, { recursive: true });
    for (const command of ["worktree remove feature", "worktree create feature"])
      expectJsonRefused(await repo.ask("agent:a", ...command.split(" ")), 9, "E_POLICY");
    expect(listed(repo)).toContain(feature.root);
  });

  it("is only mended, not forgotten, where its repository was moved away", async () => {
    const { repo, feature } = repository();
    const moved = path.join(path.dirname(repo.root), "moved");
    fs.renameSync(repo.root, moved);
    expect((await repo.at(moved).ask("agent:a", "worktree", "remove", "../feature")).status).not.toBe(0);
    repo.at(moved).git("worktree", "repair", feature.root);
    expect(feature.git("status", "--porcelain")).toBe("");
  });
});
