import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { Machine, sharedIssues } from "../support/machines";
import { expectJsonRefused } from "../support/refusals";

it("a claim on an issue that only the other machine has is ended by the ids that are listed here", async () => {
  const { hub, first } = await sharedIssues(1);
  const second = Machine.clone(hub, "second");
  const person = new Machine("second", second.repo, second.home, { COTENANT_AGENT_ID: "human:ada" });
  for (const name of ["issue_id", "lease_id"] as const) {
    const { issue } = (await first.ask("issue", "create", "Only here")).data as unknown as {
      issue: { id: string };
    };
    await first.ask("claim", "acquire", issue.id);
    await second.ask("sync");
    const { elsewhere } = (await second.ask("claim", "list")).data as unknown as {
      elsewhere: Record<"issue_id" | "lease_id", string>[];
    };
    const [listed] = elsewhere;
    const args = ["claim", "force-evict", listed![name], "--reason", "gone"];
    expectJsonRefused(await second.ask(...args), 9, "E_POLICY");
    const evicted = await person.ask(...args);
    expect(evicted.data["ended_elsewhere"], String(evicted)).toMatchObject([
      { issue_id: issue.id, agent_id: "agent:first" },
    ]);
    expect(hub.claim(issue.id)).toMatchObject({
      status: "released",
      ended: { how: "evicted", by: "human:ada" },
    });
    expectJsonRefused(await person.ask(...args), 4, "E_NOT_FOUND");
  }
});

it("a claim of the other machine is handed over there only, and here the refusal says what can be done", async () => {
  const { hub, first, ids } = await sharedIssues(1);
  const [id] = ids;
  await first.ask("claim", "acquire", id!);
  const second = Machine.clone(hub, "second");
  await second.ask("sync");
  const person = new Machine("second", second.repo, second.home, { COTENANT_AGENT_ID: "human:ada" });
  const args = ["claim", "transfer", id!, "--to-agent", "agent:second", "--reason", "go on here"];
  const refused = await person.ask(...args);
  expectJsonRefused(refused, 6, "E_LOCK_NOT_HELD");
  expect(refused.error.message).toContain("agent:first on ");
  expect(refused.error.hint).toContain(`cotenant claim force-evict ${id} --reason`);
  // On its own machine the ledger hears of it.
  const there = new Machine("first", first.repo, first.home, { COTENANT_AGENT_ID: "human:ada" });
  expect(
    (await there.ask("claim", "transfer", id!, "--to-agent", "agent:other", "--reason", "r")).status,
  ).toBe(0);
  expect(hub.claim(id!)).toMatchObject({ agent_id: "agent:other" });
});

it("with policy.approvers, a claim of the other machine ends by the word of two people of this clone", async () => {
  const { hub, first, ids } = await sharedIssues(1);
  const [id] = ids;
  await first.ask("claim", "acquire", id!);
  const second = Machine.clone(hub, "second");
  await second.ask("sync");
  const person = (name: string) =>
    new Machine("second", second.repo, second.home, {
      COTENANT_AGENT_ID: `human:${name}`,
      COTENANT_POLICY_APPROVERS: "1",
    });
  const reason = ["--reason", "its machine is gone"];
  const proposed = await person("ada").ask("claim", "force-evict", id!, ...reason);
  expectJsonRefused(proposed, 11, "E_APPROVAL_NEEDED");
  const proposal = proposed.error.data["proposal_id"] as string;
  expect(proposed.error.data["proposals"]).toMatchObject([
    { agent_id: "agent:first", host: expect.any(String) },
  ]);
  expect(hub.claim(id!)).toMatchObject({ agent_id: "agent:first" });
  expect(hub.claim(id!)["ended"]).toBeNull();
  const forced = await person("bob").ask("claim", "acquire", id!, "--force", ...reason);
  expectJsonRefused(forced, 11, "E_APPROVAL_NEEDED");
  expectJsonRefused(await person("ada").ask("claim", "approve", proposal), 9, "E_POLICY");
  const agreed = await person("bob").ask("claim", "approve", proposal);
  expect(agreed.data["evicted"], String(agreed)).toBe(true);
  expect(hub.claim(id!)).toMatchObject({ status: "released", ended: { how: "evicted", by: "human:bob" } });
  const line = second.repo.log().find(({ event_type: type }) => type === "sync.evicted");
  expect(line!.payload).toMatchObject({ proposed_by: "human:ada", approved_by: ["human:bob"] });
  expectJsonRefused(await person("eve").ask("claim", "approve", proposal), 4, "E_NOT_FOUND");
});

it("whoever commits a change of an issue that the other machine holds is told who that is, not to claim it", async () => {
  const { hub, first, ids } = await sharedIssues(1);
  const [id] = ids;
  await first.ask("claim", "acquire", id!);
  const second = Machine.clone(hub, "second");
  await second.ask("sync");
  const { repo } = second;
  const file = `.cotenant/issues/${id}/issue.json`;
  const text = fs.readFileSync(path.join(repo.root, file), "utf8");
  repo.write(file, text.replace(/"title": ?"[^"]*"/, '"title":"Another"'));
  repo.git("add", "--all");
  const { status, stderr } = await second.run("hook", "pre-commit");
  expect(status, stderr).not.toBe(0);
  expect(stderr).toContain(`issue ${id} is claimed by agent:first on `);
  expect(stderr).toContain(`leave it out, or wait for the claim: cotenant claim acquire ${id} --wait`);
  expect(stderr).not.toContain("claim it, and commit again");
});
