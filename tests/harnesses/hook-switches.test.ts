import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { hindrances } from "../../src/features/harnesses/hindrances";
import { sitesOf } from "../../src/features/harnesses/sites";
import { nodePlatform } from "../../src/platform/node/node";
import { scratch } from "../support/scratch";

const { files, digest } = nodePlatform();
type Name = "claude" | "gemini" | "qwen" | "copilot" | "cursor" | "opencode";

/** What keeps a harness from running hooks of a file, with these files: `~/` in a home, `/` on the machine, else in a project. */
async function reasons(
  harness: Name,
  level: "project" | "user",
  documents: Readonly<Record<string, object>>,
): Promise<string[]> {
  const room = scratch();
  const [root, home] = [path.join(room, "project"), path.join(room, "home")];
  for (const [name, document] of Object.entries(documents)) {
    const base = name.startsWith("~/") ? home : name.startsWith("/") ? room : root;
    const file = path.join(base, name.replace(/^~?\//, ""));
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, JSON.stringify(document).replaceAll("ROOT", root));
  }
  const grounds = { root, home, env: {} };
  const [site] = sitesOf(harness, level, grounds);
  const said = await hindrances({ files, digest, grounds, mainRoot: root, machine: room }, site!);
  return said.map((text) => text.replaceAll(room, ""));
}

const off = { disableAllHooks: true };
const on = { disableAllHooks: false };
const TRUSTED = { "~/.copilot/config.json": { trustedFolders: ["ROOT"] } };
const OPEN = { "~/.gemini/trustedFolders.json": { ROOT: "TRUST_FOLDER" } };
const [SETTINGS, LOCAL] = [".claude/settings.json", ".claude/settings.local.json"];
const MANAGED = "/etc/claude-code/managed-settings.json";
const because = (file: string, setting: string, step = "take that out") => [
  `runs no hooks, because ${file} has ${setting}: ${step}`,
];
const ADMIN = "ask whoever administers this machine";
const ALL = '"disableAllHooks": true';
const COPILOTS = ".github/copilot/settings.json";

/**
 * Most were tried with the programs themselves, on Linux: a held file was overwritten, or it was not. Not tried: macOS's paths,
 * `allowManagedHooksOnly` in a project, a project's word against the machine's, Qwen Code in a project that it does not
 * trust, Gemini CLI's user level with the project's switch, and whether Cursor or opencode heed anything.
 */
it.each<[what: string, Name, "project" | "user", Record<string, object>, string[]]>([
  ["Claude Code, nothing", "claude", "project", { [LOCAL]: {} }, []],
  ["Claude Code, in the project", "claude", "project", { [SETTINGS]: off }, because(SETTINGS, ALL)],
  ["Claude Code, the user's hooks, too", "claude", "user", { [LOCAL]: off }, because(LOCAL, ALL)],
  [
    "Claude Code, by the user",
    "claude",
    "project",
    { "~/.claude/settings.json": off },
    because("~/.claude/settings.json", ALL),
  ],
  [
    "Claude Code, taken back nearer",
    "claude",
    "project",
    { "~/.claude/settings.json": off, [SETTINGS]: on },
    [],
  ],
  ["Claude Code, taken back for this clone", "claude", "project", { [SETTINGS]: off, [LOCAL]: on }, []],
  [
    "Claude Code, by the machine",
    "claude",
    "project",
    { [MANAGED]: off, [LOCAL]: on },
    because(MANAGED, ALL, ADMIN),
  ],
  ["Claude Code, taken back by the machine", "claude", "project", { [MANAGED]: on, [LOCAL]: off }, []],
  [
    "Claude Code, only the organization's",
    "claude",
    "user",
    {
      "/Library/Application Support/ClaudeCode/managed-settings.d/10-x.json": { allowManagedHooksOnly: true },
    },
    because(
      "/Library/Application Support/ClaudeCode/managed-settings.d/10-x.json",
      '"allowManagedHooksOnly": true',
      ADMIN,
    ),
  ],
  [
    "Claude Code, that is not for projects to say",
    "claude",
    "user",
    { [SETTINGS]: { allowManagedHooksOnly: true } },
    [],
  ],
  [
    "Claude Code, a later file of the machine counts",
    "claude",
    "project",
    {
      [MANAGED]: { allowManagedHooksOnly: true },
      "/etc/claude-code/managed-settings.d/1.json": { allowManagedHooksOnly: false },
    },
    [],
  ],
  [
    "Qwen Code, by the user",
    "qwen",
    "project",
    { "~/.qwen/settings.json": off },
    because("~/.qwen/settings.json", ALL),
  ],
  [
    "Qwen Code, by the machine",
    "qwen",
    "user",
    { "/etc/qwen-code/settings.json": off },
    because("/etc/qwen-code/settings.json", ALL, ADMIN),
  ],
  [
    "Qwen Code, by a project that it does not trust",
    "qwen",
    "user",
    { ".qwen/settings.json": off, "~/.qwen/settings.json": { security: { folderTrust: { enabled: true } } } },
    [],
  ],
  [
    "Gemini CLI, in the project",
    "gemini",
    "user",
    { ...OPEN, ".gemini/settings.json": { hooksConfig: { enabled: false } } },
    because(".gemini/settings.json", '"hooksConfig": {"enabled": false}'),
  ],
  [
    "Gemini CLI, by name",
    "gemini",
    "project",
    { ...OPEN, "~/.gemini/settings.json": { hooksConfig: { disabled: ["other", "cotenant"] } } },
    because("~/.gemini/settings.json", '"cotenant" in "hooksConfig": {"disabled": […]}'),
  ],
  [
    "Gemini CLI, by the machine",
    "gemini",
    "project",
    { ...OPEN, "/etc/gemini-cli/settings.json": { hooksConfig: { enabled: false } } },
    because("/etc/gemini-cli/settings.json", '"hooksConfig": {"enabled": false}', ADMIN),
  ],
  [
    "Copilot, by the user: it does not look there",
    "copilot",
    "project",
    { ...TRUSTED, "~/.copilot/settings.json": off },
    [],
  ],
  ["Copilot, in the project", "copilot", "user", { ...TRUSTED, [COPILOTS]: off }, because(COPILOTS, ALL)],
  ["Copilot, in a project that it does not trust", "copilot", "user", { [COPILOTS]: off }, []],
  [
    "Copilot, in Claude Code's settings",
    "copilot",
    "project",
    { ...TRUSTED, [LOCAL]: off },
    because(LOCAL, ALL),
  ],
  [
    "Copilot, its own settings count before those",
    "copilot",
    "project",
    { ...TRUSTED, [LOCAL]: off, [COPILOTS]: on },
    [],
  ],
  [
    "Copilot, for the file alone",
    "copilot",
    "project",
    { ...TRUSTED, ".github/hooks/cotenant.json": off },
    [`runs no hooks of .github/hooks/cotenant.json, because it has ${ALL}: take that out`],
  ],
  ["Cursor: no switch is known", "cursor", "project", { ".cursor/hooks.json": off }, []],
  ["opencode: no switch is known", "opencode", "project", { "opencode.json": off }, []],
])("%s", async (_, harness, level, documents, expected) => {
  expect(await reasons(harness, level, documents)).toEqual(expected);
});
