import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM, until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { gitWithDoor, KILL_CALLER, KILL_ONLY_CALLER } from "../support/slow-git";

const it = oneIn(8);

function repository(): TestRepo {
  const repo = TestRepo.make();
  repo.write("src/a.ts", "a\n");
  repo.write(".gitignore", ".env\n*.log\nsecrets/\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

function withSubmodule(): TestRepo {
  const repo = repository();
  const inner = repository();
  repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.root, "sub");
  repo.git("commit", "--quiet", "--message", "with a submodule");
  return repo;
}

const create = (repo: TestRepo, ...args: string[]) => repo.ask("agent:a", "worktree", "create", ...args);
/** The same without a process: for what comes before, and for more of it. */
const createHere = (repo: TestRepo, ...args: string[]) =>
  repo.askHere("agent:a", "worktree", "create", ...args);
const rootOf = (repo: TestRepo, name: string) => `${repo.root}.worktrees/${name}`;

describe("worktree create", () => {
  it("makes one beside the main worktree, on a new branch, with its files", async () => {
    const repo = repository();
    const ran = await create(repo, "work/login");
    const root = rootOf(repo, "work-login");
    expect(ran.data.worktree).toMatchObject({
      root,
      branch: "work/login",
      new_branch: true,
      agent_id: "agent:a",
    });
    const made = repo.at(root);
    expect(made.git("status", "--porcelain", "--branch")).toBe("## work/login\n");
    expect(fs.readFileSync(path.join(root, "src/a.ts"), "utf8")).toBe("a\n");
    expect(repo.git("worktree", "list", "--porcelain")).toContain(`worktree ${root}\n`);
    const { worktrees } = (await repo.ask("agent:b", "worktree", "list")).data;
    expect(worktrees.find((one) => one.root === root)).toMatchObject({
      worktree_id: ran.data.worktree.worktree_id,
      agent_id: "agent:a",
      dirty: { any: false },
      ahead: 0,
      behind: 0,
    });
    expect(fs.readdirSync(`${repo.root}.worktrees`), "nothing of the workshop").toEqual(["work-login"]);
  });

  it("takes a branch that exists, from where it is; and none that is checked out", async () => {
    const repo = repository();
    repo.git("branch", "topic");
    expect((await create(repo, "topic")).data.worktree).toMatchObject({ new_branch: false, branch: "topic" });
    const twice = await createHere(repo, "topic");
    expectJsonRefused(twice, 9, "E_POLICY");
    expect(twice.error.data["root"]).toBe(rootOf(repo, "topic"));
    expectJsonRefused(await createHere(repo, "main"), 9, "E_POLICY");
    repo.git("branch", "other");
    expectJsonRefused(await createHere(repo, "other", "--base", "HEAD"), 64, "E_USAGE");
  });

  it("claims the issue that it is for, from there, or leaves nothing behind", async () => {
    const repo = repository();
    const issue = await repo.issue("Fix the login!");
    const ran = await create(repo, "--issue", issue, "--claim", "--ttl", "60");
    expect(ran.data.worktree).toMatchObject({
      branch: expect.stringMatching(/^work\/[0-9a-z]{4}-fix-the-login$/),
    });
    expect(ran.lease).toMatchObject({
      key: `issue:${issue}`,
      worktree_id: ran.data.worktree.worktree_id,
      ttl_secs: 60,
    });
    const second = await repo.ask("agent:b", "worktree", "create", "mine", "--issue", issue, "--claim");
    expectJsonRefused(second, 1, "E_LOCK_CONFLICT");
    expect(fs.existsSync(rootOf(repo, "mine"))).toBe(false);
    expectJsonRefused(await createHere(repo, "x", "--issue", "zzzz"), 4, "E_NOT_FOUND");
    expectJsonRefused(await createHere(repo, "x", "--claim"), 64, "E_USAGE");
  });

  it.each(["with --claim", "without"])("takes the caller's own claim along, %s", async (how) => {
    const repo = repository();
    const issue = await repo.issue("Fix the login!");
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", issue);
    const ran = await create(repo, "--issue", issue, ...(how === "without" ? [] : ["--claim"]));
    const { worktree_id: id, root } = ran.data.worktree;
    expect(ran.lease).toMatchObject({ key: `issue:${issue}`, agent_id: "agent:a", worktree_id: id });
    expect(ran.lease.fencing_token).toBeGreaterThan(lease.fencing_token);
    expect(ran.data["claim_moved"]).toBe(true);
    const lines = repo.log().filter(({ event_type }) => event_type.startsWith("claim."));
    expect(
      lines.map(({ event_type }) => event_type),
      "at no instant it is free",
    ).not.toContain("claim.released");
    // It can be proved from there, and not from here any more.
    expect((await repo.at(root).ask("agent:a", "claim", "renew", issue)).status).toBe(0);
    expect((await repo.ask("agent:a", "claim", "renew", issue)).status).not.toBe(0);
    // And from there it moves on.
    const again = await create(repo, "second", "--issue", issue, "--claim");
    expect(again.lease.worktree_id).toBe(again.data.worktree.worktree_id);
  });

  it("for an issue that is not committed says so, and what to run before the branch is merged, which then works", async () => {
    const repo = repository();
    await repo.prepare("agent:a", "init");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "cotenant");
    const issue = await repo.issue();
    const ran = await createHere(repo, "work/x", "--issue", issue, "--claim");
    const [told] = (ran.json.warnings ?? []).filter((words) => words.includes("is not committed in"));
    const [, command] = / is merged there: (.*)$/.exec(told ?? "") ?? [];
    execFileSync("sh", ["-c", command!]);
    const made = repo.at(rootOf(repo, "work-x"));
    made.write("x.ts");
    await made.prepare("agent:a", "issue", "update", issue, "--state", "done");
    made.git("add", "--all");
    made.git("commit", "--quiet", "--message", "x");
    repo.git("merge", "--quiet", "--message", "x", "work/x");
    expect((await repo.prepare("agent:b", "issue", "show", issue)).issue).toMatchObject({ state: "done" });
    const again = await createHere(repo, "work/y", "--issue", await repo.issue(), "--path", "../y");
    expect(again.json.warnings?.join()).toContain("is not committed in");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "issues");
    const next = (await repo.prepare("agent:a", "issue", "list"))["issues"] as {
      id: string;
      state: string;
    }[];
    const { id } = next.find(({ state }) => state !== "done")!;
    expect((await createHere(repo, "work/z", "--issue", id)).json.warnings ?? []).toEqual([]);
  });

  it("leaves no branch and no directory behind when the claim is refused at last", async () => {
    const repo = repository();
    const issue = await repo.issue("Fix the login!");
    const { env } = gitWithDoor(
      "worktree move",
      `${process.execPath} ${PROGRAM} claim acquire ${issue} --agent-id agent:b >&2`,
    );
    const args = ["worktree", "create", "--issue", issue, "--claim", "--json"];
    expectJsonRefused(await repo.start("agent:a", args, { env }).done, 1, "E_LOCK_CONFLICT");
    expect(repo.git("branch", "--format=%(refname:short)")).toBe("main\n");
    expect(fs.readdirSync(`${repo.root}.worktrees`)).toEqual([]);
    expect(repo.git("worktree", "list", "--porcelain").match(/^worktree /gm)).toHaveLength(1);
  });

  it("is made in a repository with submodules, whatever submodule.recurse says", async () => {
    const repo = withSubmodule();
    for (const recurse of ["true", "false"]) {
      repo.git("config", "submodule.recurse", recurse);
      const { root } = (await create(repo, `with-${recurse}`)).data.worktree;
      expect(repo.at(root).git("status", "--porcelain")).toBe("");
      expect(repo.at(root).git("submodule", "status")).toMatch(/^-[0-9a-f]+ sub\n$/);
    }
  });

  it("leaves no branch and no directory behind when its files cannot be written", async () => {
    const repo = repository();
    repo.git("config", "filter.broken.smudge", "false");
    repo.git("config", "filter.broken.required", "true");
    fs.writeFileSync(path.join(repo.root, ".git/info/attributes"), "*.ts filter=broken\n");
    repo.git("branch", "theirs");
    for (const branch of ["mine", "theirs"]) expectJsonRefused(await create(repo, branch), 10, "E_GIT");
    expect(repo.git("branch", "--format=%(refname:short)")).toBe("main\ntheirs\n");
    expect(fs.readdirSync(`${repo.root}.worktrees`)).toEqual([]);
  });

  it("gets what worktree.copy names, and only what Git ignores", async () => {
    const repo = repository();
    repo.write(".env", "SECRET=1\n");
    fs.chmodSync(path.join(repo.root, ".env"), 0o600);
    repo.write("secrets/deep/key", "k\n");
    repo.write("debug.log", "not asked for\n");
    repo.write("src/new.ts", "untracked, not ignored\n");
    const env = { COTENANT_WORKTREE_COPY: ".env,secrets/,src/**" };
    const ran = await repo.askWith(env, "agent:a", "worktree", "create", "with");
    expect(ran.data["copied"]).toBe(2);
    const root = rootOf(repo, "with");
    expect(fs.readFileSync(path.join(root, ".env"), "utf8")).toBe("SECRET=1\n");
    expect(fs.statSync(path.join(root, ".env")).mode & 0o777).toBe(0o600);
    expect(fs.readFileSync(path.join(root, "secrets/deep/key"), "utf8")).toBe("k\n");
    expect(fs.existsSync(path.join(root, "debug.log"))).toBe(false);
    expect(fs.existsSync(path.join(root, "src/new.ts"))).toBe(false);
    const bare = await repo.askWith(env, "agent:a", "worktree", "create", "without", "--no-copy");
    expect(bare.data["copied"]).toBe(0);
    // A branch in which a link is where the directory was.
    const outside = scratch();
    repo.git("checkout", "--quiet", "-b", "trap");
    fs.renameSync(path.join(repo.root, "secrets"), path.join(repo.root, "aside.log"));
    fs.symlinkSync(outside, path.join(repo.root, "secrets"));
    repo.git("add", "secrets");
    repo.git("commit", "--quiet", "--message", "a link");
    repo.git("checkout", "--quiet", "main");
    fs.renameSync(path.join(repo.root, "aside.log"), path.join(repo.root, "secrets"));
    const trapped = await repo.askWith(env, "agent:a", "worktree", "create", "into", "--base", "trap");
    expect(trapped.data["copied"]).toBe(1);
    expect(fs.readdirSync(outside), "nothing goes through it").toEqual([]);
  });

  it("runs worktree.setup only where somebody has trusted it, and says how it ended", async () => {
    const repo = repository();
    repo.write(".cotenant/config.toml", '[worktree]\nsetup = "echo made > made.log && pwd > where.log"\n');
    const untrusted = await create(repo, "one");
    expect(untrusted.data["setup"]).toBe(null);
    expect(untrusted.json.warnings?.join()).toContain("cotenant trust");
    expect(fs.existsSync(path.join(rootOf(repo, "one"), "made.log"))).toBe(false);
    expect((await repo.ask("human:ada", "trust")).status).toBe(0);
    expect((await createHere(repo, "two")).data["setup"]).toBe("done");
    expect(fs.readFileSync(path.join(rootOf(repo, "two"), "where.log"), "utf8")).toBe(
      `${rootOf(repo, "two")}\n`,
    );
    repo.write(".cotenant/config.toml", "[worktree]\nsetup = \"echo 'no such thing' >&2; exit 3\"\n");
    expect((await repo.ask("human:ada", "trust")).status).toBe(0);
    const failed = await create(repo, "three");
    expect(failed.status).toBe(9);
    expect(failed.json).toMatchObject({ ok: true, data: { setup: "failed" } });
    expect(failed.stderr).toContain("no such thing");
    const { worktrees } = (await repo.askHere("agent:a", "worktree", "list", "--quick")).data;
    const setups = Object.fromEntries(
      worktrees.map((one) => [path.basename(one.root), (one as unknown as { setup: string }).setup]),
    );
    expect(setups).toMatchObject({ one: null, two: "done", three: "failed" });
    const listed = (await repo.runHere("agent:a", "worktree", "list", "--quick")).stdout.split("\n");
    expect(listed.filter((line) => line.includes("setup failed"))).toEqual([
      expect.stringContaining(rootOf(repo, "three")),
    ]);
  });

  it("is made by many at once, each its own", async () => {
    const repo = repository();
    repo.git("remote", "add", "origin", ".");
    repo.git("fetch", "--quiet", "origin");
    const racing = Array.from({ length: 8 }, (_, n) =>
      repo.start(`agent:${n}`, ["worktree", "create", `work/${n}`, "--base", "origin/main", "--json"], {
        held: true,
      }),
    );
    for (const one of racing) one.go();
    const ran = await Promise.all(racing.map(({ done }) => done));
    for (const one of ran) expect(one.status, `${one}`).toBe(0);
    expect(new Set(ran.map(({ data }) => data.worktree.worktree_id)).size).toBe(8);
    for (let n = 0; n < 8; n++)
      expect(repo.at(rootOf(repo, `work-${n}`)).git("status", "--porcelain")).toBe("");
    expect(repo.git("fsck", "--no-progress")).toBe("");
  });

  it("and everything else passes over one that Git is just making", async () => {
    const repo = repository();
    const half = path.join(repo.root, ".git/worktrees/half");
    fs.mkdirSync(half, { recursive: true });
    fs.writeFileSync(path.join(half, "gitdir"), `${repo.root}-half/.git\n`);
    expect((await repo.ask("agent:a", "worktree", "list")).data.worktrees).toHaveLength(1);
    fs.writeFileSync(path.join(half, "HEAD"), `${"0".repeat(40)}\n`);
    expect((await repo.askHere("agent:a", "worktree", "list")).data.worktrees).toHaveLength(1);
    expect((await create(repo, "work/x")).status).toBe(0);
  });

  it("refuses places that are taken or inside a worktree, and bad names", async () => {
    const repo = repository();
    fs.mkdirSync(rootOf(repo, "full"), { recursive: true });
    fs.writeFileSync(path.join(rootOf(repo, "full"), "mine"), "");
    expectJsonRefused(await create(repo, "full"), 9, "E_POLICY");
    expect(repo.git("branch", "--list", "full"), "not even the branch").toBe("");
    expectJsonRefused(await createHere(repo, "in", "--path", "src/in"), 9, "E_POLICY");
    expectJsonRefused(await createHere(repo, "in", "--path", ".git/in"), 9, "E_POLICY");
    expect((await createHere(repo, "ignored", "--path", "secrets/tree")).status, "Git ignores it there").toBe(
      0,
    );
    // What else cannot be one: tests/worktrees/rules.test.ts.
    for (const name of ["-x", "@{-1}"])
      expect((await repo.run("agent:a", "worktree", "create", "--", name)).status, name).toBe(64);
    expectJsonRefused(await createHere(repo, "x", "--base", "--help"), 64, "E_USAGE");
    expectJsonRefused(await createHere(repo, "x", "--base", "nothing"), 4, "E_NOT_FOUND");
    expectJsonRefused(await createHere(repo, "x", "--path", "/proc/none/x"), 9, "E_POLICY");
    expectJsonRefused(await createHere(repo, "ignored/below"), 9, "E_POLICY");
    expectJsonRefused(await createHere(TestRepo.make(), "x"), 9, "E_POLICY");
  });

  it.each([
    ["before Git has made it", "worktree add", KILL_CALLER],
    ["while Git makes it", "worktree add", KILL_ONLY_CALLER],
    ["before it is filled", "reset --hard", KILL_CALLER],
    ["while Git fills it", "reset --hard", KILL_ONLY_CALLER],
    ["before it gets its place", "worktree move", KILL_CALLER],
  ])("killed %s: nothing is at its place, and the next one makes it", async (_when, words, then) => {
    const repo = repository();
    const { env } = gitWithDoor(words, then);
    const killed = await repo.start("agent:a", ["worktree", "create", "work/x"], { env }).done;
    expect(killed.status).toBe(null);
    expect(fs.existsSync(rootOf(repo, "work-x"))).toBe(false);
    expect((await repo.ask("agent:b", "doctor")).stdout).toContain("is being made");
    const ran = await until("Git has let go of it", async () => {
      const tried = await repo.askHere("agent:b", "worktree", "create", "work/x");
      return tried.status === 0 && tried;
    });
    expect(ran.data.worktree, "no branch was left over").toMatchObject({
      root: rootOf(repo, "work-x"),
      new_branch: true,
    });
    expect(repo.at(rootOf(repo, "work-x")).git("status", "--porcelain")).toBe("");
    expect(fs.readdirSync(`${repo.root}.worktrees`)).toEqual(["work-x"]);
    expect(repo.git("worktree", "list", "--porcelain").match(/^worktree /gm)).toHaveLength(2);
    expect((await repo.askHere("agent:b", "doctor")).stdout).not.toContain("is being made");
  });

  it("killed while Git puts it in its place: it is there, and whole", async () => {
    const repo = repository();
    const { env } = gitWithDoor("worktree move", KILL_ONLY_CALLER);
    expect((await repo.start("agent:a", ["worktree", "create", "work/x"], { env }).done).status).toBe(null);
    await until("Git is done", () => fs.existsSync(rootOf(repo, "work-x")));
    await until("somebody has settled it", async () => {
      await repo.prepare("agent:b", "gc");
      return !(await repo.ask("agent:b", "doctor")).stdout.includes("is being made");
    });
    expect(repo.at(rootOf(repo, "work-x")).git("status", "--porcelain", "--branch")).toBe("## work/x\n");
    expect(fs.readdirSync(`${repo.root}.worktrees`)).toEqual(["work-x"]);
    const types = repo.log().map(({ event_type: type }) => type);
    expect(types.filter((type) => type === "worktree.created")).toHaveLength(1);
  });
});
