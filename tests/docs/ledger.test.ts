import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../house/source";
import { Machine, sharedIssues } from "../support/machines";
import { blocksOf } from "./console";

it("LEDGER shows how to pull what sync has brought already, in commands that run and lose nothing", async () => {
  const section = readFileSync(join(ROOT, "docs/LEDGER.md"), "utf8").split(
    "\n## With issues on branches too\n",
  )[1]!;
  const [block] = blocksOf(section, "sh");
  const { hub, first, ids } = await sharedIssues(2);
  const [theirs, mine] = ids as [string, string];
  const second = Machine.clone(hub, "second");
  const { issue: made } = await first.prepare("issue", "create", "--title", "On both ways");
  await first.prepare("claim", "acquire", theirs);
  await first.prepare("issue", "update", theirs, "--priority", "high");
  await first.prepare("sync");
  first.repo.git("add", ".cotenant");
  first.repo.git("commit", "--quiet", "--message", "issues");
  first.repo.git("push", "--quiet", "origin", "HEAD:main");
  // The ledger is ahead of the branch, and second of both.
  await first.prepare("issue", "update", theirs, "--priority", "low");
  const { issue: later } = await first.prepare("issue", "create", "--title", "Only on the ledger");
  await first.prepare("sync");
  second.repo.git("commit", "--quiet", "--allow-empty", "--message", "own");
  await second.prepare("sync");
  await second.prepare("claim", "acquire", mine);
  await second.prepare("issue", "update", mine, "--priority", "critical");
  expect(() => second.repo.git("pull", "--no-rebase")).toThrow(/would be overwritten/);
  const env = {
    ...second.libraryEnv(),
    COTENANT_AGENT_ID: second.agent,
    PATH: [join(ROOT, "bin"), process.env["PATH"]].join(delimiter),
  };
  execFileSync("bash", ["-ec", block!.text], { cwd: second.repo.root, env, stdio: "pipe" });
  expect(second.repo.git("log", "-1", "--format=%p").trim().split(" ")).toHaveLength(2);
  expect(second.issue(theirs)).toMatchObject({ priority: "low" });
  expect(second.issue(mine)).toMatchObject({ priority: "critical" });
  for (const { id, title } of [made, later]) expect(second.issue(id)).toMatchObject({ title });
  expect(hub.issue(theirs)).toMatchObject({ priority: "low" });
  expect(hub.issue(mine)).toMatchObject({ priority: "critical" });
});
