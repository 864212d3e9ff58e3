import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { FILES, Furnished, HARNESSES } from "../support/settings";

const it = oneIn(5);

/** What people have in such files. */
const SETTINGS: Record<string, string> = {
  claude:
    '{\n  // my own\n  "model": "opus",\n  "permissions": { "allow": ["Bash(npm test)"] }, /* careful */\n  "hooks": {\n    "PreToolUse": [\n      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "./lint.sh" }] }\n    ]\n  }\n}\n',
  codex: '{"description":"ours","hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}',
  cursor:
    '\uFEFF{\r\n\t"version": 1,\r\n\t"hooks": {\r\n\t\t"afterFileEdit": [{ "command": "./format.sh" }],\r\n\t}\r\n}',
  gemini: '{\n    "theme": "dark",\n    "mcpServers": {}\n}\n',
  copilot: '{"version":1,"hooks":{"sessionStart":[{"type":"command","bash":"date"}]}}\n',
};

describe("S43: agent install twice, then uninstall: settings files as they were, to the byte", () => {
  it.each(HARNESSES)("%s, where there is nothing", async (harness) => {
    const here = await Furnished.make();
    const before = here.picture();
    for (const level of [[], ["--shared"], ["--user"]]) {
      expect((await here.ask("agent", "install", harness, ...level)).data.changed).toBe(true);
      const installed = here.picture();
      expect(installed).not.toEqual(before);
      if (level.length === 0) expect(here.status()).toBe("");
      expect((await here.ask("agent", "install", harness, ...level)).data.changed).toBe(false);
      expect(here.picture()).toEqual(installed);
      expect((await here.ask("agent", "uninstall", harness, ...level)).data.changed).toBe(true);
      expect(here.picture()).toEqual(before);
      expect((await here.ask("agent", "uninstall", harness, ...level)).data.changed).toBe(false);
    }
  });

  it.each(Object.entries(SETTINGS))("%s, beside what people have", async (harness, text) => {
    const here = await Furnished.make();
    const [local, shared, user] = FILES[harness]!;
    here.write(user, text, here.home);
    here.write(shared, text);
    here.repo.git("add", "--all");
    here.repo.git("commit", "--quiet", "--message", "settings");
    if (local !== shared) here.write(local, text);
    const levels = [...(local === shared ? [] : [[]]), ["--shared"], ["--user"]];
    const before = here.picture();
    for (const level of levels) {
      await here.ask("agent", "install", harness, ...level);
      const installed = here.picture();
      expect((await here.ask("agent", "install", harness, ...level)).data.changed).toBe(false);
      expect(here.picture()).toEqual(installed);
    }
    for (const level of levels) await here.ask("agent", "uninstall", harness, ...level);
    expect(here.picture()).toEqual(before);
  });

  it("all of them at once, in any order", async () => {
    const here = await Furnished.make();
    const before = here.picture();
    await here.askProgram("agent", "install", "--all");
    await here.askProgram("agent", "install", "--all", "--user");
    expect(here.status()).toBe("");
    await here.askProgram("agent", "uninstall", "cursor", "claude");
    await here.askProgram("agent", "uninstall", "--all", "--user");
    await here.askProgram("agent", "uninstall", "--all");
    expect(here.picture()).toEqual(before);
  });
});
