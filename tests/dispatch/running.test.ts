import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import {
  addIssues,
  agentScript,
  alike,
  dispatch,
  dispatchRepo,
  issueOn,
  leases,
  read,
  startDispatch,
  WORKS,
} from "../support/dispatch";
import { headOf, LANDER } from "../support/landing";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";

const it = oneIn(11);

const SEES = `env > $ROOM/env-$COTENANT_WORKER
cp "$COTENANT_PROMPT_FILE" $ROOM/prompt
pwd > $ROOM/pwd
git branch --show-current > $ROOM/branch
${WORKS}
`;

const variablesIn = (...parts: string[]): Record<string, string> =>
  Object.fromEntries(
    read(...parts)
      .split("\n")
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );

describe("what an agent is told", () => {
  it("issue, lease, token, worktree, branch, prompt, ports and caches; never a secret, nor who started the dispatcher", async () => {
    const { repo, ids } = dispatchRepo({
      title: "Mend the login",
      description: "It is broken\nsince Monday",
    });
    const { command, room } = agentScript(SEES);
    const ended = await dispatch(repo, ["--command", command], {
      env: { COTENANT_SECRET: "hush", COTENANT_SESSION_ID: "mine" },
    });
    expect(ended.only).toMatchObject({ end: "done", attempts: 1 });
    const told = variablesIn(room, "env-1");
    const [claimed] = ended.of("claimed");
    expect(told).toMatchObject({
      COTENANT_ISSUE_ID: ids[0],
      COTENANT_ISSUE_TITLE: "Mend the login",
      COTENANT_LEASE_ID: claimed!.data["lease_id"],
      COTENANT_FENCING_TOKEN: String(claimed!.data["fencing_token"]),
      COTENANT_AGENT_ID: "agent:worker-1",
      COTENANT_BRANCH: ended.only.branch,
      COTENANT_ATTEMPT: "1",
      COTENANT_WORKER: "1",
      COTENANT_BASE: headOf(repo),
    });
    expect(told["COTENANT_WORKTREE"]).toBe(read(room, "pwd").trim());
    expect(read(room, "branch").trim()).toBe(ended.only.branch);
    expect(read(room, "prompt")).toContain("Mend the login");
    expect(read(room, "prompt")).toContain("> since Monday");
    expect(told["COTENANT_PORTS"]).toMatch(/^\d+-\d+$/);
    expect(told["COTENANT_SECRET"]).toBeUndefined();
    expect(told["COTENANT_SESSION_ID"]).not.toBe("mine");
  });

  it("each worker has ports and caches of its own", async () => {
    const { repo } = dispatchRepo(...alike(3));
    const { command, room } = agentScript(
      `${SEES}\ntouch $ROOM/here-$COTENANT_WORKER\nwhile [ $(ls $ROOM | grep -c here-) -lt 3 ]; do sleep 0.05; done\n`,
    );
    await dispatch(repo, ["--agents", "3", "--command", command]);
    const told = ["1", "2", "3"].map((worker) => variablesIn(room, `env-${worker}`));
    expect(new Set(told.map((one) => one["COTENANT_PORTS"])).size).toBe(3);
    const caches = told.map((one) => Object.values(one).filter((value) => value.includes("worker-")));
    for (const one of caches) expect(one.length).toBeGreaterThan(0);
    const cacheOf = (one: Record<string, string>) => one["npm_config_cache"] ?? one["XDG_CACHE_HOME"];
    if (cacheOf(told[0]!) !== undefined) expect(new Set(told.map(cacheOf)).size).toBe(3);
  });
});

describe("what a worker takes", () => {
  it("the most urgent first, and none whose files somebody else holds", async () => {
    const { repo, ids } = dispatchRepo(
      { title: "Late", priority: "low" },
      { title: "Urgent", priority: "critical" },
      { title: "Held", priority: "critical", files: ["a.txt"] },
    );
    const [late, urgent, held] = ids as [string, string, string];
    await repo.prepare("agent:other", "lock", "acquire", "a.txt");
    const { command, room } = agentScript(`echo $COTENANT_ISSUE_ID >> $ROOM/order\n${WORKS}\n`);
    const ended = await dispatch(repo, ["--command", command]);
    expect(read(room, "order").trim().split("\n")).toEqual([urgent, late]);
    expect(ended.report.issues.map(({ issue_id }) => issue_id)).not.toContain(held);
  });

  it("two issues that declare the same file: one after the other", async () => {
    const { repo } = dispatchRepo({ files: ["a.txt"] }, { files: ["a.txt"] }, { files: ["b.txt"] });
    const { command, room } = agentScript(
      `for file in $(grep -o '"[ab].txt"' .cotenant/issues/$COTENANT_ISSUE_ID/issue.json | tr -d '"'); do
mkdir $ROOM/$file || touch $ROOM/both
sleep 0.3
rmdir $ROOM/$file
done
${WORKS}
`,
    );
    const ended = await dispatch(repo, ["--agents", "3", "--command", command, "--land"]);
    expect(fs.existsSync(`${room}/both`)).toBe(false);
    expect(
      ended.report.issues.map(({ end }) => end),
      String(ended.ran),
    ).toEqual(["done", "done", "done"]);
    expect(await leases(repo)).toEqual([]);
  });

  it("only what it is asked for: --issue, --limit, --label", async () => {
    const { repo, ids } = dispatchRepo(
      {},
      { labels: ["team:a"] },
      { labels: ["team:a"] },
      { labels: ["team:a"] },
    );
    const worked = async (...args: string[]) =>
      (await dispatch(repo, ["--command", WORKS, ...args])).report.issues.map(({ issue_id }) => issue_id);
    expect(await worked("--issue", ids[2]!)).toEqual([ids[2]]);
    const one = await worked("--label", "team:a", "--limit", "1");
    expect(one).toHaveLength(1);
    expect((await worked("--label", "team:a")).sort()).toEqual(
      [ids[1], ids[2], ids[3]].filter((id) => id !== ids[2] && id !== one[0]).sort(),
    );
  });

  it("what there is, as a plan that changes nothing", async () => {
    const { repo } = dispatchRepo({ title: "Second" }, { title: "First", priority: "critical" });
    await repo.askHere(LANDER, "status");
    const before = repo.picture();
    const plan = await repo.runHere(
      LANDER,
      "dispatch",
      "--agents",
      "2",
      "--command",
      "exit 1",
      "--land",
      "--dry-run",
    );
    expect(plan.status, String(plan)).toBe(0);
    expect(plan.stdout.indexOf("First")).toBeGreaterThan(0);
    expect(plan.stdout.indexOf("Second")).toBeGreaterThan(plan.stdout.indexOf("First"));
    expect(plan.stdout).toContain(`work/`);
    expect(repo.picture()).toEqual(before);
  });
});

describe("what people are told", () => {
  it("of a plan: first of all a run goes on with what a killed one has left", async () => {
    const { repo } = dispatchRepo({ title: "First" }, { title: "Second" });
    const { command, room } = agentScript("touch $ROOM/begun; sleep 60\n");
    const run = startDispatch(repo, ["--command", command]);
    await until("the agent is at work", () => fs.existsSync(`${room}/begun`));
    const plan = async () => (await repo.runHere(LANDER, "dispatch", "--command", WORKS, "--dry-run")).stdout;
    expect(await plan()).not.toContain("goes on with");
    run.running.kill("SIGKILL");
    await run.done();
    const [claimed] = run.of("claimed");
    expect(await plan()).toMatch(new RegExp(`goes on with .* ${claimed!.data["short_id"]} `));
    const { stdout } = await repo.runHere(LANDER, "dispatch", "status");
    expect(stdout).toContain("its agent had not finished");
  });

  it("of a run with nothing to do: where to look; and of an attempt without a log, how to see which there are", async () => {
    const { repo, ids } = dispatchRepo({});
    const none = await repo.runHere(LANDER, "dispatch", "--command", WORKS, "--label", "a:b", "--dry-run");
    expect(none.stdout).toContain("cotenant issue list");
    await dispatch(repo, ["--command", WORKS]);
    const { stderr } = await repo.runHere(LANDER, "dispatch", "logs", ids[0]!, "--attempt", "7");
    expect(stderr).toContain("1 attempt,");
    expect(stderr).toContain(`cotenant dispatch logs ${ids[0]} --paths`);
  });
});

describe("a worker's worktree", () => {
  it("is warm: the next issue and the next run work in the same one, with what Git ignores", async () => {
    const { repo } = dispatchRepo({}, {});
    const { command, room } = agentScript(`pwd >> $ROOM/places
[ -e cache ] && echo warm >> $ROOM/warmth
echo kept > cache
${WORKS}
`);
    await dispatch(repo, ["--command", command]);
    addIssues(repo, {});
    await dispatch(repo, ["--command", command]);
    expect(new Set(read(room, "places").trim().split("\n")).size).toBe(1);
    expect(read(room, "warmth")).toBe("warm\nwarm\n");
  });

  it("is on no branch between issues, so that anybody can check out what was done", async () => {
    const { repo } = dispatchRepo({});
    const { only } = await dispatch(repo, ["--command", WORKS]);
    repo.git("switch", "--quiet", only.branch!);
    expect(fs.existsSync(path.join(repo.root, `w-${only.issue_id}`))).toBe(true);
  });
});

describe("the claim", () => {
  it("is kept while the agent works, for longer than it lasts, and is told as seed 004 names it", async () => {
    const { repo, ids } = dispatchRepo({});
    const { command, room } = agentScript(`touch $ROOM/begun; sleep 6; ${WORKS}`);
    const env = { COTENANT_COORDINATION_DEFAULT_TTL_SECS: "3" };
    const run = startDispatch(repo, ["--command", command], { env });
    await until("the agent is at work", () => fs.existsSync(`${room}/begun`));
    const [claimed] = run.of("claimed");
    expect(claimed!.data).toMatchObject({
      success: true,
      reason: null,
      offline: false,
      degraded: false,
      error: null,
    });
    await new Promise((resolve) => setTimeout(resolve, 4_500));
    const [lease] = (await leases(repo)).filter(({ key }) => key === `issue:${ids[0]}`);
    expect(lease).toMatchObject({
      lease_id: claimed!.data["lease_id"],
      agent_id: "agent:worker-1",
      ttl_secs: 3,
    });
    const ended = await run.done();
    expect(ended.only).toMatchObject({ end: "done", attempts: 1 });
    expect(issueOn(repo, ids[0]!, ended.only.branch!)).toMatchObject({ state: "done" });
  });
});
