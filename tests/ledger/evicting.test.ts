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
