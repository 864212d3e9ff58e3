import * as fs from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { bar, pensFor, sparkline, squeezed } from "../../src/cli/terminal/charts";
import { needTool } from "../house/need-tool";
import { PROGRAM, run } from "../support/program";
import { expectRefused } from "../support/refusals";
import { pictureOf, TestRepo } from "../support/repo";

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
});

interface Stats {
  readonly events: number;
  readonly totals: Readonly<Record<string, number>>;
  readonly hold_ms: { readonly count: number } | null;
  readonly wait_ms: { readonly count: number } | null;
  readonly keys: readonly { readonly key: string; readonly contention: number; readonly agents: number }[];
  readonly agents: readonly { readonly agent_id: string; readonly acquired: number }[];
  readonly known: { readonly keys: number };
}
const stats = async (...args: string[]) =>
  (await repo.ask("agent:a", "stats", ...args)).data as unknown as Stats;

/** Held twice, waited for once, stolen once; one file is only ever held by one. */
async function story(): Promise<void> {
  await repo.prepare("agent:a", "lock", "acquire", "busy", "quiet");
  const waiter = repo.start("agent:b", ["lock", "acquire", "busy", "--wait", "--timeout", "100"]);
  while (!waiter.stderr.includes("waiting as number 1"))
    await new Promise((resolve) => setTimeout(resolve, 20));
  await repo.prepare("agent:a", "lock", "release", "busy");
  await waiter.done;
  await repo.prepare("human:eve", "lock", "steal", "busy", "--reason", "it hangs");
}

describe("stats", () => {
  it("add up what happened, across segments, and write nothing", async () => {
    await story();
    await repo.prepare("agent:a", "gc", "--compact");
    await repo.prepare("agent:a", "lock", "release", "quiet");
    const before = pictureOf(repo.root);
    const found = await stats();
    expect(found).toMatchObject({
      totals: { acquired: 4, waited: 1, released: 2, stolen: 1, evicted: 0, expired: 0 },
      hold_ms: { count: 3 },
      wait_ms: { count: 1 },
      known: { keys: 2 },
    });
    expect(found.keys).toMatchObject([
      { key: "file:busy", contention: 2, agents: 3 },
      { key: "file:quiet", contention: 0, agents: 1 },
    ]);
    expect(pictureOf(repo.root)).toEqual(before);
  });

  it("of a stretch know what was held before it", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a");
    await repo.prepare("agent:a", "lock", "release", "a");
    expect(await stats("--since", "3")).toMatchObject({
      totals: { acquired: 0, released: 1 },
      hold_ms: { count: 1 },
    });
    expect(await stats("--since", "99")).toMatchObject({ events: 0, hold_ms: null, keys: [] });
  });

  it("list no more than asked for", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a", "b", "c");
    const { keys, known } = await stats("--top", "2");
    expect([keys.length, known.keys]).toEqual([2, 3]);
    const { stdout } = await repo.run("agent:a", "stats", "--top", "2");
    expect(stdout).toContain("and 1 more key; --top shows more");
  });

  it("are a plain table where there is no terminal, and say what cannot be known", async () => {
    await repo.prepare("agent:a", "lock", "acquire", "a");
    const { stdout } = await repo.run("agent:a", "stats");
    expect(stdout).toMatch(/^KEY +ACQUIRED +CONTENTION +AGENTS +HELD/m);
    expect(stdout).toContain("refusals are not logged");
    expect(stdout).not.toMatch(/[\x1b█▁]/);
    expect((await repo.run("agent:a", "stats", "--help")).stdout).toContain("cannot know refusals");
  });

  it("have charts on a terminal, in plain characters where the locale knows no others", async () => {
    needTool("script");
    await repo.prepare("agent:a", "lock", "acquire", "a", "b");
    const shown = async (locale: string) => {
      const script = `stty cols 100; "$PROGRAM" stats`;
      const env = { PROGRAM, COTENANT_AGENT_ID: "agent:a", LC_ALL: locale, NO_COLOR: "1" };
      return (await run(["script", "-qec", script, "/dev/null"], { cwd: repo.root, env })).stdout;
    };
    expect(await shown("C.UTF-8")).toMatch(/file:a +1 +█{20}/);
    const plain = await shown("C");
    expect(plain).toMatch(/file:a +1 +#{20}/);
    expect(plain).not.toMatch(/[\x1b█]/);
  });

  it("of nothing say so, and refuse what makes no sense", async () => {
    expect((await repo.run("agent:a", "stats")).stdout).toBe("nothing was logged in that time\n");
    expectRefused(await repo.run("agent:a", "stats", "--top", "0"), 64, "E_USAGE");
    expectRefused(await repo.run("agent:a", "stats", "--since", "soon"), 64, "E_USAGE");
    expect(fs.existsSync(repo.control)).toBe(false);
  });
});

describe("charts", () => {
  const pens = pensFor({ LANG: "en_US.UTF-8" });

  it("draw bars that show the least thing and never more than the width", () => {
    expect(bar(0, 10, 20, pens)).toBe("");
    expect(bar(1, 1_000, 20, pens)).toBe("█");
    expect(bar(10, 10, 20, pens)).toHaveLength(20);
  });

  it("draw a line of values, empty where there was nothing", () => {
    expect(sparkline([0, 1, 4, 8], pens)).toBe(" ▁▄█");
    expect(sparkline([0, 1, 8], pensFor({ LC_ALL: "C", LANG: "en_US.UTF-8" }))).toBe(" .@");
  });

  it("squeeze values into the width, and lose none", () => {
    expect(squeezed([1, 2, 3, 4, 5], 2)).toEqual([6, 9]);
    expect(squeezed([1, 2], 80)).toEqual([1, 2]);
  });
});
