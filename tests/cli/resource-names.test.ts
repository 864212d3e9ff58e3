import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { openRepository } from "../../src/index";
import { A, publishHere, put, withFiles } from "./publish-stage";

const B = "agent:b";

describe("a resource that has the name of something else", () => {
  it.each([
    ["a hot path", "pnpm-lock.yaml", "file:pnpm-lock.yaml", "pnpm-lock.yaml"],
    ["a hot directory", ".github/workflows", "dir:.github/workflows", ".github/workflows/ci.yml"],
    ["a file that is there", "src/a.ts", "file:src/a.ts", "src/a.ts"],
    ["a directory that is there", "src", "dir:src", "src/new.ts"],
  ])("takes the key of %s, says so, and covers its holder's publish", async (_, name, key, published) => {
    const repo = withFiles();
    const { json } = await repo.askHere(A, "lock", "acquire", "--resource", name);
    expect(json.data!.leases.map((lease) => lease.key)).toEqual([`resource:${name}`, key]);
    expect(json.warnings).toEqual([`"${name}" is a path: ${key} is leased with the resource`]);
    expect((await repo.askHere(B, "lock", "acquire", published)).error.code).toBe("E_LOCK_CONFLICT");
    // Also by one who does not see the file.
    const elsewhere = repo.addWorktree("elsewhere");
    fs.rmSync(path.join(elsewhere.root, "src"), { recursive: true });
    const other = await elsewhere.askHere(B, "lock", "acquire", "--resource", name);
    expect(other.error.code).toBe("E_LOCK_CONFLICT");
    expect((await publishHere(repo, ...put(published, "new\n"))).status).toBe(0);
    // By the same name, though what it names has gone meanwhile.
    fs.rmSync(path.join(repo.root, "src"), { recursive: true });
    await repo.prepare(A, "lock", "renew", "--resource", name);
    await repo.prepare(A, "lock", "release", "--resource", name);
    expect((await repo.prepare(A, "status")).leases).toEqual([]);
  });

  it.each(["ref:refs/heads/work/x", "refs/heads/work/x"])("is a ref: %s", async (name) => {
    const repo = withFiles();
    const { json } = await repo.askHere(A, "lock", "acquire", name, "src/a.ts", "--resource");
    expect(json.data!.leases.map((lease) => lease.key)).toContain("ref:refs/heads/work/x");
    await repo.prepare(B, "lock", "acquire", "src/b.ts");
    const args = ["publish", "--branch", "work/x", "--message", "m", ...put("src/b.ts", "x\n")];
    expect((await repo.askHere(A, "publish", ...args.slice(1, 5), ...put("src/a.ts", "x\n"))).status).toBe(0);
    const refused = await repo.askHere(B, "lock", "acquire", "--ref", "refs/heads/work/x");
    expect(refused.error.code).toBe("E_LOCK_CONFLICT");
    await repo.prepare(A, "lock", "release", "--resource", name);
    expect((await repo.askHere(B, ...args)).status).toBe(0);
  });

  it("is what the configuration says, where it has that name", async () => {
    const repo = withFiles();
    repo.write(
      ".cotenant/config.toml",
      '[publish.hot_resources]\n"src/a.ts" = ["src/a.ts", "src/b.ts"]\n".github/workflows" = [".github/"]\n',
    );
    await repo.prepare("human:h", "trust");
    const keys = async (name: string) =>
      (await repo.prepare(A, "lock", "acquire", "--resource", name)).leases.map(({ key }) => key);
    expect(await keys("src/a.ts")).toEqual(["resource:src/a.ts", "file:src/a.ts", "file:src/b.ts"]);
    expect(await keys(".github/workflows")).toEqual(["resource:.github/workflows", "dir:.github"]);
    await repo.prepare(A, "lock", "release", "--resource", "src/a.ts", "--resource", ".github/workflows");
    expect((await repo.prepare(A, "status")).leases).toEqual([]);
  });

  it("is the same to the library; and a name that is nothing else stays one", async () => {
    const repo = withFiles();
    const library = await openRepository({ cwd: repo.root, agentId: A });
    try {
      const { leases } = await library.acquire([{ resource: "src/a.ts" }, { resource: "staging" }]);
      expect(leases.map(({ key }) => key)).toEqual([
        "resource:src/a.ts",
        "file:src/a.ts",
        "resource:staging",
      ]);
      await library.release([{ resource: "src/a.ts" }, { resource: "staging" }]);
      expect(await library.mine()).toEqual([]);
    } finally {
      await library.close();
    }
    const odd = ["../x", ".git/config", "a b", "C:\\x"];
    const names = odd.flatMap((name) => ["--resource", name]);
    const { leases } = await repo.prepare(A, "lock", "acquire", ...names);
    expect(leases.map(({ key }) => key)).toEqual(odd.map((name) => `resource:${name}`));
  });
});
