import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as net from "node:net";
import * as path from "node:path";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { SEPARATOR } from "../../src/daemon/guard-files";
import { freezeDaemon, guardCounts, hookFile, isGone, recordOf, startDaemon } from "../support/daemon";
import { reasonOf } from "../support/guard";
import { type Hooked, HookHarness, type HookOptions, lineFor, repoWithHooks } from "../support/hook-harness";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import type { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

let repo: TestRepo;
let ada: HookHarness;
let bob: HookHarness;
beforeEach(async () => {
  repo = await repoWithHooks("daemon", "[guard]\nretry_secs = 600\n");
  [ada, bob] = [new HookHarness(repo), new HookHarness(repo)];
});

const ADA = "aaaaaaaa-1";
const BOB = "bbbbbbbb-2";
const SILENT: Hooked = { status: 0, stdout: "", stderr: "" };
const QUIET = { COTENANT_DAEMON_AUTOSTART: "false" };

function write(session: string, file: string, content = "x"): string {
  const tool = { tool_name: "Write", tool_input: { file_path: path.join(repo.root, file), content } };
  return JSON.stringify({
    session_id: session,
    cwd: repo.root,
    permission_mode: "default",
    hook_event_name: "PreToolUse",
    ...tool,
  });
}

const line = (event = "PreToolUse") => lineFor(repo, "claude", event);

/** By whoever stands for that session, with the line that is installed. */
function edits(session: string, file: string, options: HookOptions = {}): Promise<Hooked> {
  const who = session === ADA ? ada : bob;
  return who.run(line(), write(session, file), { ...options, env: { ...QUIET, ...options.env } });
}

const ends = (session: string) =>
  (session === ADA ? ada : bob).run(
    line("SessionEnd"),
    JSON.stringify({ session_id: session, cwd: repo.root, hook_event_name: "SessionEnd" }),
    { env: QUIET },
  );

const holders = () =>
  repo
    .log()
    .filter(({ event_type: type }) => type === "claim.acquired")
    .flatMap(({ payload }) => payload.leases.map(({ key, agent_id }) => `${key} ${agent_id}`));
const denied = (told: Hooked) => reasonOf({ ...told, status: told.status ?? -1 });

/** Ada has a.txt, through whatever answers. */
async function adaHolds(): Promise<void> {
  expect(await edits(ADA, "a.txt")).toEqual(SILENT);
}

/** What everybody is told of it who asks in vain, whoever answers. */
async function bobIsRefused(options: HookOptions = {}): Promise<void> {
  expect(denied(await edits(BOB, "a.txt", options))).toContain("a.txt is held by agent:claude-aaaaaaaa");
}

describe("hooks that ask the daemon", () => {
  it("lease what is written for the harness that runs them, and refuse what somebody else holds", async () => {
    await startDaemon(repo);
    await adaHolds();
    await bobIsRefused();
    const [acquired] = repo.log().filter(({ event_type: type }) => type === "claim.acquired");
    expect(acquired!.payload.leases[0]).toMatchObject({ bind: "process", holder: { pid: ada.pid } });
    expect(await guardCounts(repo)).toMatchObject({ events: 2, declined: 0, by_harness: { claude: 2 } });
    // Free with its process, as always.
    ada.kill();
    await until("it is free", async () => (await edits(BOB, "a.txt")).stdout === "");
  });

  it("are answered quickly from the second time on, and the end of the session frees all", async () => {
    await startDaemon(repo);
    const long = new Date(Date.now() - 60_000);
    fs.utimesSync(path.join(repo.root, ".cotenant/config.toml"), long, long);
    for (let i = 0; i < 4; i++) await adaHolds();
    expect(await guardCounts(repo)).toMatchObject({ events: 4, quick: 3 });
    expect(await ends(ADA)).toEqual(SILENT);
    expect(await edits(BOB, "a.txt")).toEqual(SILENT);
  });

  it.each([
    ["dash", ["dash"]],
    ["Bash", ["bash"]],
    ["Bash as sh", ["bash", "--posix"]],
  ])("in %s", async (_, shell) => {
    await startDaemon(repo);
    expect(await edits(ADA, "a.txt", { shell })).toEqual(SILENT);
    await bobIsRefused({ shell });
    expect(await guardCounts(repo)).toMatchObject({ events: 2, declined: 0 });
  });

  it("are answered by the variables that they were run with", async () => {
    await startDaemon(repo);
    repo.write(".cotenant/config.toml", "# nothing\n");
    repo.git("commit", "--quiet", "--all", "--message", "second");
    const odd = `it's "odd"\n$(touch ${repo.root}/made) \`x\` \\ ünï`;
    const ids = { COTENANT_AGENT_ID: "agent:ada", COTENANT_SESSION_ID: "s1" };
    expect(await edits(ADA, "a.txt", { env: { ...ids, ODD: odd } })).toEqual(SILENT);
    const told = denied(await edits(BOB, "a.txt", { env: { ODD: odd, COTENANT_GUARD_RETRY_SECS: "3333" } }));
    expect(told).toMatch(/held by agent:ada\b[\s\S]*3333 s after/);
    expect(fs.existsSync(path.join(repo.root, "made"))).toBe(false);
    expect(await guardCounts(repo)).toMatchObject({ events: 2, declined: 0 });
  });

  it("say where they stand, whatever the directory is called", async () => {
    await startDaemon(repo);
    for (const name of [" two words ", "ünï", "it's", "a[b]"]) {
      fs.mkdirSync(path.join(repo.root, name));
      // Without a directory of its own in the event, the hook's counts.
      const event = JSON.stringify({
        session_id: ADA,
        hook_event_name: "PreToolUse",
        tool_name: "Write",
        tool_input: { file_path: "f.txt", content: "" },
      });
      const options = { cwd: path.join(repo.root, name), env: QUIET };
      expect(await ada.run(line(), event, options)).toEqual(SILENT);
      expect(holders()).toContain(`file:${name}/f.txt agent:claude-aaaaaaaa`);
    }
    expect(await guardCounts(repo)).toMatchObject({ events: 4, declined: 0 });
  });

  it("leave what is too large, and a directory with a line end in its name, to the program", async () => {
    await startDaemon(repo);
    const large = write(ADA, "a.txt", "x".repeat(9 << 20));
    expect(await ada.run(line(), large, { env: QUIET })).toEqual(SILENT);
    const odd = path.join(repo.root, "line\nend");
    fs.mkdirSync(odd);
    expect(await edits(ADA, "b.txt", { cwd: odd })).toEqual(SILENT);
    expect(holders()).toEqual(["file:a.txt agent:claude-aaaaaaaa", "file:b.txt agent:claude-aaaaaaaa"]);
    expect(await guardCounts(repo)).toMatchObject({ events: 0 });
    // Up to there it is the daemon's.
    expect(await ada.run(line(), write(ADA, "c.txt", "é".repeat(1 << 20)), { env: QUIET })).toEqual(SILENT);
    expect(await guardCounts(repo)).toMatchObject({ events: 1 });
  });

  it("wait for nothing where a pipe is in the place of a repository's file, and keep nobody else", async () => {
    await startDaemon(repo);
    fs.mkdirSync(path.join(repo.root, "x"));
    execFileSync("mkfifo", [path.join(repo.root, "x/.git")]);
    const began = performance.now();
    await edits(ADA, "x/f.txt");
    await edits(ADA, "x/f.txt", { env: { COTENANT_NO_DAEMON: "1" } });
    await adaHolds();
    expect(performance.now() - began).toBeLessThan(10_000);
    expect((await guardCounts(repo))["events"]).toBe(2);
  });

  it("write nothing to where a forged pass leads", async () => {
    await startDaemon(repo);
    const long = new Date(Date.now() - 60_000);
    fs.utimesSync(path.join(repo.root, ".cotenant/config.toml"), long, long);
    await adaHolds();
    await adaHolds();
    const victim = path.join(repo.root, "victim");
    fs.writeFileSync(victim, "export PATH=/usr/bin:/bin\n");
    const folder = path.join(repo.control, "guard/passes");
    const [name] = fs.readdirSync(folder);
    const pass = JSON.parse(fs.readFileSync(path.join(folder, name!), "utf8")) as { trace: { file: string } };
    const traces = path.dirname(pass.trace.file);
    fs.symlinkSync(victim, path.join(traces, "0".repeat(32)));
    fs.symlinkSync(repo.root, path.join(repo.control, "guard/there"));
    const forged = [
      victim,
      path.join(traces, "0".repeat(32)),
      path.join(repo.control, "guard/there/victim"),
      `${traces}/../../../../victim`,
    ];
    for (const file of forged) {
      fs.writeFileSync(path.join(folder, name!), JSON.stringify({ ...pass, trace: { file, mode: 0o777 } }));
      for (const env of [{}, { COTENANT_NO_DAEMON: "1" }] as const) {
        // Otherwise answered all the same.
        expect(await edits(ADA, "a.txt", { env })).toEqual(SILENT);
        expect(fs.readFileSync(victim, "utf8"), file).toBe("export PATH=/usr/bin:/bin\n");
      }
    }
  });

  it("have nothing secret among their arguments", async () => {
    const { token } = await startDaemon(repo);
    const folder = scratch();
    const seen = path.join(folder, "seen");
    const curl = path.join(folder, "curl");
    const real = execFileSync("sh", ["-c", "command -v curl"], { encoding: "utf8" }).trim();
    fs.writeFileSync(curl, `#!/bin/sh\nprintf '%s\\n' "$@" >> ${seen}\nexec ${real} "$@"\n`, { mode: 0o755 });
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    expect(await edits(ADA, "a.txt", { env })).toEqual(SILENT);
    expect(fs.readFileSync(seen, "utf8")).toContain("Cotenant-Process");
    expect(fs.readFileSync(seen, "utf8")).not.toContain(token);
    expect(fs.readFileSync(path.join(repo.root, ".claude/settings.local.json"), "utf8")).not.toContain(token);
    for (const ending of ["sh", "curl", "json"] as const)
      expect(fs.statSync(hookFile(repo, ending)).mode & 0o777).toBe(0o600);
    expect(fs.statSync(path.dirname(hookFile(repo, "sh"))).mode & 0o777).toBe(0o700);
  });
});

describe("without an answer of the daemon's the program answers", () => {
  it("where there is none, and the first hook starts one for those who come next", async () => {
    expect(await ada.run(line(), write(ADA, "a.txt"))).toEqual(SILENT);
    await until("it is there", () => fs.existsSync(hookFile(repo, "sh")));
    await bobIsRefused();
    expect(await guardCounts(repo)).toMatchObject({ events: 1 });
  });

  it("and none is started by a hook that is told not to, nor again and again", async () => {
    await adaHolds();
    expect(fs.existsSync(hookFile(repo, "tried"))).toBe(false);
    fs.mkdirSync(path.dirname(hookFile(repo, "tried")), { recursive: true, mode: 0o700 });
    fs.writeFileSync(hookFile(repo, "tried"), "");
    expect(await bob.run(line(), write(BOB, "b.txt"))).toEqual(SILENT);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(recordOf(repo)).toBeNull();
  });

  it("where it was killed: what it has left misleads nobody", async () => {
    const record = await startDaemon(repo);
    await adaHolds();
    process.kill(record.pid, "SIGKILL");
    await isGone(record);
    expect(fs.existsSync(hookFile(repo, "sh"))).toBe(true);
    await bobIsRefused();
    expect((await edits(ADA, "b.txt")).stdout).toContain("agent:claude-bbbbbbbb waits for a.txt");
    expect(holders()).toEqual(["file:a.txt agent:claude-aaaaaaaa", "file:b.txt agent:claude-aaaaaaaa"]);
  });

  it("where it was told to end: it takes with it what it has left", async () => {
    await startDaemon(repo);
    await adaHolds();
    await repo.start("agent:x", ["daemon", "stop"]).done;
    for (const ending of ["sh", "curl", "json"] as const)
      expect(fs.existsSync(hookFile(repo, ending))).toBe(false);
    await bobIsRefused();
  });

  it("where it is stopped, and what it finds when it goes on is not done again", async () => {
    const record = await startDaemon(repo);
    await freezeDaemon(repo, record);
    await adaHolds();
    await bobIsRefused();
    const before = repo.logText();
    process.kill(record.pid, "SIGCONT");
    await until("it answers", async () => (await guardCounts(repo))["events"] === 0);
    expect(repo.logText()).toBe(before);
  });

  it("where there is no curl", async () => {
    await startDaemon(repo);
    const folder = scratch();
    for (const name of ["sh", "cat", "git", "node"]) {
      const real = name === "node" ? process.execPath : which(name);
      fs.symlinkSync(real, path.join(folder, name));
    }
    const env = { PATH: folder };
    expect(await edits(ADA, "a.txt", { env })).toEqual(SILENT);
    await bobIsRefused({ env });
    expect(await guardCounts(repo)).toMatchObject({ events: 0, declined: 0 });
  });

  it("where the token is another one", async () => {
    const { token } = await startDaemon(repo);
    rewrite("curl", (text) => text.replace(token, "0".repeat(token.length)));
    await adaHolds();
    await bobIsRefused();
    expect(await guardCounts(repo)).toMatchObject({ events: 0 });
  });

  it("where the daemon is another program's, or of another build", async () => {
    await startDaemon(repo);
    const other = line().replace(/(cotenant_hook='claude PreToolUse 200 )[^']+/, "$1/opt/other/cotenant");
    expect(other).not.toBe(line());
    expect(await ada.run(other, write(ADA, "a.txt"), { env: QUIET })).toEqual(SILENT);
    await bobIsRefused();
    expect(await guardCounts(repo)).toMatchObject({ events: 1, declined: 1 });
  });

  it("where the files of the daemon are gone, or cannot be read", async () => {
    await startDaemon(repo);
    fs.rmSync(hookFile(repo, "curl"));
    await adaHolds();
    rewrite("sh", () => "this is no shell script ((\n");
    const { status, stdout } = await edits(BOB, "a.txt");
    // In some shells a script that is broken breaks its line; and then nothing is written either.
    expect(status === 2 || stdout.includes("held by agent:claude-aaaaaaaa")).toBe(true);
    fs.rmSync(hookFile(repo, "sh"));
    expect((await edits(BOB, "a.txt")).stdout).toContain("held by agent:claude-aaaaaaaa");
    expect(await guardCounts(repo)).toMatchObject({ events: 0 });
  });

  it.each<[string, readonly string[], Record<string, string>]>([
    ["dash", ["dash"], {}],
    ["Bash", ["bash"], {}],
    ["Bash as sh", ["bash", "--posix"], {}],
    ["Bash that exports everything", ["bash"], { SHELLOPTS: "allexport" }],
    ["dash with such a variable in its environment", ["dash"], { cotenant_in: "1", cotenant_out: "1" }],
  ])("also to a large event, in %s", async (_, shell, more) => {
    await startDaemon(repo);
    await adaHolds();
    const folder = scratch();
    fs.writeFileSync(path.join(folder, "curl"), "#!/bin/sh\nexit 7\n", { mode: 0o755 });
    const env = { ...QUIET, ...more, PATH: `${folder}:${process.env["PATH"]}` };
    const large = write(BOB, "a.txt", "x".repeat(300 << 10));
    expect(denied(await bob.run(line(), large, { env, shell }))).toContain("a.txt is held by");
    const without = await bob.run(line(), large, {
      env: { ...QUIET, ...more, COTENANT_NO_DAEMON: "1" },
      shell,
    });
    expect(denied(without)).toContain("a.txt is held by");
    expect(denied(await bob.run(line(), large, { env: { ...QUIET, ...more }, shell }))).toContain(
      "is held by",
    );
    expect(await guardCounts(repo)).toMatchObject({ events: 2 });
  });

  it("where a hook is told to go without it", async () => {
    await startDaemon(repo);
    await bobIsRefusedAfter({ COTENANT_NO_DAEMON: "1" });
    expect(await guardCounts(repo)).toMatchObject({ events: 0 });
  });
});

async function bobIsRefusedAfter(env: Record<string, string>): Promise<void> {
  expect(await edits(ADA, "a.txt", { env })).toEqual(SILENT);
  await bobIsRefused({ env });
}

const which = (name: string) => execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();

function rewrite(ending: "sh" | "curl", change: (text: string) => string): void {
  const file = hookFile(repo, ending);
  fs.writeFileSync(file, change(fs.readFileSync(file, "utf8")));
}

const S = SEPARATOR;
const http = (body: string, length = Buffer.byteLength(body), status = "200 OK") =>
  `HTTP/1.1 ${status}\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${body}`;

describe("an answer that is none is not taken for one", () => {
  const servers: net.Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  /** Somebody in the daemon's place who says this to everybody. */
  async function pretend(said: string | null): Promise<() => number> {
    await startDaemon(repo);
    let asked = 0;
    const socket = path.join(fs.mkdtempSync("/tmp/ct-"), "s");
    const server = net.createServer((client) => {
      asked++;
      client.on("error", () => {});
      client.on("data", () => {
        if (said === null) client.destroy();
        else client.end(said);
      });
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    rewrite("curl", (text) => text.replace(/^unix-socket = .*$/m, `unix-socket = "${socket}"`));
    return () => asked;
  }

  it.each<[string, string | null]>([
    ["nothing", null],
    ["something that is no HTTP", "hello\n"],
    ["an empty answer", http("")],
    ["an answer without its end", http(`${S}0${S}${S}${S}`)],
    ["less than it says", http(`${S}0${S}${S}${S}done`, 500)],
    ["an unknown status", http(`${S}7${S}${S}${S}done`)],
    ["a page", http("<html>all is well</html>")],
    ["a failure", http(`${S}0${S}${S}${S}done`, undefined, "503 Busy")],
    ["another place", http("", 0, "302 Found\r\nLocation: http://127.0.0.1:9/")],
    ["a status among blanks", http(`\n\n${S} 0 ${S}${S}${S}done`)],
  ])("%s", async (_, said) => {
    const asked = await pretend(said);
    // Taken for leave, the first would let Bob through.
    await adaHolds();
    await bobIsRefused();
    expect(asked()).toBe(2);
  });

  it("and one that is, is passed on as it is", async () => {
    const asked = await pretend(http(`\n\n${S}2${S}out\n${S}err é\n${S}done`));
    expect(await edits(ADA, "a.txt")).toEqual({ status: 2, stdout: "out\n", stderr: "err é\n" });
    expect(asked()).toBe(1);
  });
});
