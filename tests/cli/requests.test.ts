import { beforeEach, describe, expect, it } from "vitest";
import { needTool } from "../house/need-tool";
import { PROGRAM, type Ran, run } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { ulid } from "../support/ulid";

const DAY = 24 * 3600 * 1000;

let repo: TestRepo;
let id: string;
beforeEach(async () => {
  repo = TestRepo.make();
  id = await repo.issue();
});

const lines = () => repo.log().filter((line) => line.event_type.startsWith("claim."));

/** Runs it twice with one id: the second time it succeeds as well, and nothing happens. */
async function twice(agent: string, ...args: string[]): Promise<Ran> {
  const request = ulid();
  expect((await repo.ask(agent, ...args, "--request-id", request)).data.replayed).toBe(false);
  const before = repo.logText();
  const again = await repo.ask(agent, ...args, "--request-id", request);
  expect(again.data.replayed).toBe(true);
  expect(repo.logText()).toBe(before);
  expect(lines().filter((line) => line.payload.request_id === request)).toHaveLength(1);
  return again;
}

describe("--request-id", () => {
  it("does an acquire once; its holder can use the lease", async () => {
    const { lease } = await twice("agent:a", "claim", "acquire", id);
    expect((await repo.ask("agent:a", "claim", "renew", id)).lease.lease_id).toBe(lease.lease_id);
  });

  it("does a renew, a heartbeat, a transfer, an eviction and a release once", async () => {
    await repo.prepare("agent:a", "claim", "acquire", id);
    await twice("agent:a", "claim", "renew", id);
    await twice("agent:a", "claim", "heartbeat", id);
    await twice("agent:a", "claim", "transfer", id, "--to-agent", "agent:b", "--reason", "r");
    await twice("agent:b", "claim", "release", id);
    await repo.prepare("agent:c", "claim", "acquire", id);
    await twice("human:ada", "claim", "force-evict", id, "--reason", "r");
    await twice("agent:a", "lock", "acquire", "a.ts", "b.ts");
    await twice("human:ada", "lock", "steal", "a.ts", "--reason", "r");
  });

  it("does not acquire again what was released meanwhile", async () => {
    const request = ["--request-id", ulid()];
    const { lease } = await repo.ask("agent:a", "claim", "acquire", id, ...request);
    await repo.prepare("agent:a", "claim", "release", id);
    const again = await repo.ask("agent:a", "claim", "acquire", id, ...request);
    expect(again.data).toMatchObject({ replayed: true, lease: { lease_id: lease.lease_id } });
    expect((await repo.ask("agent:b", "claim", "acquire", id)).status).toBe(0);
  });

  it("is remembered through compaction", async () => {
    const request = ["--request-id", ulid()];
    const { lease } = await repo.ask("agent:a", "claim", "acquire", id, ...request);
    await repo.prepare("agent:a", "claim", "release", id);
    await repo.prepare("agent:a", "gc", "--compact");
    expect(lines()).toEqual([]);
    const again = await repo.ask("agent:a", "claim", "acquire", id, ...request);
    expect(again.data).toMatchObject({ replayed: true, lease: { lease_id: lease.lease_id } });
    expect(lines()).toEqual([]);
  });

  it("is refused for another operation", async () => {
    const request = ["--request-id", ulid()];
    await repo.prepare("agent:a", "claim", "acquire", id, ...request);
    const before = repo.logText();
    expectJsonRefused(await repo.ask("agent:a", "claim", "release", id, ...request), 64, "E_USAGE");
    expectJsonRefused(await repo.ask("agent:a", "claim", "renew", id, ...request), 64, "E_USAGE");
    expect(repo.logText()).toBe(before);
  });

  it("is refused for another key: it must not look as if that one were held", async () => {
    const request = ["--request-id", ulid()];
    await repo.prepare("agent:a", "lock", "acquire", "a.ts", ...request);
    expectJsonRefused(await repo.ask("agent:a", "lock", "acquire", "b.ts", ...request), 64, "E_USAGE");
  });

  it("is refused to another agent: it must not look as if it held the lease", async () => {
    const request = ["--request-id", ulid()];
    await repo.prepare("agent:a", "lock", "acquire", "a.ts", ...request);
    expectJsonRefused(await repo.ask("agent:b", "lock", "acquire", "a.ts", ...request), 64, "E_USAGE");
  });

  it.each([-DAY - 60_000, -365 * DAY, DAY + 60_000])(
    "%i ms from now is refused, not executed",
    async (offset) => {
      const request = ["--request-id", ulid(Date.now() + offset)];
      const ran = await repo.ask("agent:a", "claim", "acquire", id, ...request);
      expectJsonRefused(ran, 9, "E_LIMIT");
      expect(ran.error.hint).toContain("cotenant status");
      expect(lines()).toEqual([]);
    },
  );

  it("settles what became of an operation whose answer was lost", async () => {
    needTool("strace");
    const args = ["claim", "acquire", id, "--json", "--request-id", ulid()];
    const killed = await run(
      [
        "strace",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "inject=fdatasync:signal=KILL:when=1",
        PROGRAM,
        ...args,
      ],
      { cwd: repo.root, env: { COTENANT_AGENT_ID: "agent:a" } },
    );
    expect(killed.status).not.toBe(0);
    expect(killed.stdout).toBe("");
    const retried = await repo.start("agent:a", args).done;
    expect(retried.lease).toMatchObject({ agent_id: "agent:a", fencing_token: 1 });
    expect(repo.logOf(`issue:${id}`)).toHaveLength(1);
    expect((await repo.ask("agent:a", "claim", "release", id)).status).toBe(0);
  });
});
