import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});
const leftSecs = (expiresAt: string | null) => (Date.parse(expiresAt!) - Date.now()) / 1000;

describe("a lease that is asked for again", () => {
  it("for longer, lasts longer, and says so", async () => {
    const first = await repo.prepare("agent:a", "lock", "acquire", "a.ts", "--ttl", "60");
    const again = await repo.prepare("agent:a", "lock", "acquire", "a.ts", "--ttl", "3600");
    expect(again.lease).toMatchObject({ lease_id: first.lease.lease_id, ttl_secs: 3_600 });
    expect(again.changed).toBe(true);
    expect(leftSecs(again.lease.expires_at)).toBeGreaterThan(3_500);
    const { stdout } = await repo.runHere("agent:a", "lock", "acquire", "a.ts", "--ttl", "60");
    expect(stdout).toMatch(/^already yours: file:a\.ts .*1h00m, until/);
    const longer = await repo.runHere("agent:a", "lock", "acquire", "a.ts", "--ttl", "7200");
    expect(longer.stdout).toMatch(/^renewed file:a\.ts for agent:a, 2h00m, until/);
  });

  it("tells of a takeover once, and not whenever it is asked for again", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "a.ts");
    const taken = await repo.runHere("human:ada", "lock", "steal", "a.ts", "--reason", "it hangs");
    expect(taken.stdout).toMatch(/^took over file:a\.ts [\s\S]*taken over from agent:b \(forced\)/);
    for (const ttl of ["600", "7200"]) {
      const again = await repo.runHere("human:ada", "lock", "acquire", "a.ts", "--ttl", ttl);
      expect(again.stdout).toMatch(/^(?:already yours:|renewed) file:a\.ts/);
      expect(again.stdout).not.toContain("taken over");
    }
  });
});

describe("a renewal for less than is left", () => {
  it("says how long the lease really lasts", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.ts", "--ttl", "600");
    const { stdout } = await repo.runHere("agent:a", "lock", "renew", "a.ts", "--ttl", "30");
    expect(stdout).toMatch(
      /^renewed file:a\.ts, (9m5\ds|10m00s), until .*\(a renewal never shortens; from the next one on 30s\)/,
    );
    const { lease } = await repo.prepare("agent:a", "lock", "renew", "a.ts", "--ttl", "1200");
    expect(leftSecs(lease.expires_at)).toBeGreaterThan(1_100);
  });
});

describe("a stale claim without expiry", () => {
  it("admits no write at the second try either, until it is renewed as the hint says", async () => {
    const env = { COTENANT_COORDINATION_STALE_THRESHOLD_SECS: "1" };
    const id = await repo.issue();
    await repo.prepare("agent:a", "claim", "acquire", id, "--ttl", "0", "--reason", "r");
    const update = () => repo.askWith(env, "agent:a", "issue", "update", id, "--title", "New");
    const looks = () => repo.askWith(env, "agent:looks", "claim", "status");
    await until("it is stale", async () => (await looks()).data.leases[0]!.stale === true);
    expectJsonRefused(await update(), 7, "E_LOCK_EXPIRED");
    const second = await update();
    expectJsonRefused(second, 7, "E_LOCK_EXPIRED");
    expectJsonRefused(await repo.askWith(env, "agent:a", "claim", "heartbeat", id), 7, "E_LOCK_EXPIRED");
    const [, words] = /'cotenant ([^']+)'/.exec(second.error.hint)!;
    // A long threshold now: what is to be seen is that it was renewed.
    expect((await repo.ask("agent:a", ...words!.split(" "))).status).toBe(0);
    expect((await repo.ask("agent:a", "issue", "update", id, "--title", "New")).status).toBe(0);
  });
});

describe("a live writer lock", () => {
  it("is ended by nobody but its holder, also not by force", async () => {
    const { lease } = await repo.prepare("agent:a", "worktree", "lock");
    for (const who of ["human:ada", "admin:root", "agent:b"]) {
      const forced = await repo.askHere(who, "claim", "force-evict", lease.lease_id, "--reason", "now");
      expectJsonRefused(forced, 1, "E_LOCK_CONFLICT");
      expect(forced.error.message).toContain("agent:a");
    }
    await repo.prepare("agent:a", "worktree", "unlock");
  });
});
