import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { clockOff, Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, until } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly assignee: string | null;
  readonly claimed_by?: string | null;
  readonly left?: {
    readonly agent_id: string;
    readonly at: string;
    readonly root: string | null;
    readonly branch: string | null;
  };
}

const listed = (ran: Ran) => ran.data["issues"] as readonly Shown[];
const seen = async (repo: TestRepo, id: string, ...words: string[]) =>
  listed(await repo.askHere("agent:looker", ...words)).find((issue) => issue.id === id);

/** What agent:ada did a while ago, under a claim that is over now. */
async function before(ada: TestRepo, ...words: string[]): Promise<void> {
  expect((await ada.askAt(-30, "agent:ada", ...words)).status).toBe(0);
}

/** Whoever held it is gone: its claim has run out. */
async function lapse(repo: TestRepo, id: string): Promise<void> {
  await until("its claim has run out", async () => {
    const { data } = await repo.askHere("agent:looker", "claim", "list");
    return !data.leases.some(({ issue_id }) => issue_id === id);
  });
}

/** An issue that agent:ada had written in progress in a worktree of its own when it died. */
async function abandoned(repo: TestRepo): Promise<{ id: string; ada: TestRepo }> {
  const id = await repo.issue("Log in");
  const ada = repo.addWorktree("ada");
  await before(ada, "claim", "acquire", id, "--ttl", "20");
  await before(ada, "issue", "update", id, "--state", "in_progress", "--assignee", "agent:ada");
  await lapse(repo, id);
  return { id, ada };
}

/** Runs what is offered as it is printed. Answers where one is then, which is where the claim is as well. */
function goesOn(repo: TestRepo, said: string, id: string): string {
  const offered = /go on there: (.*)$/m.exec(said)?.[1];
  const env = { ...process.env, COTENANT_AGENT_ID: "agent:bob" };
  const program = `cotenant() { ${process.execPath} ${PROGRAM} "$@"; }`;
  const then = `pwd && cotenant issue update ${id} --title "Log in at last" --quiet`;
  const script = `${program}; { ${offered}; } >/dev/null && ${then}`;
  return execFileSync("sh", ["-c", script], { cwd: repo.root, env, encoding: "utf8", stdio: "pipe" }).trim();
}

describe("a valid claim is the state of its issue", () => {
  it("also in what a write of its holder says", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue("Log in");
    await repo.prepare("agent:ada", "claim", "acquire", id);
    const working = { state: "in_progress", assignee: "agent:ada" };
    for (const words of [
      ["issue", "update", id, "--priority", "high"],
      ["issue", "update", id, "--state", "ready"],
      ["label", "add", id, "area:login"],
    ])
      expect((await repo.prepare("agent:ada", ...words)).issue, words.join(" ")).toMatchObject(working);
    const told = (...words: string[]) => repo.runHere("agent:ada", "issue", "update", id, ...words);
    expect((await told("--priority", "low")).stdout).toMatch(/: in_progress$/m);
    expect((await told("--state", "backlog")).stdout).toContain(
      "backlog once its claim is given back, in_progress until then",
    );
  });

  it("in progress and assigned to its holder wherever it is shown, without a write, until it is given back", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue("Log in");
    const other = await repo.issue("Needs it");
    await repo.prepare("agent:planner", "claim", "acquire", other);
    await repo.prepare("agent:planner", "dep", "add", other, id);
    await repo.prepare("agent:planner", "claim", "release", other);
    const file = path.join(repo.root, ".cotenant/issues", id, "issue.json");
    const before = fs.readFileSync(file, "utf8");
    await repo.prepare("agent:ada", "claim", "acquire", id);
    expect(fs.readFileSync(file, "utf8")).toBe(before);
    const working = { state: "in_progress", assignee: "agent:ada" };
    for (const words of [
      ["issue", "list"],
      ["issue", "list", "--state", "in_progress"],
      ["issue", "list", "--assignee", "agent:ada"],
      ["query", "all"],
      ["query", "all", "--state", "in_progress"],
      ["search", "log"],
      ["graph", "roots"],
    ])
      expect(await seen(repo, id, ...words), words.join(" ")).toMatchObject(working);
    expect(await seen(repo, id, "query", "all", "--state", "ready")).toBeUndefined();
    expect(await seen(repo, id, "query", "available")).toBeUndefined();
    expect((await repo.askHere("agent:looker", "issue", "show", id)).data.issue).toMatchObject(working);
    expect((await repo.askHere("agent:looker", "graph", "export")).data["nodes"]).toContainEqual(
      expect.objectContaining({ id, state: "in_progress", claimed_by: "agent:ada" }),
    );
    const [blocked] = listed(await repo.askHere("agent:looker", "query", "blocked"));
    expect(blocked).toMatchObject({ id: other, blocked_by: [{ id, state: "in_progress" }] });
    expect((await repo.runHere("agent:looker", "issue", "show", id)).stdout).toMatch(/state +in_progress/);
    expect((await repo.runHere("agent:looker", "issue", "list")).stdout).toMatch(/in_progress .*agent:ada/);
    await repo.prepare("agent:ada", "claim", "release", id);
    expect(fs.readFileSync(file, "utf8")).toBe(before);
    expect(await seen(repo, id, "issue", "list")).toMatchObject({ state: "ready", assignee: null });
    expect(await seen(repo, id, "query", "available")).toBeDefined();
  });

  it("but what is over, and what waits for its gates, stays so", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue("Log in");
    await repo.prepare("agent:ada", "claim", "acquire", id);
    await repo.prepare("agent:ada", "issue", "update", id, "--state", "done");
    expect(await seen(repo, id, "query", "closed")).toMatchObject({ state: "done", claimed_by: "agent:ada" });
  });

  it("also on another machine, as far as the ledger was heard of", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const second = Machine.clone(hub, "second");
    await second.prepare("sync");
    await first.prepare("claim", "acquire", id);
    await second.prepare("sync");
    const working = { state: "in_progress", assignee: "agent:first" };
    expect(listed(await second.askHere("issue", "list"))).toMatchObject([working]);
    expect((await second.askHere("issue", "show", id)).data.issue).toMatchObject(working);
    await first.prepare("claim", "release", id);
    await second.prepare("sync");
    expect(listed(await second.askHere("issue", "list"))).toMatchObject([{ state: "ready", assignee: null }]);
  });
});

describe("the end of a claim", () => {
  it("by a release puts back what was written: ready, and nobody's", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    await repo.prepare("agent:ada", "claim", "acquire", id);
    await repo.prepare("agent:ada", "issue", "update", id, "--state", "in_progress");
    await repo.prepare("agent:ada", "issue", "assign", id, "agent:ada");
    await repo.prepare("agent:ada", "claim", "release", id);
    const file = path.join(repo.root, ".cotenant/issues", id, "issue.json");
    expect(JSON.parse(fs.readFileSync(file, "utf8"))).toMatchObject({ state: "ready", assignee: null });
    expect(await seen(repo, id, "query", "available")).toMatchObject({ left: null });
  });

  it("by a release leaves an assignment to somebody else, and what is done", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    await repo.prepare("agent:ada", "claim", "acquire", id);
    await repo.prepare("agent:ada", "issue", "assign", id, "agent:bob");
    await repo.prepare("agent:ada", "claim", "release", id);
    expect(await seen(repo, id, "issue", "list")).toMatchObject({ state: "ready", assignee: "agent:bob" });
    await repo.prepare("agent:ada", "claim", "acquire", id);
    await repo.prepare("agent:ada", "issue", "update", id, "--state", "done", "--assignee", "agent:ada");
    await repo.prepare("agent:ada", "claim", "release", id);
    expect(await seen(repo, id, "issue", "list")).toMatchObject({ state: "done", assignee: "agent:ada" });
  });

  it("comes with close, which says how it was done", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    await repo.prepare("agent:ada", "claim", "acquire", id);
    const closed = await repo.askHere("agent:ada", "close", id, "--reason", "merged in 12ab");
    expect(closed.data.issue).toMatchObject({ state: "done", resolution: "merged in 12ab" });
    expect((await repo.askHere("agent:ada", "claim", "list")).data.leases).toEqual([]);
  });

  it("by a stale claim on the ledger puts back what was written, on whichever machine", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    first.env = { COTENANT_SYNC_CLAIM_TIMEOUT_HOURS: "2" };
    await first.prepare("claim", "acquire", id, "--ttl", "0", "--reason", "long work");
    await first.prepare("issue", "update", id, "--state", "in_progress", "--assignee", "agent:first");
    await first.prepare("sync");
    const second = Machine.clone(hub, "second", { env: { COTENANT_SYNC_CLAIM_TIMEOUT_HOURS: "2" } });
    await second.prepare("sync");
    expect(listed(await second.askHere("issue", "list"))).toMatchObject([{ state: "in_progress" }]);
    await second.askWith(clockOff("+150m"), "sync");
    const file = path.join(second.repo.root, ".cotenant/issues", id, "issue.json");
    expect(JSON.parse(fs.readFileSync(file, "utf8"))).toMatchObject({ state: "ready", assignee: null });
    // And it is on the branch: a third machine gets it from there.
    const third = Machine.clone(hub, "third");
    await third.prepare("sync");
    expect(listed(await third.askHere("issue", "list"))).toMatchObject([{ state: "ready", left: null }]);
  });
});

describe("S81: a holder dies with its issue in progress", () => {
  it("the next claim next gets it, told whose it was and where the changes are", async () => {
    const repo = TestRepo.make();
    await repo.prepare("agent:planner", "issue", "create", "--title", "Less urgent", "--priority", "low");
    const { id, ada } = await abandoned(repo);
    const next = await repo.askHere("agent:bob", "claim", "next");
    expect(next.data.issue).toMatchObject({
      id,
      state: "in_progress",
      assignee: "agent:bob",
      claimed_by: "agent:bob",
      left: { agent_id: "agent:ada", root: ada.root, branch: "ada", snapshot_id: null },
    });
    // Until the end of this claim it is nobody's leavings any more.
    expect(await seen(repo, id, "issue", "list")).toMatchObject({ assignee: "agent:bob", left: null });
  });

  it("status, doctor, lists and show say so, until somebody takes it, also after the end was logged", async () => {
    const repo = TestRepo.make();
    const { id, ada } = await abandoned(repo);
    const short = (await repo.askHere("agent:looker", "issue", "show", id)).data.issue.short_id;
    for (const gone of ["lapsed", "logged"]) {
      if (gone === "logged") await repo.prepare("agent:looker", "gc");
      const left = { agent_id: "agent:ada", root: ada.root, branch: "ada" };
      expect(await seen(repo, id, "query", "available"), gone).toMatchObject({ state: "ready", left });
      expect((await repo.askHere("agent:looker", "issue", "show", id)).data, gone).toMatchObject({
        left,
        issue: { state: "ready", assignee: null },
      });
      const status = await repo.askHere("agent:looker", "status");
      expect(status.data["needs_a_person"], gone).toMatchObject([
        { code: "work_left", next: `take it over: cotenant claim acquire ${short}` },
      ]);
      for (const command of ["status", "query available", "issue list", "doctor", `issue show ${short}`]) {
        const { stdout } = await repo.runHere("agent:looker", ...command.split(" "));
        expect(stdout, command).toContain("left by agent:ada");
        expect(stdout, command).toContain(ada.root);
      }
    }
    await repo.prepare("agent:bob", "claim", "acquire", id);
    expect((await repo.askHere("agent:looker", "status")).data["needs_a_person"]).toEqual([]);
    expect((await repo.runHere("agent:looker", "doctor")).stdout).not.toContain("left by agent:ada");
  });

  it("also one that was only ever claimed, before and after its end was logged", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue("Log in");
    const ada = repo.addWorktree("ada");
    await before(ada, "claim", "acquire", id, "--ttl", "20");
    await lapse(repo, id);
    const left = await seen(repo, id, "query", "available");
    expect(left).toMatchObject({ state: "ready", left: { agent_id: "agent:ada", root: ada.root } });
    await repo.prepare("agent:looker", "gc");
    expect(await seen(repo, id, "query", "available")).toEqual(left);
  });

  it("the command that claim acquire offers takes the worktree over, as printed", async () => {
    const repo = TestRepo.make();
    const { id, ada } = await abandoned(repo);
    const { stdout } = await repo.runHere("agent:bob", "claim", "acquire", id);
    expect(goesOn(repo, stdout, id)).toBe(ada.root);
    expect(await seen(repo, id, "issue", "list")).toMatchObject({
      title: "Log in at last",
      claimed_by: "agent:bob",
    });
  });

  it("where the worktree is gone, its snapshot and its branch are named", async () => {
    const repo = TestRepo.make();
    const { id, ada } = await abandoned(repo);
    ada.write("half.ts");
    const removed = await repo.ask("agent:looker", "worktree", "remove", ada.root);
    const snapshot = removed.data["snapshot_id"];
    expect(snapshot).toEqual(expect.any(String));
    expect(await seen(repo, id, "query", "available")).toMatchObject({
      left: { agent_id: "agent:ada", root: null, branch: "ada", snapshot_id: snapshot },
    });
    const { stdout } = await repo.runHere("agent:bob", "claim", "acquire", id);
    expect(stdout).toContain(`go on there: cotenant restore ${snapshot}`);
    const root = goesOn(repo, stdout, id);
    expect(fs.existsSync(path.join(root, "half.ts"))).toBe(true);
  });

  it("where only its branch is left, it is named for what it has, and the claim goes along", async () => {
    const repo = TestRepo.make();
    const { id, ada } = await abandoned(repo);
    repo.git("worktree", "remove", "--force", ada.root);
    const empty = await repo.runHere("agent:looker", "query", "available");
    expect(empty.stdout).toContain("its branch ada has nothing that is not merged");
    const tree = repo.git("rev-parse", "ada^{tree}").trim();
    repo.git("update-ref", "refs/heads/ada", repo.git("commit-tree", "-p", "ada", "-m", "half", tree).trim());
    const { stdout } = await repo.runHere("agent:bob", "claim", "acquire", id);
    expect(stdout).toContain("its commits are on branch ada");
    expect(repo.at(goesOn(repo, stdout, id)).git("branch", "--show-current")).toBe("ada\n");
  });
});

describe("a claim that a person has ended", () => {
  /** What agent:ada was at, in a worktree of its own, when somebody evicted it. */
  async function evicted(repo: TestRepo): Promise<{ id: string; ada: TestRepo }> {
    const id = await repo.issue("Log in");
    const ada = repo.addWorktree("ada");
    await ada.prepare("agent:ada", "claim", "acquire", id);
    ada.write("half.ts");
    await repo.prepare("human:me", "claim", "force-evict", id, "--reason", "it hangs");
    return { id, ada };
  }

  it("leaves work, with who, when and where, until somebody takes it", async () => {
    const repo = TestRepo.make();
    const since = new Date().toISOString();
    const { id, ada } = await evicted(repo);
    const left = { agent_id: "agent:ada", root: ada.root, branch: "ada" };
    const row = await seen(repo, id, "query", "available");
    expect(row).toMatchObject({ state: "ready", assignee: null, left });
    expect(Date.parse(row!.left!.at)).toBeGreaterThanOrEqual(Date.parse(since));
    // The end of its claim is told to its holder for a day; what it left is not forgotten then.
    for (const later of [0, 48 * 3600]) {
      const status = (await repo.askAt(later, "agent:looker", "status")).data;
      expect(status["needs_a_person"], `${later}`).toMatchObject([{ code: "work_left" }]);
      await repo.askAt(later, "agent:looker", "gc", "--compact");
    }
    for (const command of ["status", "query available", "issue list", "doctor", `issue show ${id}`]) {
      const { stdout } = await repo.runHere("agent:looker", ...command.split(" "));
      expect(stdout, command).toContain("left by agent:ada");
      expect(stdout, command).toContain(ada.root);
    }
    const { stdout } = await repo.runHere("agent:bob", "claim", "acquire", id);
    expect(stdout).toContain("left by agent:ada");
    expect(goesOn(repo, stdout, id)).toBe(ada.root);
    // Taken up, and given back by whoever took it: nobody's leavings any more.
    await ada.prepare("agent:bob", "claim", "release", id);
    expect(await seen(repo, id, "query", "available")).toMatchObject({ left: null });
    expect((await repo.askHere("agent:looker", "status")).data["needs_a_person"]).toEqual([]);
    expect((await repo.runHere("agent:looker", "doctor")).stdout).not.toContain("left by agent:ada");
  });

  it("leaves none where the issue is over, or was taken over at once", async () => {
    const repo = TestRepo.make();
    const { id } = await evicted(repo);
    await repo.prepare("agent:bob", "claim", "acquire", id);
    await repo.prepare("agent:bob", "issue", "update", id, "--state", "done");
    await repo.prepare("human:me", "claim", "force-evict", id, "--reason", "it is done");
    expect(await seen(repo, id, "query", "closed")).toMatchObject({ state: "done", left: null });
    const other = await repo.issue("Log out");
    await repo.prepare("agent:ada", "claim", "acquire", other);
    await repo.prepare("human:me", "claim", "acquire", other, "--force", "--reason", "urgent");
    await repo.prepare("human:me", "claim", "release", other);
    expect(await seen(repo, other, "query", "available")).toMatchObject({ left: null });
  });

  it("from another machine leaves work where it was done, once that machine has heard of it", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    await first.prepare("claim", "acquire", id);
    const second = Machine.clone(hub, "second");
    await second.prepare("claim", "force-evict", id, "--reason", "it hangs", "--agent-id", "human:me");
    await first.askHere("sync");
    expect(listed(await first.askHere("query", "available"))).toMatchObject([
      { id, left: { agent_id: "agent:first", root: first.repo.root } },
    ]);
  });
});
