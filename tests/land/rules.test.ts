import { execFileSync } from "node:child_process";
import { beforeEach, describe, expect } from "vitest";
import { add, branchWith, checks, LANDER, land, landingRepo, outcomes } from "../support/landing";
import { oneIn } from "../support/one-in";
import type { TestRepo } from "../support/repo";

const it = oneIn(4);

const TOKEN = `ghp_${"a1B2".repeat(9)}`;

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

/** A commit on the branch that is checked out, as Git makes it where no hooks are. */
function commit(message: string, files: Readonly<Record<string, string>>): void {
  for (const [file, content] of Object.entries(files)) repo.write(file, content);
  repo.git("add", "--all", "--force");
  repo.git("commit", "--quiet", "--message", message);
}

const only = (ran: { data: Record<string, unknown> }) =>
  (ran.data["entries"] as { outcome: string; message: string; hint: string; paths: string[] }[])[0]!;

describe("what a branch's commits bring along and take away again", () => {
  beforeEach(() => {
    repo.git("checkout", "--quiet", "-b", "one");
    commit("with a token", { "settings.txt": `token = "${TOKEN}"\n` });
    repo.git("rm", "--quiet", "settings.txt");
    commit("without the token", { other: "1\n" });
  });

  for (const method of ["merge", "rebase"])
    it(`is refused by ${method}, which would keep it in the target's history`, async () => {
      repo.git("checkout", "--quiet", "main");
      await add(repo, "one", "--method", method);
      const before = repo.git("rev-parse", "main");
      const { outcome, message, hint } = only(await land(repo));
      expect(outcome).toBe("parked");
      expect(message).toMatch(/in commit [0-9a-f]{12} of the branch/);
      expect(hint).toContain("--method squash");
      expect(message).not.toContain(TOKEN);
      expect(repo.git("rev-parse", "main")).toBe(before);
      await add(repo, "one", "--method", "squash");
      expect(outcomes(await land(repo))).toEqual({ one: "landed" });
      expect(repo.git("log", "--format=%H", "main", "--", "settings.txt")).toBe("");
    });

  it("so are files that must not be published at all", async () => {
    repo.git("reset", "--quiet", "--hard", "main");
    commit("with an environment", { ".env": "A=1\n" });
    repo.git("rm", "--quiet", ".env");
    commit("without", { other: "1\n" });
    repo.git("checkout", "--quiet", "main");
    await add(repo, "one");
    const { outcome, message } = only(await land(repo));
    expect([outcome, message.includes(".env")]).toEqual(["parked", true]);
  });
});

describe("whose changes they are", () => {
  it("a commit that does not say so is judged by who added the branch, whatever the others say", async () => {
    repo.git("checkout", "--quiet", "-b", "one");
    commit("theirs\n\nCotenant-Agent: human:ada", { "src/a": "1\n" });
    commit("nobody's", { "ci/b": "1\n" });
    repo.git("checkout", "--quiet", "main");
    await add(repo, "one");
    const env = { COTENANT_POLICY_PATHS: "agent:* never ci/**" };
    const run = () => repo.askWith(env, LANDER, "land", "run");
    expect(only(await run())).toMatchObject({ outcome: "parked", paths: ["ci/b"] });
    await repo.prepare("human:ada", "land", "add", "one");
    expect(outcomes(await run())).toEqual({ one: "landed" });
  });
});

describe("trailers that only a landing writes", () => {
  const forged = ["cotenant-landed: work/other 123", "COTENANT-LANDED-ISSUE: x"];
  const landings = () =>
    repo.git(
      "log",
      "-1",
      "--format=%(trailers:key=Cotenant-Landed,valueonly)%(trailers:key=Cotenant-Landed-Issue)",
      "main",
    );

  for (const method of ["squash", "rebase"])
    it(`are left out of what commits say, by ${method}, however they are spelled`, async () => {
      repo.git("checkout", "--quiet", "-b", "one");
      commit(`one\n\n${forged.join("\n")}`, { one: "1\n" });
      const tip = repo.git("rev-parse", "one").trim();
      repo.git("checkout", "--quiet", "main");
      await add(repo, "one", "--method", method);
      await land(repo);
      expect(landings().trim()).toBe(`one ${tip}`);
    });

  it("and of the message that somebody gives", async () => {
    const tip = branchWith(repo, "one", { one: "1\n" });
    await add(repo, "one", "--message", "Words", "--message", forged.join("\n"));
    await land(repo);
    expect(landings().trim()).toBe(`one ${tip}`);
  });
});

describe("a name that Git checks out nowhere", () => {
  /** A branch whose tree has an entry of this name, as only hash-object and the like make it. */
  function branchWithEntry(branch: string, name: string): void {
    const mktree = (input: string) =>
      execFileSync("git", ["mktree"], { cwd: repo.root, input, encoding: "utf8" }).trim();
    const blob = repo.git("rev-parse", "main:a.txt").trim();
    const tree = mktree(`100644 blob ${blob}\tx\n`);
    const root = mktree(`${repo.git("ls-tree", "main")}040000 tree ${tree}\t${name}\n`);
    repo.git("branch", branch, repo.git("commit-tree", "-p", "main", "-m", branch, root).trim());
  }

  it("is put aside, whatever lands beside it: the target can be checked out still", async () => {
    const names = [".git", ".GIT", "..", ".", "git~1", "n".repeat(256)];
    for (const [at, name] of names.entries()) branchWithEntry(`bad-${at}`, name);
    branchWith(repo, "one", { "one.txt": "1\n" });
    await add(repo, ...names.map((_, at) => `bad-${at}`), "one");
    repo.git("checkout", "--quiet", "--detach");
    const ran = await repo.askWith(checks("true"), LANDER, "land", "run");
    const told = ran.data["entries"] as { branch: string; why: string; message: string }[];
    expect(outcomes(ran)).toMatchObject({
      "bad-0": "parked",
      "bad-4": "parked",
      "bad-5": "parked",
      one: "landed",
    });
    expect(told[0]).toMatchObject({
      why: "refused",
      message: expect.stringContaining(".git/x: Git can check out nothing"),
    });
    repo.git("checkout", "--quiet", "main");
  });
});

describe("settings that nobody can read", () => {
  for (const [what, text] of [
    ["no TOML", "[[["],
    ["a key that is misspelt", "[land]\ncheks = []\n"],
  ] as const)
    it(`are put aside: ${what} would stop the queue for everybody`, async () => {
      branchWith(repo, "one", { ".cotenant/config.toml": text });
      branchWith(repo, "two", { "two.txt": "2\n" });
      await add(repo, "one", "two");
      const ran = await land(repo);
      expect(outcomes(ran)).toEqual({ one: "parked", two: "landed" });
      expect(only(ran).message).toContain(".cotenant/config.toml");
      expect(outcomes(await land(repo))).toEqual({});
    });
});
