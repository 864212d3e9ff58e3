import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { writeIssue } from "../support/issue-files";
import { sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import type { Ran } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { cotenant, pictureOf, TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

const listed = (ran: Ran) => ran.data["issues"] as readonly Record<string, unknown>[];
const titles = (ran: Ran) => listed(ran).map((issue) => issue["title"]);

let repo: TestRepo;
beforeEach(async () => {
  repo = TestRepo.make();
  await repo.prepare("agent:a", "init");
});

describe("queries", () => {
  it("sort by priority, then type, then age, and let through what the filters say", async () => {
    const at = (n: number) => `01HF7YAT00000000000000000${n}`;
    writeIssue(repo.root, { id: at(1), title: "Chore", labels: ["type:chore"] });
    writeIssue(repo.root, { id: at(2), title: "Epic", labels: ["type:epic", "area:login"] });
    writeIssue(repo.root, { id: at(3), title: "Bug", labels: ["type:bug", "area:login"] });
    writeIssue(repo.root, { id: at(4), title: "No type" });
    writeIssue(repo.root, { id: at(5), title: "Urgent", priority: "critical" });
    writeIssue(repo.root, { id: at(6), title: "Done", state: "done", labels: ["type:epic"] });
    const all = titles(await repo.ask("agent:a", "query", "available"));
    expect(all).toEqual(["Urgent", "Epic", "Chore", "Bug", "No type"]);
    const ask = async (...args: string[]) => titles(await repo.askHere("agent:a", ...args));
    expect(await ask("ready", "--limit", "2")).toEqual(["Urgent", "Epic"]);
    expect(await ask("query", "available", "--type", "bug", "--type", "chore")).toEqual(["Chore", "Bug"]);
    expect(await ask("query", "available", "--label", "area:login", "--label", "type:bug")).toEqual(["Bug"]);
    expect(await ask("query", "available", "--priority", "critical")).toEqual(["Urgent"]);
    expect(await ask("query", "available", "--assignee", "agent:b")).toEqual([]);
    expect(await ask("query", "strategic")).toEqual(["Epic", "Done"]);
    expect(await ask("query", "strategic", "--type", "bug")).toEqual([]);
    expect(await ask("query", "closed")).toEqual(["Done"]);
    expect(await ask("query", "closed", "--state", "ready")).toEqual([]);
    expect(await ask("issue", "list", "--type", "epic", "--state", "done")).toEqual(["Done"]);
    for (const bad of ["--priority urgent", "--label what", "--assignee bob", "--limit -3"])
      expectRefused(await repo.runHere("agent:a", "query", "available", ...bad.split(" ")), 64, "E_USAGE");
  });

  it("name the known types where one is asked for that nobody knows", async () => {
    writeIssue(repo.root, { title: "Chore", labels: ["type:chore"] });
    writeIssue(repo.root, { title: "Research", labels: ["type:spike"] });
    for (const command of ["query available", "query all", "query strategic", "issue list", "claim next"]) {
      const refused = await repo.askHere("agent:a", ...command.split(" "), "--type", "bgu");
      expectJsonRefused(refused, 64, "E_USAGE");
      expect(refused.error.hint, command).toMatch(/bug.*chore.*spike/);
    }
    // Known by the hierarchy alone, or by an issue alone.
    expect(titles(await repo.askHere("agent:a", "query", "available", "--type", "bug"))).toEqual([]);
    expect(titles(await repo.askHere("agent:a", "query", "all", "--type", "spike"))).toEqual(["Research"]);
  });

  it("leave out issues whose files somebody else holds, with --free-files", async () => {
    writeIssue(repo.root, { title: "Free", files: ["src/free.ts"] });
    writeIssue(repo.root, { title: "File held", files: ["src/held.ts"] });
    writeIssue(repo.root, { title: "Directory held", files: ["lib/deep/x.ts"] });
    writeIssue(repo.root, { title: "Holds something inside", files: ["docs"] });
    for (const file of ["src/held.ts", "lib/deep/x.ts", "docs/a.md"]) repo.write(file);
    await repo.prepare("agent:b", "lock", "acquire", "src/held.ts", "docs/a.md", "--dir", "lib");
    const free = async (agent: string) => titles(await repo.ask(agent, "query", "available", "--free-files"));
    expect(await free("agent:a")).toEqual(["Free"]);
    // Its own leases are in nobody's way.
    expect(await free("agent:b")).toHaveLength(4);
    expect(titles(await repo.askHere("agent:a", "query", "available"))).toHaveLength(4);
    expect((await repo.askHere("agent:a", "claim", "next", "--free-files")).data.issue.title).toBe("Free");
    expectJsonRefused(await repo.askHere("agent:a", "claim", "next", "--free-files"), 4, "E_NOT_FOUND");
  });

  it("say where to look when nothing is available, by what is so", async () => {
    const looks = ["query blocked", "claim status", "lock status", "query all", "sync"];
    const named = (words: string) => looks.filter((command) => words.includes(`'cotenant ${command}'`));
    const empty = async (...args: string[]) => {
      const said = (await repo.runHere("agent:a", "query", "available", ...args)).stdout;
      expect(said).toMatch(/^nothing is available; /);
      expect(named((await repo.askHere("agent:a", "claim", "next", ...args)).error.hint)).toEqual(
        named(said),
      );
      return named(said);
    };
    expect(await empty()).toEqual(["query all"]);
    const id = await repo.issue("Claimed");
    await repo.prepare("agent:b", "claim", "acquire", id);
    expect(await empty()).toEqual(["claim status"]);
    const waits = (await repo.prepare("agent:b", "issue", "create", "--title", "Waits", "--depends-on", id))
      .issue.id;
    expect(await empty()).toEqual(["query blocked", "claim status"]);
    expect(await empty("--priority", "critical")).toEqual(["query all"]);
    await repo.prepare("agent:b", "issue", "update", id, "--state", "done", "--release");
    await repo.prepare("agent:b", "claim", "acquire", waits);
    expect(await empty()).toEqual(["claim status"]);
    writeIssue(repo.root, { title: "File held", files: ["src/held.ts"], priority: "critical" });
    await repo.prepare("agent:b", "lock", "acquire", "src/held.ts");
    expect(await empty("--priority", "critical", "--free-files")).toEqual(["lock status"]);
  });

  it("name 'sync' when nothing is available and claims are shared with other machines", async () => {
    const { first, ids } = await sharedIssues(1);
    await first.prepare("claim", "acquire", ids[0]!);
    const { stdout } = await first.runHere("query", "available");
    expect(stdout).toContain("'cotenant claim status' shows who works on what");
    expect(stdout).toContain("'cotenant sync' brings what other machines have");
  });

  it("have the seeds' short names", async () => {
    const id = await repo.issue("Named shortly");
    await repo.prepare("agent:a", "claim", id);
    expect((await repo.ask("agent:a", "in-progress", id)).data.issue).toMatchObject({ state: "in_progress" });
    expect((await repo.askHere("agent:a", "close", id)).data.issue).toMatchObject({ state: "done" });
    expectRefused(await repo.runHere("agent:a", "close"), 64, "E_USAGE");
    expect((await repo.runHere("agent:a", "help", "ready")).stdout).toContain("query available");
  });

  it("write nothing but their cache, and work outside Git", async () => {
    writeIssue(repo.root, { title: "Work" });
    const before = repo.picture();
    await repo.ask("agent:a", "query", "available");
    // A picture leaves the cache out.
    expect(repo.picture()).toEqual(before);
    expect(fs.readdirSync(`${repo.control}/cache`)).toHaveLength(1);

    const outside = scratch();
    writeIssue(outside, { title: "Plain" });
    const picture = pictureOf(outside);
    for (const command of ["query available", "query all", "graph roots", "search plain"])
      expect(titles(await cotenant(outside, [...command.split(" "), "--json"]))).toEqual(["Plain"]);
    expect(pictureOf(outside)).toEqual(picture);
  });
});

describe("search", () => {
  it("ranks titles over labels, descriptions, comments and documents, whole words over beginnings", async () => {
    const say = (title: string, more = {}) => writeIssue(repo.root, { title, ...more });
    repo.write("docs/design.md", "# About the cache\n");
    repo.write("docs/binary", "cache\0");
    say("In a document", { documents: [{ path: "docs/design.md", title: null }] });
    const commented = say("In a comment");
    say("In a description", { description: "a cache somewhere" });
    say("In a label", { labels: ["area:cache"] });
    say("Caches begin so");
    say("The cache itself");
    say("Not in an apocache");
    say("In nothing", {
      documents: [
        { path: "docs/binary", title: null },
        { path: "../../etc/passwd", title: null },
      ],
    });
    await repo.prepare("agent:b", "issue", "comment", commented, "--text", "the CACHE is cold");
    const found = await repo.ask("agent:a", "search", "cache");
    expect(titles(found)).toEqual([
      "The cache itself",
      "Caches begin so",
      "In a label",
      "In a description",
      "In a comment",
      "In a document",
    ]);
    expect(listed(found)[5]!["matches"]).toEqual([{ field: "document", snippet: "# About the cache" }]);
    expect(titles(await repo.askHere("agent:a", "search", "cache", "somewhere"))).toEqual([
      "In a description",
    ]);
    expect((await repo.askHere("agent:a", "search", "cache", "--limit", "1")).data["found"]).toBe(6);
    expect(titles(await repo.askHere("agent:a", "search", "--regex", "^c.ches\\b"))).toEqual([
      "Caches begin so",
    ]);
    expect((await repo.runHere("agent:a", "search", "nowhere")).stdout).toBe("nothing found\n");
  });

  it("does not hang on a hostile pattern, and says what is wrong with a bad one", async () => {
    writeIssue(repo.root, { title: "Bait", description: `${"a".repeat(40)}!` });
    const hostile = await repo.ask("agent:a", "search", "--regex", "^(a+)+$");
    expectJsonRefused(hostile, 9, "E_LIMIT");
    expectRefused(await repo.runHere("agent:a", "search", "--regex", "("), 64, "E_USAGE");
    expectRefused(await repo.runHere("agent:a", "search", "--regex", "a", "b"), 64, "E_USAGE");
    expectRefused(await repo.runHere("agent:a", "search", ""), 64, "E_USAGE");
    expectRefused(await repo.runHere("agent:a", "search", "x".repeat(2_000)), 9, "E_LIMIT");
  });
});

describe("graph", () => {
  it("shows trees both ways, and exports every format with titles that cannot break out of it", async () => {
    const evil = 'Say "]; \\ <b>#1</b> `x` {a|b}\u001b[31m';
    const base = writeIssue(repo.root, { title: evil });
    const left = writeIssue(repo.root, { title: "Left", dependencies: [base] });
    const right = writeIssue(repo.root, { title: "Right", dependencies: [base] });
    const top = writeIssue(repo.root, { title: "Top", dependencies: [left, right] });
    const tree = (await repo.run("agent:a", "graph", "show", top)).stdout;
    expect(tree.split("\n").map((line) => line.replace(/[0-9a-z]{4,16} {2}/, ""))).toEqual([
      "Top (ready)",
      "├─ Left (ready)",
      expect.stringMatching(/^│ {2}└─ Say/),
      "└─ Right (ready)",
      expect.stringMatching(/^ {3}└─ Say/),
      "",
    ]);
    const down = await repo.askHere("agent:a", "graph", "downstream", base);
    expect((down.data["nodes"] as { id: string }[]).map(({ id }) => id).sort()).toEqual(
      [base, left, right, top].sort(),
    );
    expect(down.data["edges"]).toContainEqual({ from: left, to: base });
    expect(titles(await repo.askHere("agent:a", "graph", "roots"))).toHaveLength(1);

    const dot = (await repo.runHere("agent:a", "graph", "export", "--format", "dot")).stdout;
    expect(dot).toContain('\\"]; \\\\ <b>');
    expect(dot).toContain(`"${left}" -> "${base}";`);
    const mermaid = (await repo.runHere("agent:a", "graph", "export", "--format", "mermaid")).stdout;
    expect(mermaid).toContain(`i${left} --> i${base}`);
    const label = mermaid.split("\n").find((line) => line.includes(`i${base}[`))!;
    expect(label).toMatch(/^ {2}i\w+\["[^"<>`{}|]*"\]:::open$/);
    const json = JSON.parse(
      (await repo.runHere("agent:a", "graph", "export", top, "--format", "json")).stdout,
    );
    expect(json.nodes).toHaveLength(4);
    for (const text of [tree, dot, mermaid]) expect(text).not.toContain("\u001b");
    expectRefused(await repo.runHere("agent:a", "graph", "export", "--format", "png"), 64, "E_USAGE");
    expectRefused(await repo.runHere("agent:a", "graph", "show", "zzzz"), 4, "E_NOT_FOUND");
  });

  it("draws a chain of thousands in no time", async () => {
    let last = "";
    for (let n = 0; n < 3_000; n++)
      last = writeIssue(repo.root, { title: `Link ${n}`, dependencies: last === "" ? [] : [last] });
    const { stdout } = await repo.run("agent:a", "graph", "show", last);
    expect(stdout.split("\n")).toHaveLength(3_001);
    expect(stdout.length).toBeLessThan(1 << 20);
    fs.appendFileSync(path.join(repo.root, ".cotenant/issues", last, "deps.or-set.jsonl"), "\n");
    expect((await repo.runHere("agent:a", "graph", "show", last)).stdout).toBe(stdout);
  });
});
