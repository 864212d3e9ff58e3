import { describe, expect, it } from "vitest";
import { placedInToml } from "../../src/features/harnesses/codex-toml";
import { placed } from "../../src/features/harnesses/json-settings";
import { type Site, sitesOf } from "../../src/features/harnesses/sites";
import { stateOf } from "../../src/features/harnesses/state";
import { HARNESS_NAMES, type HarnessName } from "../../src/identity/harness";

const PROGRAM = { node: "/usr/bin/node", program: "/opt/cotenant" };
const GROUNDS = { root: "/srv/project", home: "/home/me", env: {} };
const MESSAGE = "cotenant: asking whether the file is free";

function installed(harness: HarnessName): string {
  const after = placed(harness, "", PROGRAM);
  if ("why" in after) throw new Error(after.why);
  return after.text;
}

function stateIn(site: Site, text: string): string {
  const file = { path: site.path, text, isThere: true, mode: 0o644, why: null, missing: [] };
  return stateOf({ site, file }, () => "").state;
}

describe("what a harness shows while a hook may wait", () => {
  it.each(HARNESS_NAMES.filter((name) => name !== "opencode" && name !== "pi"))("%s", (harness) => {
    const text = installed(harness);
    const [site] = sitesOf(harness, "project", GROUNDS);
    const shown = text.match(new RegExp(MESSAGE, "g")) ?? [];
    const isShowing = ["claude", "codex", "qwen"].includes(harness);
    // Only before a write is anything waited for.
    expect(shown).toHaveLength(isShowing ? 1 : 0);
    expect(stateIn(site!, text)).toBe("installed");
    if (!isShowing) return;
    const older = text.replace(/,\s*"statusMessage": "[^"]*"/, "");
    expect(stateIn(site!, older)).toBe("outdated");
  });

  it("codex, in its configuration", () => {
    const after = placedInToml(null, PROGRAM);
    if ("why" in after) throw new Error(after.why);
    const site = sitesOf("codex", "project", GROUNDS)[1]!;
    expect(after.text.split(MESSAGE)).toHaveLength(2);
    expect(stateIn(site, after.text)).toBe("installed");
    expect(stateIn(site, after.text.replace(/statusMessage = .*\n/, ""))).toBe("outdated");
  });
});
