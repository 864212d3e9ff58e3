import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { openRepository } from "../../src/index";
import { oneIn } from "../support/one-in";
import { run } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

const ADA = "agent:ada";
let repo: TestRepo;
beforeEach(async () => {
  repo = TestRepo.make();
  await repo.prepare(ADA, "init");
});

const empty = (where: TestRepo, message: string) =>
  where.git("commit", "--quiet", "--allow-empty", "--message", message);
/** One of each kind: of configuration, types and gates. */
const CHANGES = [
  ["config", ["config", "set", "guard.retry_secs", "9"]],
  ["config", ["config", "reset", "guard.retry_secs"]],
  ["types", ["config", "set", "types.hierarchy", "epic,task"]],
  ["gates", ["gate", "define", "review"]],
] as const;

describe("what concerns everybody", () => {
  it.each(CHANGES)("is changed under the lease scope:%s: %j", async (scope, args) => {
    const holder = await openRepository({ cwd: repo.root, agentId: "agent:holder", env: {} });
    await holder.acquire(`scope:${scope}`);
    const before = repo.picture();
    expectJsonRefused(await repo.ask(ADA, ...args), 1, "E_LOCK_CONFLICT");
    const inData = (picture: Record<string, string>) =>
      Object.entries(picture).filter(([name]) => name.startsWith(".cotenant"));
    expect(inData(repo.picture())).toEqual(inData(before));
    await holder.release(`scope:${scope}`);
    expect((await repo.askHere(ADA, ...args)).status).toBe(0);
    expect((await repo.askHere(ADA, "status")).data.leases).toEqual([]);
  });

  it("keeps the lease of whoever held it before, also when it had to be renewed", async () => {
    const mine = await openRepository({ cwd: repo.root, agentId: ADA, env: {} });
    const { leases } = await mine.acquire("scope:config", { ttlSecs: 600 });
    expect((await repo.askAt(400, ADA, "config", "set", "guard.retry_secs", "9")).status).toBe(0);
    const [kept] = (await repo.askHere(ADA, "status")).data.leases;
    expect(kept).toMatchObject({ key: "scope:config", lease_id: leases[0]!.leaseId });
    expect(Date.parse(kept!.expires_at!)).toBeGreaterThan(leases[0]!.expiresAt!.wallMs);
  });

  it("is in the log, with who did it", async () => {
    await repo.prepare(ADA, "config", "set", "guard.retry_secs", "9");
    await repo.prepare(ADA, "gate", "define", "review");
    const lines = repo.log().filter((line) => line.event_type === "policy.changed");
    expect(lines).toMatchObject([
      { actor: { agent_id: ADA }, payload: { scope: "config", key: "guard.retry_secs", value: "9" } },
      { actor: { agent_id: ADA }, payload: { scope: "gates", gate: "review" } },
    ]);
  });
});

describe("common history with the main branch", () => {
  const set = (where: TestRepo) => where.askHere(ADA, "config", "set", "guard.retry_secs", "9");

  it("is asked for, and says what to do", async () => {
    const side = repo.addWorktree("side");
    expect((await set(side)).status).toBe(0);
    empty(repo, "main goes on");
    const refused = await side.ask(ADA, "gate", "define", "review");
    expectJsonRefused(refused, 9, "E_DIVERGED");
    expect(refused.error.hint).toContain("git rebase main");
    expectJsonRefused(await side.askHere(ADA, "config", "reset", "guard.retry_secs"), 9, "E_DIVERGED");
    expect((await side.askHere(ADA, "validate", "divergence")).status).toBe(9);
    const all = await side.askHere(ADA, "validate", "all");
    expect([all.status, JSON.stringify(all.json.data)]).toEqual([9, expect.stringContaining("E_DIVERGED")]);
    // One's own configuration is nobody else's business.
    const home = { HOME: scratch() };
    expect((await side.askWith(home, ADA, "config", "set", "--global", "guard.retry_secs", "8")).status).toBe(
      0,
    );
    side.git("merge", "--quiet", "main");
    expect((await side.askHere(ADA, "gate", "define", "review")).status).toBe(0);
    expect((await side.askHere(ADA, "validate", "divergence")).status).toBe(0);
    side.git("checkout", "--quiet", "--detach");
    expect((await side.askHere(ADA, "gate", "define", "other")).status).toBe(0);
  });

  it("does not make up for a branch on which nothing for everybody may be changed", async () => {
    repo.write(".gitignore", "");
    repo.git("add", "--all");
    empty(repo, "with its settings");
    const side = repo.addWorktree("side");
    const refused = await side.ask(ADA, "config", "set", "guard.retry_secs", "9");
    expectJsonRefused(refused, 9, "E_POLICY");
    expect(refused.error.message).toContain("main or develop only, and this is side");
    const variable = "COTENANT_GLOBAL_OPERATIONS_ALLOWED_BRANCHES=side";
    const how = "git switch main; or, if side may change them too, this once:";
    expect(refused.error.hint).toBe(`${how} ${variable} cotenant config …`);
    side.write(".cotenant/config.toml", "[guard]\nretry_secs = 9\n");
    await side.prepare(ADA, "hooks", "install");
    const env = { COTENANT_AGENT_ID: ADA };
    const commit = ["git", "commit", "--all", "--message", "x"];
    const hooked = await run(commit, { cwd: side.root, env });
    expect(hooked.stderr).toContain(`${how} ${variable} git commit …`);
    side.git("checkout", "--quiet", "--", ".cotenant");
    // What the main branch does not have yet is set up, not changed.
    expect((await side.askHere(ADA, "gate", "define", "review")).status).toBe(0);
    const allowed = { COTENANT_GLOBAL_OPERATIONS_ALLOWED_BRANCHES: "side" };
    expect((await side.askWith(allowed, ADA, "config", "set", "guard.retry_secs", "9")).status).toBe(0);
  });

  it("says where the repository's own file lists the branches, which no variable adds to", async () => {
    repo.write(".cotenant/config.toml", '[global_operations]\nallowed_branches = ["main"]\n');
    repo.git("add", "--all");
    empty(repo, "with its branches");
    const side = repo.addWorktree("side");
    const allowed = { COTENANT_GLOBAL_OPERATIONS_ALLOWED_BRANCHES: "side" };
    const refused = await side.askWith(allowed, ADA, "config", "set", "guard.retry_secs", "9");
    expectJsonRefused(refused, 9, "E_POLICY");
    expect(refused.error.hint).toBe(
      "git switch main; or, if side may change them too, add it there to global_operations.allowed_branches in .cotenant/config.toml",
    );
  });

  it("is not asked for when the repository does not want it", async () => {
    const side = repo.addWorktree("side");
    empty(repo, "main goes on");
    const off = { COTENANT_GLOBAL_OPERATIONS_REQUIRE_MAIN_HISTORY: "false" };
    expect((await side.askWith(off, ADA, "gate", "define", "review")).status).toBe(0);
  });

  it("is there before the first commit, and where there is no main branch", async () => {
    expect((await set(repo)).status).toBe(0);
    repo.git("checkout", "--quiet", "-b", "trunk");
    empty(repo, "first");
    expect((await repo.ask(ADA, "config", "reset", "guard.retry_secs")).status).toBe(0);
    expect((await repo.askHere(ADA, "validate", "divergence")).status).toBe(0);
  });

  it("is that of the remote's HEAD, also when it is called otherwise", async () => {
    repo.git("checkout", "--quiet", "-b", "trunk");
    empty(repo, "first");
    repo.git("clone", "--quiet", ".", "../clone");
    const clone = repo.at("../clone");
    expect((await set(clone)).status).toBe(0);
    empty(repo, "trunk goes on");
    expect((await clone.ask(ADA, "gate", "define", "a")).status).toBe(0);
    clone.git("fetch", "--quiet");
    const refused = await clone.askHere(ADA, "gate", "define", "b");
    expectJsonRefused(refused, 9, "E_DIVERGED");
    expect(refused.error.data["main_branch"]).toBe("origin/trunk");
  });

  it("is that of the configured branch, which must be there", async () => {
    empty(repo, "first");
    repo.git("branch", "release");
    empty(repo, "second");
    const by = (name: string) => ({ COTENANT_GLOBAL_OPERATIONS_MAIN_BRANCH: name });
    expect((await repo.askWith(by("release"), ADA, "gate", "define", "a")).status).toBe(0);
    expectJsonRefused(await repo.askWith(by("nowhere"), ADA, "gate", "define", "b"), 10, "E_CONFIG");
    repo.git("checkout", "--quiet", "release");
    expectJsonRefused(await repo.askWith(by("main"), ADA, "gate", "define", "b"), 9, "E_DIVERGED");
  });

  it("cannot be seen in a shallow clone that lacks it, which is said", async () => {
    for (const message of ["first", "second"]) empty(repo, message);
    repo.git("branch", "old", "main~1");
    repo.git("clone", "--quiet", "--depth", "1", "--no-single-branch", `file://${repo.root}`, "../shallow");
    const shallow = repo.at("../shallow");
    expect((await set(shallow)).status).toBe(0);
    shallow.git("checkout", "--quiet", "old");
    const refused = await shallow.ask(ADA, "gate", "define", "review");
    expectJsonRefused(refused, 9, "E_DIVERGED");
    expect(refused.error.hint).toContain("--unshallow");
  });

  it("is lacking on a branch that begins from nothing", async () => {
    empty(repo, "first");
    repo.git("checkout", "--quiet", "--orphan", "fresh");
    expectJsonRefused(await repo.ask(ADA, "config", "set", "guard.retry_secs", "9"), 9, "E_DIVERGED");
  });
});

describe("config show-hierarchy", () => {
  it("shows the levels, as a tree and as data", async () => {
    await repo.prepare(ADA, "config", "set", "types.hierarchy", "epic,story,task bug");
    const { data } = await repo.ask(ADA, "config", "show-hierarchy");
    expect(data).toMatchObject({
      levels: [
        { level: 0, types: ["epic"] },
        { level: 1, types: ["story"] },
        { level: 2, types: ["task", "bug"] },
      ],
      strategic: ["milestone", "epic"],
      place: fs.realpathSync(path.join(repo.root, ".cotenant/config.toml")),
    });
    const ran = await repo.runHere(ADA, "config", "show-hierarchy");
    expect(ran.stdout).toBe(
      "epic (strategic)\n└─ story\n   └─ task, bug\nstrategic, and on no level: milestone (strategic)\n",
    );
  });
});
