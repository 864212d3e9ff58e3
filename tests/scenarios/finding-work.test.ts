import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { writeIssue } from "../support/issue-files";
import { oneIn } from "../support/one-in";
import type { Ran } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

interface Listed {
  readonly id: string;
  readonly title: string;
  readonly state: string;
  readonly claimed_by: string | null;
  readonly layer: string;
  readonly left: object | null;
  readonly blocked_by?: readonly {
    readonly id: string;
    readonly state: string;
    readonly claimed_by: string;
  }[];
}

const listed = (ran: Ran) => ran.data["issues"] as readonly Listed[];
const titles = (ran: Ran) => listed(ran).map(({ title }) => title);

async function made(repo: TestRepo, title: string, ...flags: string[]): Promise<string> {
  return (await repo.prepare("agent:planner", "issue", "create", "--title", title, ...flags)).issue.id;
}

async function finish(repo: TestRepo, agent: string, id: string, state = "done"): Promise<void> {
  await repo.prepare(agent, "claim", "acquire", id);
  await repo.prepare(agent, "issue", "update", id, "--state", state);
  await repo.prepare(agent, "claim", "release", id);
}

describe("S21: claim next", () => {
  it("takes the highest priority, unblocked, unclaimed issue", async () => {
    const repo = TestRepo.make();
    await made(repo, "Low", "--priority", "low");
    const needed = await made(repo, "Needed", "--priority", "high");
    await made(repo, "Blocked", "--priority", "critical", "--depends-on", needed);
    const urgent = await made(repo, "Taken", "--priority", "critical");
    await made(repo, "Parked", "--priority", "critical", "--state", "backlog");
    await repo.prepare("agent:b", "claim", "acquire", urgent);

    const first = await repo.ask("agent:a", "claim", "next", "--ttl", "120");
    expect(first.data.issue).toMatchObject({ id: needed, title: "Needed", claimed_by: "agent:a" });
    expect(first.lease).toMatchObject({ key: `issue:${needed}`, agent_id: "agent:a", ttl_secs: 120 });
    expect((await repo.askHere("agent:c", "claim", "next")).data.issue.title).toBe("Low");

    const none = await repo.ask("agent:d", "claim", "next");
    expectJsonRefused(none, 4, "E_NOT_FOUND");
    expect(none.error.hint).toContain("query blocked");
    expectRefused(await repo.runHere("agent:d", "claim", "next", "--type", "bug"), 4, "E_NOT_FOUND");
    expectJsonRefused(
      await repo.ask("agent:d", "claim", "next", "--wait", "--timeout", "1"),
      12,
      "E_WAIT_TIMEOUT",
    );
  });

  it("waits until something is available", async () => {
    const repo = TestRepo.make();
    await repo.prepare("agent:a", "init");
    const waiting = repo.start("agent:a", ["claim", "next", "--wait", "--timeout", "100", "--json"]);
    const id = await made(repo, "At last");
    expect((await waiting.done).data.issue.id).toBe(id);
  });

  it("gives 16 processes 16 different ones, of whatever names they go by", async () => {
    const repo = TestRepo.make();
    await repo.prepare("agent:a", "init");
    const ids = Array.from({ length: 20 }, (_, n) => writeIssue(repo.root, { title: `Work ${n}` })).sort();
    const crew = Array.from({ length: 16 }, (_, n) =>
      // Half of them are one and the same agent, in one and the same session.
      repo.start(n % 2 === 0 ? "agent:same" : `agent:w${n}`, ["claim", "next", "--json"], { held: true }),
    );
    for (const one of crew) one.go();
    const taken = (await Promise.all(crew.map(({ done }) => done))).map((ran) => ran.data.issue.id);
    expect(new Set(taken).size).toBe(16);
    expect([...taken].sort()).toEqual(ids.slice(0, 16));
    expect(titles(await repo.askHere("agent:a", "query", "available"))).toHaveLength(4);
  });

  it("leaves out what somebody finished between the look and the claim, and takes none twice", async () => {
    const repo = TestRepo.make();
    const id = await made(repo, "Only one");
    await finish(repo, "agent:a", id);
    expectJsonRefused(await repo.ask("agent:b", "claim", "next"), 4, "E_NOT_FOUND");
  });
});

describe("S22: an issue from every worktree", () => {
  it("is shown committed, uncommitted in main, and written elsewhere; the newest wins", async () => {
    const repo = TestRepo.make();
    const committed = await made(repo, "Committed");
    repo.git("add", ".cotenant/issues");
    repo.git("commit", "--quiet", "--message", "an issue");
    const feature = repo.addWorktree("feature");
    const uncommitted = await made(repo, "Uncommitted in main");
    for (const id of [committed, uncommitted])
      expect((await feature.askHere("agent:a", "issue", "show", id)).data.issue.id).toBe(id);
    expect(titles(await feature.ask("agent:a", "issue", "list")).sort()).toEqual([
      "Committed",
      "Uncommitted in main",
    ]);
    // Gone from the working tree, and still in HEAD.
    fs.rmSync(path.join(feature.root, ".cotenant/issues", committed), { recursive: true });
    fs.rmSync(path.join(repo.root, ".cotenant/issues", committed), { recursive: true });
    const [row] = listed(await feature.ask("agent:a", "query", "available", "--priority", "normal"));
    expect(row).toMatchObject({ id: committed, layer: "HEAD" });

    await repo.prepare("agent:b", "claim", "acquire", uncommitted);
    await repo.prepare("agent:b", "issue", "update", uncommitted, "--title", "Written by its holder");
    const seen = await feature.ask("agent:a", "issue", "show", uncommitted);
    expect(seen.data).toMatchObject({ issue: { title: "Written by its holder" }, layer: "holder" });
    expect(titles(await feature.askHere("agent:a", "query", "all", "--state", "in_progress"))).toEqual([
      "Written by its holder",
    ]);
  });

  it("is listed by query all only where it stands, and by any filter everywhere", async () => {
    const repo = TestRepo.make();
    await made(repo, "In main");
    const feature = repo.addWorktree("feature");
    await made(feature, "In feature");
    expect(titles(await feature.ask("agent:a", "query", "all"))).toEqual(["In feature"]);
    expect(titles(await feature.askHere("agent:a", "query", "all", "--limit", "9"))).toEqual(["In feature"]);
    expect(titles(await feature.ask("agent:a", "query", "all", "--state", "ready"))).toHaveLength(2);
    expect(titles(await repo.askHere("agent:a", "query", "all"))).toEqual(["In main"]);
    expectRefused(await repo.runHere("agent:a", "query", "all", "--state", "lost"), 64, "E_USAGE");
    expectRefused(await repo.runHere("agent:a", "query", "all", "--limit", "0"), 64, "E_USAGE");
  });
});

describe("S24: a circle, and what waits for what", () => {
  it("is refused with its path; query blocked gives the reasons", async () => {
    const repo = TestRepo.make();
    const first = await made(repo, "First");
    const second = await made(repo, "Second", "--depends-on", first);
    await repo.prepare("agent:a", "claim", "acquire", first);
    const refused = await repo.ask("agent:a", "dep", "add", first, second);
    expectJsonRefused(refused, 9, "E_CYCLE");
    expect(refused.error.data["cycle"]).toEqual([first, second, first]);

    const [blocked, ...others] = listed(await repo.ask("agent:b", "query", "blocked"));
    expect(others).toEqual([]);
    expect(blocked).toMatchObject({
      id: second,
      blocked_by: [{ id: first, state: "in_progress", title: "First", claimed_by: "agent:a" }],
    });
    const said = await repo.runHere("agent:b", "query", "blocked");
    expect(said.stdout).toMatch(/waits for \w+, in_progress, claimed by agent:a {2}First/);

    await repo.prepare("agent:a", "issue", "update", first, "--state", "done");
    expect(listed(await repo.askHere("agent:b", "query", "blocked"))).toEqual([]);
    expect(titles(await repo.ask("agent:b", "ready"))).toEqual(["Second"]);
  });

  it("made by a merge is shown by the graph, and not followed for ever", async () => {
    const repo = TestRepo.make();
    const [a, b] = [writeIssue(repo.root, { title: "A" }), writeIssue(repo.root, { title: "B" })];
    writeIssue(repo.root, { id: a, title: "A", dependencies: [b] });
    writeIssue(repo.root, { id: b, title: "B", dependencies: [a, "01HZZZZZZZZZZZZZZZZZZZZZZZ"] });
    await repo.prepare("agent:a", "init");
    const shown = await repo.ask("agent:a", "graph", "show", a, "--show-claims");
    expect(shown.data["cycle"]).toHaveLength(3);
    expect(shown.data["unknown"]).toEqual(["01HZZZZZZZZZZZZZZZZZZZZZZZ"]);
    const said = (await repo.runHere("agent:a", "graph", "show", a, "--show-claims")).stdout;
    expect(said).toContain("a circle");
    expect(said).toContain("nobody has it");
    expect(said).toContain("unclaimed");
    expect(listed(await repo.askHere("agent:a", "query", "blocked"))).toHaveLength(2);
    expectJsonRefused(await repo.askHere("agent:a", "claim", "next"), 4, "E_NOT_FOUND");
  });
});

describe("S29: finished in one worktree, not merged", () => {
  it("is never offered in another, and what was deleted does not come back", async () => {
    const repo = TestRepo.make();
    const ids = [await made(repo, "Done there"), await made(repo, "Deleted there"), await made(repo, "Left")];
    repo.git("add", ".cotenant/issues");
    repo.git("commit", "--quiet", "--message", "issues");
    const feature = repo.addWorktree("feature");
    await finish(feature, "agent:a", ids[0]!);
    await repo.prepare("agent:b", "claim", "acquire", ids[1]!);
    await repo.prepare("agent:b", "issue", "delete", ids[1]!, "--reason", "not wanted");
    const third = repo.addWorktree("third");
    for (const worktree of [repo, third]) {
      expect(titles(await worktree.askHere("agent:c", "query", "available"))).toEqual(["Left"]);
      expect(titles(await worktree.askHere("agent:c", "query", "closed"))).toEqual(["Done there"]);
    }
    // Old copies stand in the third worktree, and count for nothing.
    expect(
      fs.readFileSync(path.join(third.root, ".cotenant/issues", ids[0]!, "issue.json"), "utf8"),
    ).toContain('"ready"');
    expect((await third.ask("agent:c", "claim", "next")).data.issue.id).toBe(ids[2]);
    expectJsonRefused(await third.ask("agent:d", "claim", "next"), 4, "E_NOT_FOUND");
    // The worktree in which it was finished is gone, and what is known of it is not.
    repo.git("worktree", "remove", "--force", "../feature");
    expectJsonRefused(await third.askHere("agent:d", "claim", "next"), 4, "E_NOT_FOUND");
  });
});

describe("S29a: 10,000 issues", () => {
  it("query available, search and graph roots answer, and right", { timeout: 180_000 }, async () => {
    const repo = TestRepo.make();
    await repo.prepare("agent:a", "init");
    const ids: string[] = [];
    for (let n = 0; n < 10_000; n++) {
      const state = n % 10 < 6 ? "done" : n % 10 < 9 ? "ready" : "in_progress";
      const needs = n % 10 === 7 ? [ids[n - 1]!] : n % 10 === 8 ? [ids[n - 3]!] : [];
      const title = n === 4_321 ? "The needle in it" : `Work ${n}`;
      ids.push(writeIssue(repo.root, { title, state, dependencies: needs }));
    }
    // Those with 6 wait for nothing; those with 7 for those with 6, which are not done; those with 8 for what is done.
    // Those with 9 are in progress, and nobody has claimed them: they were left.
    const expected = ids.filter((_, n) => n % 10 === 6 || n % 10 >= 8).sort();
    for (let round = 0; round < 2; round++) {
      const found = listed(await repo.ask("agent:a", "query", "available"));
      expect(found.map(({ id }) => id)).toEqual(expected);
      expect(found.filter(({ left }) => left !== null)).toHaveLength(1_000);
    }
    expect(titles(await repo.ask("agent:a", "search", "needle"))).toEqual(["The needle in it"]);
    expect(listed(await repo.ask("agent:a", "graph", "roots")).map(({ id }) => id)).toEqual(
      ids.filter((_, n) => n % 10 === 6 || n % 10 === 9).sort(),
    );
    // One is edited in place, one is gone, one is new: the next answer knows.
    const [edited, gone] = expected.filter((id) => ids.indexOf(id) % 10 === 6) as [string, string];
    const file = path.join(repo.root, ".cotenant/issues", edited, "issue.json");
    fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace('"ready"', '"gated"'));
    fs.rmSync(path.join(repo.root, ".cotenant/issues", gone), { recursive: true });
    const fresh = writeIssue(repo.root, { title: "Fresh", priority: "critical" });
    const now = listed(await repo.ask("agent:a", "query", "available")).map(({ id }) => id);
    expect(now[0]).toBe(fresh);
    expect(now).toHaveLength(expected.length - 1);
    expect(now).not.toContain(edited);
    expect((await repo.ask("agent:a", "claim", "next")).data.issue.id).toBe(fresh);
  });
});
