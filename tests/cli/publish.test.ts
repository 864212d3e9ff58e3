import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { keptScratch } from "../docs/kept-scratch";
import { oneIn } from "../support/one-in";
import { PROGRAM, until } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { A, file, newRequestId, publish, publishHere, put, withFiles } from "./publish-stage";

const it = oneIn(8);

/** For tests that leave nothing behind but branches of their own: agent:a has a lease on everything. */
const common = withFiles(path.join(keptScratch("cotenant-publish"), "repo"));
const taken = common.prepare(A, "lock", "acquire", "--dir", ".", "--ttl", "7200");

async function leased(): Promise<TestRepo> {
  const repo = withFiles();
  await repo.prepare(A, "lock", "acquire", "--dir", ".");
  return repo;
}

const commits = (repo: TestRepo, branch = "work/x") =>
  Number(repo.git("rev-list", "--count", `main..${branch}`).trim());
const show = (repo: TestRepo, at: string) => repo.git("show", at);

describe("publish, asked once more with the same id,", () => {
  it("answers as it did, and publishes nothing more; nor does it where the branch has it already", async () => {
    await taken;
    const to = (...args: string[]) => publish(common, "--branch", "work/again", ...args);
    const id = newRequestId();
    const first = await to(...put("src/a.ts", "one\n"), "--request-id", id);
    const again = await to(...put("src/a.ts", "two\n"), "--request-id", id);
    const { commit, parent, base, paths, merged } = first.data;
    expect(again.data).toMatchObject({ replayed: true, changed: false, commit, parent, base, paths, merged });
    expect(paths).toEqual([{ path: "src/a.ts", change: "changed", mode: "100644" }]);
    const args = ["--branch", "work/again", "--message", "m", ...put("src/a.ts", "x"), "--request-id", id];
    expect((await common.ask("agent:b", "publish", ...args)).error.code).toBe("E_USAGE");
    const same = await to(...put("src/a.ts", "one\n"));
    expect(same.data).toMatchObject({
      changed: false,
      replayed: false,
      commit: first.data["commit"],
      paths: [],
    });
    expect(commits(common, "work/again")).toBe(1);
  });

  it("does what the first one did not come to: gives back its leases, and no newer ones", async () => {
    const repo = withFiles();
    await repo.prepare(A, "lock", "acquire", "src/a.ts", "src/b.ts");
    repo.write("src/a.ts", "mine\n");
    const args = ["--from-worktree", "src/a.ts", "--request-id", newRequestId()];
    // As if it had been killed once the branch had moved.
    await publish(repo, ...args);
    const { data } = await publishHere(repo, ...args, "--release", "--settle");
    expect((data["released"] as { key: string }[]).map(({ key }) => key)).toEqual(["file:src/a.ts"]);
    expect(data["settled"]).toEqual([{ path: "src/a.ts", outcome: "restored" }]);
    await repo.prepare(A, "lock", "acquire", "src/a.ts");
    const third = await publishHere(repo, ...args, "--release", "--settle");
    expect(third.data).toMatchObject({ replayed: true, released: [] });
    expect((await repo.ask(A, "lock", "status")).data.leases).toHaveLength(2);
  });
});

describe("a lease that is over", () => {
  it("expired, evicted or handed on covers nothing any more, and says so", async () => {
    const repo = withFiles();
    await repo.prepare(A, "lock", "acquire", "src/a.ts", "--ttl", "1");
    await until(
      "it has expired",
      async () => (await repo.askHere("agent:x", "lock", "status")).data.leases.length === 0,
    );
    expect((await publish(repo, ...put("src/a.ts", "x"))).error.code).toBe("E_LOCK_EXPIRED");
    // What is over for one path is not said of another.
    await repo.prepare(A, "lock", "acquire", "--dir", "src");
    const other = await publishHere(repo, ...put("src/a.ts", "x"), ...put("other.txt", "x"));
    expect(other.error).toMatchObject({
      code: "E_PATH_NOT_LEASED",
      data: { paths: [{ path: "other.txt" }] },
    });
    await repo.prepare(A, "lock", "release", "--dir", "src");
    await repo.prepare(A, "lock", "acquire", "src/a.ts");
    await repo.prepare("human:h", "lock", "steal", "src/a.ts", "--reason", "urgent");
    const { error, status } = await publishHere(repo, ...put("src/a.ts", "x"));
    expect([error.code, status]).toEqual(["E_FENCING_MISMATCH", 8]);
  });

  it("is given back with --release, and only what covered it; somebody else's is used with its secret", async () => {
    const repo = withFiles();
    await repo.prepare(A, "lock", "acquire", "src/a.ts", "other.txt");
    const { data } = await publish(repo, ...put("src/a.ts", "x"), "--release");
    expect((data["released"] as { key: string }[]).map(({ key }) => key)).toEqual(["file:src/a.ts"]);
    const left = (await repo.ask(A, "lock", "status")).data.leases.map(({ key }) => key);
    expect(left).toEqual(["file:other.txt"]);
    const { secret } = await repo.prepare("agent:b", "lock", "acquire", "src/b.ts", "--print-secret");
    expect((await publishHere(repo, ...put("src/b.ts", "x"))).error.code).toBe("E_PATH_NOT_LEASED");
    const args = ["publish", "--branch", "work/x", "--message", "m", ...put("src/b.ts", "x")];
    expect((await repo.askWith({ COTENANT_SECRET: secret }, A, ...args)).status).toBe(0);
  });
});

describe("without leases (publish.require_leases = false)", () => {
  const OFF = { COTENANT_PUBLISH_REQUIRE_LEASES: "false" };
  const publishOff = (repo: TestRepo, ...args: string[]) =>
    repo.askWith(OFF, A, "publish", "--branch", "work/x", "--message", "m", ...args);

  it("a path must be on the branch as it is in the base: nothing is merged; what is held stays theirs", async () => {
    const repo = withFiles();
    const base = repo.git("rev-parse", "main").trim();
    expect((await publishOff(repo, "--base", base, ...put("src/a.ts", "one\n"))).status).toBe(0);
    // Elsewhere in the tree is no conflict.
    expect((await publishOff(repo, "--base", base, ...put("src/b.ts", "one\n"))).status).toBe(0);
    const { error } = await publishOff(repo, "--base", base, ...put("src/a.ts", "src/a.ts\nmore\n"));
    expect(error.code).toBe("E_PUBLISH_CONFLICT");
    expect(error.data["paths"]).toEqual(["src/a.ts"]);
    expect(commits(repo)).toBe(2);
    await repo.prepare("agent:b", "lock", "acquire", "src/a.ts");
    expect((await publishOff(repo, ...put("src/a.ts", "x"))).error.message).toContain("held by agent:b");
    // A committed configuration alone does not switch them off.
    repo.write(".cotenant/config.toml", "[publish]\nrequire_leases = false\n");
    expect((await publish(repo, ...put("src/b.ts", "x"))).error.code).toBe("E_PATH_NOT_LEASED");
  });
});

describe("a change that says what it was made against", () => {
  it("is refused where that is not there any more", async () => {
    await taken;
    const changes = (blob: string | null) => {
      const change = { op: "put", path: "src/a.ts", content: "new\n", base_blob: blob };
      return publish(
        common,
        "--branch",
        "work/blob",
        "--changes",
        file(JSON.stringify({ changes: [change] })),
      );
    };
    const blob = common.git("rev-parse", "main:src/a.ts").trim();
    expect((await changes(null)).error.code).toBe("E_PUBLISH_CONFLICT");
    expect((await changes(blob)).status).toBe(0);
    expect((await changes(blob)).error.code).toBe("E_PUBLISH_CONFLICT");
  });
});

it("holds the branch for a minute at most, and no longer than its process lives", async () => {
  await taken;
  await publishHere(common, "--branch", "work/bounded", ...put("src/a.ts", "x\n"));
  const [line] = common.logOf("ref:refs/heads/work/bounded");
  expect(line!.payload.leases).toMatchObject([
    { bind: "process", ttl_secs: 60, expires_at: expect.any(String) },
  ]);
});

it("a publish of nothing new makes no branch, and says so", async () => {
  await taken;
  const args = ["publish", "--branch", "work/none", "--message", "m", "--from-worktree", "src/b.ts"];
  const ran = await common.run(A, ...args);
  expect(ran.stdout).toBe("nothing to do: the base has it already, and there is no work/none\n");
  const released = await common.runHere(A, ...args, "--release");
  expect(released.stdout).toContain("\n  released nothing: no lease covered a change");
  expect(() => common.git("rev-parse", "--verify", "--quiet", "work/none")).toThrow();
});

describe("resources that stand for paths", () => {
  it("are taken with their paths, in one operation, and given back with them", async () => {
    const repo = withFiles();
    const { leases } = await repo.prepare(A, "lock", "acquire", "--resource", "workflows");
    expect(leases.map(({ key }) => key)).toEqual(["resource:workflows", "dir:.github/workflows"]);
    expect((await repo.ask("agent:b", "lock", "acquire", ".github/workflows/ci.yml")).status).toBe(1);
    expect((await publish(repo, ...put(".github/workflows/ci.yml", "on: push\n"))).status).toBe(0);
    await repo.prepare(A, "lock", "release", "--resource", "workflows");
    expect((await repo.askHere("agent:b", "lock", "acquire", ".github/workflows/ci.yml")).status).toBe(0);
    // All or none: the name cannot be had while somebody has one of its paths.
    expect((await repo.askHere(A, "lock", "acquire", "--resource", "workflows")).error.code).toBe(
      "E_LOCK_CONFLICT",
    );
    expect(repo.logOf("resource:workflows")).toHaveLength(2);
  });
});

describe("issues and what concerns everybody", () => {
  it("are covered by the claim, and by the scope, which is taken for it", async () => {
    const repo = withFiles();
    await repo.prepare(A, "init");
    const id = await repo.issue();
    const base = [`.cotenant/issues/${id}`, ".cotenant/events"].flatMap((name) => ["--from-worktree", name]);
    // New, and made by `issue create`: nobody's claim is needed.
    expect((await publish(repo, ...base)).status).toBe(0);
    await repo.prepare("agent:b", "claim", "acquire", id);
    await repo.prepare("agent:b", "issue", "update", id, "--state", "in_progress");
    const refused = await publishHere(repo, ...base);
    expect(refused.error.code).toBe("E_LOCK_NOT_HELD");
    expect(refused.error.hint).toBe(
      `leave it out, or wait for the claim: cotenant claim acquire ${id} --wait`,
    );
    const theirs = await repo.ask("agent:b", "publish", "--branch", "work/x", "--message", "m", ...base);
    expect(theirs.status).toBe(0);
    expect(repo.git("log", "-1", "--format=%(trailers:key=Cotenant-Issue,valueonly)", "work/x").trim()).toBe(
      id,
    );
    const config = await publishHere(repo, "--from-worktree", ".cotenant/config.toml");
    expect(config.status).toBe(0);
    const scope = repo.logOf("scope:config");
    expect(scope.map((line) => line.event_type)).toEqual(["claim.acquired", "claim.released"]);
  });
});

describe("publish.checks", () => {
  it("run only once they are trusted, on the commit that is to be published", async () => {
    const repo = await leased();
    const line = 'git show "$COTENANT_PUBLISH_COMMIT:src/a.ts" | grep -q fine';
    repo.write(".cotenant/config.toml", `[publish]\nchecks = [${JSON.stringify(line)}]\n`);
    expect((await publish(repo, ...put("src/a.ts", "anything\n"))).status).toBe(0);
    await repo.prepare("human:h", "trust");
    const { error, status } = await publishHere(repo, ...put("src/a.ts", "something else\n"));
    expect([error.code, status]).toEqual(["E_CHECK_FAILED", 9]);
    expect(commits(repo)).toBe(1);
    const { data } = await publishHere(repo, ...put("src/a.ts", "fine\n"));
    expect(data["checks"]).toMatchObject([{ exit_status: 0 }]);
    expect(commits(repo)).toBe(2);
  });
});

describe("what nobody held when it was looked at", () => {
  /** A check that takes the time to let agent:b take something. */
  const slowly = (repo: TestRepo, ...words: string[]) => {
    const line = `COTENANT_AGENT_ID=agent:b ${JSON.stringify(PROGRAM)} ${words.join(" ")} --quiet`;
    repo.write(".cotenant/config.toml", `[publish]\nchecks = [${JSON.stringify(line)}]\n`);
    return repo.prepare("human:h", "trust");
  };

  it("is not committed where somebody has claimed the issue meanwhile", async () => {
    const repo = withFiles();
    await repo.prepare(A, "init");
    const id = await repo.issue();
    await slowly(repo, "claim", "acquire", id);
    const { error } = await publish(repo, "--from-worktree", `.cotenant/issues/${id}`);
    expect(error.code).toBe("E_LOCK_NOT_HELD");
    expect(repo.git("branch", "--list", "work/x").trim()).toBe("");
    expect(repo.log().map((line) => line.event_type)).toContain("publish.abandoned");
  });

  it("is not committed where somebody has leased the path meanwhile", async () => {
    const repo = withFiles();
    await slowly(repo, "lock", "acquire", "src/a.ts");
    const args = ["publish", "--branch", "work/x", "--message", "m", ...put("src/a.ts", "x\n")];
    const { error } = await repo.askWith({ COTENANT_PUBLISH_REQUIRE_LEASES: "false" }, A, ...args);
    expect([error.code, error.data["holder"]]).toEqual(["E_LOCK_CONFLICT", "agent:b"]);
    expect(repo.git("branch", "--list", "work/x").trim()).toBe("");
  });
});

describe("a file named .env*", () => {
  it("is published once it is allowed the way the hint says, and a person trusts that", async () => {
    const repo = await leased();
    await repo.prepare(A, "init");
    repo.write(".env.example", "TOKEN=\n");
    const args = ["--from-worktree", ".env.example"];
    const { error } = await publishHere(repo, ...args);
    expect(error.code).toBe("E_SECRET_FOUND");
    const [, words = ""] = /: cotenant (.*)$/.exec(error.hint ?? "")!;
    await repo.prepare(A, ...words.split(" "));
    // It says so, and nobody has trusted it yet: that is told, and the list of the file is added to.
    const untrusted = await publishHere(repo, ...args);
    expect([untrusted.error.code, untrusted.error.hint]).toEqual([
      "E_SECRET_FOUND",
      expect.stringMatching(/^if it holds none, have a person trust .*: cotenant trust$/),
    ]);
    const secret = ["api", "key"].join("_");
    const lines = Array.from({ length: 8 }, (_, at) => `${secret} = "zZ9kQ${at}xW4vT7rB2nM"\n`).join("");
    const found = await publishHere(repo, ...put("src/a.ts", lines), ...put("src/b.ts", lines));
    expect(found.error.message).toMatch(
      /^src\/a.ts:1 .*; also src\/a.ts:2 \(.*, and 10 more, which --json names$/,
    );
    expect(found.error.data["findings"]).toHaveLength(16);
    expect(found.error.hint).toMatch(/ publish.allow_secrets_in .env.example,src\/a.ts,src\/b.ts$/);
    await repo.prepare("human:h", "trust");
    expect((await publishHere(repo, ...args)).status).toBe(0);
    expect((await publishHere(repo, ...put(".env", "X=\n"))).error.code).toBe("E_SECRET_FOUND");
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
    const args = ["--branch", "main", "--message", "", ...put("src/a.ts", "x"), "--dry-run"];
    const refused = await repo.ask("agent:b", "publish", ...args);
    const checks = refused.json.data!["checks"] as { name: string; code: string | null }[];
    expect(Object.fromEntries(checks.map(({ name, code }) => [name, code]))).toMatchObject({
      branch: "E_PROTECTED_REF",
      message: "E_USAGE",
      leases: null,
    });
    expect(refused.status).toBe(9);
  });

  it("lets no control character reach the terminal", async () => {
    await taken;
    const red = put("src/a.ts", "\x1b[31mred\u202e\n");
    const args = ["publish", "--branch", "work/x", "--message", "m", ...red, "--dry-run"];
    const ran = await common.run(A, ...args);
    expect(ran.stdout).not.toMatch(/\x1b\[31m|\u202e/);
    expect(ran.stdout).toContain("red");
    expect(ran.status).toBe(0);
  });
});

describe("--settle", () => {
  const outcomes = (data: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(
      (data["settled"] as { path: string; outcome: string }[]).map(({ path: at, outcome }) => [at, outcome]),
    );

  it("puts back what is just as it was published, and nothing else", async () => {
    const repo = await leased();
    repo.write("src/a.ts", "published\n");
    repo.write("src/new.ts", "published\n");
    fs.rmSync(path.join(repo.root, "src/b.ts"));
    repo.write("edited.txt", "first\n");
    const index = fs.readFileSync(path.join(repo.root, ".git/index"));
    const { data } = await publish(repo, "--from-worktree", "src", "edited.txt", "--settle");
    expect(outcomes(data)).toEqual({
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
    // What differs from it, and what is staged, is left alone.
    repo.write("src/b.ts", "staged\n");
    repo.git("add", "src/b.ts");
    repo.write("src/a.ts", "mine\n");
    const both = [...put("src/a.ts", "other\n"), ...put("src/b.ts", "staged\n")];
    const next = await publishHere(repo, ...both, "--settle");
    expect(outcomes(next.data)).toEqual({ "src/a.ts": "differs", "src/b.ts": "staged" });
    expect(fs.readFileSync(path.join(repo.root, "src/a.ts"), "utf8")).toBe("mine\n");
    expect(fs.readFileSync(path.join(repo.root, "src/b.ts"), "utf8")).toBe("staged\n");
  });

  it("sees what is staged also among a thousand paths, and where nothing was ever committed", async () => {
    const repo = TestRepo.make();
    await repo.prepare(A, "lock", "acquire", "--dir", ".");
    for (let n = 1; n <= 1_001; n++) repo.write(`many/${String(n).padStart(4, "0")}`, "same\n");
    repo.git("add", "many/0003", "many/1001");
    const args = ["publish", "--branch", "work/x", "--message", "m", "--from-worktree", "many", "--settle"];
    const ran = await repo.askWith({ COTENANT_PUBLISH_MAX_PATHS: "2000" }, A, ...args);
    const left = Object.entries(outcomes(ran.data)).filter(([, outcome]) => outcome !== "removed");
    expect(left).toEqual([
      ["many/0003", "staged"],
      ["many/1001", "staged"],
    ]);
    expect(fs.readdirSync(path.join(repo.root, "many"))).toEqual(["0003", "1001"]);
  });
});

describe("files of the working tree", () => {
  it("go through the repository's filters, from where the caller stands, and ignored ones stay out", async () => {
    const repo = await leased();
    repo.git("config", "filter.shout.clean", "tr a-z A-Z");
    repo.write(".gitattributes", "*.txt filter=shout\n");
    repo.write(".gitignore", "*.log\n");
    repo.write("dir/one.txt", "quiet\n");
    repo.write("dir/noise.log", "x\n");
    repo.write("src/a.ts", "from below\n");
    const args = ["--branch", "work/x", "--message", "m", "--from-worktree", "a.ts", "../dir"];
    await repo.at("src").ask(A, "publish", ...args);
    expect(repo.git("ls-tree", "-r", "--name-only", "work/x", "dir").trim()).toBe("dir/one.txt");
    expect(show(repo, "work/x:dir/one.txt")).toBe("QUIET\n");
    expect(show(repo, "work/x:src/a.ts")).toBe("from below\n");
    // A repository inside is none of its files.
    execFileSync("git", ["init", "--quiet", path.join(repo.root, "inner")]);
    repo.at("inner").git("commit", "--quiet", "--allow-empty", "--message", "x");
    expect((await publish(repo, "--from-worktree", "inner")).error.code).toBe("E_POLICY");
  });
});

describe("repositories of other kinds", () => {
  it("a shallow clone, a partial one, one with alternates, and packed refs", async () => {
    const origin = withFiles();
    origin.write("src/a.ts", "second\n");
    origin.git("commit", "--quiet", "--all", "--message", "second");
    origin.git("config", "uploadpack.allowFilter", "true");
    for (const options of [["--depth=1"], ["--filter=tree:0"], ["--shared"]]) {
      const where = path.join(scratch(), "clone");
      const url = options[0] === "--shared" ? origin.root : `file://${origin.root}`;
      execFileSync("git", ["clone", "--quiet", "--no-checkout", ...options, url, where], { stdio: "pipe" });
      const clone = TestRepo.make(where);
      clone.git("pack-refs", "--all");
      await clone.prepare(A, "lock", "acquire", "src/a.ts");
      const ran = await publish(clone, ...put("src/a.ts", `by ${options[0]}\n`));
      expect(ran.data["parent"], options[0]).toBe(origin.git("rev-parse", "main").trim());
      clone.git("pack-refs", "--all", "--prune");
      await publishHere(clone, ...put("src/a.ts", `again by ${options[0]}\n`));
      expect(clone.git("rev-list", "--count", "origin/main..work/x").trim()).toBe("2");
      expect(clone.git("ls-tree", "-r", "--name-only", "work/x").trim().split("\n")).toEqual([
        "src/a.ts",
        "src/b.ts",
      ]);
    }
  });

  it("one without a commit: the first is a root; a linked worktree publishes like the main one", async () => {
    const repo = TestRepo.make();
    await repo.prepare(A, "lock", "acquire", "a.txt");
    const { data } = await publish(repo, ...put("a.txt", "first\n"));
    expect(data["parent"]).toBe(null);
    expect(show(repo, "work/x:a.txt")).toBe("first\n");
    await repo.prepare(A, "lock", "release", "a.txt");
    const other = repo.addWorktree("side");
    await other.prepare(A, "lock", "acquire", "a.txt");
    expect((await publishHere(other, ...put("a.txt", "x\n"))).status).toBe(0);
  });
});

describe("who it is by", () => {
  it("--author, the identity that Git knows, and --sign with whatever Git signs with", async () => {
    const repo = await leased();
    await publish(repo, ...put("src/a.ts", "x\n"), "--author", "Ada Lovelace <ada@example.org>");
    expect(repo.git("log", "-1", "--format=%an <%ae>|%cn", "work/x").trim()).toBe(
      "Ada Lovelace <ada@example.org>|Test Committer",
    );
    const key = path.join(scratch(), "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "a@x", "-f", key]);
    repo.git("config", "gpg.format", "ssh");
    repo.git("config", "user.signingKey", key);
    const { data } = await publish(repo, ...put("src/a.ts", "signed\n"), "--sign");
    expect(repo.git("cat-file", "commit", data["commit"] as string)).toContain(
      "gpgsig -----BEGIN SSH SIGNATURE-----",
    );
    repo.git("config", "commit.gpgSign", "true");
    repo.git("config", "user.signingKey", "/nonexistent");
    const { error } = await publishHere(repo, ...put("src/a.ts", "y\n"));
    expect(error.message).toContain("could not be signed");
    const args = ["publish", "--branch", "work/x", "--message", "m", ...put("src/a.ts", "z\n")];
    const names = ["AUTHOR", "COMMITTER"].flatMap((role) => [`GIT_${role}_NAME`, `GIT_${role}_EMAIL`]);
    repo.git("config", "user.useConfigOnly", "true");
    const unknown = Object.fromEntries(names.map((name) => [name, undefined]));
    expect((await repo.askWith(unknown, A, ...args)).error.code).toBe("E_CONFIG");
    expect(commits(repo)).toBe(2);
  });
});

it("a branch that cannot be beside another is refused with names that can", async () => {
  await taken;
  common.git("branch", "beside/z");
  for (const [name, ...instead] of [
    ["beside/z/sub/part", "beside/z", "beside/z-sub/part"],
    ["beside", "beside/z", "beside-new"],
  ]) {
    const { error } = await publishHere(common, "--branch", name!, ...put("src/a.ts", "x\n"));
    expect(error.code).toBe("E_USAGE");
    expect([...error.hint!.matchAll(/--branch (\S+)\)/g)].map(([, word]) => word)).toEqual(instead);
  }
});

describe("what cannot be meant", () => {
  const TO = ["--branch", "work/bad", "--message", "m"];
  const GONE = ["--delete", "src/a.ts"];
  /** Codes whose refusal a process of its own has told; the others need none. */
  const seen = new Set<string>();

  it.each<[string, string, string[]]>([
    ["no branch", "E_USAGE", ["--message", "m", ...GONE]],
    ["a branch that is none", "E_USAGE", ["--branch", "a..b", "--message", "m", ...GONE]],
    ["no message", "E_USAGE", ["--branch", "work/bad", ...GONE]],
    ["nothing to publish", "E_USAGE", TO],
    ["a word that is no flag", "E_USAGE", [...TO, "src/a.ts"]],
    ["a flag that is none", "E_USAGE", [...TO, ...GONE, "--force"]],
    ["a path named twice", "E_USAGE", [...TO, ...GONE, "--from-worktree", "src/a.ts", ...GONE]],
    ["half a --put", "E_USAGE", [...TO, "--put", "src/a.ts"]],
    ["a file that is not there", "E_NOT_FOUND", [...TO, "--put", "src/a.ts=nowhere"]],
    ["a directory's content", "E_USAGE", [...TO, "--put", "src/a.ts=src"]],
    ["a file in a directory's place", "E_USAGE", [...TO, "--put", "src=src/a.ts"]],
    ["a deletion of what is not there", "E_NOT_FOUND", [...TO, "--delete", "nowhere"]],
    ["half a --rename", "E_USAGE", [...TO, "--rename", "=src/b.ts"]],
    ["a rename of what is not there", "E_NOT_FOUND", [...TO, "--rename", "nowhere=there"]],
    ["a rename onto what is there", "E_USAGE", [...TO, "--rename", "src/a.ts=src/b.ts"]],
    ["files of nowhere", "E_NOT_FOUND", [...TO, "--from-worktree", "nowhere"]],
    ["files from outside", "E_PATH_ESCAPE", [...TO, "--from-worktree", "../other"]],
    ["a patch that is not there", "E_NOT_FOUND", [...TO, "--patch", "nowhere.patch"]],
    ["a patch that is none", "E_USAGE", [...TO, "--patch", "src/a.ts"]],
    ["a list of changes that is none", "E_USAGE", [...TO, "--changes", "src/a.ts"]],
    ["standard input, twice", "E_USAGE", [...TO, "--changes", "-", "--patch", "-"]],
    ["a name with a newline", "E_PATH_ESCAPE", [...TO, "--delete", "a\nb"]],
    ["a base that is none", "E_NOT_FOUND", [...TO, ...GONE, "--base", "nope"]],
    ["a base that looks like a flag", "E_NOT_FOUND", [...TO, ...GONE, "--base=--all"]],
    ["an author that is none", "E_USAGE", [...TO, ...GONE, "--author", "nobody"]],
    ["a remote, and nothing to push", "E_USAGE", [...TO, ...GONE, "--remote", "origin"]],
    ["no remote to push to", "E_NOT_FOUND", [...TO, ...GONE, "--push"]],
    [
      "a remote that looks like a flag",
      "E_NOT_FOUND",
      [...TO, ...GONE, "--push", "--remote=--upload-pack=x"],
    ],
    ["an id that is none", "E_USAGE", [...TO, ...GONE, "--request-id", "again"]],
    ["a secret that is not there", "E_USAGE", [...TO, ...GONE, "--secret-file", "nowhere"]],
  ])("%s", async (_, code, args) => {
    await taken;
    const isFirst = !seen.has(code);
    seen.add(code);
    const { error } = await (isFirst
      ? common.ask(A, "publish", ...args)
      : common.askHere(A, "publish", ...args));
    expect(error.code).toBe(code);
    expect(error.hint).not.toBe("");
    expect(() => common.git("rev-parse", "--verify", "--quiet", "work/bad")).toThrow();
  });

  it("a patch that does not fit names what it does not fit", async () => {
    await taken;
    const patch = file("--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1 +1 @@\n-not there\n+new\n");
    const { error } = await publish(common, "--patch", patch);
    expect(error.code).toBe("E_PUBLISH_CONFLICT");
    expect(error.data["paths"]).toEqual(["src/a.ts"]);
  });
});

describe("a publish that was cut off", () => {
  it("is settled by the next command that writes, whatever it is", async () => {
    const repo = await leased();
    repo.git("branch", "work/x");
    const lock = path.join(repo.root, ".git/refs/heads", "work/x.lock");
    // Its Git, once it has locked the branch and is about to move it.
    const kill = ["-P", lock, "-e", "trace=rename", "-e", "inject=rename:signal=KILL:when=1"];
    const program = [process.execPath, path.join(import.meta.dirname, "../../bin/cotenant")];
    const args = ["publish", "--branch", "work/x", "--message", "m", ...put("src/a.ts", "x\n")];
    const child = spawn("strace", ["-f", "-qq", "-o", "/dev/null", ...kill, ...program, ...args], {
      cwd: repo.root,
      env: { ...process.env, COTENANT_AGENT_ID: A, COTENANT_PUBLISH_RETRIES: "0" },
      stdio: "ignore",
    });
    await new Promise((resolve) => child.once("close", resolve));
    expect(fs.existsSync(lock)).toBe(true);
    const { data } = await repo.ask("agent:d", "doctor");
    const found = (data["findings"] as { check: string; message: string }[]).filter(
      ({ check }) => check === "publishing",
    );
    expect(found.map(({ message }) => message).join("\n")).toContain(
      "was cut off, and Git's lock is still there",
    );
    const next = await repo.askHere("agent:b", "lock", "acquire", "--resource", "anything");
    expect(next.json.warnings?.join()).toContain("was cut off: abandoned");
    expect(fs.existsSync(lock)).toBe(false);
    expect((await publish(repo, ...put("src/a.ts", "y\n"))).status).toBe(0);
  });
});
