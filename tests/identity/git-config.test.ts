import * as fs from "node:fs";
import * as path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { gitBoolean, parseGitConfig } from "../../src/identity/git-config";
import { temporaryDirectory, tryGit } from "./temporary";

const file = path.join(temporaryDirectory(), "config");

/** What Git reads from the same text: null when it refuses the file. */
function byGit(text: string): Map<string, string | null> | null {
  fs.writeFileSync(file, text);
  const answer = tryGit(path.dirname(file), ["config", "--file", file, "--no-includes", "--null", "--list"]);
  if (answer.status !== 0) return null;
  const values = new Map<string, string | null>();
  for (const record of answer.stdout.split("\0").slice(0, -1)) {
    const end = record.indexOf("\n");
    const key = end === -1 ? record : record.slice(0, end);
    if (key.split(".").length === 2) values.set(key, end === -1 ? null : record.slice(end + 1));
  }
  return values;
}

const TEXTS = [
  "",
  "[core]\n\tbare = false\n",
  "[core] bare = true\n",
  "[CORE]\n\tIgnoreCase=TRUE\n",
  "[core]\r\n\tbare = true\r\n",
  '[remote "origin"]\n\turl = x\n[core]\n\tbare\n',
  '[remote "a]b\\"c"]\n\turl = x\n',
  "[core]\n\tworktree = a b  \n",
  '[core]\n\tworktree = " a b " \n',
  '[core]\n\tworktree = a" b "c # comment\n',
  "[core]\n\tworktree = a ; comment\n",
  "[core]\n\tworktree = a\\\\\n\tbare = true\n",
  '[core]\n\tworktree = a\\nc\\\\d\\"\n',
  "[core]\n\tworktree = a\u00a0\n",
  "[core]\n\tbare # comment\n",
  "# [core]\n; bare = true\n[core] ; c\n  # c\n\tbare = no # yes\n",
  "[core]\n\tbare = true\n\tbare = false\n",
  "[branch.main]\n\tremote = x\n[core]\nbare=1",
  "\ufeff[core]\n\tbare = true\n",
  "[core]\n\tworktree =\n",
  "[core\n",
  "[core]\n\t1bare = true\n",
  "[core]\n\tba_re = true\n",
  '[core]\n\tworktree = "open\n',
  "[core]\n\tworktree = a\\qb\n",
  '[core "x]\n',
  "[core] x [user] y = 1\n",
];

/** Read by some Git or other, each in its way: not worth guessing. */
const LEFT_TO_GIT = [
  "[core]\n\tworktree = a\\\n\t b\n",
  "[core]\n\tworktree = a\tb\n",
  "[core]\n\tworktree = a\\tb\n",
  "bare = true\n",
  "[ core ]\n\tbare = true\n",
];

describe("Git's configuration", () => {
  it.each(TEXTS)("is read as Git reads it: %j", (text) => {
    expect(parseGitConfig(text)?.values ?? null).toEqual(byGit(text));
  });

  it.each(LEFT_TO_GIT)("is left to Git: %j", (text) => {
    expect(parseGitConfig(text)).toBeNull();
  });

  it("is never read differently from Git: at most it is not read", () => {
    const piece = fc.constantFrom(
      ...'[core]|\n|bare|=|true|\\|"| |\t|#|;|a|[x "y"]|\r\n|worktree = |\\\\|\\\n|\\"|[core] bare = 1\n'.split(
        "|",
      ),
    );
    let read = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const text = pieces.join("");
        const ours = parseGitConfig(text);
        if (ours === null) return;
        read++;
        expect(ours.values).toEqual(byGit(text));
      }),
      { numRuns: 300 },
    );
    expect(read).toBeGreaterThan(20);
  });

  it("says when there is more to read elsewhere", () => {
    expect(parseGitConfig("[include]\n\tpath = x\n")?.hasIncludes).toBe(true);
    expect(parseGitConfig('[includeIf "gitdir:~/x/"]\n\tpath = x\n')?.hasIncludes).toBe(true);
    expect(parseGitConfig("[core]\n\tbare = true\n")?.hasIncludes).toBe(false);
  });

  it("has Git's idea of truth", () => {
    for (const value of [null, "true", "YES", "on", "1", "-1", "42"]) expect(gitBoolean(value)).toBe(true);
    for (const value of ["false", "No", "off", "0", ""]) expect(gitBoolean(value)).toBe(false);
    for (const value of ["maybe", "1x", "tru"]) expect(gitBoolean(value)).toBeUndefined();
  });
});
