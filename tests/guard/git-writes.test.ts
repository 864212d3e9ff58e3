import { execFileSync } from "node:child_process";
import { beforeEach, describe, expect, it } from "vitest";
import { GuardedAgent, reasonOf, SILENT, toldIn } from "../support/guard";
import { TestRepo } from "../support/repo";

const NEVER = "agent:* never .github/**";
const CI = ".github/ci.yml";

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write(CI, "one\n");
  repo.write("docs/a.md", "one\n");
  repo.write(".cotenant/config.toml", `[policy]\npaths = ${JSON.stringify([NEVER])}\n`);
  commit("first");
  repo.git("switch", "--quiet", "--create", "topic");
  repo.write(CI, "two\n");
  repo.git("mv", "docs/a.md", "docs/b.md");
  repo.write("docs/x.diff", repo.git("diff", "HEAD"));
  repo.write("docs/plain.diff", "--- ci.yml\n+++ ci.yml\n@@ -1 +1 @@\n-one\n+two\n");
  repo.write("docs/moved.diff", repo.git("diff", "--cached", "--find-renames", "HEAD"));
  commit("second");
  repo.git("switch", "--quiet", "main");
  repo.git("checkout", "--quiet", "topic", "--", "docs/x.diff", "docs/plain.diff", "docs/moved.diff");
  commit("patches");
});

function commit(message: string): void {
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", message);
}

const ada = () => new GuardedAgent(repo, { session: "aaaaaaaa-1" });
const bob = () => new GuardedAgent(repo, { session: "bbbbbbbb-2" });
const ran = (command: string) => execFileSync("bash", ["-c", command], { cwd: repo.root, stdio: "pipe" });
const held = () => repo.log().flatMap(({ payload }) => (payload.leases ?? []).map(({ key }) => key));

describe("a patch that Git applies", () => {
  it.each([
    "git apply docs/x.diff",
    "git apply --index -3 docs/x.diff",
    "git apply --stat --apply docs/x.diff",
    "git -C . apply docs/x.diff",
    "cd .github && git apply -p0 ../docs/plain.diff",
    "git apply -p 0 --directory .github docs/plain.diff",
    "git apply docs/moved.diff docs/x.diff",
  ])("is judged by the files that it names: %s", async (command) => {
    expect(reasonOf(await bob().shell(command))).toContain(`${CI}: ${bob().agentId} may not write it`);
  });

  it("leases both names of what it renames, and nothing for one that is only looked at", async () => {
    expect(await bob().shell("git apply --check --stat docs/x.diff")).toEqual(SILENT);
    expect(held()).toEqual([]);
    expect(await bob().shell("git apply docs/moved.diff")).toEqual(SILENT);
    expect(held().sort()).toEqual(["file:docs/a.md", "file:docs/b.md"]);
  });

  it.each(["git apply docs/x.diff", "git apply docs/gone.diff", "git apply < docs/x.diff"])(
    "is not let in where another session works: %s",
    async (command) => {
      await ada().write("docs/a.md");
      expect(reasonOf(await bob().shell(command))).toContain(ada().agentId);
    },
  );
});

describe("what a Git command brought into the working tree", () => {
  it.each([
    "git apply < docs/x.diff",
    "cat docs/x.diff | git apply",
    "git apply --index - < docs/x.diff",
    "cp docs/x.diff docs/new.diff && git apply docs/new.diff",
    "git cherry-pick -n topic",
    "git merge --squash topic",
    "git merge -q --no-commit --no-ff topic",
    "git read-tree -u --reset topic",
    "git checkout topic -- :/",
    "git stash pop",
  ])("is told afterwards where a rule forbids it: %s", async (command) => {
    repo.write(CI, "by a person\n");
    if (command === "git stash pop") repo.git("stash", "--quiet");
    else repo.git("checkout", "--quiet", "--", CI);
    const agent = bob();
    expect(await agent.shell(command)).toEqual(SILENT);
    ran(command);
    const told = toldIn(await agent.afterShell(command));
    expect(told).toContain(`${CI} changed while your command ran, and ${agent.agentId} may not write there`);
  });

  it.each([
    "git reset --soft HEAD~1",
    "git reset HEAD~1",
    "git switch -c next",
    "git switch topic",
    "git stash drop",
  ])("is nothing where only HEAD or the index moved, or what is committed came: %s", async (command) => {
    repo.write("docs/c.md", "more\n");
    repo.git("add", "--all");
    repo.git("stash", "--quiet");
    repo.write(CI, "by a person\n");
    commit("by a person");
    const agent = bob();
    expect(await agent.shell(command)).toEqual(SILENT);
    ran(command);
    expect(await agent.afterShell(command)).toEqual(SILENT);
  });
});
