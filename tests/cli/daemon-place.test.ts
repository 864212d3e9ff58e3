import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { startTimeOf } from "../../src/platform/node/processes";
import { layoutOf } from "../../src/store/layout";
import { afterEveryTest } from "../support/after-tests";
import { type DaemonRecordJson, isGone, recordFile, recordOf, startDaemon } from "../support/daemon";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

const run = (where: TestRepo, agent: string, ...args: string[]) =>
  where.start(agent, [...args, "--json"]).done;
const keys = (where: TestRepo) =>
  where
    .log()
    .filter(({ event_type: type }) => type === "claim.acquired")
    .flatMap(({ payload }) => payload.leases.map(({ key, agent_id }) => `${key} ${agent_id}`));

/** Whatever becomes of its repository, it ends with the test. */
const daemons: DaemonRecordJson[] = [];
afterEveryTest(() => {
  for (const { pid, start_time } of daemons.splice(0))
    if (startTimeOf(pid) === start_time) process.kill(pid, "SIGKILL");
});
async function running(where: TestRepo): Promise<DaemonRecordJson> {
  const record = await startDaemon(where);
  daemons.push(record);
  return record;
}

/** Another repository where this one was, and this one elsewhere. */
function movedAway(): { readonly moved: TestRepo; readonly fresh: TestRepo } {
  const aside = `${repo.root}-moved`;
  fs.renameSync(repo.root, aside);
  return { moved: TestRepo.of(aside), fresh: TestRepo.make(repo.root) };
}

describe("a daemon whose repository is moved", () => {
  it("grants nothing in whatever is put in its place, and ends; its clients go on", async () => {
    const daemon = await running(repo);
    const { moved, fresh } = movedAway();
    expect((await run(fresh, "human:me", "lock", "acquire", "resource:other")).status).toBe(0);
    // Its record lies in the moved one, and fits it.
    expect((await run(moved, "agent:one", "lock", "acquire", "resource:db")).status).toBe(0);
    const second = await moved.start("agent:two", ["lock", "acquire", "resource:db", "--json"], {
      env: { COTENANT_NO_DAEMON: "1" },
    }).done;
    expect(second.error.code).toBe("E_LOCK_CONFLICT");
    expect(keys(moved)).toEqual(["resource:db agent:one"]);
    expect(keys(fresh)).toEqual(["resource:other human:me"]);
    await isGone(daemon);
  });

  it("is not asked where nothing is left, and nobody fails for that", async () => {
    const daemon = await running(repo);
    const aside = `${repo.root}-moved`;
    fs.renameSync(repo.root, aside);
    expect((await run(TestRepo.of(aside), "agent:one", "lock", "acquire", "resource:db")).status).toBe(0);
    await isGone(daemon);
  });

  it("takes nothing of the one that came after it", async () => {
    const first = await running(repo);
    const { moved, fresh } = movedAway();
    const second = await running(fresh);
    await run(moved, "agent:one", "lock", "acquire", "resource:db");
    await isGone(first);
    expect(recordOf(fresh)).toEqual(second);
    expect((await run(fresh, "human:me", "daemon", "status")).data["state"]).toBe("running");
    expect((await run(fresh, "human:me", "daemon", "stop")).data).toMatchObject({ pid: second.pid });
  });
});

describe("what others may put where a daemon writes", () => {
  const place = (ending: string) => recordFile(repo).replace(/json$/, ending);

  it.each(["symbolic", "hard"])("a %s link for its log leads nowhere", async (kind) => {
    const victim = path.join(repo.root, "victim");
    fs.writeFileSync(victim, "# mine\n");
    fs.mkdirSync(path.dirname(place("log")), { recursive: true });
    if (kind === "hard") fs.linkSync(victim, place("log"));
    else fs.symlinkSync(victim, place("log"));
    await running(repo);
    expect((await run(repo, "human:me", "daemon", "stop")).status).toBe(0);
    expect(fs.readFileSync(victim, "utf8")).toBe("# mine\n");
  });

  it("a pipe for its log or its record keeps nobody", async () => {
    fs.mkdirSync(path.dirname(place("log")), { recursive: true });
    execFileSync("mkfifo", [place("log")]);
    await running(repo);
    expect((await run(repo, "human:me", "daemon", "stop")).status).toBe(0);
    execFileSync("mkfifo", [place("json")]);
    const granted = await run(repo, "agent:one", "lock", "acquire", "resource:db");
    const { data } = await run(repo, "human:me", "daemon", "status");
    // The tests' own upkeep reads it, too.
    fs.rmSync(place("json"));
    expect([granted.status, data["state"]]).toEqual([0, "none"]);
  });

  it("a link for its folder is followed by nobody", async () => {
    await run(repo, "human:me", "lock", "status");
    const elsewhere = path.join(repo.root, "elsewhere");
    fs.mkdirSync(elsewhere);
    fs.mkdirSync(repo.control, { recursive: true });
    fs.symlinkSync(elsewhere, path.dirname(place("log")));
    const started = await repo.start("human:me", ["daemon", "run", "--json"]).done;
    expect(started.error).toMatchObject({ code: "E_PERMISSION" });
    expect(fs.readdirSync(elsewhere)).toEqual([]);
  });

  it("a link for a file of the store leads nowhere", async () => {
    await run(repo, "agent:one", "lock", "acquire", "resource:db");
    const victim = path.join(repo.root, "victim");
    fs.writeFileSync(victim, "# mine\n");
    const mutex = layoutOf(repo.control).mutex;
    fs.rmSync(mutex);
    fs.symlinkSync(victim, mutex);
    const asked = await run(repo, "agent:two", "lock", "acquire", "resource:other");
    expect(asked.status).not.toBe(0);
    expect(fs.readFileSync(victim, "utf8")).toBe("# mine\n");
  });

  it("in a shared repository, others cannot replace its files", async () => {
    repo.git("config", "core.sharedRepository", "group");
    await running(repo);
    expect(fs.statSync(path.dirname(place("log"))).mode & 0o1000).toBe(0o1000);
  });

  it("a record that names somebody else's process ends nobody but who has the lock", async () => {
    const record = await running(repo);
    const bystander = spawn("sleep", ["60"]);
    // Stopped, it does not answer.
    process.kill(record.pid, "SIGSTOP");
    const said = JSON.parse(fs.readFileSync(recordFile(repo), "utf8")) as Record<string, unknown>;
    const startTime = startTimeOf(bystander.pid!);
    fs.writeFileSync(
      recordFile(repo),
      JSON.stringify({ ...said, pid: bystander.pid, start_time: startTime }),
    );
    const stopped = await run(repo, "human:me", "daemon", "stop");
    expect(stopped.data).toMatchObject({ was_running: true, pid: record.pid });
    await isGone(record);
    expect(startTimeOf(bystander.pid!)).toBe(startTime);
    bystander.kill("SIGKILL");
    await until("it is gone", () => startTimeOf(bystander.pid!) === null);
  });
});
