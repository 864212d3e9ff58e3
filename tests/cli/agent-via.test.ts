import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { HARNESS_NAMES } from "../../src/identity/harness";
import { hookFile, looksAfterDaemon, recordOf } from "../support/daemon";
import { callsOf } from "../support/hook-harness";
import { oneIn } from "../support/one-in";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { treePicture } from "../support/tree-picture";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(async () => {
  repo = TestRepo.make();
  repo.write("a.txt");
  await repo.prepare("human:me", "init");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  looksAfterDaemon(repo);
});

const ask = (...args: string[]) => repo.ask("human:me", ...args);
const ok = async (...args: string[]) => {
  const ran = await ask(...args);
  expect(ran.status, String(ran)).toBe(0);
  return ran.data;
};
const states = async () => {
  const { harnesses } = (await ok("agent", "list")) as unknown as {
    harnesses: { harness: string; files: { state: string; via: string }[] }[];
  };
  return Object.fromEntries(
    harnesses.flatMap(({ harness, files }) => files.map(({ state, via }) => [harness, `${state} ${via}`])),
  );
};
const picture = () => ({
  ...treePicture(repo.root),
  exclude: fs.readFileSync(path.join(repo.root, ".git/info/exclude"), "utf8"),
});
const LOCAL = ".claude/settings.local.json";
const mode = (file: string) => fs.statSync(path.join(repo.root, file)).mode & 0o777;

it("whoever installs is told to start the agent's session anew: harnesses read their hooks when they start", async () => {
  const { stdout } = await repo.run("human:me", "agent", "install", "claude");
  expect(stdout).toMatch(/next: start the agent's session anew, then run: cotenant agent doctor\n$/);
  expect((await repo.run("human:me", "agent", "install", "claude")).stdout).not.toContain("next:");
});

describe("hooks that ask the daemon", () => {
  it("are installed for every harness, go out to the byte, and change into the others and back", async () => {
    const before = picture();
    await ok("agent", "install", "--all", "--via", "daemon");
    const asking = picture();
    const all = (via: string) => Object.fromEntries(HARNESS_NAMES.map((name) => [name, `installed ${via}`]));
    expect(await states()).toEqual(all("daemon"));
    expect((await ok("agent", "install", "--all", "--via", "daemon")).changed).toBe(false);
    await ok("agent", "install", "--all");
    expect(await states()).toEqual(all("program"));
    const plain = picture();
    expect(JSON.stringify(plain)).not.toContain("cotenant_hook");
    expect(JSON.stringify(plain)).not.toContain("--via");
    await ok("agent", "install", "--all", "--via", "daemon");
    expect(picture()).toEqual(asking);
    await ok("agent", "uninstall", "--all");
    expect(picture()).toEqual(before);
    expect(await states()).toEqual({});
  });

  it("stand beside somebody's own, which stay to the byte", async () => {
    const own =
      '{\r\n\t// mine\r\n\t"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}],},\r\n}';
    repo.write(LOCAL, own);
    for (const via of ["daemon", "http", "daemon"]) await ok("agent", "install", "claude", "--via", via);
    expect(callsOf(repo, "claude").length).toBeGreaterThan(5);
    await ok("agent", "uninstall", "claude");
    expect(fs.readFileSync(path.join(repo.root, LOCAL), "utf8")).toBe(own);
  });

  it("run the same program with the same words as without it, where nobody answers", async () => {
    await ok("agent", "install", "codex");
    const plain = callsOf(repo, "codex").map(({ command }) => command);
    await ok("agent", "install", "codex", "--via", "daemon");
    const asking = callsOf(repo, "codex").map(({ command }) => command);
    expect(asking).toHaveLength(plain.length);
    for (const [i, line] of asking.entries()) {
      const alone = line
        .replace(
          /^cotenant_hook='[^']+'; cotenant_program\(\) \{ (.*); \}; \[ -f \S+ \] && command \. \S+; cotenant_program$/,
          "$1",
        )
        .replace(/ --via \S+ "\$@"/g, "");
      expect(alone).toBe(plain[i]);
    }
  });

  it("are in a new worktree as in the one it is made from", async () => {
    await ok("agent", "install", "claude", "gemini", "--via", "daemon");
    const { worktree } = await ok("worktree", "create", "work/beside");
    const made = TestRepo.of(worktree.root);
    for (const harness of ["claude", "gemini"] as const)
      expect(
        callsOf(made, harness).filter(({ command }) =>
          command.includes(`--via ${hookFile(repo, "sh").slice(0, -3)}`),
        ),
      ).not.toEqual([]);
  });

  it.each([
    [["--user"], /--via daemon is for one worktree/],
    [["--shared"], /--via daemon is for one worktree/],
  ])("are of this worktree: not with %s", async (flags, why) => {
    const { error } = await ask("agent", "install", "claude", "--via", "daemon", ...flags);
    expect(error).toMatchObject({ code: "E_USAGE", message: expect.stringMatching(why) });
  });

  it("run nothing that lies in the repository, where an agent's sandbox may let it write", async () => {
    await ok("agent", "install", "--all", "--via", "daemon");
    const lines = HARNESS_NAMES.flatMap((harness) => callsOf(repo, harness)).map(({ command }) => command);
    expect(lines.length).toBeGreaterThan(30);
    for (const line of lines) expect(line).not.toContain(repo.root);
    const started = await repo.start("agent:x", ["daemon", "start"]).done;
    expect(started.status, String(started)).toBe(0);
    const left = fs.readdirSync(path.join(repo.control, "daemon"));
    expect(left.map((name) => name.replace(/^\d+/, "")).sort()).toEqual([".json", ".lock", ".log"]);
    expect(fs.statSync(path.dirname(hookFile(repo, "sh"))).mode & 0o777).toBe(0o700);
  });

  it("are refused where others may write what they run", async () => {
    const home = scratch();
    const folder = path.join(home, ".local/share/cotenant/daemon");
    fs.mkdirSync(folder, { recursive: true });
    fs.chmodSync(folder, 0o777);
    const words = ["agent", "install", "claude", "--via", "daemon", "--json"];
    const refused = await repo.start("human:me", words, { env: { HOME: home } }).done;
    expect(refused.error).toMatchObject({ code: "E_PERMISSION", hint: `run: chmod 700 ${folder}` });
    expect(fs.existsSync(path.join(repo.root, LOCAL))).toBe(false);
    // And what a daemon would leave is not left there.
    const started = await repo.start("agent:x", ["daemon", "start"], { env: { HOME: home } }).done;
    expect(started.status, String(started)).toBe(0);
    expect(fs.readdirSync(folder)).toEqual([]);
  });

  it("are outdated once the repository was moved: its daemon is another one", async () => {
    await ok("agent", "install", "claude", "--via", "daemon");
    const moved = `${repo.root}-moved`;
    fs.renameSync(repo.root, moved);
    const ran = await TestRepo.of(moved).ask("human:me", "agent", "list", "claude");
    expect(JSON.stringify(ran.data)).toContain('"state":"outdated"');
    fs.renameSync(moved, repo.root);
  });

  it("are not mixed with those that are committed", async () => {
    await ok("agent", "install", "gemini", "--shared");
    const { error } = await ask("agent", "install", "gemini", "--via", "daemon");
    expect(error).toMatchObject({ code: "E_SETTINGS", message: expect.stringContaining("for everybody") });
  });

  it("are shown without being written", async () => {
    const before = picture();
    const { agents } = (await ok("agent", "install", "cursor", "--via", "daemon", "--print")) as unknown as {
      agents: { via: string; content: string }[];
    };
    expect(agents).toMatchObject([{ via: "daemon", content: expect.stringContaining("cotenant_hook=") }]);
    expect(picture()).toEqual(before);
  });

  it("are named by what would install them again when something is wrong with them", async () => {
    await ok("agent", "install", "claude", "--via", "daemon");
    const file = path.join(repo.root, LOCAL);
    fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace('"timeout": 200', '"timeout": 100'));
    expect(await states()).toEqual({ claude: "outdated daemon" });
    const { stdout } = await repo.run("human:me", "doctor");
    expect(stdout).toContain("cotenant agent install claude --via daemon");
  });
});

describe("a harness that asks over HTTP", () => {
  it("has a token in settings that nobody else can read; modes and bytes come back", async () => {
    repo.write(LOCAL, "{}\n");
    fs.chmodSync(path.join(repo.root, LOCAL), 0o664);
    const before = picture();
    await ok("agent", "install", "claude", "--via", "http");
    expect(await states()).toEqual({ claude: "installed http" });
    expect(mode(LOCAL)).toBe(0o600);
    for (const name of fs.readdirSync(path.join(repo.control, "agents")))
      expect(mode(`.git/cotenant/agents/${name}`)).toBe(0o600);
    const door = hookFile(repo, "http");
    expect(fs.statSync(door).mode & 0o777).toBe(0o600);
    const [call] = callsOf(repo, "claude");
    const { port, token } = JSON.parse(fs.readFileSync(door, "utf8"));
    expect(call).toMatchObject({
      event: "PreToolUse",
      http: { url: `http://127.0.0.1:${port}/guard/claude/PreToolUse` },
    });
    expect(call!.http!.headers).toEqual({ Authorization: `Bearer ${token}` });
    const [entry] = JSON.parse(fs.readFileSync(path.join(repo.root, LOCAL), "utf8")).hooks.PreToolUse;
    expect(entry.hooks).toMatchObject([{ type: "http", onFailure: "block", timeout: 200 }]);
    // All else comes by hooks that show which process the session is of.
    expect(callsOf(repo, "claude").filter(({ http }) => http !== null)).toHaveLength(1);
    expect((await ok("agent", "install", "claude", "--via", "http")).changed).toBe(false);
    await ok("agent", "uninstall", "claude");
    expect(picture()).toEqual(before);
    expect(mode(LOCAL)).toBe(0o664);
    expect(fs.existsSync(door)).toBe(false);
  });

  it("asks through hooks again when it is installed so, and nobody listens any more", async () => {
    await ok("agent", "install", "claude", "--via", "http");
    const port = async () => {
      const ran = await repo.start("agent:x", ["daemon", "status", "--json"]).done;
      return (ran.data["daemon"] as { guard: { http_port: number | null } }).guard.http_port;
    };
    expect(await port()).toBeGreaterThan(1023);
    await ok("agent", "install", "claude", "--via", "daemon");
    expect(await port()).toBeNull();
    expect(JSON.stringify(picture())).not.toContain("Bearer");
  });

  it.each([
    ["copilot", "lets a write through when its HTTP hook gets no answer"],
    ["codex", "has no HTTP hooks"],
    ["opencode", "has no HTTP hooks"],
  ])("is not %s", async (harness, why) => {
    const { error } = await ask("agent", "install", "claude", harness, "--via", "http");
    expect(error).toMatchObject({
      code: "E_USAGE",
      message: expect.stringMatching(new RegExp(`${why}.*; nothing was written$`)),
      hint: `run 'cotenant agent install claude --via http', then 'cotenant agent install ${harness} --via daemon'`,
    });
    expect(fs.existsSync(path.join(repo.root, LOCAL))).toBe(false);
    expect(recordOf(repo)).toBeNull();
  });

  it("is told what there is where it is told nonsense", async () => {
    const { error } = await ask("agent", "install", "claude", "--via", "pigeon");
    expect(error).toMatchObject({
      code: "E_USAGE",
      message: '--via has no "pigeon"',
      hint: "use --via program, --via daemon or --via http",
    });
  });
});
