import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { HookedRepo } from "../support/hooks";
import { PROGRAM, type Ran, run } from "../support/program";
import type { TestRepo } from "../support/repo";

const NEVER = "agent:* never .github/**";
const ONLY = "agent:docs-* only docs/**";
const ADA = "agent:ada";
const PERSON = "human:me";

let hooked: HookedRepo;
let repo: TestRepo;
let hub: string;

const rules = (...texts: string[]) =>
  repo.write(".cotenant/config.toml", `[policy]\npaths = ${JSON.stringify(texts)}\n`);
const committed = (ran: Ran) => expect(ran.status, `${ran}`).toBe(0);
const refusedWith = (ran: Ran, ...words: string[]) => {
  expect(ran.status, `${ran}`).not.toBe(0);
  for (const word of words) expect(ran.stderr).toContain(word);
};
const head = () => repo.git("rev-parse", "HEAD").trim();
const back = (to: string) => repo.git("reset", "--quiet", "--hard", to);
const push = (agent: string, ...more: string[]) =>
  hooked.git(agent, ["push", "--quiet", ...more, "origin", "HEAD:main"]);

async function stage(): Promise<void> {
  hooked = await HookedRepo.make();
  repo = hooked.repo;
  hub = path.join(path.dirname(repo.root), "hub.git");
  repo.git("init", "--quiet", "--bare", "--initial-branch=main", hub);
  repo.git("remote", "add", "origin", hub);
  rules(NEVER, ONLY);
  repo.write(".github/ci.yml");
  repo.write("docs/a.md");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "rules");
  repo.git("push", "--quiet", "origin", "main");
  await repo.prepare(PERSON, "hooks", "install");
}

describe("rules of paths at a commit and a push", () => {
  beforeEach(stage);

  it("refuse the commit, name the rule, and hold whatever becomes of leases", async () => {
    const words = [
      `.github/ci.yml: ${ADA} may not write it: "${NEVER}" (.cotenant/config.toml:2) (E_PATH_RULE)`,
    ];
    refusedWith(await hooked.commit(ADA, {}, ".github/ci.yml"), ...words, "next: leave it to somebody whom");
    refusedWith(
      await hooked.commit(ADA, { COTENANT_WORKTREE_ENFORCE_LEASES: "off" }, ".github/ci.yml"),
      ...words,
      "unstage what is not yours to write: git reset -q -- .github/ci.yml",
    );
    await hooked.git(ADA, ["mv", ".github/ci.yml", "ci.yml"]);
    refusedWith(await hooked.git(ADA, ["commit", "-m", "x"]), NEVER);
    back("HEAD");
    refusedWith(await hooked.commit("agent:docs-1", {}, "a.txt"), ONLY);
    back("HEAD");
    committed(await hooked.commit("agent:docs-1", {}, "docs/a.md"));
    committed(await hooked.commit(PERSON, {}, ".github/ci.yml"));
    // Whoever judges them later knows whose they are.
    expect(repo.git("log", "-2", "--format=%(trailers:key=Cotenant-Agent,valueonly,separator=)")).toBe(
      `${PERSON}\nagent:docs-1\n`,
    );
    committed(await hooked.commit("", {}, ".github/ci.yml"));
  });

  it("are not lifted by the commit that breaks them, nor by an agent at all", async () => {
    const start = head();
    rules();
    refusedWith(
      await hooked.commit(ADA, {}, ".github/ci.yml").then(() => push(ADA)),
      "changes .github/ci.yml",
      `"${NEVER}" (origin/main:.cotenant/config.toml:2)`,
    );
    back(start);
    rules(NEVER, ONLY, "agent:* never x");
    await hooked.git(ADA, ["add", "--all"]);
    refusedWith(await hooked.git(ADA, ["commit", "-m", "more"]), "the rules that bind them", NEVER);
    for (const words of [
      ["set", "policy.paths", "[]"],
      ["reset", "policy.paths"],
    ])
      expect((await repo.askHere(ADA, "config", ...words)).error.code).toBe("E_PATH_RULE");
    back(start);
    rules();
    await hooked.git(PERSON, ["add", "--all"]);
    committed(await hooked.git(PERSON, ["commit", "-m", "fewer"]));
    committed(await push(PERSON));
    committed(await hooked.commit(ADA, {}, ".github/ci.yml"));
    committed(await push(ADA));
  });

  it("are put on record where the hooks were gone around, and refused at the push and by validate", async () => {
    await hooked.git(ADA, ["checkout", "-q", "-b", "work"]);
    repo.write(".github/ci.yml", "changed\n");
    const around = await hooked.git(ADA, ["commit", "-a", "--no-verify", "-m", "around"]);
    committed(around);
    expect(around.stderr).toContain("goes against a rule:");
    refusedWith(await push(ADA), `"${NEVER}"`, "E_PATH_RULE");
    refusedWith(await push(PERSON), `"${NEVER}"`, "E_PATH_RULE");
    const judged = await repo.askHere(PERSON, "validate", "commits", "main..HEAD");
    expect(judged.status).toBe(9);
    expect(judged.json.data!["objections"]).toMatchObject([{ code: "E_PATH_RULE", path: ".github/ci.yml" }]);
    // A person makes it theirs, as the hint says.
    committed(await hooked.git(PERSON, ["rebase", "--no-ff", "--rebase-merges", "HEAD~1"]));
    committed(await push(PERSON));
  });
});

describe("rules of paths on a server", () => {
  let start: string;
  beforeEach(async () => {
    await stage();
    start = head();
    const installed = await run([PROGRAM, "hooks", "install", "--server"], { cwd: hub, env: {} });
    expect(installed.status, `${installed}`).toBe(0);
  });
  /** Past the hooks of the clone: what a commit says of itself is all that the server has. */
  const pushed = async (agent: string, files: Record<string, string>, branch = "HEAD:refs/heads/work") => {
    for (const [file, content] of Object.entries(files)) repo.write(file, content);
    repo.git("add", "--all");
    const named = agent === "" ? [] : ["--trailer", `Cotenant-Agent: ${agent}`];
    repo.git("commit", "--quiet", "--no-verify", "--message", "x", ...named);
    return hooked.git("", ["push", "--quiet", "--no-verify", "--force", "origin", branch]);
  };
  const empty = "[policy]\npaths = []\n";

  it("are those of its main branch and its own, for whom the commits name, and fail closed", async () => {
    const place = "main:.cotenant/config.toml:2";
    refusedWith(await pushed(ADA, { ".github/ci.yml": "1\n" }), `may not write it: "${NEVER}" (${place})`);
    back(start);
    refusedWith(
      await pushed(ADA, { ".github/ci.yml": "1\n", ".cotenant/config.toml": empty }),
      NEVER,
      "that bind them",
    );
    back(start);
    committed(await pushed(PERSON, { ".github/ci.yml": "2\n" }));
    committed(await pushed("", { ".github/ci.yml": "3\n" }));
    // Their own are not to be taken back by a merge either.
    const theirs = head();
    repo.git("checkout", "--quiet", "-b", "side", start);
    repo.write("a.txt", "side\n");
    repo.git("commit", "--quiet", "--no-verify", "--all", "--message", "side");
    repo.git(
      "merge",
      "--quiet",
      "--no-verify",
      "-s",
      "ours",
      "-m",
      `merge\n\nCotenant-Agent: ${ADA}`,
      theirs,
    );
    refusedWith(
      await hooked.git("", ["push", "-q", "--no-verify", "origin", "HEAD:refs/heads/work"]),
      "takes back .github/ci.yml",
    );
    repo.git("checkout", "--quiet", "main");
    // Those of its own configuration, too, and what it cannot read it refuses.
    repo.git("--git-dir", hub, "config", "cotenant.paths", "agent:* never a.txt");
    refusedWith(await pushed(ADA, { "a.txt": "1\n" }), "cotenant.paths in Git's configuration");
    repo.git("--git-dir", hub, "config", "cotenant.paths", "agent:* nevr a.txt");
    refusedWith(
      await pushed(PERSON, { "b.txt": "1\n" }),
      "cannot tell, and so refuses",
      "E_CONFIG",
      '"nevr"',
    );
    repo.git("--git-dir", hub, "config", "--unset-all", "cotenant.paths");
    back(start);
    const broken = '[policy]\npaths = ["agent:* nevr x"]\n';
    refusedWith(
      await pushed(PERSON, { ".cotenant/config.toml": broken }, "HEAD:main"),
      "E_CONFIG",
      ":2: policy.paths",
    );
  });
});

describe("rules of paths elsewhere", () => {
  beforeEach(stage);

  it("refuse a publish, and a lease on what could not be written; are shown, and fail with their line", async () => {
    await repo.prepare(ADA, "lock", "acquire", "a.txt");
    const publish = (agent: string, ...words: string[]) =>
      repo.askHere(agent, "publish", "--branch", "work/x", "--message", "x", ...words);
    for (const words of [
      ["--delete", ".github/ci.yml"],
      ["--rename", ".github/ci.yml=ci.yml"],
      ["--rename", "a.txt=.github/a.txt"],
      ["--put", ".github/new.yml=a.txt", "--dry-run"],
      ["--put", ".cotenant/config.toml=a.txt"],
    ]) {
      const ran = await publish(ADA, ...words);
      expect(ran.status, words.join(" ")).toBe(9);
      expect(ran.json.error?.code ?? "E_PATH_RULE").toBe("E_PATH_RULE");
      expect(ran.stdout).toContain(`\\"${NEVER}\\" (.cotenant/config.toml:2)`);
    }
    committed(await publish(ADA, "--delete", "a.txt"));
    // A directory of which something may be written may be leased.
    const acquire = (agent: string, ...words: string[]) => repo.askHere(agent, "lock", "acquire", ...words);
    expect((await acquire(ADA, ".github/ci.yml")).error).toMatchObject({
      code: "E_PATH_RULE",
      message: `.github/ci.yml: ${ADA} may not write it: "${NEVER}" (.cotenant/config.toml:2)`,
      hint: expect.stringContaining("policy.paths in .cotenant/config.toml:2"),
    });
    expect((await acquire(ADA, "--dir", ".github")).error.code).toBe("E_PATH_RULE");
    expect((await acquire("agent:docs-1", "--dir", "src")).error.code).toBe("E_PATH_RULE");
    expect((await acquire(PERSON, ".github/ci.yml")).status).toBe(0);
    await repo.prepare(PERSON, "lock", "release", ".github/ci.yml");
    expect((await acquire("agent:docs-1", "--dir", "docs")).status).toBe(0);
    const { data } = await repo.askHere(PERSON, "config", "show", "policy.paths");
    expect(data["settings"]).toMatchObject([
      { key: "policy.paths", value: [NEVER, ONLY], source: "worktree", line: 2 },
    ]);
    // A working file that lacks the rule does not lift it.
    rules();
    expect((await publish(ADA, "--delete", ".github/ci.yml")).error).toMatchObject({
      code: "E_PATH_RULE",
      message: expect.stringContaining(`"${NEVER}" (`),
    });
    rules(NEVER, "agent:* only");
    for (const words of [
      ["validate", "commits", "HEAD"],
      ["publish", "--branch", "work/x", "--message", "x", "--delete", "a.txt"],
      ["lock", "acquire", "b.txt"],
    ])
      expect((await repo.askHere(ADA, ...words)).error, words.join(" ")).toMatchObject({
        code: "E_CONFIG",
        message: expect.stringContaining('config.toml:2: policy.paths has the entry "agent:* only"'),
      });
    refusedWith(await hooked.commit(ADA, {}, ".github/ci.yml"), NEVER);
    expect((await repo.askHere(PERSON, "doctor")).status).toBe(10);
  });

  describe("refuse what cotenant itself would write in the working tree,", () => {
    const HOOKS = ".github/hooks/cotenant.json";
    const there = (file: string) => fs.existsSync(path.join(repo.root, file));
    const refused = async (agent: string, ...words: string[]) => {
      const ran = await repo.askHere(agent, ...words);
      expect(ran.error, words.join(" ")).toMatchObject({ code: "E_PATH_RULE", hint: expect.any(String) });
      expect(ran.status).toBe(9);
      return ran.error.message;
    };
    const done = async (agent: string, ...words: string[]) =>
      expect((await repo.askHere(agent, ...words)).status, words.join(" ")).toBe(0);

    it("settings of harnesses for everybody", async () => {
      expect(await refused(ADA, "agent", "install", "claude", "copilot", "--shared")).toContain(
        `${HOOKS}: ${ADA} may`,
      );
      for (const file of [HOOKS, ".claude/settings.json"]) expect(there(file), file).toBe(false);
      await done(ADA, "agent", "install", "claude", "--shared");
      await done("", "agent", "install", "copilot", "--shared");
      expect(await refused(ADA, "agent", "uninstall", "copilot", "--shared")).toContain(HOOKS);
      expect(there(HOOKS)).toBe(true);
      await done(PERSON, "agent", "uninstall", "copilot", "--shared");
      // What Git passes over is nobody's work.
      await done(ADA, "agent", "install", "copilot");
    });

    it("hooks for everybody", async () => {
      repo.git("config", "core.hooksPath", ".github/hooks");
      repo.write(".github/hooks/pre-commit", "#!/bin/sh\nexit 0\n");
      repo.git("add", "--all");
      expect(await refused(ADA, "hooks", "install", "--shared")).toContain(".github/hooks/");
      expect(fs.readFileSync(path.join(repo.root, ".github/hooks/pre-commit"), "utf8")).not.toContain(
        "cotenant",
      );
      await done(PERSON, "hooks", "install", "--shared");
      expect(await refused(ADA, "hooks", "uninstall", "--shared")).toContain(".github/hooks/");
      expect(fs.readFileSync(path.join(repo.root, ".github/hooks/pre-commit"), "utf8")).toContain("cotenant");
    });

    it("files of a snapshot that is restored in place", async () => {
      repo.write("a.txt", "kept\n");
      await repo.prepare(PERSON, "snapshot");
      repo.write(".github/ci.yml", "by a person\n");
      repo.write("a.txt", "changed\n");
      await repo.prepare(ADA, "worktree", "lock");
      const plan = async () =>
        (await repo.prepare(ADA, "restore", "latest", "--inplace"))["plan_id"] as string;
      const message = await refused(ADA, "restore", "latest", "--inplace", "--run", await plan());
      expect(message).toContain(".github/ci.yml");
      for (const [file, text] of [
        [".github/ci.yml", "by a person\n"],
        ["a.txt", "changed\n"],
      ] as const)
        expect(fs.readFileSync(path.join(repo.root, file), "utf8")).toBe(text);
      repo.git("checkout", "--quiet", "--", ".github/ci.yml");
      await done(ADA, "restore", "latest", "--inplace", "--run", await plan());
    });

    it("the data plane's own files", async () => {
      repo.git("rm", "--quiet", "-r", "--force", "--ignore-unmatch", ".cotenant/.gitattributes");
      rules("agent:docs-* only docs/**");
      expect(await refused("agent:docs-1", "init")).toContain(".cotenant/.gitattributes");
      expect(there(".cotenant/.gitattributes")).toBe(false);
      await done(PERSON, "init");
      await done("agent:docs-1", "init");
    });
  });
});
