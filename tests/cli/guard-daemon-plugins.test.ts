import { type ChildProcess, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { freezeDaemon, guardCounts, hookFile, isGone, startDaemon } from "../support/daemon";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

type Plugged = "opencode" | "pi";
const FILES: Readonly<Record<Plugged, string>> = {
  opencode: ".opencode/plugins/cotenant.js",
  pi: ".pi/extensions/cotenant.js",
};

/** Loads the plugin as the harness does, and has it judge edits: one order per line. */
const DRIVER = `
import { createInterface } from "node:readline";
const [harness, url] = process.argv.slice(1);
const shown = [];
let judge;
if (harness === "opencode") {
  const { Cotenant } = await import(url);
  const client = { tui: { showToast: ({ body }) => void shown.push(body.message) } };
  const plugin = await Cotenant({ directory: process.cwd(), client });
  judge = async ({ session, file }) => {
    const args = { filePath: file, oldString: "a", newString: "b" };
    await plugin["tool.execute.before"]({ tool: "edit", sessionID: session, callID: "c" }, { args });
  };
} else {
  const handlers = {};
  (await import(url)).default({ on: (name, handler) => (handlers[name] = handler) });
  judge = async ({ session, file }) => {
    const ui = { setStatus: (_, message) => message && shown.push(message) };
    const context = { cwd: process.cwd(), sessionManager: { getSessionId: () => session }, hasUI: true, ui };
    const event = { toolName: "edit", toolCallId: "c", input: { path: file } };
    const said = await handlers.tool_call(event, context);
    if (said?.block) throw new Error(said.reason);
  };
}
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  const told = await judge(order).then(() => "leave", (error) => error.message);
  process.stdout.write(JSON.stringify({ told, shown: shown.splice(0) }) + "\\n");
}
`;

class Loaded {
  readonly child: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(repo: TestRepo, harness: Plugged, env: Readonly<Record<string, string>> = {}) {
    const url = pathToFileURL(path.join(repo.root, FILES[harness])).href;
    this.child = spawn(process.execPath, ["--input-type=module", "--eval", DRIVER, "--", harness, url], {
      cwd: repo.root,
      env: { ...process.env, COTENANT_DAEMON_AUTOSTART: "false", ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#answers = createInterface({ input: this.child.stdout! })[Symbol.asyncIterator]();
  }

  /** What it is told of an edit, and what people were shown meanwhile. */
  async edits(session: string, file: string): Promise<{ told: string; shown: string[] }> {
    this.child.stdin!.write(`${JSON.stringify({ session, file })}\n`);
    return JSON.parse((await this.#answers.next()).value) as { told: string; shown: string[] };
  }
}

let repo: TestRepo;
const loaded: Loaded[] = [];
afterEach(() => {
  for (const { child } of loaded.splice(0)) child.kill("SIGKILL");
});

describe.each<Plugged>(["opencode", "pi"])("the plugin of %s", (harness) => {
  beforeEach(async () => {
    repo = TestRepo.make();
    for (const file of ["a.txt", "b.txt"]) repo.write(file, "one\n");
    await repo.prepare("human:me", "init");
    await repo.prepare("human:me", "agent", "install", harness, "--via", "daemon");
  });

  function load(env: Readonly<Record<string, string>> = {}): Loaded {
    const one = new Loaded(repo, harness, env);
    loaded.push(one);
    return one;
  }

  const LONG = { COTENANT_GUARD_RETRY_SECS: "3000" };
  const acquired = () => repo.log().filter(({ event_type: type }) => type === "claim.acquired");
  const heldBy = new RegExp(`a\\.txt is held by agent:${harness}-aaaaaaaa`);

  it("asks the daemon by itself, for its own process", async () => {
    await startDaemon(repo);
    const [ada, bob] = [load(), load(LONG)];
    expect(await ada.edits("aaaaaaaa", "a.txt")).toEqual({ told: "leave", shown: [] });
    expect((await bob.edits("bbbbbbbb", "a.txt")).told).toMatch(heldBy);
    expect(acquired()[0]!.payload.leases[0]).toMatchObject({ holder: { pid: ada.child.pid } });
    expect(await guardCounts(repo)).toMatchObject({ by_harness: { [harness]: 2 }, declined: 0 });
  });

  it("shows people that it waits, and runs the program when the daemon dies meanwhile", async () => {
    const record = await startDaemon(repo);
    const [ada, bob] = [
      load(),
      load({ COTENANT_GUARD_RETRY_SECS: "60", COTENANT_GUARD_RETRY: "on_release" }),
    ];
    await ada.edits("aaaaaaaa", "a.txt");
    const waiting = bob.edits("bbbbbbbb", "a.txt");
    await until("he waits", () => repo.logText().includes("contention.heartbeat"));
    process.kill(record.pid, "SIGKILL");
    await isGone(record);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    ada.child.kill("SIGKILL");
    const { told, shown } = await waiting;
    expect(told).toBe("leave");
    expect(shown[0]).toContain(`agent:${harness}-aaaaaaaa`);
    expect(acquired()).toHaveLength(2);
  });

  it("leaves a daemon that is stopped, and runs the program where there is none", async () => {
    const record = await startDaemon(repo);
    await freezeDaemon(repo, record);
    const [ada, bob] = [load(), load(LONG)];
    expect((await ada.edits("aaaaaaaa", "a.txt")).told).toBe("leave");
    process.kill(record.pid, "SIGKILL");
    await isGone(record);
    expect((await bob.edits("bbbbbbbb", "a.txt")).told).toMatch(heldBy);
    expect(acquired()).toHaveLength(1);
  });

  it("believes no record that others could have written", async () => {
    await startDaemon(repo);
    fs.chmodSync(hookFile(repo, "json"), 0o666);
    expect((await load().edits("aaaaaaaa", "a.txt")).told).toBe("leave");
    fs.chmodSync(hookFile(repo, "json"), 0o600);
    expect(await guardCounts(repo)).toMatchObject({ events: 0 });
    expect(acquired()).toHaveLength(1);
  });
});
