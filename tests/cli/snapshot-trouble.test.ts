import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { gitWithDoor, UNTIL_GO } from "../support/slow-git";
import { treePicture } from "../support/tree-picture";

const it = oneIn(8);

function repository(): TestRepo {
  const repo = TestRepo.make();
  repo.write("src/a.ts", "a\n");
  repo.write("src/b.ts", "b\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

interface Snapshot {
  readonly snapshot_id: string;
}

async function taken(repo: TestRepo, ...flags: string[]): Promise<string> {
  return ((await repo.askHere("agent:a", "snapshot", ...flags)).data["snapshot"] as Snapshot).snapshot_id;
}

async function pruned(repo: TestRepo, id: string): Promise<void> {
  const { data } = await repo.askHere("agent:b", "snapshot", "prune", id);
  const run = await repo.ask("agent:b", "snapshot", "prune", id, "--run", String(data["plan_id"]));
  expect(run.data["removed"]).toBe(true);
}

function objectFile(repo: TestRepo, oid: string): string {
  return path.join(repo.root, ".git/objects", oid.slice(0, 2), oid.slice(2));
}

describe("a snapshot", () => {
  it("does not build on one that is removed meanwhile", async () => {
    const repo = repository();
    repo.write("new.txt", "nobody else has it\n");
    const first = await taken(repo);
    const { env, room } = gitWithDoor("ls-files", UNTIL_GO);
    const taking = repo.start("agent:a", ["snapshot", "--json"], { env });
    await until("it is under way", () => fs.existsSync(path.join(room, "waiting")));
    await pruned(repo, first);
    repo.git("gc", "--quiet", "--prune=now");
    fs.writeFileSync(path.join(room, "go"), "");
    const second = ((await taking.done).data["snapshot"] as Snapshot).snapshot_id;
    expect((await repo.ask("agent:a", "doctor", "--strict")).status, "all of it is there").toBe(0);
    await repo.askHere("agent:a", "restore", second, "--path", "../back");
    expect(treePicture(repo.at("../back").root)).toEqual(treePicture(repo.root));
  });

  it("of a large file takes no more memory than one of a small file, and neither does its restore", async () => {
    const repo = repository();
    const large = 96 << 20;
    // Git is told the name, and must understand it.
    const name = 'odd "large"\n name.bin';
    fs.writeFileSync(path.join(repo.root, name), Buffer.alloc(large, "0123456789abcde\n"));
    const note = path.join(repo.control, "../rss.cjs");
    const file = path.join(repo.control, "../rss.txt");
    fs.writeFileSync(
      note,
      // Not maxRSS, which begins with what the process that started it had.
      `process.on("exit", () => {
        const fs = require("fs");
        const peak = /VmHWM:\\s+(\\d+)/.exec(fs.readFileSync("/proc/self/status", "utf8"))[1];
        fs.writeFileSync(${JSON.stringify(file)}, peak);
      });`,
    );
    const env = { NODE_OPTIONS: `--require ${note}` };
    for (const args of [["snapshot"], ["restore", "latest", "--path", "../back"], ["doctor", "--strict"]]) {
      expect((await repo.askWith(env, "agent:a", ...args)).status).toBe(0);
      // Node alone has 45 MB.
      expect(Number(fs.readFileSync(file, "utf8")) * 1024, args[0]).toBeLessThan(45e6 + large);
    }
    expect(treePicture(repo.at("../back").root)).toEqual(treePicture(repo.root));
  });

  it("is damaged when something that was only staged is gone, or when content is not what its name says", async () => {
    const repo = repository();
    repo.write("src/a.ts", "only staged\n");
    repo.git("add", "src/a.ts");
    const staged = objectFile(repo, repo.git("rev-parse", ":src/a.ts").trim());
    repo.write("src/a.ts", "on the disk\n");
    await taken(repo);
    const bytes = fs.readFileSync(staged);
    fs.rmSync(staged);
    const missing = await repo.ask("agent:a", "doctor", "--strict");
    expect(missing.status).toBe(13);
    expect(missing.stdout).toContain("is missing");
    fs.writeFileSync(staged, bytes);
    expect((await repo.askHere("agent:a", "doctor", "--strict")).status).toBe(0);
    const other = objectFile(repo, repo.git("hash-object", "src/a.ts").trim());
    fs.rmSync(other);
    fs.writeFileSync(other, bytes);
    expect((await repo.askHere("agent:a", "doctor", "--strict")).status).toBe(13);
  });

  it("tells of pipes that it leaves out, unless Git ignores them", async () => {
    const repo = repository();
    repo.write(".gitignore", "*.sock\n");
    for (const name of ["src/pipe", "src/ignored.sock"]) repo.git("-c", `alias.pipe=!mkfifo ${name}`, "pipe");
    const { data } = await repo.ask("agent:a", "snapshot");
    expect(data["snapshot"]).toMatchObject({
      left_out: [{ path: "src/pipe", why: "neither a file nor a link" }],
      warnings: ["left_out"],
    });
  });
});

describe("a restore in place", () => {
  it("puts files and directories where something is that Git ignores, and keeps that first", async () => {
    const repo = repository();
    repo.write("made/x.txt", "x\n");
    repo.write("file", "file\n");
    await taken(repo, "--tag", "kept");
    const files = treePicture(repo.root);
    fs.rmSync(path.join(repo.root, "made"), { recursive: true });
    fs.rmSync(path.join(repo.root, "file"));
    repo.write(".git/info/exclude", "made\nfile\nsrc/\n");
    repo.write("made", "in the way\n");
    fs.mkdirSync(path.join(repo.root, "file/deep/er"), { recursive: true });
    await repo.prepare("agent:a", "worktree", "lock");
    const { data } = await repo.askHere("agent:a", "restore", "kept", "--inplace");
    expect(data["changes"]).toMatchObject({
      remove: ["made"],
      remove_directories: ["file/deep/er", "file/deep", "file"],
    });
    const run = ["restore", "kept", "--inplace", "--run", String(data["plan_id"])];
    const { before } = (await repo.ask("agent:a", ...run)).data as { before?: string };
    expect(treePicture(repo.root)).toEqual(files);
    await repo.askHere("agent:a", "restore", String(before), "--path", "../before");
    expect(fs.readFileSync(path.join(repo.root, "../before/made"), "utf8")).toBe("in the way\n");

    fs.rmSync(path.join(repo.root, "file"));
    repo.write("file/stays", "ignored\n");
    const blocked = await repo.askHere("agent:a", "restore", "kept", "--inplace");
    expectJsonRefused(blocked, 9, "E_POLICY");
    expect(blocked.error.data["path"]).toBe("file/stays");
  });

  it("stops before it touches anything, when the lock is lost meanwhile", async () => {
    const repo = repository();
    await taken(repo, "--tag", "kept");
    repo.write("src/a.ts", "work of now\n");
    const files = treePicture(repo.root);
    await repo.prepare("agent:a", "worktree", "lock");
    const { data } = await repo.ask("agent:a", "restore", "kept", "--inplace");
    const { env, room } = gitWithDoor("cat-file --batch", UNTIL_GO);
    const args = ["restore", "kept", "--inplace", "--run", String(data["plan_id"]), "--json"];
    const restoring = repo.start("agent:a", args, { env });
    await until("new contents are laid out", () => fs.existsSync(path.join(room, "waiting")));
    // As if it had run out meanwhile.
    expect((await repo.askAt(3_600, "agent:b", "worktree", "lock")).status).toBe(0);
    fs.writeFileSync(path.join(room, "go"), "");
    const ran = await restoring.done;
    expectJsonRefused(ran, 8, "E_FENCING_MISMATCH");
    expect(ran.error.message).toContain("may be restored already");
    expect(treePicture(repo.root)).toEqual(files);
    const left = fs.readdirSync(path.join(repo.root, ".cotenant"));
    expect(
      left.filter((name) => name.startsWith("restore")),
      "of what was laid out",
    ).toEqual([]);
    expectJsonRefused(await repo.askHere("agent:a", "worktree", "renew"), 8, "E_FENCING_MISMATCH");
  });
});

describe("bad words of", () => {
  const usage = (...words: string[]) => [words, 64, "E_USAGE"] as const;
  const missing = (...words: string[]) => [words, 4, "E_NOT_FOUND"] as const;
  const policy = (...words: string[]) => [words, 9, "E_POLICY"] as const;

  it.each([
    [
      "snapshot",
      [
        usage("snapshot", "--tag", ""),
        usage("snapshot", "--tag", "a b"),
        usage("snapshot", "--tag", "latest"),
        usage("snapshot", "--consistency", "perhaps"),
        usage("snapshot", "--fencing-token", "-1"),
        usage("snapshot", "--request-id", "x"),
        usage("snapshot", "surplus"),
        [["snapshot", "-m", "x".repeat(1_001)], 9, "E_LIMIT"] as const,
        usage("snapshot", "diff"),
        usage("snapshot", "diff", "here", "--patch"),
        missing("snapshot", "diff", "here", "nothing"),
        usage("snapshot", "prune", "--keep", "some"),
        usage("snapshot", "prune", "--older-than", "soon"),
        usage("snapshot", "prune", "--manual"),
        missing("snapshot", "prune", "nothing"),
        [["snapshot", "prune", "--run", "x"], 9, "E_CONSISTENCY_UNAVAILABLE"] as const,
      ],
    ],
    [
      "history, info and doctor",
      [
        usage("history", "--limit", "-1"),
        usage("history", "surplus"),
        missing("history", "--worktree", "nothing"),
        missing("info", "nothing"),
        usage("doctor", "--repair"),
      ],
    ],
    [
      "restore",
      [
        usage("restore"),
        usage("restore", "here", "--run", "x"),
        usage("restore", "here", "--fencing-token", "1"),
        usage("restore", "here", "--inplace", "--branch", "x"),
        usage("restore", "here", "--inplace", "--run", "BOGUS"),
        usage("restore", "here", "--branch", "a b"),
        policy("restore", "here", "--branch", "main"),
        policy("restore", "here", "--path", "src/b.ts"),
        missing("restore", "\u001b[31mred"),
      ],
    ],
    [
      "worktree",
      [
        usage("worktree", "create"),
        usage("worktree", "create", "x", "--ttl", "5"),
        usage("worktree", "create", "x", "--issue", "a b"),
        usage("worktree", "lock", "--ttl", "soon"),
        usage("worktree", "lock", "--timeout", "5"),
        policy("worktree", "lock", "--ttl", "0"),
        missing("worktree", "lock", "nothing"),
        usage("worktree", "renew", "--ttl", "-1"),
        missing("worktree", "renew"),
        missing("worktree", "unlock"),
        usage("worktree", "access", "open"),
        usage("worktree", "remove"),
        missing("worktree", "remove", "nothing"),
        usage("worktree", "steal", "one", "two"),
      ],
    ],
  ])("%s get a code and a next step, and nothing is written", async (_what, cases) => {
    const repo = repository();
    await taken(repo, "--tag", "here");
    // Whoever asks under the mutex leaves a note there of who it was.
    const picture = () => ({ ...repo.picture(), ".git/cotenant/locks/claims.lock": "" });
    const before = picture();
    // A process for each command and code; what else is wrong with its words needs none.
    const started = new Set<string>();
    for (const [words, status, code] of cases) {
      const kind = [code, ...words.slice(0, 2).filter((word) => /^[a-z]+$/.test(word))].join(" ");
      const ask = started.has(kind) ? repo.askHere("agent:a", ...words) : repo.ask("agent:a", ...words);
      expectJsonRefused(await ask, status, code);
      started.add(kind);
    }
    expect(picture()).toEqual(before);
  });

  it("files and places do nothing to the terminal that shows them", async () => {
    const repo = TestRepo.make(path.join(repository().root, "../\u001b[31mred"));
    repo.write("\u001b[2Jfile", "x\n");
    const said: string[] = [];
    for (const words of ["snapshot", "snapshot diff latest", "info latest", "info", "worktree list"])
      said.push((await repo.run("agent:a", ...words.split(" "))).stdout);
    repo.write("\u001b[2Jfile", "y\n");
    said.push((await repo.runHere("agent:a", "restore", "latest", "--inplace")).stdout);
    said.push((await repo.runHere("agent:a", "restore", "latest", "--path", ".")).stderr);
    expect(said.join("\n")).toContain("file");
    expect(said.join("\n")).not.toContain("\u001b");
  });
});
