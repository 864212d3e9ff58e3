import * as fs from "node:fs";
import * as path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { SLACK_MS } from "../../src/features/guard/shell/compare";
import { PLAYED, type Played } from "../support/harness/dialect";
import { readJournal } from "../support/harness/journal";
import { Rig, type ScriptedAgent } from "../support/harness/rig";
import { oneIn } from "../support/one-in";
import { until } from "../support/program";
import { Furnished } from "../support/settings";
import { check, tenuresIn } from "../verify/agents/check";
import { bundle } from "../verify/bundle";

const it = oneIn(5);

/** Denials are tried again after a second. */
const SOON = { COTENANT_GUARD_RETRY_SECS: "1" };

let folder: string;
let program: string;
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(process.env["TMPDIR"] ?? "/tmp", "cotenant-rig-"));
  program = (await bundle("tests/support/harness/agent-process.ts", folder)).path;
});

let rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs) await rig.dismiss();
  rigs = [];
});

interface Scene {
  readonly here: Furnished;
  readonly rig: Rig;
  readonly journal: string;
}

/** A repository in which every harness asks, and agents who work in it. */
async function scene(env: Record<string, string> = SOON, ...install: string[]): Promise<Scene> {
  const made = await sceneIn(undefined, env, ...install);
  rigs.push(made.rig);
  return made;
}

async function sceneIn(
  room: string | undefined,
  env: Record<string, string>,
  ...install: string[]
): Promise<Scene> {
  const here = await Furnished.make(room);
  const added = await here.ask("agent", "install", ...(install.length > 0 ? install : ["--all"]));
  expect(added.status, `${added}`).toBe(0);
  // Stopped sessions let go after a second, whoever looks.
  await here.ask("config", "set", "guard.stop_idle_secs", "1", "--agent-id", "human:me");
  here.write("shared.txt", "first\n");
  here.repo.git("add", "shared.txt", ".cotenant");
  here.repo.git("commit", "--quiet", "--message", "shared");
  const journal = path.join(here.home, "journal");
  const rig = new Rig(
    program,
    null,
    { root: here.repo.root, home: here.home, log: here.repo.logFile, journal },
    env,
  );
  return { here, rig, journal };
}

/** Of each harness two agents that work all the time, and one of Codex that they meet, in a repository of their own. */
interface Cast extends Scene {
  readonly first: ScriptedAgent;
  readonly second: ScriptedAgent;
  readonly stranger: ScriptedAgent;
}

const casts = new Map<Played, Cast>();
beforeAll(async () => {
  for (const harness of PLAYED) {
    const room = path.join(folder, harness);
    fs.mkdirSync(room);
    // Only theirs: Cursor and Copilot would ask twice with Claude Code's, which is a test of its own.
    const all = await sceneIn(fs.realpathSync(room), SOON, ...new Set([harness, "codex"]));
    const [first, second, stranger] = [
      await all.rig.hire(harness),
      await all.rig.hire(harness),
      await all.rig.hire("codex"),
    ];
    casts.set(harness, { ...all, first, second, stranger });
  }
}, 120_000);
afterAll(async () => {
  for (const { rig } of casts.values()) await rig.dismiss();
  fs.rmSync(folder, { recursive: true, force: true });
});

const agentOf = ({ harness, session }: ScriptedAgent) => `agent:${harness}-${session.slice(0, 8)}`;

/** Who holds a file, by name. */
async function holderOf({ here }: Scene, file: string): Promise<string | null> {
  const { data } = await here.ask("lock", "status", "--path", file);
  return data.leases[0]?.agent_id ?? null;
}

/** All harnesses at once, each in a repository of its own: most of the time they wait. */
function together(act: (harness: Played, cast: Cast) => Promise<void>): void {
  it(PLAYED.join(", "), { timeout: 180_000 }, async () => {
    const ended = await Promise.allSettled(PLAYED.map((harness) => act(harness, casts.get(harness)!)));
    const failed = ended.flatMap((one, i) =>
      one.status === "rejected" ? [`${PLAYED[i]}: ${one.reason}`] : [],
    );
    expect(failed).toEqual([]);
  });
}

/** Every lease that there ever was on a file: one that is asked for twice at once may be confirmed in a line of its own. */
function leasesOn({ here }: Scene, file: string): string[] {
  const lines = here.repo.logOf(`file:${file}`);
  return [
    ...new Set(lines.flatMap(({ payload }) => payload.leases.map((lease) => String(lease.fencing_token)))),
  ];
}

describe("S34: two agents write one file: one writes", () => {
  it("two Claude and one Codex, at once", async () => {
    const all = await scene();
    const agents = [await all.rig.hire("claude"), await all.rig.hire("claude"), await all.rig.hire("codex")];
    const outcomes = await Promise.all(
      agents.map((agent) => agent.write("shared.txt", `${agent.session}\n`)),
    );
    expect(outcomes.map(({ is }) => is).sort()).toEqual(["denied", "denied", "done"]);
    const winner = agents[outcomes.findIndex(({ is }) => is === "done")]!;
    expect(all.here.read("shared.txt")).toBe(`${winner.session}\n`);
    for (const { is, reason } of outcomes) if (is === "denied") expect(reason).toContain(agentOf(winner));
    expect(check(readJournal(all.journal), tenuresIn(all.here.repo.logText()))).toEqual([]);
  });

  describe("each against another of its own kind, in files old and new", () => {
    together(async (_, { first, second, ...all }) => {
      for (const file of ["shared.txt", "src/made by one.txt"]) {
        expect(await first.write(file, "mine\n")).toMatchObject({ is: "done", failures: [] });
        expect(await second.act({ do: "edit", file, content: "theirs\n" })).toMatchObject({
          is: "denied",
          failures: [],
        });
        expect(all.here.read(file)).toBe("mine\n");
      }
      expect(await second.act({ do: "delete", file: "shared.txt" })).toMatchObject({ is: "denied" });
      const patch = [
        { file: "free.txt", content: "new\n" },
        { file: "shared.txt", content: "theirs\n" },
      ];
      expect(await second.act({ do: "patch", changes: patch })).toMatchObject({ is: "denied" });
      expect(fs.existsSync(all.here.path("free.txt")), "all or nothing").toBe(false);
      // Its own it may write as often as it likes.
      expect(await first.write("shared.txt", "again\n")).toMatchObject({ is: "done" });
    });
  });

  it("two subagents of one session exclude each other, and end with it", async () => {
    const all = await scene();
    const session = "5e551011-0000-4000-8000-000000000000";
    const [one, two] = [
      await all.rig.hire("claude", { session, subagent: "one" }),
      await all.rig.hire("claude", { session, subagent: "two" }),
    ];
    expect(await one.write("shared.txt", "one\n")).toMatchObject({ is: "done" });
    expect(await two.write("shared.txt", "two\n")).toMatchObject({ is: "denied" });
    await one.tell({ order: "stop-subagent" });
    await until(
      "it is free for the other",
      async () => (await two.write("shared.txt", "two\n")).is === "done",
    );
  });
});

describe("S36: a denied write is tried again", () => {
  it("goes through where it was freed and not changed, without the agent noticing more than a pause", async () => {
    const all = await scene({ ...SOON, COTENANT_GUARD_RETRY_SECS: "8" });
    const [first, second] = [await all.rig.hire("claude"), await all.rig.hire("gemini")];
    await first.act({ do: "edit", file: "shared.txt", content: "first\n" });
    const waiting = second.write("shared.txt", "second\n");
    await first.end();
    expect(await waiting).toMatchObject({ is: "done", failures: [] });
    expect(all.here.read("shared.txt")).toBe("second\n");
  });

  it("is refused once where it was changed meanwhile, and ends the turn where it is still held", async () => {
    const all = await scene();
    const [first, second] = [await all.rig.hire("gemini"), await all.rig.hire("claude")];
    await first.write("shared.txt", "first\n");
    const blocked = await second.write("shared.txt", "second\n");
    expect(blocked).toMatchObject({ is: "denied", endsTurn: true });
    for (const field of [
      "blocked_file",
      "owner",
      "lock_age_secs",
      "last_heartbeat_at",
      "retry_interval_secs",
    ])
      expect(blocked.reason).toContain(field);
    expect(blocked.reason).toContain("waiting_for_instruction");
    await first.write("shared.txt", "changed\n");
    await first.end();
    const changed = await second.write("shared.txt", "second\n");
    expect(changed).toMatchObject({ is: "denied" });
    expect(changed.reason).toContain("read it again");
    expect(await second.write("shared.txt", "second\n")).toMatchObject({ is: "done" });
  });
});

describe("S39: released by commit, by stop and 30 s, by the session's end", () => {
  together(async (_, { first: agent, ...all }) => {
    const holds = async () => (await holderOf(all, "shared.txt")) === agentOf(agent);
    await agent.prompt();
    await agent.write("shared.txt", "one\n");
    expect(await holds()).toBe(true);
    await agent.shell("git commit --quiet --message mine -- shared.txt");
    // Without Git's hooks, the session's next event finds it clean.
    await agent.write("other.txt", "two\n");
    expect(await holds(), "after the commit").toBe(false);

    await agent.write("shared.txt", "three\n");
    await agent.stop();
    await until("the stopped session has let go", async () => !(await holds()));

    await agent.prompt();
    await agent.write("shared.txt", "four\n");
    expect(await holds()).toBe(true);
    // Codex gives its hook three seconds: one that a busy machine did not let end in time says so once more.
    for (let tries = 0; tries < 5; tries++) {
      const startedMs = performance.now();
      await agent.end();
      if (performance.now() - startedMs < 2_000) break;
    }
    expect(await holds(), "after the end").toBe(false);
  });
});

describe("S40: after all of it, git log and the index show nothing that cotenant wrote", () => {
  it("a whole fight later", async () => {
    const all = await scene();
    const before = [all.here.repo.git("log", "--format=%H %B"), all.here.repo.git("ls-files", "--stage")];
    const agents: ScriptedAgent[] = [];
    for (const harness of PLAYED) agents.push(await all.rig.hire(harness));
    for (const agent of agents) await agent.write(`${agent.harness}.txt`, "mine\n");
    await Promise.all(agents.map((agent) => agent.write("claude.txt", "theirs\n")));
    for (const agent of agents) await agent.end();
    expect([all.here.repo.git("log", "--format=%H %B"), all.here.repo.git("ls-files", "--stage")]).toEqual(
      before,
    );
    const names = PLAYED.map((harness) => `?? ${harness}.txt`).sort();
    expect(all.here.status().trim().split("\n").sort()).toEqual(names);
  });
});

describe("S41: echo x > held-file through the shell tool: refused before, or reported after, with both names", () => {
  together(async (harness, { stranger: owner, second: other, ...all }) => {
    expect(await owner.write("held.txt", "owner\n")).toMatchObject({ is: "done" });
    const refused = await other.shell("echo x > held.txt");
    expect(refused).toMatchObject({ is: "denied" });
    expect(refused.reason).toContain(agentOf(owner));
    expect(all.here.read("held.txt")).toBe("owner\n");

    all.here.write("change.sh", "echo y >> held.txt\n");
    // What the owner was given leave for a moment ago is its own doing, for all that anybody can tell.
    await new Promise((resolve) => setTimeout(resolve, SLACK_MS));
    const told = await until("it is on record", async () => {
      const outcome = await other.shell("sh ./change.sh");
      expect(outcome.is).toBe("done");
      const { data } = await all.here.ask("guard", "status");
      const text = JSON.stringify(data["violations"]);
      return text === "[]" ? false : { text, outcome };
    });
    expect(all.here.read("held.txt")).toMatch(/^owner\n(y\n)+$/);
    expect(told.text).toContain(agentOf(owner));
    expect(told.text).toContain(agentOf(other));
    // Copilot takes nothing from a hook but a refusal.
    if (harness !== "copilot") expect(told.outcome.told.join()).toContain(agentOf(owner));
  });
});

describe("S42: each harness's real input: an allowed write is silent, a refused one is understood", () => {
  together(async (harness, { stranger: owner, second: other }) => {
    await other.prompt();
    const allowed = await other.write("free.txt", "x\n");
    expect(allowed).toMatchObject({ is: "done", told: [], failures: [] });
    expect(allowed.hooks).toBeGreaterThan(0);
    expect(await owner.write("theirs.txt", "owner\n")).toMatchObject({ is: "done" });
    const refused = await other.write("theirs.txt", "other\n");
    expect(refused).toMatchObject({ is: "denied", failures: [], endsTurn: harness === "claude" });
    expect(refused.reason).toContain(`theirs.txt is still held by ${agentOf(owner)}`);
    await other.stop();
    await other.end();
  });
});

describe("the same edit reported twice has one effect", () => {
  const READERS: readonly (readonly [Played, number])[] = [
    ["cursor", 2],
    ["copilot", 2],
  ];

  it.each(READERS)("%s also reads Claude Code's settings", async (harness, times) => {
    const all = await scene();
    const agent = await all.rig.hire(harness);
    const outcome = await agent.write("shared.txt", "mine\n");
    expect(outcome).toMatchObject({ is: "done", failures: [] });
    expect(outcome.hooks, "both were asked").toBeGreaterThanOrEqual(times);
    expect(leasesOn(all, "shared.txt")).toHaveLength(1);
    expect(await holderOf(all, "shared.txt")).toBe(agentOf(agent));
    const other = await all.rig.hire("codex");
    expect(await other.write("shared.txt", "theirs\n")).toMatchObject({ is: "denied" });
    await agent.end();
    expect(await holderOf(all, "shared.txt")).toBeNull();
  });

  describe("installed for the project and for the user", () => {
    together(async (harness, { stranger: other, ...all }) => {
      await all.here.ask("agent", "install", harness, "--user");
      const agent = await all.rig.hire(harness);
      expect(await agent.write("twice.txt", "mine\n")).toMatchObject({ is: "done", failures: [] });
      expect(leasesOn(all, "twice.txt")).toHaveLength(1);
      expect(await other.write("twice.txt", "theirs\n")).toMatchObject({ is: "denied" });
    });
  });
});

describe("settings that are committed", () => {
  it("guard whoever has the program, and stop nobody who has not", async () => {
    const all = await scene(SOON, "--all", "--shared");
    const { rig, here } = all;
    for (const harness of PLAYED)
      expect(await (await rig.hire(harness)).write("shared.txt", `${harness}\n`), harness).toMatchObject({
        is: "done",
        failures: [],
      });
    expect(here.repo.logOf("file:shared.txt"), "nothing was asked: there is no such program").toEqual([]);
    const onPath = {
      ...SOON,
      PATH: `${path.dirname((await import("../support/program")).PROGRAM)}:${process.env["PATH"]}`,
    };
    const place = { root: here.repo.root, home: here.home, log: here.repo.logFile, journal: null };
    const found = new Rig(program, null, place, onPath);
    rigs.push(found);
    const [first, second] = [await found.hire("copilot"), await found.hire("gemini")];
    expect(await first.write("shared.txt", "first\n")).toMatchObject({ is: "done" });
    expect(await second.write("shared.txt", "second\n")).toMatchObject({ is: "denied" });
  });
});

describe("S37: the owner is killed with SIGKILL: the next contender gets the file at once", () => {
  together(async (_, { second: owner, stranger: next, ...all }) => {
    expect(await owner.write("owned.txt", "owner\n")).toMatchObject({ is: "done" });
    await owner.kill();
    expect(await next.write("owned.txt", "next\n")).toMatchObject({ is: "done" });
    const line = all.here.repo.logOf("file:owned.txt").at(-1)!;
    expect(line.payload.ended).toMatchObject([{ agent_id: agentOf(owner), cause: "dead" }]);
  });
});
