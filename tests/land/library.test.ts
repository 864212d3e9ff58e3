import { describe, expect, it } from "vitest";
import { type LandProgress, openRepository } from "../../src/index";
import { branchWith, firstParents, landingRepo } from "../support/landing";

describe("the merge queue from a program", () => {
  it("adds, lists and lands, only what it is asked for, and tells what it does", async () => {
    const repo = landingRepo();
    for (const name of ["one", "two"]) branchWith(repo, name, { [name]: name });
    const env = { ...process.env, COTENANT_LAND_CHECKS: "true" };
    const repository = await openRepository({ cwd: repo.root, agentId: "ci:nightly", env });
    try {
      const [one] = await repository.landAdd({ branches: ["one", "two"], method: "squash" });
      expect(await repository.landQueue()).toHaveLength(2);
      const told: LandProgress[] = [];
      const only = [one!.entry.entryId];
      const report = await repository.landRun({ only, onProgress: (event) => told.push(event) });
      expect(report.entries).toMatchObject([{ branch: "refs/heads/one", outcome: "landed" }]);
      expect(report.stopped).toBe(null);
      expect(told.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["checking", "landed"]));
      expect(firstParents(repo)).toEqual(["one: change 1", "first"]);
      expect((await repository.landQueue({ all: true })).map(({ state }) => state)).toEqual([
        "landed",
        "queued",
      ]);
      // What ends a run early is told, with what is left.
      repo.write("a.txt", "edited\n");
      const stopped = await repository.landRun();
      expect(stopped.stopped).toMatchObject({ code: "E_PROTECTED_REF" });
      expect(stopped.entries).toMatchObject([{ branch: "refs/heads/two", outcome: "waiting" }]);
    } finally {
      await repository.close();
    }
  });

  it("ends with its signal, and gives back what it holds", async () => {
    const repo = landingRepo();
    branchWith(repo, "one", { one: "1" });
    const env = { ...process.env, COTENANT_LAND_CHECKS: "sleep 300" };
    const repository = await openRepository({ cwd: repo.root, agentId: "ci:nightly", env });
    await repository.landAdd({ branches: ["one"] });
    const controller = new AbortController();
    const report = await repository.landRun({
      signal: controller.signal,
      onProgress: ({ kind }) => kind === "checking" && setTimeout(() => controller.abort(), 200),
    });
    expect(report.stopped).toMatchObject({ code: "E_INTERRUPTED" });
    expect(report.entries).toMatchObject([{ outcome: "waiting" }]);
    expect(await repository.list()).toEqual([]);
    await repository.close();
  });
});
