import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import type { Ran } from "../support/program";
import type { TestRepo } from "../support/repo";
import { put, withFiles } from "./publish-stage";

const it = oneIn(8);

const LINES = Array.from({ length: 12 }, (_, at) => `line ${at + 1}`);

/** The file's text with some of its lines replaced. */
function text(lines: Readonly<Record<number, string>>): string {
  return `${LINES.map((line, at) => lines[at + 1] ?? line).join("\n")}\n`;
}

const on = (repo: TestRepo, name: string) => repo.git("show", `work/x:${name}`);

/** Under a lease of everything, which is given back with it. */
async function take(repo: TestRepo, agent: string, ...args: string[]): Promise<Ran> {
  await repo.prepare(agent, "lock", "acquire", "--dir", ".");
  const words = ["--branch", "work/x", "--message", "m", "--release", ...args];
  const ran = await repo.askHere(agent, "publish", ...words);
  if (ran.status !== 0) await repo.prepare(agent, "lock", "release", "--dir", ".");
  return ran;
}

function twoWorktrees(): { a: TestRepo; b: TestRepo } {
  const a = withFiles();
  a.write("f.txt", text({}));
  a.write("gone.txt");
  a.git("add", "--all");
  a.git("commit", "--quiet", "--message", "second");
  return { a, b: a.addWorktree("other") };
}

describe("a worktree that is behind the branch", () => {
  it("adds its own changes, and takes back nothing that others have published", async () => {
    const { a, b } = twoWorktrees();
    a.write("f.txt", text({ 1: "of a" }));
    a.write("new.txt", "of a\n");
    a.write("src/a.ts", "of a\n");
    fs.rmSync(path.join(a.root, "gone.txt"));
    await take(a, "agent:a", "--from-worktree", ".");
    // Files that it has not touched are no change of its own, whatever the branch has by now.
    b.write("src/b.ts", "of b\n");
    const all = await take(b, "agent:b", "--from-worktree", ".");
    expect(all.data["paths"]).toMatchObject([{ path: "src/b.ts" }]);
    expect([on(a, "new.txt"), on(a, "src/a.ts")]).toEqual(["of a\n", "of a\n"]);
    expect(a.git("ls-tree", "--name-only", "work/x", "gone.txt")).toBe("");
    const idle = await take(b, "agent:b", "--from-worktree", "f.txt");
    expect(idle.data.changed).toBe(false);
    // The same file is merged, and once more after it was merged.
    b.write("f.txt", text({ 12: "of b" }));
    expect((await take(b, "agent:b", "--from-worktree", "f.txt")).data.merged).toBe(true);
    expect(on(a, "f.txt")).toBe(text({ 1: "of a", 12: "of b" }));
    b.write("f.txt", text({ 12: "of b again" }));
    await take(b, "agent:b", "--from-worktree", "f.txt");
    expect(on(a, "f.txt")).toBe(text({ 1: "of a", 12: "of b again" }));
    a.write("f.txt", text({ 1: "of a again" }));
    await take(a, "agent:a", "--from-worktree", "f.txt", "--settle");
    expect(on(a, "f.txt")).toBe(text({ 1: "of a again", 12: "of b again" }));
    // All that was in the file is on the branch, merged or not.
    expect(fs.readFileSync(path.join(a.root, "f.txt"), "utf8")).toBe(text({}));
  });

  it("is refused where both changed the same, and told how to go on", async () => {
    const { a, b } = twoWorktrees();
    a.write("f.txt", text({ 5: "of a" }));
    a.write("made.txt", "of a\n");
    await take(a, "agent:a", "--from-worktree", "f.txt", "made.txt");
    b.write("f.txt", text({ 5: "of b" }));
    b.write("made.txt", "of b\n");
    const before = a.git("rev-parse", "work/x").trim();
    const table = [["f.txt"], ["made.txt"]];
    for (const paths of table) {
      const { error } = await take(b, "agent:b", "--from-worktree", ...paths);
      expect(error).toMatchObject({ code: "E_PUBLISH_CONFLICT", data: { paths } });
      expect(error.hint).toContain(`--base ${before.slice(0, 12)}`);
    }
    fs.rmSync(path.join(b.root, "f.txt"));
    const deleted = await take(b, "agent:b", "--from-worktree", "f.txt");
    expect(deleted.error).toMatchObject({ code: "E_PUBLISH_CONFLICT", data: { paths: ["f.txt"] } });
    fs.rmSync(path.join(b.root, "made.txt"));
    const absent = await take(b, "agent:b", "--from-worktree", "made.txt");
    expect([absent.error.code, absent.error.hint]).toEqual([
      "E_NOT_FOUND",
      expect.stringContaining("--delete"),
    ]);
    b.write("made.txt/inside", "of b\n");
    const inside = await take(b, "agent:b", "--from-worktree", "made.txt");
    expect(inside.error).toMatchObject({ code: "E_PUBLISH_CONFLICT", data: { paths: ["made.txt"] } });
    expect(a.git("rev-parse", "work/x").trim()).toBe(before);
    // Made anew on top of what the branch has: the base says so.
    b.write("f.txt", text({ 5: "of both" }));
    await take(b, "agent:b", "--from-worktree", "f.txt", "--base", before.slice(0, 12));
    b.write("f.txt", text({ 5: "of both, once more" }));
    await take(b, "agent:b", "--from-worktree", "f.txt");
    expect(on(a, "f.txt")).toBe(text({ 5: "of both, once more" }));
  });

  it("and one checkout for all: what was put back, or published from elsewhere, is not undone", async () => {
    const { a } = twoWorktrees();
    a.write("f.txt", text({ 1: "of a" }));
    await take(a, "agent:a", "--from-worktree", "f.txt", "--settle");
    a.write("f.txt", text({ 12: "of b" }));
    await take(a, "agent:b", "--from-worktree", "f.txt");
    expect(on(a, "f.txt")).toBe(text({ 1: "of a", 12: "of b" }));
    await take(a, "agent:c", ...put("f.txt", text({ 1: "of a", 6: "of c", 12: "of b" })));
    a.write("f.txt", text({ 12: "of b again" }));
    await take(a, "agent:b", "--from-worktree", "f.txt");
    expect(on(a, "f.txt")).toBe(text({ 1: "of a", 6: "of c", 12: "of b again" }));
    // One that was put back by other means takes nothing back, unless it is what was named.
    const published = on(a, "f.txt");
    a.git("restore", "f.txt");
    expect((await take(a, "agent:b", "--from-worktree", ".")).data["changed"]).toBe(false);
    expect(on(a, "f.txt")).toBe(published);
    await take(a, "agent:b", "--from-worktree", "f.txt");
    expect(on(a, "f.txt")).toBe(text({ 1: "of a", 6: "of c" }));
    a.write("src/b.ts", "of b\n");
    await take(a, "agent:b", "--from-worktree", "src/b.ts");
    a.git("restore", "src/b.ts");
    a.write("src/a.ts", "of b\n");
    await take(a, "agent:b", "--from-worktree", "src");
    a.write("src/b.ts", "of c\n");
    expect((await take(a, "agent:c", "--from-worktree", "src/b.ts")).error.code).toBe("E_PUBLISH_CONFLICT");
    // What others left in the working tree goes along with the next one's.
    a.write("f.txt", text({ 12: "of d, on top of b's" }));
    await take(a, "agent:d", "--from-worktree", "f.txt");
    expect(on(a, "f.txt")).toBe(text({ 1: "of a", 6: "of c", 12: "of d, on top of b's" }));
  });

  it("publishes also what it has committed for itself, and follows a branch that was begun anew", async () => {
    const { a, b } = twoWorktrees();
    a.write("f.txt", text({ 1: "of a" }));
    await take(a, "agent:a", "--from-worktree", "f.txt");
    b.write("f.txt", text({ 12: "of b" }));
    b.git("commit", "--quiet", "--all", "--message", "mine");
    await take(b, "agent:b", "--from-worktree", "f.txt");
    expect(on(a, "f.txt")).toBe(text({ 1: "of a", 12: "of b" }));
    b.write("f.txt", text({ 11: "more", 12: "of b" }));
    b.git("commit", "--quiet", "--all", "--message", "mine as well");
    await take(b, "agent:b", "--from-worktree", "f.txt");
    expect(on(a, "f.txt")).toBe(text({ 1: "of a", 11: "more", 12: "of b" }));
    a.git("branch", "--quiet", "--force", "work/x", "main");
    await take(a, "agent:a", "--from-worktree", "f.txt");
    expect(on(a, "f.txt")).toBe(text({ 1: "of a" }));
  });
});
