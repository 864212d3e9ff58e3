import { describe, expect, it } from "vitest";
import type { InstalledHook } from "../../src/features/hooks/installation/block";
import { hasEntry, withEntries, withoutEntries } from "../../src/features/hooks/installation/managers";

const program = { node: "/node", program: "/co tenant's" };
const HOOKS: readonly InstalledHook[] = ["pre-commit", "prepare-commit-msg", "post-commit", "pre-push"];

describe("entries in lefthook's configuration", () => {
  it.each([
    ["no file", null],
    ["an empty file", ""],
    ["other keys", "skip_output:\n  - meta\n"],
    ["no end of its last line", "skip_output:\n  - meta"],
    ["the hook without commands", "pre-commit:\n  parallel: true\n  jobs:\n    - run: x\n"],
    [
      "the hook with commands",
      "pre-commit:\n  commands:\n    lint:\n      run: x\n\ncommit-msg:\n  parallel: true\n",
    ],
    [
      "deeper indentation, remarks, quotes",
      `# mine\n"pre-commit":  # here\n\n    # and here\n    commands:\n        lint: {run: x}`,
    ],
    [
      "a script that looks like a key",
      "pre-push:\n  commands:\n    a:\n      run: |\n        commands:\n          x\n",
    ],
  ])("go into %s, once, and come out to the byte", (_, text) => {
    const added = withEntries(text, HOOKS, program)!;
    for (const hook of HOOKS) expect(hasEntry(added, hook)).toBe(true);
    expect(withEntries(added, HOOKS, program)).toBe(added);
    expect(withEntries(added, HOOKS, null)).not.toBe(added);
    expect(withEntries(withEntries(added, HOOKS, null), HOOKS, program)).toBe(added);
    expect(withoutEntries(added)).toBe(text === "" ? null : text);
  });

  it("stand first among the commands, as deep as theirs", () => {
    const text = "pre-commit:\n   commands:\n       lint:\n           run: x\n";
    const lines = withEntries(text, ["pre-commit"], null)!.split("\n");
    expect(lines.slice(0, 4)).toEqual([
      "pre-commit:",
      "   commands:",
      expect.stringContaining("# >>> cotenant hook pre-commit (entry) >>>"),
      "       cotenant:",
    ]);
  });

  it.each([
    ["flow style", "{pre-commit: {commands: {}}}\n"],
    ["a hook in flow style", "pre-commit: {parallel: true}\n"],
    ["commands in flow style", "pre-commit:\n  commands: {lint: {run: x}}\n"],
    ["a list", "pre-commit:\n  - x\n"],
    ["an empty hook", "pre-commit:\ncommit-msg:\n  parallel: true\n"],
    ["several documents", "a: 1\n---\nb: 2\n"],
    ["line ends of another system", "a: 1\r\n"],
    ["a command of that name", "pre-commit:\n  commands:\n    cotenant:\n      run: x\n"],
  ])("do not go into %s", (_, text) => {
    expect(withEntries(text, ["pre-commit"], program)).toBeNull();
  });
});
