import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { HookedRepo, OTHERS } from "../support/hooks";
import { oneIn } from "../support/one-in";

const it = oneIn(5);

const KINDS = ["a shell script", "a program in another language", "lefthook", "pre-commit"];

describe("S31: the hook works in a worktree, with spaces and non-ASCII in paths, beside a hook that was already there", () => {
  it.each(KINDS)("%s", async (kind) => {
    const main = await HookedRepo.make();
    OTHERS[kind]!(main);
    main.repo.git("worktree", "add", "--quiet", "-b", "feature", "../wörk tree");
    const worktree = main.at(main.repo.at("../wörk tree"));
    expect(worktree.repo.root).toMatch(/mit Lücken\/wörk tree$/);
    const before = main.hooks();
    const { data } = await worktree.repo.ask("agent:a", "hooks", "install");
    expect(data["directory"]).toBe(path.join(main.repo.root, ".git/hooks"));

    // Both worktrees, from a directory below, with a name that a shell would take apart.
    const file = "src/ein $(Fall) für 'uns'.txt";
    for (const place of [worktree, main]) {
      await place.repo.prepare("agent:b", "lock", "acquire", file, "--ttl", "600");
      const refused = await place.commit("agent:a", {}, file);
      expect(refused.status, `${refused}`).toBe(1);
      expect(refused.stderr).toContain("cotenant pre-commit (layer 2)");
      expect(refused.stderr).toContain(`${file} is held by agent:b`);
      await place.repo.prepare("agent:b", "lock", "release", file);
      place.journalled();
      const below = place.at(place.repo.at("src"));
      const made = await below.git("agent:a", ["commit", "--message", "below"]);
      expect(made.status, `${made}`).toBe(0);
      expect(place.journalled()).toEqual(["theirs"]);
    }
    const amended = await worktree.git("agent:a", ["commit", "--amend", "--no-edit", "--allow-empty"]);
    expect(amended.status, `${amended}`).toBe(0);
    expect(worktree.journalled()).toEqual(["theirs"]);

    await main.repo.ask("agent:a", "hooks", "uninstall");
    expect(main.hooks()).toEqual(before);
    expect(fs.existsSync(path.join(main.repo.root, ".git/hooks/pre-commit"))).toBe(true);
  });
});
