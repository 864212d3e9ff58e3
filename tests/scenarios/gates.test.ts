import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

interface Issue {
  readonly state: string;
  readonly gates: readonly string[];
  readonly stamp: { readonly version: number; readonly lease_id: string | null };
}
const ADA = "agent:ada";

async function claimed(repo: TestRepo): Promise<string> {
  await repo.prepare(ADA, "init");
  await repo.prepare("human:me", "gate", "define", "tests", "--command", "test -f passing");
  await repo.prepare("human:me", "gate", "define", "review");
  const id = await repo.issue();
  await repo.prepare(ADA, "claim", "acquire", id);
  return id;
}
const stateOf = async (repo: TestRepo, id: string) =>
  (await repo.prepare(ADA, "issue", "show", id)).issue as unknown as Issue;

describe("S25: done with a gate pending", () => {
  it("is gated, and the last gate's pass makes it done", async () => {
    const repo = TestRepo.make();
    const id = await claimed(repo);
    expect((await repo.ask(ADA, "gate", "add", id, "tests", "review")).data.changed).toBe(true);
    const done = await repo.run(ADA, "issue", "update", id, "--state", "done");
    expect(done.stdout).toContain("gated");
    expect(await stateOf(repo, id)).toMatchObject({ state: "gated" });
    // Whoever looks for what stands still finds it, and what to do.
    const blocked = (await repo.prepare("agent:looks", "query", "blocked"))["issues"] as { id: string }[];
    expect(blocked).toMatchObject([{ id, blocked_by: [], gates: ["tests", "review"] }]);
    const told = (await repo.runHere("agent:looks", "query", "blocked")).stdout;
    expect(told).toMatch(
      /waits for gate tests: cotenant gate run \w+ tests\n.*gate review: cotenant gate pass \w+ review/,
    );
    const needs = (await repo.prepare("human:me", "status"))["needs_a_person"];
    expect(needs).toContainEqual(expect.objectContaining({ code: "gate_pending" }));

    const failed = await repo.run(ADA, "gate", "run", id);
    expect(failed.status, `${failed}`).toBe(9);
    expect(failed.stdout).toContain("tests failed; the issue stays gated until tests, review passed");
    expect(await stateOf(repo, id)).toMatchObject({ state: "gated" });

    repo.write("passing");
    const passed = await repo.ask(ADA, "gate", "run", id);
    expect(passed.data).toMatchObject({ issue: { state: "gated" }, pending: ["review"] });

    // Somebody else's word, without any claim: and it is done by itself.
    const reviewed = await repo.ask("human:eve", "gate", "pass", id, "review", "--reason", "fine");
    expect(reviewed.data).toMatchObject({ issue: { state: "done" }, changed: true });
    const issue = await stateOf(repo, id);
    expect(issue).toMatchObject({ state: "done", stamp: { lease_id: null } });
    const last = repo.log().at(-1)!;
    expect(last).toMatchObject({
      event_type: "issue.written",
      actor: { agent_id: "human:eve" },
      payload: { issue_id: id, state: "done", version: issue.stamp.version },
    });
  });

  it("is done at once when all gates were passed before", async () => {
    const repo = TestRepo.make();
    const id = await claimed(repo);
    await repo.prepare(ADA, "gate", "add", id, "review");
    await repo.prepare("ci:build", "gate", "pass", id, "review");
    expect(await stateOf(repo, id)).toMatchObject({ state: "in_progress" });
    await repo.ask(ADA, "issue", "update", id, "--state", "done");
    expect(await stateOf(repo, id)).toMatchObject({ state: "done" });
  });

  it("stays gated for a gate whose definition is gone, until that is passed or taken off", async () => {
    const repo = TestRepo.make();
    const id = await claimed(repo);
    await repo.prepare(ADA, "gate", "add", id, "review");
    await repo.prepare(ADA, "issue", "update", id, "--state", "done");
    const removed = await repo.ask("human:me", "gate", "remove", "review");
    expect(removed.data).toMatchObject({ gate_key: "review", issues: 1 });
    expect(await stateOf(repo, id)).toMatchObject({ state: "gated" });
    expect((await repo.ask(ADA, "gate", "list", id)).data).toMatchObject({
      pending: ["review"],
      results: [{ key: "review", status: "pending", defined: false }],
    });
    await repo.ask("human:me", "gate", "remove", id, "review");
    expect(await stateOf(repo, id)).toMatchObject({ state: "done", gates: [] });
  });

  it("is asked again after the issue was reopened", async () => {
    const repo = TestRepo.make();
    const id = await claimed(repo);
    await repo.prepare(ADA, "gate", "add", id, "review");
    await repo.prepare(ADA, "issue", "update", id, "--state", "done");
    await repo.prepare("human:me", "gate", "pass", id, "review");
    expect(await stateOf(repo, id)).toMatchObject({ state: "done" });
    await repo.ask(ADA, "issue", "reopen", id);
    await repo.prepare(ADA, "issue", "update", id, "--state", "done");
    expect(await stateOf(repo, id)).toMatchObject({ state: "gated" });
  });

  it("is seen from every worktree, wherever the last gate was passed", async () => {
    const repo = TestRepo.make();
    const id = await claimed(repo);
    await repo.prepare(ADA, "gate", "add", id, "review", "tests");
    repo.write("passing");
    await repo.prepare(ADA, "gate", "run", id, "tests");
    await repo.prepare(ADA, "issue", "update", id, "--state", "done");
    const side = repo.addWorktree("side");
    const reviewed = await side.ask("human:eve", "gate", "pass", id, "review");
    expect(reviewed.data).toMatchObject({ issue: { state: "done" } });
    for (const place of [repo, side]) expect(await stateOf(place, id)).toMatchObject({ state: "done" });
    expect((await side.askHere(ADA, "gate", "list", id)).data).toMatchObject({
      results: [{ status: "passed" }, { status: "passed" }],
    });
  });

  it("knows what was passed also where issue and results stand in HEAD alone", async () => {
    const repo = TestRepo.make();
    const id = await claimed(repo);
    await repo.prepare(ADA, "gate", "add", id, "review", "tests");
    repo.write("passing");
    await repo.prepare("human:me", "gate", "run", id, "tests");
    await repo.prepare("human:me", "gate", "pass", id, "review");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "passed");
    for (const folder of ["issues", "gates/results"])
      fs.rmSync(path.join(repo.root, ".cotenant", folder), { recursive: true });
    expect((await repo.askHere(ADA, "gate", "list", id)).data["pending"]).toEqual([]);
    await repo.ask(ADA, "issue", "update", id, "--state", "done");
    expect(await stateOf(repo, id)).toMatchObject({ state: "done" });
    // Nothing of what HEAD has is lost with the next commit.
    repo.git("add", "--all");
    expect(repo.git("diff", "--cached", "--name-status", "--", ".cotenant/gates")).toBe("");
  });

  it("passed in two clones, a different one in each, is passed once they are merged", async () => {
    const repo = TestRepo.make();
    const id = await claimed(repo);
    await repo.prepare(ADA, "gate", "add", id, "review", "tests");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "an issue");
    repo.git("clone", "--quiet", ".", "../clone");
    const clone = repo.at("../clone");
    await repo.prepare("human:me", "gate", "pass", id, "review");
    clone.write("passing");
    await clone.prepare("human:eve", "trust");
    await clone.ask("human:eve", "gate", "run", id, "tests");
    for (const place of [repo, clone]) {
      place.git("add", "--all");
      place.git("commit", "--quiet", "--message", "passed");
    }
    // Only the results are at stake here: of the issue's own file either side's will do.
    repo.git("pull", "--quiet", "--no-rebase", "--no-edit", "-X", "theirs", "../clone", "main");
    const { data } = await repo.askHere(ADA, "gate", "list", id);
    expect(data).toMatchObject({ pending: [], results: [{ status: "passed" }, { status: "passed" }] });
  });
});
