import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { Hub } from "../support/hub";
import { Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import { pictureOf } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(5);

/** Every byte of a working tree, Git's own directory left out. */
function workingTree(machine: Machine): Record<string, string> {
  return Object.fromEntries(
    Object.entries(pictureOf(machine.repo.root)).filter(([name]) => !name.startsWith(".git/")),
  );
}

describe("S66: set-up", () => {
  it("with a dirty working tree: not one byte of it changes; twice: nothing happens; a second clone attaches", async () => {
    const { hub, first, ids } = await sharedIssues(2, { setUp: false });
    fs.writeFileSync(first.issueFile(ids[0]!), "half an edit");
    first.repo.write("README.md", "changed and not committed\n");
    first.repo.write("untracked.txt", "new\n");
    first.repo.git("add", "untracked.txt");
    await first.prepare("worktree", "init");
    const before = {
      tree: workingTree(first),
      status: first.repo.git("status", "--porcelain"),
      head: first.repo.git("rev-parse", "HEAD"),
    };
    const made = await first.ask("sync", "--setup-ledger");
    expect(made.data).toMatchObject({ created_branch: true, created_copy: true, branch: "cotenant-sync" });
    expect({
      tree: workingTree(first),
      status: first.repo.git("status", "--porcelain"),
      head: first.repo.git("rev-parse", "HEAD"),
    }).toEqual(before);
    // It begins with what is committed, and has nothing but that.
    expect(hub.issue(ids[0]!)).toMatchObject({ title: "Issue 1" });
    const names = hub.git("ls-tree", "-r", "--name-only", "cotenant-sync").trim().split("\n");
    expect(names.every((name) => name.startsWith(".cotenant/"))).toBe(true);
    expect(hub.refs("refs/cotenant/")).toEqual({});

    const refs = hub.refs();
    const again = await first.askHere("sync", "--setup-ledger");
    expect(again.data).toMatchObject({ created_branch: false, created_copy: false });
    const second = Machine.clone(hub, "second");
    expect((await second.askHere("sync", "--setup-ledger")).data).toMatchObject({
      created_branch: false,
      created_copy: true,
    });
    expect(hub.refs()).toEqual(refs);
  });

  it("where nothing is committed, and by two machines at once, one of them with two clones", async () => {
    const hub = new Hub();
    const a = Machine.clone(hub, "a");
    const machines = [a, Machine.clone(hub, "b"), Machine.clone(hub, "beside", { home: a.home })];
    const started = machines.map((machine) => machine.start(["sync", "--setup-ledger", "--json"], {}, true));
    for (const running of started) running.go();
    const ran = await Promise.all(started.map(({ done }) => done));
    expect(ran.filter(({ data }) => data["created_branch"] === true)).toHaveLength(1);
    expect(new Set(ran.map(({ data }) => data["head"])).size).toBe(1);
  });

  it("a shallow clone is told how to become a whole one", async () => {
    const { hub } = await sharedIssues(1);
    hub.git("commit-tree", "-m", "more", "-p", "main", "main^{tree}");
    const shallow = scratch("shallow");
    execFileSync("git", ["clone", "--quiet", "--depth", "1", `file://${hub.path}`, `${shallow}/work`]);
    const machine = new Machine(
      "shallow",
      Machine.clone(hub, "x").repo.at(`${shallow}/work`),
      path.join(shallow, "home"),
    );
    const ran = await machine.ask("sync", "--setup-ledger");
    expectJsonRefused(ran, 10, "E_GIT");
    expect(ran.error.hint).toContain("git fetch --unshallow");
  });

  it("a remote that hides the claims, or takes none: another prefix is named", async () => {
    const { hub, first } = await sharedIssues(1, { setUp: false });
    hub.git("config", "transfer.hideRefs", "refs/cotenant");
    const ran = await first.ask("sync", "--setup-ledger");
    expectJsonRefused(ran, 9, "E_POLICY");
    expect(ran.error.hint).toContain("sync.claims_prefix");
    const branches = { COTENANT_SYNC_CLAIMS_PREFIX: "refs/heads/cotenant-claims/" };
    const other = Machine.clone(hub, "other", { env: branches });
    await other.prepare("sync", "--setup-ledger");
    // Hidden since it was set up: said at once, for no retry helps.
    const refused = await first.askHere("claim", "next");
    expectJsonRefused(refused, 9, "E_POLICY");
    expect(refused.error.hint).toMatch(/hideRefs.*sync\.claims_prefix/);
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
    const claimed = await other.askHere("claim", "next");
    expect(hub.claim(claimed.data.issue.id, "refs/heads/cotenant-claims/")).toMatchObject({ status: "held" });
  });

  it("names a directory for each remote, readable, and the same for two clones", async () => {
    const { first } = await sharedIssues(1);
    expect(path.basename(first.ledger)).toMatch(/^hub-[0-9a-f]{8}$/);
    const xdg = scratch("xdg");
    const moved = await first.askWith({ XDG_DATA_HOME: xdg }, "sync", "--setup-ledger");
    expect(moved.data["directory"]).toMatch(new RegExp(`^${xdg}/cotenant/hub-`));
    const chosen = path.join(scratch("override"), "not", "there", "yet");
    const override = await first.askHereWith(
      { COTENANT_SYNC_GLOBAL_PATH_OVERRIDE: chosen },
      "sync",
      "--setup-ledger",
    );
    expect(override.data["directory"]).toMatch(new RegExp(`^${chosen}/hub-`));
    expect(fs.statSync(chosen).mode & 0o777).toBe(0o700);
    const relative = await first.askHereWith(
      { COTENANT_SYNC_GLOBAL_PATH_OVERRIDE: "here" },
      "sync",
      "--setup-ledger",
    );
    expectJsonRefused(relative, 10, "E_CONFIG");
  });
});

describe("S67: data follows", () => {
  it("close an issue here, claim another there, sync both: both survive", async () => {
    const { hub, first, ids } = await sharedIssues(3);
    const [a, b, c] = ids as [string, string, string];
    const second = Machine.clone(hub, "second");
    await first.prepare("claim", "acquire", a);
    await first.prepare("issue", "update", a, "--state", "done");
    await second.prepare("claim", "acquire", b);
    await second.prepare("issue", "update", b, "--state", "in_progress", "--priority", "high");
    await second.prepare("issue", "comment", c, "--text", "seen by the second");
    await first.prepare("issue", "comment", c, "--text", "seen by the first");
    for (const machine of [first, second]) expect((await machine.ask("sync")).status).toBe(0);
    await first.prepare("sync");
    for (const machine of [first, second]) {
      expect(machine.issue(a)).toMatchObject({ state: "done" });
      expect(machine.issue(b)).toMatchObject({ state: "in_progress", priority: "high" });
      const { comments } = (await machine.askHere("issue", "show", c)).data as unknown as {
        comments: { text: string }[];
      };
      expect(comments.map(({ text }) => text).sort()).toEqual(["seen by the first", "seen by the second"]);
    }
    expect(hub.issue(a)).toMatchObject({ state: "done" });
    expect((await first.askHere("claim", "list")).data.leases).toHaveLength(1);
    // Nothing is left to be said.
    const head = hub.refs("refs/heads/cotenant-sync");
    for (const machine of [first, second])
      expect((await machine.askHere("sync")).data).toMatchObject({ pushed: [], written: [] });
    expect(hub.refs("refs/heads/cotenant-sync")).toEqual(head);
  });

  it("two fields of one issue: both; one field twice: the newer stands, the other is kept in a comment", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [fields, clash] = ids as [string, string];
    const second = Machine.clone(hub, "second");
    const loose = { COTENANT_WORKTREE_ENFORCE_LEASES: "off" };
    for (const machine of [first, second]) machine.env = loose;
    await first.prepare("issue", "update", fields, "--title", "Renamed");
    await second.prepare("issue", "update", fields, "--priority", "critical");
    await first.prepare("issue", "update", clash, "--title", "One name");
    await second.prepare("issue", "update", clash, "--title", "Other name");
    await first.prepare("sync");
    const merged = await second.ask("sync");
    expect(merged.data["contradictions"]).toMatchObject([{ issue_id: clash, fields: [{ field: "title" }] }]);
    await first.prepare("sync");
    for (const machine of [first, second]) {
      expect(machine.issue(fields)).toMatchObject({ title: "Renamed", priority: "critical" });
      const shown = (await machine.askHere("issue", "show", clash)).data as unknown as {
        issue: { title: string };
        comments: { text: string }[];
      };
      const texts = [shown.issue.title, ...shown.comments.map(({ text }) => text)].join("\n");
      expect(texts).toContain("One name");
      expect(texts).toContain("Other name");
      expect(shown.comments).toHaveLength(1);
    }
    expect(first.issue(clash)).toEqual(second.issue(clash));
  });

  it("labels, dependencies and new issues travel; a deleted one stays deleted", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [kept, gone] = ids as [string, string];
    const second = Machine.clone(hub, "second");
    const loose = { COTENANT_WORKTREE_ENFORCE_LEASES: "off" };
    for (const machine of [first, second]) machine.env = loose;
    const made = await second.prepare("issue", "create", "--title", "Made elsewhere", "--label", "area:net");
    await first.prepare("label", "add", kept, "area:core");
    await second.prepare("label", "add", kept, "area:ui");
    await first.prepare("issue", "delete", gone);
    for (const machine of [first, second]) expect((await machine.ask("sync")).status).toBe(0);
    await first.prepare("sync");
    for (const machine of [first, second]) {
      const shown = (await machine.askHere("issue", "show", kept)).data["issue"] as unknown as {
        labels: string[];
      };
      expect([...shown.labels].sort()).toEqual(["area:core", "area:ui"]);
      expect((await machine.askHere("issue", "show", made.issue.id)).data.issue.title).toBe("Made elsewhere");
      expect((await machine.askHere("issue", "show", gone)).status).toBe(4);
    }
    // The ledger has its deletion for good: a file from before takes nothing back.
    second.repo.git("checkout", "--", `.cotenant/issues/${gone}`);
    await second.prepare("sync");
    expect((await second.askHere("claim", "acquire", gone, "--reopen")).error.code).toBe("E_NOT_FOUND");
  });

  it("an edit of somebody's own hand is not overwritten, and its change travels", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const second = Machine.clone(hub, "second", { env: { COTENANT_WORKTREE_ENFORCE_LEASES: "off" } });
    await second.prepare("issue", "update", id, "--priority", "high");
    await second.prepare("sync");
    const edited = `${JSON.stringify({ ...first.issue(id), title: "By hand" }, null, 2)}\n`;
    fs.writeFileSync(first.issueFile(id), edited);
    const ran = await first.ask("sync");
    expect(ran.data).toMatchObject({ kept: [id] });
    expect(fs.readFileSync(first.issueFile(id), "utf8")).toBe(edited);
    expect(hub.issue(id)).toMatchObject({ title: "By hand", priority: "high" });
    // Again, and nothing goes back and forth; committed, it is brought up to date.
    expect((await first.askHere("sync")).data).toMatchObject({ kept: [id], pushed: [] });
    first.repo.git("commit", "--quiet", "--all", "--message", "by hand");
    expect((await first.askHere("sync")).data).toMatchObject({ kept: [], written: [id] });
    expect(first.issue(id)).toMatchObject({ title: "By hand", priority: "high" });
    fs.writeFileSync(first.issueFile(id), "{ broken");
    const broken = await first.askHere("sync");
    expect(broken.data).toMatchObject({ unreadable: [{ issue_id: id }], pushed: [] });
    expect(fs.readFileSync(first.issueFile(id), "utf8")).toBe("{ broken");
  });

  it("an old branch that is checked out takes nothing back", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    first.repo.git("branch", "old");
    await first.prepare("claim", "acquire", id);
    await first.prepare("issue", "update", id, "--title", "Newer", "--priority", "high");
    first.repo.git("add", "--all");
    first.repo.git("commit", "--quiet", "--message", "newer");
    await first.prepare("sync");
    first.repo.git("checkout", "--quiet", "old");
    expect(first.issue(id)).toMatchObject({ title: "Issue 1" });
    await first.prepare("sync");
    expect(hub.issue(id)).toMatchObject({ title: "Newer", priority: "high" });
    expect(first.issue(id)).toMatchObject({ title: "Newer" });
  });
});

describe("S69: a rewritten ledger", () => {
  it("is noticed; --force-resync without --yes is refused, with it the old state is backed up first", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [a, b] = ids as [string, string];
    const { lease } = await first.prepare("claim", "acquire", a);
    await first.prepare("issue", "comment", b, "--text", "something");
    await first.prepare("sync");
    const empty = hub.git("mktree").trim();
    const other = hub.git("commit-tree", "-m", "Begin anew", empty).trim();
    hub.git("update-ref", "refs/heads/cotenant-sync", other);
    for (const args of [["sync"], ["sync", "--setup-ledger"]])
      expectJsonRefused(await first.askHere(...args), 10, "E_LEDGER_REWRITTEN");
    const refused = await first.askHere("sync", "--force-resync");
    expectJsonRefused(refused, 9, "E_POLICY");
    const ran = await first.ask("sync", "--force-resync", "--yes");
    const { snapshots } = (await first.askHere("history")).data as unknown as {
      snapshots: { automatic: string }[];
    };
    expect(snapshots).toMatchObject([{ snapshot_id: ran.data["snapshot_id"], automatic: "resync" }]);
    const backup = String(ran.data["backup"]);
    expect(fs.readdirSync(backup).sort()).toEqual(["ledger.bundle", "state.json"]);
    const restored = path.join(scratch("restored"), "ledger.git");
    execFileSync("git", ["clone", "--quiet", "--mirror", path.join(backup, "ledger.bundle"), restored]);
    expect(execFileSync("git", ["for-each-ref"], { cwd: restored, encoding: "utf8" })).toContain(
      "refs/seen/branch",
    );
    await first.prepare("sync");
    expect(hub.issue(b)).toMatchObject({ title: "Issue 2" });
    expect((await first.askHere("claim", "list")).data.leases).toMatchObject([{ lease_id: lease.lease_id }]);
  });

  it("a vanished claim is not free; after a resync it is claimed anew, with a higher token", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const second = Machine.clone(hub, "second");
    const { lease } = await second.prepare("claim", "acquire", id);
    expectJsonRefused(await first.askHere("claim", "acquire", id), 1, "E_LOCK_CONFLICT");
    hub.git("update-ref", "-d", `refs/cotenant/claims/${id}`);
    expectJsonRefused(await first.ask("claim", "acquire", id), 10, "E_LEDGER_REWRITTEN");
    expectJsonRefused(await first.askHere("sync"), 10, "E_LEDGER_REWRITTEN");
    await first.prepare("sync", "--force-resync", "--yes");
    const claimed = await first.askHere("claim", "acquire", id);
    expect(claimed.lease.fencing_token).toBeGreaterThan(lease.fencing_token);
  });

  it("several vanished claims are told as several", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    for (const id of ids) await first.prepare("claim", "acquire", id);
    for (const id of ids) hub.git("update-ref", "-d", `refs/cotenant/claims/${id}`);
    const { error } = await first.askHere("sync");
    expect(error.message).toMatch(/: 2 issues \(\w+, …\) had claims at the remote, and have none now$/);
  });

  it("a claim that does not go on from what was seen is noticed", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    await first.prepare("claim", "acquire", id);
    const tree = hub.git("mktree").trim();
    const forged = hub
      .git(
        "commit-tree",
        "-m",
        `Claim\n\n${JSON.stringify({ ...hub.claim(id), agent_id: "agent:mallory" })}`,
        tree,
      )
      .trim();
    hub.git("update-ref", `refs/cotenant/claims/${id}`, forged);
    expectJsonRefused(await first.ask("sync"), 10, "E_LEDGER_REWRITTEN");
    const never = hub.git("commit-tree", "-m", "not a record at all", tree).trim();
    hub.git("update-ref", `refs/cotenant/claims/${id}`, never);
    const second = Machine.clone(hub, "second");
    expectJsonRefused(await second.askHere("claim", "acquire", id), 10, "E_LEDGER_REWRITTEN");
    const newer = hub.git("commit-tree", "-m", '{"schema_version":2}', tree).trim();
    hub.git("update-ref", `refs/cotenant/claims/${id}`, newer);
    const third = Machine.clone(hub, "third");
    expectJsonRefused(await third.askHere("claim", "acquire", id), 10, "E_SCHEMA_NEWER");
  });

  it("a deleted branch is noticed, and the ledger can be set up again after a clean-up", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    hub.git("update-ref", "-d", "refs/heads/cotenant-sync");
    expectJsonRefused(await first.ask("sync"), 10, "E_LEDGER_REWRITTEN");
    expectJsonRefused(await first.askHere("sync", "--cleanup-ledger"), 9, "E_POLICY");
    // Also when it was turned off meanwhile; and once more, there is nothing to do.
    const off = { COTENANT_SYNC_LEDGER_BRANCH: undefined };
    const ran = await first.askWith(off, "sync", "--cleanup-ledger", "--yes");
    expect(ran.data).toMatchObject({ removed: true, backup: expect.any(String) });
    expect(fs.existsSync(path.join(first.ledger, "ledger.git"))).toBe(false);
    expect((await first.askHere("sync", "--cleanup-ledger", "--yes")).data).toMatchObject({ removed: false });
    const never = Machine.clone(hub, "never");
    expect((await never.askHere("sync", "--cleanup-ledger", "--yes")).data).toMatchObject({ removed: false });
    expect((await first.askHere("sync", "--setup-ledger")).data).toMatchObject({
      created_branch: true,
      created_copy: true,
    });
    expect((await first.askHere("claim", "acquire", ids[0]!)).data).toMatchObject({ offline: false });
  });
});

describe("S71: the state file", () => {
  it("truncated, or no state at all: started over with a warning, and kept beside", async () => {
    const texts = ["", '{"schema_version": 1, "offline_claims"'];
    const { first, ids } = await sharedIssues(texts.length);
    const file = path.join(first.ledger, "state.json");
    const old = () => fs.readdirSync(first.ledger).filter((name) => name.startsWith("state.json.old-"));
    for (const [n, text] of texts.entries()) {
      const before = old();
      fs.writeFileSync(file, text);
      const ran = await first.ask("claim", "acquire", ids[n]!);
      expect(ran.status).toBe(0);
      expect(ran.json.warnings!.join()).toContain("started over");
      expect(first.state).toMatchObject({ schema_version: 1, valid: true });
      const [kept] = old().filter((name) => !before.includes(name));
      expect(fs.readFileSync(path.join(first.ledger, kept!), "utf8")).toBe(text);
    }
  });

  it("of a newer version: refused, and not touched", async () => {
    const { first, ids } = await sharedIssues(1);
    const file = path.join(first.ledger, "state.json");
    const text = '{"schema_version": 99}';
    fs.writeFileSync(file, text);
    expectJsonRefused(await first.ask("sync"), 10, "E_SCHEMA_NEWER");
    for (const args of [
      ["sync", "--status"],
      ["claim", "acquire", ids[0]!, "--offline"],
    ])
      expectJsonRefused(await first.askHere(...args), 10, "E_SCHEMA_NEWER");
    expect(fs.readFileSync(file, "utf8")).toBe(text);
  });

  it("of an older version: brought up to date, the old one kept", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const file = path.join(first.ledger, "state.json");
    const older = {
      version: 1,
      last_pull_at: "2026-01-01T00:00:00Z",
      worktree_valid: true,
      offline_claims: [{ atom_id: "x" }],
    };
    fs.writeFileSync(file, JSON.stringify(older));
    const ran = await first.ask("claim", "acquire", ids[0]!);
    expect(ran.json.warnings!.join()).toContain("older format");
    expect(first.state).toMatchObject({
      schema_version: 1,
      last_pull_at: "2026-01-01T00:00:00.000Z",
      valid: true,
      offline_claims: [],
    });
    expect(fs.readdirSync(first.ledger).some((name) => name.startsWith("state.json.old-"))).toBe(true);
    // It names a commit that nobody has, and times that are still to come: said, and put right by the next sync.
    const future = "2199-01-01T00:00:00.000Z";
    const lost = { ...first.state, ledger_head: "1".repeat(40), last_pull_at: future };
    fs.writeFileSync(file, JSON.stringify(lost));
    const status = (await first.askHere("sync", "--status")).data;
    expect(status).toMatchObject({ valid: false, last_pull_at: future });
    // Deleted while things go on: made again.
    fs.rmSync(file);
    await first.prepare("sync");
    expect(first.state).toMatchObject({ schema_version: 1, ledger_head: hub.head("cotenant-sync") });
  });
});
