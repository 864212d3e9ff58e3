import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { Hub } from "../support/hub";
import { add, branchWith, headOf, isClean, LANDER, land, landingRepo, outcomes } from "../support/landing";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import type { TestRepo } from "../support/repo";

const it = oneIn(4);

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

/** The only entry whose command line a hint names is gone once that was run. */
async function follow(hint: string): Promise<void> {
  const words = /cotenant (land [a-z]+ [^\s;)]+)/.exec(hint)![1]!.split(" ");
  await repo.prepare("agent:worker", ...words);
}

describe("one entry with which something is wrong", () => {
  it("is put aside where its branch only stands for another one by now", async () => {
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    await add(repo, "one", "two");
    repo.git("update-ref", "-d", "refs/heads/one");
    repo.git("symbolic-ref", "refs/heads/one", "refs/heads/two");
    const ran = await land(repo);
    expect(outcomes(ran)).toEqual({ one: "parked", two: "landed" });
    expect(ran.data["entries"]).toMatchObject([{ why: "gone" }, {}]);
  });

  it("is named where an object of it is missing, and the others land once it is out", async () => {
    branchWith(repo, "broken", { broken: "broken\n" });
    branchWith(repo, "sound", { sound: "sound\n" });
    const blob = repo.git("rev-parse", "broken:broken").trim();
    fs.rmSync(path.join(repo.root, ".git/objects", blob.slice(0, 2), blob.slice(2)));
    await add(repo, "broken", "sound");
    const ran = await land(repo);
    expect(ran.error).toMatchObject({ code: "E_GIT" });
    expect(ran.error.message).toContain("broken: ");
    await follow(ran.error.hint);
    expect(outcomes(await land(repo))).toEqual({ sound: "landed" });
  });

  it("is told how to get its history where the clone is shallow", async () => {
    branchWith(repo, "one", { one: "1\n" });
    for (const n of ["1", "2"]) {
      repo.write("a.txt", n);
      repo.git("commit", "--quiet", "--all", "--message", n);
    }
    const deep = repo.root;
    repo.git("clone", "--quiet", "--depth=1", "--no-single-branch", `file://${deep}`, "../shallow");
    const shallow = repo.at("../shallow");
    shallow.git("branch", "one", "origin/one");
    await shallow.prepare("agent:worker", "land", "add", "one");
    const ran = await land(shallow);
    const [{ message, hint }] = ran.data["entries"] as [{ message: string; hint: string }];
    expect(message).toContain("shallow");
    shallow.git(.../git (fetch --unshallow)/.exec(hint)![1]!.split(" "));
    repo = shallow;
    await follow(hint);
    expect(outcomes(await land(shallow))).toEqual({ one: "landed" });
  });
});

describe("a target that another Git holds", () => {
  it("is not said to have moved, what was checked is not checked again, and the lock is named", async () => {
    branchWith(repo, "one", { one: "1\n" });
    await add(repo, "one");
    const lock = path.join(repo.root, ".git/refs/heads/main.lock");
    fs.writeFileSync(lock, "");
    const count = path.join(path.dirname(repo.root), "checked");
    const env = { COTENANT_LAND_CHECKS: `echo x >> ${count}`, COTENANT_PUBLISH_RETRIES: "2" };
    const ran = await repo.askWith(env, LANDER, "land", "run");
    expectJsonRefused(ran, 2, "E_RETRIES_EXHAUSTED");
    expect(ran.error.message).toContain(lock);
    expect(ran.stderr).not.toContain("has moved");
    expect(fs.readFileSync(count, "utf8")).toBe("x\n");
    fs.rmSync(lock);
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
    expect(isClean(repo)).toBe(true);
  });
});

describe("a worktree whose HEAD another Git holds", () => {
  it("is named where its branch is the target", async () => {
    branchWith(repo, "one", { one: "1\n" });
    await add(repo, "one");
    const lock = path.join(repo.root, ".git/HEAD.lock");
    fs.writeFileSync(lock, "");
    const ran = await repo.askWith({ COTENANT_PUBLISH_RETRIES: "1" }, LANDER, "land", "run");
    expectJsonRefused(ran, 2, "E_RETRIES_EXHAUSTED");
    expect(ran.error.message).toContain(lock);
    expect(isClean(repo)).toBe(true);
    fs.rmSync(lock);
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
  });
});

describe("land run --push", () => {
  let hub: Hub;
  beforeEach(() => {
    hub = new Hub();
    repo.git("remote", "add", "origin", hub.path);
    repo.git("push", "--quiet", "origin", "main");
    branchWith(repo, "one", { one: "1\n" });
  });

  it("says what has landed here only, and how it gets there, where nothing else lands", async () => {
    await add(repo, "one");
    await land(repo);
    const ran = await repo.ask(LANDER, "land", "run", "--push");
    expect(ran.data).toMatchObject({ landed: 0, waiting: 0 });
    const push = /or by: git (push .*)$/m.exec(ran.stderr)![1]!;
    // What was there already is not said to be on the remote either.
    await add(repo, "one");
    await land(repo, "--push");
    const { entries } = (await repo.askHere(LANDER, "land", "list", "--all")).data as unknown as {
      entries: { landed: { commit: string | null; remote: string | null } }[];
    };
    expect(entries.map(({ landed }) => landed.remote)).toEqual([null, null]);
    repo.git(...push.split(" "));
    expect(hub.head("main")).toBe(headOf(repo));
    expect((await repo.ask(LANDER, "land", "run", "--push")).stderr).not.toContain("git push");
  });

  it("where the remote of a push that nobody knows the end of is gone, says what to do", async () => {
    await add(repo, "one");
    const door = path.join(hub.path, "hooks/pre-receive");
    const mark = path.join(path.dirname(repo.root), "in-push");
    fs.writeFileSync(door, `#!/bin/sh\ntouch ${mark}\nwhile test -e ${mark}; do sleep 0.1; done\n`, {
      mode: 0o755,
    });
    const running = repo.start(LANDER, ["land", "run", "--push"]);
    while (!fs.existsSync(mark)) await new Promise((resolve) => setTimeout(resolve, 20));
    running.kill("SIGKILL");
    await running.done;
    fs.rmSync(mark);
    fs.rmSync(door);
    repo.git("remote", "remove", "origin");
    const ran = await land(repo);
    expectJsonRefused(ran, 9, "E_DIVERGED");
    expect(ran.error.hint).toContain("there is no remote origin here any more");
    await follow(ran.error.hint);
    await add(repo, "one");
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
  });
});
