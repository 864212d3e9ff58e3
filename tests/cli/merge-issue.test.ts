import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { encodeIssue, type Issue, newIssue } from "../../src/features/issues/model";
import type { Ulid } from "../../src/kernel/ids";
import { expectNoInnards, expectRefused } from "../support/refusals";
import { cotenant } from "../support/repo";
import { scratch } from "../support/scratch";

const ISSUE = newIssue({
  id: "01M7F87SKQ7X3KZ979XRC4S87G" as Ulid,
  title: "Log in",
  created_at: "2026-01-01T00:00:00.000Z",
  created_by: "agent:a",
  stamp: { version: 1, origin: "wt:00000001", lease_id: null, fencing_token: null, sequence: null },
});
const text = (fields: Partial<Issue>) => encodeIssue({ ...ISSUE, ...fields });

let folder: string;
beforeEach(() => {
  folder = scratch();
  write("base", text({}));
});

const write = (name: string, content: string | Uint8Array) =>
  fs.writeFileSync(path.join(folder, name), content);
const read = (name: string) => fs.readFileSync(path.join(folder, name), "utf8");
const merge = (...more: string[]) =>
  cotenant(folder, ["merge-issue", "--", "base", "ours", "theirs", ...more], {
    COTENANT_AGENT_ID: undefined,
  });

describe("the merge driver, outside any repository", () => {
  it("merges into ours, without a word", async () => {
    write("ours", text({ title: "A" }));
    write("theirs", text({ priority: "low" }));
    expect(await merge()).toMatchObject({ status: 0, stdout: "", stderr: "" });
    expect(JSON.parse(read("ours"))).toMatchObject({ title: "A", priority: "low" });
    expect(read("theirs")).toBe(text({ priority: "low" }));
  });

  it("names both values, with Git's names for the sides, and nothing that moves a cursor", async () => {
    write("ours", text({ title: "A\u001b[2J" }));
    write("theirs", text({ title: "B" }));
    const ran = await merge("dir/näme\u001b.json", "HEAD", "feature\nx");
    expect(ran.status).toBe(1);
    expect(ran.stderr).toBe(
      'cotenant: dir/näme\ufffd.json: both sides changed title: "A\ufffd[2J" (HEAD), "B" (feature\ufffdx)\n',
    );
    expect(read("ours")).toMatch(
      /^<{7} HEAD\n {2}"title": "A\\u001b\[2J",\n={7}\n {2}"title": "B",\n>{7} feature\ufffdx\n/m,
    );
  });

  it("takes placeholders that an older Git has left for no names, and longer marks", async () => {
    write("ours", text({ title: "A" }));
    write("theirs", text({ title: "B" }));
    const words = ["merge-issue", "--marker-size=11", "--", "base", "ours", "theirs", "p", "%X", "%Y"];
    expect(await cotenant(folder, words)).toMatchObject({ status: 1, stderr: "" });
    expect(read("ours")).toMatch(/^<{11} ours\n.*\n={11}\n.*\n>{11} theirs\n/m);
  });

  it("shows where long texts begin to differ", async () => {
    const long = (word: string) => `${"Same. ".repeat(100)}\n\n${word} text\n\nEnd`;
    write("base", text({ description: long("old") }));
    write("ours", text({ description: long("my") }));
    write("theirs", text({ description: long("your") }));
    expect((await merge()).stderr).toContain('description: "my text" (ours), "your text" (theirs)');
  });

  it("an absent ancestor is an empty file", async () => {
    write("base", "");
    write("ours", text({ gates: ["a"] }));
    write("theirs", text({ gates: ["b"] }));
    expect((await merge()).status).toBe(0);
    expect(JSON.parse(read("ours")).gates).toEqual(["a", "b"]);
  });

  it.each([
    ["ours", "{"],
    ["theirs", "[]"],
    ["theirs", `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
    [
      "theirs",
      text({ title: "B" }).replace('"stamp"', `"deep": ${"[".repeat(5_000)}${"]".repeat(5_000)}, "stamp"`),
    ],
    ["base", "no issue"],
  ])("%s that is no issue: text merge, with both sides in the file", async (which, odd) => {
    write("ours", text({ title: "A" }));
    write("theirs", text({ title: "B" }));
    write(which, odd);
    const ran = await merge();
    expectNoInnards(ran);
    expect(ran.status, `${ran}`).toBe(1);
    expect(read("ours")).toMatch(/^<{7} ours\n[\s\S]*^={7}\n[\s\S]*^>{7} theirs$/m);
  });

  it("what is not even text stays as it is, and is a conflict", async () => {
    const odd = Buffer.from([0, 1, 2, 0xff]);
    write("ours", text({ title: "A" }));
    write("theirs", odd);
    expect((await merge()).status).toBe(1);
    expect(read("ours")).toBe(text({ title: "A" }));
  });

  it("refuses what Git never does, with a status that Git takes for a conflict", async () => {
    write("ours", text({}));
    expectRefused(await merge(), 4, "E_NOT_FOUND");
    const few = await cotenant(folder, ["merge-issue", "base"]);
    expectRefused(few, 64, "E_USAGE");
    expect((await cotenant(folder, ["merge-issue", "--help"])).stdout).toContain("cotenant merge-issue");
  });
});
