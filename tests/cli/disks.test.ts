import { execFileSync, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { afterEach, describe, expect } from "vitest";
import { needTool } from "../house/need-tool";
import { oneIn } from "../support/one-in";
import { PROGRAM, run } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

const mounted: string[] = [];
afterEach(() => {
  for (const where of mounted.splice(0)) execFileSync("umount", ["--lazy", where]);
});

function mount(where: string, ...args: string[]): void {
  needTool("mount");
  execFileSync("mount", [...args, where]);
  mounted.push(where);
}

/** A repository on a disk of its own. */
function onSmallDisk(): TestRepo {
  const where = path.join(scratch(), "disk");
  fs.mkdirSync(where);
  mount(where, "--types", "tmpfs", "--options", "size=1m", "tmpfs");
  return TestRepo.make(path.join(where, "repo"));
}

/** Takes what is left, to the last byte. */
function fill(repo: TestRepo): () => void {
  const file = path.join(path.dirname(repo.root), "filler");
  const fd = fs.openSync(file, "w");
  for (let size = 65_536; size >= 1; size >>= 1) {
    try {
      for (;;) fs.writeSync(fd, Buffer.alloc(size, 1));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }
  fs.closeSync(fd);
  return () => fs.rmSync(file);
}

/** All but the mutex's file, which is for ever once somebody has asked for the mutex. */
const files = (root: string) =>
  fs
    .readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "claims.lock").length;

/** Only root can mount a disk that is small enough to fill. */
describe.runIf(process.getuid?.() === 0)("a full disk", () => {
  it.each(["init", "lock acquire a.ts", "issue create --title t", "worktree init", "gc"])(
    "in a new repository: %s exits with 10, and leaves no file behind",
    async (command) => {
      const repo = onSmallDisk();
      fill(repo);
      const before = files(repo.root);
      expectRefused(await repo.run("agent:a", ...command.split(" ")), 10, "E_DISK");
      expectJsonRefused(await repo.ask("agent:a", ...command.split(" ")), 10, "E_DISK");
      expect(files(repo.root)).toBe(before);
      expect((await repo.run("agent:a", "status")).status).toBe(0);
    },
  );

  it("keeps nobody from hearing that a log is whole", async () => {
    const repo = onSmallDisk();
    fill(repo);
    const before = files(repo.root);
    const { status, stdout, stderr } = await repo.run("agent:a", "recover");
    expect({ status, stdout }).toEqual({ status: 0, stdout: "nothing to recover: 0 lines, all whole\n" });
    expect(stderr).toContain("it is done, but afterwards: the disk is full");
    expect(files(repo.root)).toBe(before);
  });

  it("stops grants, keeps everything that was acknowledged, and goes on once there is room", async () => {
    const repo = onSmallDisk();
    const issue = await repo.issue();
    await repo.ask("agent:a", "claim", "acquire", issue);
    const makeRoom = fill(repo);
    const acknowledged = [`issue:${issue}`];
    // What is left of the last page of each file may still hold a line or two.
    let refused = await repo.run("agent:a", "lock", "acquire", "f0");
    for (let i = 0; refused.status === 0 && i < 20; i++) {
      acknowledged.push(`file:f${i}`);
      refused = await repo.run("agent:a", "lock", "acquire", `f${i + 1}`);
    }
    expectRefused(refused, 10, "E_DISK");
    expect(refused.stderr).toContain("full");
    expectJsonRefused(await repo.ask("agent:b", "lock", "acquire", "g"), 10, "E_DISK");
    expectRefused(await repo.run("agent:a", "issue", "create", "--title", "t"), 10, "E_DISK");

    expect(repo.logText().endsWith("\n"), "no torn line is left").toBe(true);
    const held = async () => (await repo.ask("agent:b", "status")).data.leases.map(({ key }) => key).sort();
    expect(await held()).toEqual(acknowledged.toSorted());
    makeRoom();
    expect((await repo.ask("agent:a", "lock", "acquire", "later")).status).toBe(0);
    expect(await held()).toEqual([...acknowledged, "file:later"].toSorted());
    expectJsonRefused(await repo.ask("agent:b", "claim", "acquire", issue), 1, "E_LOCK_CONFLICT");
    expect((await repo.ask("agent:a", "recover")).data["recovered"]).toBe(false);
  });
});

describe("a failing disk", () => {
  /** Agent a's command, with calls about one file of the repository that fail. */
  const failing = (repo: TestRepo, file: string, fault: string, ...args: string[]) => {
    needTool("strace");
    const options = ["-qq", "-o", "/dev/null", "-P", path.join(repo.root, file), "-e", `inject=${fault}`];
    return run(["strace", ...options, PROGRAM, ...args, "--json"], {
      cwd: repo.root,
      env: { COTENANT_AGENT_ID: "agent:a" },
    });
  };

  it("is not taken for one that has nothing on it", async () => {
    const repo = TestRepo.make();
    await repo.ask("agent:a", "lock", "acquire", "a.ts");
    const secrets = ".git/cotenant/secrets/agent%3aa/default.json";
    for (const call of ["access", "statx", "openat", "read"]) {
      const ran = await failing(repo, secrets, `${call}:error=EIO`, "lock", "release", "a.ts");
      // Node asks in one of these ways; those it does not use cannot fail.
      if (ran.status !== 0) expectJsonRefused(ran, 10, "E_DISK");
      else await repo.ask("agent:a", "lock", "acquire", "a.ts");
    }
  });

  it("is named when it cannot lock, also by recover", async () => {
    const repo = TestRepo.make();
    await repo.ask("agent:a", "lock", "acquire", "a.ts");
    const mutex = ".git/cotenant/locks/claims.lock";
    expectJsonRefused(await failing(repo, mutex, "fcntl:error=EIO", "recover"), 10, "E_DISK");
  });

  it("does not make a worktree forget itself in the middle of a command", async () => {
    const repo = TestRepo.make();
    const issue = await repo.issue();
    await repo.ask("agent:a", "claim", "acquire", issue);
    const transfer = ["claim", "transfer", issue, "--to-agent", "agent:b", "--reason", "r"];
    const ran = await failing(repo, ".git/cotenant-worktree.json", "openat:error=EIO:when=2+", ...transfer);
    expect(ran.lease.agent_id).toBe("agent:b");
  });
});

/** Only root can mount one read-only, and root itself is stopped by nothing less. */
describe.runIf(process.getuid?.() === 0)("a read-only disk", () => {
  const makeReadOnly = (repo: TestRepo) => {
    mount(repo.root, "--bind", repo.root);
    execFileSync("mount", ["--options", "remount,ro,bind", repo.root]);
  };

  it.each(["init", "lock acquire a.ts", "issue create --title t", "worktree init", "gc", "recover"])(
    "with a new repository: %s exits with 10, and readers answer",
    async (command) => {
      const repo = TestRepo.make();
      makeReadOnly(repo);
      const ran = await repo.run("agent:a", ...command.split(" "));
      expectRefused(ran, 10, "E_DISK");
      expect(ran.stderr).toContain("read-only");
      for (const look of [
        "status",
        "lock status",
        "claim list",
        "issue list",
        "worktree info",
        "worktree list",
      ])
        expect((await repo.run("agent:a", ...look.split(" "))).status).toBe(0);
    },
  );

  it("stops writers and nobody else", async () => {
    const repo = TestRepo.make();
    const issue = await repo.issue();
    await repo.ask("agent:a", "claim", "acquire", issue);
    await repo.ask("agent:a", "lock", "acquire", "a.ts");
    makeReadOnly(repo);
    for (const [agent, ...args] of [
      ["agent:a", "lock", "acquire", "b.ts"],
      ["agent:a", "lock", "renew", "a.ts"],
      ["agent:a", "lock", "release", "a.ts"],
      ["agent:a", "claim", "heartbeat", issue],
      ["agent:a", "claim", "transfer", issue, "--to-agent", "agent:b", "--reason", "r"],
      ["human:ada", "claim", "force-evict", issue, "--reason", "r"],
      ["human:ada", "lock", "steal", "a.ts", "--reason", "r"],
      ["agent:b", "lock", "acquire", "a.ts", "--wait", "--timeout", "1"],
      ["agent:b", "lock", "gc"],
    ] as [string, ...string[]][]) {
      expectRefused(await repo.run(agent, ...args), 10, "E_DISK");
      expectJsonRefused(await repo.ask(agent, ...args), 10, "E_DISK");
    }
    expect((await repo.ask("agent:b", "status")).data.leases).toHaveLength(2);
    expect((await repo.ask("agent:b", "issue", "show", issue)).data.issue.id).toBe(issue);
  });
});

it("a disk that fails at any look at the control directory makes no failure of what is in the log", async () => {
  needTool("strace");
  const outcomes = new Set<string>();
  for (let when = 1; when <= 12; when++) {
    const repo = TestRepo.make();
    await repo.prepare("agent:b", "lock", "acquire", "before.ts");
    const inject = ["-P", repo.control, "-e", "trace=statx", "-e", `inject=statx:error=EIO:when=${when}`];
    const command = [process.execPath, PROGRAM, "lock", "acquire", "a.ts", "--json"];
    const env = { ...process.env, COTENANT_AGENT_ID: "agent:a" };
    const told = path.join(scratch(), "strace");
    const { status, stdout } = spawnSync("strace", ["-f", "-qq", "-o", told, ...inject, ...command], {
      cwd: repo.root,
      env,
      encoding: "utf8",
    });
    const isLogged = repo.log().some(({ actor }) => actor.agent_id === "agent:a");
    expect(isLogged, `look ${when}: exit ${status}: ${stdout}`).toBe(status === 0);
    if (!fs.readFileSync(told, "utf8").includes("INJECTED")) break;
    outcomes.add(status === 0 ? "done" : "refused");
  }
  expect([...outcomes].sort()).toEqual(["done", "refused"]);
});
