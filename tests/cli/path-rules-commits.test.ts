import { describe, expect, it } from "vitest";
import { PERSON, passed, RuledRepo } from "./ruled-repo";

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
});
