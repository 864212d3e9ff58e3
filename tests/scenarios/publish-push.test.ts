import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { newRequestId, put, withFiles } from "../cli/publish-stage";
import { oneIn } from "../support/one-in";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(5);

const A = "agent:a";
const B = "agent:b";

/** A remote with main and work/x on it, a clone that knows both, and somebody else's. */
function stage() {
  const room = scratch();
  const first = withFiles(path.join(room, "first"));
  first.git("branch", "work/x");
  const remote = path.join(room, "remote.git");
  execFileSync("git", ["clone", "--quiet", "--bare", first.root, remote]);
  const clone = (name: string) => {
    execFileSync("git", ["clone", "--quiet", remote, path.join(room, name)], { stdio: "ignore" });
    return TestRepo.of(path.join(room, name));
  };
  const show = (name: string) =>
    execFileSync("git", ["show", `work/x:${name}`], { cwd: remote, encoding: "utf8" });
  const count = () =>
    Number(execFileSync("git", ["rev-list", "--count", "main..work/x"], { cwd: remote, encoding: "utf8" }));
  return { remote, mine: clone("mine"), theirs: clone("theirs"), show, count };
}

/** As a person at the other clone does. */
function pushedByHand(theirs: TestRepo, name: string, content: string): void {
  theirs.git("switch", "--quiet", "work/x");
  theirs.git("pull", "--quiet", "--ff-only");
  theirs.write(name, content);
  theirs.git("add", "--all");
  theirs.git("commit", "--quiet", "--message", `by hand: ${name}`);
  theirs.git("push", "--quiet");
}

const publish = (repo: TestRepo, agent: string, ...args: string[]) =>
  repo.askHere(agent, "publish", "--branch", "work/x", "--message", "Do it", ...args);

describe("S86: a push that the remote has moved under", () => {
  it("ends in a branch with both changes, linear, without its own rejected commit", async () => {
    const { mine, theirs, show, count } = stage();
    await mine.prepare(A, "lock", "acquire", "--dir", "src");
    expect((await publish(mine, A, ...put("src/a.ts", "one\n"), "--push")).status).toBe(0);
    pushedByHand(theirs, "theirs.txt", "theirs\n");
    const { data } = await publish(mine, A, ...put("src/a.ts", "two\n"), "--push");
    expect(data).toMatchObject({ push: { result: "pushed" }, merged: true });
    expect([show("src/a.ts"), show("theirs.txt"), count()]).toEqual(["two\n", "theirs\n", 3]);
    expect(mine.git("rev-parse", "work/x", "origin/work/x").trim().split("\n")).toEqual([
      data["commit"],
      data["commit"],
    ]);
    expect(mine.git("rev-list", "--merges", "work/x")).toBe("");
    expect(mine.git("fsck", "--strict", "--no-dangling").trim()).toBe("");
  });

  it("keeps what others of this clone have published and not pushed, as theirs", async () => {
    const { mine, theirs, show, count } = stage();
    await mine.prepare(A, "lock", "acquire", "src/a.ts");
    await mine.prepare(B, "lock", "acquire", "src/b.ts");
    await publish(mine, B, ...put("src/b.ts", "b\n"), "--author", "Bea <bea@example.org>");
    pushedByHand(theirs, "theirs.txt", "theirs\n");
    expect((await publish(mine, A, ...put("src/a.ts", "a\n"), "--push")).status).toBe(0);
    expect([show("src/a.ts"), show("src/b.ts"), count()]).toEqual(["a\n", "b\n", 3]);
    const agents = mine.git(
      "log",
      "-2",
      "--format=%an %(trailers:key=Cotenant-Agent,valueonly,separator=)",
      "work/x",
    );
    expect(agents).toMatch(/ agent:a\nBea agent:b\n/);
  });

  it("that the remote refuses for another reason: the hint, as printed, pushes it later, on top of what is there then", async () => {
    const { remote, mine, theirs, show, count } = stage();
    await mine.prepare(A, "lock", "acquire", "src/a.ts");
    const hook = path.join(remote, "hooks/pre-receive");
    fs.writeFileSync(hook, "#!/bin/sh\necho closed today; exit 1\n", { mode: 0o755 });
    const { error } = await publish(mine, A, ...put("src/a.ts", "mine\n"), "--push");
    expect(error.code).toBe("E_PUSH_REJECTED");
    fs.rmSync(hook);
    pushedByHand(theirs, "theirs.txt", "theirs\n");
    const [, words = ""] = /: cotenant (.*)$/.exec(error.hint)!;
    expect((await mine.askHere(A, ...words.split(" "))).data["push"]).toMatchObject({ result: "pushed" });
    expect([show("src/a.ts"), show("theirs.txt"), count()]).toEqual(["mine\n", "theirs\n", 2]);
    // The same publish once more finds itself there.
    expect((await publish(mine, A, ...put("src/a.ts", "mine\n"), "--push")).data["changed"]).toBe(false);
    expect(count()).toBe(2);
  });

  it("in the same places: nothing is lost, and made anew with --base it replaces its own rejected commit", async () => {
    const { mine, theirs, show, count } = stage();
    await mine.prepare(A, "lock", "acquire", "--dir", "src");
    // Also published here and not pushed; it stays.
    await publish(mine, A, ...put("src/b.ts", "mine too\n"));
    pushedByHand(theirs, "src/a.ts", "theirs\n");
    const { error } = await publish(mine, A, ...put("src/a.ts", "mine\n"), "--push");
    expect(error.code).toBe("E_PUBLISH_CONFLICT");
    expect(mine.git("show", "work/x:src/a.ts")).toBe("mine\n");
    const shown = /theirs: git (.*)$/.exec(error.hint)![1]!.split(" ");
    expect(mine.git(...shown)).toBe("theirs\n");
    const both = put("src/a.ts", "theirs\nmine\n");
    const again = await publish(mine, A, ...both, "--base", "origin/work/x", "--push");
    expect(again.data["push"]).toMatchObject({ result: "pushed" });
    expect([show("src/a.ts"), show("src/b.ts"), count()]).toEqual(["theirs\nmine\n", "mine too\n", 3]);
  });

  it("asked once more with its id, it is found where it is now", async () => {
    const { remote, mine, theirs, count } = stage();
    await mine.prepare(A, "lock", "acquire", "src/a.ts");
    const args = [...put("src/a.ts", "mine\n"), "--push", "--request-id", newRequestId()];
    pushedByHand(theirs, "theirs.txt", "theirs\n");
    const first = await publish(mine, A, ...args);
    const again = await publish(mine, A, ...args);
    expect(again.data).toMatchObject({ replayed: true, commit: first.data["commit"] });
    expect(execFileSync("git", ["rev-parse", "work/x"], { cwd: remote, encoding: "utf8" }).trim()).toBe(
      first.data["commit"],
    );
    expect(count()).toBe(2);
  });

  it("from a fresh clone, which has the branch from the remote only, begins there and not at main", async () => {
    const { mine, theirs, show, count } = stage();
    pushedByHand(theirs, "theirs.txt", "theirs\n");
    mine.git("fetch", "--quiet");
    expect(mine.git("branch", "--list", "work/x").trim()).toBe("");
    await mine.prepare(A, "lock", "acquire", "src/a.ts");
    const { data } = await publish(mine, A, ...put("src/a.ts", "mine\n"));
    expect(data["parent"]).toBe(mine.git("rev-parse", "origin/work/x").trim());
    expect((await publish(mine, A, ...put("src/a.ts", "mine\n"), "--push")).status).toBe(0);
    expect([show("theirs.txt"), count()]).toEqual(["theirs\n", 2]);
  });
});
