import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { HookedRepo, husky8, OTHERS } from "../support/hooks";
import { oneIn } from "../support/one-in";
import { run } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { cotenant, pictureOf, type TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

const it = oneIn(8);

const HOOKS = ["pre-commit", "prepare-commit-msg", "post-commit", "pre-push"];
const FINE = Object.fromEntries(HOOKS.map((hook) => [hook, "installed passed"]));

let hooked: HookedRepo;
let repo: TestRepo;
beforeEach(async () => {
  hooked = await HookedRepo.make();
  repo = hooked.repo;
});

/** Ours refuses what another agent holds, and nobody else would. */
async function expectGuarded(): Promise<void> {
  await repo.prepare("agent:b", "lock", "acquire", "a.txt");
  const refused = await hooked.commit("agent:a");
  expect(refused.status, `${refused}`).toBe(1);
  expect(refused.stderr).toContain("a.txt is held by agent:b");
  await repo.prepare("agent:b", "lock", "release", "a.txt");
  hooked.journalled();
  const made = await hooked.commit("agent:a");
  expect(made.status, `${made}`).toBe(0);
}

describe("hooks install beside", () => {
  it.each(Object.keys(OTHERS))(
    "%s: both run, both count, twice is once, and it comes out to the byte",
    async (kind) => {
      OTHERS[kind]!(hooked);
      const before = hooked.hooks();
      const config = fs.readFileSync(path.join(repo.root, ".git/config"), "utf8");
      const shown = await repo.runHere("agent:a", "hooks", "install", "--print");
      expect(shown.stdout, `${shown}`).toContain("cotenant_run hook pre-commit");
      expect(hooked.hooks()).toEqual(before);

      expect((await repo.ask("agent:a", "hooks", "install")).data.changed).toBe(true);
      const installed = repo.picture();
      expect((await repo.askHere("agent:a", "hooks", "install")).data.changed).toBe(false);
      expect(repo.picture()).toEqual(installed);
      expect(hooked.states(await repo.askHere("agent:a", "hooks", "status"))).toEqual(FINE);

      await expectGuarded();
      expect(hooked.journalled()).toEqual(["theirs"]);
      const failed = await hooked.commit("agent:a", { THEIRS_FAIL: "1" });
      expect(failed.status, `${failed}`).toBe(1);
      expect(hooked.journalled()).toEqual(["theirs"]);

      expect((await repo.ask("agent:a", "hooks", "uninstall")).data.changed).toBe(true);
      expect(hooked.hooks()).toEqual(before);
      expect(fs.readFileSync(path.join(repo.root, ".git/config"), "utf8")).toBe(config);
      expect((await repo.askHere("agent:a", "hooks", "uninstall")).data.changed).toBe(false);
      const alone = await hooked.commit("agent:a");
      expect([alone.status, hooked.journalled()]).toEqual([0, ["theirs"]]);
    },
  );

  it("a script that is switched off: it stays so", async () => {
    hooked.hook(".git/hooks/pre-commit", '#!/bin/sh\necho theirs >> "$JOURNAL"\n', 0o644);
    const before = hooked.hooks();
    await repo.ask("agent:a", "hooks", "install");
    await expectGuarded();
    expect(hooked.journalled()).toEqual([]);
    await repo.askHere("agent:a", "hooks", "uninstall");
    expect(hooked.hooks()).toEqual(before);
  });

  it("what is changed around our lines afterwards: only ours go", async () => {
    hooked.hook(".git/hooks/pre-commit", "#!/bin/sh\necho one");
    await repo.ask("agent:a", "hooks", "install");
    for (const name of ["pre-commit", "post-commit"])
      fs.appendFileSync(path.join(repo.root, ".git/hooks", name), "\necho two\n");
    await repo.askHere("agent:a", "hooks", "uninstall");
    const read = (name: string) => fs.readFileSync(path.join(repo.root, ".git/hooks", name), "utf8");
    expect(read("pre-commit")).toBe("#!/bin/sh\necho one\necho two\n");
    expect(read("post-commit")).toBe("#!/bin/sh\n\necho two\n");
  });

  it("a pre-push that reads: both get the refs and the names", async () => {
    hooked.hook(".git/hooks/pre-push", '#!/bin/sh\necho "$1" >> "$JOURNAL"\ncat >> "$JOURNAL"\n');
    await repo.ask("agent:a", "hooks", "install");
    repo.git("init", "--quiet", "--bare", "../the server.git");
    repo.git("remote", "add", "origin", "../the server.git");
    const pushed = await hooked.git("agent:a", ["push", "origin", "HEAD:refs/heads/ü"]);
    expect(pushed.status, `${pushed}`).toBe(0);
    const head = repo.git("rev-parse", "HEAD").trim();
    expect(hooked.journalled()).toEqual(["origin", `HEAD ${head} refs/heads/ü ${"0".repeat(40)}`]);
  });

  it("a prepare-commit-msg that writes the whole message: what we say comes after it", async () => {
    hooked.hook(".git/hooks/prepare-commit-msg", '#!/bin/sh\necho "template for $2" > "$1"\nexit 0\n');
    await repo.ask("agent:a", "hooks", "install");
    const issue = await repo.issue();
    await repo.prepare("agent:a", "claim", "acquire", issue);
    await repo.prepare("agent:a", "issue", "update", issue, "--priority", "high");
    await hooked.git("agent:a", ["add", "--all"]);
    const made = await hooked.git("agent:a", ["commit", "--message", "mine"]);
    expect(made.status, `${made}`).toBe(0);
    const message = repo.git("log", "-1", "--format=%B");
    expect(message).toMatch(/^template for message\n/);
    expect(message).toContain(`Cotenant-Issue: ${issue}`);
  });
});

describe("hooks that are committed", () => {
  it("husky 8: refused with what to do, and with --shared for everybody", async () => {
    husky8(hooked);
    const before = repo.picture();
    const refused = await repo.run("agent:a", "hooks", "install");
    expectRefused(refused, 9, "E_HOOKS");
    expect(refused.stderr).toContain("--shared");
    expect(repo.picture()).toEqual(before);
    const hooks = hooked.hooks();
    await repo.askHere("agent:a", "hooks", "install", "--shared");
    const file = fs.readFileSync(path.join(repo.root, ".husky/pre-commit"), "utf8");
    expect(file).not.toContain(process.execPath);
    hooked.program("cotenant", `#!/bin/sh\necho "ours $*" >> "$JOURNAL"\nexec "$REAL" "$@"\n`);
    const env = { REAL: path.resolve("bin/cotenant") };
    const made = await hooked.commit("agent:a", env);
    expect(made.status, `${made}`).toBe(0);
    expect(
      hooked.journalled().filter((line) => line === "ours hook pre-commit --staged" || line === "theirs"),
    ).toEqual(["ours hook pre-commit --staged", "theirs"]);
    expect((await repo.askHere("agent:a", "hooks", "uninstall")).data["left"]).toHaveLength(4);
    await repo.askHere("agent:a", "hooks", "uninstall", "--shared");
    expect(hooked.hooks()).toEqual(hooks);
  });

  it("husky 9 with --shared: in the committed files, and no second time in husky's own", async () => {
    OTHERS["husky 9"]!(hooked);
    const own = fs.readFileSync(path.join(repo.root, ".husky/_/pre-commit"), "utf8");
    const hooks = hooked.hooks();
    await repo.ask("agent:a", "hooks", "install", "--shared");
    expect(fs.readFileSync(path.join(repo.root, ".husky/_/pre-commit"), "utf8")).toBe(own);
    expect(fs.readFileSync(path.join(repo.root, ".husky/pre-commit"), "utf8")).toContain("hook pre-commit");
    expect((await repo.askHere("agent:a", "hooks", "install")).data.changed).toBe(false);
    await repo.askHere("agent:a", "hooks", "uninstall", "--shared");
    expect(hooked.hooks()).toEqual(hooks);
  });

  it("after husky has written its hooks anew, status and doctor say so and install mends it", async () => {
    OTHERS["husky 9"]!(hooked);
    await repo.ask("agent:a", "hooks", "install");
    hooked.hook(".husky/_/pre-commit", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"');
    const status = await repo.askHere("agent:a", "hooks", "status");
    expect(hooked.states(status)).toEqual({ ...FINE, "pre-commit": "foreign null" });
    const { stdout } = await repo.runHere("agent:a", "doctor");
    expect(stdout).toMatch(
      /warning +hooks +Git does not call cotenant in pre-commit\n +next: run: cotenant hooks install/,
    );
    await repo.askHere("agent:a", "hooks", "install");
    expect(hooked.states(await repo.askHere("agent:a", "hooks", "status"))).toEqual(FINE);
  });

  it("a call that somebody wrote by hand counts", async () => {
    OTHERS["lefthook"]!(hooked);
    repo.write(
      "lefthook-local.yml",
      "pre-commit:\n  commands:\n    cotenant:\n      run: cotenant hook pre-commit\n",
    );
    const before = fs.readFileSync(path.join(repo.root, ".git/hooks/pre-commit"), "utf8");
    await repo.ask("agent:a", "hooks", "install");
    expect(fs.readFileSync(path.join(repo.root, ".git/hooks/pre-commit"), "utf8")).toBe(before);
    const { hooks } = (await repo.askHere("agent:a", "hooks", "status")).data;
    expect((hooks as object[])[0]).toMatchObject({ state: "installed", by_hand: true, manager: "lefthook" });
  });
});

describe("where Git looks", () => {
  it("a directory of the user's, for all repositories: not without --force, and left by deinit", async () => {
    const home = scratch();
    const shared = path.join(home, "my hooks");
    fs.mkdirSync(shared);
    fs.writeFileSync(path.join(home, ".gitconfig"), '[core]\n\thooksPath = "~/my hooks"\n');
    const env = { HOME: home, GIT_CONFIG_GLOBAL: undefined };
    const refused = await repo.askWith(env, "agent:a", "hooks", "install");
    expectJsonRefused(refused, 9, "E_HOOKS");
    expect(refused.error.message).toContain("global configuration");
    expect(pictureOf(shared)).toEqual({});
    const { data } = await repo.askWith(env, "agent:a", "hooks", "install", "--force");
    expect(data["directory"]).toBe(shared);
    expect(Object.keys(pictureOf(shared)).sort()).toEqual([...HOOKS].sort());
    const left = (await repo.askWith(env, "agent:a", "hooks", "uninstall")).data["left"];
    expect(left).toHaveLength(4);
    await repo.askWith(env, "agent:a", "hooks", "uninstall", "--force");
    expect(pictureOf(shared)).toEqual({});
  });

  it("another file for the user's configuration is respected too", async () => {
    const file = path.join(scratch(), "gitconfig");
    fs.writeFileSync(file, "[core]\n\thooksPath = /dev/null\n");
    const refused = await repo.askWith({ GIT_CONFIG_GLOBAL: file }, "agent:a", "hooks", "install");
    expectJsonRefused(refused, 9, "E_HOOKS");
    expect(refused.error.message).toContain("Git runs no hooks here");
  });

  it("nowhere, or in a directory with an odd name: said without harm to the terminal", async () => {
    repo.git("config", "core.hooksPath", "");
    const { hooks, whose } = (await repo.ask("agent:a", "hooks", "status")).data;
    expect([whose, (hooks as { state: string }[]).map(({ state }) => state)]).toEqual([
      "nowhere",
      HOOKS.map(() => "missing"),
    ]);
    repo.git("config", "core.hooksPath", "odd\u001b[2J\ndirectory");
    for (const args of [["install"], ["status"], ["install", "--shared", "--print"]]) {
      const ran = await repo.runHere("agent:a", "hooks", ...args);
      expect(ran.stdout + ran.stderr, `${ran}`).toContain("odd\ufffd[2J\ufffddirectory");
      expect(ran.stdout + ran.stderr).not.toContain("\u001b");
    }
  });

  it("a link to a committed directory is one", async () => {
    const directory = path.join(repo.root, ".git/hooks");
    fs.rmSync(directory, { recursive: true });
    hooked.hook(".githooks/pre-commit", "#!/bin/sh\n");
    fs.symlinkSync("../.githooks", directory);
    const before = hooked.hooks();
    expectJsonRefused(await repo.ask("agent:a", "hooks", "install"), 9, "E_HOOKS");
    expect(hooked.hooks()).toEqual(before);
  });

  it("a relative one, and many worktrees: each has its own, and is told so", async () => {
    OTHERS["husky 9"]!(hooked);
    repo.git("commit", "--quiet", "--message", "husky", "--no-verify");
    const other = repo.addWorktree("other");
    expectJsonRefused(await other.ask("agent:a", "hooks", "install"), 9, "E_HOOKS");
    const { remarks } = (await repo.askHere("agent:a", "hooks", "install")).data;
    expect(remarks).toContainEqual(expect.stringContaining("each worktree"));
    expect((await other.runHere("agent:a", "doctor")).stdout).toMatch(
      /warning +hooks +hooks were installed in/,
    );
  });

  it("one worktree with a configuration of its own", async () => {
    const other = repo.addWorktree("other");
    repo.git("config", "extensions.worktreeConfig", "true");
    other.git("config", "--worktree", "core.hooksPath", path.join(repo.root, ".git/other hooks"));
    await repo.ask("agent:a", "hooks", "install");
    expect(fs.existsSync(path.join(repo.root, ".git/other hooks"))).toBe(false);
    const { data } = await other.askHere("agent:a", "hooks", "install");
    expect(data["directory"]).toBe(path.join(repo.root, ".git/other hooks"));
    expect((await other.askHere("agent:a", "hooks", "status")).data["hooks_path"]).toMatchObject({
      scope: "worktree",
    });
    // From anywhere, everything; and the directory that was not there before.
    await repo.askHere("agent:a", "hooks", "uninstall");
    expect(fs.existsSync(path.join(repo.root, ".git/other hooks"))).toBe(false);
    expect(Object.keys(hooked.hooks()).filter((name) => HOOKS.includes(path.basename(name)))).toEqual([]);
  });

  it("somebody points Git elsewhere afterwards: status and doctor say that ours are hidden", async () => {
    await repo.ask("agent:a", "hooks", "install");
    repo.git("config", "core.hooksPath", ".githooks");
    const { data } = await repo.askHere("agent:a", "hooks", "status");
    expect(data["hidden"]).toEqual(HOOKS.map((hook) => path.join(repo.root, ".git/hooks", hook)));
    expect((await repo.runHere("agent:a", "doctor")).stdout).toMatch(
      /warning +hooks +.*but Git looks in "\.githooks" \(core\.hooksPath, local\)/,
    );
  });

  it.each(["with nothing in it", "with a hook of the project's"])(
    "a directory among the project's files, %s: everybody says how to install there, which works",
    async (kind) => {
      await repo.prepare("agent:a", "hooks", "install");
      fs.mkdirSync(path.join(repo.root, ".myhooks"));
      const isEmpty = kind === "with nothing in it";
      if (!isEmpty) hooked.hook(".myhooks/pre-push", "#!/bin/sh\n");
      repo.git("config", "core.hooksPath", ".myhooks");
      const [finding] = (await repo.askHere("agent:a", "status")).data["needs_a_person"] as [
        { code: string; message: string; next: string },
      ];
      const directory = path.join(repo.root, ".myhooks");
      expect([finding.code, finding.message]).toEqual([
        "hooks_gone",
        expect.stringContaining(
          isEmpty
            ? `${directory} is among the project's files: Git would take hooks there with the next commit`
            : `${directory}/pre-push belongs to the project: Git has it, or would take it with the next commit`,
        ),
      ]);
      // The alternative is for each of them.
      for (const hook of HOOKS) expect(finding.next).toContain(hook);
      const said = [
        finding.next,
        (await repo.runHere("agent:a", "hooks", "install")).stderr,
        (await repo.runHere("agent:a", "hooks", "status")).stdout,
        (await repo.runHere("agent:a", "doctor")).stdout,
      ];
      for (const words of said) expect(words).toContain("cotenant hooks install --shared");
      await repo.prepare("agent:a", "hooks", "install", "--shared");
      const { hooks } = (await repo.askHere("agent:a", "hooks", "status")).data;
      expect((hooks as { state: string }[]).map(({ state }) => state)).toEqual(HOOKS.map(() => "installed"));
    },
  );

  it("one that others share: neither status nor doctor says to install where that is refused", async () => {
    await repo.prepare("agent:a", "hooks", "install");
    repo.git("config", "core.hooksPath", scratch());
    for (const command of ["hooks status", "doctor"])
      expect((await repo.runHere("agent:a", ...command.split(" "))).stdout, command).toContain(
        "cotenant hooks install --force",
      );
  });

  it("a committed directory: not without --shared", async () => {
    hooked.hook(".githooks/pre-commit", '#!/bin/sh\necho theirs >> "$JOURNAL"\n');
    repo.git("config", "core.hooksPath", ".githooks");
    const before = hooked.hooks();
    expectJsonRefused(await repo.ask("agent:a", "hooks", "install"), 9, "E_HOOKS");
    await repo.askHere("agent:a", "hooks", "install", "--shared");
    await repo.askHere("agent:a", "hooks", "uninstall", "--shared");
    expect(hooked.hooks()).toEqual(before);
  });
});

describe("when something is missing", () => {
  it("the program is gone: commits go through, and status and doctor say so", async () => {
    await repo.ask("agent:a", "hooks", "install");
    await repo.prepare("agent:b", "lock", "acquire", "a.txt");
    for (const hook of HOOKS) {
      const file = path.join(repo.root, ".git/hooks", hook);
      fs.writeFileSync(file, fs.readFileSync(file, "utf8").replaceAll("/bin/cotenant'", "/bin/gone'"));
    }
    const made = await hooked.commit("agent:a");
    expect({ status: made.status, stderr: made.stderr }).toEqual({ status: 0, stderr: "" });
    const states = hooked.states(await repo.askHere("agent:a", "hooks", "status"));
    expect(states).toEqual(Object.fromEntries(HOOKS.map((hook) => [hook, "outdated failed"])));
    expect((await repo.runHere("agent:a", "doctor")).stdout).toMatch(
      /warning +hooks +.*bin\/gone, which is gone/,
    );
    // Then whatever is on the PATH.
    hooked.program("cotenant", '#!/bin/sh\necho "no, $*" >&2\nexit 1\n');
    expect(await hooked.commit("agent:a")).toMatchObject({
      status: 1,
      stderr: "no, hook pre-commit --staged\n",
    });
    // One that does not know the hook, or cannot be run at all, refuses nobody.
    hooked.program("cotenant", "#!/nowhere/node\n");
    expect((await hooked.commit("agent:a")).status).toBe(0);
    await repo.askHere("agent:a", "hooks", "install");
    expect(hooked.states(await repo.askHere("agent:a", "hooks", "status"))).toEqual(FINE);
  });

  it("no directory of hooks at all: made, and gone again", async () => {
    fs.rmSync(path.join(repo.root, ".git/hooks"), { recursive: true });
    await repo.ask("agent:a", "hooks", "install");
    await expectGuarded();
    await repo.askHere("agent:a", "hooks", "uninstall");
    expect(fs.existsSync(path.join(repo.root, ".git/hooks"))).toBe(false);
  });

  it("an empty directory of hooks stays", async () => {
    fs.rmSync(path.join(repo.root, ".git/hooks"), { recursive: true });
    fs.mkdirSync(path.join(repo.root, ".git/hooks"));
    await repo.ask("agent:a", "hooks", "install");
    await repo.askHere("agent:a", "hooks", "uninstall");
    expect(fs.readdirSync(path.join(repo.root, ".git/hooks"))).toEqual([]);
  });

  it("half of an earlier installation: the next one finishes it", async () => {
    hooked.hook(".git/hooks/pre-commit", "#!/usr/bin/env node\n");
    const before = hooked.hooks();
    // Killed between keeping theirs and putting ours in its place.
    const at = (name: string) => path.join(repo.root, ".git/hooks", name);
    fs.linkSync(at("pre-commit"), at("pre-commit.before-cotenant"));
    fs.writeFileSync(at("pre-commit.new-0123456789ab"), "half");
    fs.utimesSync(at("pre-commit.new-0123456789ab"), 1, 1);
    await repo.ask("agent:a", "hooks", "install");
    await repo.askHere("agent:a", "hooks", "uninstall");
    expect(hooked.hooks()).toEqual(before);
  });

  it("damaged lines of ours: nothing is guessed", async () => {
    hooked.hook(".git/hooks/pre-commit", "#!/bin/sh\n# >>> cotenant hook pre-commit (guest) >>> \necho\n");
    const before = hooked.hooks();
    expectJsonRefused(await repo.ask("agent:a", "hooks", "install"), 9, "E_HOOKS");
    expect((await repo.askHere("agent:a", "hooks", "uninstall")).data["left"]).toHaveLength(1);
    expect(hooked.hooks()).toEqual(before);
  });
});

describe("a server", () => {
  const server = () => path.join(repo.root, "../server.git");
  beforeEach(() => void repo.git("init", "--quiet", "--bare", "../server.git"));

  it("gets pre-receive beside its own, which reads all the refs, and gives it back", async () => {
    const file = path.join(server(), "hooks/pre-receive");
    fs.writeFileSync(file, '#!/bin/sh\ncat >> "$JOURNAL"\n', { mode: 0o755 });
    const before = pictureOf(server());
    const { data } = await cotenant(server(), ["hooks", "install", "--server", "--json"]);
    expect(data["hooks"]).toMatchObject([{ hook: "pre-receive", action: "added" }]);
    const status = await cotenant(server(), ["hooks", "status", "--server", "--json"]);
    expect(hooked.states(status)).toEqual({ "pre-receive": "installed passed" });
    const pushed = await hooked.git("agent:a", ["push", "../server.git", "HEAD:refs/heads/main"]);
    expect(pushed.status, `${pushed}`).toBe(0);
    expect(hooked.journalled()).toEqual([expect.stringMatching(/^0{40} [0-9a-f]{40} refs\/heads\/main$/)]);
    await cotenant(server(), ["hooks", "uninstall", "--server", "--json"]);
    expect(fs.readFileSync(file, "utf8")).toBe('#!/bin/sh\ncat >> "$JOURNAL"\n');
    expect(Object.keys(pictureOf(path.join(server(), "hooks")))).toEqual(
      Object.keys(before)
        .filter((name) => name.startsWith("hooks/"))
        .map((name) => name.slice("hooks/".length)),
    );
  });

  it("is a bare repository, and a bare repository is a server", async () => {
    expectRefused(await cotenant(server(), ["hooks", "install"]), 10, "E_NOT_A_REPO");
    expectRefused(await repo.run("agent:a", "hooks", "install", "--server"), 64, "E_USAGE");
    expectRefused(await cotenant(scratch(), ["hooks", "status"]), 10, "E_NOT_A_REPO");
    // Whoever tries something else there is told all that works.
    const { stderr } = await cotenant(server(), ["status"]);
    const named = [...stderr.matchAll(/'cotenant (hooks \w+ --server)'/g)].map(([, words]) => words!);
    expect(named).toEqual(["install", "status", "uninstall"].map((verb) => `hooks ${verb} --server`));
    for (const words of named) expect((await cotenant(server(), words.split(" "))).status, words).toBe(0);
  });
});

describe("init and deinit", () => {
  it("init --hooks installs, deinit takes it all away", async () => {
    await repo.prepare("agent:a", "deinit", "--purge");
    hooked.hook(".git/hooks/pre-commit", "#!/bin/sh\necho theirs");
    const before = repo.picture();
    const { data } = await repo.ask("agent:a", "init", "--hooks", "--enforce", "strict");
    expect(data["hooks"]).toEqual({ directory: path.join(repo.root, ".git/hooks"), changed: true });
    expect((await repo.askHere("agent:a", "init", "--hooks")).data["hooks"]).toMatchObject({
      changed: false,
    });
    expect((await repo.runHere("agent:a", "doctor")).stdout).toMatch(/ok +hooks +installed in /);
    await expectGuarded();
    const paths = HOOKS.map((hook) => path.join(repo.root, ".git/hooks", hook));
    expect((await repo.askHere("agent:a", "deinit", "--dry-run")).data["hooks"]).toEqual(paths);
    expect((await repo.ask("agent:a", "deinit", "--purge")).data["hooks"]).toEqual(paths);
    const hooksNow = Object.entries(repo.picture()).filter(([file]) =>
      /^\.git\/(?:hooks|cotenant)/.test(file),
    );
    expect(Object.fromEntries(hooksNow)).toEqual(
      Object.fromEntries(Object.entries(before).filter(([file]) => file.startsWith(".git/hooks"))),
    );
  });

  it("init --hooks that is refused leaves no trace", async () => {
    await repo.prepare("agent:a", "deinit", "--purge");
    repo.git("config", "core.hooksPath", "/dev/null");
    const before = repo.picture();
    expectJsonRefused(await repo.ask("agent:a", "init", "--hooks"), 9, "E_HOOKS");
    expect(repo.picture()).toEqual(before);
  });

  it("init --enforce sets it in a configuration that is there already", async () => {
    await repo.prepare("human:h", "init", "--enforce", "warn");
    expect(
      (await repo.ask("human:h", "config", "get", "worktree.enforce_leases")).data["setting"],
    ).toMatchObject({
      value: "warn",
    });
    const before = repo.picture();
    await repo.prepare("human:h", "init", "--enforce", "warn");
    expect(repo.picture()).toEqual(before);
  });
});

it("many installations at once are one", async () => {
  hooked.hook(".git/hooks/pre-commit", "#!/usr/bin/env node\n");
  const before = hooked.hooks();
  const program = path.resolve("bin/cotenant");
  const all = await Promise.all(
    Array.from({ length: 6 }, () => run([program, "hooks", "install"], { cwd: repo.root })),
  );
  expect(all.map(({ status }) => status)).toEqual(all.map(() => 0));
  await repo.ask("agent:a", "hooks", "uninstall");
  expect(hooked.hooks()).toEqual(before);
});
