import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import {
  agentScript,
  alike,
  type Dispatched,
  dispatch,
  dispatchRepo,
  fakeProgram,
  issueOn,
  landings,
  leases,
  read,
  WORKS,
} from "../support/dispatch";
import { Hub } from "../support/hub";
import { checks, headOf, LANDER } from "../support/landing";
import { oneIn } from "../support/one-in";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(11);

/** With gates that the planner has given it, on main. */
async function withGates(repo: TestRepo, id: string, ...keys: string[]): Promise<void> {
  await repo.prepare(
    "human:me",
    "gate",
    "define",
    "tests",
    "--command",
    "echo looking; test -f w-$COTENANT_ISSUE_ID",
  );
  await repo.prepare("human:me", "gate", "define", "review");
  await repo.prepare("human:me", "claim", "acquire", id);
  await repo.prepare("human:me", "gate", "add", id, ...keys);
  await repo.prepare("human:me", "claim", "release", id);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "gates");
}

const indexOf = ({ lines }: Dispatched, event: string) => lines.findIndex((line) => line.event === event);

describe("what an agent leaves uncommitted", () => {
  it("is committed under its claim, once the issue is still there", async () => {
    const { repo, ids } = dispatchRepo({ title: "Mend it" });
    const { only } = await dispatch(repo, ["--command", WORKS]);
    const message = repo.git("log", "-1", "--format=%B", `${only.branch}~1`);
    expect(message).toContain("Mend it");
    expect(message).toContain("Cotenant-Agent: agent:worker-1");
    expect(repo.git("show", `${only.branch}:w-${ids[0]}`)).toBe("work\n");
  });

  it("--commit off leaves it out of the branch, and keeps it as a snapshot", async () => {
    const { repo, ids } = dispatchRepo({});
    const body = `echo in > in; git add in; git commit --quiet --message "by hand"; echo out > out; git add out`;
    const { only } = await dispatch(repo, ["--command", body, "--commit", "off"]);
    expect(only).toMatchObject({ end: "done", snapshot_id: expect.any(String) });
    const files = repo.git("ls-tree", "--name-only", only.branch!);
    expect(files).toContain("in\n");
    expect(files).not.toContain("out\n");
    await repo.runHere(LANDER, "restore", only.snapshot_id!, "--path", `${repo.root}/../restored`);
    expect(read(repo.root, "../restored/out")).toBe("out\n");
    expect(issueOn(repo, ids[0]!, only.branch!)).toMatchObject({ state: "done" });
  });

  for (const flag of ["--assume-unchanged", "--skip-worktree"])
    it(`is committed also where it told Git not to look at it (${flag})`, async () => {
      const { repo } = dispatchRepo({});
      const hide = `git update-index ${flag} a.txt; echo changed > a.txt`;
      const ended = await dispatch(repo, ["--command", hide]);
      expect(ended.only, String(ended.ran)).toMatchObject({ end: "done" });
      expect(ended.notes).toContain("not to look at a.txt");
      expect(repo.git("show", `${ended.only.branch}:a.txt`)).toBe("changed\n");
    });

  it("is committed also outside of what a sparse checkout has", async () => {
    const { repo } = dispatchRepo({});
    repo.git("sparse-checkout", "set", "--cone", ".cotenant");
    const ended = await dispatch(repo, ["--command", "mkdir out; echo new > out/new"]);
    expect(ended.only, String(ended.ran)).toMatchObject({ end: "done" });
    expect(repo.git("show", `${ended.only.branch}:out/new`)).toBe("new\n");
  });

  it("is whole again where it left folders out of its checkout, and so for the next one", async () => {
    const { repo } = dispatchRepo(...alike(2));
    const ended = await dispatch(repo, ["--command", `git sparse-checkout set --cone nothing; ${WORKS}`]);
    expect(
      ended.report.issues.map(({ end }) => end),
      String(ended.ran),
    ).toEqual(["done", "done"]);
    expect(ended.notes).toContain("left files out of its checkout");
  });

  it("stays as it is where worktree.setup has hidden it", async () => {
    const { repo, ids } = dispatchRepo({});
    const setup = "git update-index --skip-worktree a.txt && echo own > a.txt";
    const env = { COTENANT_WORKTREE_SETUP: setup };
    const { only } = await dispatch(repo, ["--command", `cat a.txt > w-${ids[0]}`], { env });
    expect(repo.git("show", `${only.branch}:w-${ids[0]}`)).toBe("own\n");
    expect(repo.git("show", `${only.branch}:a.txt`)).toBe("base\n");
  });

  it("nothing at all is a failure, unless that is allowed", async () => {
    const { repo } = dispatchRepo({});
    const idle = await dispatch(repo, ["--command", "true", "--retries", "0"]);
    expect(idle.only).toMatchObject({ end: "given_back", why: "the agent changed nothing" });
    expect((await dispatch(repo, ["--command", "true", "--allow-empty"])).only).toMatchObject({
      end: "done",
    });
  });

  it("commits on no branch are a failure, and are kept on the issue's", async () => {
    const { repo, ids } = dispatchRepo({});
    const loose = `git checkout --quiet --detach; ${WORKS}; git add .; git commit --quiet --message loose; false`;
    const ended = await dispatch(repo, ["--command", loose, "--retries", "0"]);
    expect(ended.only, String(ended.ran)).toMatchObject({ end: "given_back" });
    expect(ended.notes).toContain(`on no branch is on ${ended.only.branch} now`);
    expect(repo.git("show", `${ended.only.branch}:w-${ids[0]}`)).toBe("work\n");
  });

  it("those that part from the issue's branch are kept beside it", async () => {
    const { repo } = dispatchRepo({});
    const commit = (name: string) => `git commit --quiet --allow-empty --message ${name}`;
    const parted = `${commit("kept")}; git checkout --quiet --detach HEAD~; ${commit("loose")}`;
    const ended = await dispatch(repo, ["--command", parted, "--retries", "0"]);
    const { branch } = ended.only;
    const subjects = [branch, `${branch}-2`].map((name) =>
      repo.git("log", "-1", "--format=%s", name!).trim(),
    );
    expect(subjects, String(ended.ran)).toEqual(["kept", "loose"]);
  });

  it("a repository inside, committed as if it were a submodule, is a failure", async () => {
    const { repo } = dispatchRepo({});
    const nest = `git init --quiet nest; git -C nest commit --quiet --allow-empty --message n; git add nest; ${WORKS}`;
    const ended = await dispatch(repo, ["--command", nest, "--retries", "0"]);
    expect(ended.only, String(ended.ran)).toMatchObject({
      end: "given_back",
      why: expect.stringContaining("nest is committed as a repository of its own"),
    });
  });

  it("in a submodule, nobody else has it before it is pushed there: that is told, and it stays there", async () => {
    const { repo } = dispatchRepo(...alike(2));
    const sub = TestRepo.make(path.join(scratch(), "sub"));
    sub.write("s");
    sub.git("add", "--all");
    sub.git("commit", "--quiet", "--message", "s");
    const local = ["-c", "protocol.file.allow=always"];
    repo.git(...local, "submodule", "--quiet", "add", sub.root, "sub");
    repo.git("commit", "--quiet", "--message", "with a submodule");
    const update = `git ${local.join(" ")} submodule --quiet update --init`;
    const commit = "git -C sub commit --quiet --allow-empty --message inside";
    const ended = await dispatch(repo, ["--command", `${update}; ${commit}; echo more >> sub/s; ${WORKS}`]);
    expect(ended.notes).toContain("before it is pushed there: sub");
    expect(ended.notes).toContain("left as they are: repositories in its worktree, sub");
    expect(ended.notes).not.toContain("snapshot");
    expect(ended.report.issues.map(({ end }) => end)).toEqual(["done", "done"]);
  });

  it("another branch, or a merge in the middle, is a failure", async () => {
    const { repo } = dispatchRepo({});
    const away = await dispatch(repo, [
      "--command",
      `${WORKS}; git switch --quiet -c elsewhere`,
      "--retries",
      "0",
    ]);
    expect(away.only).toMatchObject({ end: "given_back", why: expect.stringContaining("branch elsewhere") });
    repo.git("branch", "--force", "other", "main");
    const merge = `echo 1 > a.txt; git commit --quiet --all --message one; git branch side HEAD~1; git switch --quiet side; echo 2 > a.txt; git commit --quiet --all --message two; git switch --quiet -; git merge side; exit 0`;
    const half = await dispatch(repo, ["--command", merge, "--retries", "0"]);
    expect(half.only).toMatchObject({ end: "given_back", why: expect.stringContaining("in the middle") });
  });
});

describe("gates", () => {
  it("automated ones run in the worktree; what does not pass is given back with its output as a comment", async () => {
    const { repo, ids } = dispatchRepo({});
    const [id] = ids as [string];
    await withGates(repo, id, "tests");
    const failed = await dispatch(repo, ["--command", "echo other > other", "--retries", "0"]);
    expect(failed.only).toMatchObject({ end: "given_back", why: "gate tests did not pass" });
    expect((await repo.runHere(LANDER, "issue", "show", id)).stdout).toContain("looking");
    const passed = await dispatch(repo, ["--command", WORKS]);
    expect(passed.only).toMatchObject({ end: "done" });
    expect(indexOf(passed, "gate")).toBeLessThan(indexOf(passed, "committed"));
  });

  it("a manual one: the work waits on its branch, gated, and nobody holds it", async () => {
    const { repo, ids } = dispatchRepo({});
    const [id] = ids as [string];
    await withGates(repo, id, "tests", "review");
    const ended = await dispatch(repo, ["--command", WORKS, "--land"]);
    expect(ended.only).toMatchObject({ end: "gated", landed: null, why: expect.stringContaining("review") });
    expect(ended.ran.status).toBe(0);
    // Where whoever passes the gate looks for it, with what has been passed already.
    expect(issueOn(repo, id)).toMatchObject({ state: "gated" });
    expect(await repo.askHere(LANDER, "gate", "pass", id, "review")).toMatchObject({ status: 0 });
    expect((await repo.askHere(LANDER, "issue", "show", id)).data.issue).toMatchObject({ state: "done" });
    expect(landings(repo, ended.only.short_id)).toEqual({ work: [], closed: [] });
    expect(await leases(repo)).toEqual([]);
  });
});

describe("--land", () => {
  it("the issue is done only after its work is on the target", async () => {
    const { repo, ids } = dispatchRepo({});
    const ended = await dispatch(repo, ["--command", WORKS, "--land"]);
    const { short_id, landed } = ended.only;
    expect(landings(repo, short_id)).toMatchObject({
      work: [expect.any(String)],
      closed: [expect.any(String)],
    });
    // On the commit that landed the work the issue was not done yet.
    expect(issueOn(repo, ids[0]!, landed!)).toMatchObject({ state: "ready" });
    expect(issueOn(repo, ids[0]!)).toMatchObject({
      state: "done",
      resolution: expect.stringContaining("landed as"),
    });
    expect(headOf(repo)).not.toBe(landed);
  });

  it("what does not land is not done: it is given back with the output of the check", async () => {
    const { repo, ids } = dispatchRepo({});
    const env = checks("echo no good; ! ls w-*");
    const ended = await dispatch(repo, ["--command", WORKS, "--land", "--retries", "0"], { env });
    expect(ended.only).toMatchObject({ end: "given_back", landed: null });
    expect(ended.ran.status).toBe(2);
    expect(issueOn(repo, ids[0]!)).toMatchObject({ state: "ready" });
    expect((await repo.runHere(LANDER, "issue", "show", ids[0]!)).stdout).toContain("no good");
    expect(await leases(repo)).toEqual([]);
    // What is to be done about it, and not only what the agent printed.
    expect(ended.only.hint).toContain(`cotenant land add ${ended.only.branch}`);
  });

  it("what conflicts names its files once, and says what brings the branch in", async () => {
    const { repo } = dispatchRepo({ title: "One" }, { title: "Two" });
    const { command, room } = agentScript(`echo $COTENANT_ISSUE_ID > same; touch $ROOM/at-$COTENANT_WORKER
until [ -e $ROOM/at-1 ] && [ -e $ROOM/at-2 ]; do sleep 0.1; done
`);
    const args = ["--agents", "2", "--command", command, "--land", "--retries", "0"];
    const { report } = await dispatch(repo, args);
    const back = report.issues.find(({ end }) => end === "given_back");
    expect(back?.why).toMatch(/conflicts with main in same$/);
    expect(back?.hint).toContain("git merge main");
    expect(room).not.toBe("");
  });

  it("what lands while its closing cannot says how that lands, too", async () => {
    const { repo, ids } = dispatchRepo({});
    // As a person who begins to work there while the agent is at it.
    const command = `${WORKS}; mkdir -p ${repo.root}/.cotenant/events; echo > ${repo.root}/.cotenant/events/local.jsonl`;
    const ended = await dispatch(repo, ["--command", command, "--land"]);
    expect(ended.only).toMatchObject({ end: "done", landed: expect.any(String) });
    expect(ended.only.why).toContain("that it is done has not landed");
    expect(ended.only.hint).toContain("cotenant land run");
    fs.rmSync(`${repo.root}/.cotenant/events/local.jsonl`);
    await repo.prepare(LANDER, "land", "run");
    expect(issueOn(repo, ids[0]!)).toMatchObject({ state: "done" });
  });

  it("closings at the same time do not conflict, also where no attributes merge files of lines", async () => {
    const { repo, ids } = dispatchRepo(...alike(6));
    repo.git("rm", "--quiet", ".cotenant/.gitattributes");
    repo.git("commit", "--quiet", "--message", "no attributes");
    const ended = await dispatch(repo, ["--agents", "6", "--command", WORKS, "--land"]);
    for (const id of ids) expect(issueOn(repo, id), String(ended.ran)).toMatchObject({ state: "done" });
    expect(repo.git("branch", "--list", "cotenant/*")).toBe("");
  });
});

describe("--pr", () => {
  const GH = `echo "$@" >> $ROOM/calls
if [ "$1 $2" = "pr view" ]; then cat $ROOM/closed $ROOM/open 2>/dev/null | grep . ; exit; fi
if [ "$1 $2" = "pr list" ]; then cat $ROOM/open 2>/dev/null; exit 0; fi
echo "Creating pull request"
echo https://forge.example.org/o/r/pull/7
`;

  function withRemote(): { repo: TestRepo; hub: Hub; ids: string[] } {
    const { repo, ids } = dispatchRepo({ title: "Mend it" });
    const hub = new Hub();
    repo.git("remote", "add", "origin", hub.path);
    repo.git("push", "--quiet", "origin", "main");
    return { repo, hub, ids };
  }

  it("pushes the branch, opens a request by the forge's own program, and only then it is done", async () => {
    const { repo, hub, ids } = withRemote();
    const { PATH, room } = fakeProgram("gh", `${GH}git -C ${hub.path} for-each-ref > $ROOM/refs\n`);
    const ended = await dispatch(repo, ["--command", WORKS, "--pr"], { env: { PATH } });
    const { only } = ended;
    expect(only).toMatchObject({ end: "done", pull_request: "https://forge.example.org/o/r/pull/7" });
    const [, create] = read(room, "calls").trim().split("\n");
    expect(create).toBe(
      `pr create --head ${only.branch} --base main --title Mend it --body Issue ${only.short_id} (${ids[0]}).`,
    );
    // It was there when the request was made, and not done yet.
    expect(read(room, "refs")).toContain(`refs/heads/${only.branch}`);
    const [pushed] = read(room, "refs")
      .split("\n")
      .filter((line) => line.includes(only.branch!));
    expect(issueOn(repo, ids[0]!, pushed!.split(" ")[0]!)).toMatchObject({ state: "ready" });
    expect(hub.git("show", `${only.branch}:.cotenant/issues/${ids[0]}/issue.json`)).toContain('"done"');
  });

  it("takes a request that is open already for made", async () => {
    const { repo } = withRemote();
    const { PATH, room } = fakeProgram("gh", GH);
    fs.writeFileSync(`${room}/open`, "https://forge.example.org/o/r/pull/3\n");
    const { only } = await dispatch(repo, ["--command", WORKS, "--pr"], { env: { PATH } });
    expect(only).toMatchObject({ end: "done", pull_request: "https://forge.example.org/o/r/pull/3" });
    expect(read(room, "calls")).not.toContain("create");
  });

  it("does not take one that was closed for it", async () => {
    const { repo } = withRemote();
    const { PATH, room } = fakeProgram("gh", GH);
    fs.writeFileSync(`${room}/closed`, "https://forge.example.org/o/r/pull/3\n");
    const { only } = await dispatch(repo, ["--command", WORKS, "--pr"], { env: { PATH } });
    expect(only).toMatchObject({ end: "done", pull_request: "https://forge.example.org/o/r/pull/7" });
  });

  it("pushes no secret, not even one that was taken away again", async () => {
    const { repo, hub, ids } = withRemote();
    const { PATH } = fakeProgram("gh", GH);
    const key = `AKIA${"QWERTYUIOPASDFGH"}`;
    const { command } = agentScript(
      `if [ "$COTENANT_ATTEMPT" = 1 ]; then\n  echo 'aws_access_key_id = ${key}' > keys.ini; git add keys.ini; git commit -qm add\n` +
        `  git rm -q keys.ini; git commit -qm drop; echo x > work.txt\nelse cp "$COTENANT_PROMPT_FILE" told.txt; fi\n`,
    );
    const ended = await dispatch(repo, ["--command", command, "--pr", "--backoff", "0"], { env: { PATH } });
    expect(ended.only).toMatchObject({
      end: "given_back",
      attempts: 2,
      why: expect.stringMatching(/^it may not be pushed: in commit [0-9a-f]{12} .*secret/),
    });
    expect(Object.keys(hub.refs())).toEqual(["refs/heads/main"]);
    expect(issueOn(repo, ids[0]!)).toMatchObject({ state: "ready" });
    // The second attempt is told what to mend.
    expect(repo.git("show", `${ended.only.branch}:told.txt`)).toContain("it may not be pushed");
  });

  it("a program that fails leaves the branch pushed and the issue open", async () => {
    const { repo, hub, ids } = withRemote();
    const { PATH } = fakeProgram("gh", "echo not logged in >&2; exit 4\n");
    const ended = await dispatch(repo, ["--command", WORKS, "--pr"], { env: { PATH } });
    expect(ended.only).toMatchObject({ end: "given_back", why: expect.stringContaining("not logged in") });
    expect(hub.refs()[`refs/heads/${ended.only.branch}`]).toBeDefined();
    expect(issueOn(repo, ids[0]!, ended.only.branch!)).toMatchObject({ state: "ready" });
    // The agent's work is done: the next run only hands it over.
    const { PATH: mended } = fakeProgram("gh", GH);
    const again = await dispatch(repo, ["--command", "exit 1", "--pr"], { env: { PATH: mended } });
    expect(again.only).toMatchObject({ end: "done", attempts: 0 });
  });
});

describe("what cannot work is refused before anything is begun", () => {
  it("words that are for nobody: an issue is named with --issue, and what is for the harness follows --", async () => {
    const { repo, ids } = dispatchRepo({});
    const fake = fakeProgram("claude", 'echo "$@" > $ROOM/args\n');
    const refused = async (...args: string[]) => {
      const ended = await dispatch(repo, ["--agent", "claude", ...args], { env: { PATH: fake.PATH } });
      expect(ended.ran.status, String(ended.ran)).toBe(64);
      expect(ended.ran.stderr).toContain("--issue <id>");
      expect(ended.ran.stderr).toContain("-- --model opus");
    };
    await refused(ids[0]!);
    await refused("run");
    await refused("--model", "opus");
    await refused(ids[0]!, "--", "--model", "opus");
    expect(fs.existsSync(`${fake.room}/args`)).toBe(false);
  });

  it.each([
    [["--command", WORKS, "--pr", "--push", "--remote", "nowhere"], "nowhere"],
    [["--agent", "claude"], "claude"],
    [["--command", WORKS, "--land", "--target", "nowhere"], "nowhere"],
  ])("%j", async (args, named) => {
    const { repo } = dispatchRepo({});
    const env = { PATH: "/usr/bin:/bin" };
    const ended = await dispatch(repo, args, {
      env: { ...env, PATH: `${process.execPath.replace(/\/node$/, "")}:${env.PATH}` },
    });
    expect(ended.ran.status).not.toBe(0);
    expect(ended.ran.stderr).toContain(named);
    expect(ended.of("claimed")).toEqual([]);
    expect(await leases(repo)).toEqual([]);
  });

  it("a target whose checkout has issues that nobody has committed: they are not to be stashed", async () => {
    const { repo } = dispatchRepo({});
    const refused = async () => {
      const ended = await dispatch(repo, ["--command", WORKS, "--land"]);
      expect(ended.ran.status, String(ended.ran)).toBe(9);
      expect(ended.ran.stderr).toContain(`git -C ${repo.root} add .cotenant`);
      expect(ended.ran.stderr).not.toContain("stash");
      expect(ended.of("claimed")).toEqual([]);
    };
    await repo.prepare(LANDER, "issue", "create", "--title", "New");
    await refused();
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "more");
    await repo.prepare(LANDER, "issue", "create", "--title", "Newer");
    await refused();
    repo.write("a.txt", "edited\n");
    expect((await dispatch(repo, ["--command", WORKS, "--land"])).ran.stderr).toContain("stash");
  });

  it("a target with commits that the remote lacks, where landings are pushed", async () => {
    const { repo } = dispatchRepo({});
    const hub = scratch("cotenant-remote");
    repo.git("init", "--quiet", "--bare", hub);
    repo.git("remote", "add", "origin", hub);
    repo.git("push", "--quiet", "origin", "main~1:refs/heads/main");
    const ended = await dispatch(repo, ["--command", WORKS, "--land", "--push"]);
    expect(ended.ran.stderr).toContain("git log origin/main..main");
    expect(ended.of("claimed")).toEqual([]);
    repo.git("push", "--quiet", "origin", "main");
    expect((await dispatch(repo, ["--command", WORKS, "--land", "--push"])).only.end).toBe("done");
  });

  it("somebody who has not said who they are, and an agent in a person's shell", async () => {
    const { repo } = dispatchRepo({});
    const nobody = { COTENANT_AGENT_ID: undefined };
    const ran = await repo.start(LANDER, ["dispatch", "--command", WORKS], { env: nobody }).done;
    expect(ran.stderr).toContain("--agent-id human:<you>");
    expect(ran.stderr).not.toContain("agent:your-name");
  });

  it("commits by nobody", async () => {
    const { repo } = dispatchRepo({});
    const nobody = { GIT_AUTHOR_NAME: undefined, GIT_AUTHOR_EMAIL: undefined };
    repo.git("config", "user.useConfigOnly", "true");
    const env = { ...nobody, GIT_COMMITTER_NAME: undefined, GIT_COMMITTER_EMAIL: undefined };
    const ended = await dispatch(repo, ["--command", WORKS], { env });
    expect(ended.ran.stderr).toContain("E_CONFIG");
    expect(ended.of("claimed")).toEqual([]);
  });

  it("commits that cannot be signed", async () => {
    const { repo } = dispatchRepo({});
    repo.git("config", "commit.gpgSign", "true");
    repo.git("config", "gpg.program", "/bin/false");
    const ended = await dispatch(repo, ["--command", WORKS]);
    expect(ended.ran.status).toBe(10);
    expect(ended.ran.stderr).toContain("could not be signed");
    expect(ended.of("claimed")).toEqual([]);
  });

  it("a branch where those for issues are to be", async () => {
    const { repo } = dispatchRepo({});
    repo.git("branch", "work");
    const ended = await dispatch(repo, ["--command", WORKS]);
    expect(ended.ran.status).toBe(9);
    expect(ended.ran.stderr).toContain("git branch -m work my-work");
    expect(ended.of("claimed")).toEqual([]);
    repo.git("branch", "-m", "work", "my-work");
    expect((await dispatch(repo, ["--command", WORKS])).only.end).toBe("done");
  });

  it("an agent that would land: policy.land", async () => {
    const { repo } = dispatchRepo({});
    const ran = await repo.runHere("agent:somebody", "dispatch", "--command", WORKS, "--land");
    expect(ran.status).not.toBe(0);
    // Nothing is in the queue yet that a person could run.
    expect(ran.stderr).toContain("leave out --land");
    expect(ran.stderr).not.toContain("cotenant land run");
    expect(await leases(repo)).toEqual([]);
  });
});

it("the agents of other workers are not disturbed by one that fails", async () => {
  const { repo } = dispatchRepo({ title: "Bad" }, { title: "Good" });
  const { command } = agentScript(`${WORKS}\n[ "$COTENANT_ISSUE_TITLE" = Good ]\n`);
  const ended = await dispatch(repo, ["--agents", "2", "--command", command, "--retries", "0"]);
  expect(ended.report.issues.map(({ end }) => end).sort()).toEqual(["done", "given_back"]);
});
