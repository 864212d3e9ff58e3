import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { indexFile, stagedObject } from "../../src/platform/git-index";
import { nodePlatform } from "../../src/platform/node/node";
import { TestRepo } from "../support/repo";

const { files } = nodePlatform();
const WANTED = ".cotenant/config.toml";

const found = (repo: TestRepo, format: "sha1" | "sha256" = "sha1", wanted = WANTED) =>
  stagedObject(files, path.join(repo.root, ".git/index"), wanted, format);
const staged = (repo: TestRepo, wanted = WANTED) => repo.git("rev-parse", `:${wanted}`).trim();

describe("what the index has for a file", () => {
  it.each([
    ["sha1", "2"],
    ["sha1", "4"],
    ["sha256", "2"],
    ["sha256", "4"],
  ] as const)("is what Git says, in %s and version %s", async (format, version) => {
    const repo = TestRepo.make(undefined, format);
    repo.git("config", "index.version", version);
    // Names of every length up to a few, so that every padding occurs, and long ones with little in common.
    for (let length = 1; length <= 20; length++) repo.write(`.a${"b".repeat(length)}`);
    for (const name of [`.c/${"d".repeat(150)}/${"e".repeat(150)}`, ".cotenant/a", ".cotenant/ü", "z"])
      repo.write(name);
    repo.write(WANTED, "x\n");
    repo.git("add", "--all");
    const all = repo.git("ls-files", "-z").split("\0").slice(0, -1);
    expect(all.length).toBeGreaterThan(20);
    for (const name of [WANTED, ".abb", ".cotenant/a", "z"])
      expect(await found(repo, format, name), name).toBe(staged(repo, name));
    expect(await found(repo, format, ".cotenant/b")).toBeNull();
    // An entry with more flags than fit makes it version 3, or stays in 4.
    repo.write(".abc", "later\n");
    repo.git("add", "--intent-to-add", ".abc");
    expect(await found(repo, format)).toBe(staged(repo));
  });

  it("is found behind more names than are read at first", async () => {
    const repo = TestRepo.make();
    repo.write(WANTED, "x\n");
    repo.git("add", "--all");
    const names = Array.from({ length: 900 }, (_, n) => `!/${String(n).padStart(40, "0")}`);
    const input = names.map((name) => `100644 ${staged(repo)}\t${name}\n`).join("");
    execFileSync("git", ["update-index", "--add", "--index-info"], { cwd: repo.root, input });
    expect(fs.statSync(path.join(repo.root, ".git/index")).size).toBeGreaterThan(64 << 10);
    expect(await found(repo)).toBe(staged(repo));
  });

  it("is nothing where nobody can say so: no index, a damaged one, two sides of a conflict", async () => {
    const repo = TestRepo.make();
    expect(await found(repo)).toBeNull();
    repo.write(WANTED, "x\n");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "x");
    const index = path.join(repo.root, ".git/index");
    const whole = fs.readFileSync(index);
    for (let length = 0; length < 12 + 62 + WANTED.length; length++) {
      fs.writeFileSync(index, whole.subarray(0, length));
      expect(await found(repo), String(length)).toBeNull();
    }
    for (const [at, byte] of [
      [0, 0],
      [7, 1],
      [7, 5],
    ] as const) {
      const damaged = Buffer.from(whole);
      damaged[at] = byte;
      fs.writeFileSync(index, damaged);
      expect(await found(repo)).toBeNull();
    }
    fs.writeFileSync(index, whole);
    repo.git("checkout", "--quiet", "-b", "other");
    for (const [branch, text] of [
      ["other", "other\n"],
      ["main", "main\n"],
    ] as const) {
      repo.git("checkout", "--quiet", branch);
      repo.write(WANTED, text);
      repo.git("commit", "--quiet", "--all", "--message", branch);
    }
    expect(() => repo.git("merge", "--quiet", "other")).toThrow();
    expect(await found(repo)).toBeNull();
  });
});

it("the index is Git's own, or the one that it names to its hooks", () => {
  const place = { gitDir: "/r/.git", worktreeRoot: "/r" };
  expect(indexFile({}, place)).toBe("/r/.git/index");
  expect(indexFile({ GIT_INDEX_FILE: "" }, place)).toBe("/r/.git/index");
  expect(indexFile({ GIT_INDEX_FILE: ".git/next-index-1.lock" }, place)).toBe("/r/.git/next-index-1.lock");
  expect(indexFile({ GIT_INDEX_FILE: "/x/index" }, place)).toBe("/x/index");
});
