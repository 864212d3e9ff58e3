import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { HARNESSES } from "../../src/features/guard/harness";
import { tomlLines } from "../../src/features/harnesses/codex-toml";
import { codexHash, codexLabel } from "../../src/features/harnesses/codex-trust";
import { hindrances } from "../../src/features/harnesses/hindrances";
import { placed } from "../../src/features/harnesses/json-settings";
import { type Level, sitesOf } from "../../src/features/harnesses/sites";
import { nodePlatform } from "../../src/platform/node/node";
import { scratch } from "../support/scratch";

const { files, digest } = nodePlatform();

describe("the hash of a hook", () => {
  /** As `hooks/list` of Codex 0.166.0 answered for these definitions. */
  it.each([
    [
      "PreToolUse",
      { matcher: "Bash" },
      { command: "main", timeout: 200 },
      "b43deeadcc8893a37d7375c633d9ba8711586648362a8ffe5082b2144da7da9e",
    ],
    [
      "SessionEnd",
      {},
      { command: "main", timeout: 20, statusMessage: "ünï \u0001", foo: 1 },
      "5b77fd48d5ae8ebb7d130763f4bac9beba74f9a52790548b8f949db47d49ef09",
    ],
    [
      "UserPromptSubmit",
      { matcher: "x" },
      { command: "main" },
      "f13a4e8329a4521e74572c0edb1777e4e8b5d610535d99ef74ff018fd39ee901",
    ],
  ])("%s", (event, group, handler, hash) => {
    expect(codexHash(digest, event, group, { type: "command", ...handler })).toBe(`sha256:${hash}`);
  });

  it("is kept by the event's name in small letters", () => {
    expect(["PreToolUse", "Stop", "SubagentStop"].map(codexLabel)).toEqual([
      "pre_tool_use",
      "stop",
      "subagent_stop",
    ]);
  });
});

const EVENTS = HARNESSES.codex.events.map(({ name }) => name);
const PROGRAM = { node: "/usr/bin/node", program: "/opt/cotenant" };
let [root, home, room] = ["", "", ""];
beforeEach(() => {
  room = scratch();
  [root, home] = [path.join(room, "project"), path.join(room, "home")];
  write(path.join(root, ".codex/hooks.json"), hooksFile());
});

function write(file: string, text: string): void {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}

function hooksFile(before = ""): string {
  const after = placed("codex", before, PROGRAM);
  if ("why" in after) throw new Error(after.why);
  return after.text;
}

const trusting = (folder: string, level = "trusted") => `[projects."${folder}"]\ntrust_level = "${level}"\n`;

/** What Codex keeps of a person's word for every hook of a file with ours alone. */
function agreed(file: string, { but = [] as readonly string[] } = {}): string {
  const { hooks } = JSON.parse(hooksFile());
  return EVENTS.filter((event) => !but.includes(event))
    .map((event) => {
      const hash = codexHash(digest, event, hooks[event][0], hooks[event][0].hooks[0]);
      return `[hooks.state."${file}:${codexLabel(event)}:0:0"]\ntrusted_hash = "${hash}"\n`;
    })
    .join("");
}

async function reasons(
  config: string,
  { level = "project" as Level, at = root, main = root, toml = false } = {},
) {
  write(path.join(home, ".codex/config.toml"), config);
  const grounds = { root: at, home, env: {} };
  const site = sitesOf("codex", level, grounds)[toml ? 1 : 0]!;
  const said = await hindrances({ files, digest, grounds, mainRoot: main, machine: room }, site);
  return said.map((text) => text.replaceAll(room, ""));
}

const FILE = () => path.join(root, ".codex/hooks.json");

describe("Codex", () => {
  it("runs what was agreed to, in a project that it trusts", async () => {
    expect(await reasons(trusting(root) + agreed(FILE()))).toEqual([]);
  });

  it("runs nothing that nobody has agreed to, or that has changed since", async () => {
    expect(await reasons(trusting(root))).toEqual([
      `does not run all hooks of .codex/hooks.json: nobody has agreed to ${EVENTS.join(", ")}. Start it and say /hooks`,
    ]);
    expect(await reasons(trusting(root) + agreed(FILE(), { but: ["Stop"] }))).toEqual([
      "does not run all hooks of .codex/hooks.json: nobody has agreed to Stop. Start it and say /hooks",
    ]);
    const config = trusting(root) + agreed(FILE());
    write(FILE(), hooksFile().replace('"timeout": 200', '"timeout": 100'));
    expect(await reasons(config)).toEqual([
      "does not run all hooks of .codex/hooks.json: changed since somebody agreed to PreToolUse. Start it and say /hooks",
    ]);
  });

  it("keeps a word by place: a hook of somebody else's before ours moves it", async () => {
    const config = trusting(root) + agreed(FILE());
    write(FILE(), hooksFile('{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}]}}'));
    expect(await reasons(config)).toEqual([expect.stringContaining("nobody has agreed to Stop. ")]);
    expect(await reasons(config.replace(":stop:0:0", ":stop:1:0"))).toEqual([]);
  });

  it("runs no hook that is switched off by itself", async () => {
    const config = agreed(FILE()).replace(/(:stop:0:0"\]\n)/, "$1enabled = false\n");
    expect(await reasons(trusting(root) + config)).toEqual([
      expect.stringContaining("somebody has switched off Stop."),
    ]);
  });

  it("runs no hooks of a project that it does not trust, whatever was said of one above it", async () => {
    const why = [
      expect.stringMatching(/^does not trust this folder, and runs no hooks of it: start it there/),
    ];
    expect(await reasons(agreed(FILE()))).toEqual(why);
    expect(await reasons(trusting(room) + agreed(FILE()))).toEqual(why);
    expect(await reasons(trusting(root, "untrusted") + agreed(FILE()))).toEqual(why);
  });

  it("runs the user's own hooks everywhere, once they were agreed to", async () => {
    const own = path.join(home, ".codex/hooks.json");
    write(own, hooksFile());
    expect(await reasons(agreed(own), { level: "user" })).toEqual([]);
    expect(await reasons("", { level: "user" })).toEqual([expect.stringContaining("~/.codex/hooks.json")]);
  });

  it("takes a linked worktree's hooks from the main one", async () => {
    const linked = path.join(room, "linked");
    write(path.join(linked, ".codex/hooks.json"), hooksFile());
    const config = trusting(root) + agreed(FILE());
    expect(await reasons(config, { at: linked })).toEqual([]);
    expect(await reasons(config + trusting(linked, "untrusted"), { at: linked })).toHaveLength(1);
    fs.rmSync(FILE());
    expect(await reasons(config, { at: linked })).toEqual([
      "takes the hooks of a linked worktree from /project/.codex/hooks.json, which has none of cotenant's: run 'cotenant agent install codex' in /project",
    ]);
  });

  it("takes hooks of its configuration, too, with the same hash", async () => {
    const file = path.join(root, ".codex/config.toml");
    write(file, `${tomlLines(PROGRAM).join("\n")}\n`);
    expect(await reasons(trusting(root) + agreed(file), { toml: true })).toEqual([]);
    expect(await reasons(trusting(root), { toml: true })).toHaveLength(1);
  });

  it.each([["// mine\n"], ["\uFEFF"]])("reads no JSON that begins with %j", async (before) => {
    write(FILE(), before + hooksFile());
    expect(await reasons(trusting(root) + agreed(FILE()))).toEqual([
      expect.stringMatching(/^cannot read \.codex\/hooks\.json, and runs none of its hooks/),
    ]);
  });

  it("reads no JSON with names that it does not know", async () => {
    const config = trusting(root) + agreed(FILE());
    write(FILE(), hooksFile('{"$schema":"x"}'));
    expect(await reasons(config)).toEqual([expect.stringContaining("no names but")]);
    write(FILE(), hooksFile('{"description":"x"}'));
    expect(await reasons(config)).toEqual([]);
  });

  describe("is switched off", () => {
    const because = (file: string, setting: string, step = "take that out") => [
      `runs no hooks, because ${file} has ${setting}: ${step}`,
    ];
    const all = () => trusting(root) + agreed(FILE());
    const ADMIN = "ask whoever administers this machine";

    it("by the user, unless the project says otherwise", async () => {
      for (const name of ["hooks", "codex_hooks"])
        expect(await reasons(`[features]\n${name} = false\n${all()}`)).toEqual(
          because("~/.codex/config.toml", `[features] ${name} = false`),
        );
      write(path.join(root, ".codex/config.toml"), "[features]\nhooks = true\n");
      expect(await reasons(`[features]\nhooks = false\n${all()}`)).toEqual([]);
    });

    it("by a project that it trusts", async () => {
      write(path.join(root, ".codex/config.toml"), "[features]\ncodex_hooks = false\n");
      expect(await reasons(all())).toEqual(because(".codex/config.toml", "[features] codex_hooks = false"));
      expect(await reasons(`[features]\nhooks = true\n${all()}`)).toEqual([]);
    });

    it.each([
      ["requirements.toml", "allow_managed_hooks_only = true"],
      ["requirements.toml", "[features] hooks = false"],
      ["config.toml", "[features] hooks = false"],
      ["managed_config.toml", "[features] hooks = false"],
    ])("by the machine's %s, with %s", async (name, setting) => {
      write(path.join(room, "etc/codex", name), setting.replace("] ", "]\n"));
      expect(await reasons(all())).toEqual(because(`/etc/codex/${name}`, setting, ADMIN));
    });
  });
});
