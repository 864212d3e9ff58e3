import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { createRequire } from "node:module";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run, start, until } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { cotenant, pictureOf, TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

/** Runs it with this search path, and without a shell to find Node by. */
function withPath(searchPath: string, ...args: string[]): Promise<Ran> {
  const env = { PATH: searchPath, COTENANT_AGENT_ID: "agent:a" };
  return run([process.execPath, PROGRAM, ...args], { cwd: repo.root, env });
}

function fakeGit(script: string): string {
  const folder = scratch();
  fs.writeFileSync(path.join(folder, "git"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return `${folder}:${process.env["PATH"]}`;
}

describe("Git", () => {
  it.each([
    "init",
    "issue create --title t",
    "issue list",
    "issue show abcd",
    "claim acquire abcd",
    "claim release abcd",
  ])("is missing: %s exits with 10 and writes nothing", async (command) => {
    // With a commit: before the first one there is nothing that only Git could tell.
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    const before = repo.picture();
    const ran = await withPath("/nonexistent", ...command.split(" "));
    expectRefused(ran, 10, "E_GIT_TOO_OLD");
    expect(ran.stderr).toMatch(/missing.*\n.*2\.38/);
    expectJsonRefused(await withPath("/nonexistent", ...command.split(" "), "--json"), 10, "E_GIT_TOO_OLD");
    expect(repo.picture()).toEqual(before);
  });

  it("is missing: what needs none works", async () => {
    for (const command of [
      "status",
      "lock acquire a.ts",
      "lock status",
      "lock release a.ts",
      "worktree info",
      "version",
    ])
      expect((await withPath("/nonexistent", ...command.split(" "))).status).toBe(0);
  });

  it.each([
    ["too old", "echo git version 2.30.2", "2.30.2 is too old"],
    ["not to be told", "echo gut version two", "gut version two"],
  ])("is %s: init exits with 10 and writes nothing", async (_, script, words) => {
    const before = repo.picture();
    const ran = await withPath(fakeGit(script), "init");
    expectRefused(ran, 10, "E_GIT_TOO_OLD");
    expect(ran.stderr).toContain(words);
    expect(ran.stderr).toContain("2.38");
    expect(repo.picture()).toEqual(before);
  });
});

describe("places that are no working tree", () => {
  const COMMANDS = [
    "init",
    "status",
    "lock acquire a.ts",
    "claim acquire abcd",
    "issue create --title t",
    "issue list",
    "gc",
  ];

  it.each(COMMANDS)("a bare repository: %s", async (command) => {
    const bare = path.join(scratch(), "bare.git");
    repo.git("init", "--quiet", "--bare", bare);
    const before = pictureOf(bare);
    const ran = await cotenant(bare, command.split(" "));
    expectRefused(ran, 10, "E_NOT_A_REPO");
    expect(ran.stderr).toMatch(/bare.*\n.*git worktree add/);
    expectJsonRefused(await cotenant(bare, [...command.split(" "), "--json"]), 10, "E_NOT_A_REPO");
    expect(pictureOf(bare)).toEqual(before);
  });

  it.each(COMMANDS)("Git's own directory: %s", async (command) => {
    const before = repo.picture();
    const ran = await repo.at(".git").run("agent:a", ...command.split(" "));
    expectRefused(ran, 10, "E_NOT_A_REPO");
    expect(ran.stderr).toContain("working tree");
    expect(repo.picture()).toEqual(before);
  });

  it("a worktree of a bare repository works", async () => {
    const bare = path.join(scratch(), "bare.git");
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    repo.git("clone", "--quiet", "--bare", ".", bare);
    const tree = path.join(scratch(), "tree");
    repo.git("--git-dir", bare, "worktree", "add", "--quiet", "-b", "work", tree);
    const ran = await cotenant(tree, ["lock", "acquire", "a.ts", "--json"]);
    expect(ran.lease).toMatchObject({ key: "file:a.ts", branch: "work" });
    expect(fs.existsSync(path.join(bare, "cotenant/claims.jsonl"))).toBe(true);
  });
});

describe("an unborn or detached HEAD", () => {
  it("is no obstacle", async () => {
    expect((await repo.ask("agent:a", "init")).status).toBe(0);
    const id = await repo.issue();
    expect((await repo.ask("agent:a", "claim", "acquire", id)).lease.branch).toBe("main");
    expect((await repo.ask("agent:a", "worktree", "list")).data.worktrees).toHaveLength(1);
    repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
    repo.git("checkout", "--quiet", "--detach");
    expect((await repo.ask("agent:a", "lock", "acquire", "a.ts")).lease.branch).toBeNull();
    expect((await repo.ask("agent:b", "issue", "show", id)).data.issue.id).toBe(id);
  });
});

describe("who is asking", () => {
  it("must be said where there is no terminal, with the line to run", async () => {
    for (const command of [
      "lock acquire a.ts",
      "lock release a.ts",
      "gc",
      "claim status --mine",
      "config set coordination.default_ttl_secs 60",
    ]) {
      const ran = await repo.run("", ...command.split(" "));
      expectRefused(ran, 10, "E_AGENT_ID_REQUIRED");
      expect(ran.stderr).toMatch(
        /next: run: export COTENANT_AGENT_ID=agent:.*; a person adds --agent-id human:<you>/,
      );
    }
    expect(fs.existsSync(path.join(repo.root, ".cotenant"))).toBe(false);
    for (const look of ["status", "lock status", "claim status", "issue list"])
      expect((await repo.run("", ...look.split(" "))).status).toBe(0);
  });

  it("is the flag, the variable, the harness, agent.toml, in this order", async () => {
    const home = scratch();
    fs.mkdirSync(path.join(home, ".config/cotenant"), { recursive: true });
    fs.writeFileSync(
      path.join(home, ".config/cotenant/agent.toml"),
      '[agent]\nid = "agent:from-file"\ndefault_ttl_secs = 77\n',
    );
    const session = "f3b0c442-98fc-4c14-9afb-f4c8996fb924";
    const harness = { HOME: home, CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: session };
    const acquire = (env: Record<string, string>, agent: string, ...args: string[]) =>
      repo.askWith(env, agent, "lock", "acquire", ...args);
    const byFile = (await acquire({ HOME: home }, "", "a.ts")).lease;
    expect(byFile).toMatchObject({ agent_id: "agent:from-file", session_id: "default", ttl_secs: 77 });
    const byHarness = (await acquire(harness, "", "b.ts")).lease;
    expect(byHarness).toMatchObject({ agent_id: "agent:claude-f3b0c442", session_id: session });
    expect((await acquire(harness, "agent:from-variable", "c.ts")).lease.agent_id).toBe(
      "agent:from-variable",
    );
    const byFlag = await acquire(harness, "agent:from-variable", "d.ts", "--agent-id", "ci:from-flag");
    expect(byFlag.lease.agent_id).toBe("ci:from-flag");
  });

  it("is no person inside a harness", async () => {
    for (const id of ["human:ada", "admin:root"])
      expectJsonRefused(await repo.askWith({ CODEX_CI: "1" }, id, "lock", "acquire", "a.ts"), 9, "E_POLICY");
  });
});

describe("configuration", () => {
  it("that cannot be used is refused with the place and the nearest key", async () => {
    repo.write(".cotenant/config.toml", "[coordination]\ndefault_ttl = 5\n");
    const ran = await repo.run("agent:a", "lock", "acquire", "a.ts");
    expectRefused(ran, 10, "E_CONFIG");
    expect(ran.stderr).toContain("config.toml");
    expect(ran.stderr).toContain("default_ttl_secs");
    expect(fs.existsSync(repo.control)).toBe(false);
  });

  it.each([
    ["COTENANT_COORDINATION_DEFAULT_TTL_SECS", "soon"],
    ["COTENANT_COORDINATION_DEFAULT_TTL_SECS", "-1"],
    ["COTENANT_COORDINATION_DEFAULT_TTL", "5"],
  ])("in the environment, too: %s=%s", async (name, value) => {
    const ran = await repo.askWith({ [name]: value }, "agent:a", "lock", "acquire", "a.ts");
    expectJsonRefused(ran, 10, "E_CONFIG");
    expect(ran.error.message).toContain(name);
  });

  it("counts: a TTL from the environment, a limit from the file", async () => {
    repo.write(".cotenant/config.toml", "[policy]\nmax_ttl_secs = { agent = 60 }\n");
    const env = { COTENANT_COORDINATION_DEFAULT_TTL_SECS: "42" };
    expect((await repo.askWith(env, "agent:a", "lock", "acquire", "a.ts")).lease.ttl_secs).toBe(42);
    expectJsonRefused(await repo.ask("agent:a", "lock", "acquire", "b.ts", "--ttl", "61"), 9, "E_LIMIT");
  });
});

describe("files of a newer cotenant", () => {
  it("cotenant-worktree.json is refused and left as it is", async () => {
    await repo.prepare("agent:a", "worktree", "init");
    const file = path.join(repo.root, ".git/cotenant-worktree.json");
    const newer = fs.readFileSync(file, "utf8").replace('"schema_version": 1', '"schema_version": 2');
    fs.writeFileSync(file, newer);
    for (const command of ["status", "lock acquire a.ts", "init"])
      expectRefused(await repo.run("agent:a", ...command.split(" ")), 10, "E_SCHEMA_NEWER");
    expect(fs.readFileSync(file, "utf8")).toBe(newer);
  });

  it("the log is refused and left as it is", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.ts");
    const { sum: prev, ...last } = JSON.parse(repo.logText().trimEnd().split("\n").at(-1)!);
    const body = JSON.stringify({ ...last, schema_version: 2, sequence: 3, prev });
    const sum = createHash("sha256").update(body).digest("hex").slice(0, 32);
    fs.appendFileSync(repo.logFile, `${body.slice(0, -1)},"sum":"${sum}"}\n`);
    const before = repo.logText();
    for (const command of ["lock acquire b.ts", "lock release a.ts", "gc", "recover", "status"])
      expectRefused(await repo.run("agent:a", ...command.split(" ")), 10, "E_SCHEMA_NEWER");
    expect(repo.logText()).toBe(before);
  });
});

describe("a store that stays locked", () => {
  it("is given up after a while, and the message says who was there last", async () => {
    const { lease } = await repo.ask("agent:a", "lock", "acquire", "a.ts");
    const addon = createRequire(import.meta.url).resolve("fs-native-extensions");
    const script = [
      `const { tryLock } = require(${JSON.stringify(addon)});`,
      `const fd = require("node:fs").openSync(${JSON.stringify(path.join(repo.control, "locks/claims.lock"))}, "r+");`,
      "process.stderr.write(tryLock(fd) ? 'locked' : 'busy');",
      "setInterval(() => {}, 1_000);",
    ].join("\n");
    const blocker = start([process.execPath, "-e", script], { cwd: repo.root });
    await until("the store is locked", () => blocker.stderr === "locked");
    const env = { COTENANT_STORE_BUSY_TIMEOUT_SECS: "1" };
    const ran = await repo.askWith(env, "agent:b", "lock", "acquire", "b.ts");
    expectJsonRefused(ran, 10, "E_STORE_BUSY");
    expect(ran.error.message).toMatch(/process \d+ \(agent:a, lock acquire\)/);
    const seen = (await repo.ask("agent:b", "status")).data.leases;
    expect(
      seen.map(({ lease_id }) => lease_id),
      "readers never wait",
    ).toEqual([lease.lease_id]);
    blocker.kill("SIGKILL");
    await blocker.done;
    expect((await repo.ask("agent:b", "lock", "acquire", "b.ts")).status).toBe(0);
  });
});
