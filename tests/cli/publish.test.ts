import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import { createServer } from "node:net";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const A = "agent:a";

function withFiles(): TestRepo {
  const repo = TestRepo.make();
  for (const file of ["src/a.ts", "src/b.ts"]) repo.write(file, `${file}\n`);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

/** With a lease on everything. */
async function leased(): Promise<TestRepo> {
  const repo = withFiles();
  await repo.ask(A, "lock", "acquire", "--dir", ".");
  return repo;
}

function file(content: string): string {
  const name = path.join(scratch(), "content");
  fs.writeFileSync(name, content);
  return name;
}

const put = (name: string, content: string) => ["--put", `${name}=${file(content)}`];
const publish = (repo: TestRepo, ...args: string[]) =>
  repo.ask(A, "publish", "--branch", "work/x", "--message", "Do it", ...args);
const commits = (repo: TestRepo) => Number(repo.git("rev-list", "--count", "main..work/x").trim());
const show = (repo: TestRepo, at: string) => repo.git("show", at);

function remoteOf(repo: TestRepo): string {
  const remote = path.join(scratch(), "remote.git");
  execFileSync("git", ["init", "--quiet", "--bare", remote]);
  repo.git("remote", "add", "origin", remote);
  repo.git("push", "--quiet", "origin", "main");
  return remote;
}

describe("publish, asked once more with the same id,", () => {
  it("answers as it did, and publishes nothing more", async () => {
    const repo = await leased();
    const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".replace(/^.{10}/, ulidTime());
    const first = await publish(repo, ...put("src/a.ts", "one\n"), "--request-id", id);
    const again = await publish(repo, ...put("src/a.ts", "two\n"), "--request-id", id);
    expect(again.data).toMatchObject({ replayed: true, changed: false, commit: first.data["commit"] });
    expect(commits(repo)).toBe(1);
    const other = await repo.ask(
      "agent:b",
      "publish",
      "--branch",
      "work/x",
      "--message",
      "m",
      ...put("src/a.ts", "x"),
      "--request-id",
      id,
    );
    expect(other.error.code).toBe("E_USAGE");
  });

  it("and what the branch has already is no new commit", async () => {
    const repo = await leased();
    const first = await publish(repo, ...put("src/a.ts", "one\n"));
    const again = await publish(repo, ...put("src/a.ts", "one\n"));
    expect(again.data).toMatchObject({
      changed: false,
      replayed: false,
      commit: first.data["commit"],
      paths: [],
    });
    expect(commits(repo)).toBe(1);
  });
});

describe("a lease that is over", () => {
  it("expired, evicted or handed on covers nothing any more, and says so", async () => {
    const repo = withFiles();
    await repo.ask(A, "lock", "acquire", "src/a.ts", "--ttl", "1");
    await until(
      "it has expired",
      async () => (await repo.ask("agent:x", "lock", "status")).data.leases.length === 0,
    );
    expect((await publish(repo, ...put("src/a.ts", "x"))).error.code).toBe("E_LOCK_EXPIRED");
    await repo.ask(A, "lock", "acquire", "src/a.ts");
    await repo.ask("human:h", "lock", "steal", "src/a.ts", "--reason", "urgent");
    const { error, status } = await publish(repo, ...put("src/a.ts", "x"));
    expect([error.code, status]).toEqual(["E_FENCING_MISMATCH", 8]);
  });

  it("is given back after the publish with --release, and only what covered it", async () => {
    const repo = withFiles();
    await repo.ask(A, "lock", "acquire", "src/a.ts", "other.txt");
    const { data } = await publish(repo, ...put("src/a.ts", "x"), "--release");
    expect((data["released"] as { key: string }[]).map(({ key }) => key)).toEqual(["file:src/a.ts"]);
    const left = (await repo.ask(A, "lock", "status")).data.leases.map(({ key }) => key);
    expect(left).toEqual(["file:other.txt"]);
  });

  it("of somebody else is used with its secret", async () => {
    const repo = withFiles();
    const { secret } = (await repo.ask("agent:b", "lock", "acquire", "src/a.ts", "--print-secret")).data;
    expect((await publish(repo, ...put("src/a.ts", "x"))).error.code).toBe("E_PATH_NOT_LEASED");
    const args = ["publish", "--branch", "work/x", "--message", "m", ...put("src/a.ts", "x")];
    expect((await repo.askWith({ COTENANT_SECRET: secret }, A, ...args)).status).toBe(0);
  });
});

describe("without leases (publish.require_leases = false)", () => {
  const OFF = { COTENANT_PUBLISH_REQUIRE_LEASES: "false" };
  const publishOff = (repo: TestRepo, ...args: string[]) =>
    repo.askWith(OFF, A, "publish", "--branch", "work/x", "--message", "m", ...args);

  it("a path must be on the branch as it is in the base: nothing is merged", async () => {
    const repo = withFiles();
    const base = repo.git("rev-parse", "main").trim();
    expect((await publishOff(repo, "--base", base, ...put("src/a.ts", "one\n"))).status).toBe(0);
    // Elsewhere in the tree is no conflict.
    expect((await publishOff(repo, "--base", base, ...put("src/b.ts", "one\n"))).status).toBe(0);
    const { error } = await publishOff(repo, "--base", base, ...put("src/a.ts", "src/a.ts\nmore\n"));
    expect(error.code).toBe("E_PUBLISH_CONFLICT");
    expect(error.data["paths"]).toEqual(["src/a.ts"]);
    expect(commits(repo)).toBe(2);
  });

  it("what somebody holds is still theirs", async () => {
    const repo = withFiles();
    await repo.ask("agent:b", "lock", "acquire", "src/a.ts");
    expect((await publishOff(repo, ...put("src/a.ts", "x"))).error.message).toContain("held by agent:b");
  });

  it("a committed configuration alone does not switch them off", async () => {
    const repo = withFiles();
    repo.write(".cotenant/config.toml", "[publish]\nrequire_leases = false\n");
    const { error, json } = await publish(repo, ...put("src/a.ts", "x"));
    expect(error.code).toBe("E_PATH_NOT_LEASED");
    expect(json.ok).toBe(false);
  });
});

describe("a change that says what it was made against", () => {
  const changes = (repo: TestRepo, blob: string | null) => {
    const name = file(
      JSON.stringify({ changes: [{ op: "put", path: "src/a.ts", content: "new\n", base_blob: blob }] }),
    );
    return publish(repo, "--changes", name);
  };

  it("is refused where that is not there any more", async () => {
    const repo = await leased();
    const blob = repo.git("rev-parse", "main:src/a.ts").trim();
    expect((await changes(repo, null)).error.code).toBe("E_PUBLISH_CONFLICT");
    expect((await changes(repo, blob)).status).toBe(0);
    expect((await changes(repo, blob)).error.code).toBe("E_PUBLISH_CONFLICT");
  });
});

describe("resources that stand for paths", () => {
  it("are taken with their paths, in one operation, and given back with them", async () => {
    const repo = withFiles();
    const { leases } = (await repo.ask(A, "lock", "acquire", "--resource", "workflows")).data;
    expect(leases.map(({ key }) => key)).toEqual(["resource:workflows", "dir:.github/workflows"]);
    expect((await repo.ask("agent:b", "lock", "acquire", ".github/workflows/ci.yml")).status).toBe(1);
    expect((await publish(repo, ...put(".github/workflows/ci.yml", "on: push\n"))).status).toBe(0);
    await repo.ask(A, "lock", "release", "--resource", "workflows");
    expect((await repo.ask("agent:b", "lock", "acquire", ".github/workflows/ci.yml")).status).toBe(0);
    // All or none: the name cannot be had while somebody has one of its paths.
    expect((await repo.ask(A, "lock", "acquire", "--resource", "workflows")).error.code).toBe(
      "E_LOCK_CONFLICT",
    );
    expect(repo.logOf("resource:workflows")).toHaveLength(2);
  });
});

describe("issues and what concerns everybody", () => {
  it("are covered by the claim, and by the scope, which is taken for it", async () => {
    const repo = withFiles();
    await repo.run(A, "init");
    const id = await repo.issue();
    const base = [`.cotenant/issues/${id}`, ".cotenant/events"].flatMap((name) => ["--from-worktree", name]);
    // New, and made by `issue create`: nobody's claim is needed.
    expect((await publish(repo, ...base)).status).toBe(0);
    await repo.ask("agent:b", "claim", "acquire", id);
    await repo.ask("agent:b", "issue", "update", id, "--state", "in_progress");
    expect((await publish(repo, ...base)).error.code).toBe("E_LOCK_NOT_HELD");
    const theirs = await repo.ask("agent:b", "publish", "--branch", "work/x", "--message", "m", ...base);
    expect(theirs.status).toBe(0);
    expect(repo.git("log", "-1", "--format=%(trailers:key=Cotenant-Issue,valueonly)", "work/x").trim()).toBe(
      id,
    );
    const config = await publish(repo, "--from-worktree", ".cotenant/config.toml");
    expect(config.status).toBe(0);
    const scope = repo.logOf("scope:config");
    expect(scope.map((line) => line.event_type)).toEqual(["claim.acquired", "claim.released"]);
  });
});

describe("publish.checks", () => {
  const check = (repo: TestRepo, line: string) =>
    repo.write(".cotenant/config.toml", `[publish]\nchecks = [${JSON.stringify(line)}]\n`);

  it("run only once they are trusted, on the commit that is to be published", async () => {
    const repo = await leased();
    check(repo, 'git show "$COTENANT_PUBLISH_COMMIT:src/a.ts" | grep -q fine');
    expect((await publish(repo, ...put("src/a.ts", "anything\n"))).status).toBe(0);
    await repo.run("human:h", "trust");
    const { error, status } = await publish(repo, ...put("src/a.ts", "something else\n"));
    expect([error.code, status]).toEqual(["E_CHECK_FAILED", 9]);
    expect(commits(repo)).toBe(1);
    const { data } = await publish(repo, ...put("src/a.ts", "fine\n"));
    expect(data["checks"]).toMatchObject([{ exit_status: 0 }]);
    expect(commits(repo)).toBe(2);
  });
});

describe("--dry-run", () => {
  it("shows the diff and what would refuse it, and writes nothing", async () => {
    const repo = await leased();
    const before = repo.picture();
    const { data } = await publish(repo, ...put("src/a.ts", "new\n"), "--dry-run");
    expect(data["would_publish"]).toBe(true);
    expect(data["diff"]).toContain("-src/a.ts\n+new\n");
    expect(repo.picture()).toEqual({ ...before, ".git/cotenant/agent-index": "700" });
    const refused = await repo.ask(
      "agent:b",
      "publish",
      "--branch",
      "main",
      "--message",
      "",
      ...put("src/a.ts", "x"),
      "--dry-run",
    );
    const checks = refused.json.data!["checks"] as { name: string; code: string | null }[];
    expect(Object.fromEntries(checks.map(({ name, code }) => [name, code]))).toMatchObject({
      branch: "E_PROTECTED_REF",
      message: "E_USAGE",
      leases: null,
    });
    expect(refused.status).toBe(9);
  });

  it("lets no control character reach the terminal", async () => {
    const repo = await leased();
    const ran = await repo.run(
      A,
      "publish",
      "--branch",
      "work/x",
      "--message",
      "m",
      ...put("src/a.ts", "\x1b[31mred\u202e\n"),
      "--dry-run",
    );
    expect(ran.stdout).not.toMatch(/\x1b\[31m|\u202e/);
    expect(ran.status).toBe(0);
  });
});

describe("--push", () => {
  it("pushes the branch, and says so", async () => {
    const repo = await leased();
    const remote = remoteOf(repo);
    const { data } = await publish(repo, ...put("src/a.ts", "x\n"), "--push");
    expect(data["push"]).toEqual({ remote: "origin", result: "pushed" });
    expect(execFileSync("git", ["rev-parse", "work/x"], { cwd: remote, encoding: "utf8" }).trim()).toBe(
      data["commit"],
    );
    expect(repo.log().map((line) => line.event_type)).toContain("publish.pushed");
  });

  it("that the remote refuses is told, with the commit that is here", async () => {
    const repo = await leased();
    const remote = remoteOf(repo);
    fs.writeFileSync(path.join(remote, "hooks/pre-receive"), "#!/bin/sh\necho no; exit 1\n", { mode: 0o755 });
    const { error, status } = await publish(repo, ...put("src/a.ts", "x\n"), "--push");
    expect([error.code, status]).toEqual(["E_PUSH_REJECTED", 1]);
    expect(error.data["commit"]).toBe(repo.git("rev-parse", "work/x").trim());
  });

  it("whose answer is lost is settled by asking the remote", async () => {
    const repo = await leased();
    const remote = remoteOf(repo);
    // It has it, and then the connection breaks.
    fs.writeFileSync(path.join(remote, "hooks/post-receive"), "#!/bin/sh\nkill -9 $PPID\n", { mode: 0o755 });
    const { data } = await publish(repo, ...put("src/a.ts", "x\n"), "--push");
    expect(data["push"]).toEqual({ remote: "origin", result: "verified" });
  });

  it("that takes too long is given up, and never asks anybody anything", async () => {
    const repo = await leased();
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    const { port } = silent.address() as { port: number };
    repo.git("remote", "add", "origin", `git://127.0.0.1:${port}/x.git`);
    const args = ["publish", "--branch", "work/x", "--message", "m", ...put("src/a.ts", "x\n"), "--push"];
    const ran = await repo.askWith({ COTENANT_PUBLISH_PUSH_TIMEOUT_SECS: "1" }, A, ...args);
    silent.close();
    expect(ran.error.code).toBe("E_REMOTE_UNREACHABLE");
    expect(commits(repo)).toBe(1);
  }, 90_000);

  it("to nowhere is said before anything is published", async () => {
    const repo = await leased();
    expect((await publish(repo, ...put("src/a.ts", "x\n"), "--push")).error.code).toBe("E_NOT_FOUND");
    expect(
      (await publish(repo, ...put("src/a.ts", "x\n"), "--push", "--remote=--upload-pack=x")).error.code,
    ).toBe("E_NOT_FOUND");
    expect(() => repo.git("rev-parse", "--verify", "--quiet", "work/x")).toThrow();
  });

  it("is tried again by asking with the same id", async () => {
    const repo = await leased();
    const remote = remoteOf(repo);
    const hook = path.join(remote, "hooks/pre-receive");
    fs.writeFileSync(hook, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".replace(/^.{10}/, ulidTime());
    const args = [...put("src/a.ts", "x\n"), "--push", "--request-id", id];
    expect((await publish(repo, ...args)).error.code).toBe("E_PUSH_REJECTED");
    fs.rmSync(hook);
    expect((await publish(repo, ...args)).data).toMatchObject({ replayed: true, push: { result: "pushed" } });
    expect(commits(repo)).toBe(1);
  });
});

describe("--settle", () => {
  it("puts back what is just as it was published, and nothing else", async () => {
    const repo = await leased();
    repo.write("src/a.ts", "published\n");
    repo.write("src/new.ts", "published\n");
    fs.rmSync(path.join(repo.root, "src/b.ts"));
    repo.write("edited.txt", "first\n");
    const index = fs.readFileSync(path.join(repo.root, ".git/index"));
    const { data } = await publish(repo, "--from-worktree", "src", "edited.txt", "--settle");
    const settled = data["settled"] as { path: string; outcome: string }[];
    expect(Object.fromEntries(settled.map(({ path: at, outcome }) => [at, outcome]))).toEqual({
      "src/a.ts": "restored",
      "src/b.ts": "restored",
      "src/new.ts": "removed",
      "edited.txt": "removed",
    });
    expect(fs.readFileSync(path.join(repo.root, "src/a.ts"), "utf8")).toBe("src/a.ts\n");
    expect(fs.existsSync(path.join(repo.root, "src/new.ts"))).toBe(false);
    expect(fs.readFileSync(path.join(repo.root, ".git/index"))).toEqual(index);
    const dirty = repo.git("status", "--porcelain").split("\n");
    expect(dirty.filter((line) => line !== "" && !line.includes(".cotenant"))).toEqual([]);
    expect(show(repo, "work/x:edited.txt")).toBe("first\n");
  });

  it("leaves alone what differs from it, and what is staged", async () => {
    const repo = await leased();
    repo.write("src/b.ts", "staged\n");
    repo.git("add", "src/b.ts");
    repo.write("src/a.ts", "mine\n");
    const { data } = await publish(
      repo,
      ...put("src/a.ts", "other\n"),
      ...put("src/b.ts", "staged\n"),
      "--settle",
    );
    expect(data["settled"]).toEqual([
      { path: "src/a.ts", outcome: "differs" },
      { path: "src/b.ts", outcome: "staged" },
    ]);
    expect(fs.readFileSync(path.join(repo.root, "src/a.ts"), "utf8")).toBe("mine\n");
    expect(fs.readFileSync(path.join(repo.root, "src/b.ts"), "utf8")).toBe("staged\n");
  });
});

describe("files of the working tree", () => {
  it("go through the repository's filters, and ignored ones stay out", async () => {
    const repo = await leased();
    repo.git("config", "filter.shout.clean", "tr a-z A-Z");
    repo.write(".gitattributes", "*.txt filter=shout\n");
    repo.write(".gitignore", "*.log\n");
    repo.write("dir/one.txt", "quiet\n");
    repo.write("dir/noise.log", "x\n");
    await publish(repo, "--from-worktree", "dir");
    expect(repo.git("ls-tree", "-r", "--name-only", "work/x", "dir").trim()).toBe("dir/one.txt");
    expect(show(repo, "work/x:dir/one.txt")).toBe("QUIET\n");
  });

  it("of which there are none, and a repository inside, are refused", async () => {
    const repo = await leased();
    expect((await publish(repo, "--from-worktree", "nowhere")).error.code).toBe("E_NOT_FOUND");
    execFileSync("git", ["init", "--quiet", path.join(repo.root, "inner")]);
    repo.at("inner").git("commit", "--quiet", "--allow-empty", "--message", "x");
    expect((await publish(repo, "--from-worktree", "inner")).error.code).toBe("E_POLICY");
  });

  it("are named from where the caller stands", async () => {
    const repo = await leased();
    repo.write("src/a.ts", "from below\n");
    await repo
      .at("src")
      .ask(A, "publish", "--branch", "work/x", "--message", "m", "--from-worktree", "a.ts", "b.ts");
    expect(show(repo, "work/x:src/a.ts")).toBe("from below\n");
  });
});

describe("repositories of other kinds", () => {
  it("a shallow clone, a partial one, one with alternates, and packed refs", async () => {
    const origin = await leased();
    origin.write("src/a.ts", "second\n");
    origin.git("commit", "--quiet", "--all", "--message", "second");
    origin.git("config", "uploadpack.allowFilter", "true");
    for (const options of [["--depth=1"], ["--filter=blob:none"], ["--shared"], ["--filter=tree:0"]]) {
      const where = path.join(scratch(), "clone");
      const url = options[0] === "--shared" ? origin.root : `file://${origin.root}`;
      execFileSync("git", ["clone", "--quiet", "--no-checkout", ...options, url, where], { stdio: "pipe" });
      const clone = TestRepo.make(where);
      clone.git("pack-refs", "--all");
      await clone.ask(A, "lock", "acquire", "src/a.ts");
      const ran = await publish(clone, ...put("src/a.ts", `by ${options[0]}\n`));
      expect(ran.data["parent"], options[0]).toBe(origin.git("rev-parse", "main").trim());
      clone.git("pack-refs", "--all", "--prune");
      await publish(clone, ...put("src/a.ts", `again by ${options[0]}\n`));
      expect(clone.git("rev-list", "--count", "origin/main..work/x").trim()).toBe("2");
      expect(clone.git("ls-tree", "-r", "--name-only", "work/x").trim().split("\n")).toEqual([
        "src/a.ts",
        "src/b.ts",
      ]);
    }
  }, 60_000);

  it("one without a commit: the first is a root", async () => {
    const repo = TestRepo.make();
    await repo.ask(A, "lock", "acquire", "a.txt");
    const { data } = await publish(repo, ...put("a.txt", "first\n"));
    expect(data["parent"]).toBe(null);
    expect(show(repo, "work/x:a.txt")).toBe("first\n");
  });

  it("a linked worktree publishes like the main one", async () => {
    const repo = withFiles();
    const other = repo.addWorktree("side");
    await other.ask(A, "lock", "acquire", "src/a.ts");
    expect((await publish(other, ...put("src/a.ts", "x\n"))).status).toBe(0);
    expect(
      (await other.ask(A, "publish", "--branch", "side", "--message", "m", ...put("src/a.ts", "y"))).error
        .code,
    ).toBe("E_PROTECTED_REF");
  });
});

describe("who it is by", () => {
  it("--author, and the identity that Git knows", async () => {
    const repo = await leased();
    await publish(repo, ...put("src/a.ts", "x\n"), "--author", "Ada Lovelace <ada@example.org>");
    expect(repo.git("log", "-1", "--format=%an <%ae>|%cn", "work/x").trim()).toBe(
      "Ada Lovelace <ada@example.org>|Test Committer",
    );
    expect((await publish(repo, ...put("src/a.ts", "y\n"), "--author", "nobody")).error.code).toBe("E_USAGE");
    const args = ["publish", "--branch", "work/x", "--message", "m", ...put("src/a.ts", "z\n")];
    const unknown = {
      GIT_AUTHOR_NAME: undefined,
      GIT_AUTHOR_EMAIL: undefined,
      GIT_COMMITTER_NAME: undefined,
      GIT_COMMITTER_EMAIL: undefined,
    };
    repo.git("config", "user.useConfigOnly", "true");
    expect((await repo.askWith(unknown, A, ...args)).error.code).toBe("E_CONFIG");
  });

  it("--sign, with whatever Git is set up to sign with", async () => {
    const repo = await leased();
    const key = path.join(scratch(), "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "a@x", "-f", key]);
    repo.git("config", "gpg.format", "ssh");
    repo.git("config", "user.signingKey", key);
    const { data } = await publish(repo, ...put("src/a.ts", "x\n"), "--sign");
    expect(repo.git("cat-file", "commit", data["commit"] as string)).toContain(
      "gpgsig -----BEGIN SSH SIGNATURE-----",
    );
    repo.git("config", "commit.gpgSign", "true");
    repo.git("config", "user.signingKey", "/nonexistent");
    const { error } = await publish(repo, ...put("src/a.ts", "y\n"));
    expect(error.message).toContain("could not be signed");
    expect(commits(repo)).toBe(1);
  });
});

describe("what cannot be meant", () => {
  it.each<[string, string, string[]]>([
    ["no branch", "E_USAGE", ["--message", "m", "--delete", "src/a.ts"]],
    ["no message", "E_USAGE", ["--branch", "work/x", "--delete", "src/a.ts"]],
    ["nothing to publish", "E_USAGE", ["--branch", "work/x", "--message", "m"]],
    ["a word that is no flag", "E_USAGE", ["--branch", "work/x", "--message", "m", "src/a.ts"]],
    [
      "a path named twice",
      "E_USAGE",
      [
        "--branch",
        "work/x",
        "--message",
        "m",
        "--delete",
        "src/a.ts",
        "--from-worktree",
        "src/a.ts",
        "--delete",
        "src/a.ts",
      ],
    ],
    ["half a --put", "E_USAGE", ["--branch", "work/x", "--message", "m", "--put", "src/a.ts"]],
    [
      "a file that is not there",
      "E_NOT_FOUND",
      ["--branch", "work/x", "--message", "m", "--put", "src/a.ts=nowhere"],
    ],
    [
      "a deletion of what is not there",
      "E_NOT_FOUND",
      ["--branch", "work/x", "--message", "m", "--delete", "nowhere"],
    ],
    [
      "a rename onto what is there",
      "E_USAGE",
      ["--branch", "work/x", "--message", "m", "--rename", "src/a.ts=src/b.ts"],
    ],
    [
      "a base that is none",
      "E_NOT_FOUND",
      ["--branch", "work/x", "--message", "m", "--delete", "src/a.ts", "--base", "nope"],
    ],
    [
      "a base that looks like a flag",
      "E_NOT_FOUND",
      ["--branch", "work/x", "--message", "m", "--delete", "src/a.ts", "--base=--all"],
    ],
    ["a patch that is none", "E_USAGE", ["--branch", "work/x", "--message", "m", "--patch", "src/a.ts"]],
    ["a name with a newline", "E_PATH_ESCAPE", ["--branch", "work/x", "--message", "m", "--delete", "a\nb"]],
  ])("%s", async (_, code, args) => {
    const repo = await leased();
    const { error } = await repo.ask(A, "publish", ...args);
    expect(error.code).toBe(code);
    expect(error.hint).not.toBe("");
    expect(() => repo.git("rev-parse", "--verify", "--quiet", "work/x")).toThrow();
  });

  it("a patch that does not fit names what it does not fit", async () => {
    const repo = await leased();
    const patch = file("--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1 +1 @@\n-not there\n+new\n");
    const { error } = await publish(repo, "--patch", patch);
    expect(error.code).toBe("E_PUBLISH_CONFLICT");
    expect(error.data["paths"]).toEqual(["src/a.ts"]);
  });
});

describe("a publish that was cut off", () => {
  it("is settled by the next command that writes, whatever it is", async () => {
    const repo = await leased();
    repo.git("branch", "work/x");
    // Stopped at its check, with nothing intended yet; then again once it has said what it is about to do.
    const lock = path.join(repo.root, ".git/refs/heads/work/x.lock");
    const child = spawn(
      "strace",
      [
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-P",
        lock,
        "-e",
        "trace=rename",
        "-e",
        "inject=rename:signal=KILL:when=1",
        process.execPath,
        path.join(import.meta.dirname, "../../bin/cotenant"),
        "publish",
        "--branch",
        "work/x",
        "--message",
        "m",
        ...put("src/a.ts", "x\n"),
      ],
      {
        cwd: repo.root,
        env: { ...process.env, COTENANT_AGENT_ID: A, COTENANT_PUBLISH_RETRIES: "0" },
        stdio: "ignore",
      },
    );
    await new Promise((resolve) => child.once("close", resolve));
    expect(fs.existsSync(lock)).toBe(true);
    const { found } = await findings(repo);
    expect(found).toContain("was cut off, and Git's lock is still there");
    const next = await repo.ask("agent:b", "lock", "acquire", "--resource", "anything");
    expect(next.json.warnings?.join()).toContain("was cut off: abandoned");
    expect(fs.existsSync(lock)).toBe(false);
    expect((await publish(repo, ...put("src/a.ts", "y\n"))).status).toBe(0);
  });
});

async function findings(repo: TestRepo): Promise<{ found: string }> {
  const { data } = await repo.ask("agent:d", "doctor");
  const all = data["findings"] as { check: string; message: string }[];
  return {
    found: all
      .filter(({ check }) => check === "publishing")
      .map(({ message }) => message)
      .join("\n"),
  };
}

function ulidTime(): string {
  let [time, text] = [Date.now(), ""];
  for (let i = 0; i < 10; i++) {
    text = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[time % 32] + text;
    time = Math.floor(time / 32);
  }
  return text;
}
