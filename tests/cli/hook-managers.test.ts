import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { GuardedAgent, toldIn } from "../support/guard";
import { MANAGERS, type RealManager } from "../support/hook-managers";
import { HookedRepo } from "../support/hooks";
import { oneIn } from "../support/one-in";
import { pictureOf, type TestRepo } from "../support/repo";

const it = oneIn(8);

const NAMES = Object.keys(MANAGERS);

let hooked: HookedRepo;
let repo: TestRepo;
beforeEach(async () => {
  hooked = await HookedRepo.make();
  repo = hooked.repo;
});

/** The manager's files are committed before anything else happens. */
function project(name: string): RealManager {
  const manager = MANAGERS[name]!;
  manager.prepare(hooked);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "manager", "--no-verify");
  return manager;
}

/** Every file that may have something of ours in it. */
function everything(): Record<string, string> {
  const others = /^(?:\.git\/(?!hooks|config$|info\/exclude)|node_modules|package-lock|a\.txt)/;
  return Object.fromEntries(Object.entries(pictureOf(repo.root)).filter(([name]) => !others.test(name)));
}

/** Pictures have their contents in Base64. */
function oursIn(picture: Record<string, string>): string[] {
  const text = (seen: string) => Buffer.from(seen.split(" ")[1] ?? "", "base64").toString();
  return Object.keys(picture).filter((name) => /cotenant hook/.test(text(picture[name]!)));
}

/** Nothing of ours has run since: what is there must do. */
async function expectRefused(): Promise<void> {
  const head = repo.git("rev-parse", "HEAD");
  const refused = await hooked.commit("agent:a");
  expect(refused.status, `${refused}`).not.toBe(0);
  expect(refused.stdout + refused.stderr).toContain("a.txt is held by agent:b");
  expect(repo.git("rev-parse", "HEAD")).toBe(head);
}

/** Both run, once. */
async function expectCommitted(): Promise<void> {
  await repo.prepare("agent:b", "lock", "release", "a.txt");
  hooked.journalled();
  const made = await hooked.commit("agent:a");
  expect(made.status, `${made}`).toBe(0);
  expect(hooked.journalled()).toEqual(["theirs"]);
}

async function states(): Promise<string[]> {
  const { hooks } = (await repo.askHere("agent:a", "hooks", "status", "--no-trial")).data;
  return (hooks as { state: string }[]).map(({ state }) => state);
}
const ALL = ["installed", "installed", "installed", "installed"];

describe("hooks installed beside the real", () => {
  const cases = NAMES.flatMap((name) =>
    Object.keys(MANAGERS[name]!.later).map((later) => [name, later] as const),
  );
  it.each(cases)("%s survive '%s', and come out to the byte", async (name, later) => {
    const manager = project(name);
    manager.install(hooked);
    const before = everything();
    await repo.prepare("agent:a", "hooks", "install");
    expect(await states()).toEqual(ALL);
    await repo.prepare("agent:b", "lock", "acquire", "a.txt");
    manager.later[later]!(hooked);
    await expectRefused();
    await expectCommitted();
    // Whatever was gone is back by now.
    expect(await states()).toEqual(ALL);
    expect(repo.git("status", "--short")).not.toMatch(/husky|lefthook-local/);
    await repo.prepare("agent:a", "hooks", "uninstall");
    const after = everything();
    expect(oursIn(after)).toEqual([]);
    // Another configuration has other hooks of the manager's own.
    if (!later.startsWith("another")) expect(after).toEqual(before);
  });
});

describe("hooks that were there before the real", () => {
  it.each(NAMES)("%s are put back by the next command, which says so", async (name) => {
    const manager = project(name);
    await repo.prepare("agent:a", "hooks", "install");
    await repo.prepare("agent:b", "lock", "acquire", "a.txt");
    manager.install(hooked);
    const said = await repo.runHere("agent:a", "lock", "status");
    // pre-commit keeps what it finds, and runs it.
    if (name !== "pre-commit")
      expect(said.stderr, `${said}`).toMatch(/no longer called cotenant in .*pre-commit.*put back/);
    expect((await repo.runHere("agent:a", "lock", "status")).stderr).toBe("");
    expect(await states()).toEqual(ALL);
    await expectRefused();
    await expectCommitted();
  });
});

describe("hooks that a manager has written over", () => {
  it("lefthook, before any command of ours: the hooks that it left alone refuse the commit", async () => {
    const manager = project("lefthook");
    await repo.prepare("agent:a", "hooks", "install");
    await repo.prepare("agent:b", "lock", "acquire", "a.txt");
    manager.install(hooked);
    await expectRefused();
    await expectCommitted();
  });

  it("lefthook, and none was left alone that could refuse: the commit is on record, and the hooks are back", async () => {
    const manager = project("lefthook");
    const more = "prepare-commit-msg:\n  commands:\n    more:\n      run: echo more\n";
    fs.appendFileSync(path.join(repo.root, "lefthook.yml"), more);
    await repo.prepare("agent:a", "hooks", "install");
    await repo.prepare("agent:b", "lock", "acquire", "a.txt");
    manager.install(hooked);
    const made = await hooked.commit("agent:a");
    expect(made.stderr, `${made}`).toContain("no longer called cotenant in pre-commit, prepare-commit-msg");
    const { needs_a_person: needs } = (await repo.askHere("agent:a", "status")).data;
    expect(needs).toMatchObject([{ code: "commit_violation" }]);
    await expectRefused();
  });

  it.each(["husky", "lefthook"])(
    "%s: any event of a harness puts them back, and tells the agent",
    async (name) => {
      const manager = project(name);
      await repo.prepare("agent:a", "hooks", "install");
      const agent = new GuardedAgent(repo, { session: "aaaaaaaa-0000-4000-8000-000000000000" });
      expect(toldIn(await agent.shell("git commit -m x"))).toBe("");
      for (const event of [
        () => agent.shell("git commit -m x"),
        () => agent.write("a.txt"),
        () => agent.send("prompt"),
      ]) {
        for (const hook of ["pre-commit", "post-commit"])
          fs.rmSync(path.join(repo.root, ".git/hooks", hook), { force: true });
        manager.install(hooked);
        expect(toldIn(await event())).toMatch(/no longer called cotenant in .*put back/);
        expect(await states()).toEqual(ALL);
        expect(toldIn(await event())).toBe("");
      }
    },
  );

  it("lefthook in another worktree, which reads its own files: what is read there gets the call", async () => {
    const manager = project("lefthook");
    manager.install(hooked);
    await repo.prepare("agent:a", "hooks", "install");
    const other = hooked.at(repo.addWorktree("other"));
    await other.repo.prepare("agent:b", "lock", "acquire", "a.txt");
    manager.later["lefthook install"]!(hooked);
    const refused = await other.commit("agent:a");
    expect(refused.status, `${refused}`).not.toBe(0);
    expect(other.repo.git("status", "--short", "lefthook-local.yml")).toBe("");
    await repo.prepare("agent:a", "hooks", "uninstall");
    expect(fs.existsSync(path.join(other.repo.root, "lefthook-local.yml"))).toBe(false);
  });

  it("and that may not be put back: every command says so, status lists it, doctor too", async () => {
    project("husky");
    await repo.prepare("agent:a", "hooks", "install");
    repo.git("config", "core.hooksPath", path.join(repo.root, "../elsewhere"));
    for (let i = 0; i < 2; i++) {
      const said = await repo.runHere("agent:a", "lock", "acquire", "b.txt");
      expect(said.stderr).toMatch(
        /no longer called cotenant in pre-commit.*other repositories.*next: .*cotenant hooks install --force/s,
      );
      const refused = await repo.runHere("agent:b", "lock", "acquire", "b.txt");
      expect([refused.status, refused.stderr.includes("no longer called cotenant")]).toEqual([1, true]);
    }
    const { needs_a_person: needs } = (await repo.askHere("agent:a", "status")).data;
    expect(needs).toMatchObject([{ code: "hooks_gone", next: expect.stringContaining("--force") }]);
    const agent = new GuardedAgent(repo, { session: "bbbbbbbb-0000-4000-8000-000000000000" });
    for (let i = 0; i < 3; i++)
      expect(toldIn(await agent.write("c.txt"))).toContain("no longer called cotenant");
    expect((await repo.runHere("agent:a", "doctor")).stdout).toMatch(/warning +hooks/);
    repo.git("config", "--unset-all", "core.hooksPath");
    expect((await repo.runHere("agent:a", "lock", "status")).stderr).toBe("");
    expect((await repo.askHere("agent:a", "status")).data["needs_a_person"]).toEqual([]);
  });
});

describe("with --shared the committed files of the real", () => {
  it("husky have the call, also after it was installed for this clone alone", async () => {
    const manager = project("husky");
    manager.install(hooked);
    const before = everything();
    await repo.prepare("agent:a", "hooks", "install");
    await repo.prepare("agent:a", "hooks", "install", "--shared");
    expect(oursIn(everything()).sort()).toEqual(
      ["post-commit", "pre-commit", "pre-push", "prepare-commit-msg"].map((hook) => `.husky/${hook}`),
    );
    expect(everything()[".git/info/exclude"]).toBe(before[".git/info/exclude"]);
    await repo.prepare("agent:a", "hooks", "uninstall", "--shared");
    expect(everything()).toEqual(before);
  });

  it("lefthook have the call, without a path of this machine, and in every worktree", async () => {
    const manager = project("lefthook");
    manager.install(hooked);
    const before = everything();
    await repo.prepare("agent:a", "hooks", "install", "--shared");
    const file = path.join(repo.root, "lefthook.yml");
    const written = fs.readFileSync(file, "utf8");
    expect(written).not.toContain(process.execPath);
    // Also those that lefthook does not run in this clone yet: others get all of them by it alone.
    for (const hook of ["pre-commit", "prepare-commit-msg", "post-commit", "pre-push"])
      expect(written).toContain(`cotenant hook ${hook} `);
    hooked.program("cotenant", `#!/bin/sh\nexec "${path.resolve("bin/cotenant")}" "$@"\n`);
    await repo.prepare("agent:b", "lock", "acquire", "a.txt");
    manager.later["lefthook install --force"]!(hooked);
    await expectRefused();
    expect((await repo.askHere("agent:a", "hooks", "uninstall")).data["left"]).toHaveLength(1);
    await repo.prepare("agent:a", "hooks", "uninstall", "--shared");
    expect(oursIn(everything())).toEqual([]);
    expect(everything()["lefthook.yml"]).toBe(before["lefthook.yml"]);
  });
});
