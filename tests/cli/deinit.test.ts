import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { NodeLocks } from "../../src/platform/node/locks";
import { needTool } from "../house/need-tool";
import { linesIn, shellWords } from "../support/hints";
import { oneIn } from "../support/one-in";
import { PROGRAM, run, until } from "../support/program";
import { expectJsonRefused, expectNoInnards, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write("src/app.ts");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
});

/** The picture without the data plane's versioned part. */
function withoutDataPlane(picture: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(picture).filter(([file]) => !/^\.cotenant(?:\/|$)/.test(file)));
}

const inData = () => fs.readdirSync(path.join(repo.root, ".cotenant")).sort();

/** Everything a session leaves: leases, an issue, settings, trust, a heartbeat, segments, a waiter that gave up. */
async function use(): Promise<string> {
  await repo.prepare("agent:a", "init");
  const issue = await repo.issue();
  await repo.prepare("agent:a", "claim", "acquire", issue);
  await repo.prepare("agent:a", "claim", "heartbeat", issue);
  await repo.prepare("human:h", "config", "set", "coordination.default_ttl_secs", "700");
  await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
  await repo.askHere("agent:b", "lock", "acquire", "src/app.ts", "--wait", "--timeout", "1");
  await repo.prepare("agent:b", "lock", "acquire", "b.ts");
  await repo.prepare("agent:b", "lock", "release", "b.ts");
  await repo.prepare("agent:a", "gc", "--compact");
  return issue;
}

describe("deinit", () => {
  it("brings everything back byte for byte but the data plane", async () => {
    const before = repo.picture();
    const issue = await use();
    const settings = fs.readFileSync(path.join(repo.root, ".cotenant/config.toml"), "utf8");
    const { data } = await repo.ask("agent:a", "deinit");
    expect(data["removed"]).toEqual([repo.control, path.join(repo.root, ".git/cotenant-worktree.json")]);
    expect(data["own_leases"]).toBe(2);
    expect(withoutDataPlane(repo.picture())).toEqual(before);
    expect(inData()).toEqual([".gitattributes", ".gitignore", "config.toml", "events", "issues"]);
    expect(fs.readFileSync(path.join(repo.root, ".cotenant/config.toml"), "utf8")).toBe(settings);
    expect(fs.existsSync(path.join(repo.root, `.cotenant/issues/${issue}/issue.json`))).toBe(true);
  });

  it("--purge after trying it out leaves no trace at all", async () => {
    const before = repo.picture();
    await repo.prepare("agent:a", "init", "--enforce", "warn");
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
    await repo.prepare("agent:a", "gc");
    expect((await repo.ask("agent:a", "deinit", "--purge")).data["kept"]).toEqual([]);
    expect(repo.picture()).toEqual(before);
  });

  it("--purge never takes what a person wrote or Git has", async () => {
    await use();
    repo.write(
      ".cotenant/.gitignore",
      `${fs.readFileSync(path.join(repo.root, ".cotenant/.gitignore"), "utf8")}mine\n`,
    );
    repo.git("add", ".cotenant/.gitattributes");
    await repo.ask("agent:a", "deinit", "--purge");
    expect(inData()).toEqual([".gitattributes", ".gitignore", "config.toml", "events", "issues"]);
    expect(repo.git("status", "--porcelain", "--", ".cotenant/.gitattributes")).toMatch(/^A /);
  });

  it("takes the merge driver out of Git's configuration, and nothing else", async () => {
    const config = path.join(repo.root, ".git/config");
    fs.appendFileSync(config, '; mine\n[merge "other"]\n\tdriver = true\n[alias]\n\tst = status\n');
    const before = fs.readFileSync(config, "utf8");
    await repo.prepare("agent:a", "init");
    expect(fs.readFileSync(config, "utf8")).not.toBe(before);
    const settings = ["merge.cotenant-issue.name", "merge.cotenant-issue.driver"];
    expect((await repo.ask("agent:a", "deinit", "--dry-run")).data["settings"]).toEqual(settings);
    expect((await repo.runHere("agent:a", "deinit", "--purge")).stdout).toContain(
      "merge.cotenant-issue.driver in ",
    );
    expect(fs.readFileSync(config, "utf8")).toBe(before);
  });

  it("refused, it leaves the merge driver; interrupted after the store is gone, the next one takes it", async () => {
    const before = repo.picture();
    await repo.prepare("agent:a", "init");
    await repo.prepare("agent:b", "lock", "acquire", "src/app.ts");
    expectJsonRefused(await repo.ask("agent:a", "deinit"), 1, "E_LOCK_CONFLICT");
    expect(repo.git("config", "merge.cotenant-issue.driver")).toContain("merge-issue");
    fs.rmSync(repo.control, { recursive: true });
    await repo.askHere("agent:a", "deinit", "--purge");
    expect(repo.picture()).toEqual(before);
  });

  it("undoes a first command without init, too", async () => {
    const before = repo.picture();
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
    await repo.ask("agent:a", "deinit");
    expect(repo.picture()).toEqual(before);
  });

  it("covers all worktrees of the clone, and works from any of them", async () => {
    const other = repo.addWorktree("other");
    const before = [repo, other].map((one) => one.picture());
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
    await other.prepare("agent:a", "lock", "acquire", "b.ts");
    const { data } = await other.ask("agent:a", "deinit");
    expect(data["own_leases"]).toBe(2);
    expect([repo, other].map((one) => one.picture())).toEqual(before);
  });

  it("twice: there is nothing to undo, and nothing is made", async () => {
    await use();
    await repo.ask("agent:a", "deinit");
    const before = repo.picture();
    const again = await repo.runHere("agent:a", "deinit");
    expect(again).toMatchObject({ status: 0, stdout: "nothing to undo\n", stderr: "" });
    expect((await repo.ask("", "deinit")).data["removed"]).toEqual([]);
    expect(repo.picture()).toEqual(before);
  });

  it("--dry-run shows the same and does nothing", async () => {
    await use();
    const before = repo.picture();
    const shown = (await repo.ask("agent:a", "deinit", "--dry-run", "--purge")).data;
    expect(shown).toMatchObject({ dry_run: true, own_leases: 2 });
    expect((await repo.runHere("agent:a", "deinit", "--dry-run")).stdout).toMatch(/^would remove:\n/);
    expectJsonRefused(await repo.askHere("agent:b", "deinit", "--dry-run"), 1, "E_LOCK_CONFLICT");
    expect(repo.picture()).toEqual(before);
    const done = (await repo.askHere("agent:a", "deinit", "--purge")).data;
    expect(done).toEqual({ ...shown, dry_run: false });
  });

  it("afterwards the repository can be used anew", async () => {
    await use();
    await repo.ask("agent:a", "deinit");
    expect((await repo.askHere("agent:b", "status")).data.leases).toEqual([]);
    expect((await repo.askHere("agent:b", "init")).status).toBe(0);
    expect((await repo.askHere("agent:b", "lock", "acquire", "src/app.ts")).lease.fencing_token).toBe(1);
  });
});

describe("deinit is refused", () => {
  it("while somebody else holds a lease, whom it names; also without a name, and with --purge", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "src/app.ts");
    const before = repo.picture();
    for (const flags of [[], ["--purge"]]) {
      const ran = await repo.run("agent:a", "deinit", ...flags);
      expectRefused(ran, 1, "E_LOCK_CONFLICT");
      expect(ran.stderr).toContain("file:src/app.ts is held by agent:b");
    }
    expectJsonRefused(await repo.ask("", "deinit"), 1, "E_LOCK_CONFLICT");
    const other = await repo.askWith({ COTENANT_SESSION_ID: "other" }, "agent:b", "deinit");
    expectJsonRefused(other, 1, "E_LOCK_CONFLICT");
    expect(repo.picture()).toEqual(before);
    await repo.prepare("agent:b", "lock", "release", "src/app.ts");
    expect((await repo.askHere("agent:a", "deinit")).status).toBe(0);
  });

  it("with the commands that end what others hold, and they do", async () => {
    const id = await repo.issue();
    await repo.prepare("agent:b", "claim", "acquire", id);
    const { lease } = await repo.prepare("agent:b", "lock", "acquire", "src/app.ts");
    const { hint } = (await repo.askHere("agent:a", "deinit")).error;
    const offered = linesIn(hint).map(({ line }) => line);
    expect(offered.sort()).toEqual([
      `claim force-evict ${id} --reason <why>`,
      `claim force-evict ${lease.lease_id} --reason <why>`,
    ]);
    for (const line of offered)
      expect(await repo.runHere("human:me", ...shellWords(line)), line).toMatchObject({ status: 0 });
    expect((await repo.askHere("agent:a", "deinit")).status).toBe(0);
  });

  it("without one for a writer lock, which nobody can take away", async () => {
    await repo.prepare("agent:b", "worktree", "lock");
    const { hint } = (await repo.askHere("agent:a", "deinit")).error;
    expect(hint).toBe("wait until they are released or have run out");
  });

  it("not for what has run out", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "src/app.ts", "--ttl", "1");
    await until(
      "it has run out",
      async () => (await repo.askHere("agent:a", "status")).data.leases.length === 0,
    );
    expect((await repo.ask("agent:a", "deinit")).status).toBe(0);
  });

  it("while somebody else waits for a lease of ours", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
    const waiter = repo.start("agent:b", ["lock", "acquire", "src/app.ts", "--wait", "--timeout", "25"]);
    const queue = path.join(repo.control, "queue");
    await until("it waits", () => fs.readdirSync(queue).some((name) => name.endsWith(".json")));
    const ran = await repo.run("agent:a", "deinit");
    expectRefused(ran, 1, "E_QUEUED");
    expect(ran.stderr).toContain("agent:b waits for file:src/app.ts");
    waiter.kill("SIGKILL");
    await waiter.done;
    expect((await repo.askHere("agent:a", "deinit")).status).toBe(0);
  });

  it("by a store of a newer version", async () => {
    await repo.prepare("agent:a", "init");
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
    fs.appendFileSync(repo.logFile, '{"schema_version":99}\n');
    const before = repo.picture();
    expectRefused(await repo.run("agent:a", "deinit"), 10, "E_SCHEMA_NEWER");
    expect(repo.picture()).toEqual(before);
  });
});

describe("deinit works where other commands do not", () => {
  it("with a broken configuration", async () => {
    await repo.prepare("agent:a", "init");
    repo.write(".cotenant/config.toml", "[broken");
    const ran = await repo.run("agent:a", "deinit");
    expect(ran).toMatchObject({ status: 0, stderr: "" });
    expect(fs.existsSync(repo.control)).toBe(false);
    expect(inData()).toContain("config.toml");
  });

  it("with a damaged log, as long as nobody is seen to hold anything", async () => {
    await use();
    await repo.prepare("agent:b", "lock", "acquire", "b.ts");
    fs.writeFileSync(
      repo.logFile,
      repo.logText().replace("agent:planner", "agent:planned").replace("agent:a", "agent:z"),
    );
    expectRefused(await repo.run("agent:a", "deinit"), 1, "E_LOCK_CONFLICT");
    fs.writeFileSync(repo.logFile, "garbage\n");
    fs.rmSync(path.join(repo.control, "index"), { recursive: true });
    expect((await repo.runHere("agent:a", "deinit")).status).toBe(0);
    expect(fs.existsSync(repo.control)).toBe(false);
  });

  it("with a control plane on another disk, whose directory stays", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
    const elsewhere = path.join(path.dirname(repo.root), "elsewhere");
    fs.renameSync(repo.control, elsewhere);
    fs.symlinkSync(elsewhere, repo.control);
    expect((await repo.ask("agent:a", "deinit")).status).toBe(0);
    expect(fs.readdirSync(elsewhere)).toEqual([]);
    expect(fs.readdirSync(path.join(repo.root, ".git"))).not.toContain("cotenant");
  });

  it("with a data plane that is a link, which it does not follow", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
    const elsewhere = path.join(path.dirname(repo.root), "elsewhere");
    fs.mkdirSync(elsewhere);
    fs.writeFileSync(path.join(elsewhere, "worktree.json"), "{}");
    fs.symlinkSync(elsewhere, path.join(repo.root, ".cotenant"));
    expect((await repo.ask("agent:a", "deinit", "--purge")).status).toBe(0);
    expect(fs.readdirSync(elsewhere).sort()).toEqual(["worktree.json"]);
  });
});

describe("deinit, interrupted or raced", () => {
  const gone = () =>
    fs.readdirSync(path.join(repo.root, ".git")).filter((name) => /^cotenant(\.|$)/.test(name));

  it("killed at each of its system calls: a whole store or none, and the next one finishes it", async () => {
    needTool("strace");
    const before = repo.picture();
    const calls = ["rename", "fsync", "unlink", "rmdir"];
    const seen = { whole: 0, none: 0 };
    for (const call of calls) {
      for (let nth = 1; nth <= (call === "unlink" ? 9 : 1); nth += 4) {
        await repo.prepare("agent:a", "lock", "acquire", "src/app.ts", "b.ts");
        const inject = ["-e", `inject=${call}:signal=KILL:when=${nth}`];
        const strace = [
          "strace",
          "-f",
          "-o",
          "/dev/null",
          "-e",
          `trace=${call}`,
          ...inject,
          process.execPath,
          PROGRAM,
        ];
        const env = { COTENANT_AGENT_ID: "agent:a" };
        const ran = await run([...strace, "deinit"], { cwd: repo.root, env });
        expect(ran.status, `${call} ${nth}: ${ran}`).not.toBe(0);
        const leases = (await repo.askHere("agent:b", "status")).data.leases.length;
        expect([0, 2]).toContain(leases);
        seen[leases === 2 ? "whole" : "none"]++;
        if (leases === 2) expect(gone()).toEqual(["cotenant"]);
        // Or it got as far as the worktree's own files.
        else expect(gone().filter((name) => !/^cotenant\.gone-[0-9a-f]{12}$/.test(name))).toEqual([]);
        expect(repo.picture()).not.toEqual(before);
        expect((await repo.askHere("agent:a", "deinit")).status).toBe(0);
        expect(repo.picture()).toEqual(before);
      }
    }
    expect(seen.whole).toBeGreaterThan(0);
    expect(seen.none).toBeGreaterThan(0);
  });

  it("what one left half done is nobody's store: another command starts anew beside it", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
    fs.renameSync(repo.control, `${repo.control}.gone-0123456789ab`);
    expect((await repo.ask("agent:b", "lock", "acquire", "src/app.ts")).lease.fencing_token).toBe(1);
    expectJsonRefused(await repo.askHere("agent:a", "deinit"), 1, "E_LOCK_CONFLICT");
    const { data } = await repo.ask("agent:b", "deinit");
    expect(data["removed"]).toContain(`${repo.control}.gone-0123456789ab`);
    expect(gone()).toEqual([]);
  });

  it("whoever waits for the mutex meanwhile is told, and has written nothing", async () => {
    await repo.prepare("agent:a", "init");
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");
    const before = fs.readFileSync(repo.logFile);
    const fd = fs.openSync(path.join(repo.control, "locks/claims.lock"), "r+");
    expect(new NodeLocks().tryLock(fd)).toBe(true);
    const waiting = repo.start("agent:b", ["lock", "acquire", "b.ts", "--json"]);
    // From here on it waits for the mutex of this store, and not of one that it makes anew.
    await until("it has opened the mutex", () => hasOpen(waiting.pid, "locks/claims.lock"));
    const aside = `${repo.control}.gone-0123456789ab`;
    fs.renameSync(repo.control, aside);
    fs.closeSync(fd);
    const ran = await waiting.done;
    expectJsonRefused(ran, 10, "E_STORE_BUSY");
    expect(fs.readFileSync(path.join(aside, "claims.jsonl")).equals(before)).toBe(true);
    expect(gone()).toEqual([path.basename(aside)]);
  });

  it("several at once and writers beside them: each ends cleanly, and no lease is lost that stands", async () => {
    await repo.prepare("agent:a", "init");
    for (let round = 0; round < 4; round++) {
      const leavers = ["a", "b", "c"].map((name) => repo.ask(`agent:${name}`, "deinit"));
      const writers = ["d", "e"].map((name) => repo.ask(`agent:${name}`, "lock", "acquire", `${name}.ts`));
      const ends = await Promise.all([...leavers, ...writers]);
      for (const ran of ends) {
        expectNoInnards(ran);
        expect([0, 1, 10], `${ran}`).toContain(ran.status);
        if (ran.status === 10) expect(ran.error.code, `${ran}`).toBe("E_STORE_BUSY");
      }
      const granted = ends.filter((ran) => ran.status === 0 && ran.json.data!.lease !== undefined);
      const held = (await repo.ask("agent:x", "status")).data.leases.map(({ lease_id }) => lease_id);
      // Whoever was told that it holds a lease still does: leaving is refused while it stands.
      for (const { lease } of granted) expect(held).toContain(lease.lease_id);
      for (const { lease } of granted)
        await repo.prepare(lease.agent_id, "lock", "release", lease.key.slice("file:".length));
    }
  });
});

function hasOpen(pid: number, name: string): boolean {
  const files = `/proc/${pid}/fd`;
  return fs.readdirSync(files).some((fd) => {
    try {
      return fs.readlinkSync(path.join(files, fd)).endsWith(name);
    } catch {
      return false;
    }
  });
}

describe("deinit with snapshots", () => {
  it("is refused until somebody says that they may go, and then takes them away", async () => {
    await use();
    await repo.prepare("agent:a", "snapshot", "--tag", "kept");
    const refused = await repo.ask("agent:a", "deinit");
    expectJsonRefused(refused, 9, "E_POLICY");
    expect((await repo.askHere("agent:a", "history")).data["snapshots"]).toHaveLength(1);
    expect((await repo.ask("agent:a", "deinit", "--snapshots")).status).toBe(0);
    expect(repo.git("for-each-ref", "refs/cotenant")).toBe("");
    expect(fs.existsSync(repo.control)).toBe(false);
  });
});
