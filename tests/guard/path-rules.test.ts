import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { GuardedAgent, reasonOf, SILENT, TestClock } from "../support/guard";
import { TestRepo } from "../support/repo";

const NEVER = "agent:* never .github/**";
const ONLY = "agent:docs-* only docs/**";

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  for (const file of [".github/ci.yml", "docs/a.md", "src/a.ts"]) repo.write(file);
  rules(NEVER, ONLY);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
});

const config = (text: string) => repo.write(".cotenant/config.toml", text);
const rules = (...texts: string[]) => config(`[policy]\npaths = ${JSON.stringify(texts)}\n`);
const ada = (env = {}) => new GuardedAgent(repo, { session: "aaaaaaaa-1", env });
const docs = (more = {}) =>
  new GuardedAgent(repo, {
    session: "bbbbbbbb-2",
    env: { COTENANT_AGENT_ID: "agent:docs-1" },
    ...more,
  });

describe("before a write, the guard", () => {
  it("refuses what a rule forbids, and names the rule and where it stands", async () => {
    const reason = reasonOf(await ada().write(".github/ci.yml"));
    expect(reason).toContain(`.github/ci.yml: ${ada().agentId} may not write it: "${NEVER}"`);
    expect(reason).toContain("(.cotenant/config.toml:2). Nothing was written.");
    expect(reason).toContain("have a person commit a change of policy.paths in .cotenant/config.toml:2");
    expect(reasonOf(await docs().write("src/a.ts"))).toContain(ONLY);
    expect(reasonOf(await docs({ subagent: "cccccccc-3" }).write("src/a.ts"))).toContain(ONLY);
    expect(await docs().write("docs/new.md")).toEqual(SILENT);
    expect(await ada().write("src/a.ts")).toEqual(SILENT);
    // All or nothing, and nothing is held by who may not write it.
    expect(reasonOf(await docs().write("docs/a.md", "src/b.ts"))).toContain(ONLY);
    expect(repo.log().flatMap(({ payload }) => payload.leases?.map(({ key }) => key) ?? [])).toEqual([
      "file:docs/new.md",
      "file:src/a.ts",
    ]);
  });

  it("judges a file by where it really is", async () => {
    fs.symlinkSync("../.github", path.join(repo.root, "docs/link"));
    expect(reasonOf(await docs().write("docs/link/ci.yml"))).toContain(".github/ci.yml");
    expect(reasonOf(await ada().write("docs/link/new.yml"))).toContain(".github/new.yml");
  });

  it("refuses shell commands that write there, also over a directory, and lets others pass", async () => {
    for (const command of [
      "echo x > .github/ci.yml",
      "git mv .github/ci.yml docs/ci.yml",
      "mv docs/a.md .github/a.md",
      "rm -r .github",
      "rm -rf .",
    ])
      expect(reasonOf(await ada().shell(command)), command).toContain(NEVER);
    expect(reasonOf(await docs().shell("rm -r src"))).toContain("src/a.ts");
    expect(await docs().shell("rm -r docs")).toEqual(SILENT);
    expect(await ada().shell("cat .github/ci.yml > src/copy")).toEqual(SILENT);
  });

  it("keeps agents from the file with the rules, and not from what cotenant writes for them", async () => {
    expect(reasonOf(await ada().write(".cotenant/config.toml"))).toContain("the rules that bind them");
    const issue = ".cotenant/issues/01M7F87SKQ7X3KZ979XRC4S87G/issue.json";
    expect(await docs().write(issue)).toEqual(SILENT);
  });

  it("adds rules of its variable to those of the files, and takes none away", async () => {
    const env = { COTENANT_POLICY_PATHS: "agent:* never src/**" };
    expect(reasonOf(await ada(env).write("src/a.ts"))).toContain("(COTENANT_POLICY_PATHS)");
    for (const nothing of ["", "[]"])
      expect(reasonOf(await ada({ COTENANT_POLICY_PATHS: nothing }).write(".github/x"))).toContain(NEVER);
  });

  it("goes by what the file last said when it breaks, and by what can be understood of it", async () => {
    rules(NEVER, "agent:* nevr docs/**");
    expect(reasonOf(await ada().write(".github/ci.yml"))).toContain(NEVER);
    rules(NEVER);
    expect(await ada().write("src/a.ts")).toEqual(SILENT);
    expect(reasonOf(await ada().write(".github/ci.yml"))).toContain(NEVER);
    for (const broken of ["[policy\n", '[policy]\npaths = "none"\n', '[policy]\npaths = ["x"]\n']) {
      config(broken);
      const reason = reasonOf(await ada().write(".github/ci.yml"));
      expect(reason).toContain(`"${NEVER}" (.cotenant/config.toml)`);
    }
    rules("agent:* never src/**", "x");
    for (const file of [".github/ci.yml", "src/a.ts"])
      expect(reasonOf(await ada().write(file))).toContain("may not write it");
  });

  it("goes by the rules of the last commit while the file is changed, whatever it says now", async () => {
    for (const lifted of ["[policy]\npaths = []\n", "# nothing\n", "[policy\n"]) {
      config(lifted);
      // A second time, when it is no news that the file says nothing.
      for (let round = 0; round < 2; round++)
        expect(reasonOf(await ada().write(".github/ci.yml"))).toContain(NEVER);
      expect(reasonOf(await ada().write(".cotenant/config.toml"))).toContain("the rules that bind them");
      expect(await ada().write("src/a.ts")).toEqual(SILENT);
    }
    repo.git("commit", "--quiet", "--all", "--message", "fewer");
    expect(await ada().write(".github/ci.yml")).toEqual(SILENT);
  });

  it("refuses it also where the store is broken", async () => {
    await ada().write("src/a.ts");
    const lines = fs.readFileSync(repo.logFile, "utf8").split("\n");
    lines[1] = lines[1]!.replace("a.ts", "A.ts");
    fs.writeFileSync(repo.logFile, lines.join("\n"));
    expect(reasonOf(await ada().write(".github/ci.yml"))).toContain(NEVER);
    // There the check itself fails, and what it does not know to be held it lets through.
    const clock = new TestClock();
    clock.platform.files.networkFileSystem = () => "nfs";
    const far = new GuardedAgent(repo, { session: "aaaaaaaa-1", clock });
    expect(await far.write("src/b.ts")).toEqual(SILENT);
    expect(reasonOf(await far.write(".github/ci.yml"))).toContain(NEVER);
    expect(await far.shell("echo x > src/b.ts")).toEqual(SILENT);
    expect(reasonOf(await far.shell("cd .github && echo x > ci.yml"))).toContain(NEVER);
  });

  it("lets nobody through on a pass from before the rule", async () => {
    rules(ONLY);
    repo.git("commit", "--quiet", "--all", "--message", "fewer");
    const agent = ada();
    expect(await agent.write(".github/ci.yml")).toEqual(SILENT);
    rules(NEVER);
    expect(reasonOf(await agent.write(".github/ci.yml"))).toContain(NEVER);
  });
});

describe("after a shell command that nobody could read, the guard", () => {
  it("tells of what changed against a rule, and of nothing else", async () => {
    const agent = ada();
    const command = "python build.py";
    const ran = async (change: () => void) => {
      expect(await agent.shell(command)).toEqual(SILENT);
      change();
      return (await agent.afterShell(command)).stdout;
    };
    expect(await ran(() => repo.write("src/a.ts", "changed\n"))).toBe("");
    const told = await ran(() => repo.write(".github/ci.yml", "changed\n"));
    expect(told).toContain(".github/ci.yml changed while your command ran");
    expect(JSON.parse(told).hookSpecificOutput.additionalContext).toContain(`"${NEVER}"`);
    // It is as it was before this one.
    expect(await ran(() => {})).toBe("");
    expect(await ran(() => repo.write(".github/new.yml", "new\n"))).toContain(".github/new.yml");
    expect(await ran(() => repo.git("checkout", "--quiet", "--", ".github/ci.yml"))).toContain("ci.yml");
    // Also where the command has taken the rule off.
    const lifted = await ran(() => {
      rules();
      repo.write(".github/ci.yml", "again\n");
    });
    for (const file of [".github/ci.yml", ".cotenant/config.toml"]) expect(lifted).toContain(file);
  });
});
