import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { gitPicture, treePicture } from "../support/tree-picture";

const it = oneIn(8);

function repository(repo: TestRepo = TestRepo.make()): TestRepo {
  repo.write("src/a.ts", "a\n");
  repo.write("src/b.ts", "b\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

/** Keeps it, brings it back elsewhere, and answers both. */
async function thereAndBack(repo: TestRepo, ...flags: string[]) {
  const taken = await repo.ask("agent:a", "snapshot", ...flags);
  const snapshot = taken.data["snapshot"] as Record<string, unknown> & { snapshot_id: string };
  const restored = await repo.ask("agent:a", "restore", snapshot.snapshot_id, "--path", "../back");
  expect(restored.status, `${restored}`).toBe(0);
  const strict = await repo.ask("agent:a", "doctor", "--strict");
  expect(strict.status, `${strict}`).toBe(0);
  return { snapshot, back: repo.at("../back") };
}

describe("a snapshot of", () => {
  it("a repository with submodules and others inside keeps their commits, and says so", async () => {
    const repo = repository();
    const inner = repository(TestRepo.make(path.join(scratch(), "inner")));
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.root, "mod");
    repo.git("commit", "--quiet", "--message", "with a submodule");
    const nested = repository(TestRepo.make(path.join(repo.root, "nested")));
    TestRepo.make(path.join(repo.root, "unborn")).write("work.txt");
    const { snapshot, back } = await thereAndBack(repo);
    expect(snapshot["by_commit"]).toEqual([
      { path: "mod", commit: inner.git("rev-parse", "HEAD").trim() },
      { path: "nested", commit: nested.git("rev-parse", "HEAD").trim() },
    ]);
    expect(snapshot["left_out"]).toEqual([{ path: "unborn", why: "a repository without a commit" }]);
    expect(snapshot["warnings"]).toEqual(["repositories_by_commit", "left_out"]);
    expect(fs.readdirSync(path.join(back.root, "mod"))).toEqual([]);
    expect(back.git("status", "--porcelain")).toBe("");
    const again = (await repo.ask("agent:a", "snapshot")).data["snapshot"] as Record<string, unknown>;
    expect(again["tree"]).toBe(snapshot["tree"]);
    nested.git("commit", "--quiet", "--allow-empty", "--message", "moved on");
    const later = (await repo.ask("agent:a", "snapshot")).data["snapshot"] as Record<string, unknown>;
    expect(later["tree"], "a repository inside that moved on is noticed").not.toBe(snapshot["tree"]);
  });

  it("a sparse checkout comes back as sparse as it was", async () => {
    const repo = repository();
    repo.write("docs/x.md", "x\n");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--message", "docs");
    repo.git("sparse-checkout", "set", "--cone", "src");
    repo.write("src/a.ts", "changed\n");
    const files = treePicture(repo.root);
    expect(files["docs/x.md"]).toBeUndefined();
    const { back } = await thereAndBack(repo);
    expect(treePicture(back.root)).toEqual(files);
    expect(back.git("status", "--porcelain")).toBe(" M src/a.ts\n");
    expect(gitPicture(back.root)["index"]).toBe(gitPicture(repo.root)["index"]);
  });

  it("a merge that is not settled keeps all sides of it", async () => {
    const repo = repository();
    repo.git("checkout", "--quiet", "-b", "other");
    repo.write("src/a.ts", "theirs\n");
    repo.git("commit", "--quiet", "--all", "--message", "theirs");
    repo.git("checkout", "--quiet", "main");
    repo.write("src/a.ts", "ours\n");
    repo.git("commit", "--quiet", "--all", "--message", "ours");
    expect(() => repo.git("merge", "other")).toThrow();
    const { back } = await thereAndBack(repo);
    expect(gitPicture(back.root)["index"]).toBe(gitPicture(repo.root)["index"]);
    expect(treePicture(back.root)).toEqual(treePicture(repo.root));
    expect(back.git("show", ":3:src/a.ts")).toBe("theirs\n");
  });

  it("a repository whose objects have other names (SHA-256)", async () => {
    const repo = repository(TestRepo.make(path.join(scratch(), "repo"), "sha256"));
    for (let n = 0; n < 60; n++) repo.write(`many/${n}.txt`, `${n}\n`);
    const { snapshot, back } = await thereAndBack(repo);
    expect(snapshot["tree"]).toMatch(/^[0-9a-f]{64}$/);
    expect(treePicture(back.root)).toEqual(treePicture(repo.root));
  });

  it("a worktree before its first commit", async () => {
    const repo = TestRepo.make();
    repo.write("a.txt", "not committed\n");
    repo.write("b.txt", "staged\n");
    repo.git("add", "b.txt");
    const { snapshot, back } = await thereAndBack(repo);
    expect(snapshot["head"]).toBe(null);
    expect(treePicture(back.root)).toEqual(treePicture(repo.root));
    expect(back.git("status", "--porcelain")).toBe("A  b.txt\n?? a.txt\n");
    expect(repo.git("branch", "--list")).toBe("");
  });

  it("a directory that became a link, with tracked files behind it", async () => {
    const repo = repository();
    fs.mkdirSync(path.join(repo.root, "real"));
    fs.renameSync(path.join(repo.root, "src"), path.join(repo.root, "real/src"));
    fs.symlinkSync("real/src", path.join(repo.root, "src"));
    const { back } = await thereAndBack(repo);
    expect(treePicture(back.root)).toEqual(treePicture(repo.root));
    expect(back.git("status", "--porcelain")).toBe(repo.git("status", "--porcelain"));
  });

  it("nothing at all", async () => {
    const repo = TestRepo.make();
    const { snapshot } = await thereAndBack(repo);
    expect(snapshot).toMatchObject({ files: 0, bytes: 0 });
  });

  it("pipes and sockets leaves them out, and says so", async () => {
    const repo = repository();
    execFileSync("rm", ["src/b.ts"], { cwd: repo.root });
    execFileSync("mkfifo", ["src/b.ts"], { cwd: repo.root });
    const { snapshot } = await thereAndBack(repo);
    expect(snapshot["left_out"]).toEqual([{ path: "src/b.ts", why: "neither a file nor a link" }]);
  });
});

describe("what is kept", () => {
  it("survives every clearing up that Git knows", async () => {
    const repo = repository();
    for (let n = 0; n < 60; n++) repo.write(`many/${n}.txt`, `${n} ${Math.random()}\n`);
    repo.write("src/a.ts", "staged only\n");
    repo.git("add", "src/a.ts");
    repo.write("src/a.ts", "worktree only\n");
    const files = treePicture(repo.root);
    await repo.ask("agent:a", "snapshot", "--tag", "kept");
    repo.write("src/b.ts", "a small change\n");
    await repo.ask("agent:a", "snapshot", "--tag", "small");
    repo.git("reset", "--quiet", "--hard");
    fs.rmSync(path.join(repo.root, "many"), { recursive: true });
    repo.git("reflog", "expire", "--expire=now", "--all");
    repo.git("gc", "--quiet", "--prune=now", "--aggressive");
    repo.git("prune", "--expire=now");
    expect((await repo.ask("agent:a", "doctor", "--strict")).status).toBe(0);
    await repo.ask("agent:a", "restore", "kept", "--path", "../back");
    expect(treePicture(repo.at("../back").root)).toEqual(files);
    expect(repo.at("../back").git("show", ":src/a.ts")).toBe("staged only\n");
  });

  it("is not trusted once something of it is missing, or is not what it was", async () => {
    const repo = repository();
    repo.write("new.txt", "only here\n");
    const { snapshot_id: id } = (await repo.ask("agent:a", "snapshot")).data["snapshot"] as {
      snapshot_id: string;
    };
    const oid = repo.git("hash-object", "new.txt").trim();
    const file = path.join(repo.root, ".git/objects", oid.slice(0, 2), oid.slice(2));
    const bytes = fs.readFileSync(file);
    fs.rmSync(file);
    const strict = await repo.ask("agent:a", "doctor", "--strict");
    expect(strict.status).toBe(13);
    expect(strict.stdout).toContain(`object ${oid} is missing`);
    expectJsonRefused(
      await repo.ask("agent:a", "restore", id, "--path", "../back"),
      13,
      "E_PARTIAL_SNAPSHOT",
    );
    expect(fs.existsSync(path.join(repo.root, "../back")), "nothing half restored").toBe(false);
    expect((await repo.ask("agent:a", "doctor", "--strict", "--repair")).status, "not to be mended").toBe(13);
    fs.writeFileSync(file, bytes);
    const descriptor = path.join(repo.control, "snapshots", id, "descriptor.json");
    const text = fs.readFileSync(descriptor, "utf8");
    fs.writeFileSync(
      descriptor,
      text.replace(/"digest": "."/, '"digest": "x"').replace('"files": 3', '"files": 4'),
    );
    expect((await repo.ask("agent:a", "doctor")).status).toBe(13);
    fs.writeFileSync(descriptor, text);
    repo.git("update-ref", "-d", `refs/cotenant/snapshots/${id}`);
    expect((await repo.ask("agent:a", "doctor", "--strict")).status).toBe(13);
    expect((await repo.ask("agent:a", "doctor", "--strict", "--repair")).data["repaired"]).toHaveLength(1);
    expect((await repo.ask("agent:a", "restore", id, "--path", "../back")).status).toBe(0);
  });

  it("of a newer cotenant is left alone", async () => {
    const repo = repository();
    const { snapshot_id: id } = (await repo.ask("agent:a", "snapshot")).data["snapshot"] as {
      snapshot_id: string;
    };
    const descriptor = path.join(repo.control, "snapshots", id, "descriptor.json");
    const text = fs.readFileSync(descriptor, "utf8").replace('"schema_version": 1', '"schema_version": 2');
    fs.writeFileSync(descriptor, text);
    expectJsonRefused(await repo.ask("agent:a", "history"), 10, "E_SCHEMA_NEWER");
    expect(fs.readFileSync(descriptor, "utf8")).toBe(text);
  });

  it("is read again only where something happened", async () => {
    const repo = repository();
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    await repo.run("agent:a", "snapshot");
    expect((await repo.run("agent:a", "snapshot")).stdout).toContain(", 0 read");
    const stat = fs.statSync(path.join(repo.root, "src/a.ts"));
    repo.write("src/a.ts", "A\n");
    fs.utimesSync(path.join(repo.root, "src/a.ts"), stat.atime, stat.mtime);
    const sly = await repo.run("agent:a", "snapshot");
    expect(sly.stdout, "the same size and time").toContain(", 1 read");
    fs.rmSync(path.join(repo.control, "cache"), { recursive: true });
    expect((await repo.run("agent:a", "snapshot")).stdout).toContain(", 2 read");
  });
});

describe("snapshot", () => {
  it("with the same request id is taken once", async () => {
    const repo = repository();
    const id = "01M7G9AZ4J6N8T3Q5V7X9C2B4D".replace(/^.{10}/, ulidTime());
    const first = await repo.ask("agent:a", "snapshot", "--request-id", id);
    const second = await repo.ask("agent:a", "snapshot", "--request-id", id);
    expect([first.data.replayed, second.data.replayed]).toEqual([false, true]);
    expect(second.data["snapshot"]).toEqual(first.data["snapshot"]);
    expect((await repo.ask("agent:a", "history")).data["snapshots"]).toHaveLength(1);
    expectJsonRefused(await repo.ask("agent:b", "snapshot", "--request-id", id), 64, "E_USAGE");
  });

  it("by many of one session at once: each gets its own", async () => {
    const repo = repository();
    const racing = Array.from({ length: 6 }, () =>
      repo.start("agent:a", ["snapshot", "--json"], { held: true }),
    );
    for (const one of racing) one.go();
    const ran = await Promise.all(racing.map(({ done }) => done));
    for (const one of ran) expect(one.status, `${one}`).toBe(0);
    expect((await repo.ask("agent:a", "history")).data["snapshots"]).toHaveLength(6);
    expect((await repo.ask("agent:a", "doctor", "--strict")).status).toBe(0);
  });

  it("diff names what differs, and history what came after what", async () => {
    const repo = repository();
    await repo.ask("agent:a", "snapshot", "--tag", "one");
    repo.write("src/a.ts", "changed\n");
    repo.write("new.txt");
    fs.rmSync(path.join(repo.root, "src/b.ts"));
    const now = (await repo.ask("agent:a", "snapshot", "diff", "one")).data["files"] as { path: string }[];
    expect(now).toEqual([
      expect.objectContaining({ path: "new.txt", difference: "added" }),
      expect.objectContaining({ path: "src/a.ts", difference: "changed" }),
      expect.objectContaining({ path: "src/b.ts", difference: "removed" }),
    ]);
    await repo.ask("agent:a", "snapshot", "--tag", "two", "-m", "with a note");
    expect((await repo.ask("agent:a", "snapshot", "diff", "one", "two")).data["files"]).toEqual(now);
    expect((await repo.run("agent:a", "snapshot", "diff", "one", "two", "--patch")).stdout).toContain(
      "+changed",
    );
    await repo.ask("agent:a", "restore", "one", "--path", "../back");
    await repo.at("../back").ask("agent:b", "snapshot", "--tag", "three");
    const lines = (await repo.run("agent:a", "history", "--all")).stdout.split("\n");
    expect(lines[0]).toMatch(/^\* {3}\w+ .* \[three\]$/);
    expect(lines[1]).toMatch(/^\| \* {3}\w+ .* \[two\] with a note$/);
    expect(lines[2]).toMatch(/^\* \/ {3}\w+ .* \[one\]$/);
    expect((await repo.run("agent:a", "history")).stdout).not.toContain("[three]");
  });
});

describe("snapshot prune", () => {
  it("previews, and removes what it has shown and nothing else", async () => {
    const repo = repository();
    const env = { COTENANT_SNAPSHOT_KEEP_AUTOMATIC: "2" };
    const tags = ["one", "two"];
    for (const tag of tags) await repo.ask("agent:a", "snapshot", "--tag", tag);
    const { snapshot_id: plain } = (await repo.ask("agent:a", "snapshot")).data["snapshot"] as {
      snapshot_id: string;
    };
    await repo.ask("agent:a", "snapshot", "--tag", "last");
    const nothing = await repo.askWith(env, "agent:a", "snapshot", "prune");
    expect(nothing.data["snapshots"]).toEqual([]);
    const args = ["snapshot", "prune", "--older-than", "0s", "--manual"];
    const preview = await repo.ask("agent:a", ...args);
    expect(preview.data["snapshots"]).toEqual([expect.objectContaining({ snapshot_id: plain, why: "old" })]);
    expect((await repo.ask("agent:a", "history")).data["snapshots"]).toHaveLength(4);
    const plan = String(preview.data["plan_id"]);
    expectJsonRefused(await repo.ask("agent:a", ...args, "--run", "x"), 9, "E_CONSISTENCY_UNAVAILABLE");
    expect((await repo.ask("agent:a", ...args, "--run", plan)).data["removed"]).toBe(true);
    expect((await repo.ask("agent:a", "history")).data["snapshots"]).toHaveLength(3);
    expect(repo.git("for-each-ref", "refs/cotenant").trim().split("\n")).toHaveLength(3);
    const named = await repo.ask("agent:a", "snapshot", "prune", "one");
    const run = await repo.ask("agent:a", "snapshot", "prune", "one", "--run", String(named.data["plan_id"]));
    expect(run.data["removed"]).toBe(true);
    expectJsonRefused(await repo.ask("agent:a", "restore", "one"), 4, "E_NOT_FOUND");
    expect((await repo.ask("agent:a", "doctor", "--strict")).status).toBe(0);
    expect(repo.log().filter(({ event_type: type }) => type === "snapshot.removed")).toHaveLength(2);
    expectJsonRefused(await repo.ask("agent:a", "snapshot", "prune", "--manual"), 64, "E_USAGE");
    expectJsonRefused(await repo.ask("agent:a", "snapshot", "prune", "--older-than", "soon"), 64, "E_USAGE");
  });

  it("happens by itself to automatic ones, and to no others", async () => {
    const repo = repository();
    const env = { COTENANT_SNAPSHOT_KEEP_AUTOMATIC: "2" };
    await repo.ask("agent:a", "snapshot", "--tag", "one");
    await repo.prepare("agent:a", "worktree", "lock");
    for (let n = 0; n < 4; n++) {
      repo.write("src/a.ts", `spoilt ${n}\n`);
      const { data } = await repo.ask("agent:a", "restore", "one", "--inplace");
      await repo.askWith(env, "agent:a", "restore", "one", "--inplace", "--run", String(data["plan_id"]));
    }
    const { snapshots } = (await repo.ask("agent:a", "history")).data as unknown as {
      snapshots: { automatic: string | null }[];
    };
    expect(snapshots.map(({ automatic }) => automatic)).toEqual(["restore", "restore", null]);
  });
});

/** The first ten letters of a ULID of now. */
function ulidTime(): string {
  let [time, text] = [Date.now(), ""];
  for (let n = 0; n < 10; n++) {
    text = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[time % 32] + text;
    time = Math.floor(time / 32);
  }
  return text;
}
