import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { ADA, PERSON, passed, RuledRepo, refused } from "./ruled-repo";

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
