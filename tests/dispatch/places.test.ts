import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import {
  agentScript,
  alike,
  dispatch,
  dispatchRepo,
  issueOn,
  leases,
  read,
  WORKS,
} from "../support/dispatch";
import { oneIn } from "../support/one-in";

const it = oneIn(11);

const inside = { COTENANT_WORKTREE_DIRECTORY: ".worktrees" };

describe("what an agent makes of its worktree", () => {
  it.each([
    ["takes its .git away", "rm .git"],
    [
      "makes a repository of its own",
      "rm .git; git init --quiet; git add a.txt; git commit --quiet --message own",
    ],
    ["leads its .git to the main repository", `printf 'gitdir: %s\\n' "$COTENANT_GIT_DIR" > .git`],
  ])("%s: its work counts, and nobody's uncommitted changes are touched", async (_, how) => {
    const { repo, ids } = dispatchRepo(...alike(2));
    repo.write(".gitignore", "cache\n.worktrees\n");
    repo.git("commit", "--quiet", "--all", "--message", "worktrees inside");
    const before = repo.git("rev-parse", "main");
    repo.write("a.txt", "precious\n");
    const ended = await dispatch(repo, ["--command", `${how}; ${WORKS}`, "--retries", "0"], { env: inside });
    expect(
      ended.report.issues.map(({ end }) => end),
      String(ended.ran),
    ).toEqual(["done", "done"]);
    expect(read(repo.root, "a.txt")).toBe("precious\n");
    expect(repo.git("status", "--porcelain").trim()).toBe("M a.txt");
    expect(repo.git("symbolic-ref", "HEAD").trim()).toBe("refs/heads/main");
    expect(repo.git("rev-parse", "main")).toBe(before);
    for (const { issue_id, branch } of ended.report.issues)
      expect(repo.git("show", `${branch}:w-${issue_id}`)).toBe("work\n");
    expect(ended.report.issues.map(({ issue_id }) => issue_id).sort()).toEqual([...ids].sort());
    expect(await leases(repo)).toEqual([]);
  });

  it.each([
    ["deletes it", 'rm -rf "$COTENANT_WORKTREE"'],
    [
      "removes it from the repository",
      'cd /; git -C "$COTENANT_GIT_DIR" worktree remove --force "$COTENANT_WORKTREE"',
    ],
    ["moves it", 'cd /; git -C "$COTENANT_GIT_DIR" worktree move "$COTENANT_WORKTREE" $ROOM/moved'],
  ])("%s: the issue is given back at once, and the worker goes on in a new one", async (_, how) => {
    const { repo, ids } = dispatchRepo(...alike(2));
    const { command } = agentScript(`${WORKS}; if mkdir $ROOM/once; then ${how}; fi; true\n`);
    const ended = await dispatch(repo, ["--command", command, "--retries", "0"]);
    expect(
      ended.report.issues.map(({ end }) => end),
      String(ended.ran),
    ).toEqual(["given_back", "done"]);
    expect(ended.report.issues[0]!.why).toContain("its worktree is gone");
    expect(await leases(repo)).toEqual([]);
    const again = await dispatch(repo, ["--command", command]);
    expect(again.only, String(again.ran)).toMatchObject({ end: "done", attempts: 1 });
    for (const id of ids) {
      const { branch } = [...ended.report.issues, again.only].findLast(({ issue_id }) => issue_id === id)!;
      expect(issueOn(repo, id, branch!)).toMatchObject({ state: "done" });
    }
  });

  it("leaves a bisection: the issues after it begin in a worktree without one", async () => {
    const { repo } = dispatchRepo(...alike(2));
    const { command } = agentScript(`${WORKS}; if mkdir $ROOM/once; then git bisect start; fi; true\n`);
    const ended = await dispatch(repo, ["--command", command, "--retries", "0"]);
    expect(
      ended.report.issues.map(({ end, why }) => ({ end, why })),
      String(ended.ran),
    ).toEqual([
      { end: "given_back", why: "the agent left a bisection in the middle" },
      { end: "done", why: null },
    ]);
  });

  it("is not the one of a Git that started the dispatcher, as a hook or an alias does", async () => {
    const { repo } = dispatchRepo({});
    const git = path.join(repo.root, ".git");
    const env = { GIT_DIR: git, GIT_WORK_TREE: repo.root, GIT_INDEX_FILE: path.join(git, "index") };
    const { only } = await dispatch(repo, ["--command", WORKS, "--land"], { env });
    expect(only).toMatchObject({ end: "done", why: null });
    expect(repo.git("log", "-1", "--format=%s").trim()).toMatch(/^Close /);
    expect(repo.git("status", "--porcelain")).toBe("");
  });

  it("has made a branch below the name of another issue's: that one has the next name", async () => {
    const { repo, ids } = dispatchRepo({});
    const { short_id: shortId } = (await repo.prepare("human:me", "issue", "show", ids[0]!)).issue;
    repo.git("branch", `work/${shortId}-some-work/more`);
    const { only } = await dispatch(repo, ["--command", WORKS]);
    expect(only).toMatchObject({ end: "done", branch: `work/${shortId}-some-work-2` });
  });

  it("leaves a lock of a Git that was killed: it is taken away", async () => {
    const { repo } = dispatchRepo(...alike(2));
    const command = `${WORKS}; touch "$(git rev-parse --absolute-git-dir)/HEAD.lock"`;
    const ended = await dispatch(repo, ["--command", command, "--retries", "0"]);
    expect(
      ended.report.issues.map(({ end }) => end),
      String(ended.ran),
    ).toEqual(["done", "done"]);
    expect(await leases(repo)).toEqual([]);
  });

  it("has made Git forget it: what is in it stays, and the message says how to go on", async () => {
    const { repo } = dispatchRepo({});
    const command = `${WORKS}; rm .git; git -C "$COTENANT_GIT_DIR" worktree prune`;
    const ended = await dispatch(repo, ["--command", command, "--retries", "0"]);
    const [given] = ended.of("ended");
    expect(given!.data, String(ended.ran)).toMatchObject({ end: "given_back" });
    expect(await leases(repo)).toEqual([]);
    const place = String(ended.of("worker")[0]!.data["worktree"]);
    expect(fs.readdirSync(place)).toContain(`w-${given!.issue_id}`);
    const again = await dispatch(repo, ["--command", WORKS]);
    expect(again.ran.stderr).toContain("move what is there away, and start again");
    fs.renameSync(place, path.join(path.dirname(place), "kept"));
    expect((await dispatch(repo, ["--command", WORKS])).only).toMatchObject({ end: "done" });
  });

  it.each([
    ["spoils", "echo '{' > "],
    ["deletes", "rm -r "],
    ["deletes and commits", "git rm --quiet -r "],
  ])("%s the file of its own issue: that does not land, and the next attempt is told", async (what, how) => {
    const { repo, ids } = dispatchRepo({ title: "Readable" });
    const commits = what.includes("commits") ? "git commit --quiet --no-verify --message gone" : "true";
    const { command, room } = agentScript(`${WORKS}; cp "$COTENANT_PROMPT_FILE" $ROOM/prompt-$COTENANT_ATTEMPT
if [ $COTENANT_ATTEMPT = 1 ]; then ${how} .cotenant/issues/$COTENANT_ISSUE_ID/issue.json; ${commits}
else git checkout --quiet main -- .cotenant; fi
`);
    const ended = await dispatch(repo, ["--command", command, "--land"]);
    expect(ended.only, String(ended.ran)).toMatchObject({ end: "done", attempts: 2 });
    expect(read(room, "prompt-2")).toContain("the file of its issue");
    expect(issueOn(repo, ids[0]!)).toMatchObject({ title: "Readable", state: "done" });
  });
});
