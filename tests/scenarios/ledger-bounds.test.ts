import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import type { Hub } from "../support/hub";
import { Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";

const it = oneIn(5);

/** Pushes a record as somebody with a text editor would. */
function forge(hub: Hub, id: string, change: (record: Record<string, unknown>) => void): void {
  const ref = `refs/cotenant/claims/${id}`;
  const record = hub.claim(id);
  change(record);
  const tree = hub.git("rev-parse", `${ref}^{tree}`).trim();
  const message = `By hand\n\n${JSON.stringify(record)}\n`;
  const commit = hub
    .git("-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", "-p", ref, "-m", message, tree)
    .trim();
  hub.git("update-ref", ref, commit);
}

/** Nothing else suffers from it: plain locks, other claims, reads, a sync, and the log itself. */
async function goesOn(machine: Machine, other: string): Promise<void> {
  expect((await machine.askHere("lock", "acquire", "src/a.ts")).status).toBe(0);
  expect((await machine.askHere("lock", "release", "src/a.ts")).status).toBe(0);
  expect((await machine.askHere("claim", "acquire", other)).data).toMatchObject({ offline: false });
  expect((await machine.askHere("claim", "release", other)).status).toBe(0);
  for (const words of [["status"], ["claim", "status"], ["issue", "list"], ["sync"], ["validate", "leases"]])
    expect((await machine.askHere(...words)).status, words.join(" ")).toBe(0);
}

const WILD: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
  ["a token of 2^51", { fencing_token: 2 ** 51 }, /fencing token is out of bounds: 2251799813685248/],
  ["a token of 2^50, in bounds and out of reach", { fencing_token: 2 ** 50 }, /out of reach/],
  ["an end in the year 275760", { expires_at: "+275760-09-13T00:00:00.000Z" }, /expires_at/],
];

describe("S82: a token or a time out of bounds", () => {
  it.each(WILD)(
    "from the remote, %s, is refused by name, and everything else goes on",
    async (_, wild, said) => {
      const { hub, first, ids } = await sharedIssues(2);
      const [id, other] = ids as [string, string];
      const second = Machine.clone(hub, "second");
      await first.prepare("claim", "acquire", id);
      await first.prepare("claim", "release", id);
      forge(hub, id, (record) => Object.assign(record, wild));
      const ran = await second.askHere("claim", "acquire", id);
      expect(ran.status, String(ran)).not.toBe(0);
      expect(["E_LEDGER_REWRITTEN", "E_LIMIT"]).toContain(ran.error.code);
      expect(ran.error.message).toMatch(said);
      expect(ran.error.message).toContain(id);
      expect((await second.askHere("claim", "list")).data.leases).toEqual([]);
      await goesOn(second, other);
    },
  );

  it("what was granted before the remote was looked at is given back, doctor names the claim, and the hint mends it", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    await first.prepare("claim", "acquire", id);
    await first.prepare("claim", "release", id);
    const before = hub.refs("refs/cotenant/claims/");
    forge(hub, id, (record) => Object.assign(record, { fencing_token: 2 ** 50 }));
    for (const _ of ["by what was last heard of it, it is free", "as it is heard of now"])
      expectJsonRefused(await first.askHere("claim", "acquire", id), 9, "E_LIMIT");
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
    // Nobody has taken anything from anybody.
    expect((await first.runHere("events")).stdout).not.toContain("evicted");
    expectJsonRefused(await first.askHere("issue", "update", id, "--title", "x"), 6, "E_LEASE_REQUIRED");
    expect((await first.runHere("doctor")).stdout).toMatch(new RegExp(`claim on issue ${id}.*out of reach`));
    for (const [ref, oid] of Object.entries(before)) hub.git("update-ref", ref, oid);
    await first.prepare("sync", "--force-resync", "--yes");
    expect((await first.askHere("claim", "acquire", id)).data).toMatchObject({ offline: false });
  });

  it("a claim that another machine was faster with ends as given back, and nobody is told of a lost lease", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    await first.prepare("claim", "acquire", id);
    await first.prepare("claim", "release", id);
    await Machine.clone(hub, "second").prepare("claim", "acquire", id);
    expectJsonRefused(await first.askHere("claim", "acquire", id), 1, "E_LOCK_CONFLICT");
    expect((await first.runHere("events")).stdout).not.toContain("evicted");
    const refused = await first.askHere("issue", "update", id, "--title", "x");
    expect(["E_LEASE_REQUIRED", "E_LOCK_NOT_HELD"]).toContain(refused.error.code);
  });

  it("a token that is within reach is followed", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    await first.prepare("claim", "acquire", id);
    await first.prepare("claim", "release", id);
    forge(hub, id, (record) => Object.assign(record, { fencing_token: 2 ** 32 }));
    const { lease } = await Machine.clone(hub, "second").prepare("claim", "acquire", id);
    expect(lease.fencing_token).toBe(2 ** 32 + 1);
  });

  it("from a committed issue is refused by name, and everything else goes on", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [id, other] = ids as [string, string];
    const text = fs.readFileSync(first.issueFile(id), "utf8");
    for (const [field, value, code] of [
      ["fencing_token", 2 ** 51, "E_ISSUE"],
      ["fencing_token", 2 ** 50, "E_LIMIT"],
      ["version", 2 ** 52, "E_ISSUE"],
    ] as const) {
      const issue = JSON.parse(text);
      fs.writeFileSync(
        first.issueFile(id),
        JSON.stringify({ ...issue, stamp: { ...issue.stamp, [field]: value } }),
      );
      first.repo.git("commit", "--quiet", "--all", "--message", field);
      const ran = await first.askHere("claim", "acquire", id);
      expect(ran.status, `${field} ${value} ${ran}`).not.toBe(0);
      expect(ran.error.message, code).toMatch(/out of bounds|out of reach/);
      expect(ran.error.message).toContain(id);
    }
    await goesOn(first, other);
    // It is not sent to others either.
    expect(hub.issue(id)["stamp"]).toEqual(JSON.parse(text).stamp);
  });

  it("from the ledger's branch is passed over by name: a stamp, a size, the highest token", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [id, other] = ids as [string, string];
    const second = Machine.clone(hub, "second");
    const [wild, large] = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"];
    const issue = hub.issue(id) as { stamp: Record<string, unknown> };
    put(hub, {
      [`issues/${wild}/issue.json`]: JSON.stringify({ ...issue, id: wild, stamp: { version: 2 ** 51 } }),
      [`issues/${large}/issue.json`]: JSON.stringify({
        ...issue,
        id: large,
        description: "x".repeat(8 << 20),
      }),
      [`issues/${other}/comments.jsonl`]: `{"text":"${"x".repeat(16 << 20)}"}\n`,
      "ledger.json": `{"schema_version":1,"highest_token":${2 ** 49}}`,
    });
    const synced = await second.askHere("sync");
    expect(synced.status, String(synced)).toBe(0);
    expect(synced.json.data!["unreadable"]).toMatchObject([
      { issue_id: wild, why: expect.stringContaining("out of bounds") },
      { issue_id: large, why: expect.stringContaining("too large") },
      { issue_id: other, why: expect.stringContaining("too large") },
    ]);
    for (const each of [wild, large]) expect(fs.existsSync(second.issueFile(each!))).toBe(false);
    expect(fs.existsSync(path.join(path.dirname(second.issueFile(other)), "comments.jsonl"))).toBe(false);
    const claimed = await second.askHere("claim", "acquire", id);
    expect(claimed.lease.fencing_token).toBeLessThan(1_000);
    await second.prepare("issue", "update", id, "--priority", "high");
    await second.prepare("sync");
    expect(JSON.parse(hub.git("show", "cotenant-sync:.cotenant/ledger.json"))["highest_token"]).toBeLessThan(
      1_000,
    );
    expectJsonRefused(await second.askHere("claim", "acquire", wild!), 4, "E_NOT_FOUND");
    expect((await first.askHere("sync")).status).toBe(0);
  });
});

/** One more commit on the ledger's branch. */
function put(hub: Hub, files: Readonly<Record<string, string>>): void {
  const room = path.join(hub.room, "by-hand");
  hub.git("clone", "--quiet", "--branch", "cotenant-sync", hub.path, room);
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(room, ".cotenant", name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
  }
  hub.git("-C", room, "add", "--all");
  hub.git("-C", room, "commit", "--quiet", "--message", "By hand");
  hub.git("-C", room, "push", "--quiet", "origin", "HEAD");
}
