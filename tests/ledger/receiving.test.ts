import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { describe, expect, it } from "vitest";
import { Machine, sharedIssues } from "../support/machines";
import { PROGRAM, type Ran, run } from "../support/program";

/** Commits a change of an issue, with a message of one's own, and pushes it around the clone's hooks. */
async function push(
  machine: Machine,
  id: string,
  title: string,
  message: string,
  branch = "main",
): Promise<Ran> {
  fs.writeFileSync(machine.issueFile(id), `${JSON.stringify({ ...machine.issue(id), title }, null, 2)}\n`);
  machine.repo.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--all", "--message", message);
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
    const refused = async (message: string, code: string) => {
      const ran = await push(first, id, `By hand ${code}`, message);
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
    const ci = Machine.clone(hub, "ci");
    expect((await ci.ask("validate", "commits", "HEAD~1..HEAD")).data).toMatchObject({
      valid: true,
      commits: 1,
    });
    expect((await push(first, id, "Without", "nothing said")).status).toBe(0);
    ci.repo.git("fetch", "--quiet", "origin");
    const ran = await ci.ask("validate", "commits", "HEAD..origin/main");
    expect(ran.status).toBe(6);
    expect(ran.json.data!["objections"]).toMatchObject([{ code: "E_LEASE_REQUIRED" }]);
  });
});
