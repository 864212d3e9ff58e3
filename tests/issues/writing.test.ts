import { describe, expect, it } from "vitest";
import type { IssueChange } from "../../src/features/issues/changes";
import { underMutex } from "../../src/features/issues/desk";
import { IssueFolder } from "../../src/features/issues/folder";
import { type FoundIssue, isFound } from "../../src/features/issues/resolve";
import { settleIssues } from "../../src/features/issues/settle";
import type { Ulid } from "../../src/kernel/ids";
import type { SimWorld } from "../../testing/simulator";
import { codeOf, decode, encode, freshId, quietWorld } from "../store/stage";
import { type Clerk, issueName, openClerk } from "./stage";
import { atEveryOperation, STRIKES, type Struck } from "./struck";

function world(): SimWorld {
  const made = quietWorld();
  made.disk.makePath("/second");
  return made;
}

let entered = 0;
function clerk(made: SimWorld, agent: string, options: Parameters<typeof openClerk>[2] = {}): Clerk {
  return openClerk(made.attach(`${agent}#${++entered}`).platform, agent, options);
}

const SECOND = { worktree: "wt:00000002" };
const started = ({ issue }: FoundIssue): IssueChange => ({
  fields: { state: "in_progress", title: `${issue.title}!` },
  labels: { add: ["type:bug"], remove: [] },
  dependencies: { add: ["01J00000000000000000000000"], remove: [] },
  events: [{ type: "issue.updated", payload: { issue_id: issue.id } }],
});
const file = (root: string, id: Ulid, name: string) => `${root}/.cotenant/issues/${id}/${name}`;

describe("a write", () => {
  it("stamps the issue with its claim, and everybody reads it", async () => {
    const made = world();
    const [a, b] = [clerk(made, "agent:a"), clerk(made, "agent:b", SECOND)];
    const id = await a.create("one", { labels: ["area:x"] });
    const { leases } = await a.acquire(issueName(id));
    const outcome = await a.writer.update(id, started);
    expect(outcome).toMatchObject({ changed: true, warnings: [], lease: { leaseId: leases[0]!.leaseId } });
    const found = (await b.reader.find(id)) as FoundIssue;
    expect(found).toMatchObject({
      state: "in_progress",
      labels: ["area:x", "type:bug"],
      dependencies: ["01J00000000000000000000000"],
      copy: { layer: "holder", root: "/repo" },
      issue: {
        title: "one!",
        updated_by: "agent:a",
        stamp: {
          version: 2,
          origin: "wt:00000001",
          lease_id: leases[0]!.leaseId,
          fencing_token: leases[0]!.fencingToken,
        },
      },
    });
    expect(outcome.found.issue).toEqual(found.issue);
    const events = decode(made.disk.peek("/repo/.cotenant/events/local.jsonl"))!
      .trim()
      .split("\n")
      .map((l) => JSON.parse(l));
    expect(events.map(({ event_type }) => event_type)).toEqual(["issue.created", "issue.updated"]);
    expect(events[1].actor).toMatchObject({ agent_id: "agent:a", lease_id: leases[0]!.leaseId });
    expect(Object.keys(events[1].actor)).not.toContain("host");
  });

  it("is refused without a claim, told so, or done in silence, as configured", async () => {
    const made = world();
    const a = clerk(made, "agent:a");
    const id = await a.create("one");
    expect(await codeOf(a.writer.update(id, started))).toBe("E_LEASE_REQUIRED");
    const warned = await clerk(made, "agent:a", { enforcement: "warn" }).writer.update(id, started);
    expect(warned).toMatchObject({
      changed: true,
      lease: null,
      warnings: [expect.stringContaining("without a claim")],
    });
    const silent = await clerk(made, "agent:b", { enforcement: "off" }).writer.update(id, started);
    expect(silent).toMatchObject({ changed: true, warnings: [] });
    expect(silent.found.issue.stamp).toMatchObject({ version: 3, lease_id: null });
    await clerk(made, "agent:c").acquire(issueName(id));
    expect(await codeOf(a.writer.update(id, started))).toBe("E_LOCK_NOT_HELD");
  });

  it("is refused once the claim is over: expired, evicted, taken over", async () => {
    const made = world();
    const a = clerk(made, "agent:a");
    const id = await a.create("one");
    await a.acquire(issueName(id), { ttlSecs: 5 });
    made.advance(6_000);
    expect(await codeOf(a.writer.update(id, started))).toBe("E_LOCK_EXPIRED");
    await clerk(made, "agent:b").acquire(issueName(id));
    expect(await codeOf(a.writer.update(id, started))).toBe("E_FENCING_MISMATCH");
    expect(((await a.reader.find(id)) as FoundIssue).issue.stamp.version).toBe(1);
  });

  it("lands in the worktree of the claim, and brings the issue there first", async () => {
    const made = world();
    const [a, b] = [clerk(made, "agent:a"), clerk(made, "agent:b", SECOND)];
    const id = await a.create("one", { labels: ["area:x"] });
    await b.acquire(issueName(id));
    await b.writer.update(id, started);
    expect(made.disk.peek(file("/second", id, "issue.json"))).not.toBe(null);
    expect(
      decode(made.disk.peek(file("/second", id, "labels.or-set.jsonl")))!
        .trim()
        .split("\n"),
    ).toHaveLength(2);
    // The main worktree's own copy stays as it is until Git merges the two.
    expect(JSON.parse(decode(made.disk.peek(file("/repo", id, "issue.json")))!).stamp.version).toBe(1);
    expect(await a.reader.find(id)).toMatchObject({
      copy: { layer: "holder" },
      labels: ["area:x", "type:bug"],
    });
  });

  it("is never offered again where it is not merged yet, also when the other worktree is gone", async () => {
    const made = world();
    const [a, b] = [clerk(made, "agent:a"), clerk(made, "agent:b", SECOND)];
    const id = await a.create("one");
    await b.acquire(issueName(id));
    await b.writer.update(id, () => ({ fields: { state: "done" }, events: [] }));
    await b.release(issueName(id));
    expect(await a.reader.find(id)).toMatchObject({
      state: "done",
      ahead: null,
      copy: { layer: "elsewhere" },
    });
    made.disk.spoil(file("/second", id, "issue.json"), null);
    expect(await a.reader.find(id)).toMatchObject({
      state: "done",
      ahead: { version: 2, agentId: "agent:b" },
      copy: { layer: "worktree" },
    });
    // Whoever writes next is told, and goes above it.
    await a.acquire(issueName(id));
    const again = await a.writer.update(id, () => ({ fields: { state: "ready" }, events: [] }));
    expect(again).toMatchObject({
      found: { issue: { stamp: { version: 3 } } },
      warnings: [expect.stringContaining("version 2")],
    });
  });

  it("deletes for good: no old worktree brings it back", async () => {
    const made = world();
    const [a, b] = [clerk(made, "agent:a"), clerk(made, "agent:b", SECOND)];
    const id = await a.create("one");
    await b.acquire(issueName(id));
    await b.writer.update(id, started);
    await b.release(issueName(id));
    await a.acquire(issueName(id));
    await a.writer.update(id, () => ({ fields: { deleted_at: "2026-01-01T00:00:00.000Z" }, events: [] }));
    await a.release(issueName(id));
    for (const who of [a, b]) {
      expect(await who.reader.find(id)).toMatchObject({ isDeleted: true });
      expect(await codeOf(who.reader.get(id))).toBe("E_NOT_FOUND");
    }
  });

  it("shows copies of one version that differ", async () => {
    const made = world();
    const [a, b] = [clerk(made, "agent:a"), clerk(made, "agent:b", { ...SECOND, enforcement: "off" })];
    const id = await a.create("one");
    await b.writer.update(id, started);
    const text = decode(made.disk.peek(file("/second", id, "issue.json")))!;
    made.disk.spoil(file("/repo", id, "issue.json"), encode(text.replace("one!", "other")));
    const found = (await a.reader.find(id)) as FoundIssue;
    expect(found.issue.title).toBe("other");
    expect(found.diverged).toMatchObject([{ layer: "elsewhere" }]);
  });

  it("with one request id is done once", async () => {
    const made = world();
    const a = clerk(made, "agent:a");
    const id = await a.create("one");
    await a.acquire(issueName(id));
    const requestId = freshId(a.platform);
    await a.writer.update(id, started, { requestId });
    expect(await a.writer.update(id, started, { requestId })).toMatchObject({ changed: false });
    expect(((await a.reader.find(id)) as FoundIssue).issue).toMatchObject({
      title: "one!",
      stamp: { version: 2 },
    });
  });

  it("keeps what it has staged while the one before it is being settled, after the mutex", async () => {
    const { platform } = world().attach("writer");
    const folder = new IssueFolder(platform, "/repo");
    const id = freshId(platform);
    const digest = (text: string) => platform.digest.sha256(text);
    await folder.stage(id, "first");
    await folder.carryOut(id, digest("first"), []);
    await folder.stage(id, "second");
    await folder.settle(id, digest("first"), []);
    await folder.carryOut(id, digest("second"), []);
    await folder.settle(id, digest("second"), []);
    expect((await folder.read(id))?.text).toBe("second");
    expect(await platform.files.readDirectory(folder.folder(id))).toEqual(["issue.json"]);
  });

  it("does not follow a link out of the worktree", async () => {
    const made = world();
    const a = clerk(made, "agent:a");
    const id = await a.create("one");
    await a.acquire(issueName(id));
    made.disk.install("/home-file", encode("precious\n"));
    made.disk.symlink("/home-file", file("/repo", id, "labels.or-set.jsonl"));
    expect(await codeOf(a.writer.update(id, started))).toBe("E_PATH_ESCAPE");
    expect(decode(made.disk.peek("/home-file"))).toBe("precious\n");
  });
});

/** Killed, or without power, after each of its operations: what is found is the old issue or the new one. */
describe.each(STRIKES)("%s at every operation, a write", (_, strikeBy) => {
  it("leaves the old issue or the new one, and once acknowledged the new one", () =>
    atEveryOperation(400, 4, strikeBy, writesOne));
});

async function writesOne({ made, strike }: Struck): Promise<void> {
  made.disk.makePath("/second");
  const run = async <T>(act: (c: Clerk) => Promise<T>, agent = "agent:a") => {
    const process = made.spawn("p", (platform) => act(openClerk(platform, agent)));
    await made.run();
    if (process.error !== undefined) throw process.error;
    return process.result as T;
  };
  const id = await run(async (c) => {
    const made = await c.create("one", { labels: ["area:x"] });
    await c.acquire(issueName(made));
    return made;
  });
  let acknowledged = false;
  const victim = made.spawn(
    "victim",
    async (platform) => {
      await openClerk(platform, "agent:a").writer.update(id, started);
      acknowledged = true;
    },
    { mayFail: true },
  );
  await strike(victim);
  const look = (c: Clerk) => c.reader.find(id);
  const first = judged(await run(look, "agent:b"), acknowledged);
  // Reading again, settling, and writing again change nothing about that.
  expect(judged(await run(look, "agent:b"), first === "new")).toBe(first);
  await run((c) => settleIssues(c.reader, 0, (act) => underMutex(c.session, act)));
  expect(judged(await run(look, "agent:b"), first === "new")).toBe(first);
  const after = await run(async (c) => {
    // Secrets are not synced: after a power cut the session proves itself anew.
    await c.acquire(issueName(id));
    return c.writer.update(id, () => ({ fields: { assignee: "human:x" }, events: [] }));
  });
  expect(after.found.issue.stamp.version).toBeGreaterThan(first === "new" ? 2 : 1);
  expect(after.found.labels).toEqual(first === "new" ? ["area:x", "type:bug"] : ["area:x"]);
  const names = await run((c) =>
    Promise.resolve(c.platform.files.readDirectory(new IssueFolder(c.platform, "/repo").folder(id))),
  );
  expect(names!.filter((name) => name.endsWith(".new"))).toEqual([]);
}

function judged(found: unknown, mustBeNew: boolean): "old" | "new" {
  const issue = found as FoundIssue;
  expect(isFound(issue)).toBe(true);
  const { version } = issue.issue.stamp;
  expect(issue.ahead).toBe(null);
  if (mustBeNew) expect(version).toBe(2);
  expect(issue).toMatchObject(
    version === 1
      ? { state: "ready", labels: ["area:x"], dependencies: [], issue: { title: "one" } }
      : {
          state: "in_progress",
          labels: ["area:x", "type:bug"],
          dependencies: ["01J00000000000000000000000"],
          issue: { title: "one!" },
        },
  );
  return version === 1 ? "old" : "new";
}
