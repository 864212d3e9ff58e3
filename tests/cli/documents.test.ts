import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

const ADA = "agent:ada";
let repo: TestRepo;
let id: string;
beforeEach(async () => {
  repo = TestRepo.make();
  await repo.prepare(ADA, "init");
  id = await repo.issue();
  await repo.prepare(ADA, "claim", "acquire", id);
  repo.write("docs/plan.md", "# Plan\n\tfirst\n");
});

const commit = (message: string) => {
  repo.git("add", "docs");
  repo.git("commit", "--quiet", "--message", message, "--", "docs");
};

describe("documents", () => {
  it("are added, listed, shown, followed through history and removed", async () => {
    commit("write a plan");
    const added = await repo.ask(ADA, "doc", "add", id, "docs/plan.md", "--title", "The plan");
    expect(added.data).toMatchObject({ changed: true, issue: { documents: [{ path: "docs/plan.md" }] } });
    expect((await repo.ask(ADA, "doc", "add", id, "./docs/../docs/plan.md")).data.changed).toBe(false);
    const { documents } = (await repo.ask(ADA, "doc", "list", id)).data;
    expect(documents).toMatchObject([
      { path: "docs/plan.md", title: "The plan", added_by: ADA, present: true },
    ]);

    repo.write("docs/plan.md", "# Another\n");
    const now = await repo.ask(ADA, "doc", "show", id, "docs/plan.md");
    expect(now.data).toMatchObject({ source: "worktree", content: "# Another\n", cut: false });
    const then = await repo.ask(ADA, "doc", "show", id, "docs/plan.md", "--at", "HEAD");
    expect(then.data).toMatchObject({ content: "# Plan\n\tfirst\n" });
    const text = (await repo.run(ADA, "doc", "show", id, "docs/plan.md", "--at", "main")).stdout;
    expect(text).toContain("as its authors wrote it:\n  | # Plan\n  |     first\n");

    commit("think again");
    const { commits } = (await repo.ask(ADA, "doc", "history", id, "docs/plan.md")).data;
    expect(commits).toMatchObject([{ subject: "think again" }, { subject: "write a plan" }]);
    expect(
      (await repo.ask(ADA, "doc", "history", id, "docs/plan.md", "--limit", "1")).data["commits"],
    ).toHaveLength(1);

    fs.rmSync(path.join(repo.root, "docs/plan.md"));
    expect((await repo.ask(ADA, "doc", "show", id, "docs/plan.md")).data["source"]).toBe("HEAD");
    expect((await repo.ask(ADA, "doc", "list", id)).data["documents"]).toMatchObject([{ present: false }]);
    expect((await repo.ask(ADA, "doc", "remove", id, "docs/plan.md")).data.changed).toBe(true);
    expectJsonRefused(await repo.ask(ADA, "doc", "remove", id, "docs/plan.md"), 4, "E_NOT_FOUND");
  });

  it("are named as seen from where the caller stands, and keep their own spelling", async () => {
    repo.write("docs/Größe [1].md", "x\n");
    commit("an odd name");
    await repo.at("docs").ask(ADA, "doc", "add", id, "Größe [1].md");
    const { issue } = (await repo.ask(ADA, "issue", "show", id)).data;
    expect(issue).toMatchObject({ documents: [{ path: "docs/Größe [1].md" }] });
    expect((await repo.at("docs").ask(ADA, "doc", "show", id, "Größe [1].md")).data["content"]).toBe("x\n");
    const history = await repo.ask(ADA, "doc", "history", id, "docs/Größe [1].md");
    expect(history.data["commits"]).toMatchObject([{ subject: "an odd name", path: "docs/Größe [1].md" }]);
  });

  it("need the claim", async () => {
    expectJsonRefused(await repo.ask("agent:bob", "doc", "add", id, "docs/plan.md"), 6, "E_LOCK_NOT_HELD");
  });

  it.each([
    ["../outside.md", 9, "E_PATH_ESCAPE"],
    ["/etc/passwd", 9, "E_PATH_ESCAPE"],
    [".git/config", 9, "E_PATH_ESCAPE"],
    ["link", 9, "E_PATH_ESCAPE"],
    ["docs", 4, "E_NOT_FOUND"],
    ["docs/none.md", 4, "E_NOT_FOUND"],
    ["", 64, "E_USAGE"],
  ])("are files of the repository: %j is not", async (text, exit, code) => {
    fs.symlinkSync("/etc/passwd", path.join(repo.root, "link"));
    expectJsonRefused(await repo.ask(ADA, "doc", "add", id, text), exit, code);
  });

  it("that a committed issue names are read only inside the repository", async () => {
    fs.symlinkSync("/etc/passwd", path.join(repo.root, "link"));
    const file = path.join(repo.root, `.cotenant/issues/${id}/issue.json`);
    const issue = JSON.parse(fs.readFileSync(file, "utf8"));
    const paths = ["../../etc/passwd", "/etc/passwd", ".git/config", "link"];
    issue.documents = paths.map((one) => ({ path: one }));
    fs.writeFileSync(file, JSON.stringify(issue));
    for (const one of paths)
      expectJsonRefused(await repo.ask(ADA, "doc", "show", id, one), 9, "E_PATH_ESCAPE");
    expect((await repo.ask(ADA, "doc", "list", id)).data["documents"]).toMatchObject(
      paths.map((one) => ({ path: one, present: false })),
    );
  });

  it("are shown without what could act on a terminal, and not without end", async () => {
    repo.write("docs/plan.md", `\u{1b}[2Jgone \u{202e}evil\n${"line\n".repeat(100_000)}`);
    await repo.ask(ADA, "doc", "add", id, "docs/plan.md");
    const shown = await repo.run(ADA, "doc", "show", id, "docs/plan.md");
    expect(shown.stdout).not.toMatch(/\u{1b}|\u{202e}/u);
    expect(shown.stdout.split("\n").length).toBeLessThan(2_010);
    const { data } = await repo.ask(ADA, "doc", "show", id, "docs/plan.md");
    expect(data).toMatchObject({ cut: true });
    expect((data["content"] as string).length).toBeLessThanOrEqual(256 << 10);
    fs.writeFileSync(path.join(repo.root, "docs/plan.md"), Buffer.from([1, 0, 2]));
    expect((await repo.ask(ADA, "doc", "show", id, "docs/plan.md")).data).toMatchObject({
      content: null,
      bytes: 3,
    });
  });

  it("have no history before the first commit", async () => {
    await repo.ask(ADA, "doc", "add", id, "docs/plan.md");
    expect((await repo.ask(ADA, "doc", "history", id, "docs/plan.md")).data["commits"]).toEqual([]);
    expectJsonRefused(
      await repo.ask(ADA, "doc", "show", id, "docs/plan.md", "--at", "HEAD"),
      4,
      "E_NOT_FOUND",
    );
    expectJsonRefused(
      await repo.ask(ADA, "doc", "show", id, "docs/plan.md", "--at=--help"),
      4,
      "E_NOT_FOUND",
    );
  });
});
