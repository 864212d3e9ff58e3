import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { codexHash, codexLabel } from "../../src/features/harnesses/codex-trust";
import { nodePlatform } from "../../src/platform/node/node";
import { needTool } from "../house/need-tool";
import { oneIn } from "../support/one-in";
import { PROGRAM, run } from "../support/program";
import { expectNoInnards, expectRefused } from "../support/refusals";
import { scratch } from "../support/scratch";
import { Furnished, HARNESSES } from "../support/settings";

const it = oneIn(8);

interface Examined {
  readonly harness: string;
  readonly state: string;
  readonly canary: string | null;
  readonly why: string | null;
  readonly coverage: Readonly<Record<string, string>> | null;
  readonly hindrances: readonly string[];
}

let here: Furnished;
beforeEach(async () => {
  here = await Furnished.make();
});

const LOCAL = ".claude/settings.local.json";

async function examined(
  ...args: string[]
): Promise<{ status: number | null; agents: Examined[]; remarks: string[] }> {
  const ran = await here.askProgram("agent", "doctor", ...args);
  expectNoInnards(ran);
  const data = ran.json.data as unknown as { agents: Examined[]; remarks: string[] };
  return { status: ran.status, ...data };
}

/** As if a person had answered every question that a harness asks before it runs hooks of a project. */
function trustAll(): void {
  const root = JSON.stringify(here.repo.root);
  here.write(".pi/agent/trust.json", `{${root}: true}`, here.home);
  here.write(".gemini/trustedFolders.json", `{${root}: "TRUST_FOLDER"}`, here.home);
  here.write(".copilot/config.json", `{"trustedFolders": [${root}]}`, here.home);
  const { hooks } = JSON.parse(here.read(".codex/hooks.json"));
  const { digest } = nodePlatform();
  const states = Object.entries<{ hooks: object[] }[]>(hooks).map(([event, [group]]) => {
    const key = JSON.stringify(`${here.path(".codex/hooks.json")}:${codexLabel(event)}:0:0`);
    const hash = codexHash(digest, event, { ...group }, { ...group!.hooks[0] });
    return `[hooks.state.${key}]\ntrusted_hash = "${hash}"\n`;
  });
  const trust = `[projects.${root}]\ntrust_level = "trusted"\n`;
  here.write(".codex/config.toml", trust + states.join(""), here.home);
}

const neverUsed = () => {
  for (const made of [here.repo.control, path.join(here.repo.root, ".cotenant")])
    fs.rmSync(made, { recursive: true });
};

it("settings that do nothing, because cotenant was never used in the repository, are called so", async () => {
  neverUsed();
  const user = await here.ask("agent", "install", "claude", "--user");
  expect(user.data["remarks"]).toContain(
    "the guard lets everything pass in repositories where cotenant was never used, as in this one: run 'cotenant init' there",
  );
  const { status, remarks } = await examined("--no-canary");
  expect([status, remarks[0]]).toEqual([
    10,
    "cotenant was never used in this repository, so the guard lets everything pass in it: run 'cotenant init'",
  ]);
  const shared = await here.ask("agent", "install", "claude", "--shared");
  expect(shared.data["remarks"]).toContain(
    "in other clones the guard lets everything pass: run 'cotenant init', and commit .cotenant/ as well",
  );
  await here.ask("init");
  expect((await here.ask("agent", "install", "claude", "--shared")).data["remarks"]).toEqual([]);
  expect((await examined("--no-canary")).status).toBe(0);
});

it("what uses cotenant in a repository is any command that writes there: 'agent install' is one, 'init' is not needed", async () => {
  neverUsed();
  const event = { hook_event_name: "PreToolUse", session_id: "s", cwd: here.repo.root, tool_name: "Write" };
  const input = JSON.stringify({ ...event, tool_input: { file_path: here.path("a.txt") } });
  const write = () =>
    execFileSync(PROGRAM, ["guard", "check", "--harness", "claude"], { cwd: here.repo.root, input });
  expect(String(write())).toBe("");
  expect(fs.existsSync(here.repo.control)).toBe(false);
  await here.ask("agent", "install", "claude");
  expect((await examined("--no-canary")).status).toBe(0);
  expect(String(write())).toBe("");
  expect(here.repo.logText()).toContain("file:a.txt");
  // What is said of it is this.
  expect(fs.readFileSync("docs/AGENTS.md", "utf8")).not.toContain("without `cotenant init`");
  const help = (await here.run("agent", "doctor", "--help")).stdout;
  expect(help.replaceAll(/\s+/g, " ")).toContain("where cotenant was never used");
});

it("a directory where a harness keeps settings keeps nothing from being looked at", async () => {
  await here.ask("agent", "install", "claude");
  for (const name of [".gemini/settings.json", ".claude/settings.json", ".codex/config.toml"])
    fs.mkdirSync(path.join(here.home, name), { recursive: true });
  const { status, agents } = await examined("--no-canary", "claude");
  expect([status, agents.map(({ state }) => state)]).toEqual([0, ["installed"]]);
});

describe("agent doctor", () => {
  it("sends a canary through every installed command line, and shows what it covers", async () => {
    const before = here.picture();
    await here.ask("agent", "install", "--all");
    trustAll();
    const installed = here.picture();
    const log = here.repo.logText();
    const { status, agents, remarks } = await examined();
    expect(status).toBe(0);
    expect(agents.map(({ harness, canary }) => [harness, canary])).toEqual(
      HARNESSES.map((name) => [name, "passed"]),
    );
    for (const { harness, coverage } of agents) {
      const shell = { redirect: "before", file_tool: "before", script: "after", outside: "open" };
      expect(coverage, harness).toMatchObject({ edit: "before", create: "before", ...shell });
    }
    const by = (harness: string) => agents.find((one) => one.harness === harness)!.coverage!;
    expect([by("codex")["several"], by("opencode")["several"], by("claude")["several"]]).toEqual([
      "before",
      "before",
      "none",
    ]);
    expect([by("claude")["notebook"], by("cursor")["delete"], by("gemini")["delete"]]).toEqual([
      "before",
      "before",
      "none",
    ]);
    expect(remarks).toEqual([]);
    // Neither the project nor its log has noticed.
    expect([here.picture(), here.repo.logText()]).toEqual([installed, log]);
    for (const made of [".pi", ".gemini", ".copilot", ".codex"])
      fs.rmSync(path.join(here.home, made), { recursive: true });
    await here.ask("agent", "uninstall", "--all");
    expect(here.picture()).toEqual(before);
  });

  it("names what keeps a harness from running its hooks, and exits with 10, though the canary lives", async () => {
    await here.ask("agent", "install", "copilot", "codex", "cursor");
    const { status, agents, remarks } = await examined();
    expect(status).toBe(10);
    expect(agents.map(({ canary }) => canary)).toEqual(["passed", "passed", "passed"]);
    const by = Object.fromEntries(agents.map((one) => [one.harness, one.hindrances]));
    expect(by).toEqual({
      codex: [expect.stringContaining("does not trust this folder")],
      cursor: [],
      copilot: [expect.stringContaining("does not trust this folder")],
    });
    expect(remarks).toEqual([`Codex ${by["codex"]![0]}`, `Copilot ${by["copilot"]![0]}`]);
    trustAll();
    const after = await examined("--no-canary");
    expect([after.status, after.remarks]).toEqual([0, []]);
    // An update of ours has to be agreed to like every other change.
    here.write(".codex/hooks.json", here.read(".codex/hooks.json").replace("--event Stop", "--event  Stop"));
    const changed = await examined("codex", "--no-canary");
    expect([changed.status, changed.remarks]).toEqual([
      10,
      [
        "Codex does not run all hooks of .codex/hooks.json: changed since somebody agreed to Stop. Start it and say /hooks",
      ],
    ]);
  });

  it("says of a linked worktree what Codex loads there", async () => {
    const linked = path.join(path.dirname(here.repo.root), "linked");
    here.repo.git("worktree", "add", "--quiet", linked);
    await here.askIn(linked, "agent", "install", "codex");
    here.write(
      ".codex/config.toml",
      `[projects.${JSON.stringify(here.repo.root)}]\ntrust_level = "trusted"\n`,
      here.home,
    );
    const { status, json } = await here.askIn(linked, "agent", "doctor", "--no-canary");
    expect([status, json.data!["remarks"]]).toEqual([
      10,
      [
        `Codex takes the hooks of a linked worktree from ${here.path(".codex/hooks.json")}, which has none of cotenant's: run 'cotenant agent install codex' in ${here.repo.root}`,
      ],
    ]);
    await here.ask("agent", "install", "codex");
    trustAll();
    expect((await here.askIn(linked, "agent", "doctor", "--no-canary")).status).toBe(0);
  });

  it("tries those that are named, and says where one is missing", async () => {
    await here.ask("agent", "install", "opencode", "cursor");
    const one = await examined("cursor", "--no-canary");
    expect([one.status, one.agents.map(({ harness }) => harness), one.remarks]).toEqual([0, ["cursor"], []]);
    const other = await examined("claude", "--no-canary");
    expect([other.status, other.agents]).toEqual([10, []]);
    expect(other.remarks).toEqual(["Claude Code does not ask cotenant: cotenant agent install claude"]);
    const nobody = await here.askProgram("agent", "doctor", "gemni");
    expect(nobody.json.error).toMatchObject({ code: "E_USAGE", hint: expect.stringContaining("gemini") });
    await here.ask("agent", "uninstall", "--all");
  });

  it("shows a table to people", async () => {
    await here.ask("agent", "install", "gemini");
    here.write(".gemini/settings.json", '{"security": {"folderTrust": {"enabled": false}}}', here.home);
    const { stdout, status } = await here.run("agent", "doctor");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^HARNESS +LEVEL +STATE +CANARY +FILE\nGemini CLI +project +installed +passed +/);
    expect(stdout).toMatch(/edits a file +blocked before/);
    expect(stdout).toMatch(/shell: a program of its own +seen after/);
    expect(stdout).toMatch(/outside of the harness +open/);
  });

  it("finds canaries that die: a program that is gone, one that says nothing, one that refuses all", async () => {
    await here.ask("agent", "install", "claude", "copilot");
    const text = here.read(LOCAL);
    here.write(LOCAL, text.replaceAll(PROGRAM, "/opt/old/bin/cotenant"));
    const gone = await examined();
    expect(gone.status).toBe(10);
    expect(gone.agents[0]).toMatchObject({ state: "outdated", canary: "failed" });
    expect(gone.agents[1]).toMatchObject({ canary: "passed" });
    await here.ask("agent", "uninstall", "copilot");

    const twisted = (line: string) =>
      text.replaceAll(/"command": "[^"]*guard check/g, `"command": "${line}; : guard check`);
    for (const [line, why] of [
      ["exit 0", "is not refused"],
      ["echo no >&2; exit 2", "a file that nobody holds is refused: no"],
      ["echo hello", "on an ordinary write it prints hello"],
      ["exit 3", "the command ends with 3"],
    ] as const) {
      here.write(LOCAL, twisted(line));
      const { status, agents } = await examined();
      expect([status, agents[0]!.canary, agents[0]!.why]).toEqual([
        10,
        "failed",
        expect.stringContaining(why),
      ]);
    }
    const { agents, status } = await examined("--no-canary");
    expect([status, agents[0]!.canary, agents[0]!.coverage]).toEqual([0, null, null]);
    await here.ask("agent", "install", "cursor");
    const silent = here.read(".cursor/hooks.json");
    here.write(
      ".cursor/hooks.json",
      silent.replaceAll(/"command": "[^"]*guard check/g, '"command": "exit 0; : guard check'),
    );
    expect((await examined("cursor")).agents[0]!.why).toBe("on an ordinary write it prints nothing");
  });

  it("says what keeps a harness from asking, and what asks twice", async () => {
    expect((await here.run("agent", "doctor")).stdout).toContain("next: cotenant agent install");
    await here.ask("agent", "install", "codex", "--user");
    here.write(".codex/config.toml", "[features]\nhooks = false\n", here.home);
    await here.ask("agent", "install", "codex");
    const { status, remarks } = await examined("--no-canary");
    expect(status).toBe(10);
    expect(remarks).toEqual([
      "Codex runs no hooks, because ~/.codex/config.toml has [features] hooks = false: take that out",
      expect.stringContaining("Codex asks 2 times for every write"),
    ]);
    here.write(".codex/hooks.json", "{");
    const broken = await examined("--no-canary");
    expect(broken.status).toBe(10);
    expect(broken.remarks.join()).toContain(".codex/hooks.json cannot be read");
  });

  it("tries calls that somebody wrote by hand, in either form", async () => {
    const args = JSON.stringify([PROGRAM, "guard", "check", "--harness", "claude"]);
    here.write(
      LOCAL,
      `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"${process.execPath}","args":${args}}]}]}}`,
    );
    const { agents } = await examined();
    expect(agents).toMatchObject([{ harness: "claude", state: "installed", canary: "passed" }]);
    expect(agents[0]!.coverage).toMatchObject({ edit: "before", script: "open" });
  });
});

/** Only root can give files away and become somebody else. */
describe.runIf(process.getuid?.() === 0)("settings of others", () => {
  it("that may not be written, or not even be read, are said so, and stay", async () => {
    needTool("setpriv");
    const room = scratch();
    fs.chmodSync(room, 0o755);
    const root = path.dirname(path.dirname(PROGRAM));
    for (const part of ["bin", "dist"])
      fs.cpSync(path.join(root, part), path.join(room, "program", part), { recursive: true });
    const [home, settings] = [path.join(room, "home"), path.join(room, "home/.claude")];
    fs.mkdirSync(settings, { recursive: true });
    fs.writeFileSync(path.join(settings, "settings.json"), "{}\n", { mode: 0o644 });
    const nobody = (...args: string[]) =>
      run(
        [
          "setpriv",
          "--reuid=65534",
          "--regid=65534",
          "--clear-groups",
          process.execPath,
          path.join(room, "program/bin/cotenant"),
          ...args,
        ],
        { cwd: room, env: { HOME: home, XDG_DATA_HOME: path.join(room, "data") } },
      );
    fs.mkdirSync(path.join(room, "data"));
    fs.chownSync(path.join(room, "data"), 65534, 65534);
    expectRefused(await nobody("agent", "install", "claude", "--user"), 10, "E_PERMISSION");
    expect(fs.readFileSync(path.join(settings, "settings.json"), "utf8")).toBe("{}\n");
    fs.chmodSync(path.join(settings, "settings.json"), 0o600);
    expectRefused(await nobody("agent", "install", "claude", "--user"), 10, "E_PERMISSION");
    expect(fs.readdirSync(settings)).toEqual(["settings.json"]);
  });
});
