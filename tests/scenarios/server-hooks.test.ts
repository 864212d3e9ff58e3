import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { READING_LIMITS } from "../../src/git/commits";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

/** Somebody's clone; whatever they commit goes around every hook of theirs. */
let repo: TestRepo;
/** A worktree of the very repository that is pushed to: claims and locks there are the server's own. */
let desk: TestRepo;
let hub: string;
let id: string;

beforeEach(async () => {
  repo = TestRepo.make();
  hub = path.join(path.dirname(repo.root), "hub.git");
  repo.git("init", "--quiet", "--bare", "--initial-branch=main", hub);
  repo.git("remote", "add", "origin", hub);
  repo.git("config", "core.hooksPath", "/dev/null");
  for (const file of ["a.txt", "b.txt", "lib/x.txt"]) repo.write(file);
  await repo.prepare("human:ada", "init");
  commit("first");
  repo.git("push", "--quiet", "origin", "main");
  repo.git("--git-dir", hub, "worktree", "add", "--quiet", "-b", "desk", "../desk", "main");
  desk = repo.at("../desk");
  id = await desk.issue("Claimed by b");
  desk.git("add", ".cotenant");
  desk.git("commit", "--quiet", "--message", "an issue");
  repo.git("fetch", "--quiet", "origin");
  repo.git("merge", "--quiet", "--ff-only", "origin/desk");
  repo.git("push", "--quiet", "origin", "main");
  const installed = await run([PROGRAM, "hooks", "install", "--server"], { cwd: hub });
  expect(installed.status, `${installed}`).toBe(0);
});

const issueFile = () => `.cotenant/issues/${id}/issue.json`;
const editIssue = (change: Record<string, unknown>) => {
  const before = JSON.parse(fs.readFileSync(path.join(repo.root, issueFile()), "utf8"));
  repo.write(issueFile(), `${JSON.stringify({ ...before, ...change }, null, 2)}\n`);
};
const commit = (message: string) => {
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "--message", message);
  return repo.git("rev-parse", "HEAD").trim();
};
const push = (...refs: string[]) => run(["git", "push", "origin", ...refs], { cwd: repo.root });
const there = (ref: string) => repo.git("ls-remote", "origin", ref).split("\t")[0];
const expectRefused = async (pushed: Promise<Ran>, ...words: string[]) => {
  const ran = await pushed;
  expect(ran.status, `${ran}`).not.toBe(0);
  for (const word of ["cotenant pre-receive (layer 4)", ...words]) expect(ran.stderr).toContain(word);
};
const expectTaken = async (pushed: Promise<Ran>) => {
  const ran = await pushed;
  expect(ran.status, `${ran}`).toBe(0);
  expect(ran.stderr).not.toContain("cannot tell");
};
const trailersOf = (lease: { lease_id: string; fencing_token: number }, agent: string) =>
  `x\n\nCotenant-Issue: ${id}\nCotenant-Lease: ${lease.lease_id}\nCotenant-Token: ${lease.fencing_token}\nCotenant-Agent: ${agent}\n`;

describe("S79: a server's hook refuses each change of an issue that somebody else has claimed", () => {
  beforeEach(async () => void (await desk.prepare("agent:b", "claim", "acquire", id)));

  it("in several commits without trailers, among others that change none", async () => {
    editIssue({ title: "One" });
    commit("one");
    repo.write("a.txt", "2\n");
    commit("");
    editIssue({ title: "Two" });
    commit("two");
    await expectRefused(push("main"), id, "E_LEASE_REQUIRED");
    await expectRefused(push("main:refs/heads/other"), id);
    repo.git("reset", "--quiet", "--hard", "origin/main");
    for (const content of ["3\n", "4\n", "5\n"]) {
      repo.write("a.txt", content);
      commit("no trailers, and none needed");
    }
    await expectTaken(push("main"));
  });

  it("in a merge commit that makes the change itself", async () => {
    repo.git("switch", "--quiet", "--create", "side");
    repo.write("a.txt", "side\n");
    commit("side");
    repo.git("switch", "--quiet", "main");
    repo.write("b.txt", "main\n");
    commit("main");
    repo.git("merge", "--quiet", "--no-commit", "--no-ff", "side");
    editIssue({ title: "In the merge" });
    commit("merge");
    await expectRefused(push("main"), id);
    repo.git("reset", "--quiet", "--hard", "HEAD~1");
    repo.git("merge", "--quiet", "--no-edit", "side");
    await expectTaken(push("main"));
  });

  it("in a merge that drops what the branch had, or brings in the issue as if it were new", async () => {
    const base = repo.git("rev-parse", "main~1").trim();
    const held = fs.readFileSync(path.join(repo.root, issueFile()), "utf8");
    repo.git("switch", "--quiet", "--create", "fresh", base);
    fs.mkdirSync(path.dirname(path.join(repo.root, issueFile())), { recursive: true });
    repo.write(issueFile(), held.replace("Claimed by b", "Made up"));
    commit("as if new");
    // On a branch of its own it is new; there nobody has it.
    await expectTaken(push("fresh"));
    repo.git("switch", "--quiet", "main");
    await run(["git", "merge", "--no-commit", "--strategy-option=theirs", "fresh"], { cwd: repo.root });
    repo.git("checkout", "--quiet", "fresh", "--", issueFile());
    commit("merge");
    await expectRefused(push("main"), id, "replaces what the branch has");
    repo.git("tag", "--annotate", "--message", "t", "merged");
    for (const range of [
      "origin/main..HEAD",
      "origin/main..merged",
      "origin/main...HEAD",
      "HEAD^!",
      "HEAD",
    ]) {
      const { status, json } = await repo.askHere("agent:x", "validate", "commits", range);
      expect([status, json.data?.["objections"]], range).toMatchObject([6, [{ path: issueFile() }]]);
    }
    // The same the other way round: the branch's own side is thrown away.
    repo.git("reset", "--quiet", "--hard", "origin/main");
    repo.git("switch", "--quiet", "fresh");
    repo.git("merge", "--quiet", "--strategy=ours", "--no-edit", "main");
    await expectRefused(push("fresh:main"), id);
  });

  it("behind a file whose name looks like Git's answer, or a commit that is replaced by a harmless one", async () => {
    const base = repo.git("rev-parse", "HEAD").trim();
    repo.write(`x\n${base}\n`, "odd\n");
    editIssue({ title: "Behind an odd name" });
    commit("odd");
    await expectRefused(push("main"), id);
    repo.git("reset", "--quiet", "--hard", base);
    repo.write("a.txt", "harmless\n");
    const harmless = commit("harmless");
    repo.git("reset", "--quiet", "--hard", base);
    editIssue({ title: "Behind a replacement" });
    const harmful = commit("harmful");
    await expectTaken(push(`${harmless}:refs/heads/harmless`));
    repo.git("replace", harmful, harmless);
    const env = { GIT_NO_REPLACE_OBJECTS: "1" };
    const pushed = (...refs: string[]) => run(["git", "push", "origin", ...refs], { cwd: repo.root, env });
    await pushed(`refs/replace/${harmful}`);
    await expectRefused(pushed(`${harmful}:main`), id);
  });

  it("behind more commits than can be looked at, and any that it cannot read", async () => {
    editIssue({ title: "Behind many" });
    const harmful = commit("harmful");
    const many = Array.from(
      { length: READING_LIMITS.commits },
      (_, i) =>
        `commit refs/heads/many\ncommitter A <a@b> ${1_700_000_000 + i} +0000\ndata 1\nx\n${i === 0 ? `from ${harmful}\n` : ""}`,
    );
    execFileSync("git", ["fast-import", "--quiet"], { cwd: repo.root, input: many.join("\n") });
    await expectRefused(push("many:main"), "cannot tell", "E_LIMIT", "push them in parts");
    fs.writeFileSync(path.join(hub, "cotenant/claims.jsonl"), "damaged\n");
    fs.rmSync(path.join(hub, "cotenant/index"), { recursive: true, force: true });
    repo.git("reset", "--quiet", "--hard", "origin/main");
    repo.write("a.txt", "x\n");
    commit("harmless");
    await expectRefused(push("main"), "cannot tell");
  });

  it("under a name that becomes the issue's own where upper and lower case are one, as other hooks do", async () => {
    const other = `.cotenant/issues/${id.toLowerCase()}/Issue.json`;
    repo.write(other, "{}\n");
    commit("other spelling");
    await expectRefused(push("main"), "E_POLICY", other, issueFile());
    repo.git("rm", "--quiet", "--cached", other);
    repo.git("commit", "--quiet", "--amend", "--allow-empty", "--message", "without it");
    fs.rmSync(path.join(repo.root, path.dirname(other)), { recursive: true });
    await expectTaken(push("main"));
    desk.write(other, "{}\n");
    desk.git("add", ".cotenant");
    const env = { COTENANT_AGENT_ID: "agent:b" };
    const judged = await run([PROGRAM, "hook", "pre-commit"], { cwd: desk.root, env });
    expect(judged.status).not.toBe(0);
    expect(judged.stderr).toContain(`is ${issueFile()} on disks`);
    await desk.prepare("agent:b", "lock", "acquire", other);
    const args = ["publish", "--branch", "topic", "--message", "x", "--from-worktree", other];
    expect((await desk.ask("agent:b", ...args)).error).toMatchObject({ code: "E_POLICY" });
  });

  it("also where cotenant itself is missing on the server, which is said", async () => {
    const hook = path.join(hub, "hooks/pre-receive");
    fs.writeFileSync(hook, fs.readFileSync(hook, "utf8").replaceAll("/bin/cotenant'", "/bin/gone'"));
    repo.write("a.txt", "x\n");
    commit("x");
    await expectRefused(push("main"), "cannot tell", "missing");
  });

  it("and whose comments are deleted or rewritten, while everybody may add some", async () => {
    const comments = `.cotenant/issues/${id}/comments.jsonl`;
    await desk.prepare("agent:c", "issue", "comment", id, "--text", "keep me");
    fs.copyFileSync(path.join(desk.root, comments), path.join(repo.root, comments));
    commit("a comment");
    await expectTaken(push("main"));
    const text = fs.readFileSync(path.join(repo.root, comments), "utf8");
    repo.write(comments, text.replace("keep me", "another"));
    commit("rewritten");
    await expectRefused(push("main"), id);
    repo.git("reset", "--quiet", "--hard", "origin/main");
    fs.rmSync(path.join(repo.root, comments));
    commit("deleted");
    await expectRefused(push("main"), id);
  });
});

describe("S79: and lets claimed ones pass", () => {
  it("with the claim's trailers, in the commits of a merge too, and what the two sides come to", async () => {
    const { lease } = await desk.prepare("agent:a", "claim", "acquire", id);
    repo.git("switch", "--quiet", "--create", "side");
    editIssue({ title: "On the side" });
    commit(trailersOf(lease, "agent:a"));
    repo.git("switch", "--quiet", "main");
    editIssue({ priority: "high" });
    commit(trailersOf(lease, "agent:a"));
    await expectTaken(push("side"));
    const merged = await run(["git", "merge", "--no-edit", "side"], { cwd: repo.root });
    expect(merged.status, `${merged}`).toBe(0);
    await expectTaken(push("main"));
    expect(there("refs/heads/main")).toBe(repo.git("rev-parse", "main").trim());
  });

  it("when a branch is rewritten or set back, and when a tag is moved", async () => {
    const { lease } = await desk.prepare("agent:a", "claim", "acquire", id);
    repo.git("switch", "--quiet", "--create", "side");
    editIssue({ title: "On the side" });
    commit(trailersOf(lease, "agent:a"));
    repo.git("tag", "--annotate", "--message", "t", "t");
    await expectTaken(push("side", "t"));
    editIssue({ title: "Rewritten" });
    repo.git("commit", "--quiet", "--all", "--amend", "--no-edit");
    repo.git("tag", "--force", "--annotate", "--message", "t", "t");
    await expectTaken(push("+side", "+t"));
    await expectTaken(push("+main:side"));
    editIssue({ title: "Without a word" });
    repo.git("commit", "--quiet", "--all", "--amend", "--message", "x");
    await expectRefused(push("+side"), id);
  });

  it("but not with a token that is too low or too high", async () => {
    const { lease } = await desk.prepare("agent:a", "claim", "acquire", id);
    for (const fencing_token of [lease.fencing_token - 1, lease.fencing_token + 1]) {
      editIssue({ title: `With ${fencing_token}` });
      commit(trailersOf({ ...lease, fencing_token }, "agent:a"));
      await expectRefused(push("main"), "E_FENCING_MISMATCH");
      repo.git("reset", "--quiet", "--hard", "origin/main");
    }
  });
});

describe("a leased file at the server", () => {
  const named = (lease: { lease_id: string; fencing_token: number }) =>
    `x\n\nCotenant-Lease: ${lease.lease_id}\nCotenant-Token: ${lease.fencing_token}\n`;

  it("is its holder's to push, and nobody else's, in directories and under odd names too", async () => {
    const { lease } = await desk.prepare("agent:b", "lock", "acquire", "b.txt");
    await desk.prepare("agent:b", "lock", "acquire", "--dir", "lib");
    for (const file of ["b.txt", "lib/new.txt", "lib/odd\u0001name"]) {
      repo.write(file, "not mine\n");
      commit("not mine");
      await expectRefused(push("main"), "is held by agent:b", "E_LOCK_CONFLICT");
      repo.git("reset", "--quiet", "--hard", "origin/main");
    }
    repo.write("b.txt", "theirs\n");
    commit(named({ ...lease, fencing_token: lease.fencing_token - 1 }));
    await expectRefused(push("main"), "E_FENCING_MISMATCH");
    repo.git("commit", "--quiet", "--amend", "--message", named(lease));
    await expectTaken(push("main"));
  });
});

describe("what concerns everybody, at the server", () => {
  const change = () => fs.appendFileSync(path.join(repo.root, ".cotenant/config.toml"), "\n# a remark\n");

  it("is changed on the main branch and allowed ones only, on top of the main branch's history", async () => {
    repo.git("--git-dir", hub, "symbolic-ref", "HEAD", "refs/heads/gone");
    const { stdout } = await run([PROGRAM, "hooks", "install", "--server"], { cwd: hub });
    expect(stdout).toContain("there is no branch gone, which is named as the main one: main counts");
    repo.git("switch", "--quiet", "--create", "topic");
    change();
    const topic = commit("settings");
    await expectRefused(push("topic"), "E_POLICY", "git config --add cotenant.allowedBranches topic");
    repo.git("--git-dir", hub, "config", "--add", "cotenant.allowedBranches", "topic");
    await expectTaken(push("topic"));
    repo.git("--git-dir", hub, "config", "--unset", "cotenant.allowedBranches");
    repo.git("switch", "--quiet", "main");
    repo.write("a.txt", "main goes on\n");
    commit("main goes on");
    await expectTaken(push("main"));
    repo.git("switch", "--quiet", "--create", "develop", `${topic}~1`);
    change();
    change();
    commit("diverged");
    await expectRefused(push("develop"), "E_DIVERGED");
    repo.git("merge", "--quiet", "--no-edit", "main");
    await expectTaken(push("develop"));
    // What others changed comes along with the main branch.
    repo.git("switch", "--quiet", "main");
    repo.git("merge", "--quiet", "--ff-only", "develop");
    await expectTaken(push("main"));
    repo.git("switch", "--quiet", "--create", "work", "topic~1");
    repo.git("merge", "--quiet", "--no-edit", "main");
    await expectTaken(push("work"));
  });
});
