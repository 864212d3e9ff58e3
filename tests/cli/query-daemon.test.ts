import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type DaemonRecordJson, freezeDaemon, startDaemon } from "../support/daemon";
import { writeIssue } from "../support/issue-files";
import { until } from "../support/program";
import { TestRepo } from "../support/repo";
import { sampleOf } from "../support/sample";

interface Memory {
  readonly answers: number;
  readonly watches: number;
  readonly folders: readonly { folder: string; standing: string; issues: number; why: string | null }[];
}

/** As many as make it worth asking. */
const ISSUES = 510;
const STATES = ["ready", "ready", "done", "backlog"];
/** Makes the time at which it was written long past: what has just been written is looked at by everybody for two seconds. */
const LONG_AGO = new Date("2026-01-01T00:00:00Z");

let repo: TestRepo;
let ids: string[];
let daemon: DaemonRecordJson;

async function memory(): Promise<Memory> {
  const { data } = await repo.start("agent:asker", ["daemon", "status", "--json"]).done;
  return (data["daemon"] as { memory: Memory }).memory;
}

function ask(args: readonly string[], where = repo, env: Record<string, string> = {}) {
  return where.start("agent:a", args, { env }).done;
}

const AVAILABLE = ["query", "available", "--json"];
const QUERIES: readonly (readonly string[])[] = [
  AVAILABLE,
  ["query", "available", "--limit", "5"],
  ["query", "available", "--free-files"],
  ["query", "blocked"],
  ["query", "all", "--label", "type:bug", "--json"],
  ["query", "closed"],
  ["query", "strategic"],
  ["issue", "list", "--state", "ready"],
  ["search", "Special"],
];

/** The same, to the byte, with the daemon and without. Answers what it says. */
async function same(args: readonly string[] = AVAILABLE, where = repo): Promise<string> {
  const { status, stdout, stderr } = await ask(args, where);
  const plain = await ask(args, where, { COTENANT_NO_DAEMON: "1" });
  expect({ status, stdout, stderr }, args.join(" ")).toEqual({
    status: plain.status,
    stdout: plain.stdout,
    stderr: plain.stderr,
  });
  return stdout;
}

/** Asks until the daemon knows of the cache what has changed since. */
async function warm(where = repo): Promise<void> {
  const folder = path.join(where.root, ".cotenant/issues");
  await until("it is sure", async () => {
    await ask(AVAILABLE, where);
    return (await memory()).folders.some((each) => each.folder === folder && each.standing === "sure");
  });
  // Settles what was too new to be believed, and says that it is true.
  await new Promise((resolve) => setTimeout(resolve, 2_300));
  await ask(AVAILABLE, where);
  await ask(AVAILABLE, where);
}

function file(n: number, name = "issue.json", root = repo.root): string {
  return path.join(root, ".cotenant/issues", ids[n]!, name);
}

/** In place, as most editors do. */
function retitle(n: number, title: string, root = repo.root): void {
  const issue = JSON.parse(fs.readFileSync(file(n, "issue.json", root), "utf8"));
  fs.writeFileSync(file(n, "issue.json", root), `${JSON.stringify({ ...issue, title }, null, 2)}\n`);
}

function dependOn(n: number, other: number): void {
  const at = "2026-01-01T00:00:00.000Z";
  const line = { op: "add", tag: "01HZZZZZZZZZZZZZZZZZZZZZZ0", value: ids[other], at, by: "" };
  fs.appendFileSync(file(n, "deps.or-set.jsonl"), `${JSON.stringify(line)}\n`);
}

beforeEach(async () => {
  repo = TestRepo.make();
  await repo.prepare("agent:a", "init");
  ids = Array.from({ length: ISSUES }, (_, n) =>
    writeIssue(repo.root, {
      title: `Work ${n}`,
      state: STATES[n % STATES.length]!,
      labels: [n % 2 === 0 ? "type:bug" : "type:task"],
    }),
  );
  for (let n = 0; n < ISSUES; n++) fs.utimesSync(file(n), LONG_AGO, LONG_AGO);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "issues");
  daemon = await startDaemon(repo);
});

describe.runIf(process.platform === "linux")("queries with a daemon that watches the issues", () => {
  it("say the same, whatever was done a moment before", async () => {
    await warm();
    const before = (await memory()).answers;
    const deeds: Readonly<Record<string, () => unknown>> = {
      "an editor that writes in place": () => retitle(0, "Special one"),
      "one that renames": () => {
        fs.copyFileSync(file(1), file(1, "new"));
        fs.renameSync(file(1, "new"), file(1));
      },
      "one more to wait for": () => dependOn(0, 4),
      "a label": () => fs.copyFileSync(file(1, "labels.or-set.jsonl"), file(4, "labels.or-set.jsonl")),
      "a stash": () => repo.git("stash", "--quiet"),
      "and back": () => repo.git("stash", "pop", "--quiet"),
      "removed issues": () => {
        for (const n of [8, 9]) fs.rmSync(path.dirname(file(n)), { recursive: true });
      },
      "a checkout": () => repo.git("checkout", "--quiet", "--", ".cotenant/issues"),
      "a new issue": () => repo.prepare("agent:b", "issue", "create", "--title", "Special two"),
      "a claim": () => repo.prepare("agent:b", "claim", "acquire", ids[12]!),
      "what cannot be read": () => fs.writeFileSync(file(13), "{"),
    };
    let next = 0;
    for (const [deed, act] of Object.entries(deeds)) {
      await act();
      await same(QUERIES[next++ % QUERIES.length]!).catch((error: Error) => {
        throw new Error(`after ${deed}: ${error.message}`);
      });
    }
    for (const args of sampleOf(QUERIES, 4)) await same(args);
    // It was asked, and knew; on a busy machine not always in time.
    expect((await memory()).answers - before).toBeGreaterThan(0);
  });

  it("say the same from another worktree, of which the main one's issues are a part", async () => {
    const other = repo.addWorktree("other");
    await warm(other);
    retitle(0, "Special here", other.root);
    expect(await same(AVAILABLE, other)).toContain("Special here");
    const issue = JSON.parse(fs.readFileSync(file(1), "utf8"));
    const newer = { ...issue, title: "Special there", stamp: { ...issue.stamp, version: 5 } };
    fs.writeFileSync(file(1), JSON.stringify(newer));
    expect(await same(AVAILABLE, other)).toContain("Special there");
  });

  it.each(["SIGKILL", "SIGSTOP"] as const)("go on without one that has got a %s", async (signal) => {
    await warm();
    if (signal === "SIGSTOP") await freezeDaemon(repo, daemon);
    else process.kill(daemon.pid, signal);
    retitle(0, "Special one");
    expect(await same()).toContain("Special one");
    if (signal === "SIGSTOP") process.kill(daemon.pid, "SIGCONT");
    retitle(1, "Special two");
    expect(await same()).toContain("Special two");
  });

  it("do not trust one for which the kernel had to drop events", async () => {
    await warm();
    const limit = Number(fs.readFileSync("/proc/sys/fs/inotify/max_queued_events", "utf8"));
    process.kill(daemon.pid, "SIGSTOP");
    const [one, other] = [100, 101].map((n) => fs.openSync(file(n, "deps.or-set.jsonl"), "a"));
    // In turns: an event like the last one in the queue is not queued again.
    for (let n = 0; n <= limit / 2 + 10; n++) {
      fs.writeSync(one!, "\n");
      fs.writeSync(other!, "\n");
    }
    for (const fd of [one!, other!]) fs.closeSync(fd);
    // For this there is no room any more.
    retitle(0, "Special one");
    process.kill(daemon.pid, "SIGCONT");
    expect(await same()).toContain("Special one");
    await warm();
    expect(await same()).toContain("Special one");
  });

  it("are told by 'daemon status' what is watched, and why not", async () => {
    await warm();
    expect((await ask(["daemon", "status"])).stdout).toContain(`${ISSUES} issues watched`);
    const issues = path.join(repo.root, ".cotenant/issues");
    fs.renameSync(issues, `${issues}-away`);
    fs.renameSync(`${issues}-away`, issues);
    expect(await same()).toContain("Work 0");
    await until("it says so", async () =>
      (await ask(["daemon", "status"])).stdout.includes(`${issues} is not watched: it was moved or removed`),
    );
  });
});
