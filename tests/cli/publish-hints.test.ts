import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import type { TestRepo } from "../support/repo";
import { A, put, withFiles } from "./publish-stage";

const it = oneIn(8);

const B = "agent:b";

/** The words of the command that a hint ends in, as a shell takes them. */
function command(hint: string): string[] {
  const [, text = ""] = /: cotenant (.*)$/.exec(hint)!;
  return [...text.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!);
}

const publish = (repo: TestRepo, agent: string, ...args: string[]) =>
  repo.askHere(agent, "publish", "--branch", "work/x", "--message", "m", ...args);

describe("what publish tells to type next", () => {
  it("leases what is not covered, from where the caller stands, whatever it is called", async () => {
    const repo = withFiles();
    repo.write("src/deep/a b.txt", "x\n");
    repo.write("-odd", "x\n");
    const deep = repo.at("src/deep");
    const args = ["--from-worktree", "a b.txt", "../../-odd", "../a.ts"];
    deep.write("../a.ts", "new\n");
    const { error } = await publish(deep, A, ...args);
    expect(error.code).toBe("E_PATH_NOT_LEASED");
    await deep.prepare(A, ...command(error.hint));
    expect((await publish(deep, A, ...args)).status).toBe(0);
  });

  it("waits for what somebody else holds", async () => {
    const repo = withFiles();
    await repo.prepare(B, "lock", "acquire", "src/a.ts");
    const src = repo.at("src");
    const { error } = await publish(src, A, ...put("a.ts", "x\n"));
    const waiting = src.askHere(A, ...command(error.hint));
    // One after the other in this process: it is given back before it is waited for.
    await repo.run(B, "lock", "release", "src/a.ts");
    expect((await waiting).data.leases.map(({ key }) => key)).toEqual(["file:src/a.ts"]);
    expect((await publish(src, A, ...put("a.ts", "x\n"))).status).toBe(0);
  });

  it("does not speak of flags that it lacks where the branch is held", async () => {
    const repo = withFiles();
    await repo.prepare(A, "lock", "acquire", "src/a.ts");
    await repo.prepare(B, "lock", "acquire", "--ref", "refs/heads/work/x");
    const args = ["publish", "--branch", "work/x", "--message", "m", ...put("src/a.ts", "x\n")];
    for (const secs of ["0", "1"]) {
      const { error } = await repo.askWith({ COTENANT_PUBLISH_WAIT_SECS: secs }, A, ...args);
      expect(error.code).toBe(secs === "0" ? "E_LOCK_CONFLICT" : "E_WAIT_TIMEOUT");
      expect(error.hint).not.toMatch(/--wait|--timeout/);
      expect(error.hint).toContain("publish.wait_secs");
      await repo.prepare(A, ...command(error.hint));
    }
  });
});
