import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { DeadlyGit } from "../support/deadly-git";
import { Hub } from "../support/hub";
import {
  add,
  branchWith,
  firstParents,
  headOf,
  isClean,
  LANDER,
  land,
  landingRepo,
  outcomes,
} from "../support/landing";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import type { TestRepo } from "../support/repo";

const it = oneIn(4);

let repo: TestRepo;
let hub: Hub;
beforeEach(async () => {
  repo = landingRepo();
  hub = new Hub();
  repo.git("remote", "add", "origin", hub.path);
  repo.git("push", "--quiet", "origin", "main");
  for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
});

const there = () => hub.git("log", "--first-parent", "--format=%s", "main").trim().split("\n");
const checked = (line: string, ...args: string[]) =>
  repo.askWith({ COTENANT_LAND_CHECKS: line }, LANDER, "land", "run", "--push", ...args);

/** Somebody else's commit on the remote's main. */
function pushedByOthers(subject: string): string {
  const tree = hub.git("rev-parse", "main^{tree}").trim();
  const identity = ["-c", "user.name=b", "-c", "user.email=b@example.org"];
  const commit = hub.git(...identity, "commit-tree", "-p", "main", "-m", subject, tree).trim();
  hub.git("update-ref", "refs/heads/main", commit);
  return commit;
}

describe("land run --push", () => {
  it("lands on the remote first, and the target here follows", async () => {
    await add(repo, "one", "two");
    const ran = await land(repo, "--push");
    expect(ran.data).toMatchObject({ landed: 2, remote: "origin" });
    expect(hub.head("main")).toBe(headOf(repo));
    expect(isClean(repo)).toBe(true);
    expect(there()).toEqual(["Merge branch 'two' into main", "Merge branch 'one' into main", "first"]);
  });

  it("a target that is behind is fast-forwarded as part of it", async () => {
    pushedByOthers("theirs");
    await add(repo, "one");
    expect(outcomes(await land(repo, "--push"))).toEqual({ one: "landed" });
    expect(firstParents(repo)).toEqual(["Merge branch 'one' into main", "theirs", "first"]);
    expect(isClean(repo)).toBe(true);
  });

  it("where the remote moves meanwhile, it is built and checked again on top of that", async () => {
    await add(repo, "one");
    const tree = hub.git("rev-parse", "main^{tree}").trim();
    const commit = hub
      .git(
        "-c",
        "user.name=b",
        "-c",
        "user.email=b@example.org",
        "commit-tree",
        "-p",
        "main",
        "-m",
        "theirs",
        tree,
      )
      .trim();
    const ran = await checked(
      `test -e cache || git --git-dir='${hub.path}' update-ref refs/heads/main ${commit}; echo x >> cache`,
    );
    expect(outcomes(ran)).toEqual({ one: "landed" });
    expect(there()).toEqual(["Merge branch 'one' into main", "theirs", "first"]);
  });

  it("stops where the two have diverged, or the target has commits that did not land", async () => {
    await add(repo, "one");
    repo.git("commit", "--quiet", "--allow-empty", "--message", "mine");
    const ahead = await land(repo, "--push");
    expectJsonRefused(ahead, 9, "E_DIVERGED");
    expect(ahead.error.message).toContain("did not land there");
    pushedByOthers("theirs");
    const apart = await land(repo, "--push");
    expectJsonRefused(apart, 9, "E_DIVERGED");
    expect(apart.error.message).toContain("have diverged");
    expect(there()).toEqual(["theirs", "first"]);
  });

  it("what has landed here before goes along", async () => {
    await add(repo, "one");
    await land(repo);
    await add(repo, "two");
    expect((await land(repo, "--push")).data["landed"]).toBe(1);
    expect(there()).toEqual(["Merge branch 'two' into main", "Merge branch 'one' into main", "first"]);
  });

  it("a remote that refuses: nothing lands, its words are told, and the entry waits", async () => {
    hub.hook("pre-receive", "echo protected by policy >&2; exit 1");
    await add(repo, "one");
    const ran = await land(repo, "--push");
    expectJsonRefused(ran, 1, "E_PUSH_REJECTED");
    expect(ran.error.message).toContain("protected by policy");
    expect(firstParents(repo)).toEqual(["first"]);
    const { entries } = (await repo.askHere(LANDER, "land", "list")).data as unknown as {
      entries: { state: string }[];
    };
    expect(entries.map(({ state }) => state)).toEqual(["queued"]);
    // The answer was clear: it may land without the remote as well.
    expect((await land(repo, "--dry-run")).data["waiting"]).toBe(1);
    hub.hook("pre-receive", "exit 0");
    expect((await land(repo)).data["landed"]).toBe(1);
  });

  for (const verb of ["pause", "remove"])
    it(`land ${verb} while it is pushed: both say that it lands all the same`, async () => {
      const [begun, goOn] = [path.join(hub.room, "begun"), path.join(hub.room, "go-on")];
      hub.hook("pre-receive", `touch ${begun}; while ! test -e ${goOn}; do sleep 0.05; done`);
      await add(repo, "one");
      const running = repo.start(LANDER, ["land", "run", "--push", "--json"]);
      await until("it is pushed", () => fs.existsSync(begun));
      const words = verb === "pause" ? ["pause", "--reason", "release"] : ["remove", "one"];
      const told = await repo.run(LANDER, "land", ...words);
      fs.writeFileSync(goOn, "");
      expect(told.stderr).toContain("one was being pushed to main of origin, and may have landed there");
      const ran = await running.done;
      expect(ran.data, String(ran)).toMatchObject({ landed: 1, waiting: 0 });
      expect(there()).toEqual(["Merge branch 'one' into main", "first"]);
    });

  it("a remote that cannot be reached is told, and nothing lands", async () => {
    repo.git("remote", "set-url", "origin", path.join(hub.room, "nowhere"));
    await add(repo, "one");
    expectJsonRefused(await land(repo, "--push"), 10, "E_REMOTE_UNREACHABLE");
    expect(firstParents(repo)).toEqual(["first"]);
  });

  it("where the checkout cannot follow, it lands on the remote only, and the next run catches up", async () => {
    repo.write("a.txt", "edited\n");
    await add(repo, "one");
    const ran = await land(repo, "--push");
    expect(ran.data["entries"]).toMatchObject([{ outcome: "landed", remote_only: true }]);
    expect(ran.json.warnings?.join()).toContain("landed on origin only");
    expect(firstParents(repo)).toEqual(["first"]);
    expect(there()[0]).toBe("Merge branch 'one' into main");
    repo.git("checkout", "--quiet", "a.txt");
    await add(repo, "two");
    expect((await land(repo, "--push")).data["entries"]).toMatchObject([{ remote_only: false }]);
    expect(headOf(repo)).toBe(hub.head("main"));
  });

  for (const method of ["merge", "squash"])
    it(`killed between the push and the target here, by ${method}: it lands once, and the target follows`, async () => {
      await add(repo, "one", "--method", method);
      const deadly = new DeadlyGit(path.dirname(repo.root));
      const running = repo.start(LANDER, ["land", "run", "--push"], { env: deadly.env("after", "push") });
      expect((await running.done).status).toBe(null);
      const tip = hub.head("main");
      expect(there()).toHaveLength(2);
      expect(firstParents(repo)).toEqual(["first"]);
      // Without the remote nobody can tell: to land it here could make two of it.
      const unasked = await land(repo);
      expectJsonRefused(unasked, 9, "E_DIVERGED");
      expect(unasked.error.hint).toContain("cotenant land run --push --remote origin");
      const ran = await land(repo, "--push");
      expect(outcomes(ran), String(ran)).toEqual({ one: "landed" });
      expect(hub.head("main")).toBe(tip);
      expect(headOf(repo)).toBe(tip);
      expect(isClean(repo)).toBe(true);
    });
});

describe("land run --as-branch", () => {
  it("puts each at a branch of its own on top of the target, which stays", async () => {
    await add(repo, "one", "two");
    const before = headOf(repo);
    const ran = await land(repo, "--as-branch", "queue", "--push");
    expect(ran.data["entries"]).toMatchObject([
      {
        branch: "one",
        outcome: "landed",
        ref: "refs/heads/queue/one",
        hint: "gh pr create --base main --head queue/one --fill",
      },
      { branch: "two", outcome: "landed", ref: "refs/heads/queue/two" },
    ]);
    for (const name of ["one", "two"]) {
      expect(repo.git("rev-parse", `queue/${name}^1`).trim()).toBe(before);
      expect(hub.head(`queue/${name}`)).toBe(headOf(repo, `queue/${name}`));
    }
    expect([headOf(repo), hub.head("main")]).toEqual([before, before]);
  });

  it("replaces what it has put there before, and nothing else", async () => {
    await add(repo, "one");
    await land(repo, "--as-branch", "queue");
    branchWith(repo, "tmp", { three: "3" });
    repo.git("branch", "--force", "one", "tmp");
    await add(repo, "one");
    expect(outcomes(await land(repo, "--as-branch", "queue"))).toEqual({ one: "landed" });
    expect(repo.git("ls-tree", "--name-only", "queue/one")).toContain("three");
    repo.git("branch", "queue/two", "main");
    await add(repo, "two");
    const ran = await land(repo, "--as-branch", "queue");
    expectJsonRefused(ran, 9, "E_PROTECTED_REF");
    expect(headOf(repo, "queue/two")).toBe(headOf(repo));
  });

  it("puts aside what fails", async () => {
    await add(repo, "one", "two");
    const env = { COTENANT_LAND_CHECKS: "test ! -e one" };
    const ran = await repo.askWith(env, LANDER, "land", "run", "--as-branch", "queue");
    expect(outcomes(ran)).toEqual({ one: "parked", two: "landed" });
  });
});
