import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { settingOf } from "../../src/config/schema";
import { valueFromText } from "../../src/config/values";
import { gitWords } from "../../src/platform/git-answers";
import { filesBelow } from "../house/source";
import { TestRepo } from "../support/repo";

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

describe("a secret", () => {
  const SECRET = "s3cr3t-that-nobody-may-see";

  it.each(["--token", "--secret-file"])(
    "that is given to %s instead of a file is not repeated",
    async (flag) => {
      await repo.prepare("agent:a", "lock", "acquire", "a.txt");
      for (const args of [
        ["lock", "renew", "a.txt", flag, SECRET],
        ["lock", "release", "a.txt", `${flag}=${SECRET}`],
        ["status", flag, SECRET],
        ["status", `${flag}=${SECRET}`],
      ]) {
        const ran = await repo.runHere("agent:a", ...args);
        expect(ran.status, `${ran}`).not.toBe(0);
        expect(ran.stdout + ran.stderr).not.toContain(SECRET);
        const asked = await repo.askHere("agent:a", ...args);
        expect(asked.stdout + asked.stderr).not.toContain(SECRET);
      }
    },
  );
});

describe("a value as a file has it", () => {
  it.each<[Parameters<typeof settingOf>[0], string, unknown]>([
    ["publish.checks", '["npm test", "npm run lint"]', ["npm test", "npm run lint"]],
    ["publish.checks", "[]", []],
    ["publish.checks", '["x"]', ["x"]],
    ["publish.checks", "npm test,npm run lint", ["npm test", "npm run lint"]],
    ["publish.forbidden_paths", "[ab].txt", ["[ab].txt"]],
    ["publish.forbidden_paths", "[ab]", ["[ab]"]],
    ["worktree.setup", '"npm ci"', "npm ci"],
    ["worktree.setup", '"my program" "with words"', '"my program" "with words"'],
    ["policy.max_ttl_secs", "{ agent = 60, ci = 5 }", { agent: 60, ci: 5 }],
    ["publish.hot_resources", "docs=README.md:docs/", { docs: ["README.md", "docs/"] }],
  ])("%s: %s", (key, text, value) => {
    expect(valueFromText(settingOf(key), text)).toEqual(value);
  });

  it.each<[Parameters<typeof settingOf>[0], string]>([
    ["publish.checks", "['x']"],
    ["publish.checks", '["x", 1]'],
    ["publish.checks", '["x"'.concat("]]")],
    ["publish.hot_resources", 'docs=["README.md"]'],
  ])("is refused where it cannot be read, and never kept with its quotes: %s %s", (key, text) => {
    expect(valueFromText(settingOf(key), text)).toHaveProperty("wrong");
  });

  it("comes into the file as a list", async () => {
    await repo.prepare("human:me", "init");
    await repo.prepare("human:me", "config", "set", "publish.checks", '["npm test"]');
    expect(fs.readFileSync(path.join(repo.root, ".cotenant/config.toml"), "utf8")).toContain(
      'checks = ["npm test"]',
    );
  });
});

describe("text with tabs and several lines", () => {
  it("of settings is printed as it would be written", async () => {
    repo.write(".claude/settings.local.json", '{\n\t"permissions": {\n\t\t"allow": []\n\t}\n}\n');
    const shown = await repo.runHere("agent:a", "agent", "install", "claude", "--print");
    expect(shown.stdout).toContain('\t\t"allow": []');
    expect(shown.stdout).not.toContain("\u{fffd}");
  });

  it("of a hook is printed as it would be written", async () => {
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\nif true; then\n\techo one\nfi\n");
    const shown = await repo.runHere("agent:a", "hooks", "install", "--print");
    expect(shown.stdout).not.toContain("\u{fffd}");
  });

  it("of an issue shows its tabs as spaces", async () => {
    const made = await repo.askHere(
      "agent:a",
      "issue",
      "create",
      "--title",
      "T",
      "--description",
      "one\n\ttwo",
    );
    const shown = await repo.runHere("agent:a", "issue", "show", made.data.issue.id);
    expect(shown.stdout).toContain("\n      two\n");
  });

  it("of Git comes as one line, and is cleaned everywhere in the same way", () => {
    expect(gitWords("error: one\n\nfatal: two\n\tsrc/a.ts\r\n")).toBe("error: one; fatal: two; src/a.ts");
    expect(gitWords("\x1b[31mred\x1b[0m")).toBe("\u{fffd}[31mred\u{fffd}[0m");
    const others = filesBelow("src").filter(({ text }) => /printable\([^();]*stderr/.test(text));
    expect(others.map(({ path: name }) => name)).toEqual([]);
  });
});
