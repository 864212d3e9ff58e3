import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { hindrances } from "../../src/features/harnesses/hindrances";
import { sitesOf } from "../../src/features/harnesses/sites";
import { nodePlatform } from "../../src/platform/node/node";
import { scratch } from "../support/scratch";

const { files, digest } = nodePlatform();
const ROOT = "/srv/team/project";

type Name = "pi" | "qwen" | "gemini" | "copilot" | "claude";
const HOMES = { pi: ".pi/agent", qwen: ".qwen", gemini: ".gemini", copilot: ".copilot", claude: ".claude" };
const LISTS = { pi: "trust.json", copilot: "config.json" };

/** What is said of the hooks of the project, or of the user's own, with these files in the user's settings. */
async function said(
  harness: Name,
  settings: object | null,
  list: object | null,
  { env = {}, level = "project" }: { env?: Record<string, string>; level?: "project" | "user" } = {},
): Promise<string | null> {
  const home = scratch();
  const own = path.join(home, HOMES[harness]);
  fs.mkdirSync(own, { recursive: true });
  const write = (name: string, document: object | null) =>
    document === null ? null : fs.writeFileSync(path.join(own, name), `// mine\n${JSON.stringify(document)}`);
  write("settings.json", settings);
  write({ ...LISTS, qwen: "", gemini: "", claude: "" }[harness] || "trustedFolders.json", list);
  const grounds = { root: ROOT, home, env };
  const [site] = sitesOf(harness, level, grounds);
  const reasons = await hindrances({ files, digest, grounds, mainRoot: ROOT, machine: home }, site!);
  return reasons[0] ?? null;
}

const ON = { security: { folderTrust: { enabled: true } } };
const OFF = { security: { folderTrust: { enabled: false } } };

it.each([
  ["pi, which nobody has told anything", "pi", null, null, false],
  ["pi, for the folder", "pi", null, { [ROOT]: true }, true],
  ["pi, for a folder above it", "pi", null, { "/srv": true, "/srv/other": false }, true],
  ["pi, the nearest decision counts", "pi", null, { "/srv": true, "/srv/team": false }, false],
  ["pi, a name that only begins alike", "pi", null, { "/srv/team/pro": true }, false],
  ["pi, trusting by default", "pi", { defaultProjectTrust: "always" }, null, true],
  [
    "pi, trusting by default, but not this one",
    "pi",
    { defaultProjectTrust: "always" },
    { [ROOT]: false },
    false,
  ],
  ["pi, never by default", "pi", { defaultProjectTrust: "never" }, null, false],
  ["Qwen Code, which does not ask unless told to", "qwen", null, null, true],
  ["Qwen Code, told to ask", "qwen", ON, null, false],
  ["Qwen Code, for the folder", "qwen", ON, { [ROOT]: "TRUST_FOLDER" }, true],
  ["Qwen Code, for a sibling's parent", "qwen", ON, { "/srv/team/other": "TRUST_PARENT" }, true],
  ["Qwen Code, not for this one", "qwen", ON, { "/srv": "TRUST_FOLDER", [ROOT]: "DO_NOT_TRUST" }, false],
  ["Gemini CLI, which asks unless told not to", "gemini", null, null, false],
  ["Gemini CLI, told not to ask", "gemini", OFF, null, true],
  ["Gemini CLI, for the folder", "gemini", null, { [ROOT]: "TRUST_FOLDER" }, true],
  ["Gemini CLI, for a folder above it", "gemini", null, { "/srv": "TRUST_FOLDER" }, true],
  ["Gemini CLI, not for this one", "gemini", null, { "/srv": "TRUST_FOLDER", [ROOT]: "DO_NOT_TRUST" }, false],
  ["Copilot, which nobody has told anything", "copilot", null, null, false],
  ["Copilot, for the folder", "copilot", null, { trustedFolders: [ROOT] }, true],
  ["Copilot, with a slash behind it", "copilot", null, { trustedFolders: [`${ROOT}/`] }, true],
  ["Copilot, for a folder above it", "copilot", null, { trustedFolders: ["/srv/other", "/srv"] }, true],
  ["Copilot, as older versions wrote it", "copilot", null, { trusted_folders: [ROOT] }, true],
  ["Copilot, for another folder", "copilot", null, { trustedFolders: ["/srv/team/pro"] }, false],
  ["Copilot, in a file where it does not look", "copilot", { trustedFolders: [ROOT] }, null, false],
  ["a harness without such a list", "claude", null, null, true],
] as const)("%s", async (_, harness, settings, list, isTrusted) => {
  const why = await said(harness, settings, list);
  if (isTrusted) expect(why).toBeNull();
  else
    expect(why).toMatch(
      /^does not trust this folder, and runs no hooks (?:of|in) it: (?:say \/|start it there)/,
    );
});

it.each([
  ["gemini", { GEMINI_CLI_TRUST_WORKSPACE: "true" }, null, true],
  ["gemini", { GEMINI_CLI_TRUST_WORKSPACE: "false" }, { [ROOT]: "TRUST_FOLDER" }, false],
  ["copilot", { COPILOT_ALLOW_ALL: "true" }, null, true],
  ["copilot", { COPILOT_ALLOW_ALL: "1" }, null, false],
  ["copilot", { GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS: "true" }, null, true],
] as const)("%s with %j", async (harness, env, list, isTrusted) => {
  expect((await said(harness, null, list, { env })) === null).toBe(isTrusted);
});

it("a user's own hooks run in a folder that is not trusted, but for Gemini CLI's", async () => {
  const user = (harness: Name) => said(harness, harness === "qwen" ? ON : null, null, { level: "user" });
  expect([await user("pi"), await user("qwen"), await user("copilot")]).toEqual([null, null, null]);
  expect(await user("gemini")).toMatch(/^does not trust this folder, and runs no hooks in it/);
});
