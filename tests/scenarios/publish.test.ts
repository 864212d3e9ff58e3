import { execFileSync, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { keptScratch } from "../docs/kept-scratch";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Running, until } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(5);

const MESSAGE = ["--message", "Do it"] as const;

/** A repository with a few files, on main. */
function withFiles(where?: string): TestRepo {
  const repo = TestRepo.make(where);
  for (const file of ["src/a.ts", "src/b.ts"]) repo.write(file, `${file}: one\ntwo\nthree\nfour\n`);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

/** What nobody but its owner may move: HEAD, the index, and every file of the working tree. */
function shared(repo: TestRepo): Record<string, string> {
  const files = fs
    .readdirSync(repo.root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !path.relative(repo.root, entry.parentPath).startsWith(".git"))
    .filter((entry) => !path.relative(repo.root, entry.parentPath).startsWith(".cotenant"))
    .map((entry) => path.join(entry.parentPath, entry.name));
  const own = [".git/HEAD", ".git/index", ".git/refs/heads/main"].map((name) => path.join(repo.root, name));
  return Object.fromEntries(
    [...files, ...own].map((file) => [path.relative(repo.root, file), fs.readFileSync(file, "base64")]),
  );
}

function refs(repo: TestRepo): string {
  return repo.git("for-each-ref", "--format=%(refname) %(objectname)");
}

function put(name: string, content: string): string {
  const file = path.join(scratch(), "content");
  fs.writeFileSync(file, content);
  return `${name}=${file}`;
}

const show = (repo: TestRepo, at: string) => repo.git("show", at);

describe("S49: two agents, two branches, one checkout", () => {
  it("both commits land; shared index, HEAD and working tree are untouched", async () => {
    const repo = withFiles();
    repo.write("src/b.ts", "staged by somebody\n");
    repo.git("add", "src/b.ts");
    repo.write("src/b.ts", "and edited since\n");
    await repo.prepare("agent:a", "lock", "acquire", "src/a.ts");
    await repo.prepare("agent:b", "lock", "acquire", "src/new.ts");
    const before = shared(repo);
    const [one, two] = await Promise.all([
      repo.ask("agent:a", "publish", "--branch", "topic/a", ...MESSAGE, "--put", put("src/a.ts", "by a\n")),
      repo.ask("agent:b", "publish", "--branch", "topic/b", ...MESSAGE, "--put", put("src/new.ts", "by b\n")),
    ]);
    expect(shared(repo)).toEqual(before);
    expect(show(repo, "topic/a:src/a.ts")).toBe("by a\n");
    expect(show(repo, "topic/b:src/new.ts")).toBe("by b\n");
    expect(repo.git("rev-parse", "topic/a").trim()).toBe(one.data["commit"]);
    expect(repo.git("rev-parse", "topic/b^").trim()).toBe(repo.git("rev-parse", "main").trim());
    expect(repo.git("log", "-1", "--format=%(trailers:key=Cotenant-Agent,valueonly)", "topic/b").trim()).toBe(
      "agent:b",
    );
    expect(two.data["paths"]).toEqual([{ path: "src/new.ts", change: "added", mode: "100644" }]);
    expect(repo.git("fsck", "--strict", "--no-dangling").trim()).toBe("");
    const types = repo.log().map((line) => line.event_type);
    expect(types.filter((type) => type === "publish.intended")).toHaveLength(2);
    expect(types.filter((type) => type === "publish.committed")).toHaveLength(2);
  });
});

describe("S50: twenty agents, one branch, disjoint files", () => {
  it("makes twenty commits, linear, none lost", async () => {
    const repo = withFiles();
    const agents = Array.from({ length: 20 }, (_, n) => `agent:n${n}`);
    for (const [n, agent] of agents.entries()) await repo.prepare(agent, "lock", "acquire", `src/${n}.ts`);
    const ran = await Promise.all(
      agents.map((agent, n) => {
        const content = put(`src/${n}.ts`, `${n}\n`);
        const args = ["publish", "--branch", "topic/all", ...MESSAGE, "--put", content, "--json"];
        return repo.start(agent, args, { mostMs: 110_000, env: { COTENANT_PUBLISH_WAIT_SECS: "100" } }).done;
      }),
    );
    const commits = ran.map(({ data }) => data["commit"] as string);
    const line = repo.git("rev-list", "--first-parent", "main..topic/all").trim().split("\n");
    expect([...line].sort()).toEqual([...commits].sort());
    expect(repo.git("rev-list", "--merges", "topic/all").trim()).toBe("");
    for (const n of agents.keys()) expect(show(repo, `topic/all:src/${n}.ts`)).toBe(`${n}\n`);
    expect(repo.git("fsck", "--strict", "--no-dangling").trim()).toBe("");
    expect((await repo.prepare("agent:x", "status")).leases.map(({ key }) => key)).not.toContain(
      "ref:refs/heads/topic/all",
    );
  }, 120_000);
});

describe("S51: the ref moved", () => {
  it("under a conflicting change: clean failure naming the paths, nothing moved", async () => {
    const repo = withFiles();
    const base = repo.git("rev-parse", "main").trim();
    await repo.prepare("agent:a", "lock", "acquire", "--dir", "src");
    const publish = (content: string) => {
      const args = ["--branch", "topic/x", "--base", base, ...MESSAGE, "--put", put("src/a.ts", content)];
      return repo.ask("agent:a", "publish", ...args);
    };
    expect((await publish("src/a.ts: ONE\ntwo\nthree\nfour\n")).status).toBe(0);
    const [before, files] = [refs(repo), shared(repo)];
    const { error, status } = await publish("second\n");
    expect(status).toBe(1);
    expect(error.code).toBe("E_PUBLISH_CONFLICT");
    expect(error.data["paths"]).toEqual(["src/a.ts"]);
    expect(refs(repo)).toBe(before);
    expect(shared(repo)).toEqual(files);
    expect(fs.readdirSync(path.join(repo.control, "agent-index"))).toEqual([]);
    // Elsewhere in the same file: merged without a checkout.
    const { data } = await publish("src/a.ts: one\ntwo\nthree\nFOUR\n");
    expect(data["merged"]).toBe(true);
    expect(show(repo, "topic/x:src/a.ts")).toBe("src/a.ts: ONE\ntwo\nthree\nFOUR\n");
    expect(repo.git("rev-list", "--count", "main..topic/x").trim()).toBe("2");
    expect(shared(repo)).toEqual(files);
  });

  it("by somebody's plain Git, while we publish: the commit goes on top of theirs", async () => {
    const repo = withFiles();
    repo.git("branch", "topic/x");
    const theirs = repo.git("commit-tree", "main^{tree}", "-p", "topic/x", "-m", "theirs").trim();
    await repo.prepare("agent:a", "lock", "acquire", "src/a.ts");
    const base = repo.git("rev-parse", "topic/x").trim();
    repo.git("update-ref", "refs/heads/topic/x", theirs);
    const args = ["--branch", "topic/x", "--base", base, ...MESSAGE, "--put", put("src/a.ts", "mine\n")];
    const { data } = await repo.ask("agent:a", "publish", ...args);
    expect(data["parent"]).toBe(theirs);
  });
});

describe("S52: refused, and nothing moved:", () => {
  const PEM = execFileSync("openssl", ["genpkey", "-algorithm", "ed25519"], { encoding: "utf8" });
  const MINE = ["src/a.ts", "src/.env.local", ".gitmodules", "src/.gitmodules"];
  // One for all: nothing moves.
  const repo = withFiles(path.join(keptScratch("cotenant-refused"), "repo"));
  const taken = Promise.all([
    repo.prepare("agent:a", "lock", "acquire", ...MINE, "--ttl", "7200"),
    repo.prepare("agent:b", "lock", "acquire", "src/theirs.ts", "--ttl", "7200"),
  ]);

  it.each<[string, string, number, () => string[]]>([
    ["an unleased path", "E_PATH_NOT_LEASED", 6, () => ["--put", put("src/b.ts", "x")]],
    ["somebody else's path", "E_PATH_NOT_LEASED", 6, () => ["--put", put("src/theirs.ts", "x")]],
    ["main", "E_PROTECTED_REF", 9, () => ["--branch", "main", "--put", put("src/a.ts", "x")]],
    [
      "main, spelled otherwise",
      "E_PROTECTED_REF",
      9,
      () => ["--branch", "refs/heads/Main", "--put", put("src/a.ts", "x")],
    ],
    [
      "a private key in a blob",
      "E_SECRET_FOUND",
      9,
      () => ["--put", put("src/a.ts", `const key = \`\n${PEM}\`;\n`)],
    ],
    [
      "a token in a blob",
      "E_SECRET_FOUND",
      9,
      () => ["--put", put("src/a.ts", `token: ghp_${"a1B2".repeat(9)}\n`)],
    ],
    ["a file of secrets", "E_SECRET_FOUND", 9, () => ["--put", put("src/.env.local", "A=1\n")]],
    [".. in a patch", "E_PATH_ESCAPE", 9, () => ["--patch", patch("../escaped")]],
    [".git in a patch", "E_PATH_ESCAPE", 9, () => ["--patch", patch(".git/config")]],
    [".GIT in a patch", "E_PATH_ESCAPE", 9, () => ["--patch", patch("src/.GIT/config")]],
    ["an absolute path", "E_PATH_ESCAPE", 9, () => ["--put", put("/etc/passwd", "x")]],
    [
      "a link out of the tree",
      "E_PATH_ESCAPE",
      9,
      () => ["--changes", changes({ op: "put", path: "src/a.ts", mode: "120000", content: "../../etc" })],
    ],
    [
      "a submodule",
      "E_POLICY",
      9,
      () => ["--put", put("src/.gitmodules", "x"), "--put", put(".gitmodules", "x")],
    ],
  ])("%s", async (_, code, exit, args) => {
    await taken;
    const [before, files, objects] = [refs(repo), shared(repo), count(repo)];
    const given = args();
    const branch = given.includes("--branch") ? [] : ["--branch", "topic/x"];
    const { error, status } = await repo.askHere("agent:a", "publish", ...branch, ...MESSAGE, ...given);
    expect([error.code, status]).toEqual([code, exit]);
    expect(refs(repo)).toBe(before);
    expect(shared(repo)).toEqual(files);
    // Not even an object that nobody refers to: a secret would still be there to be read.
    expect(count(repo)).toBe(objects);
  });

  it("says who holds what somebody else has leased", async () => {
    await taken;
    const args = ["--branch", "topic/x", ...MESSAGE, "--put", put("src/theirs.ts", "x")];
    const { error } = await repo.ask("agent:a", "publish", ...args);
    expect(error.message).toContain("held by agent:b");
    expect(error.data["paths"]).toMatchObject([{ path: "src/theirs.ts", holder: "agent:b" }]);
  });
});

describe("S53: the tree is exactly right", () => {
  it.each(["sha1", "sha256"])(
    "with deletes, renames, modes, links, binary and empty files, CRLF, odd names (%s)",
    async (format) => {
      const repo = TestRepo.make(path.join(scratch(), "repo"), format);
      const files: Record<string, string | Buffer> = {
        "gone.txt": "gone\n",
        "old/name.txt": "content that is long enough to be a rename\n".repeat(5),
        "script.sh": "#!/bin/sh\n",
        "binary.bin": Buffer.from([0, 1, 2, 255, 254, 0]),
        "crlf.txt": "one\r\ntwo\r\n",
        "empty.txt": "",
        "\u00fcber/na\u00efve file.txt": "ja\n",
        'quote"tab\there.txt': "odd\n",
      };
      const write = (name: string, content: string | Buffer) => {
        fs.mkdirSync(path.dirname(path.join(repo.root, name)), { recursive: true });
        fs.writeFileSync(path.join(repo.root, name), content);
      };
      for (const [name, content] of Object.entries(files)) write(name, content);
      fs.symlinkSync("script.sh", path.join(repo.root, "link"));
      repo.git("add", "--all");
      repo.git("commit", "--quiet", "--message", "first");
      // What it should come to, made with Git alone, in a checkout of its own.
      repo.git("rm", "--quiet", "gone.txt");
      repo.git("mv", "old", "new");
      fs.chmodSync(path.join(repo.root, "script.sh"), 0o755);
      write("binary.bin", Buffer.from([9, 0, 9, 0, 255]));
      write("crlf.txt", "one\r\nTWO\r\n");
      write("empty2.txt", "");
      write("\u00fcber/na\u00efve file.txt", "doch\n");
      write("deep/er/and/deeper.txt", "x\n");
      fs.rmSync(path.join(repo.root, "link"));
      fs.symlinkSync("crlf.txt", path.join(repo.root, "link"));
      repo.git("add", "--all");
      const wanted = repo.git("write-tree").trim();
      const diff = spawnSync("git", ["diff", "--cached", "--binary", "-M"], { cwd: repo.root }).stdout;
      const file = path.join(scratch(), "all.patch");
      fs.writeFileSync(file, diff);
      await repo.prepare("agent:a", "lock", "acquire", "--dir", ".");
      const treeOf = (branch: string) => repo.git("rev-parse", `${branch}^{tree}`).trim();
      await repo.ask("agent:a", "publish", "--branch", "by/patch", ...MESSAGE, "--patch", file);
      expect(treeOf("by/patch")).toBe(wanted);
      await repo.prepare("agent:a", "publish", "--branch", "by/worktree", ...MESSAGE, "--from-worktree", ".");
      expect(treeOf("by/worktree")).toBe(wanted);
      const base64 = (name: string) => fs.readFileSync(path.join(repo.root, name)).toString("base64");
      const same = (name: string) => ({ op: "put", path: name, content: base64(name), encoding: "base64" });
      const list = changes(
        { op: "delete", path: "gone.txt" },
        { op: "rename", from: "old", to: "new" },
        { ...same("script.sh"), mode: "100755" },
        same("binary.bin"),
        same("crlf.txt"),
        same("empty2.txt"),
        same("\u00fcber/na\u00efve file.txt"),
        same("deep/er/and/deeper.txt"),
        { op: "put", path: "link", mode: "120000", content: "crlf.txt" },
      );
      feed(repo, list, "--branch", "by/changes", ...MESSAGE, "--changes", "-");
      expect(treeOf("by/changes")).toBe(wanted);
      expect(repo.git("fsck", "--strict", "--no-dangling").trim()).toBe("");
    },
    60_000,
  );

  it("from several patches, one upon the other, as format-patch makes them", async () => {
    const repo = withFiles();
    const first = repo.git("rev-parse", "HEAD").trim();
    for (const n of [1, 2, 3]) {
      repo.write("src/a.ts", `${n}\n`);
      repo.write(`src/n${n}.ts`);
      repo.git("add", "--all");
      repo.git("commit", "--quiet", "--message", `change ${n}`);
    }
    const directory = scratch();
    repo.git("format-patch", "--quiet", "--output-directory", directory, first);
    const [one, ...others] = fs
      .readdirSync(directory)
      .sort()
      .map((name) => path.join(directory, name));
    await repo.prepare("agent:a", "lock", "acquire", "--dir", "src");
    const patches = ["-", ...others].flatMap((name) => ["--patch", name]);
    feed(repo, one!, "--branch", "topic/x", "--base", first, ...MESSAGE, ...patches);
    expect(repo.git("rev-parse", "topic/x^{tree}")).toBe(repo.git("rev-parse", "main^{tree}"));
  });
});

describe("S53a: a branch that is checked out anywhere", () => {
  it("is refused: here, in another worktree, in one that is gone, while it is rebased or bisected, by another name", async () => {
    const repo = withFiles();
    for (const name of ["there", "gone", "here", "rebased", "bisected"]) repo.git("branch", `topic/${name}`);
    repo.git("worktree", "add", "--quiet", "../there", "topic/there");
    repo.git("worktree", "add", "--quiet", "../gone", "topic/gone");
    fs.rmSync(path.join(repo.root, "../gone"), { recursive: true });
    repo.git("switch", "--quiet", "topic/here");
    repo.git("symbolic-ref", "refs/heads/topic/alias", "refs/heads/main");
    repo.git("worktree", "add", "--quiet", "../rebased", "topic/rebased");
    const rebased = repo.at("../rebased");
    for (const [content, where] of [
      ["mine", ["switch", "--quiet", "--detach", "main"]],
      ["theirs", ["rebase", "HEAD", "topic/rebased"]],
    ] as const) {
      rebased.write("src/a.ts", `${content}\n`);
      rebased.git("commit", "--quiet", "--all", "--message", content);
      // The second one stops at a conflict.
      spawnSync("git", [...where], { cwd: rebased.root });
    }
    expect(rebased.git("branch", "--show-current").trim()).toBe("");
    repo.git("worktree", "add", "--quiet", "../bisected", "topic/bisected");
    repo.at("../bisected").git("bisect", "start");
    repo.at("../bisected").git("checkout", "--quiet", "--detach");
    await repo.prepare("agent:a", "lock", "acquire", "src/b.ts");
    const before = refs(repo);
    for (const [name, why] of [
      ["there", "is checked out"],
      ["gone", "is checked out"],
      ["here", "is checked out"],
      ["rebased", "is being rebased"],
      ["bisected", "is being bisected"],
      ["alias", "only stands for refs/heads/main"],
    ]) {
      const args = ["--branch", `topic/${name}`, ...MESSAGE, "--put", put("src/b.ts", "x")];
      const how = name === "there" ? "ask" : "askHere";
      const { error, status } = await repo[how]("agent:a", "publish", ...args);
      expect([error.code, status], name).toEqual(["E_PROTECTED_REF", 9]);
      expect(error.message).toContain(`topic/${name} ${why}`);
    }
    expect(refs(repo)).toBe(before);
  });
});

function patch(name: string): string {
  const file = path.join(scratch(), "bad.patch");
  fs.writeFileSync(
    file,
    `diff --git a/${name} b/${name}\nnew file mode 100644\n--- /dev/null\n+++ b/${name}\n@@ -0,0 +1 @@\n+x\n`,
  );
  return file;
}

function changes(...list: readonly Record<string, unknown>[]): string {
  const file = path.join(scratch(), "changes.json");
  fs.writeFileSync(file, JSON.stringify({ changes: list }));
  return file;
}

/** By agent:a, with a file on standard input. */
function feed(repo: TestRepo, file: string, ...args: string[]): void {
  const env = { ...process.env, COTENANT_AGENT_ID: "agent:a" };
  execFileSync(PROGRAM, ["publish", ...args], { cwd: repo.root, env, input: fs.readFileSync(file) });
}

function count(repo: TestRepo): string {
  return repo.git("count-objects");
}

/** `npm run verify` kills at every system call (publish crash), and hundreds at work (publishers). */
const ROUNDS = 6;

describe("S54: killed at any moment of a publish, the Git child too", () => {
  it("the ref is old or new, never anything else, and the next publish works", async () => {
    const repo = withFiles();
    for (const agent of ["agent:a", "agent:b"])
      await repo.prepare(agent, "lock", "acquire", `src/${agent.slice(-1)}.ts`, "--ttl", "3600");
    for (let round = 0; round < ROUNDS; round++) {
      const before = tip(repo);
      const content = put("src/a.ts", `round ${round}\n`);
      const args = ["publish", "--branch", "topic/x", ...MESSAGE, "--put", content, "--json"];
      const running = repo.start("agent:a", args);
      // Somewhere in the middle: the log tells how far it has got, and chance how much further it gets.
      const intended = intents(repo);
      await until("it is under way", () => isOver(running) || intents(repo) > intended);
      const gits = children(running.pid);
      const victim = round % 2 === 0 ? running.pid : (gits[round % Math.max(1, gits.length)] ?? running.pid);
      try {
        process.kill(victim, "SIGKILL");
      } catch {
        // It was faster.
      }
      const { status } = await running.done;
      const after = tip(repo);
      if (after !== before) {
        expect(show(repo, "topic/x:src/a.ts")).toBe(`round ${round}\n`);
        expect(repo.git("rev-parse", "topic/x^").trim()).toBe(before ?? repo.git("rev-parse", "main").trim());
      }
      if (status === 0) expect(after).not.toBe(before);
      const next = put("src/b.ts", `next ${round}\n`);
      const other = await repo.ask("agent:b", "publish", "--branch", "topic/x", ...MESSAGE, "--put", next);
      expect(other.data["changed"]).toBe(true);
      expect(repo.git("fsck", "--strict", "--no-dangling").trim()).toBe("");
    }
  }, 240_000);
});

const ended = new WeakSet<Running>();

function isOver(running: Running): boolean {
  void running.done.then(() => ended.add(running));
  return ended.has(running);
}

function tip(repo: TestRepo): string | null {
  const { status, stdout } = spawnSync("git", ["rev-parse", "--verify", "--quiet", "topic/x"], {
    cwd: repo.root,
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : null;
}

function intents(repo: TestRepo): number {
  return repo.logText().split('"publish.intended"').length;
}

function children(pid: number): number[] {
  try {
    const text = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text
      .split(" ")
      .filter((one) => one !== "")
      .map(Number);
  } catch {
    return [];
  }
}
