import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { type Ran, run } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

let repo: TestRepo;

beforeEach(async () => {
  repo = TestRepo.make();
  const hub = path.join(path.dirname(repo.root), "hub.git");
  repo.git("init", "--quiet", "--bare", "--initial-branch=main", hub);
  repo.git("remote", "add", "origin", hub);
  for (const file of ["a.txt", "b.txt", "lib/x.txt"]) repo.write(file);
  await repo.prepare("human:ada", "init", "--hooks");
  repo.git("add", "--all");
  repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "first");
  repo.git("push", "--quiet", "--no-verify", "origin", "main");
});

function git(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  const own = { COTENANT_AGENT_ID: "agent:a", GIT_EDITOR: "true", ...env };
  return run(["git", ...args], { cwd: repo.root, env: own });
}
/** A commit that is made anew within one second is the same commit, with the same id. */
const nextSecond = () => new Promise((resolve) => setTimeout(resolve, 1_001 - (Date.now() % 1_000)));
const done = async (...args: string[]) => {
  const ran = await git(args);
  expect(ran.status, `${ran}`).toBe(0);
  return ran;
};
const recorded = () =>
  repo.log().filter(({ event_type }) => event_type === "policy.violated") as unknown as {
    actor: { agent_id: string };
    payload: { paths: string[]; owners: string[] };
  }[];
const expectRecorded = (path: string, agent = "agent:a") =>
  expect(recorded()).toMatchObject([
    { actor: { agent_id: agent }, payload: { paths: [path], owners: ["agent:b"] } },
  ]);
const refusedPush = async (...words: string[]) => {
  const pushed = await git(["push", "origin", "HEAD:refs/heads/main"]);
  expect(pushed.status, `${pushed}`).not.toBe(0);
  for (const word of ["cotenant pre-push (layer 3)", ...words]) expect(pushed.stderr).toContain(word);
  return pushed;
};
/** A hint, typed as it is printed. */
const hintIn = (ran: Ran, start: string) => {
  const found = ran.stderr.split("\n").find((line) => line.includes(start));
  return found!.slice(found!.indexOf(start)).split(" ");
};

describe("a change of a held file that goes around the hooks is on record", () => {
  beforeEach(async () => void (await repo.prepare("agent:b", "lock", "acquire", "b.txt")));

  it("when a rebase has stopped for an edit", async () => {
    repo.write("a.txt", "mine\n");
    await done("commit", "--all", "--message", "mine");
    const env = { GIT_SEQUENCE_EDITOR: "sed -i 1s/pick/edit/" };
    expect((await git(["rebase", "--interactive", "HEAD~1"], env)).status).toBe(0);
    expect(recorded()).toEqual([]);
    repo.write("b.txt", "theirs\n");
    await done("commit", "--all", "--amend", "--no-verify", "--no-edit");
    expectRecorded("b.txt");
    await done("rebase", "--continue");
    await refusedPush("b.txt was held by agent:b at that time");
  });

  it("when a cherry-pick waits, and what is picked itself is not", async () => {
    repo.git("switch", "--quiet", "--create", "side");
    repo.write("b.txt", "side\n");
    repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message", "side");
    repo.git("switch", "--quiet", "main");
    repo.write("b.txt", "main\n");
    repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message", "main");
    expect((await git(["cherry-pick", "side"])).status).not.toBe(0);
    repo.write("b.txt", "both\n");
    repo.git("add", "--all");
    await done("commit", "--no-edit");
    expect(recorded()).toEqual([]);
    repo.git("reset", "--quiet", "--hard", "HEAD~1");
    expect((await git(["cherry-pick", "side"])).status).not.toBe(0);
    await repo.prepare("agent:b", "lock", "acquire", "--dir", "lib");
    repo.write("lib/x.txt", "theirs\n");
    repo.git("add", "--all");
    await done("commit", "--no-verify", "--no-edit");
    expect(recorded()).toMatchObject([{ payload: { paths: expect.arrayContaining(["lib/x.txt"]) } }]);
  });

  it("when the environment switches enforcement off", async () => {
    repo.write("b.txt", "theirs\n");
    const off = { COTENANT_WORKTREE_ENFORCE_LEASES: "off" };
    expect((await git(["commit", "--all", "--message", "x"], off)).status).toBe(0);
    expectRecorded("b.txt");
    await refusedPush("around the hooks");
  });

  it("when nobody says who commits", async () => {
    repo.write("b.txt", "theirs\n");
    const env = { COTENANT_AGENT_ID: undefined };
    const ran = await run(["git", "commit", "--all", "--no-verify", "--message", "x"], {
      cwd: repo.root,
      env,
    });
    expect(ran.status, `${ran}`).toBe(0);
    expectRecorded("b.txt", "agent:unknown");
  });

  it("when a merge makes it, beside what it merges", async () => {
    repo.git("switch", "--quiet", "--create", "side");
    repo.write("a.txt", "side\n");
    await done("commit", "--all", "--message", "side");
    repo.git("switch", "--quiet", "main");
    repo.git("merge", "--quiet", "--no-commit", "--no-ff", "side");
    repo.write("b.txt", "theirs\n");
    await done("commit", "--all", "--no-verify", "--message", "merge");
    expectRecorded("b.txt");
  });
});

describe("git revert", () => {
  it("goes through the hooks: it is refused like any commit, and what is let through is not on record", async () => {
    for (const file of ["a.txt", "b.txt"]) {
      repo.write(file, "changed\n");
      repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message", file);
    }
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
    const refused = await git(["revert", "--no-edit", "HEAD"]);
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toContain("b.txt is held by agent:b");
    repo.git("reset", "--quiet", "--hard");
    await done("revert", "--no-edit", "HEAD~1");
    expect(recorded()).toEqual([]);
  });
});

describe("a name that no lease can have", () => {
  it("is refused inside a directory that somebody else holds, and on record when it goes around", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "--dir", "lib");
    repo.write("lib/odd\u0001name", "x\n");
    repo.write("odd\u0001name", "x\n");
    repo.git("add", "--all");
    const refused = await git(["commit", "--message", "x"]);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain("name is held by agent:b");
    await done("commit", "--no-verify", "--message", "x");
    expectRecorded("lib/odd\u0001name");
    await repo.prepare("agent:b", "lock", "release", "--dir", "lib");
  });
});

describe("pre-push", () => {
  it("refuses a file that somebody else held when it was committed, until it is committed anew as the hint says", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
    repo.write("b.txt", "theirs\n");
    await done("commit", "--all", "--no-verify", "--message", "theirs");
    await repo.prepare("agent:b", "lock", "release", "b.txt");
    const refused = await refusedPush("E_LOCK_CONFLICT");
    const checked = await repo.askHere("agent:x", "validate", "commits", "origin/main..HEAD");
    expect(checked.status).toBe(1);
    await nextSecond();
    await done(...hintIn(refused, "git rebase").slice(1));
    await done("push", "origin", "main");
  });

  it("refuses a file that somebody else holds now, whoever committed it", async () => {
    repo.write("b.txt", "before\n");
    await done("commit", "--all", "--message", "before");
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
    await refusedPush("b.txt is held by agent:b");
    const validated = async (agent: string) =>
      (await repo.runHere(agent, "validate", "commits", "origin/main..HEAD")).status;
    expect([await validated("agent:a"), await validated("agent:b")], "to its holder it is theirs").toEqual([
      1, 0,
    ]);
    await repo.prepare("agent:b", "lock", "release", "b.txt");
    await done("push", "origin", "main");
  });

  it("refuses an issue without a claim under every name, until it is committed anew as the hint says; elsewhere it may go on", async () => {
    const id = await repo.issue();
    const file = path.join(repo.root, ".cotenant/issues", id, "issue.json");
    const around = (title: string) => {
      const issue = JSON.parse(fs.readFileSync(file, "utf8"));
      fs.writeFileSync(file, `${JSON.stringify({ ...issue, title }, null, 2)}\n`);
      repo.git("add", "--all");
      repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", title);
    };
    around("first");
    repo.git("push", "--quiet", "--no-verify", "origin", "main");
    around("second");
    around("third");
    for (const refspec of ["main@{0 days ago}:refs/heads/main", "main:refs/heads/a\u00a0b"]) {
      const pushed = await git(["push", "origin", refspec]);
      expect(pushed.stderr, refspec).toContain(`changes issue ${id} without a claim`);
      expect(pushed.status).not.toBe(0);
    }
    const [claim, rebase] = hintIn(await refusedPush(id), "cotenant claim acquire")
      .join(" ")
      .split(" && ");
    await repo.prepare("agent:a", ...claim!.split(" ").slice(1));
    await done(...rebase!.split(" ").slice(1));
    await done("push", "origin", "main");
    around("by somebody else, who has pushed it");
    repo.git("push", "--quiet", "--no-verify", "origin", "main");
    const mirror = path.join(path.dirname(repo.root), "mirror.git");
    repo.git("init", "--quiet", "--bare", mirror);
    await done("push", mirror, "main");
  });

  it("with enforce.push = still_held wants claims and locks to be held, and its hints bring that about", async () => {
    const id = await repo.issue();
    repo.git("add", "--all");
    repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "an issue");
    await repo.prepare("human:ada", "config", "set", "enforce.push", "still_held");
    await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("agent:a", "lock", "acquire", "a.txt");
    await repo.prepare("agent:a", "issue", "update", id, "--priority", "high");
    repo.write("a.txt", "mine\n");
    await done("commit", "--all", "--message", "mine");
    await repo.prepare("agent:a", "claim", "release", id);
    await repo.prepare("agent:a", "lock", "release", "a.txt");
    const refused = await refusedPush("a.txt is not held any more", `issue ${id} is not held any more`);
    for (const start of ["cotenant claim acquire", "cotenant lock acquire"])
      await repo.prepare("agent:a", ...hintIn(refused, start).slice(1));
    await done("push", "origin", "main");
  });

  it("that cannot tell says so loudly, and validate commits fails then", async () => {
    repo.write("a.txt", "x\n");
    await done("commit", "--all", "--message", "x");
    fs.rmSync(path.join(repo.control, "index"), { recursive: true, force: true });
    fs.rmSync(repo.logFile, { force: true });
    fs.mkdirSync(repo.logFile);
    const pushed = await done("push", "origin", "main");
    expect(pushed.stderr).toContain("cotenant pre-push: WARNING: nothing of this push was checked");
    const checked = await repo.run("agent:x", "validate", "commits", "HEAD");
    expect(checked.status, `${checked}`).not.toBe(0);
    expect(checked.status).not.toBe(6);
  });

  it("refuses settings that go to a branch which may not have them, though nobody asked before the commit", async () => {
    repo.git("switch", "--quiet", "--create", "topic");
    fs.appendFileSync(path.join(repo.root, ".cotenant/config.toml"), "\n# a remark\n");
    const refused = await git(["commit", "--all", "--message", "settings"]);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain("E_POLICY");
    const set = await repo.askHere("agent:a", "config", "set", "guard.retry_secs", "9");
    expect([set.status, set.error.code]).toEqual([9, "E_POLICY"]);
    await done("-c", "core.hooksPath=/dev/null", "commit", "--all", "--message", "settings");
    const pushed = await git(["push", "origin", "topic"]);
    expect(pushed.stderr).toContain("E_POLICY");
    expect(pushed.status).not.toBe(0);
    const allowed = { COTENANT_GLOBAL_OPERATIONS_ALLOWED_BRANCHES: "topic" };
    expect((await git(["push", "origin", "topic"], allowed)).status).toBe(0);
  });

  it("refuses comments of a claimed issue that somebody deletes, as pre-commit does and publish does", async () => {
    const id = await repo.issue();
    const comments = `.cotenant/issues/${id}/comments.jsonl`;
    await repo.prepare("agent:c", "issue", "comment", id, "--text", "keep me");
    repo.git("add", "--all");
    repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "an issue");
    repo.git("push", "--quiet", "--no-verify", "origin", "main");
    await repo.prepare("agent:b", "claim", "acquire", id);
    await repo.prepare("agent:a", "issue", "comment", id, "--text", "one more");
    await done("commit", "--all", "--message", "one more comment");
    fs.writeFileSync(path.join(repo.root, comments), "");
    const refused = await git(["commit", "--all", "--message", "none"]);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain(`issue ${id} is claimed by agent:b`);
    const args = ["publish", "--branch", "work/x", "--message", "x", "--from-worktree", comments];
    const published = await repo.askHere("agent:a", ...args);
    expect([published.status, published.error.code]).toEqual([6, "E_LOCK_NOT_HELD"]);
    await done("-c", "core.hooksPath=/dev/null", "commit", "--all", "--message", "none");
    await refusedPush(id);
  });
});
