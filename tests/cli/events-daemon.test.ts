import { beforeEach, describe, expect } from "vitest";
import { type DaemonRecordJson, freezeDaemon, startDaemon } from "../support/daemon";
import { oneIn } from "../support/one-in";
import { type Running, until } from "../support/program";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
let daemon: DaemonRecordJson;
beforeEach(async () => {
  repo = TestRepo.make();
  await repo.prepare("agent:a", "lock", "acquire", "before");
  daemon = await startDaemon(repo);
});

const followers = async () => {
  const { data } = await repo.start("agent:asker", ["daemon", "status", "--json"]).done;
  return (data["daemon"] as { memory: { followers: number } }).memory.followers;
};
/** Once the daemon tells this many of them. */
const told = (many: number) => until("the daemon tells them", async () => (await followers()) === many);
const linesOf = ({ stdout }: Running) => stdout.split("\n").slice(0, -1);
let next = 0;
const write = () => repo.prepare("agent:b", "lock", "acquire", `file-${next++}`);

async function ended(following: Running): Promise<string> {
  following.kill("SIGINT");
  const { status, stdout, stderr } = await following.done;
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

describe("events --follow with a daemon", () => {
  it.each(["SIGKILL", "SIGSTOP"] as const)("says the same, to the byte, through a %s", async (signal) => {
    const following = [1, 2, 3].map(() => repo.start("agent:a", ["events", "--follow", "--json"]));
    await told(3);
    await write();
    await until("it is shown", () => following.every((each) => linesOf(each).length === 2));
    if (signal === "SIGSTOP") await freezeDaemon(repo, daemon);
    else process.kill(daemon.pid, signal);
    await repo.run("agent:b", "lock", "acquire", "after", "--json");
    await until("it is shown without the daemon", () =>
      following.every((each) => linesOf(each).length === 3),
    );
    if (signal === "SIGSTOP") process.kill(daemon.pid, "SIGCONT");
    await write();
    await until("the last one is shown", () => following.every((each) => linesOf(each).length === 4));
    const expected = (await repo.ask("agent:a", "events")).stdout;
    for (const each of following) expect(await ended(each)).toBe(expected);
  });

  it("shows only what fits, and nothing of before --since", async () => {
    const since = repo.start("agent:a", ["events", "--follow", "--json", "--since", "0s"]);
    const agent = repo.start("agent:a", ["events", "--follow", "--json", "--agent", "agent:c"]);
    await told(2);
    await repo.prepare("agent:c", "lock", "acquire", "mine");
    await until("both show it", () => [since, agent].every((each) => each.stdout.includes("file:mine")));
    for (const each of [since, agent]) expect(await ended(each)).not.toContain("file:before");
  });

  it("is not asked for by whoever wants no daemon", async () => {
    const env = { COTENANT_NO_DAEMON: "1" };
    const following = repo.start("agent:a", ["events", "--follow", "--json"], { env });
    await until("it has begun", () => linesOf(following).length === 1);
    await write();
    await until("it is shown", () => linesOf(following).length === 2);
    expect(await followers()).toBe(0);
    await ended(following);
  });
});

describe("status --watch with a daemon", () => {
  it("is woken by it, and goes on without it", async () => {
    const args = ["status", "--watch", "--interval", "3600", "--json"];
    const watching = repo.start("agent:a", args);
    await told(1);
    await write();
    await until("the lease is shown", () => watching.stdout.includes("file:file-"));
    process.kill(daemon.pid, "SIGKILL");
    await repo.prepare("agent:b", "lock", "acquire", "after");
    await until("the next one is shown", () => watching.stdout.includes("file:after"));
    await ended(watching);
  });
});
