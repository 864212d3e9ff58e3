import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../house/source";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { blocksOf } from "./console";

it("WORKTREES shows how work is finished, from the issue to the merge, in commands that run", async () => {
  const section = readFileSync(join(ROOT, "docs/WORKTREES.md"), "utf8").split("\n## Finish\n")[1]!;
  const [block] = blocksOf(section, "sh");
  const repo = TestRepo.make(join(scratch(), "shop"));
  repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
  const env = {
    ...process.env,
    COTENANT_AGENT_ID: "agent:a",
    PATH: [join(ROOT, "bin"), process.env["PATH"]].join(delimiter),
  };
  execFileSync("bash", ["-ec", block!.text], { cwd: repo.root, env, stdio: "pipe" });
  expect(existsSync(join(repo.root, "login.txt"))).toBe(true);
  expect(repo.git("status", "--porcelain")).toBe("");
  const { issues } = (await repo.prepare("agent:b", "issue", "list", "--state", "done")) as unknown as {
    issues: readonly { title: string }[];
  };
  expect(issues.map(({ title }) => title)).toEqual(["Fix the login"]);
  expect((await repo.prepare("agent:b", "status")).leases).toEqual([]);
});
