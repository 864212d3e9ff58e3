import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { HookedRepo } from "../support/hooks";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run } from "../support/program";
import type { TestRepo } from "../support/repo";

const it = oneIn(8);

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
      await hooked.commit(ADA, {}, ".github/ci.yml"),
      `.github/ci.yml: ${ADA} may not write it: "${NEVER}" (HEAD:.cotenant/config.toml:2)`,
    );
    // Where no hook has seen them, the push still knows what the main branch has.
    for (const files of [[".cotenant/config.toml"], []])
      committed(
        await hooked.git(ADA, ["-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "x", ...files]),
      );
    refusedWith(
      await push(ADA),
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

  it.each<[string, readonly (readonly string[])[]]>([
    ["all of it at once", [["commit", "-am", "x"]]],
    [
      "what was staged",
      [
        ["add", "--all"],
        ["commit", "-m", "x"],
      ],
    ],
    [
      "only the other file",
      [
        ["add", ".github"],
        ["commit", "-m", "x"],
      ],
    ],
    [
      "the other file, while this one is staged",
      [
        ["add", "--all"],
        ["commit", "-m", "x", ".github/ci.yml"],
      ],
    ],
    ["only this one", [["commit", "-m", "x", ".cotenant/config.toml"]]],
    [
      "a file that Git no longer follows",
      [
        ["add", ".github"],
        ["rm", "-q", "--cached", ".cotenant/config.toml"],
        ["commit", "-m", "x"],
      ],
    ],
    [
      "a file that is gone",
      [
        ["rm", "-qf", ".cotenant/config.toml"],
        ["commit", "-am", "x"],
      ],
    ],
  ])("bind an agent that has lifted them in its files, when it commits %s", async (_, steps) => {
    rules();
    repo.write(".github/ci.yml", "changed\n");
    for (const step of steps.slice(0, -1)) committed(await hooked.git(ADA, step));
    for (const mode of ["strict", "off"])
      refusedWith(
        await hooked.git(ADA, steps.at(-1)!, { COTENANT_WORKTREE_ENFORCE_LEASES: mode }),
        `"${NEVER}" (`,
        "E_PATH_RULE",
      );
    // Somebody whom it does not bind commits the same.
    committed(await hooked.git(PERSON, steps.at(-1)!));
  });

  it("are those of both sides of a merge for what it makes itself, and for the rest what the sides made of them", async () => {
    const by = async (agent: string, branch: string, files: Record<string, string>) => {
      await hooked.git(agent, ["checkout", "--quiet", branch]);
      for (const [file, text] of Object.entries(files)) repo.write(file, text);
      committed(await hooked.git(agent, ["commit", "--quiet", "--all", "-m", branch]));
    };
    const more = (...texts: string[]) => `[policy]\npaths = ${JSON.stringify(texts)}\n`;
    repo.git("branch", "develop");
    // A person has lifted it there, and merging that is no lifting.
    await by(ADA, "develop", { "a.txt": "develop\n" });
    await by(PERSON, "main", {
      "a.txt": "main\n",
      ".cotenant/config.toml": more(ONLY),
      ".github/ci.yml": "1\n",
    });
    await hooked.git(ADA, ["checkout", "--quiet", "develop"]);
    expect((await hooked.git(ADA, ["merge", "main"])).status).not.toBe(0);
    repo.write("a.txt", "both\n");
    committed(await hooked.git(ADA, ["commit", "--all", "-m", "merged"]));
    // Two persons have added a rule each. Whoever has to settle that may not drop either of them.
    await by(PERSON, "develop", { ".cotenant/config.toml": more(ONLY, "ci:* never a.txt") });
    await by(PERSON, "main", { ".cotenant/config.toml": more(ONLY, "ci:* never docs/a.md") });
    await hooked.git(PERSON, ["checkout", "--quiet", "develop"]);
    expect((await hooked.git("ci:a", ["merge", "main"])).status).not.toBe(0);
    for (const [file, name] of [
      ["a.txt", "HEAD"],
      ["docs/a.md", "MERGE_HEAD"],
    ] as const) {
      repo.write(".cotenant/config.toml", more(ONLY));
      repo.write(file, "ci\n");
      refusedWith(
        await hooked.git("ci:a", ["commit", "--all", "-m", "merged"]),
        `"ci:* never ${file}" (${name}:.cotenant/config.toml:2)`,
      );
    }
  });

  it("name who has lifted them past the hooks, put it on record, and judge the commit by what it lifted", async () => {
    const before = head();
    rules();
    repo.write(".github/ci.yml", "changed\n");
    const around = await hooked.git(ADA, ["commit", "-a", "--no-verify", "-m", "lift"], {
      COTENANT_WORKTREE_ENFORCE_LEASES: "off",
    });
    committed(around);
    expect(around.stderr).toContain("goes against rules:");
    expect(repo.git("log", "-1", "--format=%(trailers:key=Cotenant-Agent,valueonly,separator=)")).toBe(
      `${ADA}\n`,
    );
    // Where neither the working file nor the main branch has it any more.
    committed(await push(ADA, "--no-verify"));
    for (const caller of ["", PERSON]) {
      const judged = await repo.ask(caller, "validate", "commits", "HEAD~1..HEAD");
      expect(judged.status, `${judged}`).toBe(9);
      expect(judged.json.data!["objections"]).toMatchObject([
        { code: "E_PATH_RULE", path: ".cotenant/config.toml" },
        {
          code: "E_PATH_RULE",
          path: ".github/ci.yml",
          message: expect.stringContaining(`"${NEVER}" (${before.slice(0, 12)}:.cotenant/config.toml:2)`),
        },
      ]);
    }
    // What names nobody is whoever's who asks.
    repo.git("commit", "--quiet", "--amend", "--no-verify", "--message", "nobody");
    const valid = async (caller: string) =>
      (await repo.ask(caller, "validate", "commits", "HEAD~1..HEAD")).json.data!["valid"];
    expect([await valid(ADA), await valid(PERSON)]).toEqual([false, true]);
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

  /** The same with hooks, under a lock. */
  const leased = async () => {
    await repo.prepare(ADA, "lock", "acquire", "a.txt");
    committed(await hooked.commit(ADA));
    await repo.prepare(ADA, "lock", "release", "a.txt");
    expect(repo.git("log", "-1", "--format=%B")).toContain("Cotenant-Lease: ");
    return push(ADA, "--no-verify");
  };

  it.each(["in a clone without hooks", "where the clone does not know the rule", "of a commit with a lease"])(
    "say how somebody whom they do not bind makes a commit theirs, which works %s",
    async (where) => {
      let refused: Ran;
      if (where === "in a clone without hooks") {
        await repo.prepare(PERSON, "hooks", "uninstall");
        refused = await pushed(ADA, { ".github/ci.yml": "1\n" });
      } else {
        committed(await pushed(PERSON, { ".cotenant/config.toml": empty }, "HEAD:main"));
        repo.git("--git-dir", hub, "config", "cotenant.paths", "agent:* never a.txt");
        refused = where.endsWith("lease") ? await leased() : await pushed(ADA, { "a.txt": "1\n" });
      }
      const [, hint] = / makes the commit theirs with: (.*?)\s*$/m.exec(refused.stderr) ?? [];
      expect(hint).toMatch(/^cotenant hooks install && git rebase /);
      const env = { COTENANT_AGENT_ID: PERSON, PATH: `${path.dirname(PROGRAM)}:${process.env["PATH"]}` };
      committed(await run(["sh", "-c", hint!], { cwd: repo.root, env }));
      committed(await push(PERSON));
    },
  );

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
    const own = "cotenant.paths in the server's Git configuration";
    refusedWith(
      await pushed(ADA, { "a.txt": "1\n" }),
      `"agent:* never a.txt" (${own})`,
      `next: leave it to somebody whom the rule does not bind; else only a change of ${own} lifts it; somebody whom it`,
    );
    repo.git("--git-dir", hub, "config", "cotenant.paths", "* never a.txt");
    const everybody = await pushed(PERSON, { "a.txt": "2\n" });
    refusedWith(everybody, `"* never a.txt" (${own})`, `next: only a change of ${own} lifts it`);
    expect(everybody.stderr).not.toContain("somebody whom");
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

it("of a server that nobody can read are named by its hooks' status, because pushes are refused", async () => {
  await stage();
  const status = async () => {
    const ran = await run([PROGRAM, "hooks", "status", "--server", "--json"], { cwd: hub, env: {} });
    return ran.data["settings_problem"];
  };
  await run([PROGRAM, "hooks", "install", "--server"], { cwd: hub, env: {} });
  expect(await status()).toBeNull();
  repo.git("--git-dir", hub, "config", "--add", "cotenant.paths", "* never x");
  repo.git("--git-dir", hub, "config", "--add", "cotenant.paths", "agent:* nevr a.txt");
  expect(await status()).toMatchObject({
    code: "E_CONFIG",
    message: expect.stringContaining('has the entry "agent:* nevr a.txt", which has "nevr"'),
    hint: expect.stringContaining('write it as "agent:* never .github/**" or "agent:docs-* only'),
  });
  const { stdout } = await run([PROGRAM, "hooks", "status", "--server"], { cwd: hub, env: {} });
  expect(stdout).toContain(
    "pre-receive cannot judge pushes, and refuses them: cotenant.paths in the server's Git configuration has",
  );
  expect(stdout).toContain("next: on the server: write it as");
  repo.git("--git-dir", hub, "config", "--unset-all", "cotenant.paths");
  // As bad: a main branch that came to such rules before there was a hook.
  const blob = execFileSync("git", ["hash-object", "-w", "--stdin"], { cwd: repo.root, input: "[policy\n" });
  repo.git("update-index", "--cacheinfo", `100644,${blob.toString().trim()},.cotenant/config.toml`);
  repo.git("commit", "--quiet", "--no-verify", "--message", "broken");
  repo.git("--git-dir", hub, "fetch", "--quiet", "--update-head-ok", repo.root, "main:main");
  expect(await status()).toMatchObject({
    code: "E_CONFIG",
    message: expect.stringContaining("main:.cotenant/config.toml:"),
  });
});

describe("rules of paths elsewhere", () => {
  beforeEach(stage);

  it("warn whoever sets rules that bind them, and whoever takes off what is committed", async () => {
    rules();
    repo.git("commit", "--quiet", "--all", "--no-verify", "--message", "none");
    const set = async (agent: string, ...texts: string[]) => {
      const ran = await repo.askHere(agent, "config", "set", "policy.paths", JSON.stringify(texts));
      return ran.json.warnings ?? [];
    };
    expect(await set(PERSON, NEVER)).toEqual([]);
    expect(await set(PERSON)).toEqual([]);
    expect(await set(ADA, ONLY)).toEqual([]);
    expect(await set(ADA, NEVER)).toEqual([
      `"${NEVER}" binds you: only somebody whom it does not bind can commit or change it`,
    ]);
    expect((await repo.askHere(ADA, "config", "reset", "policy.paths")).error.code).toBe("E_PATH_RULE");
    expect(await set(PERSON, "* never x")).toEqual([]);
    expect(await set(PERSON, "* only docs/**")).toEqual([]);
    expect(await set(PERSON)).toEqual([]);
    expect(await set(ADA, "* only docs/**")).toEqual([
      '"* only docs/**" binds you: only a person can commit or change it',
    ]);
    rules(NEVER, ONLY);
    repo.git("commit", "--quiet", "--all", "--no-verify", "--message", "rules");
    expect(await set(PERSON, ONLY)).toEqual([
      `"${NEVER}" (HEAD:.cotenant/config.toml:2) binds until the change is committed`,
    ]);
    const wrong = await repo.askHere(PERSON, "config", "set", "policy.paths", "agent:* nver .github/**");
    expect(wrong.error).toMatchObject({
      code: "E_CONFIG",
      hint: 'write it as "agent:* never .github/**" or "agent:docs-* only docs/** /README.md"',
    });
  });

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
    for (const words of [
      ["lock", "acquire", ".github/ci.yml"],
      ["guard", "check", ".github/ci.yml"],
      ["config", "set", "guard.retry_secs", "9"],
    ])
      expect((await repo.askHere(ADA, ...words)).error, words.join(" ")).toMatchObject({
        code: "E_PATH_RULE",
        message: expect.stringContaining(`"${NEVER}" (HEAD:.cotenant/config.toml:2)`),
      });
    // Nor where it is staged, for what is published: its base has the rule.
    repo.git("add", ".cotenant/config.toml");
    expect((await publish(ADA, "--delete", ".github/ci.yml")).error).toMatchObject({
      code: "E_PATH_RULE",
      message: expect.stringMatching(/ "agent:\* never .+" \([0-9a-f]{12}:\.cotenant\/config\.toml:2\)$/),
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
