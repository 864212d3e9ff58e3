import * as fs from "node:fs";
import { describe, expect } from "vitest";
import { isAlive } from "../support/alive";
import {
  agentScript,
  agentsOf,
  alike,
  dispatch,
  dispatchRepo,
  leases,
  read,
  startDispatch,
} from "../support/dispatch";
import { isClean, LANDER } from "../support/landing";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { amount } from "../support/sample";

const it = oneIn(5);

describe("S74: dispatch with four workers on twenty issues", () => {
  it("works on each of them once, at most four at a time", async () => {
    const { repo, ids } = dispatchRepo(...alike(amount(20, 2)));
    const { command, room } = agentScript(
      "echo $COTENANT_ISSUE_ID $COTENANT_WORKER >> $ROOM/worked\nmkdir $ROOM/at-work-$COTENANT_WORKER || exit 1\necho work > w-$COTENANT_ISSUE_ID\nrmdir $ROOM/at-work-$COTENANT_WORKER\n",
    );
    const ended = await dispatch(repo, ["--agents", "4", "--command", command, "--retries", "0"]);
    expect(ended.ran.status, String(ended.ran)).toBe(0);
    const worked = read(room, "worked").trim().split("\n");
    expect(worked.map((line) => line.split(" ")[0]).sort()).toEqual([...ids].sort());
    expect(new Set(worked.map((line) => line.split(" ")[1])).size).toBe(4);
    expect(ended.report).toMatchObject({ left: 0, ended_by: null, offline_claims: 0 });
    for (const issue of ended.report.issues) {
      expect(issue).toMatchObject({ end: "done", attempts: 1 });
      expect(repo.git("show", `${issue.branch}:w-${issue.issue_id}`)).toBe("work\n");
    }
    expect(await leases(repo)).toEqual([]);
    expect(
      repo.logOf(`issue:${ids[0]}`).filter(({ event_type }) => event_type === "claim.acquired").length,
    ).toBe(1);
  });

  for (const signal of ["SIGINT", "SIGTERM"] as const)
    it(`leaves no child, no lease and no half worktree after ${signal}, and goes on when it is started again`, async () => {
      const { repo, ids } = dispatchRepo(...alike(5));
      const { command, room } = agentScript(
        `echo work > w-$COTENANT_ISSUE_ID
sleep 300 & echo $$ $! > $ROOM/pids-$COTENANT_WORKER
[ -e $ROOM/quick ] || wait
`,
      );
      const args = ["--agents", "4", "--command", command];
      const run = startDispatch(repo, args);
      const pids = () => fs.readdirSync(room).filter((name) => name.startsWith("pids-"));
      await until("four agents are at work", () => pids().length === 4);
      run.running.kill(signal);
      const ended = await run.done();
      expect(ended.ran.status, "it ends as any program that gets this signal").toBe(null);
      expect(ended.ran.stderr).toContain("nothing is held");
      for (const name of pids())
        for (const pid of read(room, name).trim().split(" ")) expect(isAlive(Number(pid)), name).toBe(false);
      expect(agentsOf(repo)).toEqual([]);
      expect(await leases(repo)).toEqual([]);
      expect(ended.of("ended").map(({ data }) => data["end"])).toEqual(Array(4).fill("interrupted"));
      for (const line of repo.git("worktree", "list", "--porcelain").split("\n\n").slice(1))
        if (line.trim() !== "") expect(line).toContain("detached");
      for (const { data } of ended.of("worker"))
        expect(isClean(repo.at(String(data["worktree"])))).toBe(true);

      fs.writeFileSync(`${room}/quick`, "");
      const again = await dispatch(repo, args);
      expect(again.report.issues.map(({ issue_id }) => issue_id).sort()).toEqual([...ids].sort());
      expect(
        again.report.issues.every(({ end }) => end === "done"),
        String(again.ran),
      ).toBe(true);
      expect((await repo.runHere(LANDER, "dispatch", "status")).stdout).not.toContain("not ended");
    });
});

describe("S75: a worker whose lease is evicted", () => {
  it("has its child stopped before it can publish, its work kept, and goes on with the next issue", async () => {
    const { repo, ids } = dispatchRepo({ priority: "critical", title: "First" }, { title: "Second" });
    const [first, second] = ids as [string, string];
    // It does not care for TERM, and would publish once it may.
    const { command, room } = agentScript(`echo work > w-$COTENANT_ISSUE_ID
[ $COTENANT_ISSUE_ID = ${first} ] || exit 0
trap '' TERM
echo $$ > $ROOM/pid
while ! [ -e $ROOM/go ]; do sleep 0.05; done
cotenant publish --message published --to main || git push . HEAD:main
touch $ROOM/published
`);
    const run = startDispatch(repo, ["--command", command]);
    await until("the agent is at work", () => fs.existsSync(`${room}/pid`));
    await repo.prepare("human:boss", "claim", "force-evict", first, "--reason", "needed elsewhere");
    await until("its child is stopped", () => !isAlive(Number(read(room, "pid"))), 15_000);
    fs.writeFileSync(`${room}/go`, "");
    const ended = await run.done();
    expect(ended.ran.status).toBe(2);
    expect(fs.existsSync(`${room}/published`)).toBe(false);
    const [lost, next] = ended.report.issues;
    expect(lost).toMatchObject({
      issue_id: first,
      end: "lost",
      why: expect.stringContaining("needed elsewhere"),
    });
    expect(next).toMatchObject({ issue_id: second, end: "done" });
    // Nothing of it is committed or on main, and nothing of it is gone.
    expect(repo.git("log", "--format=%s", "main", "--", `w-${first}`)).toBe("");
    const place = `${room}/restored`;
    await repo.runHere(LANDER, "restore", lost!.snapshot_id!, "--path", place);
    expect(read(place, `w-${first}`)).toBe("work\n");
    expect(agentsOf(repo)).toEqual([]);
    expect(await leases(repo)).toEqual([]);
  });
});
