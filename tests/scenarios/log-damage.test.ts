import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { run } from "../support/program";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";
import { sampleOf, TRIES_ALL } from "../support/sample";
import { scratchInMemory } from "../support/scratch";

const it = oneIn(5);

const LIBRARY = fileURLToPath(new URL("../../dist/index.cjs", import.meta.url));
const CUTTER = fileURLToPath(new URL("../support/cut-log.mjs", import.meta.url));

/** A log whose last line, a release, its writer did not live to acknowledge: the index has not heard of it yet. */
async function unacknowledged() {
  const repo = TestRepo.make(path.join(scratchInMemory(), "repo"));
  await repo.prepare("agent:a", "lock", "acquire", "a.ts", "b.ts", "c.ts");
  const index = `${repo.control}.index`;
  fs.cpSync(path.join(repo.control, "index"), index, { recursive: true });
  const before = fs.statSync(repo.logFile).size;
  await repo.prepare("agent:a", "lock", "release", "c.ts");
  const log = `${repo.control}.log`;
  fs.copyFileSync(repo.logFile, log);
  return { repo, index, log, before, size: fs.statSync(log).size };
}

/** What is to be seen is seen by processes in one place of many; in the others by the same program in this process. */
function asking(repo: TestRepo, isStarted: boolean) {
  return (agent: string, ...args: string[]) =>
    isStarted ? repo.ask(agent, ...args) : repo.askHere(agent, ...args);
}

describe("S17: the log's last line is cut", () => {
  const WITH = ["file:a.ts", "file:b.ts"];
  const WITHOUT = [...WITH, "file:c.ts"];

  it("after each of its bytes: it is gone or whole, and nothing else changes", {
    timeout: 300_000,
  }, async () => {
    const { repo, before, size, ...files } = await unacknowledged();
    const common = { library: LIBRARY, root: repo.root, control: repo.control, before, ...files };
    const cuts: { size: number; seen: string[]; after: string[]; intact: boolean }[] = [];
    const starts = Array.from(
      { length: Math.floor((size - before) / 100) + 1 },
      (_, at) => before + at * 100,
    );
    // The end of the line, where it counts, is in every sample.
    for (const from of new Set([...sampleOf(starts, 3), starts.at(-1)!])) {
      const job = { ...common, from, to: Math.min(from + 100, size + 1) };
      const ran = await run([process.execPath, CUTTER, JSON.stringify(job)], { cwd: repo.root });
      expect(ran.stderr).toBe("");
      for (const line of ran.stdout.trimEnd().split("\n")) cuts.push(JSON.parse(line));
    }
    if (TRIES_ALL) expect(cuts).toHaveLength(size - before + 1);
    expect(cuts.length).toBeGreaterThan(100);
    const wrong = cuts.filter(({ size: cut, seen, after, intact }) => {
      // Without its newline alone the line may count or not, but it is the same to all.
      const right = cut === size ? [WITH] : cut === size - 1 ? [WITH, WITHOUT] : [WITHOUT];
      return !intact || `${seen}` !== `${after}` || !right.some((keys) => `${keys}` === `${seen}`);
    });
    expect(wrong).toEqual([]);
  });

  it.each([0, 1, 10, 300, -2, -1])("and commands go on (byte %i)", async (at) => {
    const { repo, index, before, size } = await unacknowledged();
    fs.rmSync(path.join(repo.control, "index"), { recursive: true });
    fs.cpSync(index, path.join(repo.control, "index"), { recursive: true });
    fs.truncateSync(repo.logFile, at < 0 ? size + at : before + at);
    const torn = fs.readFileSync(repo.logFile, "utf8").slice(before);
    const ask = asking(repo, at === 10);

    const status = await ask("agent:d", "status");
    expect(status.data.leases.map(({ key }) => key).sort()).toEqual(WITHOUT);
    expect(status.data["needs_a_person"]).toEqual([]);
    expect((await ask("agent:d", "lock", "acquire", "d.ts")).lease.fencing_token).toBe(4);
    expectJsonRefused(await repo.askHere("agent:d", "lock", "acquire", "c.ts"), 1, "E_LOCK_CONFLICT");
    const aside = fs
      .readdirSync(path.join(repo.control, "archive"))
      .filter((name) => name.startsWith("torn-"));
    const kept = aside.map((name) => fs.readFileSync(path.join(repo.control, "archive", name), "utf8"));
    expect(kept).toEqual(torn === "" ? [] : [torn]);
  });
});

type Harm = (lines: string[], line: number) => string[];

const HARMS: readonly [string, Harm][] = [
  ["one letter is changed", (lines, n) => lines.with(n, lines[n]!.replace("agent:a", "agent:x"))],
  ["it is zeroed", (lines, n) => lines.with(n, "\0".repeat(lines[n]!.length))],
  ["its end is missing", (lines, n) => lines.with(n, lines[n]!.slice(0, -20))],
  ["it is missing", (lines, n) => lines.toSpliced(n, 1)],
  ["there is something before it", (lines, n) => lines.toSpliced(n, 0, "garbage")],
];

describe("S17: what was acknowledged is damaged", () => {
  const FILES = ["a.ts", "b.ts", "c.ts"];
  // The first line of a log is its checkpoint; each of the others grants one file.
  const places = HARMS.flatMap(([what, harm]) => [0, 1, 2, 3].map((line) => ({ what, harm, line })));

  it.each(places)(
    "line $line, $what: writers refuse, readers answer, recover salvages",
    async ({ harm, line }) => {
      const repo = TestRepo.make();
      for (const file of FILES) await repo.prepare("agent:a", "lock", "acquire", file);
      const lines = repo.logText().trimEnd().split("\n");
      expect(lines).toHaveLength(4);
      const damaged = `${harm(lines, line).join("\n")}\n`;
      fs.writeFileSync(repo.logFile, damaged);

      const isStarted = line === 1;
      const ask = asking(repo, isStarted);
      const taking = ["lock", "acquire", "d.ts"];
      const refused = await (isStarted ? repo.run("agent:b", ...taking) : repo.runHere("agent:b", ...taking));
      expectRefused(refused, 13, "E_LOG_CORRUPT");
      expect(refused.stderr).toContain("cotenant recover");
      expectJsonRefused(await ask("agent:a", "lock", "renew", "a.ts"), 13, "E_LOG_CORRUPT");

      const { data } = await ask("agent:b", "status");
      const whole = lines.filter((text) => damaged.split("\n").includes(text));
      for (const file of FILES) {
        const isWhole = whole.some((text) => text.includes(`"key":"file:${file}"`));
        if (isWhole) expect(data.leases.map(({ key }) => key)).toContain(`file:${file}`);
      }
      expect(data["needs_a_person"]).toEqual([
        expect.objectContaining({
          code: "log_damaged",
          next: expect.stringContaining("cotenant recover"),
        }),
      ]);
      expect(fs.readFileSync(repo.logFile, "utf8")).toBe(damaged);

      const mended = (await ask("human:ada", "recover")).data;
      expect(mended).toMatchObject({ recovered: true, salvaged_lines: whole.length });
      expect(fs.readFileSync(mended["kept_as"] as string, "utf8")).toBe(damaged);
      for (const file of FILES)
        expectJsonRefused(await repo.askHere("agent:b", "lock", "acquire", file), 1, "E_LOCK_CONFLICT");
      const next = (await ask("agent:b", ...taking)).lease;
      expect(next.fencing_token).toBeGreaterThan(3);
      expect((await ask("agent:a", "lock", "renew", ...FILES)).data.leases).toHaveLength(3);
    },
  );

  it.each(["release", "renew", "gc", "force-evict", "transfer", "steal"])(
    "%s refuses as well",
    async (verb) => {
      const repo = TestRepo.make();
      const id = await repo.issue();
      await repo.prepare("agent:a", "claim", "acquire", id);
      await repo.prepare("agent:a", "lock", "acquire", "a.ts");
      fs.writeFileSync(repo.logFile, repo.logText().replace("agent:a", "agent:x"));
      const commands: Record<string, string[]> = {
        release: ["lock", "release", "a.ts"],
        renew: ["claim", "renew", id],
        gc: ["gc"],
        "force-evict": ["claim", "force-evict", id, "--reason", "r"],
        transfer: ["claim", "transfer", id, "--to-agent", "agent:b", "--reason", "r"],
        steal: ["lock", "steal", "a.ts", "--reason", "r"],
      };
      const agent = ["force-evict", "steal"].includes(verb) ? "human:ada" : "agent:a";
      expectJsonRefused(await repo.ask(agent, ...commands[verb]!), 13, "E_LOG_CORRUPT");
    },
  );

  it("a log that is gone is damage, too: old tokens never come again", async () => {
    const repo = TestRepo.make();
    await repo.prepare("agent:a", "lock", "acquire", "a.ts");
    fs.rmSync(repo.logFile);
    expectRefused(await repo.run("agent:b", "lock", "acquire", "b.ts"), 13, "E_LOG_CORRUPT");
    expect((await repo.run("agent:b", "status")).status).toBe(0);
    expect((await repo.ask("human:ada", "recover")).data["recovered"]).toBe(true);
    expectJsonRefused(await repo.ask("agent:b", "lock", "acquire", "a.ts"), 1, "E_LOCK_CONFLICT");
    expect((await repo.ask("agent:b", "lock", "acquire", "b.ts")).lease.fencing_token).toBeGreaterThan(1);
  });

  it("recover does not bring back a lease that was handed on, when the index still knows its successor", async () => {
    const repo = TestRepo.make();
    const id = await repo.issue();
    await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("agent:a", "claim", "transfer", id, "--to-agent", "agent:b", "--reason", "r");
    await repo.prepare("agent:c", "lock", "acquire", "c.ts");
    fs.writeFileSync(repo.logFile, repo.logText().replace('"claim.transferred"', '"claim.transformed"'));
    expect((await repo.ask("human:ada", "recover")).data["recovered"]).toBe(true);
    const { leases } = (await repo.ask("agent:c", "claim", "status")).data;
    expect(leases).toEqual([expect.objectContaining({ agent_id: "agent:b", fencing_token: 2 })]);
    expect((await repo.ask("agent:a", "claim", "renew", id)).status).not.toBe(0);
  });

  it("recover does nothing when nothing is wrong", async () => {
    const repo = TestRepo.make();
    await repo.prepare("agent:a", "lock", "acquire", "a.ts");
    const before = repo.logText();
    expect((await repo.ask("agent:a", "recover")).data).toMatchObject({
      recovered: false,
      salvaged_lines: 2,
    });
    expect(repo.logText()).toBe(before);
  });
});
