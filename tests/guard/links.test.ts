import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { GuardedAgent, reasonOf, SILENT, TestClock, toldIn } from "../support/guard";
import { TestRepo } from "../support/repo";

const NEVER = "agent:* never .github/**";

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  for (const file of [".github/workflows/ci.yml", "docs/a.md", "src/a.ts"]) repo.write(file);
  repo.write(".cotenant/config.toml", `[policy]\npaths = ${JSON.stringify([NEVER])}\n`);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
});

const ada = () => new GuardedAgent(repo, { session: "aaaaaaaa-1" });
const bob = (more = {}) => new GuardedAgent(repo, { session: "bbbbbbbb-2", ...more });
const link = (target: string, name: string) => fs.symlinkSync(target, path.join(repo.root, name));
const held = () => repo.log().flatMap(({ payload }) => (payload.leases ?? []).map(({ key }) => key));

describe("a link that the same command makes", () => {
  it.each([
    ["ln -s ../src docs/l && echo x > docs/l/a.ts", "src/a.ts"],
    ["ln -s ../src docs/l; cd docs/l; echo x > a.ts", "src/a.ts"],
    ["cd docs && ln -s ../.github g && cd g && echo x > new.yml", ".github/new.yml"],
    ["ln -s ../.github docs/g && echo x > docs/g/workflows/ci.yml", ".github/workflows/ci.yml"],
    ["cd docs && ln -s ../.github && echo x > .github/new.yml", ".github/new.yml"],
    ["ln -s ../.github docs && echo x > docs/.github/new.yml", ".github/new.yml"],
    ["ln -st docs ../src && tee docs/src/a.ts", "src/a.ts"],
    ["ln -sr src docs/l && sed -i s/a/b/ docs/l/*.ts", "src/a.ts"],
    ["ln -s l docs/m; ln -s ../src docs/l; cp docs/a.md docs/m/a.ts", "src/a.ts"],
    ["ln -s ../.github/new.yml docs/n && echo x > docs/n", ".github/new.yml"],
    ["cp -rs $PWD/src docs/l && echo x > docs/l/a.ts", "src/a.ts"],
  ])("leads where it will: %s", async (command, path) => {
    await ada().write("src/a.ts");
    expect(reasonOf(await bob().shell(command))).toContain(path);
  });

  it.each([
    ["ln .github/workflows/ci.yml docs/h", ".github/workflows/ci.yml"],
    ["ln src/a.ts docs/h && echo x > docs/h", "src/a.ts"],
    ["cp -l src/a.ts docs/h", "src/a.ts"],
    ["cp -al src docs/h", "src/a.ts"],
  ])("is a way to write what has a second name by it: %s", async (command, path) => {
    await ada().write("src/a.ts");
    expect(reasonOf(await bob().shell(command))).toContain(path);
  });

  it.each([
    // In a way that is not followed.
    "for i in 1 2; do echo x >> docs/l/a.ts; ln -sfn ../src docs/l; done 2>/dev/null; true",
    "mkdir docs/d && ln -s ../../src docs/d && echo x > docs/d/src/a.ts",
    "ln -s ../src docs/l && mv docs/l docs/m && echo x > docs/m/a.ts",
    // Links that come from elsewhere.
    "mv docs/there docs/m && echo x > docs/m/a.ts",
    "cp -P docs/there docs/m && echo x > docs/m/a.ts",
    "git checkout -- docs/there && echo x > docs/there/a.ts",
  ])("may lead what is written besides anywhere, which is seen afterwards: %s", async (command) => {
    link("../src", "docs/there");
    repo.git("add", "docs/there");
    if (command.startsWith("git")) fs.unlinkSync(path.join(repo.root, "docs/there"));
    await ada().write("src/a.ts");
    // What its holder was given leave for a moment ago is the holder's.
    const agent = bob({ clock: new TestClock(60_000) });
    expect(await agent.shell(command)).toEqual(SILENT);
    execFileSync("bash", ["-c", command], { cwd: repo.root });
    const told = toldIn(await agent.afterShell(command));
    expect(told).toContain(`src/a.ts changed while your command ran, and ${ada().agentId} holds it`);
  });

  it("is all that a command does which only makes it", async () => {
    expect(await bob().shell("ln -s ../src docs/l")).toEqual(SILENT);
    expect(held()).toEqual(["file:docs/l"]);
  });
});

describe("a link that is there", () => {
  it("is removed, moved or replaced without any harm to what it leads to", async () => {
    link("../.github", "docs/d");
    link("../.github/workflows/ci.yml", "docs/f");
    const agent = bob();
    for (const command of [
      "rm docs/d",
      "unlink docs/f",
      "rm -rf docs/d docs/f",
      "rm docs/*",
      "ln -sfn ../src docs/d",
      "ln -sfT ../src docs/d",
      "ln -sf ../src/a.ts docs/f",
      "mv docs/d docs/e",
      "mv docs/a.md docs/f",
      "mv -T docs/a.md docs/d",
      "git rm -f docs/d",
      "git mv docs/f docs/e",
      "git checkout -- docs/f",
    ])
      expect(await agent.shell(command), command).toEqual(SILENT);
    expect(held().every((key) => key.startsWith("file:docs/"))).toBe(true);
  });

  it("is followed by whatever writes through it, also where it leads to nothing yet", async () => {
    link("../.github", "docs/d");
    link("../.github/workflows/ci.yml", "docs/f");
    link("../.github/new.yml", "docs/n");
    for (const command of [
      "echo x > docs/f",
      "echo x > docs/n",
      "cp docs/a.md docs/f",
      "cp docs/a.md docs/d",
      "mv docs/a.md docs/d",
      "ln -sf ../src docs/d",
      "rm docs/d/workflows/ci.yml",
      "rm -r docs/d/",
      "mv docs/d/workflows docs/w",
    ])
      expect(reasonOf(await bob().shell(command)), command).toContain(NEVER);
    expect(reasonOf(await bob().write("docs/n"))).toContain(".github/new.yml");
  });

  it("is left by cd .. as it was entered, and by .. in a path to where it leads", async () => {
    fs.mkdirSync(path.join(repo.root, "src/deep"));
    link("../src/deep", "docs/l");
    await ada().write("docs/a.md");
    expect(reasonOf(await bob().shell("cd docs/l && cd .. && echo x > a.md"))).toContain("docs/a.md");
    expect(await bob().shell("echo x > docs/l/../a.md")).toEqual(SILENT);
    expect(held()).toContain("file:src/a.md");
  });
});

describe("a path", () => {
  it("is judged also behind a directory that the same command makes", async () => {
    await ada().write("src/a.ts");
    for (const command of ["mkdir n; echo x > n/../src/a.ts", "mkdir n && cd n && cd .. && rm src/a.ts"])
      expect(reasonOf(await bob().shell(command)), command).toContain("src/a.ts");
  });

  it("is found by a pattern in which one character stands for any", async () => {
    repo.write("src/x😀y");
    await ada().write("src/x😀y");
    for (const pattern of ["src/x?y", "src/x[!a]y", "src/x[😀-😂]y", "src/*?y"])
      expect(reasonOf(await bob().shell(`rm ${pattern}`)), pattern).toContain("x😀y");
  });

  it("is judged also beside a repository of its own", async () => {
    execFileSync("git", ["init", "--quiet", "inner"], { cwd: repo.root });
    await ada().write("held.txt");
    expect(reasonOf(await bob().shell("rm -rf inner held.txt"))).toContain("held.txt");
  });
});
