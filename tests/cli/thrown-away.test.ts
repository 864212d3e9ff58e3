import { execFileSync } from "node:child_process";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

interface Finding {
  readonly message: string;
  readonly next: string | null;
}

let repo: TestRepo;
let id: string;
beforeEach(async () => {
  repo = TestRepo.make();
  await repo.prepare("agent:a", "init");
  id = await repo.issue("Log in");
  commit(repo, "an issue");
});

function commit(where: TestRepo, message: string): void {
  where.git("add", "--all");
  where.git("commit", "--quiet", "--message", message);
}

async function adviceFor(words: string): Promise<string | undefined> {
  const { json } = await repo.askHere("agent:a", "doctor");
  const found = (json.data!["findings"] as Finding[]).find(({ message }) => message.includes(words));
  return found?.next?.replace("take it back: ", "");
}

/** As a person types it. */
function typed(command: string): string {
  const env = { ...process.env, COTENANT_AGENT_ID: "agent:b" };
  const script = `cotenant() { ${process.execPath} ${PROGRAM} "$@"; }; ${command}`;
  return execFileSync("sh", ["-c", script], { cwd: repo.root, env, encoding: "utf8" });
}

const available = async () =>
  ((await repo.askHere("agent:b", "query", "available")).data["issues"] as { id: string }[]).map(
    (one) => one.id,
  );

describe("an issue that was finished on a branch that is gone", () => {
  it("stays so while the branch is there; then doctor says how to take it back, and that works", async () => {
    const other = repo.addWorktree("other");
    await other.prepare("agent:a", "claim", "acquire", id);
    await other.prepare("agent:a", "close", id);
    commit(other, "done");
    repo.git("worktree", "remove", "--force", other.root);
    expect(await available()).toEqual([]);
    expect(await adviceFor("counts as done")).toBeUndefined();
    repo.git("branch", "--quiet", "-D", "other");
    const advice = await adviceFor("counts as done, by agent:a");
    expect(advice).toContain(id);
    const refused = await repo.askHere("agent:b", "claim", "acquire", id);
    expectJsonRefused(refused, 5, "E_TERMINAL_STATE");
    expect(refused.error.hint).toContain(advice);
    typed(advice!);
    await repo.prepare("agent:b", "claim", "release", id);
    expect(await available()).toEqual([id]);
    expect(await adviceFor("counts as")).toBeUndefined();
  });
});

describe("an issue that was deleted on a branch that is gone", () => {
  const deleteOn = async (branch: string) => {
    repo.git("checkout", "--quiet", "-b", branch);
    await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("agent:a", "issue", "delete", id);
    commit(repo, "deleted");
    repo.git("checkout", "--quiet", "main");
  };

  it("stays so while the branch is there; then doctor says how to take it back, and that works", async () => {
    await deleteOn("cleaning");
    const refused = await repo.askHere("agent:b", "claim", "acquire", id, "--reopen");
    expectJsonRefused(refused, 9, "E_POLICY");
    expect(refused.error.message).toContain("cleaning");
    expect(await adviceFor("counts as deleted")).toBeUndefined();
    repo.git("branch", "--quiet", "-D", "cleaning");
    const advice = await adviceFor("counts as deleted, by agent:a");
    const missing = await repo.askHere("agent:b", "issue", "show", id);
    expectJsonRefused(missing, 4, "E_NOT_FOUND");
    expect(missing.error.hint).toContain(advice);
    typed(advice!);
    await repo.prepare("agent:b", "claim", "release", id);
    expect(await available()).toEqual([id]);
    expect((await repo.askHere("agent:b", "issue", "show", id)).data.issue).toMatchObject({
      title: "Log in",
    });
    expect(await adviceFor("counts as")).toBeUndefined();
  });

  it("stays deleted where the tombstone is the newest copy", async () => {
    await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("agent:a", "issue", "delete", id);
    expectJsonRefused(await repo.askHere("agent:a", "issue", "reopen", id), 4, "E_NOT_FOUND");
    expectJsonRefused(await repo.askHere("agent:a", "claim", "acquire", id, "--reopen"), 4, "E_NOT_FOUND");
  });
});
