import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../house/source";
import { Machine, sharedIssues } from "../support/machines";
import { blocksOf } from "./console";

const SECTION = readFileSync(join(ROOT, "docs/LEDGER.md"), "utf8")
  .split("\n## With issues on branches too\n")[1]!
  .split("\n## ")[0]!;

/** What the page says to run once a pull was refused. */
function takeBackAndPull(machine: Machine): void {
  const [block] = blocksOf(SECTION, "sh");
  const env = {
    ...machine.libraryEnv(),
    COTENANT_AGENT_ID: machine.agent,
    PATH: [join(ROOT, "bin"), process.env["PATH"]].join(delimiter),
  };
  execFileSync("bash", ["-ec", block!.text], { cwd: machine.repo.root, env, stdio: "pipe" });
}

function commitAndPush({ repo }: Machine): void {
  repo.git("add", ".cotenant");
  repo.git("commit", "--quiet", "--message", "issues");
  repo.git("push", "--quiet", "origin", "HEAD:main");
}

const pull = ({ repo }: Machine) => repo.git("pull", "--quiet", "--no-rebase", "origin", "main");
const uncommitted = ({ repo }: Machine) => repo.git("status", "--porcelain");

describe("LEDGER on issues that are on branches too", () => {
  it("says in which order no pull is refused", async () => {
    expect(SECTION).toContain(
      "commit and push your own issues before you sync them, and pull before you sync",
    );
    const { hub, first } = await sharedIssues(1);
    const second = Machine.clone(hub, "second");
    for (const [own, other] of [
      [first, second],
      [second, first],
      [first, second],
    ] as const) {
      const { issue } = await own.prepare("issue", "create", "--title", "Made and pushed, then synced");
      commitAndPush(own);
      await own.prepare("sync");
      pull(other);
      await other.prepare("sync");
      expect(other.issue(issue.id)).toMatchObject({ title: "Made and pushed, then synced" });
      for (const machine of [own, other]) expect(uncommitted(machine)).toBe("");
    }
  });

  it("does not promise that pulling first is enough: whoever syncs before they push is in the others' way", async () => {
    expect(SECTION).not.toContain("Pull first and sync afterwards");
    const { hub, first } = await sharedIssues(1);
    const second = Machine.clone(hub, "second");
    const { issue } = await first.prepare("issue", "create", "--title", "Synced, then pushed");
    await first.prepare("sync");
    pull(second);
    await second.prepare("sync");
    commitAndPush(first);
    expect(() => pull(second)).toThrow(/would be overwritten/);
    takeBackAndPull(second);
    expect(second.issue(issue.id)).toMatchObject({ title: "Synced, then pushed" });
    expect(uncommitted(second)).toBe("");
  });

  it("shows how to pull what sync has brought already, in commands that run and lose nothing", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [theirs, mine] = ids as [string, string];
    const second = Machine.clone(hub, "second");
    const { issue: made } = await first.prepare("issue", "create", "--title", "On both ways");
    await first.prepare("claim", "acquire", theirs);
    await first.prepare("issue", "update", theirs, "--priority", "high");
    await first.prepare("sync");
    commitAndPush(first);
    // The ledger is ahead of the branch, and second of both.
    await first.prepare("issue", "update", theirs, "--priority", "low");
    const { issue: later } = await first.prepare("issue", "create", "--title", "Only on the ledger");
    await first.prepare("sync");
    second.repo.git("commit", "--quiet", "--allow-empty", "--message", "own");
    await second.prepare("sync");
    await second.prepare("claim", "acquire", mine);
    await second.prepare("issue", "update", mine, "--priority", "critical");
    expect(() => pull(second)).toThrow(/would be overwritten/);
    takeBackAndPull(second);
    expect(second.repo.git("log", "-1", "--format=%p").trim().split(" ")).toHaveLength(2);
    expect(second.issue(theirs)).toMatchObject({ priority: "low" });
    expect(second.issue(mine)).toMatchObject({ priority: "critical" });
    for (const { id, title } of [made, later]) expect(second.issue(id)).toMatchObject({ title });
    expect(hub.issue(theirs)).toMatchObject({ priority: "low" });
    expect(hub.issue(mine)).toMatchObject({ priority: "critical" });
    expect(SECTION).toContain("M .cotenant/events/local.jsonl");
    expect(uncommitted(second)).toContain(" M .cotenant/events/local.jsonl\n");
  });
});
