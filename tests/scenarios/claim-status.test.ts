import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { TestRepo } from "../support/repo";

/** Seed 000's index, of which `claim list --json` has the fields. */
const INDEX_FIELDS = ["schema_version", "generated_at", "sequence", "stale_threshold_secs", "active"];
const LEASE_FIELDS = [
  "lease_id",
  "issue_id",
  "agent_id",
  "worktree_id",
  "branch",
  "ttl_secs",
  "expires_at",
  "last_beat",
  "stale",
];

describe("S13: claim status and claim list", () => {
  let repo: TestRepo;
  let ids: string[];
  beforeEach(async () => {
    repo = TestRepo.make();
    ids = [await repo.issue("1"), await repo.issue("2"), await repo.issue("3")];
    await repo.prepare("agent:a", "claim", "acquire", ids[0]!);
    await repo.prepare("agent:b", "claim", "acquire", ids[1]!);
    await repo.prepare("agent:a", "claim", "acquire", ids[2]!, "--session", "other");
    await repo.prepare("agent:c", "lock", "acquire", "a.txt");
  });

  const keysFor = async (agent: string, ...args: string[]) =>
    (await repo.ask(agent, "claim", "status", ...args)).data.leases.map(({ issue_id }) => issue_id);

  it("shows all, mine first", async () => {
    expect(await keysFor("agent:b")).toEqual([ids[1], ids[0], ids[2]]);
    expect(await keysFor("agent:a")).toEqual([ids[0], ids[1], ids[2]]);
    expect(await keysFor("")).toHaveLength(3);
    const rows = (await repo.run("agent:b", "claim", "status")).stdout.trimEnd().split("\n");
    expect(rows).toHaveLength(4);
    expect(rows[1]).toMatch(/^\* .*agent:b/);
    expect(rows.slice(2).every((row) => row.startsWith("  "))).toBe(true);
  });

  it("filters by --mine, --issue and --agent", async () => {
    expect(await keysFor("agent:a", "--mine")).toEqual([ids[0]]);
    expect(await keysFor("agent:a", "--mine", "--session", "other")).toEqual([ids[2]]);
    expect(await keysFor("agent:c", "--mine")).toEqual([]);
    expect(await keysFor("agent:c", "--issue", ids[1]!)).toEqual([ids[1]]);
    expect(await keysFor("agent:b", "--agent", "agent:a")).toEqual([ids[0], ids[2]]);
    expect(await keysFor("agent:b", "--agent", "agent:a", "--issue", ids[1]!)).toEqual([]);
  });

  it("lists with the fields of seed 000's index", async () => {
    const { data } = await repo.ask("", "claim", "list");
    expect(Object.keys(data)).toEqual(expect.arrayContaining(INDEX_FIELDS));
    expect(data).toMatchObject({
      schema_version: 1,
      stale_threshold_secs: 3600,
      sequence: repo.log().length,
    });
    expect(data["active"]).toHaveLength(3);
    expect(data["active"]).toEqual(data.leases);
    for (const lease of data.leases) expect(Object.keys(lease)).toEqual(expect.arrayContaining(LEASE_FIELDS));
    expect(data.leases[0]).toMatchObject({ issue_id: ids[0], branch: "main", ttl_secs: 600, stale: false });
  });

  it("has the same fields in the flat file that gc writes", async () => {
    await repo.ask("agent:a", "gc");
    const flat = JSON.parse(fs.readFileSync(path.join(repo.control, "claims.index.json"), "utf8"));
    expect(Object.keys(flat)).toEqual(expect.arrayContaining(INDEX_FIELDS));
    const claims = flat.active.filter((lease: { issue_id?: string }) => lease.issue_id !== undefined);
    expect(claims).toHaveLength(3);
    for (const lease of claims) expect(Object.keys(lease)).toEqual(expect.arrayContaining(LEASE_FIELDS));
  });
});
