import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM, run } from "../support/program";
import { scratch } from "../support/scratch";
import { ADA, PERSON, passed, RuledRepo, refused } from "./ruled-repo";

const it = oneIn(8);

describe("where there are rules of paths", () => {
  it("a merge names its maker in trailers of their own, below a blank line", async () => {
    const ruled = await RuledRepo.make("agent:* never .github/**");
    const { repo } = ruled;
    const expectNamed = (subject: string) => {
      expect(repo.git("log", "-1", "--format=%s").trim()).toBe(subject);
      expect(repo.git("log", "-1", "--format=%(trailers:key=Cotenant-Agent,valueonly,separator=)")).toBe(
        `${PERSON}\n`,
      );
    };
    const start = ruled.head();
    repo.git("checkout", "--quiet", "-b", "side");
    passed(await ruled.hooked.commit(PERSON, {}, "docs/side.md"));
    repo.git("checkout", "--quiet", "main");
    for (const [subject, ...words] of [
      ["Merge branch 'side'", "merge", "--quiet", "--no-ff", "--no-edit", "side"],
      ["take it", "merge", "--quiet", "--no-ff", "-m", "take it", "side"],
      ["Merge branch 'side' of .", "pull", "--quiet", "--no-rebase", "--no-ff", "--no-edit", ".", "side"],
    ]) {
      passed(await ruled.git(PERSON, ...words));
      expectNamed(subject!.replace(" of .", ""));
      ruled.back(start);
    }
  });

  it("a submodule that Git is told not to look at is judged all the same", async () => {
    const ruled = await RuledRepo.make("agent:* never vendor/**");
    const { repo } = ruled;
    const stage = () => repo.git("update-index", "--add", "--cacheinfo", `160000,${ruled.head()},vendor/v`);
    repo.write(".gitmodules", '[submodule "v"]\n\tpath = vendor/v\n\turl = ./v\n\tignore = all\n');
    repo.git("add", ".gitmodules");
    stage();
    passed(await ruled.git(PERSON, "commit", "-m", "a submodule"));
    stage();
    refused(await ruled.git(ADA, "commit", "-m", "moved"), "vendor/v", "E_PATH_RULE");
    // Lines that an older version wrote into the hook ask Git another question: their answer does not count.
    const hook = path.join(repo.root, ".git/hooks/pre-commit");
    const lines = fs.readFileSync(hook, "utf8");
    const older = lines.replace(" --ignore-submodules=none", "").replace(/printf '\w+/, "printf 'whole");
    expect(older).not.toContain("submodules");
    fs.writeFileSync(hook, older);
    refused(await ruled.git(ADA, "commit", "-m", "moved"), "vendor/v", "E_PATH_RULE");
    passed(await ruled.git(ADA, "commit", "--no-verify", "-m", "around"));
    expect(ruled.recorded()).toEqual([{ agent: ADA, paths: ["vendor/v"] }]);
  });
});

describe("a name that cannot be used is worth no more than none", () => {
  const EVERYBODY = "* never .github/**";
  const SESSION = { CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: "7f3c2b1a-90de-4f12-8abc-0123456789ab" };
  const home = (toml: string) => {
    const directory = scratch();
    fs.mkdirSync(path.join(directory, "cotenant"), { recursive: true });
    fs.writeFileSync(path.join(directory, "cotenant/agent.toml"), toml);
    return directory;
  };
  const cases: [what: string, env: () => Record<string, string>, why: string, recordedAs: string][] = [
    ["no type", () => ({ COTENANT_AGENT_ID: "foo" }), 'COTENANT_AGENT_ID: "foo"', "agent:unknown"],
    ["no name", () => ({ COTENANT_AGENT_ID: "agent:" }), 'COTENANT_AGENT_ID: "agent:"', "agent:unknown"],
    [
      "a wrong session",
      () => ({ COTENANT_AGENT_ID: ADA, COTENANT_SESSION_ID: "a\tb" }),
      "COTENANT_SESSION_ID: ",
      ADA,
    ],
    [
      "a broken file",
      () => ({ COTENANT_AGENT_ID: "", XDG_CONFIG_HOME: home("[agent\n") }),
      "agent.toml",
      "agent:unknown",
    ],
    [
      "a wrong name in a harness",
      () => ({ ...SESSION, COTENANT_AGENT_ID: "x" }),
      'COTENANT_AGENT_ID: "x"',
      "agent:claude-7f3c2b1a",
    ],
    [
      "a person's name in a harness",
      () => ({ ...SESSION, COTENANT_AGENT_ID: PERSON }),
      `${PERSON} is for people`,
      "agent:claude-7f3c2b1a",
    ],
  ];

  it.each(cases)("with %s: rules and leases hold, and the record is kept", async (_, env, why, agent) => {
    const ruled = await RuledRepo.make(EVERYBODY);
    const { repo } = ruled;
    const own = env();
    const git = (...args: string[]) => ruled.hooked.git("", args, { GIT_EDITOR: "true", ...own });
    await repo.prepare(PERSON, "lock", "acquire", "docs/a.md");
    for (const file of ["docs/a.md", ".github/ci.yml"]) repo.write(file, "changed\n");
    refused(
      await git("commit", "--all", "-m", "x"),
      why,
      `"${EVERYBODY}"`,
      `docs/a.md is held by ${PERSON}`,
      "E_LOCK_CONFLICT",
    );
    const around = await git("commit", "--all", "--no-verify", "-m", "x");
    passed(around);
    expect(around.stderr).toContain(why);
    expect(ruled.recorded()).toEqual([{ agent, paths: ["docs/a.md", ".github/ci.yml"] }]);
    const pushed = await git("push", "origin", "HEAD:main");
    refused(pushed, why, `"${EVERYBODY}"`);
    expect(pushed.stderr).not.toContain("nothing of this push was checked");
  });
});

describe("a rule for everybody", () => {
  it("is lifted by people, and by nobody else", async () => {
    const ruled = await RuledRepo.make("agent:* never .github/**");
    const { repo } = ruled;
    passed(await run([PROGRAM, "hooks", "install", "--server"], { cwd: ruled.hub, env: {} }));
    await repo.prepare(PERSON, "config", "set", "policy.paths", "* only docs/**");
    passed(await ruled.git(PERSON, "commit", "--all", "-m", "everybody"));
    passed(await ruled.push(PERSON));
    refused(await ruled.hooked.commit(PERSON), "E_PATH_RULE");
    ruled.back("HEAD");
    const reset = ["config", "reset", "policy.paths"];
    expect((await repo.askHere(ADA, ...reset)).error.code).toBe("E_PATH_RULE");
    await repo.prepare(PERSON, ...reset);
    ruled.around(ADA);
    refused(await ruled.push(ADA, "--no-verify"), "pre-receive", "the rules that bind them");
    repo.git("reset", "--quiet", "--soft", "HEAD~1");
    passed(await ruled.git(PERSON, "commit", "--all", "-m", "fewer"));
    passed(await ruled.push(PERSON));
    passed(await ruled.hooked.commit(ADA));
    passed(await ruled.push(ADA));
  });

  it("sends nobody to somebody else, and what its hint says helps: older commits go to a new remote", async () => {
    const ruled = await RuledRepo.make("* never .github/**");
    const { repo } = ruled;
    repo.git("remote", "remove", "origin");
    repo.git("init", "--quiet", "--bare", "../new.git");
    const push = () => ruled.git(PERSON, "push", "--quiet", "../new.git", "main");
    const ran = await push();
    refused(ran, "changes .github/ci.yml", "next: have a person", "policy.paths in .cotenant/config.toml:2");
    expect(ran.stderr).not.toContain("does not bind");
    ruled.rules();
    passed(await ruled.git(PERSON, "commit", "--all", "-m", "lifted"));
    passed(await push());
  });
});

describe("a push by address, from a clone without a remote", () => {
  it("is judged by the rules of the main branch there, which Git names", async () => {
    const NEVER = "agent:* never .github/**";
    const ruled = await RuledRepo.make(NEVER);
    const { repo } = ruled;
    const there = ruled.head();
    repo.git("remote", "remove", "origin");
    ruled.rules();
    repo.write(".github/ci.yml", "changed\n");
    ruled.around(ADA);
    const push = (branch: string) => ruled.git(ADA, "push", "--quiet", ruled.hub, branch);
    const words = [`"${NEVER}" (${there.slice(0, 12)}:.cotenant/config.toml:2)`, "changes .github/ci.yml"];
    refused(await push("main"), ...words);
    // Also where the clone has no such branch itself.
    repo.git("branch", "--quiet", "--move", "work");
    refused(await push("HEAD:main"), ...words);
    // And where no commit that is pushed has ever had the rules.
    repo.git("checkout", "--quiet", "--orphan", "other");
    repo.git("rm", "--quiet", "-r", "--force", ".");
    repo.write(".github/ci.yml", "changed\n");
    ruled.around(ADA);
    refused(await push("+HEAD:main"), ...words);
  });
});
