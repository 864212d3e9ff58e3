import * as fs from "node:fs";
import { describe, expect } from "vitest";
import { isAlive } from "../support/alive";
import {
  agentScript,
  agentsOf,
  dispatch,
  dispatchRepo,
  fakeProgram,
  issueOn,
  leases,
  read,
  startDispatch,
  WORKS,
} from "../support/dispatch";
import { LANDER } from "../support/landing";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";

const it = oneIn(11);

describe("an attempt that fails", () => {
  it("is tried again after a pause, told what went wrong, with what was done before", async () => {
    const { repo } = dispatchRepo({});
    const { command, room } = agentScript(`date +%s%N >> $ROOM/times
cp "$COTENANT_PROMPT_FILE" $ROOM/prompt-$COTENANT_ATTEMPT
if [ $COTENANT_ATTEMPT = 1 ]; then echo half > half; echo the disk is on fire; exit 3; fi
cat half > $ROOM/half
${WORKS}
`);
    const ended = await dispatch(repo, ["--command", command, "--retries", "2", "--backoff", "3"]);
    expect(ended.only, String(ended.ran)).toMatchObject({ end: "done", attempts: 2 });
    expect(read(room, "half")).toBe("half\n");
    expect(read(room, "prompt-2")).toContain("it ended with status 3");
    expect(read(room, "prompt-2")).toContain("> the disk is on fire");
    const [first, second] = read(room, "times").trim().split("\n").map(Number) as [number, number];
    expect(second - first).toBeGreaterThan(2_500_000_000);
    expect(ended.of("attempt_failed")).toHaveLength(1);
  });

  it("for the last time gives the issue back, with the end of its output as a comment, and its work on its branch", async () => {
    const { repo, ids } = dispatchRepo({});
    const body = `${WORKS}; echo the disk is on fire; exit 3`;
    for (const args of [[], ["--land"]]) {
      // What was said of the issue without --land is for a person to commit.
      repo.git("add", "--all");
      repo.git("commit", "--quiet", "--allow-empty", "--message", "comments");
      const ended = await dispatch(repo, ["--command", body, "--retries", "0", ...args]);
      expect(ended.ran.status).toBe(2);
      expect(ended.only).toMatchObject({ end: "given_back", attempts: 1, why: "it ended with status 3" });
      expect(read(ended.only.log!)).toContain("the disk is on fire");
      const shown = (await repo.runHere(LANDER, "issue", "show", ids[0]!)).stdout;
      expect(shown).toContain("the disk is on fire");
      expect(shown).toContain("ready");
      expect(repo.git("show", `${ended.only.branch}:w-${ids[0]}`)).toBe("work\n");
      expect(repo.git("log", "-1", "--format=%s", ended.only.branch!)).toContain("Work in progress");
    }
    expect(issueOn(repo, ids[0]!)).toMatchObject({ state: "ready", assignee: null });
    expect(await leases(repo)).toEqual([]);
  });

  it("takes too long: it is ended with its group", async () => {
    const { repo } = dispatchRepo({});
    const { command, room } = agentScript(
      "trap '' TERM; sleep 300 & echo $! > $ROOM/pid; while :; do sleep 1; done",
    );
    const ended = await dispatch(repo, ["--command", command, "--timeout", "2", "--retries", "0"]);
    expect(ended.only).toMatchObject({ end: "given_back", why: "it took longer than 2 s" });
    expect(isAlive(Number(read(room, "pid")))).toBe(false);
  });

  it("was killed from outside: it counts as any other failure", async () => {
    const { repo } = dispatchRepo({});
    const { command, room } = agentScript(`echo $$ > $ROOM/pid
[ $COTENANT_ATTEMPT = 1 ] && sleep 300
${WORKS}
`);
    const run = startDispatch(repo, ["--command", command]);
    const pid = await until(
      "the agent is at work",
      () => fs.existsSync(`${room}/pid`) && Number(read(room, "pid")),
    );
    process.kill(pid, "SIGKILL");
    const ended = await run.done();
    expect(ended.of("attempt_failed")[0]!.text).toMatch(/SIGKILL ended it|status 137/);
    expect(ended.only).toMatchObject({ end: "done", attempts: 2 });
  });

  it("was killed with its whole group: nothing waits for who watched it", async () => {
    const { repo } = dispatchRepo({});
    const ended = await dispatch(repo, ["--command", "kill -s KILL 0", "--retries", "0"]);
    expect(ended.only).toMatchObject({ end: "given_back", why: "SIGKILL ended it" });
    expect(agentsOf(repo)).toEqual([]);
  });
});

describe("a lost claim", () => {
  it.each([
    ["evicted", "force-evict", []],
    ["handed over", "transfer", ["--to-agent", "agent:next"]],
  ] as const)(
    "%s: what is not committed is kept as a snapshot, and nothing is committed under it",
    async (_, how, more) => {
      const { repo, ids } = dispatchRepo({});
      const [id] = ids as [string];
      const { command, room } = agentScript(`${WORKS}; sleep 300 & echo $! > $ROOM/pid; wait`);
      const run = startDispatch(repo, ["--command", command]);
      await until("the agent is at work", () => fs.existsSync(`${room}/pid`));
      await repo.prepare("human:boss", "claim", how, id, "--reason", "because", ...more);
      const ended = await run.done();
      expect(ended.only).toMatchObject({ end: "lost", snapshot_id: expect.any(String) });
      expect(isAlive(Number(read(room, "pid")))).toBe(false);
      expect(repo.git("log", "--format=%s", ended.only.branch!)).not.toContain("Some work");
      const place = `${room}/restored`;
      await repo.runHere(LANDER, "restore", ended.only.snapshot_id!, "--path", place);
      expect(read(place, `w-${id}`)).toBe("work\n");
      expect(agentsOf(repo)).toEqual([]);
    },
  );
});

describe("an agent that is silent", () => {
  it("is told of, and told of again once it is heard; it goes on working", async () => {
    const { repo } = dispatchRepo({});
    const ended = await dispatch(repo, [
      "--command",
      `sleep 4; for n in 1 2 3 4 5 6 7 8 9 10; do echo here; sleep 0.3; done; ${WORKS}`,
      "--stall",
      "2",
    ]);
    expect(ended.only).toMatchObject({ end: "done" });
    const stalls = ended.of("stalled").map(({ data }) => data["silent_secs"]);
    expect(stalls[0]).toBeGreaterThanOrEqual(2);
    expect(stalls).toContain(null);
  });
});

describe("what it costs, as the harness says", () => {
  const CLAUDE = `cat > /dev/null
echo '{"type":"system"}'
[ -e $ROOM/fails ] || ${WORKS}
echo '{"type":"result","result":"I have looked everywhere.","total_cost_usd":0.75}'
[ -e $ROOM/fails ] && exit 1 || exit 0
`;

  it("is added up and told; a run takes no more issues once it has cost so much", async () => {
    const { repo } = dispatchRepo({}, {}, {});
    const { PATH } = fakeProgram("claude", CLAUDE);
    const ended = await dispatch(repo, ["--agent", "claude", "--cost", "1.50"], { env: { PATH } });
    expect(ended.report).toMatchObject({ cost_usd: 1.5, left: 1, ended_by: "cost" });
    expect(ended.report.issues.map(({ end, cost_usd }) => [end, cost_usd])).toEqual([
      ["done", 0.75],
      ["done", 0.75],
    ]);
  });

  it("limits the attempts at one issue; the closing words go into the comment", async () => {
    const { repo, ids } = dispatchRepo({});
    const { PATH, room } = fakeProgram("claude", CLAUDE);
    fs.writeFileSync(`${room}/fails`, "");
    const args = ["--agent", "claude", "--cost-per-issue", "0.50", "--retries", "5"];
    const ended = await dispatch(repo, args, { env: { PATH } });
    expect(ended.only).toMatchObject({ end: "given_back", attempts: 1, cost_usd: 0.75 });
    const shown = (await repo.runHere(LANDER, "issue", "show", ids[0]!)).stdout;
    expect(shown).toContain("I have looked everywhere.");
    expect(shown).not.toContain("total_cost_usd");
  });
});
