import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { readReport } from "../../src/features/guard/report";
import { type Answered, runHook } from "../../src/features/guard/run";
import { wishOf } from "../../src/features/guard/tools";
import { resolveAgent } from "../../src/identity/agent";
import { nodePlatform } from "../../src/platform/node/node";
import { GuardedAgent, harnessProcess, TestClock } from "../support/guard";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import type { AgentProgram } from "../verify/harnesses/program";
import { PROGRAMS } from "../verify/harnesses/programs/all";
import { ENVIRONMENT, type RecordedEvent, recordingOf } from "../verify/harnesses/recording";

type Member = "parent" | "child" | "sibling";

const IDS: Readonly<Record<Member, string>> = {
  parent: "aaaaaaaa-0000-4000-8000-000000000001",
  child: "bbbbbbbb-0000-4000-8000-000000000002",
  sibling: "cccccccc-0000-4000-8000-000000000003",
};

/** A parent and its subagents, in the words that their program was heard to use. */
class Family {
  readonly #repo: TestRepo;
  readonly #program: AgentProgram;
  readonly #events: readonly RecordedEvent[];
  readonly #world: GuardedAgent["world"];
  readonly #cursorData = scratch();
  readonly #parentId: string;
  /** Which id of the recording is the child's; null where its events have none. */
  readonly childId: string | null;

  constructor(repo: TestRepo, program: AgentProgram, clock: TestClock) {
    this.#repo = repo;
    this.#program = program;
    this.#events = (recordingOf(program) ?? []).filter(({ event }) => event !== ENVIRONMENT);
    const env = { CURSOR_PROJECT_DIR: repo.root, CURSOR_DATA_DIR: this.#cursorData };
    this.#world = new GuardedAgent(repo, { session: "s", pid: harnessProcess().pid, clock, env }).world;
    const [parent, child] = ["new.txt", "part.txt"].map((name) => this.#idOf(this.#writeOf(name)));
    this.#parentId = parent!;
    this.childId = child === parent ? null : child!;
  }

  write(who: Member, file: string): Promise<Answered> {
    const recorded = this.#writeOf(who === "parent" ? "new.txt" : "part.txt");
    return this.#send(recorded, who, (text) => text.replaceAll(/(?:new|part)\.txt/g, file));
  }

  /** A command of the parent's. */
  shell(command: string): Promise<Answered> {
    const recorded = this.#events.find(({ payload }) => JSON.stringify(payload).includes("exit 3"))!;
    return this.#send(recorded, "parent", (text) =>
      text.replaceAll("echo out; echo err >&2; exit 3", command),
    );
  }

  /** Everything that tells of a subagent's end, in the order in which it was heard. */
  async end(who: Exclude<Member, "parent">): Promise<void> {
    if (this.#program.harness === "cursor") return this.#endInCursor(who);
    for (const recorded of this.#events) {
      const report = readReport(
        this.#program.harness,
        recorded.event,
        passedOn(this.#program, recorded, this.childId),
      );
      if (report?.moment === "done" && report.subagent !== null) await this.#send(recorded, who);
    }
  }

  /** Its own record has a last line then. */
  async #endInCursor(who: Member): Promise<void> {
    this.relate(who, '{"type":"turn_ended","status":"success"}\n');
  }

  /** What Cursor itself puts down while a subagent works. */
  relate(who: Member, line = '{"role":"user"}\n'): void {
    const project = this.#repo.root.replace(/[^a-zA-Z0-9]+/g, "-").replace(/^-|-$/g, "");
    const folder = path.join(
      this.#cursorData,
      "projects",
      project,
      "agent-transcripts",
      `agent-${IDS.parent}`,
    );
    fs.mkdirSync(path.join(folder, "subagents"), { recursive: true });
    fs.writeFileSync(path.join(folder, "subagents", `${IDS[who]}.jsonl`), `{"role":"user"}\n${line}`);
  }

  #idOf(recorded: RecordedEvent): string {
    const report = readReport(
      this.#program.harness,
      recorded.event,
      passedOn(this.#program, recorded, null),
    )!;
    return /<(?:id|call)-\d+>/.exec(`${report.subagent ?? report.sessionId}`)![0];
  }

  #writeOf(name: string): RecordedEvent {
    return this.#events.find((recorded) => {
      const report = readReport(
        this.#program.harness,
        recorded.event,
        passedOn(this.#program, recorded, null),
      );
      const wish = report?.moment === "before" ? wishOf(report) : null;
      return wish?.kind === "files" && wish.paths.some((file) => file.endsWith(`/${name}`));
    })!;
  }

  #send(recorded: RecordedEvent, who: Member, change = (text: string) => text): Promise<Answered> {
    const document = passedOn(this.#program, recorded, who === "parent" ? null : this.childId);
    const text = change(JSON.stringify(document))
      .replaceAll("<root>", this.#repo.root)
      .replaceAll(this.childId ?? "<none>", IDS[who])
      .replaceAll(this.#parentId, IDS.parent);
    const { harness } = this.#program;
    return runHook(this.#world, { harness, event: recorded.event, patienceMs: 10_000 }, { text });
  }
}

/** What our plugin makes of opencode's two arguments: it knows the parents. */
function passedOn(
  { harness }: AgentProgram,
  { event, payload }: RecordedEvent,
  childId: string | null,
): object {
  if (harness !== "opencode") return payload;
  const { input, output, properties } = payload;
  const said =
    input === undefined
      ? { sessionID: properties?.sessionID }
      : { ...input, args: input.args ?? output?.args };
  const isChild = childId !== null && said.sessionID === `ses_${childId}`;
  return {
    event,
    ...said,
    ...(isChild ? { parentID: "ses_<id-2>", childID: said.sessionID } : {}),
    directory: "<root>",
  };
}

let repo: TestRepo;
let clock: TestClock;
beforeEach(() => {
  repo = TestRepo.make();
  for (const file of ["a.txt", "b.txt"]) repo.write(file, "one\n");
  repo.write(".cotenant/config.toml", "# nothing\n");
  repo.git("add", "a.txt", "b.txt");
  repo.git("commit", "--quiet", "--message", "first");
  clock = new TestClock();
});

const holders = (key: string) => {
  let holder: string | null = null;
  for (const { payload } of repo.log()) {
    if (payload.ended?.some((lease) => lease.key === key)) holder = null;
    const taken = payload.leases?.find((lease) => lease.key === key);
    if (taken !== undefined) holder = taken.agent_id;
  }
  return holder;
};

describe.each(PROGRAMS.filter(({ tools }) => tools.delegate !== null))("a family in $title", (program) => {
  const stranger = () => new GuardedAgent(repo, { session: "eeeeeeee-9", clock });
  /** Whether its events tell two subagents of one session apart. */
  const tellsApart = program.harness !== "gemini";

  it("is one for parent and child, apart for live siblings; the end of a child frees", async () => {
    const family = new Family(repo, program, clock);
    expect(family.childId === null, "its events name the child").toBe(!tellsApart);
    /** Cursor writes it anew with every step of a subagent. */
    const relate = () => {
      if (program.harness === "cursor") for (const who of ["child", "sibling"] as const) family.relate(who);
    };
    relate();
    const may = async (who: Member, file = "a.txt") => (await family.write(who, file)).allowed;
    expect([await may("child"), await may("parent"), await may("child")], "in line").toEqual([
      true,
      true,
      true,
    ]);
    expect((await stranger().write("a.txt")).allowed, "somebody else").toBe(false);
    relate();
    expect(await may("sibling"), "while the child is at it").toBe(!tellsApart);
    expect(await may("sibling", "b.txt")).toBe(true);
    await family.end("child");
    expect((await stranger().write("b.txt")).allowed, "somebody else, of what a live one holds").toBe(false);
    clock.aheadMs += 180_000;
    expect(await may("sibling"), "after the child has finished").toBe(true);
    const done = repo.log().filter(({ event_type: type }) => type === "guard.subagent_done");
    expect(done.length, "said once").toBeLessThanOrEqual(1);
    expect(await may("parent"), "what a live one holds").toBe(true);
    expect(holders("file:a.txt")).not.toContain(".");
  });
});

describe("subagents", () => {
  const pid = () => harnessProcess().pid;

  it("that have finished and are sent on hold what they take since", async () => {
    const shared = { session: "aaaaaaaa-1", clock, pid: pid() };
    const one = new GuardedAgent(repo, { ...shared, subagent: "sub-one" });
    const two = new GuardedAgent(repo, { ...shared, subagent: "sub-two" });
    await one.write("a.txt");
    clock.aheadMs += 10;
    await one.send("done");
    clock.aheadMs += 10;
    await one.write("b.txt");
    expect([(await two.write("a.txt")).allowed, (await two.write("b.txt")).allowed]).toEqual([true, false]);
    await one.send("done");
    clock.aheadMs += 180_000;
    expect((await two.write("b.txt")).allowed).toBe(true);
  });

  it("of Cursor let go before their parent runs a command, once they have finished", async () => {
    const cursor = PROGRAMS.find(({ name }) => name === "cursor")!;
    const family = new Family(repo, cursor, clock);
    for (const who of ["child", "sibling"] as const) {
      await family.write(who, who === "child" ? "a.txt" : "b.txt");
      family.relate(who);
    }
    await family.end("child");
    await family.shell("git commit -qm ours -- a.txt");
    expect([holders("file:a.txt"), holders("file:b.txt")]).toEqual([null, "agent:cursor-cccccccc"]);
  });

  it("of Cursor let go when their end is told in their parent's conversation", async () => {
    const { world } = new GuardedAgent(repo, { session: "s", clock, pid: pid() });
    const say = (event: string, conversation: string, more: object) => {
      const base = {
        conversation_id: conversation,
        generation_id: conversation,
        workspace_roots: [repo.root],
      };
      const text = JSON.stringify({ ...base, hook_event_name: event, ...more });
      return runHook(world, { harness: "cursor", event, patienceMs: 10_000 }, { text });
    };
    const write = (conversation: string) =>
      say("preToolUse", conversation, {
        tool_name: "Write",
        tool_input: { file_path: path.join(repo.root, "a.txt"), content: "" },
      });
    expect((await write(IDS.child)).allowed).toBe(true);
    expect((await write(IDS.sibling)).allowed).toBe(false);
    await say("subagentStop", IDS.parent, { subagent_id: IDS.child, parent_conversation_id: IDS.parent });
    expect((await write(IDS.sibling)).allowed).toBe(true);
  });

  const platform = nodePlatform();
  const inShell = (env: Record<string, string>) =>
    resolveAgent({ platform, env, home: null, isTerminal: false, controlDir: repo.control });

  it("are known in their own shell, where it has an id of theirs", async () => {
    const child = new GuardedAgent(repo, {
      harness: "codex",
      session: IDS.parent,
      subagent: IDS.child,
      clock,
      pid: pid(),
    });
    const env = { CODEX_THREAD_ID: IDS.child };
    expect(await inShell(env)).toMatchObject({ agentId: "agent:codex-bbbbbbbb", sessionId: IDS.child });
    await child.shell("true");
    expect(await inShell(env)).toMatchObject({
      agentId: "agent:codex-aaaaaaaa.bbbbbbbb",
      sessionId: IDS.parent,
      agentFrom: "harness",
    });
    expect((await inShell({ CODEX_THREAD_ID: IDS.sibling })).sessionId).toBe(IDS.sibling);
    expect((await inShell({ ...env, COTENANT_AGENT_ID: "agent:me" })).agentId).toBe("agent:me");
  });

  it("are known by their process where their shell has an id that no event names", async () => {
    const shell = (session: string) => {
      const { world } = new GuardedAgent(repo, { session, clock, pid: process.ppid });
      const said = { sessionId: session, timestamp: 1, cwd: repo.root, toolName: "bash" };
      const text = JSON.stringify({ ...said, toolArgs: { command: "true" } });
      return runHook(world, { harness: "copilot", event: "preToolUse", patienceMs: 10_000 }, { text });
    };
    const env = { COPILOT_AGENT_SESSION_ID: "dddddddd-0000-4000-8000-000000000004" };
    const alone = { agentId: "agent:copilot-dddddddd", sessionId: env.COPILOT_AGENT_SESSION_ID };
    expect(await inShell(env)).toMatchObject(alone);
    for (let i = 0; i < 2; i++) await shell(IDS.parent);
    expect(await inShell(env)).toMatchObject({ agentId: "agent:copilot-aaaaaaaa", sessionId: IDS.parent });
    // Two sessions in one process: nobody can tell whose it is.
    await shell(IDS.sibling);
    expect(await inShell(env)).toMatchObject(alone);
  });
});
