import { describe, expect, it } from "vitest";
import { DeadlyGit } from "../support/deadly-git";
import { agentsOf, dispatch, dispatchRepo, issueOn, landings, leases, WORKS } from "../support/dispatch";
import { isClean, LANDER } from "../support/landing";
import { until } from "../support/program";
import { sampleOf } from "../support/sample";
import { scratch } from "../support/scratch";

const ARGS = ["--command", WORKS, "--land"];

describe("a dispatcher that dies beside a Git command of its own", () => {
  it("goes on when it is started again: the work lands once, the issue is closed once, and nothing is left", async () => {
    const counted = dispatchRepo({});
    const counter = new DeadlyGit(scratch());
    await dispatch(counted.repo, ARGS, { env: counter.env("before", 0) });
    const moments = Array.from({ length: counter.used }, (_, at) =>
      (["before", "after"] as const).map((when) => ({ when, nth: at + 1 })),
    ).flat();
    let deaths = 0;
    for (const { when, nth } of sampleOf(moments, 40)) {
      const { repo, ids } = dispatchRepo({});
      const dead = await dispatch(repo, ARGS, { env: new DeadlyGit(scratch()).env(when, nth) });
      if (dead.ran.status === null) deaths++;
      const again = await dispatch(repo, ARGS);
      const said = `${when} Git command ${nth}\n${dead.ran}\n${again.ran}`;
      expect(again.ran.status, said).toBe(0);
      expect(issueOn(repo, ids[0]!), said).toMatchObject({ state: "done" });
      const shortId = (await repo.askHere(LANDER, "issue", "show", ids[0]!)).data.issue.short_id;
      expect(landings(repo, shortId), said).toEqual({
        work: [expect.any(String)],
        closed: [expect.any(String)],
      });
      expect(isClean(repo), said).toBe(true);
      expect(await leases(repo), said).toEqual([]);
      expect((await repo.askHere(LANDER, "land", "list")).data["entries"], said).toEqual([]);
      expect(repo.git("branch", "--list", "cotenant/*"), said).toBe("");
      expect(agentsOf(repo), said).toEqual([]);
    }
    expect(deaths).toBeGreaterThan(0);
  }, 1_800_000);

  it("right after the commit that closes an issue has landed: it is not landed again", async () => {
    const { repo, ids } = dispatchRepo({});
    // Its branch is deleted then.
    const dead = await dispatch(repo, ARGS, { env: new DeadlyGit(scratch()).env("after", "-d") });
    expect(dead.ran.status, String(dead.ran)).toBe(null);
    expect(issueOn(repo, ids[0]!)).toMatchObject({ state: "done" });
    const tip = repo.git("rev-parse", "main");
    const again = await dispatch(repo, ARGS);
    expect(again.only, String(again.ran)).toMatchObject({ end: "done", attempts: 0 });
    expect(repo.git("rev-parse", "main")).toBe(tip);
    expect(await leases(repo)).toEqual([]);
  });

  it("between a closing and its landing, for longer than the claim lasts: it lands all the same", async () => {
    const { repo, ids } = dispatchRepo({});
    const shortId = (await repo.askHere(LANDER, "issue", "show", ids[0]!)).data.issue.short_id;
    const deadly = new DeadlyGit(scratch()).env("after", `refs/heads/cotenant/done-${shortId}`);
    const env = { ...deadly, COTENANT_COORDINATION_DEFAULT_TTL_SECS: "3" };
    const dead = await dispatch(repo, ARGS, { env });
    expect(dead.ran.status, String(dead.ran)).toBe(null);
    expect(issueOn(repo, ids[0]!)).toMatchObject({ state: "ready" });
    await until("the claim has run out", async () => (await leases(repo)).length === 0);
    const again = await dispatch(repo, ARGS);
    expect(issueOn(repo, ids[0]!), String(again.ran)).toMatchObject({ state: "done" });
    expect(landings(repo, shortId)).toEqual({ work: [expect.any(String)], closed: [expect.any(String)] });
  });
});
