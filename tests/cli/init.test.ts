import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { gitInFront } from "../support/git-in-front";
import { oneIn } from "../support/one-in";
import { PROGRAM } from "../support/program";
import { expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

describe("init", () => {
  it("makes .cotenant/, says what to do next, and touches nothing else", async () => {
    repo.write("README.md");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "first");
    const ran = await repo.run("agent:a", "init");
    expect(ran.status).toBe(0);
    expect(ran.stdout).toMatch(/next:\n {2}git add .+\n(?: {2}cotenant .+\n)+/);
    const [, commit] = /^ {2}(git add .+?) {2,}/m.exec(ran.stdout) ?? [];
    expect(repo.git("status", "--porcelain", "--untracked-files=all").trim().split("\n").sort()).toEqual([
      "?? .cotenant/.gitattributes",
      "?? .cotenant/.gitignore",
      "?? .cotenant/config.toml",
    ]);
    const config = fs.readFileSync(path.join(repo.root, ".cotenant/config.toml"), "utf8");
    expect(config).toContain("[coordination]");
    expect(config.split("\n").filter((line) => /^\w/.test(line))).toEqual([]);
    execFileSync("sh", ["-c", commit!], { cwd: repo.root, stdio: "ignore" });
    expect(repo.git("ls-files", ".cotenant").trim().split("\n")).toHaveLength(3);
    expect((await repo.runHere("agent:a", "init")).stdout).not.toContain("git add");
  });

  it("twice changes nothing", async () => {
    await repo.prepare("agent:a", "init");
    const before = repo.picture();
    const again = await repo.ask("agent:b", "init");
    expect(again.data["created"]).toEqual([]);
    expect((await repo.runHere("agent:a", "init")).stdout).toContain("nothing changed");
    expect(repo.picture()).toEqual(before);
  });

  it("keeps what a person wrote, and completes what a first command left", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a.ts");
    const worktree = (await repo.askHere("agent:a", "worktree", "info")).data.worktree.worktree_id;
    repo.write(".cotenant/config.toml", "[coordination]\ndefault_ttl_secs = 120\n");
    repo.write(".cotenant/.gitattributes", "*.png binary");
    const { data } = await repo.ask("agent:a", "init");
    expect(data.worktree.worktree_id).toBe(worktree);
    expect(fs.readFileSync(path.join(repo.root, ".cotenant/config.toml"), "utf8")).toContain("= 120");
    expect(fs.readFileSync(path.join(repo.root, ".cotenant/.gitattributes"), "utf8")).toMatch(
      /^\*\.png binary\n\*\.jsonl merge=union\nissues\/\*\/issue\.json merge=cotenant-issue\n$/,
    );
    await repo.prepare("human:me", "trust");
    expect((await repo.askHere("agent:a", "lock", "acquire", "b.ts")).lease.ttl_secs).toBe(120);
    expect((await repo.askHere("agent:a", "lock", "status")).data.leases).toHaveLength(2);
  });

  it("adds to somebody's .gitattributes, and changes no byte, line end or mode of it", async () => {
    const file = path.join(repo.root, ".cotenant/.gitattributes");
    const theirs = Buffer.from("\xef\xbb\xbf# caf\xe9\r\n*.jsonl merge=union\r\n*.bin -diff", "latin1");
    fs.mkdirSync(path.dirname(file));
    fs.writeFileSync(file, theirs, { mode: 0o600 });
    expect((await repo.ask("agent:a", "init")).data["created"]).toContain(".cotenant/.gitattributes");
    const wanted = Buffer.concat([theirs, Buffer.from("\r\nissues/*/issue.json merge=cotenant-issue\r\n")]);
    expect(fs.readFileSync(file).toString("latin1")).toBe(wanted.toString("latin1"));
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    const asked = repo.git(
      "check-attr",
      "merge",
      "--",
      ".cotenant/issues/x/issue.json",
      ".cotenant/issues/x/a.jsonl",
    );
    expect(asked.match(/merge: .*/g)).toEqual(["merge: cotenant-issue", "merge: union"]);
    const before = repo.picture();
    expect((await repo.askHere("agent:a", "init")).data["created"]).toEqual([]);
    expect(repo.picture()).toEqual(before);
  });

  it("registers the merge driver once for all worktrees, and anew when the program has moved", async () => {
    const other = repo.addWorktree("other");
    expect((await other.ask("agent:a", "init")).data["merge_driver"]).toBe(true);
    expect((await repo.askHere("agent:a", "init")).data["merge_driver"]).toBe(false);
    const command = repo.git("config", "--local", "merge.cotenant-issue.driver");
    expect(command).toContain(PROGRAM);
    repo.git("config", "merge.cotenant-issue.driver", command.trimEnd().replaceAll(PROGRAM, "/elsewhere"));
    expect((await repo.askHere("agent:a", "init")).data["merge_driver"]).toBe(true);
    expect(repo.git("config", "--get-all", "merge.cotenant-issue.driver")).toBe(command);
  });

  it("several at once register it once, while somebody has Git's configuration locked", async () => {
    const lock = path.join(repo.root, ".git/config.lock");
    fs.writeFileSync(lock, "");
    // Let go at the ninth attempt, however long that takes; once, for after that it may be Git's own.
    const room = scratch();
    const tries = path.join(room, "tries");
    const env = gitInFront(
      room,
      `case "$*" in *--replace-all*) echo >>${tries}`,
      `  [ "$(wc -l <${tries})" -lt 9 ] || { mkdir ${room}/once 2>/dev/null && rm -f ${lock}; } ;;`,
      "esac",
    );
    const all = ["a", "b", "c"].map((name) => repo.askWith(env, `agent:${name}`, "init"));
    for (const ran of await Promise.all(all)) expect(ran.status, `${ran}`).toBe(0);
    expect(repo.git("config", "--get-all", "merge.cotenant-issue.driver").trim().split("\n")).toHaveLength(1);
  });

  it("says what to do when Git's configuration cannot be changed", async () => {
    fs.writeFileSync(path.join(repo.root, ".git/config.lock"), "");
    const ran = await repo.run("agent:a", "init");
    expectRefused(ran, 10, "E_GIT");
    expect(ran.stderr).toMatch(/could not lock config file .+\n {2}next: .+ remove \S+\/\.git\/config\.lock/);
  });

  it("--enforce sets the mode", async () => {
    await repo.ask("agent:a", "init", "--enforce", "warn");
    expect(fs.readFileSync(path.join(repo.root, ".cotenant/config.toml"), "utf8")).toMatch(
      /^enforce_leases = "warn"$/m,
    );
    expect((await repo.askHere("agent:a", "status")).status).toBe(0);
  });

  it("needs nobody's name", async () => {
    expect((await repo.ask("", "init")).status).toBe(0);
  });
});

/** Modes of everything below the control plane, by path. */
function modes(control: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const entry of [".", ...fs.readdirSync(control, { recursive: true, encoding: "utf8" })]) {
    const stat = fs.statSync(path.join(control, entry));
    found.set(entry, `${stat.isDirectory() ? "d" : "f"} ${(stat.mode & 0o7777).toString(8)}`);
  }
  return found;
}

/** Everything that makes files: claims, locks, a waiter, a heartbeat, compaction, the flat index. */
async function use(umask: string): Promise<void> {
  const usual = process.umask(Number.parseInt(umask, 8));
  try {
    expect((await repo.ask("agent:a", "init")).status).toBe(0);
    const id = await repo.issue("t");
    await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("agent:a", "claim", "heartbeat", id);
    const keys = ["src/a.ts", "--dir", "lib", "--resource", "db"];
    expect((await repo.ask("agent:a", "lock", "acquire", ...keys)).status).toBe(0);
    const waiter = await repo.ask("agent:b", "lock", "acquire", "lib/b.ts", "--wait", "--timeout", "0");
    expect(waiter.status, `${waiter}`).toBe(12);
    await repo.prepare("agent:a", "gc", "--compact");
    expect((await repo.ask("agent:a", "gc")).status).toBe(0);
    await repo.prepare("agent:a", "lock", "acquire", "src/c.ts");
  } finally {
    process.umask(usual);
  }
}

describe("the control plane", () => {
  it.each(["000", "022", "077"])("is private: 0700 and 0600, whatever the umask (%s)", async (umask) => {
    await use(umask);
    const open = [...modes(repo.control)].filter(([, mode]) => mode !== "d 700" && mode !== "f 600");
    expect(open).toEqual([]);
    expect(modes(repo.control).size).toBeGreaterThan(15);
  });

  it.each(["000", "022", "077"])(
    "is the group's with core.sharedRepository, but for secrets (%s)",
    async (umask) => {
      repo.git("config", "core.sharedRepository", "group");
      await use(umask);
      for (const [file, mode] of modes(repo.control)) {
        const isSecret = file.startsWith("secrets/");
        const isShelf = file === "secrets";
        const wanted = isShelf
          ? ["d 2770", "d 3770"]
          : isSecret
            ? ["d 700", "d 2700", "f 600"]
            : ["d 2770", "f 660"];
        expect(wanted, `${file} is ${mode}`).toContain(mode);
      }
    },
  );
});
