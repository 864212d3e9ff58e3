import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { ERRORS } from "../../src/errors/registry";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run, until } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

let repo: TestRepo;
let hub: string;

beforeEach(async () => {
  repo = TestRepo.make();
  hub = path.join(path.dirname(repo.root), "hub.git");
  repo.git("init", "--quiet", "--bare", "--initial-branch=main", hub);
  repo.git("remote", "add", "origin", hub);
  for (const file of ["a.txt", "b.txt"]) repo.write(file);
  await repo.prepare("human:ada", "init", "--hooks");
  repo.git("add", "--all");
  commitQuietly("first");
  repo.git("push", "--quiet", "--no-verify", "origin", "main");
});

/** Around every hook, as the test's own doing. */
function commitQuietly(message: string): void {
  repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--allow-empty", "--message", message);
}

function git(agent: string, ...args: string[]): Promise<Ran> {
  return gitAt(repo, agent, ...args);
}

function gitAt(place: TestRepo, agent: string, ...args: string[]): Promise<Ran> {
  const env = { COTENANT_AGENT_ID: agent === "" ? undefined : agent, GIT_EDITOR: "true" };
  return run(["git", ...args], { cwd: place.root, env });
}

async function issue(): Promise<string> {
  const id = await repo.issue();
  repo.git("add", ".cotenant");
  commitQuietly("an issue");
  return id;
}

/** As an editor would, past cotenant. */
function editIssue(id: string, change: Record<string, unknown>, place = repo): void {
  const file = path.join(place.root, ".cotenant/issues", id, "issue.json");
  fs.writeFileSync(
    file,
    JSON.stringify({ ...JSON.parse(fs.readFileSync(file, "utf8")), ...change }, null, 2),
  );
}

const expectRefused = (ran: Ran, ...words: string[]) => {
  expect(ran.status, `${ran}`).not.toBe(0);
  for (const word of words) expect(ran.stderr).toContain(word);
  expect(ran.stderr).not.toMatch(/^\s+at /m);
};
const expectDone = (ran: Ran) => expect(ran.status, `${ran}`).toBe(0);
const violations = async () =>
  (
    (await repo.askHere("agent:x", "status")).data["needs_a_person"] as { code: string; message: string }[]
  ).filter(({ code }) => code === "commit_violation");

describe("S30: a structural edit of an issue, committed without a lease", () => {
  it("is refused by pre-commit, naming the layer, the issue and the next step", async () => {
    const id = await issue();
    editIssue(id, { title: "By hand" });
    const refused = await git("agent:a", "commit", "--all", "--message", "by hand");
    expectRefused(
      refused,
      "cotenant pre-commit (layer 2)",
      id,
      "E_LEASE_REQUIRED",
      `cotenant claim acquire ${id}`,
    );
    expect(repo.git("log", "-1", "--format=%s").trim()).toBe("an issue");

    await repo.prepare("agent:a", "claim", "acquire", id);
    expectDone(await git("agent:a", "commit", "--all", "--message", "by hand"));
  });

  it("is let through when it was written under a claim that was given back since", async () => {
    const id = await issue();
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("agent:a", "issue", "update", id, "--state", "done");
    await repo.prepare("agent:a", "claim", "release", id);
    // Not by somebody else, who did not write it.
    expectRefused(await git("agent:b", "commit", "--all", "--message", "theirs"), "E_LEASE_REQUIRED");
    expectDone(await git("agent:a", "commit", "--all", "--message", "done"));
    const message = repo.git("log", "-1", "--format=%B");
    expect(message).toContain(`Cotenant-Issue: ${id}\nCotenant-Lease: ${lease.lease_id}\n`);
    expect(message).toMatch(
      /Cotenant-Token: \d+\nCotenant-Agent: agent:a\nCotenant-Worktree: wt:[0-9a-f]{8}\n/,
    );
    // Amending it does not say it twice.
    expectDone(await git("agent:a", "commit", "--amend", "--no-edit"));
    expect(repo.git("log", "-1", "--format=%B").match(/Cotenant-Issue/g)).toHaveLength(1);
    expectDone(await git("agent:a", "push", "origin", "main"));
  });

  it("is refused while somebody else has claimed the issue, and a new issue never is", async () => {
    const id = await issue();
    await repo.prepare("agent:b", "claim", "acquire", id);
    editIssue(id, { title: "By hand" });
    expectRefused(
      await git("agent:a", "commit", "--all", "--message", "x"),
      "claimed by agent:b",
      "E_LOCK_NOT_HELD",
    );
    repo.git("checkout", "--quiet", "--", ".cotenant");
    await repo.prepare("agent:a", "issue", "create", "--title", "New");
    await repo.prepare("agent:a", "issue", "comment", id, "--text", "a word");
    repo.git("add", ".cotenant");
    expectDone(await git("agent:a", "commit", "--message", "a new one, and a comment"));
  });

  it("warns or says nothing where that is configured", async () => {
    const id = await issue();
    editIssue(id, { title: "By hand" });
    await repo.prepare("human:ada", "config", "set", "worktree.enforce_leases", "warn");
    const warned = await git("agent:a", "commit", "--message", "x", "--", ".cotenant/issues");
    expectDone(warned);
    expect(warned.stderr).toContain("let through");
  });
});

describe("a leased file", () => {
  it("of somebody else is refused with the owner and the exact way to go on", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
    repo.write("a.txt", "mine\n");
    repo.write("b.txt", "not mine\n");
    repo.git("add", "--all");
    const refused = await git("agent:a", "commit", "--message", "both");
    expectRefused(refused, "b.txt is held by agent:b", "git commit -m <message> -- a.txt");
    expect(refused.stderr.match(/^ {2}(?:next|or): /gm)).toHaveLength(1);
    expectDone(await git("agent:a", "commit", "--message", "mine", "--", "a.txt"));
    const onlyTheirs = await git("agent:a", "commit", "--message", "theirs");
    expectRefused(onlyTheirs, "wait for it: git reset -q -- b.txt");
    expect(repo.git("show", "--name-only", "--format=", "HEAD").trim()).toBe("a.txt");
    expectDone(await git("agent:b", "commit", "--message", "theirs", "--", "b.txt"));
  });

  it("is refused to somebody who does not say who they are, and a lapsed lease stops nobody", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
    repo.write("b.txt", "x\n");
    repo.git("add", "--all");
    expectRefused(
      await git("", "commit", "--message", "x"),
      "has not said who they are",
      "COTENANT_AGENT_ID",
    );
    await repo.prepare("agent:b", "lock", "release", "b.txt");
    await repo.prepare("agent:b", "lock", "acquire", "b.txt", "--ttl", "1");
    await until("it has lapsed", async () => {
      const { leases } = await repo.prepare("agent:b", "lock", "status");
      return leases.length === 0;
    });
    expectDone(await git("", "commit", "--message", "x"));
  });

  it("committed with --no-verify is on record: in status, in events, and at the next push", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
    repo.write("b.txt", "forced\n");
    const forced = await git("agent:a", "commit", "--all", "--no-verify", "--message", "forced");
    expectDone(forced);
    expect(forced.stderr).toContain("goes against a lease");
    const [violation] = await violations();
    expect(violation!.message).toMatch(
      /was committed by agent:a around the hooks at 20\S+Z: b\.txt was held by agent:b at that time$/,
    );
    expect((await repo.runHere("agent:x", "doctor")).stdout).toMatch(
      /; 'cotenant status' lists 1 thing for a person\n$/,
    );
    expect((await repo.runHere("agent:x", "events", "--type", "policy.violated")).stdout).toContain(
      "agent:a",
    );
    expect((await repo.askHere("agent:x", "stats")).data["violations"]).toBe(1);
    // Also once it is free: what is said of the past is not said of today.
    await repo.prepare("agent:b", "lock", "release", "b.txt");
    const around = await git("agent:a", "push", "origin", "main");
    const said = "around the hooks: b.txt was held by agent:b at that time";
    expectRefused(around, "cotenant pre-push (layer 3)", said);
    // On record for good; nobody is reminded of what the remote has, or nobody any more.
    repo.git("update-ref", "refs/remotes/origin/theirs", "HEAD");
    expect(await violations()).toEqual([]);
    repo.git("update-ref", "-d", "refs/remotes/origin/theirs");
    expect(await violations()).toHaveLength(1);
    repo.git("reset", "--quiet", "--hard", "HEAD~1");
    expect(await violations()).toEqual([]);
  });

  it("of an issue that was claimed is told as what was so then, too", async () => {
    const id = await repo.issue();
    await repo.prepare("agent:b", "claim", "acquire", id);
    repo.git("add", "--all");
    expectDone(await git("agent:a", "commit", "--no-verify", "--message", "forced"));
    await repo.prepare("agent:b", "claim", "release", id);
    const [violation] = await violations();
    expect(violation!.message).toMatch(
      new RegExp(`around the hooks at 20\\S+Z: issue ${id} was claimed by agent:b at that time$`),
    );
  });

  it("is not let through by what an earlier commit, which was given up, was told", async () => {
    repo.write("b.txt", "later\n");
    repo.git("add", "--all");
    const env = { COTENANT_AGENT_ID: "agent:a", GIT_EDITOR: "false" };
    expect((await run(["git", "commit"], { cwd: repo.root, env })).status).not.toBe(0);
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
    expectDone(await git("agent:a", "commit", "--no-verify", "--message", "around"));
    expect(await violations()).toHaveLength(1);
  });

  it("that another hook adds after ours has looked is on record", async () => {
    const hook = path.join(repo.root, ".git/hooks/pre-commit");
    fs.appendFileSync(hook, "git add b.txt\n");
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
    repo.write("a.txt", "mine\n");
    repo.write("b.txt", "not mine\n");
    repo.git("add", "a.txt");
    expectDone(await git("agent:a", "commit", "--message", "mine"));
    expect(repo.git("show", "--name-only", "--format=", "HEAD").trim()).toBe("a.txt\nb.txt");
    expect(await violations()).toHaveLength(1);
  });

  it("does not stand in the way of merges, rebases and cherry-picks of what others did", async () => {
    repo.git("switch", "--quiet", "--create", "side");
    repo.write("b.txt", "side\n");
    repo.git("commit", "--quiet", "--no-verify", "--all", "--message", "side");
    repo.git("switch", "--quiet", "main");
    repo.write("c.txt");
    repo.git("add", "--all");
    commitQuietly("main");
    await repo.prepare("agent:b", "lock", "acquire", "b.txt");
    expectDone(await git("agent:a", "merge", "--no-edit", "side"));
    repo.git("reset", "--quiet", "--hard", "HEAD~1");
    expectDone(await git("agent:a", "cherry-pick", "side"));
    repo.git("reset", "--quiet", "--hard", "HEAD~1");
    repo.git("switch", "--quiet", "side");
    expectDone(await git("agent:a", "rebase", "main"));
    expect(await violations()).toEqual([]);
  });
});

describe("S32: what concerns everybody", () => {
  it("is refused on a branch that lacks the main branch's history", async () => {
    repo.git("switch", "--quiet", "--create", "develop", "HEAD");
    repo.git("switch", "--quiet", "main");
    commitQuietly("main goes on");
    repo.git("push", "--quiet", "--no-verify", "origin", "main");
    repo.git("switch", "--quiet", "develop");
    fs.appendFileSync(path.join(repo.root, ".cotenant/config.toml"), "\n# a remark\n");
    const refused = await git("agent:a", "commit", "--all", "--message", "settings");
    expectRefused(refused, "E_DIVERGED", ".cotenant/config.toml", "git rebase");
    expect((await repo.run("agent:a", "validate", "divergence")).status).not.toBe(0);
    repo.git("stash", "--quiet");
    repo.git("rebase", "--quiet", "main");
    repo.git("stash", "pop", "--quiet");
    expectDone(await git("agent:a", "commit", "--all", "--message", "settings"));
  });
});

describe("S33: a pushed change of an issue", () => {
  it("without a claim, with an unknown lease, or a lapsed one is refused by pre-push and validate commits", async () => {
    const id = await issue();
    repo.git("push", "--quiet", "--no-verify", "origin", "main");
    const trailers = (lease: string, token: string) =>
      `x\n\nCotenant-Issue: ${id}\nCotenant-Lease: ${lease}\nCotenant-Token: ${token}\nCotenant-Agent: agent:a\n`;
    const around = ["-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message"];
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", id);
    const right = trailers(lease.lease_id, String(lease.fencing_token));
    for (const [message, code] of [
      ["nothing said", "E_LEASE_REQUIRED"],
      [trailers("01ARZ3NDEKTSV4RRFFQ69G5FAV", "1"), "E_LEASE_REQUIRED"],
      [trailers(lease.lease_id, "999"), "E_FENCING_MISMATCH"],
    ] as const) {
      editIssue(id, { title: `By hand: ${code}` });
      repo.git(...around, message);
      expectRefused(await git("agent:a", "push", "origin", "main"), "cotenant pre-push (layer 3)", code);
      const checked = await repo.askHere("agent:x", "validate", "commits", "origin/main..HEAD");
      expect(checked.status).toBe(ERRORS[code].exit);
      expect(checked.json.data?.["objections"]).toMatchObject([{ code }]);
      repo.git("reset", "--quiet", "--hard", "origin/main");
    }
    editIssue(id, { title: "By hand, with the claim" });
    repo.git(...around, right);
    expect((await repo.run("agent:x", "validate", "commits", "origin/main..HEAD")).status).toBe(0);
    expectDone(await git("agent:a", "push", "origin", "main"));
    // Long after it was given back.
    await repo.prepare("agent:a", "claim", "release", id);
    editIssue(id, { title: "Too late" });
    const later = String(Math.floor(Date.now() / 1000) + 3600);
    const env = { GIT_AUTHOR_DATE: `${later} +0000`, GIT_COMMITTER_DATE: `${later} +0000` };
    await run(["git", ...around, right], { cwd: repo.root, env });
    expectRefused(await git("agent:a", "push", "origin", "main"), "E_LOCK_EXPIRED");
  });

  it("is held by pre-receive against the server's own claims", async () => {
    // The server's own store: claims are taken in a worktree of the very repository that is pushed to.
    const desk = path.join(path.dirname(repo.root), "desk");
    repo.git("--git-dir", hub, "worktree", "add", "--quiet", "-b", "desk", desk, "main");
    const server = repo.at("../desk");
    const id = await server.issue("Server's");
    server.git("add", ".cotenant");
    server.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "an issue");
    const installed = await run([PROGRAM, "hooks", "install", "--server"], {
      cwd: hub,
    });
    expectDone(installed);
    repo.git("fetch", "--quiet", "origin");
    repo.git("merge", "--quiet", "--ff-only", "origin/desk");
    editIssue(id, { title: "By hand" });
    repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message", "by hand");
    const refused = await git("agent:a", "push", "--no-verify", "origin", "main:refs/heads/topic");
    expectRefused(refused, "cotenant pre-receive (layer 4)", id);
    expect(repo.git("ls-remote", "origin", "refs/heads/topic")).toBe("");

    const { lease } = await server.prepare("agent:a", "claim", "acquire", id);
    repo.git("reset", "--quiet", "--hard", "HEAD~1");
    editIssue(id, { title: "With the claim" });
    const message = `x\n\nCotenant-Issue: ${id}\nCotenant-Lease: ${lease.lease_id}\nCotenant-Token: ${lease.fencing_token}\n`;
    repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message", message);
    expectDone(await git("agent:a", "push", "--no-verify", "origin", "main:refs/heads/topic"));
  });
});

describe("a hook that cannot decide", () => {
  it("answers as enforce.on_failure says, within its deadline, and never with a stack trace", async () => {
    // Readers answer from every damaged log; in a directory there is nothing to read.
    fs.rmSync(path.join(repo.control, "index"), { recursive: true, force: true });
    fs.rmSync(path.join(repo.control, "claims.jsonl"), { force: true });
    fs.mkdirSync(path.join(repo.control, "claims.jsonl"));
    repo.write("a.txt", "x\n");
    repo.git("add", "--all");
    const open = await git("agent:a", "commit", "--message", "x");
    expectDone(open);
    expect(open.stderr).toContain("let through, as enforce.on_failure = open says");
    repo.write("a.txt", "y\n");
    const closed = await run(["git", "commit", "--message", "y", "--", "a.txt"], {
      cwd: repo.root,
      env: { COTENANT_AGENT_ID: "agent:a", COTENANT_ENFORCE_ON_FAILURE: "closed" },
    });
    expectRefused(closed, "refused, as enforce.on_failure = closed says", "cotenant doctor");
  });

  it("passes in a repository where cotenant was never set up", async () => {
    const other = TestRepo.make();
    other.write("a.txt");
    other.git("add", "--all");
    fs.mkdirSync(path.join(other.root, ".git/hooks"), { recursive: true });
    for (const name of ["pre-commit", "prepare-commit-msg", "post-commit"])
      fs.copyFileSync(path.join(repo.root, ".git/hooks", name), path.join(other.root, ".git/hooks", name));
    expectDone(await gitAt(other, "agent:a", "commit", "--message", "x"));
    expect(fs.existsSync(path.join(other.root, ".git/cotenant"))).toBe(false);
  });
});
