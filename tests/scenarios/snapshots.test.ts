import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { gitWithDoor, KILL_CALLER, UNTIL_GO } from "../support/slow-git";
import { gitPicture, treePicture } from "../support/tree-picture";

const it = oneIn(5);

interface Snapshot {
  readonly snapshot_id: string;
  readonly warning: boolean;
  readonly warnings: readonly string[];
  readonly consistency_level: string;
}

async function history(repo: TestRepo): Promise<Snapshot[]> {
  return (await repo.prepare("agent:z", "history", "--all"))["snapshots"] as Snapshot[];
}

/** A worktree with a bit of everything. */
function repository(): TestRepo {
  const repo = TestRepo.make();
  repo.git("config", "core.autocrlf", "true");
  repo.write("src/app.ts", "first\n");
  repo.write("src/lib/deep/x.ts", "deep\n");
  repo.write("crlf.txt", "one\r\ntwo\r\n");
  repo.write(".gitignore", "*.log\nbuild/\n");
  repo.write(".gitattributes", "*.txt text eol=lf\n*.ts ident\n");
  repo.write("run.sh", "#!/bin/sh\n");
  fs.chmodSync(path.join(repo.root, "run.sh"), 0o755);
  fs.symlinkSync("src/app.ts", path.join(repo.root, "link"));
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  repo.write("src/app.ts", "staged\n");
  repo.git("add", "src/app.ts");
  repo.write("src/app.ts", "not staged $Id$\r\n");
  repo.write("new/untracked.txt", "new\r\n");
  repo.write("secret.env", "x=1\n");
  fs.chmodSync(path.join(repo.root, "secret.env"), 0o600);
  fs.mkdirSync(path.join(repo.root, "empty/inside"), { recursive: true });
  fs.writeFileSync(Buffer.from(`${repo.root}/n\xffme`, "latin1"), "bytes");
  repo.write("debug.log", "ignored\n");
  repo.write("build/out.js", "ignored too\n");
  fs.rmSync(path.join(repo.root, "src/lib/deep/x.ts"));
  return repo;
}

describe("S57: a stale token at a snapshot", () => {
  it("is refused at the end, when the lock was lost meanwhile, and nothing is visible", async () => {
    const repo = repository();
    await repo.prepare("agent:a", "worktree", "lock");
    const { env, room } = gitWithDoor("ls-files", UNTIL_GO);
    const taking = repo.start("agent:a", ["snapshot", "--json"], { env });
    await until("the snapshot is under way", () => fs.existsSync(path.join(room, "waiting")));
    // As if it had run out meanwhile.
    expect((await repo.askAt(3_600, "agent:b", "worktree", "lock")).status).toBe(0);
    const before = await history(repo);
    fs.writeFileSync(path.join(room, "go"), "");
    expectJsonRefused(await taking.done, 8, "E_FENCING_MISMATCH");
    expect(await history(repo), "only what the thief kept").toEqual(before);
    expect(repo.git("for-each-ref", "refs/cotenant").trim().split("\n")).toHaveLength(before.length);
    expect((await repo.askHere("agent:b", "doctor", "--strict")).status).toBe(0);
  });

  it("is refused at once, where the caller names it", async () => {
    const repo = repository();
    const { lease } = await repo.prepare("agent:a", "worktree", "lock");
    const stale = String(lease.fencing_token + 1);
    expectJsonRefused(
      await repo.ask("agent:a", "snapshot", "--fencing-token", stale),
      8,
      "E_FENCING_MISMATCH",
    );
    expect(await history(repo)).toEqual([]);
    const right = await repo.ask("agent:a", "snapshot", "--fencing-token", String(lease.fencing_token));
    expect((right.data["snapshot"] as Record<string, unknown>)["fencing_token"]).toBe(lease.fencing_token);
  });

  it("and somebody else's lock is a conflict", async () => {
    const repo = repository();
    await repo.prepare("agent:a", "worktree", "lock");
    expectJsonRefused(await repo.ask("agent:b", "snapshot"), 1, "E_LOCK_CONFLICT");
    expect(await history(repo)).toEqual([]);
  });
});

describe("S58: killed before READY", () => {
  it.each([
    ["while it lists", "ls-files"],
    ["before its objects are there", "index-pack"],
    // It is started long before it is asked for anything: not before all objects are there.
    ["before its ref is there", "update-ref", "until ls .git/objects/pack/*.keep; do sleep 0.02; done"],
  ])(
    "%s: invisible; doctor --strict reports it, --repair cleans it",
    async (_when, words, first = "true") => {
      const repo = repository();
      for (let n = 0; n < 40; n++) repo.write(`many/${n}.txt`, `${n}\n`);
      const { env } = gitWithDoor(words, `cd ${JSON.stringify(repo.root)}; ${first}; ${KILL_CALLER}`);
      const killed = await repo.start("agent:a", ["snapshot"], { env }).done;
      expect(killed.status, "killed").toBe(null);
      expect(await history(repo)).toEqual([]);
      expect(repo.git("for-each-ref", "refs/cotenant")).toBe("");

      const reported = await repo.ask("agent:b", "doctor", "--strict");
      expect(reported.status).toBe(13);
      expect(reported.stdout).toContain('"E_PARTIAL_SNAPSHOT"');
      const repaired = await repo.ask("agent:b", "doctor", "--strict", "--repair");
      expect(repaired.data["repaired"]).toHaveLength(1);
      expect((await repo.askHere("agent:b", "doctor", "--strict")).status).toBe(0);
      expect(fs.existsSync(path.join(repo.control, "snapshots"))).toBe(false);
      const kept = fs
        .readdirSync(path.join(repo.root, ".git/objects/pack"))
        .filter((name) => name.endsWith(".keep"));
      expect(kept).toEqual([]);
    },
  );

  it("leaves nothing that stands in anybody's way, not even the lock that it took", async () => {
    const repo = repository();
    const { env } = gitWithDoor("update-ref", KILL_CALLER);
    await repo.start("agent:a", ["snapshot"], { env }).done;
    const next = await repo.ask("agent:b", "snapshot");
    expect(next.status, `${next}`).toBe(0);
    expect(await history(repo)).toHaveLength(1);
    expect((await repo.askHere("agent:a", "worktree", "lock")).status).toBe(0);
  });
});

describe("a snapshot that had been visible", () => {
  const lost = async (repo: TestRepo) => {
    const { snapshot } = (await repo.prepare("agent:a", "snapshot", "--tag", "release")) as unknown as {
      snapshot: { snapshot_id: string };
    };
    fs.unlinkSync(path.join(repo.control, "snapshots", snapshot.snapshot_id, ".READY"));
    return snapshot.snapshot_id;
  };

  it("is set aside when its mark is lost, and never deleted", async () => {
    const repo = repository();
    const id = await lost(repo);
    expect((await repo.ask("agent:b", "gc")).status).toBe(0);
    const reported = await repo.ask("agent:b", "doctor", "--strict");
    expect(reported.status).toBe(13);
    expect(reported.stdout).toContain(`snapshot ${id} was visible, and its .READY is gone`);
    const repaired = await repo.ask("agent:b", "doctor", "--strict", "--repair");
    expect(repaired.data["repaired"]).toEqual([expect.stringContaining(`set aside snapshot ${id}`)]);
    for (const again of [["gc"], ["doctor", "--strict", "--repair"]])
      expect((await repo.ask("agent:b", ...again)).status).toBe(0);
    const aside = path.join(repo.control, "snapshots", `${id}.aside`);
    expect(JSON.parse(fs.readFileSync(path.join(aside, "descriptor.json"), "utf8")).tags).toEqual([
      "release",
    ]);
    expect(repo.git("show", `refs/cotenant/snapshots/${id}:src/app.ts`)).not.toBe("");
    expect(await history(repo)).toEqual([]);
    expect((await repo.ask("agent:b", "doctor")).stdout).toContain(`snapshot ${id} was set aside`);
  });

  it.each(["lost", "set aside"])("stands in the way of deinit also when it is %s", async (how) => {
    const repo = repository();
    await lost(repo);
    if (how === "set aside") await repo.ask("agent:b", "doctor", "--strict", "--repair");
    expectJsonRefused(await repo.ask("agent:a", "deinit"), 9, "E_POLICY");
    expect((await repo.ask("agent:a", "deinit", "--snapshots")).status).toBe(0);
    expect(repo.git("for-each-ref", "refs/cotenant")).toBe("");
  });

  it("goes for good when somebody took it away and died before it was done", async () => {
    const repo = repository();
    const { snapshot } = (await repo.prepare("agent:a", "snapshot", "--tag", "old")) as unknown as {
      snapshot: { snapshot_id: string };
    };
    const { snapshot_id: id } = snapshot;
    const { data } = await repo.ask("agent:a", "snapshot", "prune", id);
    const { env } = gitWithDoor("update-ref", KILL_CALLER);
    const args = ["snapshot", "prune", id, "--run", String(data["plan_id"])];
    expect((await repo.start("agent:a", args, { env }).done).status, "killed").toBe(null);
    expect((await repo.ask("agent:b", "gc")).status).toBe(0);
    expect(fs.existsSync(path.join(repo.control, "snapshots", id))).toBe(false);
    expect(repo.git("for-each-ref", "refs/cotenant")).toBe("");
  });
});

describe("S59: a file that changes during a snapshot", () => {
  it.each([
    ["is changed", "echo more >> src/app.ts"],
    ["is replaced", "echo other > other && mv other src/app.ts"],
    ["is made", "echo new > src/brand-new.ts"],
    ["is removed", "rm src/app.ts"],
    ["gets other permissions", "chmod 600 run.sh"],
  ])("quiesced, one that %s: refused, and nothing is visible", async (_what, change) => {
    const repo = TestRepo.make();
    for (const file of ["src/app.ts", "run.sh"]) repo.write(file);
    // After the first look, and before the last.
    const { env } = gitWithDoor("ls-files -z -s", `cd ${JSON.stringify(repo.root)} && ${change}`);
    const ran = await repo.start("agent:a", ["snapshot", "--json"], { env }).done;
    expectJsonRefused(ran, 9, "E_CONSISTENCY_UNAVAILABLE");
    expect((await repo.askHere("agent:a", "snapshot")).status, "the next one holds still").toBe(0);
    expect(await history(repo), "only that one").toHaveLength(1);
  });

  it("best effort: taken, with a warning flag in history and info", async () => {
    const repo = repository();
    const { env } = gitWithDoor(
      "ls-files -z -s",
      `cd ${JSON.stringify(repo.root)} && echo more >> src/app.ts`,
    );
    const args = ["snapshot", "--consistency", "best_effort", "--json"];
    const { status, data } = await repo.start("agent:a", args, { env }).done;
    expect(status).toBe(0);
    const { snapshot_id: id } = data["snapshot"] as Snapshot;
    expect(await history(repo)).toEqual([
      expect.objectContaining({ snapshot_id: id, consistency_level: "best_effort", warning: true }),
    ]);
    const { snapshots } = (await repo.prepare("agent:a", "info")) as unknown as {
      snapshots: { warning: boolean; latest: Snapshot };
    };
    expect(snapshots).toMatchObject({
      warning: true,
      latest: { snapshot_id: id, warnings: ["best_effort"] },
    });
    expect((await repo.askHere("agent:a", "info", id)).data["snapshot"]).toMatchObject({ warning: true });
    expect((await repo.runHere("agent:a", "history")).stdout).toMatch(/^\* ! .*\n.*best effort/);
  });

  it("in a shared worktree there is nothing but best effort", async () => {
    const repo = repository();
    await repo.prepare("agent:a", "worktree", "access", "shared");
    const quiesced = await repo.ask("agent:a", "snapshot", "--consistency", "quiesced");
    expectJsonRefused(quiesced, 9, "E_CONSISTENCY_UNAVAILABLE");
    const taken = (await repo.prepare("agent:a", "snapshot"))["snapshot"];
    expect(taken).toMatchObject({ consistency_level: "best_effort", fencing_token: null, warning: true });
  });
});

describe("S60: restore", () => {
  it("makes a new worktree that is equal file by file, and touches nothing else", async () => {
    const repo = repository();
    const [files, git] = [treePicture(repo.root), gitPicture(repo.root)];
    await repo.prepare("agent:a", "snapshot", "--tag", "kept");
    expect(gitPicture(repo.root), "index, stash, branches and HEAD").toEqual(git);
    expect(treePicture(repo.root)).toEqual(files);
    const { worktree } = (await repo.ask("agent:b", "restore", "kept", "--path", "../back")).data;
    const ignored = /^(?:debug\.log|build(?:\/|$))/;
    expect(treePicture(worktree.root)).toEqual(
      Object.fromEntries(Object.entries(files).filter(([name]) => !ignored.test(name))),
    );
    const restored = gitPicture(worktree.root);
    expect(restored["index"], "what was staged is staged").toBe(git["index"]);
    expect(repo.at("../back").git("status", "--porcelain")).toBe(repo.git("status", "--porcelain"));
    expect(treePicture(repo.root)).toEqual(files);
  });

  it("brings ignored files back, too, where they were asked for", async () => {
    const repo = repository();
    const files = treePicture(repo.root);
    await repo.prepare("agent:a", "snapshot", "--tag", "all", "--ignored");
    const { worktree } = (await repo.ask("agent:b", "restore", "all", "--path", "../back")).data;
    expect(treePicture(worktree.root)).toEqual(files);
  });

  it("in place previews, needs the lock, refuses what has changed since, and keeps what it replaces", async () => {
    const repo = repository();
    const files = treePicture(repo.root);
    const git = gitPicture(repo.root);
    await repo.prepare("agent:a", "snapshot", "--tag", "kept");
    repo.write("src/app.ts", "spoilt\n");
    repo.write("extra.txt", "work that exists nowhere else\n");
    fs.rmSync(path.join(repo.root, "new"), { recursive: true });
    fs.chmodSync(path.join(repo.root, "run.sh"), 0o600);
    const spoilt = treePicture(repo.root);
    const preview = await repo.ask("agent:a", "restore", "kept", "--inplace");
    expect(preview.data["changes"]).toEqual({
      write: ["new/untracked.txt", "src/app.ts"],
      mode: ["run.sh"],
      remove: ["extra.txt"],
      make_directories: ["new"],
      remove_directories: [],
      untouched: [],
    });
    expect(treePicture(repo.root), "a preview changes nothing").toEqual(spoilt);
    const plan = String(preview.data["plan_id"]);
    const run = ["restore", "kept", "--inplace", "--run", plan];
    expectJsonRefused(await repo.ask("agent:a", ...run), 6, "E_LEASE_REQUIRED");
    await repo.prepare("agent:b", "worktree", "lock");
    expectJsonRefused(await repo.askHere("agent:a", ...run), 6, "E_LOCK_NOT_HELD");
    await repo.prepare("agent:b", "worktree", "unlock");
    const { lease } = await repo.prepare("agent:a", "worktree", "lock");
    const stale = ["--fencing-token", String(lease.fencing_token - 1)];
    expectJsonRefused(await repo.askHere("agent:a", ...run, ...stale), 8, "E_FENCING_MISMATCH");
    repo.write("extra.txt", "changed since\n");
    expectJsonRefused(await repo.ask("agent:a", ...run), 9, "E_CONSISTENCY_UNAVAILABLE");
    repo.write("extra.txt", "work that exists nowhere else\n");
    // What somebody else holds is not written over, nor is anything beside it.
    for (const held of [["src/app.ts"], ["extra.txt"], ["--dir", "new"], ["run.sh"]]) {
      await repo.prepare("agent:b", "lock", "acquire", ...held);
      const refused = await repo.askHere("agent:a", ...run);
      expectJsonRefused(refused, 1, "E_LOCK_CONFLICT");
      expect(refused.error.message).toContain("is held by agent:b");
      await repo.prepare("agent:b", "lock", "release", ...held);
    }
    expect(treePicture(repo.root)).toEqual(spoilt);
    await repo.prepare("agent:b", "lock", "acquire", "elsewhere.txt");
    await repo.prepare("agent:a", "lock", "acquire", "src/app.ts");

    const done = await repo.ask("agent:a", ...run);
    expect(treePicture(repo.root)).toEqual(files);
    expect(gitPicture(repo.root)).toEqual(git);
    const before = String(done.data["before"]);
    await repo.prepare("agent:b", "restore", before, "--path", "../before");
    expect(treePicture(repo.at("../before").root)["extra.txt"]).toBe(spoilt["extra.txt"]);
  });

  it("in place is off in a shared worktree", async () => {
    const repo = repository();
    await repo.prepare("agent:a", "snapshot", "--tag", "kept");
    await repo.prepare("agent:a", "worktree", "access", "shared");
    expectJsonRefused(await repo.ask("agent:a", "restore", "kept", "--inplace"), 9, "E_POLICY");
    expectJsonRefused(
      await repo.askHere("agent:a", "restore", "kept", "--inplace", "--run", "0"),
      9,
      "E_POLICY",
    );
    expect(
      (await repo.ask("agent:a", "restore", "kept", "--path", "../back")).status,
      "a new one is not",
    ).toBe(0);
  });

  it("of what is not there: exit 4; to where something is: exit 9", async () => {
    const repo = repository();
    expectJsonRefused(await repo.ask("agent:a", "restore", "nothing"), 4, "E_NOT_FOUND");
    await repo.prepare("agent:a", "snapshot", "--tag", "kept");
    expectJsonRefused(await repo.ask("agent:a", "restore", "kept", "--path", ".."), 9, "E_POLICY");
    expectJsonRefused(await repo.askHere("agent:a", "restore", "kept", "--path", "src/here"), 9, "E_POLICY");
    expectJsonRefused(await repo.askHere("agent:a", "restore", "kept", "--run", "x"), 64, "E_USAGE");
    expectJsonRefused(
      await repo.askHere("agent:a", "restore", "kept", "--inplace", "--path", "x"),
      64,
      "E_USAGE",
    );
  });
});
