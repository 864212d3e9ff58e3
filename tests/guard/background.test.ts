import { execFileSync } from "node:child_process";
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

const jobs: number[] = [];
/** As harnesses do it: the shell ends, what it has started goes on, and nobody is left to answer for it. */
function leaveRunning(cwd: string): number {
  const words = ["-c", "sleep 60 >/dev/null 2>&1 & echo $!"];
  const pid = Number(execFileSync("sh", words, { cwd, encoding: "utf8" }));
  jobs.push(pid);
  return pid;
}

async function endJob(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  await until("the job is gone", () => startTimeOf(pid) === null);
}

afterEach(() => {
  for (const pid of jobs.splice(0)) if (startTimeOf(pid) !== null) process.kill(pid, "SIGKILL");
});

const SERVER = "node server.js &";

/** Bob's command has been answered, and goes on in the background; Ada has held a.txt for a while. */
async function serverRuns(cwd = repo.root): Promise<number> {
  await ada().write("a.txt");
  clock.aheadMs += 900_000;
  expect(await bob().shell(SERVER)).toEqual(SILENT);
  const pid = leaveRunning(cwd);
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
    await repo.prepare("human:pat", "lock", "acquire", "a.txt", "--ttl", "86400");
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
