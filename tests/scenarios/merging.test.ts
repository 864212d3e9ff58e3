import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { encodeIssue, type Issue, newIssue } from "../../src/features/issues/model";
import { encodeSetLine, readOrSet } from "../../src/features/issues/or-set";
import type { Ulid } from "../../src/kernel/ids";
import { oneIn } from "../support/one-in";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { ulid } from "../support/ulid";

const it = oneIn(5);

const ID = "01M7F87SKQ7X3KZ979XRC4S87G" as Ulid;
const FOLDER = `.cotenant/issues/${ID}`;
const FILE = `${FOLDER}/issue.json`;
const AT = "2026-01-01T00:00:00.000Z";
const stamp = (version: number, origin: string) => ({
  ...{ version, origin, lease_id: null, fencing_token: null, sequence: null },
});
const BASE = newIssue({
  ...{
    id: ID,
    title: "Log in",
    description: "One.\n\nTwo.\n\nThree.",
    created_at: AT,
    created_by: "agent:a",
  },
  stamp: stamp(1, "wt:00000001"),
});

interface Ended {
  readonly status: number | null;
  readonly text: string;
}

let repo: TestRepo;
beforeEach(async () => {
  // A path that a shell would take apart.
  repo = TestRepo.make(path.join(scratch(), "my répo's $HOME %A"));
  await repo.prepare("agent:a", "init");
  repo.write(FILE, encodeIssue(BASE));
  commit(repo, "base");
});

function commit(where: TestRepo, message: string): void {
  where.git("add", "--all");
  where.git("commit", "--quiet", "--message", message);
}

/** Git as a person runs it: without an agent's name. It may fail. */
function git(where: TestRepo, ...args: string[]): Ended {
  const ended = spawnSync("git", args, {
    cwd: where.root,
    encoding: "utf8",
    env: { ...process.env, GIT_EDITOR: "true" },
  });
  return { status: ended.status, text: ended.stdout + ended.stderr };
}

const read = (where = repo) => fs.readFileSync(path.join(where.root, FILE), "utf8");
const issueIn = (where = repo) => JSON.parse(read(where)) as Issue;

/** A commit on a branch of its own that starts where `main` is. */
function branch(name: string, fields: Partial<Issue>): void {
  repo.git("checkout", "--quiet", "-b", name, "main");
  change(name, fields);
}

function change(origin: string, fields: Partial<Issue>): void {
  const now = issueIn();
  repo.write(
    FILE,
    encodeIssue({ ...now, extra: {}, ...fields, stamp: stamp(now.stamp.version + 1, origin) }),
  );
  commit(repo, origin);
}

describe("S26: two branches change one issue", () => {
  const left = { title: "Sign in", description: "One.\n\n2.\n\nThree." };
  const right = {
    priority: "high",
    gates: ["tests"],
    description: "One.\n\nTwo.\n\nThree.\n\nFour.",
  } as const;
  const both = { ...left, ...right, description: "One.\n\n2.\n\nThree.\n\nFour." };

  it.each([
    ["git merge", ["merge", "--no-edit", "right"]],
    ["git rebase", ["rebase", "right"]],
    ["git rebase by patches", ["rebase", "--apply", "right"]],
    ["git cherry-pick", ["cherry-pick", "right"]],
    ["git merge, squashed", ["merge", "--squash", "right"]],
    ["git merge, the older strategy", ["merge", "--no-edit", "--strategy=recursive", "right"]],
  ])("different fields: %s keeps both, without a conflict", (_, args) => {
    branch("left", left);
    branch("right", right);
    repo.git("checkout", "--quiet", "left");
    const ended = git(repo, ...args);
    expect(ended.status, ended.text).toBe(0);
    expect(issueIn()).toMatchObject({ ...both, stamp: stamp(3, "merge") });
    expect(git(repo, "ls-files", "--unmerged").text).toBe("");
  });

  it("the same bytes come out in either direction, and merging those changes nothing", () => {
    branch("left", left);
    branch("right", right);
    repo.git("tag", "right-alone");
    expect(git(repo, "merge", "--no-edit", "left").status).toBe(0);
    const one = read();
    repo.git("checkout", "--quiet", "left");
    expect(git(repo, "merge", "--no-edit", "right-alone").status).toBe(0);
    expect(read()).toBe(one);
    expect(git(repo, "merge", "--no-edit", "right").status).toBe(0);
    expect(read()).toBe(one);
  });

  it("in a linked worktree, and without any worktree by git merge-tree", () => {
    branch("left", left);
    branch("right", right);
    repo.git("checkout", "--quiet", "main");
    repo.git("worktree", "add", "--quiet", "../zweite Kopie", "left");
    const tree = git(repo, "merge-tree", "--write-tree", "left", "right");
    expect(tree.status, tree.text).toBe(0);
    const linked = repo.at("../zweite Kopie");
    expect(git(linked, "merge", "--no-edit", "right").status).toBe(0);
    expect(issueIn(linked)).toMatchObject(both);
    expect(git(repo, "cat-file", "blob", `${tree.text.trim()}:${FILE}`).text).toBe(read(linked));
  });

  it("without a control plane, and with a program that is not on the PATH", () => {
    branch("left", left);
    branch("right", right);
    fs.rmSync(repo.control, { recursive: true });
    const folder = scratch();
    for (const tool of ["git", "sh", "grep"]) {
      const where = spawnSync("/bin/sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).stdout.trim();
      fs.symlinkSync(where, path.join(folder, tool));
    }
    const env = { ...process.env, PATH: folder };
    const ended = spawnSync("git", ["merge", "--no-edit", "left"], { cwd: repo.root, encoding: "utf8", env });
    expect(ended.status, ended.stderr).toBe(0);
    expect(issueIn()).toMatchObject(both);
    expect(fs.existsSync(repo.control)).toBe(false);
  });

  it("the same field: a conflict that a person can read, and resolve with an editor", async () => {
    branch("left", { title: "Sign in", assignee: "agent:b" });
    branch("right", { title: "Log on", priority: "low" });
    const ended = git(repo, "merge", "left");
    expect(ended.status).toBe(1);
    expect(ended.text).toContain(`${FILE}: both sides changed title: "Log on" (`);
    expect(ended.text).toContain("CONFLICT");
    const marks = /^<{7} \S.*\n {2}"title": "Log on",\n={7}\n {2}"title": "Sign in",\n>{7} \S.*\n/m;
    expect(read()).toMatch(marks);
    expect(read().match(/^[<=>]{7}/gm)).toHaveLength(3);

    const { findings } = (await repo.prepare("agent:a", "doctor")) as unknown as {
      findings: { check: string; level: string; message: string }[];
    };
    expect(findings.filter(({ check }) => check === "issues")).toMatchObject([
      { level: "warning", message: expect.stringContaining("merge conflict") },
    ]);
    repo.write(FILE, read().replace(marks, '  "title": "Log on or sign in",\n'));
    commit(repo, "resolved");
    expect(issueIn()).toMatchObject({ title: "Log on or sign in", assignee: "agent:b", priority: "low" });
    expect((await repo.runHere("agent:a", "issue", "show", ID)).stdout).toContain("Log on or sign in");
  });

  it.each([
    ["rebase", ["rebase", "right"], ["rebase", "--continue"]],
    ["cherry-pick", ["cherry-pick", "right"], ["cherry-pick", "--continue"]],
  ])("the same paragraph, in git %s: stops, and goes on when resolved", (_, begin, goOn) => {
    branch("left", { description: "One.\n\nMine.\n\nThree." });
    branch("right", { description: "One.\n\nYours.\n\nThree.\n\nFour." });
    repo.git("checkout", "--quiet", "left");
    expect(git(repo, ...begin).status).toBe(1);
    const block = /^<{7} .*\n([\s\S]*?)^={7}\n([\s\S]*?)^>{7} .*\n/m;
    expect(read()).toMatch(/"description": "One\.\\n\\nMine\.\\n\\nThree\.\\n\\nFour\."/);
    expect(read()).toMatch(/"description": "One\.\\n\\nYours\.\\n\\nThree\.\\n\\nFour\."/);
    repo.write(FILE, read().replace(block, "$1"));
    repo.git("add", "--all");
    expect(git(repo, ...goOn).status).toBe(0);
    expect(issueIn().description).toMatch(/^One\.\n\n(?:Mine|Yours)\.\n\nThree\.\n\nFour\.$/);
  });

  it("deleted here and changed there: both are shown, and nothing is dropped", () => {
    branch("left", { deleted_at: AT, description: "" });
    branch("right", { title: "Log on" });
    expect(git(repo, "merge", "left").status).toBe(1);
    expect(read()).toMatch(
      /^ {2}"deleted_at": null,\n={7}\n {2}"deleted_at": "2026-01-01T00:00:00.000Z",\n/m,
    );
    expect(read()).toContain('"title": "Log on"');
    expect(read()).toContain('"description": "One.\\n\\nTwo.\\n\\nThree."');
  });

  it("branches that merge each other crosswise decide nothing twice", () => {
    branch("left", { title: "L" });
    branch("right", { title: "R", priority: "low" });
    for (const [here, there, title] of [
      ["left", "right", "L"],
      ["right", "left^1", "R"],
    ] as const) {
      repo.git("checkout", "--quiet", here);
      expect(git(repo, "merge", there).status).toBe(1);
      repo.write(FILE, encodeIssue({ ...BASE, title, priority: "low", stamp: stamp(3, "merge") }));
      commit(repo, `${here} decided`);
    }
    // The common ancestors contradict each other, and so do the two decisions.
    repo.git("checkout", "--quiet", "left");
    expect(git(repo, "merge", "right").status).toBe(1);
    expect(read()).toMatch(/"title": "L",\n={7}\n {2}"title": "R",/);
    expect(read()).toMatch(/^ {2}"priority": "low",\n {2}"assignee"/m);
  });

  it.each([
    ["broken JSON", (text: string) => text.replace('"title"', "title")],
    ["a newer version", (text: string) => text.replace('"schema_version": 1', '"schema_version": 2')],
    [
      "bytes that are no text",
      (text: string) => Buffer.concat([Buffer.from(text), Buffer.from([0xff, 0xfe, 10])]),
    ],
    [
      "a number that would be rounded",
      (text: string) => text.replace('"stamp"', '"n": 12345678901234567890,\n  "stamp"'),
    ],
    ["a 10 MB description", (text: string) => text.replace("Two.", "x".repeat(10_000_000))],
  ])("%s on one side: Git's own text merge, and no side is lost", (_, damage) => {
    branch("left", { title: "Sign in" });
    branch("right", { title: "Log on" });
    repo.write(FILE, damage(read()) as string);
    commit(repo, "damaged");
    const theirs = fs.readFileSync(path.join(repo.root, FILE));
    repo.git("checkout", "--quiet", "left");
    const ended = git(repo, "merge", "right");
    expect(ended.status).toBe(1);
    expect(ended.text).toContain("merged as text");
    expect(read()).toMatch(/^<{7} [\s\S]*Sign in[\s\S]*^={7}$[\s\S]*Log on[\s\S]*^>{7} /m);
    const kept = spawnSync("git", ["show", `:3:${FILE}`], { cwd: repo.root, maxBuffer: 1 << 26 }).stdout;
    expect(kept.equals(theirs)).toBe(true);
  });

  it("both sides add the same issue", () => {
    repo.git("checkout", "--quiet", "--orphan", "left");
    repo.git("rm", "--quiet", "-r", "--force", ".");
    repo.git("checkout", "--quiet", "main", "--", ".cotenant/.gitattributes");
    commit(repo, "root");
    repo.git("branch", "right");
    const fresh = (fields: Partial<Issue>) => encodeIssue({ ...BASE, description: "", ...fields });
    repo.write(FILE, fresh({ description: "Text", gates: ["a"] }));
    commit(repo, "left");
    repo.git("checkout", "--quiet", "right");
    repo.write(FILE, fresh({ assignee: "agent:b", gates: ["b"] }));
    commit(repo, "right");
    const ended = git(repo, "merge", "--no-edit", "left");
    expect(ended.status, ended.text).toBe(0);
    expect(issueIn()).toMatchObject({ description: "Text", assignee: "agent:b", gates: ["a", "b"] });
  });
});

describe("S27: two branches add and remove labels and dependencies", () => {
  const SETS = ["labels.or-set.jsonl", "deps.or-set.jsonl"];
  const textOf = (file: string) => fs.readFileSync(path.join(repo.root, FOLDER, file), "utf8");
  const append = (file: string, line: string) => fs.appendFileSync(path.join(repo.root, FOLDER, file), line);
  const add = (file: string, value: string) =>
    append(file, encodeSetLine({ op: "add", tag: ulid() as Ulid, value, at: AT, by: "agent:a" }));
  const remove = (file: string, value: string) => {
    const tags = readOrSet(textOf(file)).tags.get(value)!;
    append(file, encodeSetLine({ op: "remove", tags, value, at: AT, by: "agent:a" }));
  };

  it.each([
    ["git merge", ["merge", "--no-edit", "right"]],
    ["git rebase", ["rebase", "right"]],
    ["git cherry-pick", ["cherry-pick", "right"]],
  ])("%s gives the union that an OR-set promises", (_, args) => {
    for (const file of SETS) for (const value of ["kept", "gone", "again"]) add(file, value);
    commit(repo, "some");
    repo.git("checkout", "--quiet", "-b", "left");
    for (const file of SETS) {
      add(file, "left");
      remove(file, "gone");
      remove(file, "again");
    }
    commit(repo, "left");
    repo.git("checkout", "--quiet", "-b", "right", "main");
    for (const file of SETS) {
      add(file, "right");
      // The left has not seen this one, and cannot have meant it.
      add(file, "again");
    }
    append("comments.jsonl", '{"text":"right"}\n');
    commit(repo, "right");
    repo.git("checkout", "--quiet", "left");
    append("comments.jsonl", '{"text":"left"}\n');
    commit(repo, "comment");
    const ended = git(repo, ...args);
    expect(ended.status, ended.text).toBe(0);
    for (const file of SETS) {
      const { values, broken } = readOrSet(textOf(file));
      expect([...values].sort()).toEqual(["again", "kept", "left", "right"]);
      expect(broken).toBe(0);
    }
    expect(textOf("comments.jsonl").split("\n").sort()).toEqual(["", '{"text":"left"}', '{"text":"right"}']);
  });
});

describe("a clone that was never initialised", () => {
  it("merges as text, says so in doctor, and merges by fields after init", async () => {
    branch("left", { title: "Sign in" });
    branch("right", { gates: ["tests"] });
    repo.git("config", "--remove-section", "merge.cotenant-issue");
    const merging = async () => {
      const { data } = await repo.askHere("agent:a", "doctor");
      return (data["findings"] as { check: string }[]).filter(({ check }) => check === "merging");
    };
    expect(await merging()).toMatchObject([
      {
        level: "warning",
        message: expect.stringContaining("no merge driver"),
        next: expect.stringContaining("cotenant init"),
      },
    ]);
    const ended = git(repo, "merge", "left");
    expect(ended.status).toBe(1);
    expect(read()).toMatch(/^<{7} [\s\S]*^>{7} /m);
    repo.git("merge", "--abort");

    expect((await repo.ask("agent:a", "init")).data).toMatchObject({ created: [], merge_driver: true });
    expect(await merging()).toMatchObject([{ level: "ok" }]);
    expect(git(repo, "merge", "--no-edit", "left").status).toBe(0);
    expect(issueIn()).toMatchObject({ title: "Sign in", gates: ["tests"] });
  });

  it.each([
    ["gone", "no-such-program"],
    ["broken", "broken.js"],
  ])("and one whose program is %s falls back to a text merge with marks", async (_, program) => {
    branch("left", { title: "Sign in" });
    branch("right", { title: "Log on" });
    const command = repo.git("config", "merge.cotenant-issue.driver").trimEnd();
    const moved = command.replace(
      /'[^']*\/bin\/cotenant'/g,
      `'${path.join(path.dirname(repo.root), program)}'`,
    );
    fs.writeFileSync(path.join(path.dirname(repo.root), "broken.js"), "throw new Error('broken');\n");
    expect(moved).not.toBe(command);
    repo.git("config", "merge.cotenant-issue.driver", moved);
    const ended = git(repo, "merge", "left");
    expect(ended.status).toBe(1);
    expect(read()).toMatch(/^<{7} ours\n[\s\S]*Log on[\s\S]*^={7}$[\s\S]*Sign in[\s\S]*^>{7} theirs\n/m);
    if (program === "broken.js") return;
    repo.git("merge", "--abort");
    const findings = (await repo.prepare("agent:a", "doctor"))["findings"] as { check: string }[];
    expect(findings.filter(({ check }) => check === "merging")).toMatchObject([
      { level: "warning", message: expect.stringMatching(/no-such-program, which is gone$/) },
    ]);
  });
});

describe("an issue that was made here, uncommitted, and finished in another worktree", () => {
  it("merges when both have committed it: one copy comes from the other", async () => {
    const other = repo.addWorktree("other");
    const id = (await repo.prepare("agent:a", "issue", "create", "--title", "Made here")).issue.id;
    await other.prepare("agent:b", "claim", "acquire", id);
    await other.prepare("agent:b", "issue", "update", id, "--title", "Done there");
    await other.prepare("agent:b", "issue", "update", id, "--state", "in_progress");
    await other.prepare("agent:b", "close", id, "--reason", "it works");
    commit(repo, "as it was made");
    commit(other, "as it was done");
    for (const [where, branch] of [
      [repo, "other"],
      [other, "main"],
    ] as const) {
      const merged = git(where, "merge", "--no-edit", branch);
      expect(merged.status, merged.text).toBe(0);
      const file = path.join(where.root, `.cotenant/issues/${id}/issue.json`);
      expect(JSON.parse(fs.readFileSync(file, "utf8"))).toMatchObject({
        title: "Done there",
        state: "done",
        resolution: "it works",
      });
    }
  });

  it("conflicts where the one that was made first was changed by hand since", async () => {
    const other = repo.addWorktree("other");
    const id = (await repo.prepare("agent:a", "issue", "create", "--title", "Made here")).issue.id;
    await other.prepare("agent:b", "claim", "acquire", id);
    await other.prepare("agent:b", "issue", "update", id, "--title", "Done there");
    const file = path.join(repo.root, `.cotenant/issues/${id}/issue.json`);
    fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace("Made here", "Changed here"));
    commit(repo, "as it was made");
    commit(other, "as it was done");
    expect(git(repo, "merge", "--no-edit", "other").status).not.toBe(0);
    expect(fs.readFileSync(file, "utf8")).toMatch(/Changed here[\s\S]*Done there/);
  });
});
