import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { PROGRAM, run } from "../support/program";
import { ADA, PERSON, passed, RuledRepo, refused } from "./ruled-repo";

const it = oneIn(8);

const NEVER = "agent:* never .github/**";
const BROKEN = `paths = ["${NEVER}", "agent:* nevr docs"]`;
const install = (cwd: string) => run([PROGRAM, "hooks", "install", "--server"], { cwd, env: {} });

let ruled: RuledRepo;
/** A bare repository with the hook and nothing in it yet. */
let server: string;
beforeEach(async () => {
  ruled = await RuledRepo.make(NEVER);
  server = path.join(path.dirname(ruled.repo.root), "server.git");
  ruled.repo.git("init", "--quiet", "--bare", "--initial-branch=main", server);
});
const push = (to: string, branch = "HEAD:main") =>
  ruled.git("", "push", "--quiet", "--no-verify", to, branch);
const change = (agent: string, files: Record<string, string>) => {
  for (const [file, content] of Object.entries(files)) ruled.repo.write(file, content);
  return ruled.around(agent);
};

describe("a server's main branch", () => {
  it("does not come in with rules that cannot be read, nor with settings that no client reads, be it the first", async () => {
    passed(await install(server));
    const start = ruled.head();
    for (const [lines, ...words] of [
      [BROKEN, ":2: policy.paths", '"nevr"'],
      [`path = ["${NEVER}"]`, ":2: there is no key policy.path", "did you mean policy.paths?"],
      [`paths = []\n[polcy]\npaths = ["${NEVER}"]`, ":3: there is no section [polcy]"],
    ] as const) {
      ruled.config(lines);
      ruled.around(PERSON);
      refused(await push(server), "pre-receive", "E_CONFIG", ...words);
      // On another branch it binds nobody.
      passed(await push(server, "HEAD:refs/heads/work"));
      ruled.repo.git("push", "--quiet", "--no-verify", server, ":refs/heads/work");
      ruled.back(start);
    }
    passed(await push(server));
    ruled.config(`path = ["${NEVER}"]`);
    ruled.around(PERSON);
    refused(await push(server), "E_CONFIG", "there is no key policy.path");
  });

  it("whose rules cannot be read is mended by a push, and until then takes no other", async () => {
    ruled.config(BROKEN);
    const broken = ruled.around(PERSON);
    passed(await push(server));
    const installed = await install(server);
    passed(installed);
    expect(installed.stdout).toContain("note: every push is refused");
    expect(installed.stdout).toContain(
      'main:.cotenant/config.toml:2: policy.paths has the entry "agent:* nevr docs"',
    );
    // What mends nothing is refused, and so is who may not.
    change(PERSON, { "a.txt": "1\n" });
    refused(await push(server), "cannot tell, and so refuses", "E_CONFIG");
    refused(await push(server, "HEAD:refs/heads/work"), "E_CONFIG", "next: push a main branch that mends it");
    ruled.back(broken);
    ruled.rules("agent:* never x");
    const mended = change(PERSON, {});
    change(ADA, { ".github/ci.yml": "1\n" });
    refused(await push(server), `"${NEVER}"`);
    ruled.back(mended);
    change(ADA, { x: "1\n" });
    refused(await push(server), '"agent:* never x"');
    ruled.back(broken);
    ruled.rules();
    change(ADA, {});
    refused(await push(server), "changes .cotenant/config.toml", "the rules that bind them");
    ruled.back(mended);
    passed(await push(server));
    change(ADA, { "a.txt": "2\n" });
    passed(await push(server));
  });

  it("that is no TOML at all is mended by people alone", async () => {
    ruled.repo.write(".cotenant/config.toml", "[policy\n");
    const broken = ruled.around(PERSON);
    passed(await push(server));
    passed(await install(server));
    for (const agent of [ADA, "ci:main"]) {
      ruled.rules();
      change(agent, { ".github/ci.yml": "1\n" });
      refused(await push(server), "the rules that bind them", "which cannot be read");
      ruled.back(broken);
    }
    ruled.rules();
    change(PERSON, {});
    passed(await push(server));
  });

  it("that has settings which no client reads since before the hook goes on", async () => {
    ruled.config(`path = ["${NEVER}"]`);
    ruled.around(PERSON);
    passed(await push(server));
    const installed = await install(server);
    expect(installed.stdout).toContain("note: main:.cotenant/config.toml:2: there is no key policy.path");
    change(ADA, { "a.txt": "1\n" });
    passed(await push(server));
  });
});

describe("validate commits", () => {
  it("judges the commits that mend the main branch, as a server does", async () => {
    const { repo } = ruled;
    ruled.config(BROKEN);
    const broken = ruled.around(PERSON);
    passed(await push("origin"));
    repo.git("fetch", "--quiet", "origin");
    const validated = async () =>
      (await repo.askHere(PERSON, "validate", "commits", "origin/main..HEAD")).status;
    ruled.rules();
    change(ADA, {});
    expect(await validated()).toBe(9);
    ruled.back(broken);
    ruled.rules("agent:* never x");
    change(PERSON, {});
    expect(await validated()).toBe(0);
    change(ADA, { ".github/ci.yml": "1\n" });
    expect(await validated()).toBe(9);
    // What is to be looked at does not have it: nobody knows what holds.
    expect((await repo.askHere(PERSON, "validate", "commits", "origin/main~1..origin/main")).error.code).toBe(
      "E_CONFIG",
    );
  });
});
