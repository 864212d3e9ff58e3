import { execFileSync } from "node:child_process";
import { describe, expect } from "vitest";
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
import type { Ran } from "../support/program";
import type { TestRepo } from "../support/repo";
import { TRIES_ALL } from "../support/sample";

const it = oneIn(5);

const COUNT = TRIES_ALL ? 100 : 20;
/** Out of ten: one conflicts, one fails its check. */
const conflicts = (n: number) => n % 10 === 3;
const fails = (n: number) => n % 10 === 7;
const lands = (n: number) => !conflicts(n) && !fails(n);
const numbers = Array.from({ length: COUNT }, (_, at) => at + 1);
const CHECK = "echo looking at $COTENANT_LANDING_BRANCH; ! ls | grep BROKEN";

function queued(): TestRepo {
  const repo = landingRepo();
  for (const n of numbers) {
    const files: Record<string, string> = { [`work-${n}.txt`]: `${n}\n` };
    if (conflicts(n)) files["a.txt"] = `of ${n}\n`;
    if (fails(n)) files[`BROKEN-${n}`] = "broken\n";
    branchWith(repo, `work/${n}`, files);
  }
  // What those that conflict conflict with.
  repo.write("a.txt", "of main\n");
  repo.git("commit", "--quiet", "--all", "--message", "second");
  return repo;
}

function expectLanded(repo: TestRepo): void {
  const wanted = numbers.filter(lands).map((n) => `Merge branch 'work/${n}' into main`);
  expect(firstParents(repo)).toEqual([...wanted.reverse(), "second", "first"]);
  // Each tip is green: nothing that fails was ever on the target.
  for (const commit of repo.git("rev-list", "--first-parent", "main").trim().split("\n"))
    expect(repo.git("ls-tree", "--name-only", commit)).not.toContain("BROKEN");
  expect(isClean(repo)).toBe(true);
}

interface Entry {
  readonly branch: string;
  readonly state: string;
  readonly parked: { readonly why: string; readonly output: string; readonly paths: string[] } | null;
}

async function expectAside(repo: TestRepo): Promise<void> {
  const { entries } = (await repo.askHere(LANDER, "land", "list")).data as unknown as { entries: Entry[] };
  expect(entries.map(({ branch }) => branch).sort()).toEqual(
    numbers
      .filter((n) => !lands(n))
      .map((n) => `work/${n}`)
      .sort(),
  );
  for (const { branch, parked, state } of entries) {
    const n = Number(branch.slice("work/".length));
    expect(state).toBe("parked");
    expect(parked).toMatchObject(conflicts(n) ? { why: "conflict", paths: ["a.txt"] } : { why: "checks" });
    if (fails(n)) expect(parked!.output).toContain(`BROKEN-${n}`);
  }
}

describe("S87: a queue of branches, a tenth of which conflicts and a tenth fails", () => {
  it("what passes lands in order, and the rest is put aside with its output", async () => {
    const repo = queued();
    await add(repo, ...numbers.map((n) => `work/${n}`));
    const ran = await repo.askWith({ COTENANT_LAND_CHECKS: CHECK }, LANDER, "land", "run", "--parallel", "3");
    expect(ran.data, String(ran)).toMatchObject({
      landed: numbers.filter(lands).length,
      parked: numbers.filter((n) => !lands(n)).length,
      waiting: 0,
    });
    expectLanded(repo);
    await expectAside(repo);
  }, 600_000);

  it("killed at any moment, it goes on: nothing lands twice, and nothing is lost", async () => {
    const repo = queued();
    await add(repo, ...numbers.map((n) => `work/${n}`));
    const env = { COTENANT_LAND_CHECKS: CHECK };
    let ran: Ran | null = null;
    let kills = 0;
    // Later each time, so that every run gets further than the last.
    for (let afterMs = 120; ran === null; afterMs += 61) {
      const running = repo.start(LANDER, ["land", "run", "--parallel", "2", "--json"], { env });
      const timer = setTimeout(() => {
        kills++;
        running.kill("SIGKILL");
      }, afterMs);
      const done = await running.done;
      clearTimeout(timer);
      if (done.status === 0) ran = done;
      else expect(done.status, String(done)).toBe(null);
    }
    expect(kills).toBeGreaterThan(2);
    expectLanded(repo);
    await expectAside(repo);
    expect((await repo.askHere(LANDER, "status")).data["leases"]).toEqual([]);
    execFileSync("git", ["fsck", "--strict"], { cwd: repo.root, stdio: "ignore" });
  }, 600_000);

  it("says so where nothing waits", async () => {
    const repo = landingRepo();
    const ran = await land(repo);
    expect(outcomes(ran)).toEqual({});
    expect(headOf(repo)).toBe(ran.data["tip"]);
  });
});
