import { describe, expect, it } from "vitest";
import { branchForIssue, checkBranch, defaultPlace, directoryName } from "../../src/features/worktrees/names";
import { tipsOf } from "../../src/features/worktrees/removal-risk";
import { isDirty, parseStatus } from "../../src/features/worktrees/survey";
import { normalPath } from "../../src/identity/path-text";

describe("names of worktrees", () => {
  it.each([
    ["work/login", "work-login"],
    ["feat/ü/../x", "feat-ü-..-x"],
    ["..", "worktree"],
    ["-x", "x"],
    ["a b\n\u202e", "a-b-"],
    ["x".repeat(300), "x".repeat(100)],
  ])("a branch %j goes to %j", (branch, name) => {
    expect(directoryName(branch)).toBe(name);
    expect(directoryName(branch)).not.toMatch(/^\.|\//);
  });

  it("are beside the main worktree, or where the setting says", () => {
    expect(defaultPlace("/srv/app", null, "work/x")).toBe("/srv/app.worktrees/work-x");
    expect(defaultPlace("/srv/app", "../wt", "x")).toBe("/srv/wt/x");
    expect(defaultPlace("/srv/app", "/tmp/./a/..", "x")).toBe("/tmp/x");
    expect(normalPath("/a/../../b//c/.")).toBe("/b/c");
  });

  it("of branches for issues are made of its title", () => {
    expect(branchForIssue("7x3k", "Log in: with a passkey!")).toBe("work/7x3k-log-in-with-a-passkey");
    expect(branchForIssue("7x3k", "…")).toBe("work/7x3k");
    expect(checkBranch(branchForIssue("7x3k", `${"word ".repeat(30)}`))).toMatch(/^work\/7x3k-word.{0,40}$/);
  });

  it.each(["", "-x", "HEAD", "a..b", "a b", "a~b", "x.lock", "a/.b", "@{u}", "a\\b", "/x", "@{-1}"])(
    "are not %j",
    (name) => {
      expect(() => checkBranch(name)).toThrow("cannot be the name of a branch");
    },
  );
});

describe("what Git says of a worktree", () => {
  it("leaves of its lone commits those that no other leads to, however many there are", () => {
    const chains = Array.from({ length: 500 }, (_, n) => `${n}c ${n}b\n${n}b ${n}a base\n${n}a\n`).join("");
    expect(tipsOf(chains)).toEqual(Array.from({ length: 500 }, (_, n) => `${n}c`));
    expect(tipsOf("")).toEqual([]);
  });

  it("is counted, renames and odd names included", () => {
    const text = [
      "# branch.oid 1234",
      "# branch.head main",
      "# branch.upstream origin/main",
      "# branch.ab +2 -3",
      "1 M. N... 100644 100644 100644 a b staged",
      "1 .M N... 100644 100644 100644 a b changed",
      "1 MM N... 100644 100644 100644 a b both",
      "2 R. N... 100644 100644 100644 a b R100 new",
      "? old name that looks like untracked",
      "u UU N... 100644 100644 100644 100644 a b c conflict",
      "? untracked\nwith a line",
      "",
    ].join("\0");
    const { dirt, ...rest } = parseStatus(text);
    expect(dirt).toEqual({ staged: 3, changed: 2, untracked: 1, conflicts: 1 });
    expect(rest).toEqual({ upstream: "origin/main", ahead: 2, behind: 3 });
    expect(isDirty(dirt)).toBe(true);
    expect(isDirty(parseStatus("# branch.oid (initial)\0").dirt)).toBe(false);
  });
});
