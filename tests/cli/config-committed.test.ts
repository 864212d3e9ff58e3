import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { TestRepo } from "../support/repo";

const FILE = ".cotenant/config.toml";
const COMMITTED = `[publish]
forbidden_paths = ["secret/**"]

[sync]
ledger_branch = "cotenant-sync"
`;

it("what is committed counts where the worktree does not have it: sparse, deleted, not checked out", async () => {
  const repo = TestRepo.make();
  await repo.prepare("human:h", "init");
  repo.write(FILE, COMMITTED);
  repo.write("lib/a.txt", "a\n");
  const id = await repo.issue("One");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  const room = path.dirname(repo.root);
  const clones = {
    sparse: ["--sparse"],
    bare: ["--no-checkout"],
    deleted: [],
  };
  for (const [name, options] of Object.entries(clones)) {
    const clone = repo.at(path.join(room, name));
    repo.git("clone", "--quiet", ...options, repo.root, clone.root);
    if (name === "deleted") fs.rmSync(path.join(clone.root, FILE));
    expect(fs.existsSync(path.join(clone.root, FILE)), name).toBe(false);
    // A ledger that is named and not trusted yet keeps claims from being taken here alone.
    expect((await clone.ask("agent:eve", "claim", "acquire", id)).error, name).toMatchObject({
      code: "E_LEDGER_NOT_CONFIGURED",
    });
    const { setting } = (await clone.ask("agent:eve", "config", "get", "publish.forbidden_paths")).data;
    expect(setting, name).toMatchObject({ value: ["secret/**"] });
    expect(JSON.stringify((await clone.ask("agent:eve", "doctor")).data)).toContain(`HEAD:${FILE}`);
  }
  const sparse = repo.at(path.join(room, "sparse"));
  // What is set there is set in all that is committed, not instead of it.
  await sparse.prepare("human:h", "config", "set", "guard.retry_secs", "9");
  expect(fs.readFileSync(path.join(sparse.root, FILE), "utf8")).toContain(COMMITTED.trimEnd());
});
