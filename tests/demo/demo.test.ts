import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratch } from "../support/scratch";

const PROGRAM = join(__dirname, "../../bin/cotenant");

interface Run {
  readonly demo: ChildProcess;
  /** Where its scratch repository goes. */
  readonly room: string;
  readonly ended: Promise<{ status: number | null; signal: string | null; stdout: string; stderr: string }>;
}

function start(args: readonly string[], env: Record<string, string> = {}): Run {
  const room = scratch("cotenant-demo-room");
  const demo = spawn(process.execPath, [PROGRAM, "demo", ...args], {
    cwd: room,
    env: { ...process.env, TMPDIR: room, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  demo.stdout.setEncoding("utf8").on("data", (text) => {
    said.stdout += text;
  });
  demo.stderr.setEncoding("utf8").on("data", (text) => {
    said.stderr += text;
  });
  const ended = new Promise<Awaited<Run["ended"]>>((resolve) => {
    demo.on("close", (status, signal) => resolve({ status, signal, ...said }));
  });
  return { demo, room, ended };
}

interface Child {
  readonly pid: number;
  readonly state: string;
  readonly args: string;
}

function childrenOf(parent: number): Child[] {
  return execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat=,args="], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, ppid]) => Number(ppid) === parent)
    .map(([pid, , state, ...args]) => ({ pid: Number(pid), state: state ?? "", args: args.join(" ") }));
}

function isAlive(pid: number): boolean {
  const stat = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).stdout.trim();
  // A zombie is dead; whoever inherited it has not looked yet.
  return stat !== "" && !stat.startsWith("Z");
}

async function eventually<T>(what: string, look: () => T | null | false, ms = 20_000): Promise<T> {
  const until = Date.now() + ms;
  for (;;) {
    const found = look();
    if (found !== null && found !== false) return found;
    if (Date.now() > until) throw new Error(`${what} did not come about in ${ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

/** Also gone are those that the test's own `ps` cannot have seen: what is left would still use the folder. */
async function expectNothingLeft(room: string, pids: readonly number[]): Promise<void> {
  await eventually("the end of all processes", () => pids.every((pid) => !isAlive(pid)), 10_000);
  await eventually("an empty room", () => readdirSync(room).length === 0, 10_000);
}

describe("the demo", () => {
  const HAPPENS = ["granted", "waited", "killed", "stolen_dead", "fenced_off", "expired", "evicted"];

  it("keeps every promise for six seconds, and leaves nothing behind", async () => {
    const play = async () => {
      const { demo, room, ended } = start(["--seconds", "6", "--json", "--seed", "7"]);
      const seen = new Set<number>();
      const watching = setInterval(() => {
        for (const { pid } of childrenOf(demo.pid!)) seen.add(pid);
      }, 300);
      const { status, stdout, stderr } = await ended;
      clearInterval(watching);
      expect(stderr).toBe("");
      const { ok, data } = JSON.parse(stdout);
      expect(data.violations).toEqual([]);
      return { room, seen, status, ok, data };
    };
    let played = await play();
    // Six seconds of a busy machine may be too short for a plot that takes four.
    for (let again = 0; again < 2 && !HAPPENS.every((name) => played.data.counts[name] > 0); again++)
      played = await play();
    const { room, seen, status, ok, data } = played;
    expect({ ok, status, seed: data.seed, missing: data.missing }).toEqual({
      ok: true,
      status: 0,
      seed: 7,
      missing: [],
    });
    for (const name of HAPPENS) expect(data.counts[name], name).toBeGreaterThan(0);
    expect(data.invariants_checked).toBeGreaterThan(1_000);
    expect(data.logged.events["claim.acquired"]).toBeGreaterThanOrEqual(data.counts.granted);
    // Eight agents, the newcomer in the end, the warden, and those who came for the killed.
    expect(seen.size).toBeGreaterThanOrEqual(9);
    await expectNothingLeft(room, [...seen]);
  });

  it("tells its story line by line where there is no terminal, keeps what it was asked to keep, and reads nothing of the caller's", async () => {
    const home = scratch("cotenant-demo-home");
    const trap = join(home, "trap");
    writeFileSync(trap, "[core]\n\tbare = nonsense");
    const { room, ended } = start(["--seconds", "3", "--agents", "3", "--keep"], {
      HOME: home,
      GIT_DIR: join(home, "nowhere"),
      GIT_CONFIG_GLOBAL: trap,
      COTENANT_AGENT_ID: "nonsense",
      COTENANT_STORE_ROTATE_BYTES: "nonsense",
      CLAUDECODE: "1",
    });
    const { status, stdout } = await ended;
    expect(stdout).toMatch(/^ +\d+\.\d s {2}3 agents, 3 s, seed \d+, in /);
    expect(stdout).toMatch(/^ +\d+\.\d s {2}a newcomer takes everything at once: \d+ leases$/m);
    expect(stdout).toMatch(/^violations +0$/m);
    expect(stdout).not.toContain("\x1b");
    expect(status).toBe(0);
    const [kept] = readdirSync(room);
    expect(stdout).toContain(`kept: ${join(room, kept!)}`);
    // The segment may be a new one; every one of them starts like this.
    const log = readFileSync(join(room, kept!, "repository/.git/cotenant/claims.jsonl"), "utf8");
    expect(log).toContain('"event_type":"log.checkpoint"');
    expect(readdirSync(home)).toEqual(["trap"]);
  });

  // Windows has no signal that stops a process, and so no stopped worker.
  it.runIf(process.platform !== "win32")(
    "leaves no process and no folder when it is killed, not even a worker that is stopped",
    async () => {
      const { demo, room, ended } = start(["--seconds", "30", "--agents", "6", "--quiet"]);
      const workers = () => childrenOf(demo.pid!).filter(({ args }) => args.endsWith("demo worker"));
      const [first] = await eventually("six workers", () => workers().length >= 6 && workers());
      process.kill(first!.pid, "SIGSTOP");
      const children = await eventually("a stopped worker", () => {
        const all = childrenOf(demo.pid!);
        return all.some(({ pid, state }) => pid === first!.pid && state.startsWith("T")) ? all : null;
      });
      demo.kill("SIGKILL");
      expect((await ended).signal).toBe("SIGKILL");
      await expectNothingLeft(
        room,
        children.map(({ pid }) => pid),
      );
    },
  );

  it("cleans up after an interrupt", async () => {
    const { demo, room, ended } = start(["--seconds", "30", "--agents", "4"]);
    const children = await eventually("four agents and the warden", () => {
      const all = childrenOf(demo.pid!);
      return all.length >= 5 ? all : null;
    });
    demo.kill("SIGINT");
    const { status, stdout } = await ended;
    expect(status).toBe(130);
    expect(stdout).toContain("stopped by SIGINT; nothing is left behind");
    await expectNothingLeft(
      room,
      children.map(({ pid }) => pid),
    );
  });

  it("cleans up after an interrupt that comes before there is anything", async () => {
    const { demo, room, ended } = start(["--seconds", "30"]);
    const children = await eventually(
      "a folder",
      () => readdirSync(room).length > 0 && childrenOf(demo.pid!),
    );
    demo.kill("SIGTERM");
    expect((await ended).status).toBe(143);
    await expectNothingLeft(
      room,
      children.map(({ pid }) => pid),
    );
  });

  it.each([
    ["--seconds", "0"],
    ["--seconds", "601"],
    ["--agents", "1"],
    ["--agents", "33"],
    ["--agents", "many"],
    ["--seed", "-1"],
    ["worker-bee", "--quiet"],
  ])("refuses %s %s and starts nothing", async (...args) => {
    const { room, ended } = start(args);
    const { status, stderr, stdout } = await ended;
    expect({ status, stdout }).toEqual({ status: 64, stdout: "" });
    expect(stderr).toContain("E_USAGE");
    expect(readdirSync(room)).toEqual([]);
  });
});
