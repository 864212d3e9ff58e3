import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM, run } from "../support/program";
import { expectJsonRefused, expectNoInnards, expectRefused } from "../support/refusals";
import { scratch } from "../support/scratch";
import { FILES, Furnished } from "../support/settings";

const it = oneIn(8);

interface Installed {
  readonly harness: string;
  readonly action: string;
  readonly path: string;
}

let here: Furnished;
beforeEach(async () => {
  here = await Furnished.make();
});

const agentsIn = (data: Record<string, unknown>) => data["agents"] as Installed[];
const LOCAL = ".claude/settings.local.json";

describe("agent install refuses, and writes nothing,", () => {
  const HOSTILE: Record<string, () => void> = {
    "broken JSON": () => void here.write(LOCAL, '{"model": "opus",, }\n'),
    "JSON that is cut off": () => void here.write(LOCAL, '{"hooks": {"PreToolUse": ['),
    "hooks that are no object": () => void here.write(LOCAL, '{"hooks": "none"}'),
    "bytes that are no UTF-8": () => void here.write(LOCAL, Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
    "UTF-16": () => void here.write(LOCAL, Buffer.from('\uFEFF{"a":1}', "utf16le")),
    "a huge file": () => void here.write(LOCAL, `{"a":"${"x".repeat(1 << 20)}"}`),
    "a deep one": () => void here.write(LOCAL, "[".repeat(200_000)),
    "a directory in its place": () => void fs.mkdirSync(here.path(LOCAL), { recursive: true }),
    "a file in the place of its directory": () => void here.write(".claude", "mine"),
    "a link that leads nowhere": () => {
      fs.mkdirSync(here.path(".claude"));
      fs.symlinkSync("gone.json", here.path(LOCAL));
    },
    "a link out of the project": () => {
      fs.mkdirSync(here.path(".claude"));
      fs.symlinkSync(here.write("other.json", "{}", here.home), here.path(LOCAL));
    },
    "a directory that is a link out of the project": () => {
      fs.symlinkSync(here.home, here.path(".claude"));
    },
  };

  it.each(Object.keys(HOSTILE))("%s", async (what) => {
    HOSTILE[what]!();
    const before = here.picture();
    const refused = await here.run("agent", "install", "claude");
    expectRefused(refused, 9, "E_SETTINGS");
    expect(refused.stderr).toContain(LOCAL);
    expectJsonRefused(await here.ask("agent", "install", "--all"), 9, "E_SETTINGS");
    expect(here.picture()).toEqual(before);
    for (const verb of ["list", "uninstall claude", "doctor --no-canary"])
      expectNoInnards(await here.run("agent", ...verb.split(" ")));
    expect(here.picture()).toEqual(before);
  });

  it("what is committed, or would be, unless asked to", async () => {
    here.write(".gemini/settings.json", '{"theme": "dark"}\n');
    expectRefused(await here.run("agent", "install", "gemini"), 9, "E_SETTINGS");
    here.repo.git("add", "--all");
    here.repo.git("commit", "--quiet", "--message", "settings");
    const refused = await here.run("agent", "install", "gemini");
    expectRefused(refused, 9, "E_SETTINGS");
    expect(refused.stderr).toContain("--shared");
    expect((await here.ask("agent", "install", "gemini", "--shared")).data.changed).toBe(true);
    expect(here.read(".gemini/settings.json"), "no path of this machine").not.toContain(
      path.dirname(PROGRAM),
    );
    expectNoInnards(await here.run("agent", "uninstall", "gemini"));
    expect((await here.run("agent", "uninstall", "gemini")).stdout).toContain("add --shared");
    await here.ask("agent", "uninstall", "gemini", "--shared");
    expect(here.read(".gemini/settings.json")).toBe('{"theme": "dark"}\n');
  });

  it("what nobody can mean", async () => {
    for (const [words, hint] of [
      [["agent", "install"], "--all"],
      [["agent", "install", "cluade"], "did you mean claude?"],
      [["agent", "install", "claude", "--all"], "--all"],
      [["agent", "install", "claude", "--user", "--shared"], "--shared"],
      [["agent", "uninstall", "\u001b[31memacs"], "use one of"],
      [["init", "--agents", "claude,vim"], "use one of"],
    ] as const) {
      const refused = await here.run(...words);
      expectRefused(refused, 64, "E_USAGE");
      expect(refused.stderr).toContain(hint);
      expect(refused.stderr).not.toContain("\u001b");
    }
    expectJsonRefused(await here.askIn(scratch(), "agent", "install", "claude"), 10, "E_NOT_A_REPO");
  });
});

describe("agent install", () => {
  it("shows what it would write, and writes nothing", async () => {
    const before = here.picture();
    const shown = await here.run("agent", "install", "--all", "--print");
    expect(shown.stdout).toContain('"PreToolUse": [');
    expect(shown.stdout).toContain('"tool.execute.before": async');
    expect(here.picture()).toEqual(before);
  });

  it("works for the user outside of any repository, and where HOME is not the place", async () => {
    const codex = scratch();
    const away = scratch();
    const { data } = await here.askIn(away, "agent", "install", "claude", "--user");
    expect(agentsIn(data)).toMatchObject([{ path: path.join(here.home, ".claude/settings.json") }]);
    expect((await here.askIn(away, "agent", "uninstall", "claude", "--user")).data.changed).toBe(true);
    expect(fs.existsSync(path.join(here.home, ".claude"))).toBe(false);
    expect(fs.readdirSync(codex)).toEqual([]);
  });

  it("says of an uninstallation what is the user's own, and stays without --user", async () => {
    await here.ask("agent", "install", "pi", "claude", "--user");
    await here.ask("agent", "install", "claude");
    const file = path.join(here.home, FILES["pi"]![2]);
    const { data } = await here.ask("agent", "uninstall", "pi");
    const why = "it is yours, for all your projects; add --user to take it out";
    expect([data.changed, data["left"]]).toEqual([false, [{ path: file, why }]]);
    const both = await here.run("agent", "uninstall", "claude");
    expect(both.stdout).toContain(`${LOCAL}: removed`);
    expect(both.stdout).toContain(`left:\n  ${path.join(here.home, FILES["claude"]![2])}: ${why}`);
    await here.ask("agent", "uninstall", "pi", "claude", "--user");
    expect((await here.ask("agent", "uninstall", "--all")).data["left"]).toEqual([]);
  });

  it("goes through a link in the user's home, and leaves the link", async () => {
    const text = '{ "model": "opus" }\n';
    const real = here.write("dotfiles/claude.json", text, here.home);
    fs.mkdirSync(path.join(here.home, ".claude"));
    const link = path.join(here.home, ".claude/settings.json");
    fs.symlinkSync(real, link);
    await here.ask("agent", "install", "claude", "--user");
    expect(fs.readFileSync(real, "utf8")).toContain("guard check");
    expect(fs.lstatSync(link).isSymbolicLink()).toBe(true);
    await here.ask("agent", "uninstall", "claude", "--user");
    expect([fs.readFileSync(real, "utf8"), fs.readlinkSync(link)]).toEqual([text, real]);
  });

  it("keeps the mode of a file, and every other byte of it", async () => {
    const file = here.write(LOCAL, '{"env": {"TOKEN": "s3cret"}}');
    fs.chmodSync(file, 0o600);
    await here.ask("agent", "install", "claude");
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    // What is remembered is ours alone.
    const shelf = path.join(here.repo.control, "agents");
    for (const name of fs.readdirSync(shelf))
      expect(fs.readFileSync(path.join(shelf, name), "utf8")).not.toContain("s3cret");
  });

  it("brings entries of another version, another place or twice up to date, and back", async () => {
    const mine = '{\n  "model": "opus"\n}\n';
    here.write(LOCAL, mine);
    await here.ask("agent", "install", "claude");
    const fresh = here.read(LOCAL);
    const old = fresh
      .replaceAll(path.dirname(PROGRAM), "/opt/old/bin")
      .replace('"timeout": 200', '"timeout": 60');
    here.write(LOCAL, old);
    const { data } = await here.ask("agent", "list");
    const [claude] = data["harnesses"] as { files: object[] }[];
    expect(claude!.files).toMatchObject([{ state: "outdated", program: { found: false } }]);
    expect(agentsIn((await here.ask("agent", "install", "claude")).data)).toMatchObject([
      { action: "updated" },
    ]);
    expect(JSON.parse(here.read(LOCAL))).toEqual(JSON.parse(fresh));
    const doubled = JSON.parse(fresh) as { hooks: Record<string, object[]> };
    for (const list of Object.values(doubled.hooks)) list.push(...list);
    here.write(LOCAL, JSON.stringify(doubled, null, 2));
    await here.ask("agent", "install", "claude");
    expect(JSON.parse(here.read(LOCAL))).toEqual(JSON.parse(fresh));
    await here.ask("agent", "uninstall", "claude");
    expect(JSON.parse(here.read(LOCAL))).toEqual(JSON.parse(mine));
  });

  it("leaves calls that somebody wrote by hand, and adds what they lack", async () => {
    const mine =
      '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"cotenant guard stop --harness claude"}]}]}}\n';
    here.write(LOCAL, mine);
    await here.ask("agent", "install", "claude");
    const { hooks } = JSON.parse(here.read(LOCAL)) as { hooks: Record<string, object[]> };
    expect([hooks["Stop"]!.length, hooks["PreToolUse"]!.length]).toEqual([1, 1]);
    const out = await here.ask("agent", "uninstall", "claude");
    expect(here.read(LOCAL)).toBe(mine);
    expect(out.data["left"]).toMatchObject([{ why: expect.stringContaining("by hand") }]);
  });

  it("forgets nothing that matters when what it remembered is gone or damaged", async () => {
    here.write(LOCAL, '{ "model": "opus" } // mine\n');
    for (const damage of [null, "", "{}", '{"schema_version":1,"path":7}', "\u0000", "[".repeat(10_000)]) {
      await here.ask("agent", "install", "claude");
      const shelf = path.join(here.repo.control, "agents");
      for (const name of fs.readdirSync(shelf)) {
        const file = path.join(shelf, name);
        if (damage === null) fs.rmSync(file);
        else fs.writeFileSync(file, damage);
      }
      expect((await here.ask("agent", "uninstall", "claude")).data.changed).toBe(true);
      expect(here.read(LOCAL)).toMatch(/^\{ "model": "opus"\s*\} \/\/ mine\n$/);
    }
  });

  it("keeps what somebody changed in the file meanwhile", async () => {
    here.write(LOCAL, '{\n  "model": "opus"\n}\n');
    await here.ask("agent", "install", "claude");
    here.write(LOCAL, here.read(LOCAL).replace('"opus"', '"haiku"'));
    await here.ask("agent", "uninstall", "claude");
    expect(here.read(LOCAL)).toBe('{\n  "model": "haiku"\n}\n');
    // A file of ours that has become somebody's.
    await here.ask("agent", "install", "cursor");
    const cursor = JSON.parse(here.read(".cursor/hooks.json")) as { hooks: Record<string, object[]> };
    cursor.hooks["afterFileEdit"] = [{ command: "./format.sh" }];
    here.write(".cursor/hooks.json", JSON.stringify(cursor));
    await here.ask("agent", "uninstall", "cursor");
    expect(JSON.parse(here.read(".cursor/hooks.json"))).toEqual({
      version: 1,
      hooks: { afterFileEdit: [{ command: "./format.sh" }] },
    });
  });

  it("does not remove a file that somebody has made in the place of ours", async () => {
    await here.ask("agent", "install", "claude", "cursor");
    here.write(LOCAL, "{}\n");
    here.write(".cursor/hooks.json", '{"version": 1}');
    await here.ask("agent", "install", "claude", "cursor");
    await here.ask("agent", "uninstall", "claude", "cursor");
    expect([here.read(LOCAL), here.read(".cursor/hooks.json")]).toEqual(["{}\n", '{"version": 1}']);
  });

  it("takes no plugin of somebody else's for its own", async () => {
    here.write(".opencode/plugins/cotenant.js", "export const Mine = async () => ({});\n");
    expectRefused(await here.run("agent", "install", "opencode"), 9, "E_SETTINGS");
    expect((await here.ask("agent", "uninstall", "opencode")).data.changed).toBe(false);
    expect(here.read(".opencode/plugins/cotenant.js")).toContain("Mine");
  });

  it.each([
    ["pi", ".pi/extensions/cotenant.js"],
    ["opencode", ".opencode/plugins/cotenant.js"],
  ])("leaves a file of ours alone that somebody has written into: %s", async (harness, file) => {
    const stateNow = async () => {
      const { data } = await here.ask("agent", "list", harness);
      return (data["harnesses"] as { files: { state: string }[] }[])[0]!.files[0]?.state;
    };
    await here.ask("agent", "install", harness);
    expect(await stateNow()).toBe("installed");
    const text = here.read(file);
    // As Git has it on another system.
    here.write(file, text.replaceAll("\n", "\r\n"));
    expect(await stateNow()).toBe("outdated");
    await here.ask("agent", "install", harness);
    expect(here.read(file)).toBe(text);
    const mine = `${text}// mine\n`;
    here.write(file, mine);
    expect(await stateNow()).toBe("changed");
    expect((await here.run("doctor")).stdout).toContain(`${file} was changed by hand`);
    const refused = await here.run("agent", "install", harness);
    expectRefused(refused, 9, "E_SETTINGS");
    expect(refused.stderr).toContain("it was changed by hand");
    const left = await here.run("agent", "uninstall", harness);
    expect(left.stdout).toMatch(/left:\n.*cotenant\.js: it was changed by hand.*, then delete it/);
    expect(here.read(file)).toBe(mine);
    fs.rmSync(here.path(file));
    expect((await here.ask("agent", "uninstall", harness)).data.left).toEqual([]);
    expect(fs.existsSync(path.dirname(here.path(file)))).toBe(false);
    await here.ask("agent", "install", harness);
    here.write(file, mine);
    await here.ask("deinit");
    expect(here.read(file)).toBe(mine);
  });
});

it("agent list knows a harness by what it has in the user's home, and not by what is ours there", async () => {
  const found = async () => {
    const { data } = await here.ask("agent", "list", "claude", "gemini", "pi");
    return (data["harnesses"] as { found: boolean }[]).map((one) => one.found);
  };
  here.write(".gemini/settings.json", "{}", here.home);
  expect(await found()).toEqual([false, true, false]);
  await here.ask("agent", "install", "claude", "gemini", "pi", "--user");
  expect(await found()).toEqual([false, true, false]);
  fs.mkdirSync(path.join(here.home, ".claude/projects"));
  here.write(".pi/agent/extensions/mine.js", "", here.home);
  expect(await found()).toEqual([true, true, true]);
});

describe("Codex's configuration file", () => {
  const TOML =
    '# mine\r\nmodel = "o9"\r\n\r\n[[hooks.Stop]]\r\n[[hooks.Stop.hooks]]\r\ntype = "command"\r\ncommand = "say done"';
  const local = async (text: string | null) => {
    here.repo.git("config", "core.excludesFile", here.write("ignored", ".codex/\n", here.home));
    if (text !== null) here.write(".codex/config.toml", text);
  };

  it("gets our tables where hooks are kept in it, and gives them back", async () => {
    await local(TOML);
    const { data } = await here.ask("agent", "install", "codex");
    expect(agentsIn(data)).toMatchObject([{ action: "added", path: here.path(".codex/config.toml") }]);
    const text = here.read(".codex/config.toml");
    expect(text.startsWith(TOML)).toBe(true);
    expect(text).toMatch(/\r\n\[\[hooks\.PreToolUse\]\]\r\nmatcher = /);
    expect((await here.ask("agent", "install", "codex")).data.changed).toBe(false);
    here.write(".codex/config.toml", `${text.replace("o9", "o10")}\r\n[tui]\r\n`);
    await here.ask("agent", "uninstall", "codex");
    expect(here.read(".codex/config.toml")).toBe(`${TOML.replace("o9", "o10")}\r\n[tui]\r\n`);
  });

  it("is left alone where it has none", async () => {
    await local('model = "o9"\n[hooks.state]\n');
    const { data } = await here.ask("agent", "install", "codex");
    expect(agentsIn(data)).toMatchObject([{ path: here.path(".codex/hooks.json") }]);
  });

  it.each([
    ["broken", "model = \n[[hooks.Stop]]\n"],
    ["with inline tables", "hooks = { PreToolUse = [{ hooks = [] }] }\n"],
  ])("%s is refused, or not looked at", async (_, text) => {
    await local(text);
    const ran = await here.run("agent", "install", "codex");
    expectNoInnards(ran);
    if (ran.status !== 0) expectRefused(ran, 9, "E_SETTINGS");
    expect(here.read(".codex/config.toml")).toBe(text);
  });
});

describe("worktrees", () => {
  it("share what Git passes over, until the last has gone", async () => {
    const before = here.read(".git/info/exclude");
    const other = here.repo.addWorktree("other");
    await here.ask("agent", "install", "cursor");
    await here.askIn(other.root, "agent", "install", "cursor");
    await here.ask("agent", "uninstall", "cursor");
    expect(other.git("status", "--porcelain", "--untracked-files=all")).toBe("");
    await here.askIn(other.root, "agent", "uninstall", "cursor");
    expect(here.read(".git/info/exclude")).toBe(before);
  });

  describe("that 'worktree create' makes", () => {
    interface Listed {
      readonly harness: string;
      readonly files: readonly { readonly level: string; readonly state: string }[];
    }
    const asking = async (root: string) => {
      const { data } = await here.askIn(root, "agent", "list");
      return (data["harnesses"] as Listed[])
        .filter(({ files }) => files.some(({ level, state }) => level === "project" && state === "installed"))
        .map(({ harness }) => harness);
    };
    const create = (branch: string, from = here.repo.root) => here.askIn(from, "worktree", "create", branch);
    const clean = (root: string) => here.repo.at(root).git("status", "--porcelain", "--untracked-files=all");

    it("have the guard of the one they are made from, or of the main one, and say so", async () => {
      await here.ask("agent", "install", "claude", "qwen", "pi");
      await here.ask("agent", "install", "gemini", "--user");
      const said = await here.run("worktree", "create", "work/one");
      expect(said.stdout).toContain("with the guard for Claude Code, Qwen Code, pi\n");
      expect(said.stdout, "a folder that is new is not trusted").toContain("note: pi loads nothing");
      const { data } = await create("work/two");
      const { root } = data.worktree;
      expect(data["agents"]).toEqual(
        ["claude", "qwen", "pi"].map((harness) => ({ harness, path: path.join(root, FILES[harness]![0]) })),
      );
      expect(await asking(root)).toEqual(["claude", "qwen", "pi"]);
      const findings = (await here.askIn(root, "doctor")).data["findings"] as {
        check: string;
        message: string;
      }[];
      expect(findings.find(({ check }) => check === "harnesses")!.message).toBe("asking: claude, qwen, pi");
      expect([clean(root), here.status()]).toEqual(["", ""]);

      const bare = here.repo.addWorktree("bare");
      await here.askIn(bare.root, "agent", "install", "cursor");
      const third = await create("work/three", bare.root);
      expect(await asking(third.data.worktree.root)).toEqual(["claude", "cursor", "qwen", "pi"]);
    });

    it("have nothing that is committed, was taken out, or is not ours", async () => {
      here.write(".gemini/settings.json", "{}\n");
      await here.ask("agent", "install", "gemini", "--shared");
      here.repo.git("add", "--all");
      here.repo.git("commit", "--quiet", "--message", "shared");
      await here.ask("agent", "install", "claude", "cursor", "pi");
      await here.ask("agent", "uninstall", "cursor");
      here.write(LOCAL, "{}");
      const { data } = await create("work/two");
      expect(data["agents"]).toMatchObject([{ harness: "pi" }]);
      expect(clean(data.worktree.root)).toBe("");
    });

    it("are made although a file of theirs belongs to the branch, which stays as it is", async () => {
      here.repo.git("checkout", "--quiet", "-b", "theirs");
      here.write(".qwen/settings.json", "{}\n");
      here.repo.git("add", "--all");
      here.repo.git("commit", "--quiet", "--message", "qwen");
      here.repo.git("checkout", "--quiet", "main");
      await here.ask("agent", "install", "claude", "qwen");
      const made = await create("theirs");
      const { root } = made.data.worktree;
      expect(made.data["agents"]).toMatchObject([{ harness: "claude" }]);
      expect(made.json.warnings?.join()).toContain(
        `Qwen Code does not ask before each write there: ${root}/.qwen/settings.json belongs to the project`,
      );
      expect(here.read(".qwen/settings.json", root)).toBe("{}\n");
    });

    it("are removed as if they were empty, and forgotten; what is left is found again", async () => {
      const before = here.read(".git/info/exclude");
      await here.ask("agent", "install", "cursor", "pi");
      for (const branch of ["one", "two", "three"]) await create(branch);
      const removed = await here.ask("worktree", "remove", "one", "--no-snapshot");
      expect([removed.status, removed.data["snapshot_id"]]).toEqual([0, null]);
      const root = (name: string) => `${here.repo.root}.worktrees/${name}`;
      here.repo.git("worktree", "remove", root("two"));
      await here.ask("gc");
      const shelf = path.join(here.repo.control, "agents");
      expect(fs.readdirSync(shelf), "of the main one and the third").toHaveLength(4);
      await here.ask("agent", "uninstall", "--all");
      expect(clean(root("three"))).toBe("");
      expect((await here.askIn(root("three"), "agent", "uninstall", "pi")).data.changed).toBe(true);
      expect((await here.ask("deinit")).data["agents"]).toEqual([
        path.join(root("three"), ".cursor/hooks.json"),
      ]);
      expect(fs.readdirSync(root("three")).sort()).toEqual([".cotenant", ".git", "a.txt"]);
      expect(here.read(".git/info/exclude")).toBe(before);
    });
  });

  it("that a harness asks for are made as it would, with identity and settings, and go only when nothing is lost", async () => {
    await here.ask("agent", "install", "claude");
    here.write(".env", "SECRET=1\n");
    here.write(".worktreeinclude", ".env\n");
    here.write(".gitignore", ".env\n.claude/worktrees/\n");
    here.repo.git("add", ".gitignore", ".worktreeinclude");
    here.repo.git("commit", "--quiet", "--message", "include");
    const { hooks } = JSON.parse(here.read(LOCAL)) as {
      hooks: Record<string, { hooks: { command: string }[] }[]>;
    };
    const call = (event: string, input: object) => {
      const [
        {
          hooks: [handler],
        },
      ] = hooks[event] as [{ hooks: [{ command: string }] }];
      const { stdout, stderr, status } = require("node:child_process").spawnSync(
        "sh",
        ["-c", handler.command],
        {
          cwd: here.repo.root,
          input: JSON.stringify({ hook_event_name: event, session_id: "s", cwd: here.repo.root, ...input }),
          encoding: "utf8",
          env: { ...process.env, HOME: here.home },
        },
      );
      return { stdout, stderr, status };
    };
    const made = call("WorktreeCreate", { name: "log in/../x" });
    const where = here.path(".claude/worktrees/log-in-.-x");
    expect(made).toEqual({ stdout: `${where}\n`, stderr: "", status: 0 });
    expect(call("WorktreeCreate", { name: "log in/../x" }).stdout).toBe(`${where}\n`);
    expect(fs.readFileSync(path.join(where, ".env"), "utf8")).toBe("SECRET=1\n");
    expect(fs.readFileSync(path.join(where, LOCAL), "utf8")).toBe(here.read(LOCAL));
    const ids = (await here.ask("worktree", "list")).data.worktrees.map(({ root }) => root);
    expect(ids).toEqual([here.repo.root, where]);

    fs.writeFileSync(path.join(where, "work.txt"), "not committed\n");
    const kept = call("WorktreeRemove", { worktree_path: where });
    // Anything but 0 tells Claude Code that it is still there; it shows the first line.
    expect([kept.status, kept.stdout]).toEqual([9, ""]);
    expect(kept.stderr.split("\n")[0]).toContain("the worktree stays: it has changes that are not committed");
    expect(fs.existsSync(path.join(where, "work.txt"))).toBe(true);
    fs.rmSync(path.join(where, "work.txt"));
    const git = (...args: string[]) => here.repo.git("-C", where, ...args);
    git("checkout", "--quiet", "--detach");
    git("commit", "--quiet", "--allow-empty", "--message", "nowhere else");
    const lone = call("WorktreeRemove", { worktree_path: where });
    expect([lone.status, lone.stderr]).toEqual([
      9,
      expect.stringContaining("1 commit that no branch leads to"),
    ]);
    expect(fs.existsSync(where)).toBe(true);
    git("branch", "found", "HEAD");
    git("commit", "--quiet", "--amend", "--allow-empty", "--message", "as amended");
    git("branch", "--force", "found", "HEAD");
    git("checkout", "--quiet", "worktree-log-in-.-x");
    expect(call("WorktreeRemove", { worktree_path: where })).toEqual({ stdout: "", stderr: "", status: 0 });
    expect(fs.existsSync(where)).toBe(false);
    expect(here.repo.git("branch", "--list", "worktree-*")).toBe("");
    const records = fs.readdirSync(path.join(here.repo.control, "agents"));
    expect(records, "that of the main worktree").toHaveLength(1);

    for (const bad of [{ name: "" }, { name: "…/.." }, { name: 7 }])
      expect(call("WorktreeCreate", bad).status).toBe(64);
    expect(call("WorktreeRemove", { worktree_path: "relative" }).status).toBe(64);
    const main = call("WorktreeRemove", { worktree_path: here.repo.root });
    expect([main.status, main.stderr]).toEqual([9, expect.stringContaining("main worktree")]);
  });
});

it("doctor misses what was installed and is gone, outdated or broken", async () => {
  const findings = async () => {
    const { data } = await here.ask("doctor");
    const all = data["findings"] as { check: string; level: string; message: string }[];
    return all
      .filter(({ check }) => check === "harnesses")
      .map(({ level, message }) => `${level} ${message}`);
  };
  expect(await findings()).toEqual(["ok none were told to ask before they write"]);
  await here.ask("agent", "install", "claude", "cursor");
  expect(await findings()).toEqual(["ok asking: claude, cursor"]);
  const text = here.read(LOCAL);
  here.write(LOCAL, "{}");
  here.write(".cursor/hooks.json", "{");
  expect(await findings()).toEqual([
    `warning ${LOCAL} no longer has claude ask before it writes`,
    expect.stringMatching(/^warning .cursor\/hooks.json cannot be read: it is no JSON/),
  ]);
  fs.rmSync(here.path(".cursor/hooks.json"));
  here.write(LOCAL, text.replaceAll(PROGRAM, "/opt/old/bin/cotenant"));
  expect((await findings())[0]).toContain("starts a program that is gone: /opt/old/bin/cotenant");
  here.write(LOCAL, text.replace('"timeout": 200', '"timeout": 60'));
  expect((await findings())[0]).toContain("entries of another version");
});

it("many installations at once are one", async () => {
  const before = here.picture();
  const all = await Promise.all(
    Array.from({ length: 4 }, () => run([PROGRAM, "agent", "install", "--all"], { cwd: here.repo.root })),
  );
  expect(all.map(({ status, stderr }) => [status, stderr])).toEqual(all.map(() => [0, ""]));
  await here.ask("agent", "uninstall", "--all");
  const after = here.picture();
  expect(Object.keys(after).filter((name) => !(name in before))).toEqual([]);
});

it("init does it all at once, and deinit undoes it", async () => {
  const before = here.picture();
  const { data } = await here.ask("init", "--agents", "claude,codex", "--hooks");
  expect(data["agents"]).toMatchObject({ changed: true });
  for (const harness of ["claude", "codex"]) expect(here.read(FILES[harness]![0])).toContain("guard check");
  expect((await here.ask("init", "--agents", "claude,codex")).data["agents"]).toMatchObject({
    changed: false,
  });
  const exclude = here.read(".git/info/exclude");
  const other = here.repo.addWorktree("other");
  await here.askIn(other.root, "agent", "install", "claude", "codex");
  const gone = await here.ask("deinit");
  expect(gone.data["agents"]).toHaveLength(4);
  expect([exclude, here.read(".git/info/exclude")]).toEqual([
    expect.stringContaining("/.codex/hooks.json"),
    expect.not.stringContaining(".codex"),
  ]);
  here.repo.git("worktree", "remove", "--force", other.root);
  const after = here.picture();
  expect(Object.keys(after).filter((name) => !(name in before))).toEqual([]);
});
