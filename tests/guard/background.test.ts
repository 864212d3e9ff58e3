import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startTimeOf } from "../../src/platform/node/processes";
import { GuardedAgent, SILENT, TestClock, toldIn } from "../support/guard";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

let repo: TestRepo;
let clock: TestClock;
beforeEach(() => {
  repo = TestRepo.make();
  for (const file of ["a.txt", "b.txt"]) repo.write(file, "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
  repo.git("add", "a.txt", "b.txt");
  repo.git("commit", "--quiet", "--message", "first");
  clock = new TestClock();
});

const ada = () => new GuardedAgent(repo, { session: "aaaaaaaa-1", clock });
const bob = () => new GuardedAgent(repo, { session: "bbbbbbbb-2", clock });
const violated = () => repo.log().filter(({ event_type: type }) => type === "guard.violated");

/** What each harness sets for the commands that it runs, as was seen with its own program. */
const CLAUDE = { CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: "bbbbbbbb-2" };

const jobs: number[] = [];
/** As harnesses do it: the shell ends, what it has started goes on, and nobody is left to answer for it. */
function leaveRunning(cwd: string, env: Readonly<Record<string, string>> | null = CLAUDE): number {
  const words = ["-c", `${env === null ? "env -i " : ""}sleep 60 >/dev/null 2>&1 & echo $!`];
  const pid = Number(execFileSync("sh", words, { cwd, encoding: "utf8", env: { PATH: PATH!, ...env } }));
  jobs.push(pid);
  return pid;
}
const { PATH } = process.env;

async function endJob(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  await until("the job is gone", () => startTimeOf(pid) === null);
}

afterEach(() => {
  for (const pid of jobs.splice(0)) if (startTimeOf(pid) !== null) process.kill(pid, "SIGKILL");
});

const SERVER = "node server.js &";

/** Bob's command has been answered, and goes on in the background; Ada has held a.txt for a while. */
async function serverRuns(cwd = repo.root, env: Readonly<Record<string, string>> = CLAUDE): Promise<number> {
  await ada().write("a.txt");
  clock.aheadMs += 900_000;
  expect(await bob().shell(SERVER)).toEqual(SILENT);
  const pid = leaveRunning(cwd, env);
  expect(await bob().afterShell(SERVER)).toEqual(SILENT);
  clock.aheadMs += 900_000;
  return pid;
}

describe("what a command does in the background", () => {
  it("is on record at the next event of its session, and its agent hears which command it was", async () => {
    await serverRuns();
    repo.write("a.txt", "trespass\n");
    const told = toldIn(await bob().afterShell("true"));
    expect(told).toContain(
      `a.txt changed while "node server.js &", a command of yours, ran in the background`,
    );
    expect(told).toContain(`${ada().agentId} holds it`);
    expect(violated()).toHaveLength(1);
    expect(violated()[0]!.payload).toMatchObject({
      command: SERVER,
      files: [{ path: "a.txt", agent_id: bob().agentId, owner: ada().agentId }],
    });
    // Once for each time.
    expect(await bob().afterShell("true")).toEqual(SILENT);
    clock.aheadMs += 900_000;
    repo.write("a.txt", "trespass again\n");
    expect(toldIn(await bob().afterShell("true"))).toContain("a.txt changed");
  });

  it.each(["prompt", "stop", "end", "failure"] as const)(
    "is on record at the session's %s",
    async (moment) => {
      await serverRuns();
      repo.write("a.txt", "trespass\n");
      await bob().send(moment);
      expect(violated()).toHaveLength(1);
    },
  );

  it("is looked at for the last time when nothing of it is left", async () => {
    const pid = await serverRuns();
    repo.write("a.txt", "trespass\n");
    await endJob(pid);
    expect(toldIn(await bob().afterShell("true"))).toContain("a.txt changed");
    clock.aheadMs += 900_000;
    repo.write("a.txt", "somebody with an editor\n");
    expect(await bob().afterShell("true")).toEqual(SILENT);
    expect(violated()).toHaveLength(1);
  });

  it("is nothing where the command left nothing running: what changes later is nobody's fault", async () => {
    await ada().write("a.txt");
    clock.aheadMs += 900_000;
    await bob().shell("node build.js");
    await bob().afterShell("node build.js");
    repo.write("a.txt", "somebody with an editor\n");
    for (const moment of ["after", "prompt", "stop", "end"] as const) await bob().send(moment);
    expect(violated()).toEqual([]);
  });

  it("is not looked for in what stands elsewhere", async () => {
    await serverRuns(scratch());
    repo.write("a.txt", "somebody with an editor\n");
    expect(await bob().afterShell("true")).toEqual(SILENT);
    expect(violated()).toEqual([]);
  });

  it.each([
    ["another session of the same harness", { ...CLAUDE, CLAUDE_CODE_SESSION_ID: "cccccccc-3" }],
    ["another harness", { CODEX_THREAD_ID: "bbbbbbbb-2" }],
    ["a person's terminal", { TERM: "xterm" }],
  ])("is not looked for in what %s has left running in the same worktree", async (_, env) => {
    await serverRuns(repo.root, env);
    repo.write("a.txt", "somebody else\n");
    expect(await bob().afterShell("true")).toEqual(SILENT);
    expect(violated()).toEqual([]);
  });

  it("is looked at for ten minutes more where it cannot be told whose it is that runs", async () => {
    // Without the session, as Gemini CLI has it; and without anything.
    for (const env of [{ CLAUDECODE: "1" }, null]) {
      await ada().write("a.txt");
      clock.aheadMs += 900_000;
      await bob().shell(SERVER);
      const pid = leaveRunning(repo.root, env);
      await bob().afterShell(SERVER);
      clock.aheadMs += 540_000;
      const count = violated().length;
      repo.write("a.txt", `trespass ${clock.aheadMs}\n`);
      expect(toldIn(await bob().afterShell("true")), JSON.stringify(env)).toContain("a.txt changed");
      expect(violated()).toHaveLength(count + 1);
      clock.aheadMs += 120_000;
      expect(await bob().afterShell("true")).toEqual(SILENT);
      clock.aheadMs += 900_000;
      repo.write("a.txt", `somebody else ${clock.aheadMs}\n`);
      expect(await bob().afterShell("true")).toEqual(SILENT);
      expect(violated()).toHaveLength(count + 1);
      await endJob(pid);
    }
  });

  it("is not what another session in the same process of the harness runs", async () => {
    // Starts one child for each id that it is told, and says its number.
    const script =
      "while read -r id; do CLAUDECODE=1 CLAUDE_CODE_SESSION_ID=$id sleep 60 >/dev/null & echo $!; done";
    const harness = spawn("sh", ["-c", script], { cwd: repo.root, stdio: ["pipe", "pipe", "ignore"] });
    jobs.push(harness.pid!);
    const said = createInterface({ input: harness.stdout })[Symbol.asyncIterator]();
    const child = async (session: string) => {
      harness.stdin.write(`${session}\n`);
      const pid = Number((await said.next()).value);
      jobs.push(pid);
      return pid;
    };
    const both = (session: string) => new GuardedAgent(repo, { session, clock, pid: harness.pid! });
    await ada().write("a.txt");
    clock.aheadMs += 900_000;
    await both("dddddddd-4").shell(SERVER);
    const own = await child("dddddddd-4");
    await child("eeeeeeee-5");
    await both("dddddddd-4").afterShell(SERVER);
    clock.aheadMs += 900_000;
    repo.write("a.txt", "trespass\n");
    expect(toldIn(await both("dddddddd-4").afterShell("true"))).toContain("a.txt changed");
    await endJob(own);
    await both("dddddddd-4").afterShell("true");
    clock.aheadMs += 900_000;
    repo.write("a.txt", "somebody else\n");
    expect(await both("dddddddd-4").afterShell("true")).toEqual(SILENT);
    expect(violated()).toHaveLength(1);
  });

  it("counts from the turn's end where the harness never says that a command is over", async () => {
    await ada().write("a.txt");
    clock.aheadMs += 900_000;
    await bob().shell(SERVER);
    repo.write("a.txt", "trespass\n");
    await bob().send("stop");
    expect(violated()).toHaveLength(1);
    clock.aheadMs += 900_000;
    repo.write("a.txt", "somebody with an editor\n");
    await bob().send("end");
    expect(violated()).toHaveLength(1);
  });

  it("is not what a command of the holder's has done meanwhile", async () => {
    await serverRuns();
    await ada().shell("npm run format");
    repo.write("a.txt", "formatted\n");
    // Under way, and over.
    expect(await bob().afterShell("true")).toEqual(SILENT);
    repo.write("a.txt", "formatted again\n");
    await ada().afterShell("npm run format");
    expect(await bob().afterShell("true")).toEqual(SILENT);
    expect(violated()).toEqual([]);
  });

  it("is not what the holder's tool writes later, after a person was asked", async () => {
    await serverRuns();
    await ada().write("a.txt");
    clock.aheadMs += 60_000;
    expect(await bob().afterShell("true")).toEqual(SILENT);
    repo.write("a.txt", "with leave\n");
    expect(await bob().afterShell("true")).toEqual(SILENT);
    expect(violated()).toEqual([]);
  });

  it("is not what a person writes who holds the file: they use editors", async () => {
    expect((await repo.ask("human:pat", "lock", "acquire", "a.txt", "--ttl", "86400")).status).toBe(0);
    clock.aheadMs += 900_000;
    await bob().shell(SERVER);
    leaveRunning(repo.root);
    await bob().afterShell(SERVER);
    clock.aheadMs += 900_000;
    repo.write("a.txt", "by Pat\n");
    expect(await bob().afterShell("true")).toEqual(SILENT);
    expect(violated()).toEqual([]);
  });

  it("is seen for files that others took only after it had begun", async () => {
    await bob().write("b.txt");
    expect(await bob().shell(SERVER)).toEqual(SILENT);
    leaveRunning(repo.root);
    await bob().afterShell(SERVER);
    await ada().write("a.txt");
    clock.aheadMs += 900_000;
    await bob().afterShell("true");
    clock.aheadMs += 900_000;
    repo.write("a.txt", "trespass\n");
    await bob().send("stop");
    expect(violated()).toHaveLength(1);
  });

  it("does not keep a command from being judged while another one of its session ends first", async () => {
    await ada().write("a.txt");
    clock.aheadMs += 900_000;
    await bob().shell("node one.js");
    await bob().shell("node two.js");
    await bob().afterShell("node two.js");
    clock.aheadMs += 900_000;
    repo.write("a.txt", "trespass\n");
    expect(toldIn(await bob().afterShell("node one.js"))).toContain("changed while your command ran");
    expect(violated()).toHaveLength(1);
  });
});
