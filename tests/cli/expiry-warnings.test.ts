import { describe, expect } from "vitest";
import { COMMANDS } from "../../src/cli/commands";
import { expiryWarnings } from "../../src/cli/expiry";
import { Workspace } from "../../src/coordinator/workspace";
import { thisMachine } from "../../src/platform/node/this-machine";
import { TestClock } from "../support/guard";
import { oneIn } from "../support/one-in";
import { runHere } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

it("a lease with less than 10 % of its time left is warned of to its holder", async () => {
  const repo = TestRepo.make();
  const id = await repo.issue();
  const { lease } = await repo.prepare("agent:a", "claim", "acquire", id, "--ttl", "600");
  const warned = async (agentId: string, aheadSecs: number) => {
    const { platform } = new TestClock(aheadSecs * 1_000);
    const there = { ...thisMachine(), platform, cwd: repo.root, isTerminal: false };
    return expiryWarnings(await Workspace.open(there, { agentId }));
  };
  expect(await warned("agent:a", 500)).toEqual([]);
  const words = expect.stringMatching(`issue:${id} ends in .*: cotenant claim renew ${lease.lease_id}$`);
  expect(await warned("agent:a", 550)).toEqual([words]);
  expect(await warned("agent:b", 550)).toEqual([]);
});

it("the share is a setting, and the warning comes with any command of the holder, and of nobody else", async () => {
  const repo = TestRepo.make();
  await repo.prepare("agent:a", "lock", "acquire", "a.ts");
  const env = { COTENANT_COORDINATION_LEASE_RENEWAL_THRESHOLD_PCT: "100" };
  expect((await repo.ask("agent:a", "status")).json.warnings).toBeUndefined();
  const asked = await repo.askWith(env, "agent:a", "status");
  expect(asked.json.warnings).toEqual([expect.stringContaining("file:a.ts")]);
  expect(asked.stderr).toContain("warning");
  const shown = await repo.start("agent:a", ["lock", "status"], { env }).done;
  expect(shown.stderr).toContain("your lease on file:a.ts ends in");
  expect((await repo.askWith(env, "agent:b", "status")).json.warnings).toBeUndefined();
});

it("a lease is renewed by writing commands before that", async () => {
  const repo = TestRepo.make();
  const { lease } = await repo.prepare("agent:a", "lock", "acquire", "a.ts", "--ttl", "600");
  expect((await repo.askAt(400, "agent:a", "lock", "acquire", "b.ts")).status).toBe(0);
  const renewed = (await repo.ask("agent:a", "lock", "status")).data.leases.find(
    ({ key }) => key === "file:a.ts",
  );
  expect(Date.parse(renewed!.expires_at!)).toBeGreaterThan(Date.parse(lease.expires_at!));
});

describe("the warning comes with every command", () => {
  /** Told to nobody, about nothing of the caller's, or an agent's harness reads what they print. */
  const SILENT =
    /^(?:guard (?:check|stop|end)|hook .+|complete|completion|daemon run|demo|deinit|exec|merge-issue|version)$/;

  it("but for those that nobody reads", async () => {
    const silent: string[] = [];
    for (const [name, { load }] of Object.entries(COMMANDS))
      if ((await load()).remindsOfExpiry === false) silent.push(name);
    expect(silent.filter((name) => !SILENT.test(name))).toEqual([]);
  });

  const READERS = `query all|query available|query blocked|query strategic|query closed|search x|graph show ID|graph roots
graph downstream ID|graph export|info|events|validate all|validate leases|validate config|validate divergence
validate commits HEAD|doctor|stats|config show|config get guard.retry_secs|config validate|config show-hierarchy|sync --status
status|claim list|claim status|lock status|issue list|issue show ID|worktree list|worktree info|history|hooks status
agent list|gate list|guard status|guard report|trust --list`;

  it("that reads", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    await repo.prepare("agent:a", "claim", "acquire", id);
    const env = { COTENANT_AGENT_ID: "agent:a", COTENANT_COORDINATION_LEASE_RENEWAL_THRESHOLD_PCT: "100" };
    const quiet: string[] = [];
    for (const line of READERS.split(/[|\n]/)) {
      const words = line.replace("ID", id).split(" ");
      const ran = await runHere(words, { cwd: repo.root, home: process.env["HOME"]!, env });
      if (ran.status === 0 && !ran.stderr.includes(`your lease on issue:${id} ends in`)) quiet.push(line);
    }
    expect(quiet).toEqual([]);
  });
});
