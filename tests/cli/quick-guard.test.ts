import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { openRepository } from "../../src/index";
import { harnessProcess } from "../support/guard";
import { oneIn } from "../support/one-in";
import { PROGRAM } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

const QUICK = path.join(path.dirname(path.dirname(PROGRAM)), "dist/quick-guard.cjs");
const ASK = `const begun = require(${JSON.stringify(QUICK)}).beginGuard(["guard", "check", ...process.argv.slice(1)]);
process.exitCode = begun === "answered" ? 0 : 3;`;
const SESSION = "aaaaaaaa-0000-4000-8000-000000000000";

let repo: TestRepo;
let pid: number;
beforeEach(async () => {
  repo = TestRepo.make();
  for (const file of ["src/a.txt", "src/b.txt"]) repo.write(file, "one\n");
  await repo.prepare("human:me", "init");
  // Settings that were changed just now get no pass.
  const long = new Date(Date.now() - 60_000);
  fs.utimesSync(path.join(repo.root, ".cotenant/config.toml"), long, long);
  pid = harnessProcess().pid;
});

interface Asking {
  readonly session?: string;
  readonly file?: string;
  readonly pid?: number;
  readonly env?: Readonly<Record<string, string>>;
}

function run(
  command: readonly string[],
  { session = SESSION, file = "src/a.txt", ...asking }: Asking,
): number {
  const input = JSON.stringify({
    session_id: session,
    cwd: repo.root,
    permission_mode: "default",
    hook_event_name: "PreToolUse",
    tool_name: "Edit",
    tool_input: { file_path: path.join(repo.root, file), old_string: "o", new_string: "p" },
  });
  const args = ["--harness", "claude", "--event", "PreToolUse", "--deadline", "60"];
  const ran = spawnSync(process.execPath, [...command, ...args, "--pid", String(asking.pid ?? pid)], {
    cwd: repo.root,
    env: { ...process.env, ...asking.env },
    input,
    encoding: "utf8",
  });
  expect(ran.stderr + ran.stdout).toBe("");
  return ran.status!;
}

const check = (asking: Asking = {}) => expect(run([PROGRAM, "guard", "check"], asking)).toBe(0);
const isQuick = (asking: Asking = {}) => run(["-e", ASK, "--"], asking) === 0;

describe("a file that its session holds already", () => {
  it("is let through quickly, from the second edit on, and nothing is written but a trace", () => {
    expect(isQuick()).toBe(false);
    check();
    const log = fs.readFileSync(repo.logFile);
    expect(isQuick()).toBe(true);
    check();
    expect(fs.readFileSync(repo.logFile).equals(log)).toBe(true);
    const traces = path.join(repo.control, "guard/edits");
    expect(fs.readdirSync(traces)).toHaveLength(1);
  });

  it("is let through in a linked worktree as well", () => {
    repo.git("add", ".");
    repo.git("commit", "--quiet", "--message", "first");
    repo.git("worktree", "add", "--quiet", "linked");
    fs.mkdirSync(path.join(repo.root, "linked/.cotenant"), { recursive: true });
    const long = new Date(Date.now() - 60_000);
    fs.utimesSync(path.join(repo.root, "linked/.cotenant/config.toml"), long, long);
    check({ file: "linked/src/a.txt" });
    check({ file: "linked/src/a.txt" });
    expect(isQuick({ file: "linked/src/a.txt" })).toBe(true);
  });

  it("others are not, nor the same one for other files", () => {
    check();
    expect(isQuick({ session: "bbbbbbbb-0000-4000-8000-000000000000" })).toBe(false);
    expect(isQuick({ file: "src/b.txt" })).toBe(false);
    expect(isQuick({ pid: harnessProcess().pid })).toBe(false);
    expect(isQuick({ env: { COTENANT_AGENT_ID: "agent:other" } })).toBe(false);
    expect(isQuick()).toBe(true);
  });

  it("is looked at closely when anything that it rests on has changed", async () => {
    const config = path.join(repo.root, ".cotenant/config.toml");
    const applied = path.join(repo.control, "index/applied");
    const changes: Record<string, () => void> = {
      settings: () => fs.appendFileSync(config, "# another line\n"),
      "the end of the log": () => fs.appendFileSync(repo.logFile, "{"),
      "the index's reach": () =>
        fs.writeFileSync(applied, fs.readFileSync(applied, "utf8").replace('"offset":', '"offset":1')),
      "no index": () => fs.rmSync(path.join(repo.control, "index"), { recursive: true }),
      "a disk that failed": () => fs.writeFileSync(path.join(repo.control, "locks/sync-failed"), ""),
      "a link in its place": () => {
        fs.rmSync(path.join(repo.root, "src/a.txt"));
        fs.symlinkSync("b.txt", path.join(repo.root, "src/a.txt"));
      },
      "a link on the way to it": () => {
        fs.renameSync(path.join(repo.root, "src"), path.join(repo.root, "other"));
        fs.symlinkSync("other", path.join(repo.root, "src"));
      },
      "an old sign of life": () => {
        const guard = path.join(repo.control, "guard");
        const old = new Date(Date.now() - 61_000);
        for (const name of fs.readdirSync(guard).filter((name) => name.startsWith("beat-")))
          fs.utimesSync(path.join(guard, name), old, old);
      },
      "somebody who was denied": () => {
        const facts = path.join(repo.control, "index/facts/contention");
        fs.mkdirSync(facts, { recursive: true });
        fs.writeFileSync(path.join(facts, "x.json"), "");
      },
    };
    check();
    expect(isQuick()).toBe(true);
    const kept = `${repo.root}-kept`;
    fs.cpSync(repo.root, kept, { recursive: true, preserveTimestamps: true });
    for (const [what, change] of Object.entries(changes)) {
      change();
      expect(isQuick(), what).toBe(false);
      fs.rmSync(repo.root, { recursive: true });
      fs.cpSync(kept, repo.root, { recursive: true, preserveTimestamps: true });
      await repo.prepare("human:me", "gc");
      check();
      expect(isQuick(), `after ${what}`).toBe(true);
    }
    fs.rmSync(kept, { recursive: true });
  });

  it("is not let through once the lease is gone, by whatever hand", async () => {
    const library = await openRepository({ cwd: repo.root, agentId: "human:boss", env: {} });
    const held = async () => {
      const { data } = await repo.ask("human:boss", "lock", "status");
      return data.leases[0]!.lease_id as string;
    };
    const gone: Record<string, () => Promise<unknown>> = {
      evicted: async () => repo.askHere("human:boss", "claim", "force-evict", await held(), "--reason", "r"),
      // By a program that leaves the index to others.
      "evicted, and the index does not know": async () => library.evict(await held(), { reason: "r" }),
    };
    for (const [what, end] of Object.entries(gone)) {
      check();
      expect(isQuick()).toBe(true);
      await end();
      expect(isQuick(), what).toBe(false);
      expect((await repo.askHere("human:boss", "lock", "status")).data.leases).toEqual([]);
    }
  });

  it("a stopped session comes back the long way", () => {
    check();
    const stop = spawnSync(
      PROGRAM,
      ["guard", "stop", "--harness", "claude", "--event", "Stop", "--pid", `${pid}`],
      {
        cwd: repo.root,
        input: JSON.stringify({ session_id: SESSION, cwd: repo.root, hook_event_name: "Stop" }),
      },
    );
    expect(stop.status).toBe(0);
    expect(isQuick()).toBe(false);
    check();
    expect(isQuick()).toBe(true);
  });
});

describe("a file that somebody else holds", () => {
  const OTHER = "bbbbbbbb-0000-4000-8000-000000000000";
  let owner: ReturnType<typeof harnessProcess>;
  beforeEach(() => {
    owner = harnessProcess();
    check({ pid: owner.pid });
  });

  /** What the other session is told, by the whole program or by the quick one alone; null where that one knows nothing. */
  const told = (isQuickly: boolean, deadline = "5", event = {}): string | null => {
    const command = isQuickly ? ["-e", ASK, "--"] : [PROGRAM, "guard", "check"];
    const args = ["--harness", "claude", "--event", "PreToolUse", "--deadline", deadline, "--pid", `${pid}`];
    const ran = spawnSync(process.execPath, [...command, ...args], {
      cwd: repo.root,
      encoding: "utf8",
      input: JSON.stringify({
        session_id: OTHER,
        cwd: repo.root,
        hook_event_name: "PreToolUse",
        tool_name: "Edit",
        tool_input: { file_path: path.join(repo.root, "src/a.txt"), old_string: "o", new_string: "p" },
        ...event,
      }),
    });
    expect(ran.stderr).toBe("");
    if (ran.status === 3) expect(ran.stdout).toBe("");
    else expect(ran.status).toBe(0);
    return ran.status === 3 ? null : ran.stdout;
  };
  const withoutSeconds = (text: string | null) => text?.replace(/\(in \d+ s\)/, "(in some s)");

  it("is refused quickly when it is tried again too early, in the same words, and nothing is written", () => {
    expect(told(true)).toBe(null);
    expect(told(false)).toContain("Nothing was written");
    const log = fs.readFileSync(repo.logFile);
    const quick = told(true);
    expect(quick).toContain("it is too early to try again");
    expect(quick).toMatch(/\(in 1(?:[67]\d|80) s\)/);
    fs.rmSync(path.join(repo.control, "guard/refusals"), { recursive: true });
    expect(told(true)).toBe(null);
    expect(withoutSeconds(told(false))).toBe(withoutSeconds(quick));
    expect(fs.readFileSync(repo.logFile).equals(log)).toBe(true);
  });

  it("is not refused so to whoever would wait, nor to anybody else", () => {
    told(false);
    expect(told(true, "300")).toBe(null);
    expect(told(true, "5", { session_id: "cccccccc-0000-4000-8000-000000000000" })).toBe(null);
    expect(told(true, "5", { tool_input: { file_path: path.join(repo.root, "src/b.txt") } })).toBe(null);
    expect(told(true)).toContain("too early");
  });

  it("is had at once when its holder dies", async () => {
    told(false);
    expect(told(true)).toContain("too early");
    await owner.kill();
    expect(told(true)).toBe(null);
    expect(told(false)).not.toContain('"deny"');
  });

  it("is looked at closely when anything that the refusal rests on has changed", async () => {
    const library = await openRepository({ cwd: repo.root, agentId: "human:boss", env: {} });
    const held = async () =>
      (await repo.ask("human:boss", "lock", "status")).data.leases[0]!.lease_id as string;
    const facts = path.join(repo.control, "index/facts/contention");
    const beats = path.join(repo.control, "guard");
    const old = new Date(Date.now() - 61_000);
    const changes: Record<string, () => unknown> = {
      "the contention": () =>
        fs.writeFileSync(path.join(facts, fs.readdirSync(facts)[0]!), '{"state":"waiting"}'),
      "no contention": () => fs.rmSync(facts, { recursive: true }),
      settings: () => fs.appendFileSync(path.join(repo.root, ".cotenant/config.toml"), "# another line\n"),
      "the end of the log": () => fs.appendFileSync(repo.logFile, "{"),
      "an old sign of life": () => {
        for (const name of fs.readdirSync(beats).filter((name) => name.startsWith("beat-")))
          fs.utimesSync(path.join(beats, name), old, old);
      },
      "the lease is gone": async () =>
        repo.askHere("human:boss", "claim", "force-evict", await held(), "--reason", "r"),
      "the lease is gone, and the index does not know": async () =>
        library.evict(await held(), { reason: "r" }),
    };
    told(false);
    const kept = `${repo.root}-kept`;
    fs.cpSync(repo.root, kept, { recursive: true, preserveTimestamps: true });
    for (const [what, change] of Object.entries(changes)) {
      await change();
      expect(told(true), what).toBe(null);
      fs.rmSync(repo.root, { recursive: true });
      fs.cpSync(kept, repo.root, { recursive: true, preserveTimestamps: true });
      await repo.prepare("human:me", "gc");
      told(false);
      expect(told(true), `after ${what}`).toContain("too early");
    }
    fs.rmSync(kept, { recursive: true });
  });
});
