import * as fs from "node:fs";
import { describe, expect, it } from "vitest";
import type { Hub } from "../support/hub";
import { Machine, sharedIssues } from "../support/machines";
import { expectJsonRefused } from "../support/refusals";

/** Ways in which somebody can take the ground from under a ledger. */
const REWRITTEN: Readonly<Record<string, (hub: Hub, id: string) => void>> = {
  "its branch was deleted": (hub) => void hub.git("update-ref", "-d", "refs/heads/cotenant-sync"),
  "its branch was force-pushed": (hub) => void hub.git("update-ref", "refs/heads/cotenant-sync", "main"),
  "a claim was deleted": (hub, id) => void hub.git("update-ref", "-d", `refs/cotenant/claims/${id}`),
  "a claim was force-pushed": (hub, id) => void hub.git("update-ref", `refs/cotenant/claims/${id}`, "main"),
};

describe("how the ledger stands is asked of the remote", () => {
  it.each(Object.entries(REWRITTEN))(
    "%s: sync --status and doctor say so before any sync",
    async (_, rewrite) => {
      const { hub, first, ids } = await sharedIssues(1);
      await first.prepare("claim", "acquire", ids[0]!);
      const whole = await first.askHere("sync", "--status");
      expect(whole.data).toMatchObject({ online: true, ledger: "whole", problem: null });
      rewrite(hub, ids[0]!);
      const status = await first.askHere("sync", "--status");
      expect(status.data, String(status)).toMatchObject({
        online: true,
        ledger: "rewritten",
        problem: expect.any(String),
      });
      expect((await first.runHere("sync", "--status")).stdout).toContain("--force-resync");
      expect((await first.askHere("doctor")).stdout).toContain("the remote's ledger was rewritten");
    },
  );

  it("where it cannot be reached, that is what they say", async () => {
    const { hub, first } = await sharedIssues(1);
    fs.renameSync(hub.path, `${hub.path}.away`);
    const status = await first.askHere("sync", "--status");
    expect(status.data).toMatchObject({ online: false, ledger: "not looked", valid: true });
    expect((await first.runHere("sync", "--status")).stdout).toContain(
      "not looked, the remote is unreachable",
    );
    expect((await first.askHere("doctor")).stdout).toContain("not looked at: remote unreachable");
  });
});

describe("a renewal or a sign of life between two pushes", () => {
  it.each([
    ["heartbeat", "evicted"],
    ["renew", "evicted and claimed again elsewhere"],
    ["renew", "taken over"],
  ])("%s asks: what was %s is not confirmed, and ends here", async (verb, what) => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    await first.prepare("claim", "acquire", id);
    expect((await first.askHere("claim", verb, id)).status).toBe(0);
    expect(hub.history(id)).toHaveLength(1);
    const second = Machine.clone(hub, "second");
    const person = ["--reason", "its machine is gone", "--agent-id", "human:eve"];
    if (what === "taken over") await second.prepare("claim", "acquire", id, "--force", ...person);
    else await second.prepare("claim", "force-evict", id, ...person);
    if (what.includes("claimed again")) await second.prepare("claim", "acquire", id);
    const before = hub.history(id).length;
    const ran = await first.askHere("claim", verb, id);
    expectJsonRefused(ran, 8, "E_FENCING_MISMATCH");
    if (what !== "evicted and claimed again elsewhere")
      expect(ran.error.message).toMatch(/human:eve.*its machine is gone/);
    expect(hub.history(id)).toHaveLength(before);
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
  });

  it("without the remote it is done here, and says that nobody was asked", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    await first.prepare("claim", "acquire", ids[0]!);
    fs.renameSync(hub.path, `${hub.path}.away`);
    const ran = await first.askHere("claim", "heartbeat", ids[0]!);
    expect(ran.data).toMatchObject({ offline: true, degraded: true });
    expect(ran.json.warnings!.join()).toContain("not asked at the ledger");
  });
});

it("whatever reaches the ledger for a claim confirms provisional ones on the way", async () => {
  const { hub, first, ids } = await sharedIssues(3);
  const [held, ...others] = ids as [string, string, string];
  await first.prepare("claim", "acquire", held);
  for (const [words, id] of [
    [["claim", "renew", held], others[0]],
    [["claim", "release", held], others[1]],
  ] as const) {
    await first.prepare("claim", "acquire", id!, "--offline");
    const ran = await first.askHere(...words);
    expect(ran.json.warnings, String(ran)).toContain("1 provisional claim was confirmed");
    expect(hub.claim(id!)).toMatchObject({ status: "held", agent_id: "agent:first" });
  }
});
