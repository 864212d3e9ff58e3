import * as fs from "node:fs";
import { beforeEach, describe, expect } from "vitest";
import { parseSince } from "../../src/coordinator/since";
import { EVENT_TYPES } from "../../src/features/watch/operations/events";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, run, until } from "../support/program";
import { expectRefused } from "../support/refusals";
import { pictureOf, TestRepo } from "../support/repo";

const it = oneIn(8);

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

interface EventLine {
  readonly sequence: number;
  readonly event_type: string;
  readonly timestamp: string;
  readonly actor: { readonly agent_id: string };
  readonly payload: { readonly waited_ms?: number; readonly leases: readonly { readonly key: string }[] };
}

const linesOf = ({ stdout }: { stdout: string }) =>
  stdout
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as EventLine);
const sequences = async (...args: string[]) =>
  linesOf(await repo.ask("agent:a", "events", ...args)).map(({ sequence }) => sequence);

/** Two agents, two files, an issue and a resource; sequence 1 is the checkpoint. */
async function story(): Promise<{ issue: string }> {
  repo.write("src/a.ts");
  await repo.prepare("agent:a", "lock", "acquire", "src/a.ts", "--reason", "the login");
  await repo.prepare("agent:b", "lock", "acquire", "docs/b.md");
  await repo.prepare("human:eve", "lock", "steal", "src/a.ts", "--reason", "it hangs");
  const issue = await repo.issue();
  await repo.prepare("agent:b", "claim", "acquire", issue);
  await repo.prepare("agent:b", "lock", "release", "docs/b.md");
  return { issue };
}

describe("events", () => {
  it("are readable lines, oldest first, with who, what and why", async () => {
    await story();
    const { stdout } = await repo.run("agent:a", "events");
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(6);
    expect(lines[0]).toMatch(/^ +2 {2}\S+ \S+Z {2}acquired +agent:a +file:src\/a\.ts {2}#1 {2}"the login"$/);
    expect(lines[2]).toContain('human:eve             file:src/a.ts  #3  from agent:a (forced)  "it hangs"');
    expect(lines[3]).toMatch(/issue\.written +agent:planner +new issues: Some work$/);
    expect(lines[5]).toMatch(/released +agent:b +file:docs\/b\.md$/);
  });

  it("name whose time was up, and who logged it; only what somebody ended is an eviction", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a");
    const hints = async () => (await repo.askAt(700, "agent:b", "lock", "status")).data["hints"];
    expect(await hints()).toEqual(["1 lock lapsed and free to take; 'cotenant lock gc' logs its end"]);
    await repo.askAt(700, "agent:b", "gc");
    await repo.prepare("agent:a", "lock", "acquire", "b");
    await repo.askAt(700, "agent:a", "gc");
    await repo.prepare("agent:a", "lock", "acquire", "c");
    await repo.prepare("human:eve", "claim", "force-evict", "file:c", "--reason", "it hangs");
    const { stdout } = await repo.run("agent:a", "events");
    const ends = stdout.split("\n").filter((line) => /expired|evicted/.test(line));
    expect(ends).toHaveLength(3);
    expect(ends[0]).toMatch(/Z {2}expired +agent:a +file:a {2}logged by agent:b$/);
    expect(ends[1]).toMatch(/Z {2}expired +agent:a +file:b$/);
    expect(ends[2]).toMatch(/Z {2}evicted +human:eve +file:c {2}held by agent:a \(forced\) {2}"it hangs"$/);
    const types = linesOf(await repo.ask("agent:a", "events", "--type", "evicted"));
    expect(types).toHaveLength(3);
  });

  it("of several leases whose time was up say so of all of them", async () => {
    for (const agent of ["agent:a", "agent:c"]) await repo.prepare(agent, "lock", "acquire", agent.slice(6));
    await repo.askAt(700, "agent:b", "gc");
    const { stdout } = await repo.run("agent:a", "events", "--limit", "1");
    expect(stdout).toMatch(/Z {2}expired +agent:a, agent:c +file:a, file:c {2}logged by agent:b\n$/);
  });

  it("stand in columns, however long their types are, and name what is proposed to end", async () => {
    repo.write(".cotenant/config.toml", "[policy]\napprovers = 1\n");
    await repo.prepare("agent:a", "lock", "acquire", "a");
    await repo.ask("human:eve", "claim", "force-evict", "file:a", "--reason", "it hangs");
    await repo.prepare("human:bob", "claim", "approve", "file:a");
    await repo.prepare("human:eve", "pause", "--reason", "moving");
    const lines = (await repo.run("agent:a", "events")).stdout.trimEnd().split("\n");
    expect(new Set(lines.map((line) => line.search(/(?:agent|human):/))).size).toBe(1);
    expect(lines[1]).toMatch(/eviction\.proposed +human:eve +file:a {2}held by agent:a {2}"it hangs"$/);
    expect(lines[2]).toMatch(/eviction\.approved +human:bob +file:a {2}held by agent:a {2}"it hangs"$/);
    expect(EVENT_TYPES.filter((type) => type.replace("claim.", "").length > 21)).toEqual([]);
  });

  it("are JSON Lines with the envelope's fields and no hash of a secret", async () => {
    await story();
    const ran = await repo.ask("agent:a", "events");
    expect(linesOf(ran).map(({ event_type }) => event_type)).toEqual([
      ...["claim.acquired", "claim.acquired", "claim.acquired"],
      ...["issue.written", "claim.acquired", "claim.released"],
    ]);
    expect(ran.stdout).not.toMatch(/secret|_clock|facts/);
    expect(repo.logText()).toMatch(/secret_hash/);
  });

  it("are filtered by key, agent, type, issue, path and since, which add up", async () => {
    const { issue } = await story();
    expect(await sequences("--key", "file:src/a.ts")).toEqual([2, 4]);
    expect(await sequences("--key", "src/a.ts")).toEqual([2, 4]);
    expect(await sequences("--agent", "agent:b")).toEqual([3, 6, 7]);
    expect(await sequences("--agent", "agent:a")).toEqual([2, 4]);
    expect(await sequences("--type", "claim.rel")).toEqual([7]);
    expect(await sequences("--type", "issue")).toEqual([5]);
    expect(await sequences("--type", "acquired", "--agent", "agent:b")).toEqual([3, 6]);
    expect(await sequences("--issue", issue)).toEqual([5, 6]);
    expect(await sequences("--key", `issue:${issue.slice(10, 15).toLowerCase()}`)).toEqual([5, 6]);
    expect(await sequences("--path", "docs")).toEqual([3, 7]);
    expect(await sequences("--since", "6")).toEqual([6, 7]);
    expect(await sequences("--since", "1h")).toEqual([2, 3, 4, 5, 6, 7]);
    expect(await sequences("--since", "2099-01-01")).toEqual([]);
    expect(await sequences("--limit", "2")).toEqual([6, 7]);
    expect(await sequences("--limit", "1", "--agent", "agent:a")).toEqual([4]);
  });

  it("reach back through archived segments, packed and not, and write nothing", async () => {
    for (const name of ["a", "b", "c"]) {
      await repo.prepare("agent:a", "lock", "acquire", name);
      await repo.prepare("agent:a", "gc", "--compact");
    }
    await repo.prepare("agent:a", "lock", "acquire", "d");
    const before = pictureOf(repo.root);
    const all = linesOf(await repo.ask("agent:a", "events"));
    expect(all.map(({ payload }) => payload.leases[0]!.key)).toEqual(
      ["a", "b", "c", "d"].map((n) => `file:${n}`),
    );
    const numbers = all.map(({ sequence }) => sequence);
    expect(await sequences("--limit", "3")).toEqual(numbers.slice(1));
    expect(await sequences("--since", String(numbers[2]))).toEqual(numbers.slice(2));
    expect(await sequences("--limit", "1", "--key", "file:a")).toEqual(numbers.slice(0, 1));
    expect(pictureOf(repo.root)).toEqual(before);
    expect(fs.readdirSync(`${repo.control}/archive`).length).toBe(3);
  });

  it("say what cannot be read, and show the rest", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a");
    await repo.prepare("agent:a", "gc", "--compact");
    await repo.prepare("agent:a", "lock", "acquire", "b");
    const archived = `${repo.control}/archive/claims-000001.jsonl.gz`;
    fs.writeFileSync(archived, "no segment");
    for (const args of [["events"], ["events", "--limit", "5"], ["stats"]]) {
      const { status, stdout, stderr } = await repo.run("agent:a", ...args);
      expect(status).toBe(0);
      expect(stdout).toContain("file:b");
      expect(stderr).toBe(
        `cotenant: warning: ${archived} has lines that cannot be read; they are left out\n`,
      );
    }
    // Half a line at the end is a writer at work.
    fs.rmSync(archived);
    fs.appendFileSync(repo.logFile, '{"schema_ver');
    expect(await repo.run("agent:a", "events")).toMatchObject({ status: 0, stderr: "" });
  });

  it("say how long a grant had waited", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "x");
    const waiter = repo.start("agent:b", ["lock", "acquire", "x", "--wait", "--timeout", "100"]);
    await until("it waits", () => waiter.stderr.includes("waiting as number"));
    await repo.prepare("agent:a", "lock", "release", "x");
    await waiter.done;
    expect((await repo.askAt(7_200, "agent:c", "lock", "acquire", "x")).status).toBe(0);
    const granted = linesOf(await repo.ask("agent:a", "events", "--type", "claim.acquired"));
    const waited = granted.map(({ payload }) => payload.waited_ms);
    expect(waited).toEqual([undefined, expect.any(Number), undefined]);
    expect(waited[1]).toBeGreaterThan(0);
    expect(waited[1]).toBeLessThan(100_000);
    const { stdout } = await repo.run("agent:a", "events");
    expect(stdout).toMatch(/agent:b .*waited \d+s/);
    expect(stdout).toContain("from agent:b (expired)");
  });

  it.each([
    [["--type", "stolen"], "no event type begins with"],
    [
      ["--type", "zzzzzzzz"],
      "issue., dispatch., lease., repository., eviction., policy., contention., guard., worktree., snapshot., publish., land., sync.",
    ],
    [["--since", "yesterday"], "--since cannot be"],
    [["--limit", "0"], "--limit is from 1"],
    [["--agent", "ada"], "is not an agent id"],
    [["--key", "thing:x"], "thing:x"],
    [["--path", "../.."], "outside the worktree"],
  ])("refuse %j", async (args, words) => {
    await repo.prepare("agent:a", "init");
    const ran = await repo.run("agent:a", "events", ...args);
    // A word that is no key is a path, and a path may not exist.
    if (args[1] === "thing:x")
      expect(ran).toMatchObject({ status: 0, stdout: "", stderr: "no event in the log fits\n" });
    else {
      expect(ran.stderr).toContain(words);
      expectRefused(ran, args[0] === "--path" ? 9 : 64, args[0] === "--path" ? "E_PATH_ESCAPE" : "E_USAGE");
    }
  });
});

describe("events --follow", () => {
  it("goes on with new ones through a rotation, and ends well on a signal", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "before");
    const following = repo.start("agent:a", ["events", "--follow", "--json"]);
    const keys = () => linesOf(following).map(({ payload }) => payload.leases[0]!.key);
    await until("the past is shown", () => keys().length === 1);
    await repo.prepare("agent:b", "lock", "acquire", "one");
    await until("the first is shown", () => keys().length === 2);
    await repo.prepare("agent:b", "gc", "--compact");
    await repo.prepare("agent:b", "lock", "acquire", "two");
    await repo.prepare("agent:b", "gc", "--compact");
    await repo.prepare("agent:b", "lock", "acquire", "three");
    await until("all are shown", () => keys().length === 4);
    following.kill("SIGINT");
    const ran: Ran = await following.done;
    expect(ran).toMatchObject({ status: 0, stderr: "" });
    expect(keys()).toEqual(["file:before", "file:one", "file:two", "file:three"]);
  });

  it("waits for a log that is not there yet, and shows only what fits", async () => {
    const following = repo.start("agent:a", ["events", "--follow", "--agent", "agent:b"]);
    await repo.prepare("agent:a", "lock", "acquire", "a");
    await repo.prepare("agent:b", "lock", "acquire", "b");
    await until("it is shown", () => following.stdout.includes("file:b"));
    following.kill("SIGTERM");
    const { status, stdout } = await following.done;
    expect(status).toBe(0);
    expect(stdout).not.toContain("file:a");
  });

  it("ends when nobody reads any more", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a");
    const script = `("$PROGRAM" events --follow; echo "$?" >ended) | head -n 1`;
    const env = { PROGRAM, COTENANT_AGENT_ID: "agent:a" };
    const piped = run(["/bin/sh", "-c", script], { cwd: repo.root, env });
    const ended = `${repo.root}/ended`;
    let more = 0;
    // It notices when it writes.
    await until("it has ended", async () => {
      await repo.prepare("agent:a", "lock", "acquire", `more-${more++}`);
      return fs.existsSync(ended) && fs.readFileSync(ended, "utf8").endsWith("\n");
    });
    expect(fs.readFileSync(ended, "utf8")).toBe("0\n");
    expect((await piped).status).toBe(0);
  });
});

describe("--since", () => {
  const now = Date.parse("2026-06-15T12:00:00Z");

  it.each([
    ["90s", now - 90_000],
    ["1d12h", now - 36 * 3_600_000],
    ["2026-06-01", Date.parse("2026-06-01T00:00:00Z")],
    ["2026-06-01T10:00", Date.parse("2026-06-01T10:00:00Z")],
    ["2026-06-01t10:00:00.5z", Date.parse("2026-06-01T10:00:00.500Z")],
    ["2026-06-01 10:00:00+02:00", Date.parse("2026-06-01T08:00:00Z")],
  ])("understands %s", (text, timeMs) => {
    expect(parseSince(text, now)).toEqual({ timeMs });
  });

  it("takes a bare number for a sequence number", () => {
    expect(parseSince("17", now)).toEqual({ sequence: 17 });
  });

  it.each(["", "-5", "1.5h", "h", "2026-13-01", "2026-06-01T25:00:00Z", "now"])("refuses %j", (text) => {
    expect(() => parseSince(text, now)).toThrow("--since cannot be");
  });
});
