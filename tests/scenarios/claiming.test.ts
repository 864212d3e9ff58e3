import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { sampleOf } from "../support/sample";

const it = oneIn(5);

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

describe("S1: acquire a free issue", () => {
  it("gives a lease id, a token and 600 seconds", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    const ran = await repo.ask("agent:a", "claim", "acquire", id);
    expect(ran.json).toEqual({ ok: true, data: expect.anything() });
    const { lease } = ran;
    expect(lease).toMatchObject({
      lease_id: expect.stringMatching(ULID),
      key: `issue:${id}`,
      issue_id: id,
      agent_id: "agent:a",
      ttl_secs: 600,
      fencing_token: 1,
      bind: "ttl",
    });
    expect(Date.parse(lease.expires_at!) - Date.parse(lease.acquired_at)).toBe(600_000);
    expect(repo.logOf(`issue:${id}`).map((line) => line.event_type)).toEqual(["claim.acquired"]);
  });

  it("says so to people", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    const ran = await repo.run("agent:a", "claim", "acquire", id);
    expect(ran.status).toBe(0);
    expect(ran.stdout).toMatch(/acquired issue:\w{26} for agent:a, 10m00s/);
    expect(ran.stdout).toMatch(/lease \w{26}, token 1/);
  });
});

describe("S2: a second agent", () => {
  it("is refused with holder, expiry and the next safe command", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", id);

    const asked = await repo.ask("agent:b", "claim", "acquire", id);
    expectJsonRefused(asked, 1, "E_LOCK_CONFLICT");
    expect(asked.error.data.holders).toEqual([
      expect.objectContaining({
        agent_id: "agent:a",
        expires_at: lease.expires_at,
        lease_id: lease.lease_id,
      }),
    ]);

    const ran = await repo.run("agent:b", "claim", "acquire", id);
    expectRefused(ran, 1, "E_LOCK_CONFLICT");
    expect(ran.stderr).toContain("agent:a");
    expect(ran.stderr).toContain(lease.expires_at);
    expect(ran.stderr).toMatch(/next: .*--wait.*cotenant status/);
    expect(ran.stderr).not.toMatch(/force|steal|evict|rm /);
  });
});

describe("S3: 32 processes at once", () => {
  it.each(sampleOf([1, 2, 3], 3))("have exactly one winner and 31 clean refusals (round %i)", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    const racers = Array.from({ length: 32 }, (_, i) =>
      repo.start(`agent:racer-${i}`, ["claim", "acquire", id, "--json"], { held: true }),
    );
    for (const racer of racers) racer.go();
    const ended = await Promise.all(racers.map(({ done }) => done));

    const [winner, ...others] = ended.filter(({ status }) => status === 0);
    expect(others).toEqual([]);
    const losers = ended.filter((ran) => ran !== winner);
    for (const loser of losers) {
      expectJsonRefused(loser, 1, "E_LOCK_CONFLICT");
      expect(loser.error.data.holders?.[0]?.agent_id).toBe(winner!.lease.agent_id);
      expect(loser.stderr).toBe("");
    }
    expect(losers).toHaveLength(31);
    expect(repo.logOf(`issue:${id}`)).toHaveLength(1);
  });
});

describe("S4: an unknown issue", () => {
  it.each([
    ["acquire", []],
    ["renew", []],
    ["heartbeat", []],
    ["release", []],
    ["transfer", ["--to-agent", "agent:b", "--reason", "r"]],
    ["force-evict", ["--reason", "r"]],
  ])("claim %s exits with 4", async (verb, rest) => {
    const repo = TestRepo.make();
    await repo.issue();
    expectRefused(await repo.run("human:ada", "claim", verb, NOBODY, ...rest), 4, "E_NOT_FOUND");
    expectRefused(await repo.runHere("human:ada", "claim", verb, "zzzz", ...rest), 4, "E_NOT_FOUND");
    for (const id of [NOBODY, "zzzz"])
      expectJsonRefused(await repo.askHere("human:ada", "claim", verb, id, ...rest), 4, "E_NOT_FOUND");
    expect(repo.log().filter((line) => line.event_type.startsWith("claim."))).toEqual([]);
  });
});

describe("S5: short id and full id", () => {
  it.each([
    ["short, then full", 0, 1],
    ["full, then short", 1, 0],
    ["short, then full in lower case", 0, 2],
  ])("are one key: %s", async (_, first, second) => {
    const repo = TestRepo.make();
    const { issue } = await repo.prepare("agent:a", "issue", "create", "--title", "t");
    await repo.issue("another one");
    const names = [issue.short_id, issue.id, issue.id.toLowerCase()];
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", names[first]!);
    expect(lease.key).toBe(`issue:${issue.id}`);
    const other = await repo.ask("agent:b", "claim", "acquire", names[second]!);
    expectJsonRefused(other, 1, "E_LOCK_CONFLICT");
    expect(other.error.message).toContain(issue.id);
  });
});

describe("S6: a TTL of one second", () => {
  it("passes to the next agent; ten looks in between add nothing to the log", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", id, "--ttl", "1");
    const before = repo.logText();
    const looks = [
      ["status"],
      ["claim", "status"],
      ["claim", "list"],
      ["lock", "status", "--all"],
      ["issue", "list"],
    ];
    for (const look of looks) expect((await repo.askHere("agent:a", ...look)).status).toBe(0);
    await until("it has run out", async () => {
      const { leases } = await repo.prepare("agent:b", "claim", "status");
      return leases.length === 0;
    });
    for (const look of looks) expect((await repo.ask("agent:b", ...look)).status).toBe(0);
    expect(repo.logText()).toBe(before);

    const next = (await repo.ask("agent:b", "claim", "acquire", id)).lease;
    expect(next.fencing_token).toBeGreaterThan(lease.fencing_token);
    expect(next.stole_from).toEqual([{ lease_id: lease.lease_id, agent_id: "agent:a", why: "expired" }]);
    expect(repo.log().at(-1)).toMatchObject({
      event_type: "claim.acquired",
      payload: { ended: [{ agent_id: "agent:a", cause: "expired" }] },
    });
  });
});

describe("S15: the same agent and worktree acquires twice", () => {
  it("gets the same lease, and nothing is written", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", id);
    const before = repo.logText();
    const again = await repo.ask("agent:a", "claim", "acquire", id);
    expect(again.data).toMatchObject({ changed: false, lease });
    expect((await repo.runHere("agent:a", "claim", "acquire", id)).stdout).toContain("already yours");
    expect(repo.logText()).toBe(before);
  });

  it("renews it once less than half of its time is left", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", id, "--ttl", "600");
    const again = (await repo.askAt(400, "agent:a", "claim", "acquire", id, "--ttl", "600")).lease;
    expect(again).toMatchObject({ lease_id: lease.lease_id, fencing_token: lease.fencing_token });
    expect(Date.parse(again.expires_at!)).toBeGreaterThan(Date.parse(lease.expires_at!));
  });

  it("is not the same in another session or another worktree", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    const other = repo.addWorktree("feature");
    await repo.prepare("agent:a", "claim", "acquire", id);
    const session = await repo.ask("agent:a", "claim", "acquire", id, "--session", "another");
    expectJsonRefused(session, 1, "E_LOCK_CONFLICT");
    expectJsonRefused(await other.ask("agent:a", "claim", "acquire", id), 1, "E_LOCK_CONFLICT");
  });
});
