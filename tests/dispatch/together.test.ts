import * as fs from "node:fs";
import { describe, expect } from "vitest";
import { isAlive } from "../support/alive";
import {
  agentScript,
  agentsOf,
  alike,
  dispatch,
  dispatchRepo,
  issueOn,
  landings,
  leases,
  read,
  startDispatch,
  WORKS,
} from "../support/dispatch";
import { LANDER } from "../support/landing";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";

const it = oneIn(11);

describe("two dispatchers at once in one repository", () => {
  it("share the issues: workers of their own, each issue landed and closed once", async () => {
    const { repo, ids } = dispatchRepo(...alike(6));
    const { command, room } = agentScript(`echo $COTENANT_ISSUE_ID $COTENANT_AGENT_ID >> $ROOM/worked
sleep 0.2; ${WORKS}
`);
    const args = ["--agents", "2", "--command", command, "--land"];
    const ended = await Promise.all([dispatch(repo, args), dispatch(repo, args)]);
    const said = ended.map(({ ran }) => String(ran)).join("\n");
    const worked = read(room, "worked").trim().split("\n");
    expect(worked.map((line) => line.split(" ")[0]).sort(), said).toEqual([...ids].sort());
    const names = ended.map(({ lines }) =>
      lines.filter(({ event }) => event === "worker").map(({ data }) => data["agent_id"]),
    );
    expect(new Set(names.flat()).size, "no worker is of both").toBe(4);
    for (const { report } of ended)
      for (const { issue_id, short_id, end } of report.issues) {
        expect(end, said).toBe("done");
        expect(issueOn(repo, issue_id)).toMatchObject({ state: "done" });
        expect(landings(repo, short_id)).toMatchObject({
          work: [expect.any(String)],
          closed: [expect.any(String)],
        });
      }
    expect(await leases(repo)).toEqual([]);
  });

  it("a worker's place is not taken while an agent of its last run still lives there", async () => {
    const { repo } = dispatchRepo({}, {});
    // It leaves its group, and says nothing of where it comes from: nobody ends it with its dispatcher.
    const { command, room } = agentScript(`[ -e $ROOM/pid ] && { ${WORKS}; exit 0; }
env -i setsid sleep 300 & echo $! > $ROOM/part; mv $ROOM/part $ROOM/pid; wait
`);
    const run = startDispatch(repo, ["--command", command]);
    const pid = await until(
      "the agent is at work",
      () => fs.existsSync(`${room}/pid`) && Number(read(room, "pid")),
    );
    run.running.kill("SIGKILL");
    await run.done();
    try {
      const next = await dispatch(repo, ["--command", command]);
      expect(next.of("worker").map(({ data }) => data["agent_id"])).toEqual(["agent:worker-2"]);
      expect(next.only).toMatchObject({ end: "done" });
    } finally {
      for (const one of [pid, ...agentsOf(repo)]) process.kill(one, "SIGKILL");
    }
    await until("it is gone", () => !isAlive(pid));
  });
});

describe("a dispatcher that is stopped for longer than its claims last", () => {
  it("finds them lost when it goes on, ends their agents, keeps their work and takes nothing twice", async () => {
    const { repo, ids } = dispatchRepo({});
    const [id] = ids as [string];
    const { command, room } = agentScript(`${WORKS}; sleep 300 & echo $! > $ROOM/pid; wait`);
    const env = { COTENANT_COORDINATION_DEFAULT_TTL_SECS: "4" };
    const run = startDispatch(repo, ["--command", command], { env });
    await until("the agent is at work", () => fs.existsSync(`${room}/pid`));
    run.running.kill("SIGSTOP");
    await until(
      "somebody else has the issue",
      async () => (await repo.askHere("agent:other", "claim", "acquire", id)).status === 0,
    );
    run.running.kill("SIGCONT");
    const ended = await run.done();
    expect(ended.only, String(ended.ran)).toMatchObject({ end: "lost", snapshot_id: expect.any(String) });
    expect(isAlive(Number(read(room, "pid")))).toBe(false);
    expect(await leases(repo)).toMatchObject([{ agent_id: "agent:other", key: `issue:${id}` }]);
    expect(repo.git("log", "--format=%s", ended.only.branch!)).not.toContain("Some work");
  });
});

describe("what others see of a run", () => {
  it("status tells what each worker does; logs follows its output; stop ends it after what is under way", async () => {
    const { repo, ids } = dispatchRepo(...alike(2));
    const { command, room } = agentScript(`echo hello from $COTENANT_ISSUE_ID
printf '\\033[31mred\\033[0m\\n'
touch $ROOM/begun
while ! [ -e $ROOM/go ]; do sleep 0.05; done
echo bye; ${WORKS}
`);
    const run = startDispatch(repo, ["--command", command]);
    await until("the agent is at work", () => fs.existsSync(`${room}/begun`));
    const issue = String(run.of("working")[0]!.issue_id);
    const status = (await repo.runHere(LANDER, "dispatch", "status")).stdout;
    expect(status).toContain("worker");
    expect(status).toContain("Work ");
    const following = repo.start(LANDER, ["dispatch", "logs", issue, "--follow"]);
    await until("the log is followed", () => following.stdout.includes("hello from"));
    const stopped = await repo.runHere(LANDER, "dispatch", "stop");
    expect(stopped.status, String(stopped)).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(agentsOf(repo), "drained, not stopped").not.toEqual([]);
    fs.writeFileSync(`${room}/go`, "");
    const ended = await run.done();
    expect(ended.only).toMatchObject({ issue_id: issue, end: "done" });
    expect(ended.report).toMatchObject({ left: 1, ended_by: "drain" });
    const followed = await following.done;
    expect(followed.stdout).toContain("bye");
    expect(followed.stdout, "nothing that moves the cursor or colours").not.toContain("\u001b");
    const paths = (await repo.runHere(LANDER, "dispatch", "logs", issue, "--paths")).stdout.trim();
    expect(paths).toBe(ended.only.log);
    const other = ids.find((id) => id !== issue)!;
    expect((await repo.runHere(LANDER, "dispatch", "logs", other)).status).not.toBe(0);
    expect((await repo.runHere(LANDER, "dispatch", "stop")).status, "none runs any more").not.toBe(0);
  });

  it("stop --now ends the agents, keeps their work on their branches and gives their claims back", async () => {
    const { repo, ids } = dispatchRepo({});
    const { command, room } = agentScript(`${WORKS}; sleep 300 & echo $! > $ROOM/pid; wait`);
    const run = startDispatch(repo, ["--command", command, "--wait"]);
    await until("the agent is at work", () => fs.existsSync(`${room}/pid`));
    await repo.runHere(LANDER, "dispatch", "stop", "--now");
    const ended = await run.done();
    const [only] = ended.report.issues;
    expect(only).toMatchObject({ end: "interrupted" });
    expect(repo.git("show", `${only!.branch}:w-${ids[0]}`)).toBe("work\n");
    expect(isAlive(Number(read(room, "pid")))).toBe(false);
    expect(await leases(repo)).toEqual([]);
  });

  it("each line of what it prints is one JSON document, the report the last of them", async () => {
    const { repo } = dispatchRepo({});
    const { ran } = await dispatch(repo, ["--command", WORKS]);
    const documents = ran.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(
      documents.slice(0, -1).every((one) => typeof one.event === "string" && typeof one.at === "string"),
    ).toBe(true);
    expect(documents.at(-1)).toMatchObject({ ok: true, data: { issues: [{ end: "done" }] } });
    const quiet = await repo.runHere(LANDER, "dispatch", "--command", WORKS, "--quiet");
    expect(quiet.stdout).toBe("");
  });

  it("a terminal shows who does what, drawn again in place", async () => {
    const { repo } = dispatchRepo({ title: "Mend the login" });
    const { run } = await import("../support/program");
    const { PROGRAM } = await import("../support/program");
    const line = `${process.execPath} ${PROGRAM} dispatch --command 'sleep 2; ${WORKS}'`;
    const env = { COTENANT_AGENT_ID: LANDER, TERM: "xterm", COLUMNS: "100" };
    const shown = await run(["script", "--quiet", "--return", "--command", line, "/dev/null"], {
      cwd: repo.root,
      env,
    });
    expect(shown.status, String(shown)).toBe(0);
    expect(shown.stdout).toContain("Mend the login");
    expect(shown.stdout).toContain("\u001b[J");
    expect(shown.stdout).toContain("1 done");
    expect(shown.stdout).toMatch(
      /next: land what is done: cotenant land add work\/\w+-mend-the-login, then cotenant land run/,
    );
    expect(shown.stdout).not.toContain('"event"');
  });
});
