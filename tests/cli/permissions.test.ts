import * as fs from "node:fs";
import * as path from "node:path";
import { beforeAll, beforeEach, describe, expect } from "vitest";
import { keptScratch } from "../docs/kept-scratch";
import { needTool } from "../house/need-tool";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run } from "../support/program";
import { expectJsonRefused, expectNoInnards, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

const NOBODY = 65534;
const SOMEBODY = 65533;

/** Only root can give files away and become somebody else. */
describe.runIf(process.getuid?.() === 0)("directories of others", () => {
  let room: string;
  let repo: TestRepo;
  const program = keptScratch("cotenant-open-program");
  beforeAll(() => {
    needTool("setpriv");
    // The checkout itself may be closed to others.
    const root = path.dirname(path.dirname(PROGRAM));
    fs.chmodSync(program, 0o755);
    for (const part of ["bin", "dist"])
      fs.cpSync(path.join(root, part), path.join(program, part), { recursive: true });
  });
  beforeEach(() => {
    room = scratch();
    fs.chmodSync(room, 0o755);
    fs.mkdirSync(path.join(room, "home"));
    repo = TestRepo.make(path.join(room, "repo"));
  });

  function as(uid: number, ...args: string[]): Promise<Ran> {
    return inDirectory(repo.root, uid, ...args);
  }

  function inDirectory(cwd: string, uid: number, ...args: string[]): Promise<Ran> {
    const become = ["setpriv", `--reuid=${uid}`, `--regid=${NOBODY}`, "--clear-groups"];
    const env = { HOME: path.join(room, "home"), GIT_CONFIG_GLOBAL: undefined, COTENANT_AGENT_ID: "agent:b" };
    return run([...become, process.execPath, path.join(program, "bin/cotenant"), ...args], { cwd, env });
  }

  /** As `git config --global --add safe.directory` would. */
  function trustEverywhere(): void {
    fs.writeFileSync(path.join(room, "home/.gitconfig"), "[safe]\n\tdirectory = *\n");
  }

  const giveTo = (uid: number, where: string) => {
    for (const entry of [".", ...fs.readdirSync(where, { recursive: true, encoding: "utf8" })])
      fs.lchownSync(path.join(where, entry), uid, NOBODY);
  };

  it("a dispatcher of another user of a shared repository has workers of its own", async () => {
    trustEverywhere();
    repo.git("config", "core.sharedRepository", "group");
    repo.write("a.txt");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "first");
    for (const entry of [".", ...fs.readdirSync(room, { recursive: true, encoding: "utf8" })]) {
      fs.lchownSync(path.join(room, entry), NOBODY, NOBODY);
      if (fs.statSync(path.join(room, entry)).isDirectory()) fs.chmodSync(path.join(room, entry), 0o2775);
    }
    fs.appendFileSync(path.join(room, "home/.gitconfig"), "[user]\n\tname = b\n\temail = b@example.org\n");
    const first = ["lock", "acquire", "a.txt", "--agent-id", "agent:worker-1", "--session", "dispatch"];
    expect((await as(NOBODY, ...first)).status).toBe(0);
    const ran = await as(SOMEBODY, "dispatch", "--agents", "1", "--command", "true");
    expect(ran.status, String(ran)).toBe(0);
    expect(ran.stdout).toContain('"agent:worker-2"');
  });

  it("a snapshot of what may not be read is refused, with its name, and nothing is visible", async () => {
    repo.write("open.txt");
    repo.write("closed/secret.txt");
    repo.write("file.txt");
    giveTo(NOBODY, repo.root);
    fs.chmodSync(path.join(repo.root, "closed"), 0);
    const directory = await as(NOBODY, "snapshot", "--json");
    expectJsonRefused(directory, 10, "E_PERMISSION");
    expect(directory.error.message).toContain("closed");
    fs.chmodSync(path.join(repo.root, "closed"), 0o755);
    fs.chmodSync(path.join(repo.root, "file.txt"), 0);
    const file = await as(NOBODY, "snapshot", "--json");
    expectJsonRefused(file, 10, "E_PERMISSION");
    expect(file.error.message).toContain("file.txt");
    expect((await as(NOBODY, "history", "--json")).data["snapshots"]).toEqual([]);
    fs.chmodSync(path.join(repo.root, "file.txt"), 0o400);
    expect((await as(NOBODY, "snapshot", "--json")).status).toBe(0);
  });

  const WRITERS = [
    "lock acquire b.ts",
    "lock release a.ts",
    "lock renew a.ts",
    "lock gc",
    "claim release ISSUE",
    "gc",
    "recover",
    "init",
    "issue create --title t",
  ];
  const READERS = [
    "status",
    "lock status",
    "claim status",
    "claim list",
    "issue list",
    "worktree list",
    "worktree info",
  ];

  it("a repository of somebody else is Git's to allow", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.ts");
    const before = repo.picture();
    for (const command of ["status", "lock acquire b.ts", "init", "issue list"]) {
      const ran = await as(NOBODY, ...command.split(" "));
      expectRefused(ran, 10, "E_GIT");
      expect(ran.stderr).toContain("safe.directory");
    }
    expect(repo.picture()).toEqual(before);
  });

  it.each([...WRITERS, ...READERS])("a private control plane of somebody else: %s", async (command) => {
    trustEverywhere();
    const issue = await repo.issue();
    await repo.prepare("agent:a", "lock", "acquire", "a.ts");
    const before = repo.picture();
    const args = command.replace("ISSUE", issue).split(" ");
    const ran = await as(NOBODY, ...args);
    expectRefused(ran, 10, "E_PERMISSION");
    expect(ran.stderr).toContain(repo.root);
    expectJsonRefused(await as(NOBODY, ...args, "--json"), 10, "E_PERMISSION");
    expect(repo.picture()).toEqual(before);
  });

  it.each(["lock acquire b.ts", "init", "gc", "recover"])(
    "a control plane that cannot be made: %s",
    async (command) => {
      giveTo(NOBODY, repo.root);
      fs.chmodSync(path.join(repo.root, ".git"), 0o500);
      expectRefused(await as(NOBODY, ...command.split(" ")), 10, "E_PERMISSION");
      expect((await as(NOBODY, "status")).status, "a reader needs none").toBe(0);
      expect(fs.existsSync(repo.control)).toBe(false);
    },
  );

  it.each(["lock acquire b.ts", "init", "recover", "status"])(
    "a control plane that cannot be entered: %s",
    async (command) => {
      giveTo(NOBODY, repo.root);
      fs.mkdirSync(repo.control, { mode: 0o700 });
      expectRefused(await as(NOBODY, ...command.split(" ")), 10, "E_PERMISSION");
      expect(fs.readdirSync(repo.control)).toEqual([]);
    },
  );

  it("a Git directory that cannot be read", async () => {
    giveTo(NOBODY, repo.root);
    fs.chmodSync(path.join(repo.root, ".git"), 0);
    for (const command of ["status", "lock acquire b.ts", "init", "issue create --title t"]) {
      const ran = await as(NOBODY, ...command.split(" "));
      expect(ran.status, `${ran}`).toBe(10);
      expect(ran.stderr).toMatch(/\n {2}next: .+\n$/);
      expectNoInnards(ran);
    }
    expect(fs.existsSync(path.join(repo.root, ".cotenant"))).toBe(false);
  });

  it("a current directory that cannot be read, or is gone", async () => {
    giveTo(NOBODY, repo.root);
    repo.write("closed/a.ts");
    fs.chmodSync(path.join(repo.root, "closed"), 0);
    const script = `cd ${repo.root}/closed && exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups "$@"`;
    const status = [process.execPath, path.join(program, "bin/cotenant"), "status"];
    const env = { HOME: path.join(room, "home"), GIT_CONFIG_GLOBAL: undefined };
    const closed = await run(["/bin/sh", "-c", script, "sh", ...status], { cwd: repo.root, env });
    expect(closed.status).toBe(10);
    expectNoInnards(closed);

    const leave = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"';
    const gone = await run(["/bin/sh", "-c", leave, "sh", ...status], { cwd: repo.root, env });
    expectRefused(gone, 10, "E_NOT_A_REPO");
  });

  it("a worktree that cannot be written", async () => {
    giveTo(NOBODY, repo.root);
    fs.chmodSync(repo.root, 0o555);
    const before = repo.picture();
    expectRefused(await as(NOBODY, "init"), 10, "E_PERMISSION");
    expect(repo.picture()).toEqual(before);
    const created = await as(NOBODY, "issue", "create", "--title", "t");
    expectRefused(created, 10, "E_PERMISSION");
    expect(created.stderr).toContain(`${repo.root}/.cotenant`);
    // Leases need nothing of it.
    for (const command of ["worktree init", "lock acquire b.ts"])
      expect((await as(NOBODY, ...command.split(" "))).status).toBe(0);
  });

  it("a repository shared with the group works for all of it, but for secrets", async () => {
    trustEverywhere();
    repo.git("config", "core.sharedRepository", "group");
    giveTo(NOBODY, repo.root);
    for (const entry of [".", ...fs.readdirSync(repo.root, { recursive: true, encoding: "utf8" })]) {
      const stat = fs.statSync(path.join(repo.root, entry));
      fs.chmodSync(path.join(repo.root, entry), stat.isDirectory() ? 0o2775 : 0o664);
    }
    const mine = (await as(NOBODY, "lock", "acquire", "a.ts", "--json", "--agent-id", "agent:one")).lease;
    const other = ["--json", "--agent-id", "agent:two"];
    expectJsonRefused(await as(SOMEBODY, "lock", "acquire", "a.ts", ...other), 1, "E_LOCK_CONFLICT");
    const theirs = (await as(SOMEBODY, "lock", "acquire", "b.ts", ...other)).lease;
    expect(theirs.fencing_token).toBeGreaterThan(mine.fencing_token);
    expect((await as(NOBODY, "lock", "renew", "a.ts", "--json", "--agent-id", "agent:one")).status).toBe(0);
    expect((await as(SOMEBODY, "gc", "--compact", ...other)).status).toBe(0);
    expect((await as(NOBODY, "lock", "status", "--json")).data.leases).toHaveLength(2);
    expect((await as(NOBODY, "lock", "release", "a.ts", "--json", "--agent-id", "agent:one")).status).toBe(0);
    const stolen = await as(NOBODY, "lock", "release", "b.ts", ...other);
    expect(stolen.status).toBe(10);
    expectJsonRefused(stolen, 10, "E_PERMISSION");
  });
});
