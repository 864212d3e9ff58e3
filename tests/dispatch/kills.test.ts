import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { describe, expect, it } from "vitest";
import { Prng } from "../../testing/simulator/prng";
import {
  agentScript,
  agentsOf,
  alike,
  type Dispatched,
  dispatch,
  dispatchRepo,
  issueOn,
  landings,
  leases,
  startDispatch,
} from "../support/dispatch";
import { isClean, LANDER } from "../support/landing";
import { until } from "../support/program";
import type { TestRepo } from "../support/repo";
import { amount } from "../support/sample";

const MOST_STARTS = 60;
/** A run that is not killed ends long before that; one that hangs is ended then, and the test says so. */
const MOST_MS = 60_000;

/** Leaves half of its work for a moment, commits it itself now and then, and always leaves a process behind. */
const AGENT = `printf half > w-$COTENANT_ISSUE_ID
sleep 0.$(( $$ % 3 ))
printf whole > w-$COTENANT_ISSUE_ID
if [ $(( $$ % 3 )) = 0 ]; then git add w-$COTENANT_ISSUE_ID; git commit --quiet --message "by hand"; fi
sleep 300 &
exit 0
`;

async function expectDone(repo: TestRepo, ids: readonly string[], last: Dispatched): Promise<void> {
  const said = String(last.ran);
  for (const id of ids) {
    expect(issueOn(repo, id), said).toMatchObject({ state: "done" });
    const shortId = (await repo.askHere(LANDER, "issue", "show", id)).data.issue.short_id;
    const { work, closed } = landings(repo, shortId);
    expect(work, said).toHaveLength(1);
    expect(closed, said).toHaveLength(1);
    const ended = repo.log().filter(({ event_type, payload }) => {
      const { issue_id, changes } = payload as unknown as {
        issue_id?: string;
        changes?: { state?: { to: string } };
      };
      return event_type === "issue.updated" && issue_id === id && changes?.state?.to === "done";
    });
    expect(ended.length, `${id} became done ${ended.length} times`).toBeLessThanOrEqual(1);
  }
  // Each tip holds whole work only, on one line of history.
  for (const commit of repo.git("rev-list", "--first-parent", "main").trim().split("\n"))
    for (const file of repo.git("ls-tree", "--name-only", commit).trim().split("\n"))
      if (file.startsWith("w-")) expect(repo.git("show", `${commit}:${file}`), file).toBe("whole");
  expect(isClean(repo)).toBe(true);
  expect(await leases(repo)).toEqual([]);
  await until("no agent is left", () => agentsOf(repo).length === 0, 10_000);
  expect((await repo.askHere(LANDER, "land", "list")).data["entries"]).toEqual([]);
  const status = await dispatch(repo, ["--command", "exit 1", "--land"]);
  expect(status.report.issues, "nothing is left to do").toEqual([]);
  execFileSync("git", ["fsck", "--strict"], { cwd: repo.root, stdio: "ignore" });
}

async function killedAgainAndAgain(seed: number): Promise<void> {
  console.log(`dispatch under kills: TEST_SEED=${seed}`);
  const prng = new Prng(seed);
  const { repo, ids } = dispatchRepo(...alike(amount(6, 2) + 1));
  const { command } = agentScript(AGENT);
  const args = ["--agents", "4", "--command", command, "--land", "--retries", "3"];
  let last: Dispatched | null = null;
  let starts = 0;
  while (last === null && starts < MOST_STARTS) {
    starts++;
    const run = startDispatch(repo, args, { mostMs: MOST_MS });
    let isKilled = false;
    const timer = setTimeout(
      () => {
        isKilled = true;
        run.running.kill("SIGKILL");
      },
      100 + prng.below(400 + starts * 200),
    );
    const ended = await run.done();
    clearTimeout(timer);
    if (ended.ran.status !== null) last = ended;
    else expect(isKilled, `it did not end: ${ended.ran}`).toBe(true);
  }
  if (last === null) throw new Error(`not done after ${MOST_STARTS} starts`);
  expect(last.ran.status, String(last.ran)).toBe(0);
  await expectDone(repo, ids, last);
}

const SEEDS =
  process.env["TEST_SEED"] === undefined
    ? Array.from({ length: amount(6, 6) }, () => Math.floor(Math.random() * 1_000_000))
    : [Number(process.env["TEST_SEED"])];

describe("a dispatcher that is killed at any moment", () => {
  for (const seed of SEEDS)
    it("is started again until it ends: every issue is done and landed once, and nothing is left", async () => {
      await killedAgainAndAgain(seed);
    }, 600_000);

  it("leaves no agent behind, nor what that has started, whenever it is killed", async () => {
    const { repo } = dispatchRepo({});
    // The first is at work; the other has ended, but for what it left in the background, which does not care for TERM.
    for (const body of [
      "sleep 300 & echo $! > $ROOM/pid; wait",
      "(trap '' TERM; sleep 300) & echo $! > $ROOM/pid; exit 0",
    ]) {
      const { command, room } = agentScript(body);
      const run = startDispatch(repo, ["--command", command]);
      await until("the agent is at work", () => fs.existsSync(`${room}/pid`));
      if (body.endsWith("exit 0")) await new Promise((resolve) => setTimeout(resolve, 500));
      expect(agentsOf(repo)).not.toEqual([]);
      run.running.kill("SIGKILL");
      await run.done();
      try {
        await until("no agent is left", () => agentsOf(repo).length === 0, 15_000);
      } finally {
        for (const pid of agentsOf(repo)) process.kill(pid, "SIGKILL");
      }
    }
  });
});
