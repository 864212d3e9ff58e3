import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { DeadlyGit } from "../support/deadly-git";
import { Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { scratch } from "../support/scratch";

const it = oneIn(4);

/** Where it matters most. The verify layer kills at every Git command there is. */
const MOMENTS = ["before", "after"] as const;

async function killed(machine: Machine, git: DeadlyGit, when: (typeof MOMENTS)[number], ...args: string[]) {
  const ran = await machine.start([...args, "--json"], git.env(when, "push")).done;
  expect(ran.status, `${args.join(" ")} should be killed: ${ran}`).toBeNull();
}

describe("killed when it pushes", () => {
  it("a claim: afterwards it is held by one, and what was left open is settled", async () => {
    const git = new DeadlyGit(scratch("deadly"));
    const { hub, first, ids } = await sharedIssues(2);
    const second = Machine.clone(hub, "second");
    for (const [n, when] of MOMENTS.entries()) {
      const id = ids[n]!;
      await killed(first, git, when, "claim", "acquire", id);
      const isThere = `refs/cotenant/claims/${id}` in hub.refs("refs/cotenant/claims/");
      expect(isThere, when).toBe(when === "after");
      const other = await second.askHere("claim", "acquire", id);
      const again = await first.askHere("claim", "acquire", id);
      const holders = [other, again].filter(({ status }) => status === 0);
      expect(holders, when).toHaveLength(1);
      expect(holders[0], when).toBe(when === "before" ? other : again);
      expect(hub.claim(id), when).toMatchObject({ lease_id: holders[0]!.lease.lease_id });
      expect(holders[0]!.data, when).toMatchObject({ offline: false });
      // Nobody thinks that it has it as well.
      for (const machine of [first, second])
        for (const { issue_id, lease_id } of (await machine.askHere("claim", "list")).data.leases)
          if (issue_id === id) expect(hub.claim(id), when).toMatchObject({ lease_id });
    }
  });

  it("a release: the claim is free in the end, for everybody", async () => {
    const git = new DeadlyGit(scratch("deadly"));
    const { hub, first, ids } = await sharedIssues(2);
    for (const [n, when] of MOMENTS.entries()) {
      await first.prepare("claim", "acquire", ids[n]!);
      await killed(first, git, when, "claim", "release", ids[n]!);
      expect(hub.claim(ids[n]!), when).toMatchObject({ status: when === "before" ? "held" : "released" });
      await first.prepare("sync", "--reconcile");
      expect(hub.claim(ids[n]!), when).toMatchObject({ status: "released" });
    }
  });

  it("a sync: nothing that was written is lost, and the next one finishes it", async () => {
    const git = new DeadlyGit(scratch("deadly"));
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    for (const when of MOMENTS) {
      await first.prepare("issue", "comment", id, "--text", when);
      await killed(first, git, when, "sync");
    }
    expect((await first.ask("sync")).status).toBe(0);
    const there = hub.git("show", `cotenant-sync:.cotenant/issues/${id}/comments.jsonl`);
    const here = fs.readFileSync(path.join(path.dirname(first.issueFile(id)), "comments.jsonl"), "utf8");
    for (const when of MOMENTS)
      for (const text of [there, here]) expect(text.split(`"${when}"`), when).toHaveLength(2);
  });

  it("set-up: the next one finishes it, and there is one ledger", async () => {
    const git = new DeadlyGit(scratch("deadly"));
    for (const when of MOMENTS) {
      const { hub, first, ids } = await sharedIssues(1, { setUp: false });
      await killed(first, git, when, "sync", "--setup-ledger");
      expect((await first.askHere("sync", "--setup-ledger")).status).toBe(0);
      expect((await first.askHere("claim", "acquire", ids[0]!)).data).toMatchObject({ offline: false });
      expect(hub.git("rev-list", "--count", "cotenant-sync").trim()).toBe("1");
    }
  });
});
