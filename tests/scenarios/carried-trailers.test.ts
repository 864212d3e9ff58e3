import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { type Ran, run } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

let repo: TestRepo;
let id: string;
let claim: { lease_id: string; fencing_token: number };
let lock: { lease_id: string; fencing_token: number };

beforeEach(async () => {
  repo = TestRepo.make();
  const hub = path.join(path.dirname(repo.root), "hub.git");
  repo.git("init", "--quiet", "--bare", "--initial-branch=main", hub);
  repo.git("remote", "add", "origin", hub);
  for (const file of ["a.txt", "b.txt", "c.txt"]) repo.write(file);
  await repo.prepare("human:ada", "init", "--hooks");
  id = await repo.issue();
  repo.git("add", "--all");
  repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "first");
  repo.git("push", "--quiet", "--no-verify", "origin", "main");
  repo.git("switch", "--quiet", "--create", "work");
  claim = (await repo.prepare("agent:a", "claim", "acquire", id)).lease;
  lock = (await repo.prepare("agent:a", "lock", "acquire", "a.txt")).lease;
});

function git(...args: string[]): Promise<Ran> {
  const env = { COTENANT_AGENT_ID: "agent:a", GIT_EDITOR: "true", GIT_SEQUENCE_EDITOR: "true" };
  return run(["git", ...args], { cwd: repo.root, env });
}
const done = async (...args: string[]) => {
  const ran = await git(...args);
  expect(ran.status, `${ran}`).toBe(0);
};
/** By hand, so that only the claim stands behind it, and no write of cotenant's. */
const editIssue = (title: string) => {
  const file = path.join(repo.root, ".cotenant/issues", id, "issue.json");
  const issue = JSON.parse(fs.readFileSync(file, "utf8"));
  fs.writeFileSync(file, `${JSON.stringify({ ...issue, title }, null, 2)}\n`);
};
const work = async () => {
  editIssue("By hand");
  repo.write("a.txt", "mine\n");
  await done("commit", "--all", "--message", "work");
};
const giveBack = async () => {
  await repo.prepare("agent:a", "claim", "release", id);
  await repo.prepare("agent:a", "lock", "release", "a.txt");
};
const expectCarried = (commit = "HEAD") => {
  const message = repo.git("log", "-1", "--format=%B", commit);
  expect(message).toContain(
    `Cotenant-Issue: ${id}\nCotenant-Lease: ${claim.lease_id}\nCotenant-Token: ${claim.fencing_token}\n`,
  );
  expect(message).toContain(`Cotenant-Lease: ${lock.lease_id}\nCotenant-Token: ${lock.fencing_token}\n`);
  for (const name of ["Cotenant-Issue", "Cotenant-Agent", claim.lease_id, lock.lease_id])
    expect(message.split(name), name).toHaveLength(2);
  expect(message).not.toContain("none");
};
const expectPushed = async () => {
  const pushed = await git("push", "origin", "HEAD:refs/heads/work");
  expect(pushed.status, `${pushed}`).toBe(0);
  expect(pushed.stderr).not.toContain("WARNING");
  const checked = await repo.runHere("agent:x", "validate", "commits", "main..HEAD");
  expect(checked.status, `${checked}`).toBe(0);
};

describe("S85: a leased change keeps its trailers, also when the leases were given back, through", () => {
  it("an amended message, with nothing and with more staged", async () => {
    await work();
    await giveBack();
    await done("commit", "--amend", "--message", "said otherwise");
    expectCarried();
    repo.write("c.txt", "more\n");
    await done("commit", "--all", "--amend", "--message", "with more in it");
    expectCarried();
    await done("commit", "--amend", "--no-edit");
    expectCarried();
    await expectPushed();
  });

  it("an amended message around pre-commit", async () => {
    await work();
    await done("commit", "--amend", "--no-verify", "--message", "said otherwise");
    expectCarried();
    await expectPushed();
  });

  it("a rebase onto what others did, and a cherry-pick", async () => {
    await work();
    await giveBack();
    repo.git("switch", "--quiet", "main");
    repo.write("b.txt", "theirs\n");
    await done("commit", "--all", "--message", "theirs");
    repo.git("push", "--quiet", "--no-verify", "origin", "main");
    repo.git("switch", "--quiet", "work");
    await done("rebase", "main");
    expectCarried();
    repo.git("switch", "--quiet", "--create", "picked", "main");
    await done("cherry-pick", "work");
    expectCarried();
    await expectPushed();
  });

  it("a rebase that stops, and is committed with another message", async () => {
    await work();
    await giveBack();
    repo.git("switch", "--quiet", "main");
    repo.write("a.txt", "theirs\n");
    await done("commit", "--all", "--message", "theirs");
    repo.git("push", "--quiet", "--no-verify", "origin", "main");
    repo.git("switch", "--quiet", "work");
    expect((await git("rebase", "main")).status).not.toBe(0);
    repo.write("a.txt", "both\n");
    repo.git("add", "a.txt");
    await done("commit", "--message", "settled");
    await done("rebase", "--continue");
    expectCarried();
    await expectPushed();
  });

  it("a squash, by merge and by rebase, with Git's message and with another", async () => {
    await work();
    editIssue("Once more");
    await done("commit", "--all", "--message", "more work");
    await giveBack();
    repo.git("switch", "--quiet", "--create", "one", "main");
    repo.git("merge", "--quiet", "--squash", "work");
    // Cotenant did not write it, and the claim is given back: only the squashed commits can say that there was one.
    await done("commit", "--no-verify", "--no-edit");
    expectCarried();
    await done("reset", "--quiet", "--hard", "main");
    repo.git("merge", "--quiet", "--squash", "work");
    await done("commit", "--no-verify", "--message", "all of it");
    expectCarried();
    repo.git("switch", "--quiet", "work");
    const env = {
      COTENANT_AGENT_ID: "agent:a",
      GIT_EDITOR: "true",
      GIT_SEQUENCE_EDITOR: "sed -i 2s/pick/squash/",
    };
    const squashed = await run(["git", "rebase", "--interactive", "main"], { cwd: repo.root, env });
    expect(squashed.status, `${squashed}`).toBe(0);
    expect(repo.git("rev-list", "--count", "main..HEAD").trim()).toBe("1");
    expectCarried();
    await expectPushed();
  });

  it("and no other commit gets them", async () => {
    await work();
    repo.write("c.txt", "another\n");
    await done("commit", "--all", "--message", "another");
    await done("commit", "--allow-empty", "--message", "--amend");
    repo.git("switch", "--quiet", "--create", "side", "main");
    repo.write("b.txt", "side\n");
    await done("commit", "--all", "--message", "side");
    await done("merge", "--no-edit", "work");
    for (const commit of ["HEAD", "HEAD^1", "work~1"])
      expect(repo.git("log", "-1", "--format=%B", commit), commit).not.toContain("Cotenant-");
  });
});
