import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { type Running, until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

async function waiter(agent: string, ...words: string[]): Promise<Running> {
  const process = repo.start(agent, [...words, "--wait", "--timeout", "100", "--json"]);
  await until(`${agent} waits`, async () => process.stderr.includes("waiting"));
  return process;
}

const held = async () => (await repo.prepare("agent:looks", "claim", "list")).leases;

describe("an issue that changed while somebody waited for it", () => {
  it.each([
    {
      how: "done",
      change: ["issue", "update", "ID", "--state", "done"],
      status: 5,
      code: "E_TERMINAL_STATE",
    },
    {
      how: "rejected",
      change: ["issue", "reject", "ID", "--reason", "no"],
      status: 5,
      code: "E_TERMINAL_STATE",
    },
    { how: "deleted", change: ["issue", "delete", "ID", "--reason", "no"], status: 4, code: "E_NOT_FOUND" },
    { how: "blocked", change: ["dep", "add", "ID", "NEEDED"], status: 9, code: "E_POLICY" },
    {
      how: "not ready, with --if-ready",
      change: ["issue", "update", "ID", "--state", "backlog"],
      flags: ["--if-ready"],
      status: 9,
      code: "E_POLICY",
    },
  ])("is not granted to it when it is $how, and nothing stays claimed", async (row) => {
    const [id, needed] = [await repo.issue(), await repo.issue("Needed first")];
    await repo.prepare("agent:a", "claim", "acquire", id);
    const waiting = await waiter("agent:w", "claim", "acquire", id, ...(row.flags ?? []));
    const words = row.change.map((word) => word.replace("ID", id).replace("NEEDED", needed));
    await repo.prepare("agent:a", ...words);
    await repo.askHere("agent:a", "claim", "release", id);
    expectJsonRefused(await waiting.done, row.status, row.code);
    expect(await held()).toEqual([]);
  });

  it("is granted to it otherwise", async () => {
    const id = await repo.issue();
    await repo.prepare("agent:a", "claim", "acquire", id);
    const waiting = await waiter("agent:w", "claim", "acquire", id);
    await repo.prepare("agent:a", "claim", "release", id);
    expect((await waiting.done).lease.agent_id).toBe("agent:w");
  });
});
