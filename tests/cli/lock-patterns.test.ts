import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(async () => {
  repo = TestRepo.make();
  for (const file of ["src/api/a.ts", "src/api/v1/b.ts", "src/api/readme.md", "src/web/c.ts", "top.md"])
    repo.write(file);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  await repo.prepare("agent:a", "init");
});

const lock = (agent: string, ...what: string[]) => repo.askHere(agent, "lock", "acquire", ...what);

describe("a pattern as the name of a file", () => {
  it.each([
    ["src/**/*.ts"],
    ["src/?.ts"],
    ["*"],
    ["--dir", "src/*"],
    ["--dir", "src/*/"],
    ["src/*/"],
    ["src/api/[ab].ts"],
    ["src/api/[!x].ts"],
    ["src/api/a.{ts,js}"],
    ["top.{md,txt}"],
    ["./src/{api,lib}/a.ts"],
  ])("is refused, and nothing is leased: %j %j", async (...words) => {
    const refused = await lock("agent:a", ...words.filter((word) => word !== undefined));
    expectJsonRefused(refused, 64, "E_USAGE");
    expect(refused.error.message).toContain("is a pattern, and there is no file of that name");
    expect((await repo.askHere("agent:a", "lock", "status")).data["leases"]).toEqual([]);
  });

  it("comes with a hint that runs as it is printed", async () => {
    const { error } = await lock("agent:a", "src/api/*.ts");
    const command = /: cotenant (lock acquire --glob '(.*?)');/.exec(error.hint)!;
    expect((await lock("agent:a", "--glob", command[2]!)).lease.key).toBe("dir:src/api");
    // Git's patterns have no braces.
    const braces = await lock("agent:b", "top.{md,txt}");
    expect(braces.error.hint).toBe("name the files: 'top.md', or --dir <path>");
    const brackets = await lock("agent:b", "src/web/[a-d].ts");
    expect(brackets.error.hint).toMatch(
      /--glob 'src\/web\/\[a-d\]\.ts'; else name the files: 'src\/web\/c\.ts'/,
    );
    expectJsonRefused(
      await repo.askHere("human:h", "lock", "steal", "src/*.ts", "--reason", "r"),
      64,
      "E_USAGE",
    );
  });

  it("is no pattern where a file has that very name, or it only has brackets that match no file", async () => {
    repo.write("src/what?.md");
    repo.write("src/*.ts");
    repo.write("src/web/[c].ts");
    const names = ["src/what?.md", "src/*.ts", "pages/[id].tsx", "pages/[...slug].tsx", "src/web/[c].ts"];
    for (const name of [...names, "src/{a,b}.ts", "src/[api]/a.ts", "src/[z-a].ts", "src/[", "src/{"])
      expect((await lock("agent:a", name)).lease.key).toBe(`file:${name}`);
  });
});

describe("lock acquire --glob", () => {
  it("leases the smallest directory that covers what matches, and says what that is", async () => {
    repo.write("src/api/new.ts");
    repo.write(".gitignore", "ignored.ts\n");
    repo.write("src/web/ignored.ts");
    const { data } = await lock("agent:a", "--glob", "src/api/**/*.ts");
    expect(data.leases.map(({ key }) => key)).toEqual(["dir:src/api"]);
    expect(data["covers"]).toEqual([
      {
        pattern: "src/api/**/*.ts",
        directory: "src/api",
        files: ["src/api/a.ts", "src/api/new.ts", "src/api/v1/b.ts"],
      },
    ]);
    // Files that match, that are still to be made, and that only lie there.
    for (const file of ["src/api/a.ts", "src/api/v2/later.ts", "src/api/readme.md"])
      expectJsonRefused(await lock("agent:b", file), 1, "E_LOCK_CONFLICT");
    expect((await lock("agent:b", "src/web/c.ts")).status).toBe(0);
    const said = await repo.runHere("agent:a", "lock", "acquire", "--glob", "src/api/v1/*.ts", "src/web/*");
    expect(said.status).toBe(1);
    await repo.prepare("agent:b", "lock", "release", "src/web/c.ts");
    const text = (await repo.runHere("agent:a", "lock", "acquire", "--glob", "src/api/v1/*.ts", "src/web/*"))
      .stdout;
    expect(text).toContain(
      "src/api/v1/*.ts matches 1 file now; all of src/api/v1/ is leased:\n    src/api/v1/b.ts",
    );
    expect(text).toContain("src/web/* matches 1 file now; all of src/web/ is leased:\n    src/web/c.ts");
  });

  it("is seen from where the caller stands", async () => {
    const below = repo.at("src/api");
    const { data } = await below.askHere("agent:a", "lock", "acquire", "--glob", "v1/*");
    expect(data.lease.key).toBe("dir:src/api/v1");
    const up = await below.askHere("agent:a", "lock", "acquire", "--glob", "../web/*.ts");
    expect(up.lease.key).toBe("dir:src/web");
  });

  it("refuses the whole repository, what matches nothing, and what Git does not take", async () => {
    const all = await lock("agent:a", "--glob", "**/*.md");
    expectJsonRefused(all, 64, "E_USAGE");
    expect(all.error.hint).toContain("--dir .");
    expectJsonRefused(await lock("agent:a", "--glob", "src/**/*.rs"), 4, "E_NOT_FOUND");
    expectJsonRefused(await lock("agent:a", "--glob", "../*"), 9, "E_PATH_ESCAPE");
    expectJsonRefused(await lock("agent:a", "--glob"), 64, "E_USAGE");
    expect((await repo.askHere("agent:a", "lock", "status")).data["leases"]).toEqual([]);
  });
});

describe("releasing what has uncommitted changes", () => {
  const warned = async (...words: string[]) => {
    const document = JSON.parse((await repo.askHere("agent:a", "lock", "release", ...words)).stdout) as {
      warnings?: string[];
    };
    return (document.warnings ?? []).join("\n");
  };

  it("is noted: changed, new, deleted, or below a directory", async () => {
    for (const [file, change] of [
      ["src/api/a.ts", () => repo.write("src/api/a.ts", "changed\n")],
      ["src/new.ts", () => repo.write("src/new.ts")],
      ["src/web/c.ts", () => fs.rmSync(path.join(repo.root, "src/web/c.ts"))],
    ] as const) {
      await lock("agent:a", file);
      change();
      expect(await warned(file)).toContain(`${file} in what you released has uncommitted changes`);
    }
    await lock("agent:a", "--dir", "src");
    expect(await warned("--dir", "src")).toContain(
      "src/api/a.ts and 2 others in what you released have uncommitted",
    );
  });

  it("and not where all is committed, or it is no file", async () => {
    repo.write("top.md", "changed elsewhere\n");
    await lock("agent:a", "src/api/a.ts", "--resource", "database");
    expect(await warned("src/api/a.ts", "--resource", "database")).toBe("");
  });
});

describe("what other commands print of a lease", () => {
  it("names the same lease in lock acquire, steal, release and status, and never a file of that name", async () => {
    const { lease } = await lock("agent:a", "src/api/a.ts", "--reason", "one");
    const again = await lock("agent:a", lease.lease_id, "--reason", "two");
    expect(again.lease.lease_id).toBe(lease.lease_id);
    expect(again.json.warnings).toEqual([
      'file:src/api/a.ts was yours already and keeps its reason "one": release it first to take it with another',
    ]);
    const stolen = await repo.askHere("human:h", "lock", "steal", lease.lease_id, "--reason", "it hangs");
    expect(stolen.lease).toMatchObject({ key: "file:src/api/a.ts", agent_id: "human:h" });
    expect((await lock("agent:a", "file:src/web/c.ts")).lease.key).toBe("file:src/web/c.ts");
    expectJsonRefused(await lock("agent:b", lease.lease_id), 4, "E_NOT_FOUND");
    const id = await repo.issue();
    await repo.prepare("agent:a", "claim", "acquire", id);
    expectJsonRefused(await lock("agent:b", `issue:${id}`), 64, "E_USAGE");
    const short = (await repo.askHere("agent:a", "issue", "show", id)).data["issue"] as { short_id: string };
    expect((await repo.askHere("agent:a", "lock", "release", `issue:${short.short_id}`)).status).toBe(0);
    expectJsonRefused(await repo.askHere("agent:a", "lock", "status", "--path", "src/*"), 64, "E_USAGE");
    expectJsonRefused(await repo.askHere("agent:a", "lock", "release", "--glob", "src/*"), 64, "E_USAGE");
    const { leases } = await repo.prepare("agent:a", "status");
    expect(leases.map(({ key }) => key).sort()).toEqual(["file:src/api/a.ts", "file:src/web/c.ts"]);
  });

  it("is a path after --resource, too; and a name like a missing file's protects no file, which is said", async () => {
    const spelt = await lock("agent:a", "--resource", "file:src/api/a.ts");
    expect(spelt.data.leases.map(({ key }) => key)).toEqual(["file:src/api/a.ts"]);
    expect(spelt.json.warnings?.[0]).toContain("leased as file:src/api/a.ts");
    const missing = await lock("agent:a", "--resource", "src/api/later.ts");
    expect(missing.json.warnings?.[0]).toContain("cotenant lock acquire src/api/later.ts");
    expect((await lock("agent:a", "--resource", "team/staging")).json.warnings).toBeUndefined();
  });

  it("of patterns that lead out, or are empty, says so in our own words", async () => {
    const out = await lock("agent:a", "--glob", "../*");
    expectJsonRefused(out, 9, "E_PATH_ESCAPE");
    expect(out.error.message).toBe('"../*" leads out of the worktree');
    const empty = await lock("agent:a", "--glob", "");
    expectJsonRefused(empty, 64, "E_USAGE");
    expect(empty.error.message).toBe("an empty pattern names nothing");
  });
});
