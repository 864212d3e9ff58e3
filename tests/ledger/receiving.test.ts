import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run } from "../support/program";
import { expectJsonRefused } from "../support/refusals";

const it = oneIn(4);

/** Commits a change of an issue, with a message of one's own, and pushes it around the clone's hooks. */
async function push(
  machine: Machine,
  id: string,
  title: string,
  message: string,
  branch = "main",
  authored = new Date().toISOString(),
): Promise<Ran> {
  fs.writeFileSync(machine.issueFile(id), `${JSON.stringify({ ...machine.issue(id), title }, null, 2)}\n`);
  const commit = ["-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message", message];
  machine.repo.git(...commit, "--date", authored);
  return run(["git", "push", "--no-verify", "origin", `HEAD:refs/heads/${branch}`], {
    cwd: machine.repo.root,
  });
}

function trailers(id: string, lease: { lease_id: string; fencing_token: number; agent_id: string }): string {
  return [
    "x",
    "",
    `Cotenant-Issue: ${id}`,
    `Cotenant-Lease: ${lease.lease_id}`,
    `Cotenant-Token: ${lease.fencing_token}`,
    `Cotenant-Agent: ${lease.agent_id}`,
    "",
  ].join("\n");
}

/** Long after any claim of now has ended. */
const LATE = "2099-01-01T00:00:00Z";

describe("S33: pre-receive on the remote that has the claims", () => {
  it("holds the trailers of pushed changes against the claims there", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [id] = ids as [string];
    execFileSync(PROGRAM, ["hooks", "install", "--server"], {
      cwd: hub.path,
      env: { ...process.env, COTENANT_AGENT_ID: "human:admin" },
    });
    const back = () => first.repo.git("reset", "--quiet", "--hard", "origin/main");
    first.repo.git("fetch", "--quiet", "origin");
    const { lease } = await first.prepare("claim", "acquire", id);
    // All of it authored while the claim was held, for what is over when it is committed is refused as that.
    const refused = async (message: string, code: string) => {
      const ran = await push(first, id, `By hand ${code}`, message, "main", lease.acquired_at);
      expect(ran.status, String(ran)).not.toBe(0);
      expect(ran.stderr).toContain("cotenant pre-receive (layer 4)");
      expect(ran.stderr).toContain(code);
      back();
    };
    await refused("nothing said", "E_LEASE_REQUIRED");
    await refused(trailers(id, { ...lease, lease_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" }), "E_LEASE_REQUIRED");
    await refused(trailers(id, { ...lease, fencing_token: lease.fencing_token + 1 }), "E_FENCING_MISMATCH");
    expect((await push(first, id, "With the claim", trailers(id, lease))).status).toBe(0);
    first.repo.git("fetch", "--quiet", "origin");

    // Another machine has it now: what was done under the old claim is not let in any more.
    await first.prepare("claim", "release", id);
    const second = Machine.clone(hub, "second");
    await second.prepare("claim", "acquire", id);
    await refused(trailers(id, lease), "E_LOCK_CONFLICT");
    // And what only went by way of the ledger's branch was never looked at.
    const sneaked = await push(first, id, "Sneaked in", "nothing said", "cotenant-sync-2");
    expect(sneaked.status).not.toBe(0);
    back();
    // The ledger itself goes on working, with everything in it.
    expect((await second.askHere("sync")).status).toBe(0);
  });

  it("says how a commit gets its claim, which works in a clone without hooks", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    execFileSync(PROGRAM, ["hooks", "install", "--server"], { cwd: hub.path, env: process.env });
    first.repo.git("fetch", "--quiet", "origin");
    const refused = await push(first, id, "By hand", "nothing said");
    const [, hint] = /claim the issue, and commit it anew: (.*?)\s*$/m.exec(refused.stderr) ?? [];
    expect(hint).toMatch(/^cotenant hooks install && cotenant claim acquire /);
    const validated = await first.askHere("validate", "commits", "origin/main..HEAD");
    expect(validated.json.data!["objections"], "nor does CI know").toMatchObject([
      { hint: expect.stringContaining(hint!) },
    ]);
    const env = first.libraryEnv({
      COTENANT_AGENT_ID: first.agent,
      PATH: `${path.dirname(PROGRAM)}:${process.env["PATH"]}`,
    });
    const ran = await run(["sh", "-c", hint!], { cwd: first.repo.root, env });
    expect(ran.status, `${ran}`).toBe(0);
    const again = await run(["git", "push", "origin", "HEAD:refs/heads/main"], { cwd: first.repo.root, env });
    expect(again.status, `${again}`).toBe(0);
  });

  it("lets in what was written under a claim, however late it is committed, and under no ref of another name", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [id, other] = ids as [string, string];
    execFileSync(PROGRAM, ["hooks", "install", "--server"], {
      cwd: hub.path,
      env: { ...process.env, COTENANT_AGENT_ID: "human:admin" },
    });
    const commit = (message: string, ...more: string[]) =>
      execFileSync(
        "git",
        ["-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message", message, ...more],
        {
          cwd: first.repo.root,
          env: { ...process.env, GIT_COMMITTER_DATE: LATE, GIT_AUTHOR_DATE: LATE },
        },
      );
    const pushed = (branch = "main") =>
      run(["git", "push", "--no-verify", "--force", "origin", `HEAD:refs/heads/${branch}`], {
        cwd: first.repo.root,
      });
    // Closed and given back, then committed: nobody can claim it again.
    const { lease } = await first.prepare("claim", "acquire", id);
    await first.prepare("issue", "update", id, "--title", "First");
    commit(trailers(id, lease));
    await first.prepare("issue", "update", id, "--state", "done", "--release");
    commit(trailers(id, lease));
    expect(hub.claim(id)["written"]).toHaveLength(2);
    expect(String(await pushed())).toContain("-> main");
    // Squashed or amended since, it is the same content.
    first.repo.git("reset", "--quiet", "--soft", "HEAD~2");
    commit(trailers(id, lease));
    expect((await pushed("squashed")).status).toBe(0);
    // Content that nobody wrote under it is refused as ever.
    fs.appendFileSync(first.issueFile(id), "\n");
    commit(trailers(id, lease));
    expect((await pushed("altered")).stderr).toContain("E_LOCK_EXPIRED");
    first.repo.git("reset", "--quiet", "--hard", "HEAD~1");

    // A ref speaks of its own issue: what stands under another name is nobody's claim.
    const forged = { ...hub.claim(id), status: "held", ended: null, agent_id: "agent:eve" };
    const foreign = { ...forged, issue_id: other, lease_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" };
    const tree = hub.git("mktree").trim();
    const oid = hub
      .git("-c", "user.name=e", "-c", "user.email=e@e", "commit-tree", tree, "-m", JSON.stringify(foreign))
      .trim();
    hub.git("update-ref", `refs/cotenant/claims/${id.slice(0, -1)}0`, oid);
    const by = { lease_id: foreign.lease_id, fencing_token: lease.fencing_token, agent_id: "agent:eve" };
    const ran = await push(first, other, "Forged", trailers(other, by), "forged");
    expect(ran.stderr).toContain("which nobody has");
    first.repo.git("reset", "--quiet", "--hard", "HEAD~1");
    const own = (await first.prepare("claim", "acquire", other)).lease;
    expect((await push(first, other, "Mine", trailers(other, own), "mine")).status).toBe(0);
  });

  it("lets 'sync' bring what is being done where it does not know the ledger's name, and what it refuses is said", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [id, other] = ids as [string, string];
    execFileSync(PROGRAM, ["hooks", "install", "--server"], {
      cwd: hub.path,
      env: { ...process.env, COTENANT_AGENT_ID: "human:admin" },
    });
    hub.git("config", "cotenant.ledgerBranch", "another");
    const titleThere = () =>
      JSON.parse(hub.git("show", `cotenant-sync:.cotenant/issues/${id}/issue.json`)).title;
    await first.prepare("claim", "acquire", id);
    await first.prepare("issue", "update", id, "--title", "Being done");
    expect((await first.askHere("sync")).data).toMatchObject({ pushed: [id] });
    expect(titleThere()).toBe("Being done");
    await first.prepare("issue", "update", id, "--title", "Done", "--state", "done", "--release");
    const before = fs.readFileSync(first.issueFile(other));
    fs.writeFileSync(
      first.issueFile(other),
      String(before).replace(/"title": "[^"]*"/, '"title": "By hand"'),
    );
    const refused = await first.askHere("sync");
    expectJsonRefused(refused, 1, "E_PUSH_REJECTED");
    expect(refused.error.message).toMatch(/hook declined.*without a claim/);
    expect(titleThere()).toBe("Being done");
    fs.writeFileSync(first.issueFile(other), before);
    expect((await first.askHere("sync")).data).toMatchObject({ pushed: [id] });
    expect(titleThere()).toBe("Done");
  });

  it("commits on the ledger's branch do not vouch for themselves", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    await first.prepare("claim", "acquire", id);
    execFileSync(PROGRAM, ["hooks", "install", "--server"], {
      cwd: hub.path,
      env: { ...process.env, COTENANT_AGENT_ID: "human:admin" },
    });
    const around = await push(first, id, "By way of the ledger", "nothing said", "cotenant-sync");
    expect(around.status).not.toBe(0);
    await run(["git", "push", "--no-verify", "--force", "origin", "HEAD:refs/heads/cotenant-sync"], {
      cwd: first.repo.root,
    });
    const ran = await run(["git", "push", "--no-verify", "origin", "HEAD:refs/heads/main"], {
      cwd: first.repo.root,
    });
    expect(ran.stderr).toContain("E_LEASE_REQUIRED");
  });
});

describe("validate commits in CI", () => {
  it("a fresh clone without any leases of its own judges by the claims at the remote", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const { lease } = await first.prepare("claim", "acquire", id);
    expect((await push(first, id, "With the claim", trailers(id, lease))).status).toBe(0);
    // Where the ledger is only named, nobody can tell; the hint makes it tell, without a word of trust.
    first.repo.write(".cotenant/config.toml", '[sync]\nledger_branch = "cotenant-sync"\n');
    first.repo.git("add", "--all");
    first.repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "name the ledger");
    first.repo.git("push", "--quiet", "--no-verify", "origin", "HEAD:refs/heads/main");
    const fresh = Machine.clone(hub, "fresh", { env: { COTENANT_SYNC_LEDGER_BRANCH: undefined } });
    const unheard = await fresh.ask("validate", "commits", "HEAD~2..HEAD");
    expectJsonRefused(unheard, 3, "E_LEDGER_NOT_CONFIGURED");
    expect(unheard.error.message).toContain("cannot tell");
    expect(unheard.error.hint).toContain("COTENANT_SYNC_LEDGER_BRANCH=cotenant-sync");
    const told = await new Machine("fresh", fresh.repo, fresh.home).ask(
      "validate",
      "commits",
      "HEAD~2..HEAD",
    );
    expect(told.data).toMatchObject({ valid: true, commits: 2 });
    expect(told.json.warnings ?? []).toEqual([]);
    const ci = Machine.clone(hub, "ci");
    expect((await ci.ask("validate", "commits", "HEAD~2..HEAD")).data).toMatchObject({
      valid: true,
      commits: 2,
    });
    expect((await push(first, id, "Without", "nothing said")).status).toBe(0);
    ci.repo.git("fetch", "--quiet", "origin");
    const ran = await ci.ask("validate", "commits", "HEAD..origin/main");
    expect(ran.status).toBe(6);
    expect(ran.json.data!["objections"]).toMatchObject([{ code: "E_LEASE_REQUIRED" }]);
  });
});
