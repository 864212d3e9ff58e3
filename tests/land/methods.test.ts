import { beforeEach, describe, expect } from "vitest";
import {
  add,
  branchWith,
  firstParents,
  headOf,
  isClean,
  LANDER,
  land,
  landingRepo,
  outcomes,
} from "../support/landing";
import { oneIn } from "../support/one-in";
import type { TestRepo } from "../support/repo";

const it = oneIn(4);

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

const show = (format: string, commit = "main") => repo.git("log", "-1", `--format=${format}`, commit).trim();
const trailer = (key: string, commit = "main") => show(`%(trailers:key=${key},valueonly)`, commit);

/** As somebody else, at another time. */
function commitAs(name: string, files: Record<string, string>, message: string): void {
  for (const [file, content] of Object.entries(files)) repo.write(file, content);
  repo.git("add", "--all");
  const author = `${name} <${name.toLowerCase()}@example.org>`;
  repo.git("commit", "--quiet", `--author=${author}`, "--date=2020-02-02T02:02:02Z", "--message", message);
}

describe("landing by merge", () => {
  it("has two parents, never fast-forwards, and says what landed why", async () => {
    const id = await repo.issue("Do it");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "issue");
    const before = headOf(repo);
    const tip = branchWith(repo, "work/one", { "a.txt": "one\n" });
    await add(repo, "work/one", "--issue", id, "--message", "Land the first");
    expect(outcomes(await land(repo))).toEqual({ "work/one": "landed" });
    expect(show("%P")).toBe(`${before} ${tip}`);
    expect(show("%s")).toBe("Land the first");
    expect(trailer("Cotenant-Landed")).toBe(`work/one ${tip}`);
    expect(trailer("Cotenant-Landed-Issue")).toBe(id);
    expect(trailer("Cotenant-Agent")).toBe(LANDER);
  });

  it("merges an issue that both sides changed, field by field", async () => {
    await repo.prepare(LANDER, "init");
    const id = await repo.issue("Both");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "issue");
    const update = async (...args: string[]) => {
      await repo.prepare("agent:a", "claim", "acquire", id);
      await repo.prepare("agent:a", "issue", "update", id, ...args);
      await repo.prepare("agent:a", "claim", "release", id);
      repo.git("add", "--all");
      repo.git("commit", "--quiet", "--message", args.join(" "));
    };
    repo.git("checkout", "--quiet", "-b", "work/issue");
    await update("--title", "A new title");
    repo.git("checkout", "--quiet", "main");
    await update("--priority", "critical");
    await add(repo, "work/issue");
    expect(outcomes(await land(repo))).toEqual({ "work/issue": "landed" });
    expect((await repo.askHere("agent:a", "issue", "show", id)).data.issue).toMatchObject({
      title: "A new title",
      priority: "critical",
    });
  });

  it("what the target has already leaves as landed, with nothing to land", async () => {
    branchWith(repo, "one", { one: "1" });
    repo.git("merge", "--quiet", "--no-edit", "one");
    const before = headOf(repo);
    await add(repo, "one");
    expect((await land(repo)).data["entries"]).toMatchObject([
      { outcome: "landed", commit: null, message: "nothing to land: the target has it already" },
    ]);
    expect(headOf(repo)).toBe(before);
  });

  it("puts aside what has no history in common, and what is gone", async () => {
    const tree = repo.git("rev-parse", "main^{tree}").trim();
    repo.git("branch", "alien", repo.git("commit-tree", "-m", "alien", tree).trim());
    branchWith(repo, "gone", { one: "1" });
    await add(repo, "alien", "gone");
    repo.git("branch", "-D", "gone");
    expect((await land(repo)).data["entries"]).toMatchObject([
      { branch: "alien", outcome: "parked", why: "refused" },
      { branch: "gone", outcome: "parked", why: "gone" },
    ]);
  });
});

describe("landing by squash", () => {
  it("is one commit by its author, with the words and trailers of its commits", async () => {
    repo.git("checkout", "--quiet", "-b", "work/one");
    const claim =
      "Cotenant-Issue: 01M7QH0XXYQ9595XTYJAPNR145\nCotenant-Lease: 01M7QH0XXYQ9595XTYJAPNR146\nCotenant-Token: 7";
    commitAs("Grace", { one: "1" }, `The first\n\n${claim}`);
    commitAs("Grace", { two: "2" }, "The second");
    repo.git("checkout", "--quiet", "main");
    const before = headOf(repo);
    await add(repo, "work/one", "--method", "squash");
    expect(outcomes(await land(repo))).toEqual({ "work/one": "landed" });
    expect(show("%P")).toBe(before);
    expect(show("%an")).toBe("Grace");
    expect(show("%cn")).not.toBe("Grace");
    expect(show("%s")).toBe("Land work/one");
    expect(show("%b")).toContain("* The first\n* The second");
    expect(trailer("Cotenant-Issue")).toBe("01M7QH0XXYQ9595XTYJAPNR145");
    expect(trailer("Cotenant-Token")).toBe("7");
  });

  it("of several authors names them all", async () => {
    repo.git("checkout", "--quiet", "-b", "work/one");
    commitAs("Grace", { one: "1" }, "The first");
    commitAs("Ada", { two: "2" }, "The second");
    repo.git("checkout", "--quiet", "main");
    await add(repo, "work/one", "--method", "squash", "--message", "Both of them");
    await land(repo);
    expect(show("%s")).toBe("Both of them");
    expect(trailer("Co-authored-by").split("\n")).toEqual([
      "Grace <grace@example.org>",
      "Ada <ada@example.org>",
    ]);
  });

  it("a second time, there is nothing to land", async () => {
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one", "--method", "squash");
    await land(repo);
    const before = headOf(repo);
    await add(repo, "one", "--method", "squash");
    expect((await land(repo)).data["entries"]).toMatchObject([{ outcome: "landed", commit: null }]);
    expect(headOf(repo)).toBe(before);
  });
});

describe("landing by rebase", () => {
  it("replays each commit with its author, date and words, as land.method says", async () => {
    repo.git("checkout", "--quiet", "-b", "work/one");
    commitAs("Grace", { one: "1" }, "The first\n\nWith words\n\nSigned-off-by: Grace <grace@example.org>");
    const original = headOf(repo, "HEAD");
    commitAs("Ada", { two: "2", "a.txt": "changed\n" }, "The second");
    repo.git("checkout", "--quiet", "main");
    repo.write("b.txt", "moved on\n");
    repo.git("commit", "--quiet", "--all", "--message", "second");
    await repo.askHere("agent:worker", "land", "list");
    await repo.askWith({ COTENANT_LAND_METHOD: "rebase" }, "agent:worker", "land", "add", "work/one");
    expect(outcomes(await land(repo))).toEqual({ "work/one": "landed" });
    expect(firstParents(repo)).toEqual(["The second", "The first", "second", "first"]);
    expect(show("%an %ad", "main~1")).toContain("Grace Sun Feb 2 02:02:02 2020");
    expect(show("%an")).toBe("Ada");
    expect(show("%b", "main~1")).toContain("With words");
    expect(trailer("Signed-off-by", "main~1")).toBe("Grace <grace@example.org>");
    expect(trailer("Cotenant-Landed", "main~1")).toBe(`work/one ${original}`);
    expect(repo.git("show", "main:a.txt")).toBe("changed\n");
    expect(repo.git("show", "main:b.txt")).toBe("moved on\n");
    expect(isClean(repo)).toBe(true);
  });

  it("a branch cannot say of itself what landed", async () => {
    repo.git("checkout", "--quiet", "-b", "work/one");
    commitAs("Grace", { one: "1" }, `The first\n\nCotenant-Landed: other ${"0".repeat(40)}`);
    const tip = headOf(repo, "HEAD");
    repo.git("checkout", "--quiet", "main");
    await add(repo, "work/one", "--method", "rebase");
    await land(repo);
    expect(trailer("Cotenant-Landed")).toBe(`work/one ${tip}`);
  });

  it("leaves out what is there already, and puts a conflict aside with its paths", async () => {
    branchWith(repo, "half", { "a.txt": "same\n" }, { new: "1" });
    branchWith(repo, "clash", { "b.txt": "theirs\n" });
    repo.write("a.txt", "same\n");
    repo.write("b.txt", "ours\n");
    repo.git("commit", "--quiet", "--all", "--message", "second");
    await add(repo, "half", "clash", "--method", "rebase");
    const ran = await land(repo);
    expect(ran.data["entries"]).toMatchObject([
      { branch: "half", outcome: "landed" },
      { branch: "clash", outcome: "parked", why: "conflict", paths: ["b.txt"] },
    ]);
    expect(firstParents(repo)).toEqual(["half: change 2", "second", "first"]);
  });
});
