import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { HARNESSES } from "../../src/features/guard/harness";
import { SLACK_MS } from "../../src/features/guard/shell/compare";
import { HARNESS_NAMES, type HarnessName } from "../../src/identity/harness";
import { harnessProcess, reasonOf, toldIn } from "../support/guard";
import { oneIn } from "../support/one-in";
import { PROGRAM, runHere, until } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

let repo: TestRepo;
beforeEach(async () => {
  repo = TestRepo.make();
  for (const file of ["a.txt", "b.txt"]) repo.write(file, "one\n");
  expect((await ask("init")).status).toBe(0);
  repo.git("add", ".");
  repo.git("commit", "--quiet", "--message", "first");
});

/** What people ask meanwhile. */
function ask(...args: string[]) {
  const { root: cwd } = repo;
  return runHere([...args, "--json"], {
    cwd,
    env: { COTENANT_AGENT_ID: "human:me" },
    home: process.env["HOME"]!,
  });
}

interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number | null;
}

/** As a harness runs a hook: the installed command line, and its event on standard input. */
function hook(
  args: readonly string[],
  input: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(PROGRAM, ["guard", ...args], { cwd: repo.root, env: { ...process.env, ...env } });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", reject);
    child.on("close", (status) => resolve({ stdout, stderr, status }));
    child.stdin.end(input);
  });
}

class Claude {
  readonly #session: string;
  readonly #pid: number;
  readonly #env: Readonly<Record<string, string>>;

  constructor(session: string, pid = harnessProcess().pid, env: Readonly<Record<string, string>> = {}) {
    this.#session = session;
    this.#pid = pid;
    this.#env = env;
  }

  get agentId(): string {
    return `agent:claude-${this.#session.slice(0, 8)}`;
  }

  /** With its usual patience a hook has ten seconds for its work, on however busy a machine, and none to wait for a retry. */
  write(file: string, patienceSecs = 10): Promise<Ran> {
    const tool = { tool_name: "Write", tool_input: { file_path: path.join(repo.root, file), content: "x" } };
    return this.#send(["check", "--deadline", String(patienceSecs)], "PreToolUse", tool);
  }

  shell(command: string, patienceSecs = 10): Promise<Ran> {
    const tool = { tool_name: "Bash", tool_input: { command } };
    return this.#send(["check", "--deadline", String(patienceSecs)], "PreToolUse", tool);
  }

  after(command: string): Promise<Ran> {
    const tool = { tool_name: "Bash", tool_input: { command } };
    return this.#send(["check"], "PostToolUse", tool);
  }

  stop(): Promise<Ran> {
    return this.#send(["stop"], "Stop", {});
  }

  end(...flags: string[]): Promise<Ran> {
    return this.#send(["end", ...flags], "SessionEnd", {});
  }

  #send(args: readonly string[], event: string, more: object): Promise<Ran> {
    const said = { session_id: this.#session, cwd: repo.root, hook_event_name: event, ...more };
    const words = [...args, "--harness", "claude", "--event", event, "--pid", String(this.#pid)];
    return hook(words, JSON.stringify(said), this.#env);
  }
}

/** A commit by an agent of Claude Code, as its shell tool makes one. Answers what Git and the hooks said. */
function commit(session: string, ...paths: string[]): Promise<string> {
  const env = { ...process.env, CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: session };
  return new Promise((resolve, reject) => {
    const child = spawn("git", ["commit", "--quiet", "--message", "work", ...paths], { cwd: repo.root, env });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    child.on("close", (status) => (status === 0 ? resolve(said) : reject(new Error(said))));
  });
}

const SILENT = { stdout: "", stderr: "", status: 0 };
const events = () => repo.log().map(({ event_type: type }) => type);
const ONE_SECOND = { COTENANT_GUARD_RETRY_SECS: "1" };

describe("S34: two agents write one file", () => {
  it("one writes", async () => {
    const agents = Array.from({ length: 6 }, (_, i) => new Claude(`0000000${i}-x`));
    const ran = await Promise.all(agents.map((agent) => agent.write("a.txt")));
    expect(ran.filter(({ stdout }) => stdout === "")).toHaveLength(1);
    const [winner] = repo.logOf("file:a.txt");
    for (const refused of ran.filter(({ stdout }) => stdout !== ""))
      expect(reasonOf({ ...refused, status: 0 })).toContain(winner!.payload.leases[0]!.agent_id);
  });
});

describe("S35: denied", () => {
  it("a heartbeat event, retry_at exactly 180 s later, earlier attempts refused without counting", async () => {
    await new Claude("aaaaaaaa").write("a.txt");
    const bob = new Claude("bbbbbbbb");
    await bob.write("a.txt");
    const line = repo.log().find(({ event_type: type }) => type === "contention.heartbeat")!;
    const said = line.payload as unknown as { denied_at: string; retry_at: string };
    expect(Date.parse(said.retry_at) - Date.parse(said.denied_at)).toBe(180_000);
    for (let i = 0; i < 3; i++)
      expect(reasonOf({ ...(await bob.write("a.txt")), status: 0 })).toContain(`retry_at: ${said.retry_at}`);
    expect(events().filter((type) => type.startsWith("contention."))).toEqual(["contention.heartbeat"]);
    const { data } = await ask("guard", "status");
    expect(data["contentions"]).toEqual([
      expect.objectContaining({ path: "a.txt", state: "waiting", retry_at: said.retry_at }),
    ]);
  });

  it("a script is told the same instant, at once and when it asks too early, and where to see who waits", async () => {
    await new Claude("aaaaaaaa").write("a.txt");
    const check = (file: string) =>
      hook(["check", file, "--pid", String(process.pid)], "", { COTENANT_AGENT_ID: "agent:script" });
    const [denied, early] = [await check("a.txt"), await check("a.txt")];
    const line = repo.log().find(({ event_type: type }) => type === "contention.heartbeat")!;
    const { retry_at: at } = line.payload as unknown as { retry_at: string };
    expect(denied.stderr).toContain(`Nothing was written. retry_at: ${at} (180 s after the denial).`);
    expect(early.stderr).toContain(`too early to try again. retry_at: ${at} (in `);
    for (const { status, stderr } of [denied, early]) {
      expect(status).toBe(1);
      expect(stderr).toContain(
        "next: wait for it with --wait, or take other work; 'cotenant guard status' shows who holds it and who waits",
      );
    }
    expect((await check("b.txt")).stdout).toBe(`1 file held while process ${process.pid} runs\n`);
  });
});

it("a promise of the guard's that fails while nobody waits for it is a failure of the check, and answered as one", async () => {
  repo.write("stray.cjs", 'setImmediate(() => Promise.reject(new Error("left alone")));\n');
  const stray = { NODE_OPTIONS: `--require=${path.join(repo.root, "stray.cjs")}` };
  await new Claude("aaaaaaaa").write("a.txt");
  // It comes while the hook waits for the file.
  const env = { ...stray, COTENANT_GUARD_RETRY_SECS: "20" };
  const refused = await new Claude("bbbbbbbb", undefined, env).write("a.txt", 60);
  expect(refused).toMatchObject({ stderr: "", status: 0 });
  expect(reasonOf({ ...refused, status: 0 })).toContain("agent:claude-aaaaaaaa");
  expect(fs.readFileSync(path.join(repo.control, "guard/failures.jsonl"), "utf8")).toContain("left alone");
});

describe("S36: at the retry", () => {
  it("freed by then and the content unchanged → the write goes through, after a pause inside the hook", async () => {
    const ada = new Claude("aaaaaaaa");
    await ada.write("a.txt");
    const waiting = new Claude("bbbbbbbb", undefined, { COTENANT_GUARD_RETRY_SECS: "8" }).write("a.txt", 60);
    await until("it is denied", () => events().includes("contention.heartbeat"));
    await ada.end();
    const { status, stdout } = await waiting;
    expect([status, toldIn({ status: 0, stdout, stderr: "" })]).toEqual([
      0,
      expect.stringMatching(
        /^cotenant: waited \d+ s for a\.txt, which agent:claude-aaaaaaaa held; it is yours now\.$/,
      ),
    ]);
    expect(events().at(-1)).toBe("contention.resolved");
  });

  it("a shell command waits as long, and is not let through meanwhile", async () => {
    await new Claude("aaaaaaaa").write("a.txt");
    // Longer than a check may work: the small program that met the command first has handed it over, and must not ring.
    const bob = new Claude("bbbbbbbb", undefined, { COTENANT_GUARD_RETRY_SECS: "15" });
    const refused = await bob.shell("echo x > a.txt", 60);
    expect(reasonOf({ ...refused, status: 0 })).toContain("still held by agent:claude-aaaaaaaa at the retry");
    expect(fs.existsSync(path.join(repo.control, "guard/failures.jsonl"))).toBe(false);
  });

  it("changed meanwhile → refused once, read it again", async () => {
    const ada = new Claude("aaaaaaaa");
    await ada.write("a.txt");
    const bob = new Claude("bbbbbbbb", undefined, ONE_SECOND);
    await bob.write("a.txt");
    repo.write("a.txt", "two\n");
    await ada.end();
    await new Promise((resolve) => setTimeout(resolve, 900));
    const refused = await until("the retry is due", async () => {
      const ran = await bob.write("a.txt");
      return !ran.stdout.includes("too early") && ran;
    });
    expect(reasonOf({ ...refused, status: 0 })).toContain("read it again");
    expect(await bob.write("a.txt")).toEqual(SILENT);
  });

  it("still held → exit 11 and the six-field report", async () => {
    await new Claude("aaaaaaaa").write("a.txt");
    const attended = { ...ONE_SECOND, CLAUDE_CODE_SESSION_ATTENDED: "1" };
    const bob = new Claude("bbbbbbbb", undefined, attended);
    const stopped = await bob.write("a.txt", 60);
    expect(JSON.parse(stopped.stdout)).toMatchObject({ continue: false });
    const ran = await ask("guard", "retry", "a.txt");
    expect([ran.status, ran.error.code]).toEqual([11, "E_BLOCKED"]);
    const report = {
      blocked_file: "a.txt",
      owner: "agent:claude-aaaaaaaa",
      lock_age_secs: expect.any(Number),
      last_heartbeat_at: expect.any(String),
      retry_interval_secs: 1,
      state: "waiting_for_instruction",
    };
    expect(ran.error.data["reports"]).toEqual([report]);
    expect((await ask("guard", "report")).data["reports"]).toEqual([report]);
    const found = (await ask("status")).data["needs_a_person"];
    expect(found).toContainEqual(expect.objectContaining({ code: "agent_blocked" }));
    expect(events().filter((type) => type.startsWith("contention."))).toEqual([
      "contention.heartbeat",
      "contention.retry",
      "contention.blocked",
    ]);
    // For whoever is no harness, the check itself says so.
    const plain = { ...ONE_SECOND, COTENANT_AGENT_ID: "agent:script" };
    const waited = await hook(
      ["check", "a.txt", "--wait", "--json", "--pid", String(process.pid)],
      "",
      plain,
    );
    expect(waited.status).toBe(11);
    // And so does whoever asks again, to be read by a person.
    const line =
      /^ {2}a\.txt: held by agent:claude-aaaaaaaa for \S+, last heard of 2\S+Z; tried again after 1 s$/m;
    const pid = ["--pid", String(process.pid)];
    for (const args of [["check", "a.txt", ...pid], ["retry"]]) {
      const said = await hook(args, "", plain);
      expect([said.status, said.stderr]).toEqual([11, expect.stringMatching(line)]);
      expect(said.stderr).toContain("E_BLOCKED");
    }
  });
});

describe("S37: the owner is killed with SIGKILL", () => {
  it("the next contender gets the file at once", async () => {
    const owner = harnessProcess();
    await new Claude("aaaaaaaa", owner.pid).write("a.txt");
    await owner.kill();
    expect(await new Claude("bbbbbbbb").write("a.txt")).toEqual(SILENT);
    expect(repo.logOf("file:a.txt").at(-1)!.payload.ended).toEqual([
      expect.objectContaining({ agent_id: "agent:claude-aaaaaaaa", cause: "dead" }),
    ]);
  });
});

describe("S38: a pid that was reused by another process", () => {
  const LAST_PID = "/proc/sys/kernel/ns_last_pid";
  const canChoose = process.platform === "linux" && process.getuid?.() === 0 && isWritable(LAST_PID);

  // Only root on Linux can say which pid comes next; without that the reuse cannot be brought about.
  it.runIf(canChoose)("does not keep a dead owner's lease", async () => {
    const owner = harnessProcess();
    await new Claude("aaaaaaaa", owner.pid).write("a.txt");
    await owner.kill();
    await until("the pid is somebody else's", async () => {
      fs.writeFileSync(LAST_PID, String(owner.pid - 1));
      const other = harnessProcess();
      if (other.pid === owner.pid) return true;
      await other.kill();
      return false;
    });
    expect(await new Claude("bbbbbbbb").write("a.txt")).toEqual(SILENT);
  });

  function isWritable(file: string): boolean {
    try {
      fs.accessSync(file, fs.constants.W_OK);
      return true;
    } catch {
      return false;
    }
  }
});

describe("S39: what releases a file, and what does not", () => {
  const free = async () => (await ask("guard", "status")).data.leases.length === 0;

  it("no clock does: the lease has no expiry", async () => {
    await new Claude("aaaaaaaa").write("a.txt");
    const { leases } = (await ask("guard", "status")).data;
    expect(leases).toEqual([
      expect.objectContaining({ bind: "process", reach: "worktree", expires_at: null, indefinite: false }),
    ]);
  });

  it("a commit does, through the hook", async () => {
    expect((await ask("hooks", "install")).status).toBe(0);
    const ada = new Claude("aaaaaaaa");
    await ada.write("a.txt");
    await ada.write("b.txt");
    repo.write("a.txt", "two\n");
    repo.write("b.txt", "two\n");
    await commit("aaaaaaaa", "a.txt");
    const { leases } = (await ask("guard", "status")).data;
    expect(leases.map(({ key }) => key)).toEqual(["file:b.txt"]);
    expect(await new Claude("bbbbbbbb").write("a.txt")).toEqual(SILENT);
  });

  it("a stop does, a little later", async () => {
    const env = { COTENANT_GUARD_STOP_IDLE_SECS: "1" };
    const ada = new Claude("aaaaaaaa", undefined, env);
    await ada.write("a.txt");
    expect(await ada.stop()).toEqual(SILENT);
    const bob = new Claude("bbbbbbbb", undefined, { ...env, COTENANT_GUARD_RETRY: "on_release" });
    await new Promise((resolve) => setTimeout(resolve, 900));
    await until("it has been idle", async () => (await bob.write("a.txt")).stdout === "");
    expect(repo.logOf("file:a.txt").at(-1)!.payload.ended).toEqual([
      expect.objectContaining({ cause: "stop_idle" }),
    ]);
  });

  it.each([[[]], [["--failed"]]])("the session's end does (%j)", async (flags) => {
    const ada = new Claude("aaaaaaaa");
    await ada.write("a.txt");
    expect(await ada.end(...flags)).toEqual(SILENT);
    expect(await free()).toBe(true);
  });
});

describe("S40: after all of it", () => {
  it("git log and the index show nothing that cotenant wrote", async () => {
    const look = () => [
      repo.git("log", "--all", "--format=%H"),
      repo.git("ls-files", "--stage"),
      repo.git("status", "--porcelain"),
    ];
    const before = look();
    const ada = new Claude("aaaaaaaa");
    await ada.write("a.txt");
    await ada.shell("echo x > b.txt");
    await new Claude("bbbbbbbb", undefined, ONE_SECOND).write("a.txt", 60);
    await ada.stop();
    await ada.end();
    expect(look()).toEqual(before);
  });
});

describe("S41: echo x > held-file through the shell tool", () => {
  it("is refused before, with both names on record", async () => {
    await new Claude("aaaaaaaa").write("a.txt");
    const bob = new Claude("bbbbbbbb");
    expect(reasonOf({ ...(await bob.shell("echo x > a.txt")), status: 0 })).toContain(
      "agent:claude-aaaaaaaa",
    );
    const line = repo.log().find(({ event_type: type }) => type === "contention.heartbeat")!;
    expect([line.actor.agent_id, JSON.stringify(line.payload)]).toEqual([
      bob.agentId,
      expect.stringContaining('"owner":"agent:claude-aaaaaaaa"'),
    ]);
  });
});

describe("S41: a command that nobody can read beforehand", () => {
  it("is reported after it, with both names: to both, in events and status, and at the commit", async () => {
    expect((await ask("hooks", "install")).status).toBe(0);
    const [ada, bob] = [new Claude("aaaaaaaa"), new Claude("bbbbbbbb")];
    await ada.write("a.txt");
    const command = "node build.js";
    await new Promise((resolve) => setTimeout(resolve, SLACK_MS));
    let round = 0;
    const told = await until("ada has not just been given leave", async () => {
      await bob.shell(command);
      repo.write("a.txt", `trespass ${round++}\n`);
      const { stdout } = await bob.after(command);
      return stdout !== "" && stdout;
    });
    expect(told).toContain(`${ada.agentId} holds it`);
    expect((await ada.write("a.txt")).stdout).toContain(`changed by a shell command of ${bob.agentId}`);
    const line = (await repo.runHere("human:me", "events", "--type", "guard.violated", "--path", "a.txt"))
      .stdout;
    expect(line).toContain(bob.agentId);
    expect(line).toContain(`under the lease of ${ada.agentId}`);
    const names = expect.stringContaining(`by a command of ${bob.agentId} under the lease of ${ada.agentId}`);
    const found = (await ask("status")).data["needs_a_person"];
    expect(found).toContainEqual(expect.objectContaining({ code: "lease_trespassed", message: names }));
    expect(await commit("aaaaaaaa", "a.txt")).toEqual(names);
    expect((await ask("guard", "status")).data["violations"]).toEqual([]);
  });
});

describe("S42: each harness's real input, as documented", () => {
  const INPUTS: Readonly<Record<HarnessName, (session: string) => object>> = {
    claude: (session) => ({ ...common(session), hook_event_name: "PreToolUse", ...edit("Edit") }),
    codex: (session) => ({
      ...common(session),
      turn_id: "t",
      hook_event_name: "PreToolUse",
      tool_name: "apply_patch",
      tool_input: { command: "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n" },
    }),
    cursor: (session) => ({
      conversation_id: session,
      generation_id: "g",
      hook_event_name: "preToolUse",
      cursor_version: "3",
      workspace_roots: [repo.root],
      tool_name: "Write",
      tool_input: { file_path: path.join(repo.root, "a.txt"), content: "x" },
    }),
    gemini: (session) => ({
      ...common(session),
      hook_event_name: "BeforeTool",
      ...edit("replace"),
      timestamp: "now",
    }),
    copilot: (session) => ({
      sessionId: session,
      timestamp: 1,
      cwd: repo.root,
      toolName: "edit",
      toolArgs: JSON.stringify({ path: path.join(repo.root, "a.txt"), old_str: "one", new_str: "two" }),
    }),
    opencode: (session) => ({
      event: "tool.execute.before",
      sessionID: session,
      callID: "c",
      directory: repo.root,
      tool: "edit",
      args: { filePath: path.join(repo.root, "a.txt"), oldString: "one", newString: "two" },
    }),
    qwen: (session) => ({
      ...common(session),
      hook_event_name: "PreToolUse",
      timestamp: "now",
      ...edit("edit"),
    }),
    pi: (session) => ({
      event: "tool_call",
      sessionID: session,
      callID: "c",
      directory: repo.root,
      tool: "edit",
      args: { path: path.join(repo.root, "a.txt"), edits: [{ oldText: "one", newText: "two" }] },
    }),
  };
  const common = (session: string) => ({
    session_id: session,
    transcript_path: "/t",
    cwd: repo.root,
    permission_mode: "default",
  });
  const edit = (tool: string) => ({
    tool_name: tool,
    tool_input: { file_path: path.join(repo.root, "a.txt"), old_string: "one", new_string: "two" },
    tool_use_id: "u",
  });
  const FORMS: Readonly<Record<HarnessName, (reason: string) => Ran>> = {
    claude: hookSpecific,
    codex: hookSpecific,
    cursor: (reason) => said({ permission: "deny", user_message: reason, agent_message: reason }),
    gemini: (reason) => said({ decision: "deny", reason }),
    copilot: (reason) => said({ permissionDecision: "deny", permissionDecisionReason: reason }),
    opencode: (reason) => ({ stdout: "", stderr: `${reason}\n`, status: 2 }),
    qwen: hookSpecific,
    pi: (reason) => ({ stdout: "", stderr: `${reason}\n`, status: 2 }),
  };

  function hookSpecific(reason: string): Ran {
    const decision = {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason: reason,
    };
    return said({ hookSpecificOutput: decision });
  }

  function said(document: object): Ran {
    return { stdout: `${JSON.stringify(document)}\n`, stderr: "", status: 0 };
  }

  it.each(HARNESS_NAMES)("%s: its own allow and deny forms, to the byte", async (harness) => {
    const { name: event } = HARNESSES[harness].events.find(({ moment }) => moment === "before")!;
    const ask = (session: string) =>
      hook(
        ["check", "--harness", harness, "--event", event, "--deadline", "10", "--pid", String(process.pid)],
        JSON.stringify(INPUTS[harness](session)),
      );
    const allowed = harness === "cursor" ? said({}) : SILENT;
    expect(await ask("11111111-one")).toEqual(allowed);
    const denied = await ask("22222222-two");
    const line = repo.log().find(({ event_type: type }) => type === "contention.heartbeat")!;
    const { retry_at: retryAt } = line.payload as unknown as { retry_at: string };
    const reason = [
      `cotenant: a.txt is held by agent:${harness}-11111111. Nothing was written.`,
      `retry_at: ${retryAt} (180 s after the denial). Try the same write once more then; before that it is refused for as long as the file is held.`,
      "Go on with other files meanwhile, and do not write this one by another way.",
    ].join("\n");
    expect(denied).toEqual(FORMS[harness](reason));
  });
});
