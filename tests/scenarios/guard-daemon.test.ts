import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { startTimeOf } from "../../src/platform/node/processes";
import { Prng } from "../../testing/simulator/prng";
import { freezeDaemon, guardCounts, hookFile, isGone, recordOf, startDaemon } from "../support/daemon";
import { type Hooked, HookHarness, lineFor, repoWithHooks } from "../support/hook-harness";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import type { TestRepo } from "../support/repo";

const it = oneIn(5);

let repo: TestRepo;
beforeEach(async () => {
  repo = await repoWithHooks("daemon");
});

const SILENT: Hooked = { status: 0, stdout: "", stderr: "" };
const ALONE = { COTENANT_NO_DAEMON: "1" };

/** An agent of Claude Code's, in a harness of its own. */
class Agent {
  readonly harness = new HookHarness(repo);
  readonly session: string;
  readonly env: Readonly<Record<string, string>>;

  constructor(name: string, env: Readonly<Record<string, string>> = {}) {
    this.session = `${name.repeat(8).slice(0, 8)}-0`;
    this.env = { COTENANT_DAEMON_AUTOSTART: "false", ...env };
  }

  get id(): string {
    return `agent:claude-${this.session.slice(0, 8)}`;
  }

  edits(file: string): Promise<Hooked> {
    return this.before("Write", { file_path: path.join(repo.root, file), content: "x" });
  }

  before(tool: string, input: object): Promise<Hooked> {
    return this.#send("PreToolUse", { tool_name: tool, tool_input: input, tool_use_id: "t1" });
  }

  after(tool: string, input: object): Promise<Hooked> {
    return this.#send("PostToolUse", { tool_name: tool, tool_input: input, tool_use_id: "t1" });
  }

  ends(): Promise<Hooked> {
    return this.#send("SessionEnd", {});
  }

  #send(event: string, more: object): Promise<Hooked> {
    const said = { session_id: this.session, cwd: repo.root, hook_event_name: event, ...more };
    const line = lineFor(repo, "claude", event);
    return this.harness.run(line, JSON.stringify(said), { env: this.env });
  }
}

const events = (type: RegExp) => repo.log().filter(({ event_type }) => type.test(event_type));
const retryAfter = (secs: number) => ({ COTENANT_GUARD_RETRY_SECS: String(secs) });

describe("a hook that waits for a file through the daemon", () => {
  it("writes when the file is free, and is told what it waited for", async () => {
    await startDaemon(repo);
    const [ada, bob] = [
      new Agent("a"),
      new Agent("b", { ...retryAfter(60), COTENANT_GUARD_RETRY: "on_release" }),
    ];
    expect(await ada.edits("a.txt")).toEqual(SILENT);
    const waiting = bob.edits("a.txt");
    await until("he waits", () => events(/^contention\.heartbeat$/).length === 1);
    expect(await guardCounts(repo)).toMatchObject({ under_way: 1 });
    expect(await ada.ends()).toEqual(SILENT);
    expect((await waiting).stdout).toMatch(/waited \d+ s for a\.txt, which agent:claude-aaaaaaaa held/);
    expect(await guardCounts(repo)).toMatchObject({ declined: 0 });
  });

  it("S72: goes on waiting in the program when the daemon is killed, and has lost nothing", async () => {
    const record = await startDaemon(repo);
    const [ada, bob] = [
      new Agent("a"),
      new Agent("b", { ...retryAfter(60), COTENANT_GUARD_RETRY: "on_release" }),
    ];
    await ada.edits("a.txt");
    const waiting = bob.edits("a.txt");
    await until("he waits", () => events(/^contention\.heartbeat$/).length === 1);
    process.kill(record.pid, "SIGKILL");
    await isGone(record);
    await until("it is the program", () => bob.harness.children().some((words) => words.includes("guard")));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(await ada.ends()).toEqual(SILENT);
    expect((await waiting).stdout).toMatch(/waited \d+ s for a\.txt/);
    // Denied once, and once more is not asked for.
    expect(events(/^contention\.heartbeat$/)).toHaveLength(1);
    expect(events(/^claim\.acquired$/)).toHaveLength(2);
  });

  it("S72: leaves a daemon that is stopped meanwhile, which then does nothing for it", async () => {
    const record = await startDaemon(repo);
    const [ada, bob] = [new Agent("a"), new Agent("b", retryAfter(14))];
    await ada.edits("a.txt");
    const waiting = bob.edits("a.txt");
    await until("he waits", () => events(/^contention\.heartbeat$/).length === 1);
    await freezeDaemon(repo, record);
    // The program comes to the retry, and stops with the report.
    expect((await waiting).stdout).toContain("waiting_for_instruction");
    expect(events(/^contention\.blocked$/)).toHaveLength(1);
    const before = repo.logText();
    process.kill(record.pid, "SIGCONT");
    await until("it answers", async () => (await guardCounts(repo))["under_way"] === 0);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(repo.logText()).toBe(before);
  });

  it("takes nothing once its harness has ended it", async () => {
    await startDaemon(repo);
    const [ada, bob] = [
      new Agent("a"),
      new Agent("b", { ...retryAfter(60), COTENANT_GUARD_RETRY: "on_release" }),
    ];
    await ada.edits("a.txt");
    void bob.edits("a.txt");
    await until("he waits", () => events(/^contention\.heartbeat$/).length === 1);
    // As a person who presses Escape: the hook goes, the harness stays.
    for (const pid of bob.harness.childPids()) process.kill(pid, "SIGKILL");
    await until("the daemon has noticed", async () => (await guardCounts(repo))["under_way"] === 0);
    await until("nobody asks any more", () => curls().length === 0);
    expect(await ada.ends()).toEqual(SILENT);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(events(/^claim\.acquired$/)).toHaveLength(1);
    expect(events(/^contention\.(?:retry|blocked)$/)).toEqual([]);
  });

  /** Of hooks of this repository. */
  function curls(): number[] {
    return fs
      .readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((name) => {
        try {
          return fs
            .readFileSync(`/proc/${name}/cmdline`, "utf8")
            .startsWith(`curl\0-q\0-K\0${hookFile(repo, "curl")}`);
        } catch {
          return false;
        }
      })
      .map(Number);
  }
});

describe("two agents at once on one file", () => {
  it("have it one after the other, whichever way each of them asks", async () => {
    await startDaemon(repo);
    const ways = [{}, ALONE];
    let round = 0;
    for (const [one, two] of ways.flatMap((a) => ways.map((b) => [a, b] as const))) {
      const [ada, bob] = [
        new Agent("a", { ...retryAfter(600), ...one }),
        new Agent("b", { ...retryAfter(600), ...two }),
      ];
      for (let i = 0; i < 3; i++) {
        const file = `race-${round++}.txt`;
        const told = await Promise.all([ada.edits(file), bob.edits(file)]);
        const refused = told.filter(({ stdout }) => stdout.includes('"deny"'));
        expect(refused, file).toHaveLength(1);
        const granted = events(/^claim\.acquired$/).filter(({ payload }) =>
          payload.leases.some(({ key }) => key === `file:${file}`),
        );
        expect(granted, file).toHaveLength(1);
      }
      ada.harness.kill();
      bob.harness.kill();
    }
  });
});

describe("what a shell command leaves running", () => {
  const notes = () => {
    const folder = path.join(repo.control, "guard/shell");
    return fs.existsSync(folder) ? fs.readdirSync(folder) : [];
  };
  const SERVER = { command: "./server.sh &" };

  it("is looked for as ever: not the hook, not curl, not the daemon, but what the harness has started", async () => {
    const [ada, bob] = [new Agent("a"), new Agent("b")];
    const starting = new Agent("c", { COTENANT_DAEMON_AUTOSTART: "true" });
    await ada.edits("a.txt");
    expect(await bob.before("Bash", SERVER)).toEqual(SILENT);
    expect(notes()).toHaveLength(1);
    // Started after the command, by a hook even, and with no parent left: it is still nobody's doing.
    await starting.edits("b.txt");
    await until("it is there", () => fs.existsSync(hookFile(repo, "sh")));
    expect(await bob.after("Bash", SERVER)).toEqual(SILENT);
    expect(notes()).toEqual([]);
    expect(await guardCounts(repo)).toMatchObject({ events: 1 });
    expect(await bob.before("Bash", SERVER)).toEqual(SILENT);
    const pid = await bob.harness.leave("sleep", "60");
    expect(await bob.after("Bash", SERVER)).toEqual(SILENT);
    expect(notes()).toHaveLength(1);
    process.kill(pid, "SIGKILL");
    await until("it is gone", () => startTimeOf(pid) === null);
    expect(await bob.after("Bash", { command: "true" })).toEqual(SILENT);
    expect(notes()).toEqual([]);
    expect(await guardCounts(repo)).toMatchObject({ declined: 0 });
  });
});

describe("S72 for the guard", () => {
  it("the daemon is killed at any moment, and every hook is answered as it should be", async () => {
    const seed = Number(process.env["TEST_SEED"] ?? Date.now() % 100_000);
    const chance = new Prng(seed, "kills");
    const agents = ["a", "b", "c"].map((name) => new Agent(name, { COTENANT_DAEMON_AUTOSTART: "true" }));
    let isOver = false;
    let kills = 0;
    const killer = (async () => {
      while (!isOver) {
        await new Promise((resolve) => setTimeout(resolve, chance.below(250)));
        const record = recordOf(repo);
        if (record === null || startTimeOf(record.pid) !== record.start_time) {
          // The next hook may start one at once.
          fs.rmSync(hookFile(repo, "tried"), { force: true });
          continue;
        }
        process.kill(record.pid, "SIGKILL");
        kills++;
      }
    })();
    const wanted: string[] = [];
    await Promise.all(
      agents.map(async (agent) => {
        for (let i = 0; i < 25; i++) {
          const file = `${agent.session.slice(0, 1)}-${i}.txt`;
          wanted.push(`file:${file} ${agent.id}`);
          expect(await agent.edits(file), `seed ${seed}, ${file}`).toEqual(SILENT);
        }
      }),
    );
    isOver = true;
    await killer;
    const granted = events(/^claim\.acquired$/).flatMap(({ payload }) =>
      payload.leases.map(({ key, agent_id }) => `${key} ${agent_id}`),
    );
    expect(granted.sort(), `seed ${seed}`).toEqual(wanted.sort());
    expect(kills, `seed ${seed}`).toBeGreaterThan(2);
  });
});
