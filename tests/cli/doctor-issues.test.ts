import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { writeIssue } from "../support/issue-files";
import { oneIn } from "../support/one-in";
import { expectNoInnards } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

interface Finding {
  readonly check: string;
  readonly level: string;
  readonly message: string;
  readonly next: string | null;
}

let repo: TestRepo;
beforeEach(async () => {
  repo = TestRepo.make();
  await repo.prepare("agent:a", "init");
});

const folder = (id: string) => path.join(repo.root, ".cotenant/issues", id);
const file = (id: string) => path.join(folder(id), "issue.json");

/** What doctor says of issues, after it was seen that it wrote nothing and that lists and validate survive it too. */
async function findings(): Promise<Finding[]> {
  const before = repo.picture();
  const doctor = await repo.askHere("agent:a", "doctor");
  expect(repo.picture()).toEqual(before);
  const found = (doctor.json.data!["findings"] as Finding[]).filter(({ check }) => check === "issues");
  const isWrong = found.some(({ level }) => level === "warning" || level === "error");
  expect((await repo.askHere("agent:a", "validate", "all")).status).toBe(isWrong ? 1 : 0);
  for (const command of [
    "query available",
    "query blocked",
    "issue list",
    "graph roots",
    "graph export",
    "search work",
  ]) {
    const ran = await repo.runHere("agent:a", ...command.split(" "));
    expect(ran.status, `${ran}`).toBe(0);
    expectNoInnards(ran);
  }
  return found;
}

async function brokenIds(): Promise<string[]> {
  const { data } = await repo.ask("agent:a", "query", "available");
  return (data["broken"] as { id: string }[]).map(({ id }) => id);
}

describe("doctor and validate on issues", () => {
  it("says how many there are where nothing is wrong", async () => {
    writeIssue(repo.root);
    expect(await findings()).toMatchObject([{ level: "ok", message: "1 issue" }]);
    expect((await repo.run("agent:a", "doctor")).stdout).toMatch(/^ok +issues +1 issue$/m);
  });

  it.each([
    ["broken JSON", (id: string) => fs.writeFileSync(file(id), '{"id": '), /is not JSON/],
    [
      "a merge conflict",
      (id: string) => fs.writeFileSync(file(id), "<<<<<<< HEAD\n{}\n=======\n"),
      /merge conflict/,
    ],
    [
      "an unknown state",
      (id: string) => void writeIssue(repo.root, { id, state: "lost\u001b[31m" }),
      /its state is "lost/,
    ],
    ["nothing but a list", (id: string) => fs.writeFileSync(file(id), "[]"), /not an object/],
    [
      "a directory in its place",
      (id: string) => {
        fs.rmSync(file(id));
        fs.mkdirSync(file(id));
      },
      /is not a file/,
    ],
    [
      "a pipe in its place",
      (id: string) => {
        fs.rmSync(file(id));
        execFileSync("mkfifo", [file(id)]);
      },
      /is not a file/,
    ],
    [
      "another issue's file",
      (id: string) => fs.copyFileSync(file(writeIssue(repo.root, { title: "Other work" })), file(id)),
      /it says that it is/,
    ],
  ])("%s: reported, listed as broken, and nothing else is lost", async (_, spoil, message) => {
    const good = writeIssue(repo.root, { title: "Good work" });
    const bad = writeIssue(repo.root);
    spoil(bad);
    const found = await findings();
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({ level: "warning", message: expect.stringMatching(message) });
    expect(found[0]!.message).toContain(bad);
    expect(found[0]!.message).not.toContain("\u001b");
    expect(found[0]!.next).toContain(file(bad));
    expect(await brokenIds()).toEqual([bad]);
    const { data } = await repo.ask("agent:a", "query", "available");
    expect((data["issues"] as { id: string }[]).map(({ id }) => id)).toContain(good);
    expect((await repo.runHere("agent:a", "query", "available")).stdout).toContain(`cannot read ${bad}`);
  });

  it.each([
    ["a missing file", (id: string) => fs.rmSync(file(id)), /it has no issue\.json/],
    [
      "ten megabytes of description",
      (id: string) => void writeIssue(repo.root, { id, description: "work ".repeat(2 << 20) }),
      /description of 10\.0 MB/,
    ],
    [
      "control characters",
      (id: string) => void writeIssue(repo.root, { id, title: "Work\u0007\u001b[2J" }),
      /control characters/,
    ],
    [
      "half a line in a set",
      (id: string) => fs.writeFileSync(path.join(folder(id), "deps.or-set.jsonl"), '{"op":"add","ta'),
      /1 line of deps\.or-set\.jsonl/,
    ],
    [
      "lines that are no comments",
      (id: string) => fs.writeFileSync(path.join(folder(id), "comments.jsonl"), "what\n{}\nelse\n"),
      /2 lines of comments\.jsonl/,
    ],
    [
      "an unknown dependency",
      (id: string) => void writeIssue(repo.root, { id, dependencies: ["01HZZZZZZZZZZZZZZZZZZZZZZZ"] }),
      /waits for 01HZZZZZZZZZZZZZZZZZZZZZZZ, which nobody has/,
    ],
    [
      "a circle",
      (id: string) => {
        const other = writeIssue(repo.root, { title: "Other work", dependencies: [id] });
        writeIssue(repo.root, { id, dependencies: [other] });
      },
      /wait for each other: \w+ → \w+ → \w+/,
    ],
  ])("%s", async (_, spoil, message) => {
    const id = writeIssue(repo.root);
    spoil(id);
    const found = await findings();
    expect(found).toMatchObject([{ level: "warning", message: expect.stringMatching(message) }]);
    expect(found[0]!.next).toMatch(/\w/);
    expect(found[0]!.message).not.toContain("\u001b");
    expect((await repo.run("agent:a", "query", "all")).stdout).not.toContain("\u001b");
  });

  it("two copies of one version that differ", async () => {
    const id = writeIssue(repo.root);
    repo.git("add", ".cotenant/issues");
    repo.git("commit", "--quiet", "--message", "issue");
    writeIssue(repo.root, { id, title: "Changed by hand" });
    const found = await findings();
    expect(found).toMatchObject([{ level: "warning", message: expect.stringMatching(/has two versions 1/) }]);
    expect(found[0]!.message).toContain("HEAD");
  });

  it("an issue that is in no worktree any more, and a write that was not finished", async () => {
    const gone = await repo.issue("Gone work");
    fs.rmSync(folder(gone), { recursive: true });
    expect(await findings()).toMatchObject([{ level: "note", message: expect.stringContaining(gone) }]);

    const id = await repo.issue("Half-written work");
    const digest = createHash("sha256")
      .update(fs.readFileSync(file(id)))
      .digest("hex");
    fs.renameSync(file(id), `${file(id)}.${digest.slice(0, 16)}.new`);
    const found = await findings();
    expect(found.map(({ message }) => message).join("\n")).toMatch(new RegExp(`${id}.*was not finished`));
    expect((await repo.run("agent:a", "query", "available")).stdout).toContain("Half-written work");
    await repo.prepare("agent:a", "gc");
    expect(fs.existsSync(file(id))).toBe(true);
  });
});
