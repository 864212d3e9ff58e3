import * as fs from "node:fs";
import { describe, expect } from "vitest";
import {
  agentScript,
  Dispatching,
  dispatchRepo,
  issueOn,
  leases,
  read,
  startDispatch,
  WORKS,
} from "../support/dispatch";
import { LANDER } from "../support/landing";
import { behindProxy, Machine, sharedIssues } from "../support/machines";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";

const it = oneIn(11);

const startAt = (machine: Machine, args: readonly string[], env: Record<string, string> = {}): Dispatching =>
  new Dispatching(
    machine.as("human:ada").start(["dispatch", ...args], { COTENANT_AGENT_ID: "human:ada", ...env }),
  );

/** Waits where the test has something to do in between. */
function waitingAgent(before = "") {
  return agentScript(`${before}
touch $ROOM/begun-$COTENANT_ATTEMPT
while ! [ -e $ROOM/go ]; do sleep 0.05; done
${WORKS}
`);
}

// One for each row of the table "Edge Cases: ExecutionLoop Integration".
describe("between claim and release", () => {
  it("the issue cannot be read after it was claimed: the work goes on from what is known, under a valid claim", async () => {
    const { repo, ids } = dispatchRepo({ title: "Readable" });
    const { command } = agentScript(
      `if [ $COTENANT_ATTEMPT = 1 ]; then echo broken > .cotenant/issues/$COTENANT_ISSUE_ID/issue.json; exit 1; fi
git checkout --quiet main -- .cotenant; ${WORKS}
`,
    );
    const ended = await startDispatch(repo, ["--command", command]).done();
    const { end } = ended.only;
    expect(["done", "given_back"], String(ended.ran)).toContain(end);
    // Whatever came of it: nothing is held, and the issue is as whole on main as it was.
    expect(await leases(repo)).toEqual([]);
    expect(issueOn(repo, ids[0]!)).toMatchObject({ title: "Readable" });
  });

  it("the claim is offline: it is told, counted, and confirmed later", async () => {
    const { hub, proxy, first } = await behindProxy(1);
    proxy.weather = { down: true };
    const ended = await startAt(first, ["--command", WORKS]).done();
    const [claimed] = ended.of("claimed");
    expect(claimed!.data, String(ended.ran)).toMatchObject({ success: true, offline: true, degraded: true });
    expect(claimed!.data["error"]).toEqual(expect.any(String));
    expect(claimed!.text).toContain("on this machine only");
    expect(ended.report).toMatchObject({ offline_claims: 1 });
    expect(ended.only).toMatchObject({ end: "done" });
    proxy.weather = {};
    const reconciled = await first.ask("sync", "--reconcile");
    expect(reconciled.data["conflicts"]).toEqual([]);
    // It was given back before any other machine could have heard of it.
    expect(hub.refs("refs/cotenant/claims/")).toEqual({});
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
    expect(first.state.offline_claims).toEqual([]);
  });

  it("somebody writes of the issue meanwhile: it is read again, and the next attempt knows", async () => {
    const { repo, ids } = dispatchRepo({});
    const { command, room } = waitingAgent(`cp "$COTENANT_PROMPT_FILE" $ROOM/prompt-$COTENANT_ATTEMPT
if [ $COTENANT_ATTEMPT = 1 ]; then touch $ROOM/first; while ! [ -e $ROOM/said ]; do sleep 0.05; done; exit 1; fi`);
    const run = startDispatch(repo, ["--command", command]);
    await until("the first attempt is under way", () => fs.existsSync(`${room}/first`));
    await repo.prepare("human:eve", "issue", "comment", ids[0]!, "Mind the umlauts");
    fs.writeFileSync(`${room}/said`, "");
    fs.writeFileSync(`${room}/go`, "");
    expect((await run.done()).only).toMatchObject({ end: "done", attempts: 2 });
    expect(read(room, "prompt-1")).not.toContain("Mind the umlauts");
    expect(read(room, "prompt-2")).toContain("Mind the umlauts");
  });

  it("the ledger cannot be pushed after the work, nor the release told: a warning, the work is done, and both go later", async () => {
    const { hub, proxy, first, ids } = await behindProxy(1);
    const { command, room } = waitingAgent();
    const run = startAt(first, ["--command", command]);
    await until("the agent is at work", () => fs.existsSync(`${room}/begun-1`));
    expect(hub.claim(ids[0]!)).toMatchObject({ status: "held", agent_id: "agent:worker-1" });
    proxy.weather = { down: true };
    fs.writeFileSync(`${room}/go`, "");
    const ended = await run.done();
    expect(ended.only, String(ended.ran)).toMatchObject({ end: "done" });
    expect(ended.notes).toContain("the ledger was not synced");
    expect((await first.askHere("claim", "list")).data.leases).toEqual([]);
    // Until the remote hears of it, others see the claim, and it runs out by itself.
    expect(hub.claim(ids[0]!)).toMatchObject({ status: "held" });
    proxy.weather = {};
    await first.ask("sync", "--reconcile");
    expect(hub.claim(ids[0]!)).toMatchObject({ status: "released" });
  });

  it("the ledger goes away between two issues: the next claim is local, and is reconciled", async () => {
    const { hub, proxy, first, ids } = await behindProxy(2);
    const { command, room } = waitingAgent("echo $COTENANT_ISSUE_ID >> $ROOM/order");
    const run = startAt(first, ["--command", command]);
    await until("the agent is at work", () => fs.existsSync(`${room}/begun-1`));
    proxy.weather = { down: true };
    fs.writeFileSync(`${room}/go`, "");
    const ended = await run.done();
    expect(ended.of("claimed").map(({ data }) => data["offline"])).toEqual([false, true]);
    expect(ended.report.issues.map(({ end }) => end)).toEqual(["done", "done"]);
    expect(ended.report.offline_claims).toBe(1);
    proxy.weather = {};
    expect((await first.ask("sync", "--reconcile")).data["conflicts"]).toEqual([]);
    const [one] = read(room, "order").split("\n");
    expect(Object.keys(hub.refs("refs/cotenant/claims/"))).toEqual([`refs/cotenant/claims/${one}`]);
    expect(hub.claim(one!)).toMatchObject({ status: "released" });
    expect(first.state.offline_claims).toEqual([]);
    expect(ids).toContain(one);
  });

  it("the dispatcher dies after the claim: the claim stays until it runs out; then anybody can have it", async () => {
    const { repo, ids } = dispatchRepo({});
    const { command, room } = waitingAgent();
    const run = startDispatch(repo, ["--command", command]);
    await until("the agent is at work", () => fs.existsSync(`${room}/begun-1`));
    run.running.kill("SIGKILL");
    await run.done();
    const [lease] = await leases(repo);
    expect(lease).toMatchObject({ key: `issue:${ids[0]}`, agent_id: "agent:worker-1" });
    expect((await repo.askHere("agent:other", "claim", "acquire", ids[0]!)).status).not.toBe(0);
    expect((await repo.runHere(LANDER, "dispatch", "status")).stdout).toContain("begun, and not ended");
    const later = await repo.askAt(lease!.ttl_secs + 60, "agent:other", "claim", "acquire", ids[0]!);
    expect(later.lease.agent_id).toBe("agent:other");
  });

  it("the issue is deleted meanwhile: that is logged, its work is kept as a snapshot, and nothing lands", async () => {
    const { repo, ids } = dispatchRepo({});
    const { command, room } = waitingAgent();
    const run = startDispatch(repo, ["--command", command, "--land", "--retries", "0"]);
    await until("the agent is at work", () => fs.existsSync(`${room}/begun-1`));
    // As a pull brings it: somebody on another machine has deleted it.
    const file = `.cotenant/issues/${ids[0]}/issue.json`;
    const issue = JSON.parse(read(repo.root, file));
    const gone = { ...issue, deleted_at: "2026-01-02T00:00:00.000Z", stamp: { ...issue.stamp, version: 2 } };
    repo.write(file, `${JSON.stringify(gone, null, 2)}\n`);
    repo.git("commit", "--quiet", "--all", "--message", "deleted");
    const before = repo.git("rev-parse", "main");
    fs.writeFileSync(`${room}/go`, "");
    const ended = await run.done();
    expect(ended.only, String(ended.ran)).toMatchObject({
      end: "deleted",
      landed: null,
      snapshot_id: expect.any(String),
    });
    expect(ended.ran.status).toBe(0);
    expect(repo.git("rev-parse", "main")).toBe(before);
    const place = `${room}/restored`;
    await repo.runHere(LANDER, "restore", ended.only.snapshot_id!, "--path", place);
    expect(read(place, `w-${ids[0]}`)).toBe("work\n");
    expect(await leases(repo)).toEqual([]);
  });

  it("two machines whose workers have the same names: each issue is worked on once", async () => {
    const { hub, first, ids } = await sharedIssues(4);
    const second = Machine.clone(hub, "second");
    const { command, room } = agentScript(`echo $COTENANT_ISSUE_ID >> $ROOM/worked; sleep 0.3; ${WORKS}`);
    const runs = [first, second].map((machine) => startAt(machine, ["--agents", "2", "--command", command]));
    const ended = await Promise.all(runs.map((run) => run.done()));
    const worked = read(room, "worked").trim().split("\n").sort();
    expect(worked, ended.map(({ ran }) => String(ran)).join("\n")).toEqual([...new Set(worked)]);
    expect(ended.flatMap(({ report }) => report.issues).every(({ end }) => end === "done")).toBe(true);
    for (const id of worked) expect(ids).toContain(id);
    for (const machine of [first, second])
      expect((await machine.askHere("claim", "list")).data.leases).toEqual([]);
  });
});
