import * as fs from "node:fs";
import { describe, expect } from "vitest";
import { DeadlyGit } from "../support/deadly-git";
import {
  agentScript,
  dispatch,
  dispatchRepo,
  fakeProgram,
  issueOn,
  landings,
  leases,
  read,
  startDispatch,
  WORKS,
} from "../support/dispatch";
import { Hub } from "../support/hub";
import { LANDER } from "../support/landing";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import type { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(11);

/** Commits by itself, so that the first commit of the dispatcher is that of the issue. */
const COMMITS = `${WORKS}; git add --all; git commit --quiet --message "by hand"`;
const GH = `echo "$@" >> $ROOM/calls
[ "$1 $2" = "pr create" ] || exit 1
echo https://forge.example.org/o/r/pull/7
`;

async function shortIdOf(repo: TestRepo, id: string): Promise<string> {
  return (await repo.askHere(LANDER, "issue", "show", id)).data.issue.short_id;
}

/** Killed when the work was where it belonged, and the issue was not closed yet. */
async function killedAtItsEnd(args: readonly string[], env: Record<string, string> = {}) {
  const { repo, ids } = dispatchRepo({ title: "Mend it" });
  const hub = new Hub();
  repo.git("remote", "add", "origin", hub.path);
  repo.git("push", "--quiet", "origin", "main");
  const [id] = ids as [string];
  const shortId = await shortIdOf(repo, id);
  const deadly = new DeadlyGit(scratch()).env("before", "--cleanup=verbatim");
  const PATH = [deadly["PATH"], env["PATH"]].filter(Boolean).join(":");
  const dead = await dispatch(repo, ["--command", COMMITS, ...args], { env: { ...deadly, PATH } });
  expect(dead.ran.status, String(dead.ran)).toBe(null);
  expect(repo.git("rev-list", "--count", `work/${shortId}-mend-it`).trim()).toBe("3");
  return { repo, hub, id, shortId };
}

describe("a run that was killed at an issue's end, and goes on another way", () => {
  it("was left on its branch, and is to land now: the work lands before the issue is closed", async () => {
    const { repo, id, shortId } = await killedAtItsEnd([]);
    const { only, ran } = await dispatch(repo, ["--command", "exit 1", "--land"]);
    expect(only, String(ran)).toMatchObject({ end: "done", attempts: 0, landed: expect.any(String) });
    expect(repo.git("show", `main:w-${id}`)).toBe("work\n");
    expect(issueOn(repo, id)).toMatchObject({ state: "done" });
    expect(landings(repo, shortId).work).toHaveLength(1);
    expect(await leases(repo)).toEqual([]);
  });

  it("has landed, and is to stay on its branch now: what closes the issue is on that branch", async () => {
    const { repo, id } = await killedAtItsEnd(["--land"]);
    expect(repo.git("show", `main:w-${id}`)).toBe("work\n");
    const before = repo.git("rev-parse", "main");
    const { only, ran } = await dispatch(repo, ["--command", "exit 1"]);
    expect(only, String(ran)).toMatchObject({ end: "done", attempts: 0 });
    expect(repo.git("rev-parse", "main")).toBe(before);
    expect(issueOn(repo, id, only.branch!)).toMatchObject({ state: "done" });
    expect(await leases(repo)).toEqual([]);
  });

  it.each([
    ["was left on its branch", []],
    ["had a pull request", ["--pr"]],
  ])("%s, and is to have a pull request now: it has one, which the report names", async (_, first) => {
    const { PATH, room } = fakeProgram("gh", GH);
    const { repo, hub, id } = await killedAtItsEnd(first, { PATH });
    const { only, ran } = await dispatch(repo, ["--command", "exit 1", "--pr"], { env: { PATH } });
    const url = "https://forge.example.org/o/r/pull/7";
    expect(only, String(ran)).toMatchObject({ end: "done", attempts: 0, pull_request: url });
    expect(read(room, "calls")).toContain(`pr create --head ${only.branch}`);
    const issue = JSON.parse(hub.git("show", `${only.branch}:.cotenant/issues/${id}/issue.json`));
    expect(issue).toMatchObject({ state: "done" });
  });

  it("landed after the kill, and is to stay on its branch now: no agent works on it again", async () => {
    const { repo, ids } = dispatchRepo({});
    const [id] = ids as [string];
    const shortId = await shortIdOf(repo, id);
    // The queue has it, and its run is dead before anything is merged.
    const deadly = new DeadlyGit(scratch()).env("before", "merge-tree");
    const dead = await dispatch(repo, ["--command", WORKS, "--land"], { env: deadly });
    expect(dead.ran.status, String(dead.ran)).toBe(null);
    await repo.prepare(LANDER, "land", "run");
    expect(landings(repo, shortId).work).toHaveLength(1);
    const { only, ran } = await dispatch(repo, ["--command", "exit 1"]);
    expect(only, String(ran)).toMatchObject({ end: "done", attempts: 0, landed: expect.any(String) });
    expect(issueOn(repo, id, only.branch!)).toMatchObject({ state: "done" });
  });
});

describe("an interrupt", () => {
  it("in the middle of worktree.setup is an interrupt, and no failure of the setup", async () => {
    const { repo } = dispatchRepo({});
    const { command, room } = agentScript("touch $ROOM/begun; sleep 300\n");
    const run = startDispatch(repo, ["--command", WORKS], { env: { COTENANT_WORKTREE_SETUP: command } });
    await until("the setup runs", () => fs.existsSync(`${room}/begun`));
    run.running.kill("SIGINT");
    const { ran } = await run.done();
    expect(ran.stdout).toContain('"E_INTERRUPTED"');
    expect(ran.stdout).not.toContain("mend it, and start again");
  });
});
