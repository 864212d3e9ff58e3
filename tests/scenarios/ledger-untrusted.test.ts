import { describe, expect } from "vitest";
import { Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";

const it = oneIn(5);

/** A clone whose committed settings name the ledger, and where nobody has looked at them yet. */
async function fresh(): Promise<{ first: Machine; clone: Machine; ids: string[] }> {
  const { hub, first, ids } = await sharedIssues(2);
  first.repo.write(".cotenant/config.toml", '[sync]\nledger_branch = "cotenant-sync"\n');
  first.repo.git("add", "--all");
  first.repo.git("commit", "--quiet", "--message", "name the ledger");
  first.repo.git("push", "--quiet", "origin", "HEAD:refs/heads/main");
  await first.prepare("claim", "acquire", ids[0]!);
  const env = { COTENANT_SYNC_LEDGER_BRANCH: undefined };
  return { first, clone: Machine.clone(hub, "fresh", { env }), ids };
}

describe("S80: a clone that names a ledger and does not trust it yet", () => {
  it("refuses claims with the two commands to run, and gives a provisional one to whoever wants just that", async () => {
    const { clone, ids } = await fresh();
    const [held, free] = ids as [string, string];
    for (const words of [
      ["claim", "acquire", held],
      ["claim", "acquire", free],
      ["claim", "next"],
      ["claim", "acquire", free, "--force", "--reason", "x", "--agent-id", "human:eve"],
    ]) {
      const ran = await clone.askHere(...words);
      expectJsonRefused(ran, 3, "E_LEDGER_NOT_CONFIGURED");
      expect(ran.error.hint).toMatch(/cotenant trust.*cotenant sync --setup-ledger.*--offline/);
    }
    expect((await clone.askHere("claim", "list")).data.leases).toEqual([]);
    // Nothing else needs the ledger.
    expect((await clone.askHere("lock", "acquire", "src/a.ts")).status).toBe(0);
    const offline = await clone.askHere("claim", "acquire", free, "--offline");
    expect(offline.data).toMatchObject({ offline: true });
    expect(offline.json.warnings!.join()).toContain("provisional");
    expect((await clone.askHere("claim", "list")).data.leases).toMatchObject([{ ledger: "provisional" }]);
    clone.repo.write("src/a.ts");
    const args = ["--branch", "topic/a", "--message", "x", "--from-worktree", "src/a.ts"];
    expectJsonRefused(await clone.askHere("publish", ...args), 9, "E_PROVISIONAL");
    expect((await clone.askHere("claim", "renew", free)).status).toBe(0);
    expect((await clone.askHere("claim", "release", free)).status).toBe(0);
  });

  it("is told so by doctor, status and sync --status; after the two commands claims are asked for", async () => {
    const { clone, ids } = await fresh();
    const doctor = (await clone.askHere("doctor")).stdout;
    expect(doctor).toMatch(/names a ledger, and this clone does not trust it yet/);
    const status = (await clone.askHere("status")).data["needs_a_person"] as { code: string; next: string }[];
    expect(status).toContainEqual(
      expect.objectContaining({ code: "ledger_untrusted", next: expect.stringContaining("--setup-ledger") }),
    );
    expectJsonRefused(await clone.askHere("sync", "--status"), 3, "E_LEDGER_NOT_CONFIGURED");
    const person = ["--agent-id", "human:ada"];
    await clone.prepare("claim", "acquire", ids[1]!, "--offline");
    expect((await clone.runHere("trust", ...person)).status).toBe(0);
    await clone.prepare("sync", "--setup-ledger");
    expectJsonRefused(await clone.askHere("claim", "acquire", ids[0]!), 1, "E_LOCK_CONFLICT");
    expect((await clone.askHere("sync", "--reconcile")).data["confirmed"]).toHaveLength(1);
  });
});
