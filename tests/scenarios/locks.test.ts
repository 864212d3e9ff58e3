import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(5);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

const lock = (agent: string, ...what: readonly string[]) => repo.ask(agent, "lock", "acquire", ...what);
/** The same without a process, for the many. */
const lockHere = (agent: string, ...what: readonly string[]) =>
  repo.askHere(agent, "lock", "acquire", ...what);

describe("S44: directories against files and directories", () => {
  it.each([
    [["--dir", "src"], ["src/a.ts"]],
    [["--dir", "src"], ["src/api/v1/a.ts"]],
    [["src/a.ts"], ["--dir", "src"]],
    [["src/api/v1/a.ts"], ["--dir", "src"]],
    [
      ["--dir", "src"],
      ["--dir", "src"],
    ],
    [
      ["--dir", "src"],
      ["--dir", "src/api"],
    ],
    [
      ["--dir", "src/api/v1"],
      ["--dir", "src"],
    ],
    [["--dir", "."], ["a.ts"]],
    [["a.ts"], ["--dir", "."]],
    [
      ["--dir", "src/api"],
      ["--dir", "."],
    ],
    [["--dir", "src/"], ["./src//a.ts"]],
  ])("%j and then %j conflict", async (first, second) => {
    expect((await lockHere("agent:a", ...first)).status).toBe(0);
    const refused = await lockHere("agent:b", ...second);
    expectJsonRefused(refused, 1, "E_LOCK_CONFLICT");
    expect(refused.error.message).toContain("agent:a");
    expect((await lockHere("agent:a", ...second)).status, "one's own never conflict").toBe(0);
  });

  it.each([
    [
      ["--dir", "src"],
      ["--dir", "lib"],
    ],
    [["--dir", "src"], ["src2/a.ts"]],
    [
      ["--dir", "src"],
      ["--dir", "src-old"],
    ],
    [["--dir", "src/api"], ["src/app.ts"]],
    [["src/a.ts"], ["src/b.ts"]],
    [
      ["--dir", "src/api"],
      ["--dir", "src/apis"],
    ],
    [
      ["--dir", "src"],
      ["--resource", "src"],
    ],
    [
      ["--dir", "."],
      ["--ref", "refs/heads/main"],
    ],
  ])("%j and then %j do not", async (first, second) => {
    expect((await lockHere("agent:a", ...first)).status).toBe(0);
    expect((await lockHere("agent:b", ...second)).status).toBe(0);
  });

  it("names are resolved from where the caller stands", async () => {
    repo.write("src/api/a.ts");
    const below = repo.at("src/api");
    expect((await below.ask("agent:a", "lock", "acquire", "a.ts")).lease.key).toBe("file:src/api/a.ts");
    expectJsonRefused(await lock("agent:b", path.join(repo.root, "src/api/a.ts")), 1, "E_LOCK_CONFLICT");
    expectJsonRefused(await below.ask("agent:b", "lock", "acquire", "--dir", ".."), 1, "E_LOCK_CONFLICT");
  });

  it("reaches all worktrees", async () => {
    const other = repo.addWorktree("feature");
    expect((await lock("agent:a", "--dir", "src")).status).toBe(0);
    expectJsonRefused(await other.ask("agent:b", "lock", "acquire", "src/a.ts"), 1, "E_LOCK_CONFLICT");
  });

  it("a directory named without --dir is a usage error with the hint", async () => {
    repo.write("src/a.ts");
    const ran = await repo.run("agent:a", "lock", "acquire", "src");
    expectRefused(ran, 64, "E_USAGE");
    expect(ran.stderr).toContain("--dir src");
  });
});

describe("S45: three paths, one busy", () => {
  it.each([0, 1, 2])("takes none of them (busy: %i)", async (busy) => {
    const files = ["a.ts", "b.ts", "c.ts"];
    await lockHere("agent:a", files[busy]!);
    const before = repo.logText();
    const refused = await lock("agent:b", ...files);
    expectJsonRefused(refused, 1, "E_LOCK_CONFLICT");
    expect(refused.error.message).toContain(files[busy]);
    expect(repo.logText()).toBe(before);
    expect((await lockHere("agent:c", ...files.toSpliced(busy, 1))).data.leases).toHaveLength(2);
  });

  it("takes all of them in one line when none is", async () => {
    const { leases } = (await lock("agent:a", "a.ts", "--dir", "src", "--resource", "db")).data;
    expect(leases.map(({ fencing_token }) => fencing_token)).toEqual([1, 2, 3]);
    expect(repo.log().filter((line) => line.event_type === "claim.acquired")).toHaveLength(1);
  });
});

describe("S46: paths that lead out", () => {
  const refusedPath = async (args: readonly string[], how: "run" | "runHere" = "runHere") => {
    const before = repo.picture();
    expectRefused(await repo[how]("agent:a", "lock", ...args), 9, "E_PATH_ESCAPE");
    expect(repo.picture()).toEqual(before);
  };

  it.each([
    "../x",
    "..",
    "a/../../x",
    "./../x",
    "nowhere/../../x",
    "/etc/x",
    "/etc/passwd",
    "/",
    ".git/config",
    "./.git/config",
    ".git",
    ".GIT/x",
    ".Git/hooks/pre-commit",
    "sub/.git/config",
    "sub/.GIT",
    "git~1/config",
    "GIT~1/config",
    ".git./config",
    ".git /config",
    ".git::$INDEX_ALLOCATION/config",
    ".g\u200cit/config",
    "sub\\.git\\config",
    "a\nb",
    "a\u0007b",
    "a\u0085b",
  ])("%j exits with 9", async (typed) => {
    await refusedPath(["acquire", typed], "run");
    await refusedPath(["acquire", "--dir", typed]);
    await refusedPath(["acquire", "fine.ts", typed]);
  });

  it("and so does every other command that takes a path or a key", async () => {
    for (const args of [
      ["release", "../x"],
      ["renew", ".git/config"],
      ["steal", "/etc/x", "--reason", "r"],
      ["status", "--path", "../x"],
      ["release", "file:../x"],
      ["release", "dir:.git"],
      ["renew", "file:/etc/x"],
    ])
      await refusedPath(args);
  });

  it("symbolic links out of the tree, into Git's directory, or to nowhere", async () => {
    const outside = scratch();
    fs.writeFileSync(path.join(outside, "file"), "x");
    repo.write("sub/a.ts");
    const link = (target: string, name: string) => fs.symlinkSync(target, path.join(repo.root, name));
    link(path.join(outside, "file"), "to-file");
    link(outside, "to-directory");
    link("..", "to-parent");
    link(".git", "to-git");
    link(".git/config", "to-config");
    link("to-directory", "to-link");
    link("nowhere", "to-nowhere");
    link("circle", "circle");
    const typed = [
      "to-file",
      "to-directory/file",
      "to-directory/new",
      "to-parent/x",
      "to-git/config",
      "to-config",
      "to-link/file",
      "to-nowhere",
      "circle",
      "sub/../to-file",
    ];
    await refusedPath(["acquire", ...typed], "run");
    for (const name of typed) await refusedPath(["acquire", name]);
    for (const name of ["to-directory", "to-parent", "to-git", "to-link"])
      await refusedPath(["acquire", "--dir", name]);
  });

  it("a link that stays inside is the file it leads to", async () => {
    repo.write("src/a.ts");
    fs.symlinkSync("src", path.join(repo.root, "alias"));
    fs.symlinkSync("../src/a.ts", path.join(repo.root, "src/b.ts"));
    expect((await lockHere("agent:a", "src/a.ts")).status).toBe(0);
    for (const name of ["alias/a.ts", "src/b.ts"]) {
      const refused = await lock("agent:b", name);
      expectJsonRefused(refused, 1, "E_LOCK_CONFLICT");
      expect(refused.error.message).toContain("file:src/a.ts");
    }
  });

  it("two spellings of one name are one key", async () => {
    expect((await lockHere("agent:a", "caf\u00e9.ts")).status).toBe(0);
    expectJsonRefused(await lock("agent:b", "cafe\u0301.ts"), 1, "E_LOCK_CONFLICT");
    expect((await lockHere("agent:a", "src/A.ts")).status).toBe(0);
    expect((await lockHere("agent:b", "SRC/a.ts")).status, "where case counts").toBe(0);
    repo.git("config", "core.ignoreCase", "true");
    expect((await lockHere("agent:a", "lib/B.ts")).status).toBe(0);
    expectJsonRefused(await lock("agent:b", "LIB/b.ts"), 1, "E_LOCK_CONFLICT");
  });

  it("another repository inside the tree", async () => {
    TestRepo.make(path.join(repo.root, "vendor/lib"));
    await refusedPath(["acquire", "vendor/lib/a.c"], "run");
  });
});
