import { execFileSync } from "node:child_process";
import { beforeEach, describe, expect, it } from "vitest";
import { GuardedAgent, harnessProcess, TestClock, toldIn } from "../support/guard";
import { TestRepo } from "../support/repo";

let repo: TestRepo;
let clock: TestClock;
let harnesses: { ada: ReturnType<typeof harnessProcess>; bob: ReturnType<typeof harnessProcess> };
beforeEach(() => {
  repo = TestRepo.make();
  for (const file of ["a.txt", "sub/b.txt"]) repo.write(file, "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  clock = new TestClock();
  harnesses = { ada: harnessProcess(), bob: harnessProcess() };
});

const ada = () => new GuardedAgent(repo, { session: "aaaaaaaa-1", clock, pid: harnesses.ada.pid });
const bob = () => new GuardedAgent(repo, { session: "bbbbbbbb-2", clock, pid: harnesses.bob.pid });

/** A command of Bob's changes what Ada holds. */
async function trespass(...files: string[]): Promise<void> {
  for (const file of files) await ada().write(file);
  clock.aheadMs += 60_000;
  await bob().shell("node build.js");
  for (const file of files) repo.write(file, `trespass ${clock.aheadMs}\n`);
  expect(toldIn(await bob().afterShell("node build.js"))).toContain(`${ada().agentId} holds it`);
}

const listed = async () => {
  const { violations } = (await repo.ask("human:h", "guard", "status")).data as unknown as {
    violations: readonly { readonly id: string; readonly path: string }[];
  };
  const found = (await repo.ask("human:h", "status")).data["needs_a_person"] as { code: string }[];
  // Both say the same.
  expect(found.filter(({ code }) => code === "lease_trespassed")).toHaveLength(violations.length);
  return violations;
};
const paths = async () => (await listed()).map(({ path }) => path).sort();
const settled = () => repo.log().filter(({ event_type: type }) => type === "guard.settled");
/** As a harness's shell does it. */
const commit = (agent: string, session: string, ...files: string[]) =>
  execFileSync("git", ["commit", "--quiet", "--message", "x", "--", ...files], {
    cwd: repo.root,
    stdio: "pipe",
    env: { ...process.env, COTENANT_AGENT_ID: agent, COTENANT_SESSION_ID: session },
  });

describe("what a command changed under somebody else's lease", () => {
  it("is settled with the command that status names, as printed, and stays in the log", async () => {
    await trespass("a.txt", "sub/b.txt");
    const { data } = await repo.ask("human:h", "status");
    const found = (data["needs_a_person"] as { code: string; message: string; next: string }[]).filter(
      ({ code }) => code === "lease_trespassed",
    );
    const first = found.find(({ message }) => message.startsWith("a.txt "))!;
    const words = /cotenant (guard settle \S+)$/.exec(first.next)![1]!.split(" ");
    // From anywhere in the repository.
    const ran = await repo.at("sub").ask("human:h", ...words);
    expect(ran.data["settled"]).toMatchObject([
      { path: "a.txt", agent_id: bob().agentId, owner: ada().agentId },
    ]);
    expect(await paths()).toEqual(["sub/b.txt"]);
    expect(settled().at(-1)).toMatchObject({
      actor: { agent_id: "human:h" },
      payload: { how: "seen", files: [{ path: "a.txt", agent_id: bob().agentId, owner: ada().agentId }] },
    });
    expect((await repo.run("human:h", "events", "--type", "guard.settled")).stdout).toMatch(
      new RegExp(`human:h .*a\\.txt .*changed by ${bob().agentId} under the lease of ${ada().agentId} +seen`),
    );
    expect((await repo.ask("human:h", ...words)).error.code).toBe("E_NOT_FOUND");
  });

  it("is settled by its path, by a directory around it, or all of it at once", async () => {
    await trespass("a.txt", "sub/b.txt");
    await repo.at("sub").ask("human:h", "guard", "settle", "../a.txt");
    expect(await paths()).toEqual(["sub/b.txt"]);
    expect((await repo.ask("human:h", "guard", "settle", "sub")).status).toBe(0);
    expect(await paths()).toEqual([]);
    await trespass("a.txt", "sub/b.txt");
    expect((await repo.ask("human:h", "guard", "settle")).error.code).toBe("E_USAGE");
    expect((await repo.ask("human:h", "guard", "settle", "--all")).status).toBe(0);
    expect(await paths()).toEqual([]);
    expect((await repo.run("human:h", "guard", "settle", "--all")).stdout).toContain("nothing to settle");
  });

  it("is settled by people and by whoever held the file, never by whose command it was", async () => {
    await trespass("a.txt", "sub/b.txt");
    for (const agent of [bob().agentId, "agent:third"])
      expect((await repo.ask(agent, "guard", "settle", "--all")).error, agent).toMatchObject({
        code: "E_POLICY",
        hint: expect.stringContaining(ada().agentId),
      });
    expect(await paths()).toEqual(["a.txt", "sub/b.txt"]);
    expect((await repo.ask(ada().agentId, "guard", "settle", "a.txt")).status).toBe(0);
    expect(await paths()).toEqual(["sub/b.txt"]);
  });

  it("leaves by itself once its holder, who has heard of it, has committed the file", async () => {
    await trespass("a.txt");
    repo.git("commit", "--quiet", "--message", "second", "--", "a.txt");
    expect(await paths(), "nobody who held it has looked").toEqual(["a.txt"]);
    expect(toldIn(await ada().send("prompt"))).toContain(`changed by a shell command of ${bob().agentId}`);
    expect(await paths()).toEqual([]);
    expect(settled().at(-1)!.payload).toMatchObject({ how: "committed", files: [{ path: "a.txt" }] });
  });

  it("does not leave while its holder has the file and has not committed it", async () => {
    await trespass("a.txt");
    expect(toldIn(await ada().send("prompt"))).toContain(bob().agentId);
    repo.git("commit", "--quiet", "--allow-empty", "--message", "something else");
    await ada().send("prompt");
    await ada().send("end");
    expect(await paths()).toEqual(["a.txt"]);
  });

  it("is told anew to its holder when it happens again, and is open again", async () => {
    await trespass("a.txt");
    expect(toldIn(await ada().send("prompt"))).toContain(bob().agentId);
    await repo.ask("human:h", "guard", "settle", "--all");
    clock.aheadMs += 60_000;
    await trespass("a.txt");
    expect(await paths()).toEqual(["a.txt"]);
    expect(toldIn(await ada().send("prompt"))).toContain(bob().agentId);
  });

  it("leaves by itself once both sessions are over and the file is as it is committed", async () => {
    await trespass("a.txt");
    await ada().send("end");
    await harnesses.ada.kill();
    repo.git("commit", "--quiet", "--message", "second", "--", "a.txt");
    expect(await paths(), "whose command it was may still be asked").toEqual(["a.txt"]);
    await harnesses.bob.kill();
    expect(await paths()).toEqual([]);
    // Reads write nothing; gc puts it on record.
    expect(settled()).toEqual([]);
    expect((await repo.ask("human:h", "gc")).status).toBe(0);
    expect(settled().at(-1)!.payload).toMatchObject({ how: "over", files: [{ path: "a.txt" }] });
  });

  it("stays while both sessions are over and the change is not committed", async () => {
    await trespass("a.txt");
    for (const { kill } of [harnesses.ada, harnesses.bob]) await kill();
    expect(await paths()).toEqual(["a.txt"]);
    await repo.ask("human:h", "gc");
    expect(await paths()).toEqual(["a.txt"]);
    repo.git("restore", "a.txt");
    expect(await paths(), "taken back").toEqual([]);
  });

  it("is settled by a commit through the hooks, unless it is the one of whose command it was", async () => {
    expect((await repo.ask("human:h", "hooks", "install")).status).toBe(0);
    await trespass("a.txt", "sub/b.txt");
    await ada().send("end");
    commit(bob().agentId, "bbbbbbbb-2", "a.txt");
    expect(await paths()).toEqual(["a.txt", "sub/b.txt"]);
    commit("human:h", "default", "sub/b.txt");
    expect(await paths()).toEqual(["a.txt"]);
  });
});
