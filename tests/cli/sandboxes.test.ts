import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CotenantError } from "../../src/errors/cotenant-error";
import { explainSandbox } from "../../src/identity/sandbox";
import { nodePlatform } from "../../src/platform/node/node";
import { needTool } from "../house/need-tool";
import { GuardedAgent } from "../support/guard";
import { runHere } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const ROOT = path.resolve(import.meta.dirname, "../..");
const PAGE = fs.readFileSync(path.join(ROOT, "docs/SANDBOXES.md"), "utf8");

const mounted: string[] = [];
afterEach(() => {
  for (const where of mounted.splice(0)) execFileSync("umount", ["--lazy", where]);
});

/** As sandboxes do it: the worktree can be written, the Git directory beside it cannot. */
function closeGitDirectory(directory: string): void {
  needTool("mount");
  execFileSync("mount", ["--bind", directory, directory]);
  mounted.push(directory);
  execFileSync("mount", ["--options", "remount,ro,bind", directory]);
}

/** The variable by which each is known, and a part of what its users must write. */
const HARNESSES: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
  ["claude", { CLAUDECODE: "1" }, "allowWrite"],
  ["codex", { CODEX_SANDBOX: "seatbelt" }, "writable_roots"],
  ["cursor", { CURSOR_AGENT: "1" }, "additionalReadwritePaths"],
  ["copilot", { COPILOT_CLI: "1" }, "/sandbox"],
  ["gemini", { GEMINI_CLI: "1" }, "SANDBOX_MOUNTS"],
  ["a person's shell", {}, "read-only"],
];

/** Only root can mount, and root itself is stopped by nothing less. */
describe.runIf(process.getuid?.() === 0)("a Git directory that a sandbox keeps read-only", () => {
  let main: TestRepo;
  let worktree: TestRepo;
  beforeEach(async () => {
    main = TestRepo.make();
    main.write("a.txt");
    main.git("add", "--all");
    main.git("commit", "--quiet", "--message", "first");
    await main.prepare("agent:a", "init");
    worktree = main.addWorktree("worktree");
    await worktree.prepare("agent:a", "worktree", "init");
  });
  const common = () => path.join(main.root, ".git");
  const at = (repo: TestRepo, env: Record<string, string>, ...args: string[]) =>
    runHere(args, {
      cwd: repo.root,
      home: process.env["HOME"]!,
      env: { COTENANT_AGENT_ID: "agent:a", ...env },
    });

  it("is named, in a linked worktree the one that all share, with the setting of the harness at hand", async () => {
    closeGitDirectory(common());
    for (const [name, env, setting] of HARNESSES) {
      const ran = await at(worktree, env, "lock", "acquire", "a.txt");
      expect(ran.status, name).toBe(10);
      expect(ran.stderr, name).toContain("the Git directory is read-only here, as in a sandbox");
      expect(ran.stderr, name).toContain(`make ${common()} writable`);
      expect(ran.stderr, name).toContain(setting);
      expect(ran.stderr).not.toContain("make room");
      expect(PAGE, "the page has it too").toContain(setting);
    }
    const { error } = await at(main, { CLAUDECODE: "1" }, "lock", "acquire", "a.txt", "--json");
    expect(error).toMatchObject({
      code: "E_DISK",
      data: { errno: "EROFS", writable: [common()], harness: "claude" },
    });
    expect((await at(worktree, {}, "status")).status).toBe(0);
    const publish = ["publish", "--branch", "work/x", "--message", "m"];
    for (const args of [
      ["--from-worktree", "a.txt"],
      ["--put", "a.txt=a.txt", "--dry-run"],
    ]) {
      const ran = await at(main, {}, ...publish, ...args);
      expect(ran.stderr, args[0]).toContain("the Git directory is read-only here, as in a sandbox");
    }
  });

  it("is reported by doctor, and by a guard that cannot decide", async () => {
    await main.prepare("agent:a", "config", "set", "guard.on_failure", "closed");
    closeGitDirectory(common());
    const { stdout } = await at(worktree, { CODEX_SANDBOX: "x" }, "doctor");
    expect(stdout).toMatch(/error +permissions +the Git directory is read-only here/);
    expect(stdout.split("is read-only here"), "once").toHaveLength(2);
    expect(stdout).toContain("writable_roots");
    const agent = new GuardedAgent(main, { session: "aaaaaaaa-0000-4000-8000-000000000000" });
    expect((await agent.write("a.txt")).stdout).toContain("is read-only here, as in a sandbox");
  });

  it("whose worktree alone is closed: that is what is named", async () => {
    closeGitDirectory(worktree.root);
    const ran = await at(worktree, {}, "issue", "create", "--title", "t", "--json");
    expect(ran.error.message).toContain("the worktree is read-only here");
    expect(ran.error.data["writable"]).toEqual([worktree.root]);
  });
});

describe("a refusal to write", () => {
  const place = () => {
    const root = scratch();
    fs.mkdirSync(path.join(root, ".git"));
    return { commonDir: path.join(root, ".git"), gitDir: path.join(root, ".git"), worktreeRoot: root };
  };
  const refused = (file: string, errno: string) =>
    new CotenantError("E_PERMISSION", "no permission", { data: { path: file, errno } });
  const platform = nodePlatform();
  const as = (user: string) => ({
    ...platform,
    processes: { ...platform.processes, self: () => ({ ...platform.processes.self(), user }) },
  });
  const explained = (file: string, errno: string, user: string, repository: ReturnType<typeof place>) =>
    explainSandbox(refused(file, errno), { platform: as(user) as typeof platform, env: {} }, repository);

  it("that owner and mode explain is no sandbox's", async () => {
    const repository = place();
    const file = path.join(repository.commonDir, "cotenant/locks/claims.lock");
    const mine = String(fs.statSync(repository.commonDir).uid);
    expect(await explained(file, "EACCES", mine, repository)).toMatchObject({
      message: expect.stringContaining("sandbox"),
      code: "E_PERMISSION",
    });
    expect(await explained(file, "EACCES", "4711", repository)).toMatchObject({ message: "no permission" });
    expect(await explained("/elsewhere/file", "EROFS", mine, repository)).toMatchObject({
      message: "no permission",
    });
    expect(await explained(file, "EIO", mine, repository)).toMatchObject({ message: "no permission" });
  });
});
