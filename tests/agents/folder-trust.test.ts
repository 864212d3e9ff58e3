import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { distrust } from "../../src/agents/folder-trust";
import { nodePlatform } from "../../src/platform/node/node";
import { scratch } from "../support/scratch";

const { files } = nodePlatform();
const ROOT = "/srv/team/project";

/** What is said of the project, with these files in the user's own settings. */
function said(
  harness: "pi" | "qwen" | "claude",
  settings: object | null,
  list: object | null,
): Promise<string | null> {
  const home = scratch();
  const own = path.join(home, harness === "pi" ? ".pi/agent" : `.${harness}`);
  fs.mkdirSync(own, { recursive: true });
  const write = (name: string, document: object | null) =>
    document === null ? null : fs.writeFileSync(path.join(own, name), `// mine\n${JSON.stringify(document)}`);
  write("settings.json", settings);
  write(harness === "pi" ? "trust.json" : "trustedFolders.json", list);
  return distrust(files, harness, { root: ROOT, home, env: {} });
}

const ON = { security: { folderTrust: { enabled: true } } };

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
  ["a harness without such a list", "claude", null, null, true],
] as const)("%s", async (_, harness, settings, list, isTrusted) => {
  const why = await said(harness, settings, list);
  if (isTrusted) expect(why).toBeNull();
  else expect(why).toMatch(/^does not trust this folder, and runs no hooks of it: say \//);
});
