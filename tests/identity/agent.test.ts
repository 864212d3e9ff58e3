import * as os from "node:os";
import * as path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CotenantError } from "../../src/errors/cotenant-error";
import { type AgentQuestion, humanAgentId, resolveAgent } from "../../src/identity/agent";
import { detectHarness, HARNESS_NAMES } from "../../src/identity/harness";
import { harnessAgentId, subagentId } from "../../src/identity/harness-agent";
import { type AgentId, parseAgentId, parseSessionId } from "../../src/kernel/ids";
import { isRefusal } from "../../src/kernel/refusal";
import { nodePlatform } from "../../src/platform/node/node";
import { temporaryDirectory, write } from "./temporary";

const platform = nodePlatform();
const home = temporaryDirectory();
const emptyHome = path.join(home, "empty");
const homeWith = (name: string, toml: string) => {
  write(path.join(home, name, ".config/cotenant/agent.toml"), toml);
  return path.join(home, name);
};
const alice = homeWith("alice", '[agent]\nid = "agent:from-file"\n');
const human = homeWith("human", '[agent]\nid = "human:alice"\n');
const nameless = homeWith("nameless", '[agent]\ndescription = "no id"\n');

const UUID = "7f3c2b1a-90de-4f12-8abc-0123456789ab";
const claude = { CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: UUID };

function ask(question: Partial<AgentQuestion> = {}) {
  return resolveAgent({
    platform,
    env: {},
    home: emptyHome,
    isTerminal: false,
    controlDir: null,
    ...question,
  });
}

async function failure(question: Partial<AgentQuestion> = {}): Promise<CotenantError> {
  return ask(question).then(
    ({ agentId }) => {
      throw new Error(`it is ${agentId}`);
    },
    (error: unknown) => error as CotenantError,
  );
}

describe("the agent id", () => {
  it("comes from the first source that has one, and says which", async () => {
    const everything = {
      flags: { agentId: "agent:flag", session: "s-flag" },
      env: { ...claude, COTENANT_AGENT_ID: "ci:environment", COTENANT_SESSION_ID: "s-env", USER: "bob" },
      home: alice,
      isTerminal: true,
    };
    expect(await ask(everything)).toMatchObject({
      agentId: "agent:flag",
      agentFrom: "flag",
      sessionId: "s-flag",
      sessionFrom: "flag",
    });
    expect(await ask({ ...everything, flags: {} })).toMatchObject({
      agentId: "ci:environment",
      agentFrom: "environment",
      sessionId: "s-env",
      sessionFrom: "environment",
    });
    expect(await ask({ ...everything, flags: {}, env: claude })).toMatchObject({
      agentId: "agent:claude-7f3c2b1a",
      agentFrom: "harness",
      sessionId: UUID,
      sessionFrom: "harness",
      harness: { name: "claude", sessionId: UUID },
    });
    expect(await ask({ home: alice, isTerminal: true, env: { USER: "bob" } })).toMatchObject({
      agentId: "agent:from-file",
      agentFrom: "agent.toml",
      sessionId: "default",
      sessionFrom: "default",
      harness: null,
    });
    expect(await ask({ isTerminal: true, env: { USER: "bob" } })).toMatchObject({
      agentId: "human:bob",
      agentFrom: "terminal",
    });
    expect(await ask({ isTerminal: true, env: { USER: "bob" }, home: nameless })).toMatchObject({
      agentId: "human:bob",
    });
  });

  it("of a person in a terminal is the system's name for the user where the environment has none", async () => {
    const { agentId } = await ask({ isTerminal: true });
    expect(agentId).toBe(humanAgentId(os.userInfo().username));
    const processes = new Proxy(platform.processes, {
      get: (of, name) => (name === "userName" ? () => null : Reflect.get(of, name).bind(of)),
    });
    const unknown = await ask({ isTerminal: true, platform: { ...platform, processes } });
    expect(unknown.agentId).toBe(`human:${platform.processes.self().user}`);
  });

  it("is asked for, with the line to run, where nobody says", async () => {
    for (const question of [{}, { home: null }, { env: { USER: "bob", COTENANT_AGENT_ID: "" } }]) {
      const error = await failure(question);
      expect(error).toMatchObject({ code: "E_AGENT_ID_REQUIRED" });
      expect(error.hint).toContain("export COTENANT_AGENT_ID=agent:");
      expect(error.hint).toContain("--agent-id human:<you>");
    }
    // A harness that does not tell its session is nobody in particular, also on a terminal.
    const gemini = await failure({ env: { GEMINI_CLI: "1", USER: "bob" }, isTerminal: true });
    expect(gemini).toMatchObject({ code: "E_AGENT_ID_REQUIRED" });
    expect(gemini.hint).toContain("export COTENANT_AGENT_ID=agent:gemini-1");
    expect(gemini.hint).not.toContain("human:");
    expect(await ask({ env: { GEMINI_CLI: "1" }, home: alice })).toMatchObject({ agentFrom: "agent.toml" });
  });

  it("of a person is refused inside a harness, wherever it came from", async () => {
    const noSession = { CLAUDECODE: "1" };
    const questions: Partial<AgentQuestion>[] = [
      { env: claude, flags: { agentId: "human:alice" } },
      { env: claude, flags: { agentId: "admin:root" } },
      { env: { ...claude, COTENANT_AGENT_ID: "human:alice" } },
      { env: { ...claude, COTENANT_AGENT_ID: "admin:root" }, isTerminal: true },
      { env: noSession, home: human },
    ];
    for (const question of questions) {
      const error = await failure(question);
      expect(error).toMatchObject({ code: "E_POLICY" });
      expect(error.hint).toContain("agent:claude-1");
    }
    for (const agentId of ["agent:x", "ci:x"]) {
      expect(await ask({ env: claude, flags: { agentId } })).toMatchObject({ agentId });
    }
    expect(await ask({ flags: { agentId: "admin:root" } })).toMatchObject({ agentId: "admin:root" });
    expect(await ask({ home: human })).toMatchObject({ agentId: "human:alice", agentFrom: "agent.toml" });
  });

  it("that is none is named with its source", async () => {
    const flag = await failure({ flags: { agentId: "alice" } });
    expect(flag).toMatchObject({ code: "E_USAGE" });
    expect(flag.message).toContain("--agent-id");
    expect((await failure({ env: { COTENANT_AGENT_ID: "robot:x" } })).message).toContain("COTENANT_AGENT_ID");
    expect((await failure({ flags: { agentId: "agent:x", session: "a b" } })).message).toContain("--session");
    const file = await failure({ home: homeWith("bad", '[agent]\nid = "alice"\n') });
    expect(file).toMatchObject({ code: "E_CONFIG", data: { line: 2, key: "agent.id" } });
  });

  it("of a user fits the alphabet, whatever the user is called", () => {
    expect(humanAgentId("alice")).toBe("human:alice");
    expect(humanAgentId("CORP\\jürgen müller")).toBe("human:jurgen-muller");
    expect(humanAgentId("_www")).toBe("human:www");
    expect(humanAgentId("名前")).toBe("human:unnamed");
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 150 }), (user) => {
        expect(isRefusal(parseAgentId(humanAgentId(user)))).toBe(false);
      }),
    );
  });
});

describe("a harness", () => {
  it.each([
    [{ CLAUDECODE: "1" }, "claude", null],
    [claude, "claude", UUID],
    [{ CODEX_THREAD_ID: "t1" }, "codex", "t1"],
    [{ CODEX_SANDBOX: "seatbelt" }, "codex", null],
    [{ CODEX_CI: "1" }, "codex", null],
    [{ CURSOR_AGENT: "1" }, "cursor", null],
    [{ CURSOR_AGENT: "1", CURSOR_CONVERSATION_ID: "c1" }, "cursor", "c1"],
    [{ GEMINI_CLI: "1" }, "gemini", null],
    [{ GEMINI_CLI: "1", GEMINI_SESSION_ID: "g1" }, "gemini", "g1"],
    [{ COPILOT_CLI: "1", COPILOT_AGENT_SESSION_ID: "p1" }, "copilot", "p1"],
    [{ COPILOT_AGENT: "1" }, "copilot", null],
    [{ OPENCODE: "1", OPENCODE_PID: "7" }, "opencode", null],
    [{ OPENCODE: "1", OPENCODE_SESSION_ID: "ses_1" }, "opencode", "ses_1"],
    [{ QWEN_CODE: "1", QWEN_CODE_SESSION_ID: "q1" }, "qwen", "q1"],
    [{ PI_CODING_AGENT: "true" }, "pi", null],
    [{ PI_CODING_AGENT: "true", AI_AGENT: "pi", PI_SESSION_ID: "p2" }, "pi", "p2"],
    // nested: the session that is known wins, then the one more often run inside another
    [{ ...claude, CODEX_THREAD_ID: "t1" }, "codex", "t1"],
    [{ ...claude, CODEX_SANDBOX: "seatbelt" }, "claude", UUID],
    [{ ...claude, CURSOR_AGENT: "1", CURSOR_CONVERSATION_ID: "c1" }, "claude", UUID],
  ])("is known by what it sets: %j", (env, name, sessionId) => {
    expect(detectHarness(env)).toEqual({ name, sessionId });
  });

  it.each([
    {},
    { CLAUDECODE: "" },
    { CLAUDECODE: "0" },
    { CODEX_HOME: "/x" },
    { CURSOR_TRACE_ID: "x" },
    { CURSOR_CONVERSATION_ID: "x" },
    { COPILOT_MODEL: "x", COPILOT_GITHUB_TOKEN: "x" },
    { GEMINI_API_KEY: "x", GEMINI_CLI_HOME: "x" },
    { QWEN_HOME: "/x", PI_CODING_AGENT_DIR: "/x" },
    { TERM_PROGRAM: "vscode", VSCODE_PID: "1" },
    { AGENT: "1", CI: "true" },
  ])("is not seen in what people and editors set: %j", (env) => {
    expect(detectHarness(env)).toBeNull();
  });

  it("tells its sessions apart, also when their ids begin with the time", () => {
    const id = (session: string) => harnessAgentId(platform.digest, "codex", session);
    expect(id(UUID)).toBe("agent:codex-7f3c2b1a");
    expect(id("019d1afb-b2c7-72d3-b240-f3ee9d31b2c9")).toBe("agent:codex-9d31b2c9");
    expect(id("01HXJK2M3N4P5Q6R7S8T9VWXYZ")).toBe("agent:codex-T9VWXYZ".replace("T9VWXYZ", "8T9VWXYZ"));
    expect(id("ses_3f2a9c1b5ffeAbCdEfGhIjKlMn")).toBe("agent:codex-GhIjKlMn");
    expect(id("short")).toBe("agent:codex-short");
    expect(id("a:b:c:d:e")).toBe("agent:codex-a-b-c-d-");
    expect(id("a session / with spaces")).toMatch(/^agent:codex-[0-9a-f]{8}$/);
  });

  it("tells its subagents apart, also when their ids begin with what they are for", () => {
    const id = (subagent: string) => subagentId(platform.digest, "agent:a" as AgentId, subagent);
    expect(id("a1b2c3d4e5f60718")).toBe("agent:a.a1b2c3d4");
    expect(id(`agent-${UUID}`)).toBe("agent:a.7f3c2b1a");
    expect(id("one")).toBe("agent:a.one");
    // Qwen Code's
    expect(id("general-purpose-call_bd3c71")).toBe("agent:a.l_bd3c71");
    expect(id("Explore-call_0")).toBe("agent:a.e-call_0");
    expect(id("Explore-call_1")).not.toBe(id("Explore-call_0"));
  });

  it("never makes an id that is none, whatever its session is called", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "binary", minLength: 1, maxLength: 200 }).filter((s) => !/^(0|false)$/i.test(s)),
        fc.constantFrom(...HARNESS_NAMES),
        async (session, name) => {
          const agentId = harnessAgentId(platform.digest, name, session);
          expect(isRefusal(parseAgentId(agentId))).toBe(false);
          expect(harnessAgentId(platform.digest, name, session)).toBe(agentId);
          expect(isRefusal(parseAgentId(subagentId(platform.digest, agentId, session)))).toBe(false);
          const { sessionId } = await ask({ env: { CLAUDECODE: "1", CLAUDE_CODE_SESSION_ID: session } });
          expect(isRefusal(parseSessionId(sessionId))).toBe(false);
        },
      ),
    );
  });
});
