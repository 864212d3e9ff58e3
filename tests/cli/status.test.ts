import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { cutTo, sizeOf } from "../../src/cli/terminal/screen";
import { Workspace } from "../../src/coordinator/workspace";
import { needsAPerson } from "../../src/features/watch/findings";
import { openRepository } from "../../src/index";
import { thisMachine } from "../../src/platform/node/this-machine";
import { needTool } from "../house/need-tool";
import { ROOT } from "../house/source";
import { oneIn } from "../support/one-in";
import { PROGRAM, start, until } from "../support/program";
import { expectRefused } from "../support/refusals";
import { pictureOf, TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

interface Finding {
  readonly code: string;
  readonly message: string;
  readonly next: string;
}
const findings = async (env: Record<string, string> = {}) =>
  (await repo.askWith(env, "agent:a", "status")).data["needs_a_person"] as readonly Finding[];
const codes = async (env: Record<string, string> = {}) => (await findings(env)).map(({ code }) => code);

describe("status ends with what needs a person", () => {
  it("and with nothing when there is nothing", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a");
    expect(await codes()).toEqual([]);
    expect((await repo.run("agent:a", "status")).stdout).toMatch(/\nnothing needs a person\n$/);
  });

  it("a lease without expiry whose holder has not been heard of", async () => {
    const id = await repo.issue();
    await repo.prepare("agent:b", "claim", "acquire", id, "--ttl", "0", "--reason", "a long story");
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    const env = { COTENANT_COORDINATION_STALE_THRESHOLD_SECS: "1" };
    const [found] = await findings(env);
    expect(found).toMatchObject({ code: "lease_stale", message: expect.stringContaining("agent:b") });
    expect(found!.next).toBe(`ask agent:b; 'cotenant events --key issue:${id}' shows what it did`);
  });

  it("a lease without expiry whose holder's process is gone, but not a person's", async () => {
    const [id, own] = [await repo.issue(), await repo.issue()];
    for (const [agent, issue] of [
      ["agent:b", id],
      ["human:ada", own],
    ] as const) {
      const script = `"$0" claim acquire ${issue} --ttl 0 --reason long --agent-id ${agent}; true`;
      // An interpreter of a script is a process of its own, unlike a mere \`sh -c\`.
      const file = path.join(repo.root, "..", "session.sh");
      fs.writeFileSync(file, script.replace('"$0"', PROGRAM));
      expect((await start(["/bin/sh", file], { cwd: repo.root }).done).status).toBe(0);
    }
    const found = await findings();
    expect(found).toHaveLength(1);
    expect(found[0]!.code).toBe("holder_gone");
    expect(found[0]!.message).toMatch(
      new RegExp(
        `^issue:${id} is held without expiry by agent:b, whose process \\d+ is gone; last heard of \\S+Z$`,
      ),
    );
    expect(found[0]!.next).toContain(
      `if nobody goes on with it: cotenant claim force-evict ${id} --reason <why>`,
    );
  });

  it("damage of the log", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a");
    await repo.prepare("agent:a", "lock", "acquire", "b");
    const text = repo.logText();
    fs.writeFileSync(repo.logFile, text.replace('"claim.acquired"', '"claim.acquirex"'));
    const found = await findings();
    expect(found.map(({ code }) => code)).toContain("log_damaged");
    expect(found[0]!.next).toContain("cotenant recover");
  });

  it("a committed configuration that loosens rules", async () => {
    repo.write(".cotenant/config.toml", '[policy]\nevict = ["agent:*"]\n');
    expect(await findings()).toMatchObject([
      {
        code: "config_untrusted",
        message: expect.stringMatching(/sets policy\.evict, which is not honoured before 'cotenant trust'$/),
        next: expect.stringContaining("trust --list"),
      },
    ]);
  });

  it("an agent id that two live processes use", async () => {
    const first = await openRepository({ cwd: repo.root, agentId: "agent:twin", sessionId: "one" });
    await first.acquire({ file: "a" }, { bind: "process" });
    expect(await codes()).toEqual([]);
    await repo.prepare("agent:b", "lock", "acquire", "held");
    const waiter = repo.start("agent:twin", ["lock", "acquire", "held", "--wait", "--timeout", "30"]);
    await until("it waits", () => waiter.stderr.includes("waiting as number 1"));
    const [found] = await findings();
    expect(found).toMatchObject({
      code: "agent_id_used_twice",
      message: expect.stringContaining("2 live processes"),
    });
    expect(found!.message).toContain(String(waiter.pid));
    waiter.kill("SIGKILL");
    await waiter.done;
  });

  it("a wait that lasts, and an end that nobody has logged for a day", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "held");
    const waiter = repo.start("agent:c", ["lock", "acquire", "held", "--wait", "--timeout", "30"]);
    await until("it waits", () => waiter.stderr.includes("waiting as number 1"));
    const workspace = await Workspace.open({ ...thisMachine(), cwd: repo.root, isTerminal: false });
    const leases = await workspace.coordinator.list();
    const waiters = await workspace.coordinator.waiters();
    const now = workspace.store.now();
    const later = (ms: number) => ({ ...now, wallMs: now.wallMs + ms, monotonicMs: now.monotonicMs + ms });
    const at = (ms: number, standing: "valid" | "expired") =>
      needsAPerson(workspace, {
        pause: null,
        proposals: [],
        escalated: [],
        leases: leases.map((status) => ({ ...status, standing })),
        waiters,
        damage: null,
        violations: [],
        homeless: [],
        gated: [],
        contentions: [],
        trespasses: [],
        provisional: [],
        isLedgerUnread: false,
        left: [],
        strangers: new Map(),
        hooks: null,
        missedDaemon: null,
        gone: new Set(),
        now: later(ms),
      }).map(({ code }) => code);
    expect(at(240_000, "valid")).toEqual([]);
    expect(at(360_000, "valid")).toEqual(["waits_long"]);
    expect(at(3_600_000, "expired")).toEqual(["waits_long"]);
    expect(at(2 * 86_400_000, "expired")).toEqual(["end_unlogged", "waits_long"]);
    waiter.kill("SIGKILL");
    await waiter.done;
  });
});

it("explains everything that may need a person in docs/WATCHING.md", () => {
  const page = fs.readFileSync(path.join(ROOT, "docs/WATCHING.md"), "utf8");
  const explained = [...page.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, code]) => code);
  const source = ["findings", "holder-findings"]
    .map((name) => fs.readFileSync(path.join(ROOT, `src/features/watch/${name}.ts`), "utf8"))
    .join("\n");
  const given = [...source.matchAll(/code: "([a-z_]+)"/g)].map(([, code]) => code);
  expect(given.length).toBeGreaterThan(5);
  expect(explained.sort()).toEqual(given.sort());
});

describe("status --watch", () => {
  it("prints again only when something changed, and ends well on Ctrl-C", async () => {
    await repo.prepare("agent:a", "init");
    const before = pictureOf(repo.root);
    const watching = repo.start("agent:a", ["status", "--watch", "--interval", "1"]);
    const snapshots = () => watching.stdout.split("\n\n").length;
    await until("it has begun", () => watching.stdout.includes("nothing needs"));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(snapshots()).toBe(1);
    expect(pictureOf(repo.root)).toEqual(before);
    await repo.prepare("agent:b", "lock", "acquire", "x");
    await until("the lease is shown", () => watching.stdout.includes("file:x"));
    watching.kill("SIGINT");
    const ran = await watching.done;
    expect(ran).toMatchObject({ status: 0, stderr: "" });
    expect(ran.stdout).not.toContain("\x1b");
  });

  it("is JSON Lines with --json", async () => {
    const watching = repo.start("agent:a", ["status", "--watch", "--json"]);
    const last = () => JSON.parse(watching.stdout.trimEnd().split("\n").at(-1) || "{}");
    await until("it has begun", () => watching.stdout.endsWith("\n"));
    await repo.prepare("agent:b", "lock", "acquire", "x");
    await until("the lease is shown", () => last().data.leases.length === 1);
    watching.kill("SIGTERM");
    expect((await watching.done).status).toBe(0);
  });

  it("draws in place on a terminal, however narrow, and gives the terminal back", async () => {
    needTool("script");
    await repo.prepare("agent:a", "lock", "acquire", "a-file-with-quite-a-long-name.ts");
    const script = `stty cols 40 rows 4; echo $$ >pid; exec "$PROGRAM" status --watch`;
    const env = { PROGRAM, COTENANT_AGENT_ID: "agent:a", NO_COLOR: "1", TERM: "xterm" };
    const watching = start(["script", "-qec", script, "/dev/null"], { cwd: repo.root, env });
    await until("it has drawn", () => watching.stdout.includes("\x1b[J"));
    process.kill(Number(fs.readFileSync(path.join(repo.root, "pid"), "utf8")), "SIGINT");
    const { status, stdout } = await watching.done;
    expect(status).toBe(0);
    expect(stdout.startsWith("\x1b[?1049h\x1b[?25l")).toBe(true);
    expect(stdout.endsWith("\x1b[?25h\x1b[?1049l")).toBe(true);
    const drawn = stdout.slice("\x1b[?1049h\x1b[?25l".length).split("\x1b[J")[0]!;
    const lines = drawn.replaceAll(/\x1b\[[HK]/g, "").split("\r\n");
    expect(lines).toHaveLength(4);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(40);
    expect(drawn).not.toMatch(/\x1b\[\d+m/);
  });

  it("refuses an interval that makes no sense", async () => {
    expectRefused(await repo.run("agent:a", "status", "--watch", "--interval", "0"), 64, "E_USAGE");
    expectRefused(await repo.run("agent:a", "status", "--interval", "5"), 64, "E_USAGE");
  });
});

describe("a line on a narrow screen", () => {
  it("is cut by what is seen, and its colours are ended", () => {
    expect(sizeOf({ columns: 0, rows: 0 })).toEqual({ columns: 80, rows: 24 });
    expect(sizeOf({ columns: 120, rows: 50 })).toEqual({ columns: 120, rows: 50 });
    expect(cutTo("short", 10)).toBe("short");
    expect(cutTo("exactly ten", 11)).toBe("exactly ten");
    expect(cutTo("\x1b[2mdim and long\x1b[0m", 5)).toBe("\x1b[2mdim …\x1b[0m");
    expect(cutTo("\x1b[1mfits\x1b[0m", 4)).toBe("\x1b[1mfits\x1b[0m");
  });
});
