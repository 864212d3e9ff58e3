import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import {
  add,
  branchWith,
  firstParents,
  headOf,
  LANDER,
  land,
  landingRepo,
  outcomes,
} from "../support/landing";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import type { TestRepo } from "../support/repo";

const it = oneIn(4);

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

const checked = (env: Record<string, string>, ...args: string[]) =>
  repo.askWith(env, LANDER, "land", "run", ...args);
const worktrees = () => `${repo.root}.worktrees`;

/** One that has ended may wait for long until its new parent asks for its end. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

interface Parked {
  readonly output: string;
  readonly output_file: string;
  readonly why: string;
}

describe("checks of the merge queue", () => {
  it("see exactly what would land, and their output goes with what fails", async () => {
    branchWith(repo, "good", { good: "1" });
    branchWith(repo, "bad", { bad: "1" });
    await add(repo, "bad", "good");
    const env = { COTENANT_LAND_CHECKS: "printf 'red\\033[31m\\n'; ls; test ! -e bad" };
    const ran = await checked(env);
    expect(outcomes(ran)).toEqual({ bad: "parked", good: "landed" });
    const [parked] = ran.data["entries"] as Parked[];
    expect(parked).toMatchObject({ why: "checks" });
    expect(parked!.output).toBe("red\na.txt\nb.txt\nbad\nc.txt");
    expect(fs.readFileSync(parked!.output_file, "utf8")).toContain("exited with 1");
  });

  it("fail with words that 'land list' still has for whoever comes later", async () => {
    branchWith(repo, "bad", { bad: "1" });
    await add(repo, "bad");
    const ran = await checked({ COTENANT_LAND_CHECKS: "echo this is wrong; exit 3" });
    const [{ hint, output_file: file }] = ran.data["entries"] as [Parked & { hint: string }];
    const { stdout } = await repo.start("agent:worker", ["land", "list"]).done;
    for (const words of ["    | this is wrong\n", `    all of it: ${file}\n`, `    next: ${hint}`])
      expect(stdout).toContain(words);
  });

  it("run in a worktree that stays warm: ignored files are kept, everything else goes", async () => {
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    await add(repo, "one");
    const env = {
      COTENANT_LAND_CHECKS:
        "test ! -e left; touch left; mkdir -p cache; date > cache/$COTENANT_LANDING_ENTRY",
    };
    expect(outcomes(await checked(env))).toEqual({ one: "landed" });
    await add(repo, "two");
    expect(outcomes(await checked(env))).toEqual({ two: "landed" });
    expect(fs.readdirSync(worktrees())).toEqual(["cotenant-land-1"]);
    expect(fs.readdirSync(path.join(worktrees(), "cotenant-land-1/cache"))).toHaveLength(2);
    const { worktrees: all } = (await repo.askHere(LANDER, "worktree", "list")).data;
    expect(all.map((one) => (one as unknown as { purpose: string }).purpose)).toEqual([null, "landing"]);
  });

  it("as many at once as land.parallel says, each in a worktree of its own, and in order", async () => {
    for (const name of ["one", "two", "three"]) branchWith(repo, name, { [name]: name });
    await add(repo, "one", "two", "three");
    // The first waits for the last: they only pass together.
    const meet = path.join(path.dirname(repo.root), "meet");
    const line = `touch ${meet}-$COTENANT_LANDING_BRANCH; for i in $(seq 600); do test -e ${meet}-three && exit 0; sleep 0.1; done; exit 1`;
    const ran = await checked({ COTENANT_LAND_CHECKS: line, COTENANT_LAND_PARALLEL: "3" });
    expect(outcomes(ran)).toEqual({ one: "landed", two: "landed", three: "landed" });
    expect(
      firstParents(repo)
        .slice(0, 3)
        .map((subject) => subject.split("'")[1]),
    ).toEqual(["three", "two", "one"]);
    expect(fs.readdirSync(worktrees()).sort()).toEqual([
      "cotenant-land-1",
      "cotenant-land-2",
      "cotenant-land-3",
    ]);
  });

  it("are spared what changes nothing but issues: the code is what it was", async () => {
    const issue = ".cotenant/issues/01ARZ3NDEKTSV4RRFFQ69G5FAV";
    branchWith(repo, "notes", {
      [`${issue}/comments.jsonl`]: "{}\n",
      ".cotenant/events/local.jsonl": "{}\n",
    });
    branchWith(repo, "more", { [`${issue}/note`]: "n", code: "c" });
    await add(repo, "notes", "more");
    expect(outcomes(await checked({ COTENANT_LAND_CHECKS: "false" }))).toEqual({
      notes: "landed",
      more: "parked",
    });
  });

  it("what took too long is put aside", async () => {
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    const ran = await checked({ COTENANT_LAND_CHECKS: "sleep 60", COTENANT_LAND_CHECK_TIMEOUT_SECS: "1" });
    expect(ran.data["entries"]).toMatchObject([{ outcome: "parked", message: "sleep 60 took too long" }]);
  });

  it("worktree.setup runs once in a new one, and where it fails nothing is at fault", async () => {
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    await add(repo, "one");
    const env = { COTENANT_LAND_CHECKS: "test -e cache", COTENANT_WORKTREE_SETUP: "exit 3" };
    expectJsonRefused(await checked(env), 9, "E_CHECK_FAILED");
    env.COTENANT_WORKTREE_SETUP = "echo x >> cache";
    expect(outcomes(await checked(env))).toEqual({ one: "landed" });
    await add(repo, "two");
    await checked(env);
    expect(fs.readFileSync(path.join(worktrees(), "cotenant-land-1/cache"), "utf8")).toBe("x\n");
  });

  it("Ctrl-C ends them with all that they have started, and leaves no lease", async () => {
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    const mark = path.join(path.dirname(repo.root), "pid");
    const line = `sh -c 'echo $$ > ${mark}; sleep 300' & wait`;
    const running = repo.start(LANDER, ["land", "run"], { env: { COTENANT_LAND_CHECKS: line } });
    while (!fs.existsSync(mark) || fs.readFileSync(mark, "utf8").trim() === "")
      await new Promise((resolve) => setTimeout(resolve, 50));
    running.kill("SIGINT");
    const ran = await running.done;
    expect(ran.stderr).toContain("interrupted while landing on main");
    const pid = Number(fs.readFileSync(mark, "utf8"));
    expect(isRunning(pid)).toBe(false);
    expect((await repo.askHere(LANDER, "status")).data.leases).toEqual([]);
    expect((await land(repo)).data["landed"]).toBe(1);
  });
});

describe("a run of the merge queue", () => {
  it("refuses a second lander with the first one's name; --wait waits", async () => {
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    const go = path.join(path.dirname(repo.root), "go");
    const line = `touch ${go}-begun; while [ ! -e ${go} ]; do sleep 0.1; done`;
    const slow = repo.start(LANDER, ["land", "run", "--json"], { env: { COTENANT_LAND_CHECKS: line } });
    while (!fs.existsSync(`${go}-begun`)) await new Promise((resolve) => setTimeout(resolve, 50));
    for (const who of ["human:bob", LANDER]) {
      const ran = await repo.ask(who, "land", "run");
      expectJsonRefused(ran, 1, "E_LOCK_CONFLICT");
      expect(ran.error.message).toContain(LANDER);
      expect(ran.error.hint).toContain("--wait");
    }
    const waiting = repo.start("human:bob", ["land", "run", "--wait", "--json"]);
    fs.writeFileSync(go, "");
    expect((await slow.done).data["landed"]).toBe(1);
    expect((await waiting.done).data["landed"]).toBe(0);
  });

  it("an entry that is taken out while it is checked does not land, nor what stood on it", async () => {
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    await add(repo, "one", "two");
    const program = new URL("../../bin/cotenant", import.meta.url).pathname;
    const remove = `test $COTENANT_LANDING_BRANCH != one || COTENANT_AGENT_ID=agent:worker '${process.execPath}' '${program}' land remove one`;
    const ran = await checked({ COTENANT_LAND_CHECKS: remove, COTENANT_LAND_PARALLEL: "2" });
    expect(outcomes(ran)).toEqual({ two: "landed" });
    expect(repo.git("ls-tree", "--name-only", "main")).not.toContain("one");
  });

  it("lands only what it is asked for with --only", async () => {
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    await add(repo, "one", "two");
    expect(outcomes(await land(repo, "--only", "two"))).toEqual({ two: "landed" });
    expect(firstParents(repo)).toEqual(["Merge branch 'two' into main", "first"]);
  });

  it("goes on from where the target is, if somebody else moves it meanwhile", async () => {
    repo.git("checkout", "--quiet", "--detach");
    branchWith(repo, "one", { one: "1" });
    repo.git("checkout", "--quiet", "--detach");
    await add(repo, "one");
    const move = `test -e cache || { touch cache; git update-ref refs/heads/main $(git commit-tree -p main -m moved main^{tree}); }`;
    expect(outcomes(await checked({ COTENANT_LAND_CHECKS: move }))).toEqual({ one: "landed" });
    expect(firstParents(repo)).toEqual(["Merge branch 'one' into main", "moved", "first"]);
  });

  it("refuses what a publish would refuse, with the same words", async () => {
    branchWith(repo, "env", { ".env": "KEY=1\n" });
    branchWith(repo, "key", {
      "key.txt": "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v\n-----END PRIVATE KEY-----\n",
    });
    branchWith(repo, "vendored", { "vendor/x": "1" });
    branchWith(repo, "fine", { fine: "1" });
    await add(repo, "env", "key", "vendored", "fine");
    const ran = await checked({ COTENANT_PUBLISH_FORBIDDEN_PATHS: "vendor/**" });
    expect(outcomes(ran)).toEqual({ env: "parked", key: "parked", vendored: "parked", fine: "landed" });
    expect(ran.data["entries"]).toMatchObject([
      { why: "refused", message: expect.stringContaining("E_SECRET_FOUND") },
      { why: "refused", message: expect.stringContaining("E_SECRET_FOUND") },
      { why: "refused", message: expect.stringContaining("publish.forbidden_paths") },
      { why: null },
    ]);
  });

  it("--dry-run says what would merge, and changes nothing", async () => {
    branchWith(repo, "one", { "a.txt": "one\n" });
    branchWith(repo, "two", { "a.txt": "two\n" });
    await add(repo, "one", "two");
    const before = headOf(repo);
    expect(outcomes(await land(repo, "--dry-run"))).toEqual({ one: "waiting", two: "parked" });
    expect(headOf(repo)).toBe(before);
    const { entries } = (await repo.askHere(LANDER, "land", "list")).data as unknown as {
      entries: { state: string }[];
    };
    expect(entries.map(({ state }) => state)).toEqual(["queued", "queued"]);
  });

  it("tries again what was put aside, with the commit that was added", async () => {
    branchWith(repo, "one", { one: "1" });
    await add(repo, "one");
    expect(outcomes(await checked({ COTENANT_LAND_CHECKS: "false" }))).toEqual({ one: "parked" });
    expect((await repo.askHere("agent:worker", "land", "retry", "one")).data).toMatchObject({
      changed: true,
    });
    expect(outcomes(await land(repo))).toEqual({ one: "landed" });
    // What it printed goes with it.
    expect(fs.readdirSync(path.join(repo.control, "land"))).toEqual([]);
  });
});
