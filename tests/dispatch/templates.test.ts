import { parse } from "smol-toml";
import { describe, expect } from "vitest";
import { type Said, TEMPLATE_NAMES, templateFor } from "../../src/features/dispatch/templates";
import { oneIn } from "../support/one-in";

const it = oneIn(11);

const PROGRAM = { node: "/usr/bin/node", program: "/opt/a 'quoted' place/cotenant" };

function saidBy(name: string, ...lines: string[]): (Said | null)[] {
  const template = templateFor(name, []);
  if (template === null) throw new Error(`no template for ${name}`);
  return lines.map((line) => template.read(line));
}

/** Lines as the programs print them, cut down to the fields that are read. */
describe("what a harness says of itself", () => {
  it("is its last words and what it cost, for Claude Code", () => {
    const line = '{"type":"result","is_error":false,"result":"done","total_cost_usd":0.25}';
    expect(saidBy("claude", '{"type":"assistant","message":{}}', line)).toEqual([
      null,
      { words: "done", costUsd: 0.25 },
    ]);
  });

  it("is the message of the agent, or why the turn failed, for Codex", () => {
    expect(
      saidBy(
        "codex",
        '{"type":"item.completed","item":{"type":"command_execution","command":"true"}}',
        '{"type":"item.completed","item":{"type":"agent_message","text":"done"}}',
        '{"type":"turn.failed","error":{"message":"out of order"}}',
      ),
    ).toEqual([null, { words: "done" }, { words: "out of order" }]);
  });

  it("comes in pieces that anything else ends, for Gemini CLI", () => {
    expect(
      saidBy(
        "gemini",
        '{"type":"message","role":"user","content":"the task"}',
        '{"type":"message","role":"assistant","content":"do","delta":true}',
        '{"type":"message","role":"assistant","content":"ne","delta":true}',
        '{"type":"tool_use","tool_name":"replace"}',
        '{"type":"result","status":"error","error":{"type":"Error","message":"out of order"}}',
      ),
    ).toEqual([{}, { addedWords: "do" }, { addedWords: "ne" }, {}, { words: "out of order" }]);
  });

  it("is the message of the assistant, or an error of the session, for Copilot CLI", () => {
    expect(
      saidBy(
        "copilot",
        '{"type":"assistant.message","data":{"content":"done","toolRequests":[]}}',
        '{"type":"session.error","data":{"errorType":"query","message":"out of order"}}',
        '{"type":"result","exitCode":0,"usage":{"premiumRequests":0}}',
      ),
    ).toEqual([{ words: "done" }, { words: "out of order" }, null]);
  });

  it("is its text, what each step cost, or an error, for opencode", () => {
    expect(
      saidBy(
        "opencode",
        '{"type":"text","part":{"type":"text","text":"done"}}',
        '{"type":"step_finish","part":{"type":"step-finish","cost":0.125}}',
        '{"type":"error","error":{"name":"APIError","data":{"message":"out of order"}}}',
        '{"type":"error","error":{"name":"MessageAbortedError"}}',
      ),
    ).toEqual([
      { words: "done" },
      { addedCostUsd: 0.125 },
      { words: "out of order" },
      { words: "MessageAbortedError" },
    ]);
  });

  it("is nothing where nobody understands it", () => {
    for (const name of TEMPLATE_NAMES)
      expect(saidBy(name, "", "plain words", "{not JSON", "[1]", "{")).toEqual([
        null,
        null,
        null,
        null,
        null,
      ]);
  });
});

describe("how Codex is started", () => {
  it("has the hooks with it that a linked worktree does not give it", () => {
    const hooks = templateFor("codex", [])!.env(PROGRAM)["COTENANT_CODEX_HOOKS"];
    const { hooks: read } = parse(`hooks = ${hooks}`) as {
      hooks: Record<string, { hooks: { type: string; command: string }[] }[]>;
    };
    const [before] = read["PreToolUse"] ?? [];
    expect(before?.hooks[0]?.type).toBe("command");
    expect(before?.hooks[0]?.command).toContain("guard check --harness codex --event PreToolUse");
    expect(before?.hooks[0]?.command).toContain("'/opt/a '\\''quoted'\\'' place/cotenant'");
  });

  it("may write what a commit needs, and neither Git's hooks nor its settings", () => {
    const { line } = templateFor("codex", [])!;
    const places = [...line.matchAll(/--add-dir "([^"]+)"/g)].map(([, place]) => place);
    expect(places).toContain("$COTENANT_GIT_DIR/objects");
    expect(places).not.toContain("$COTENANT_GIT_DIR");
    expect(places.join()).not.toMatch(/hooks|config/);
  });

  it("takes a caller's own arguments behind its verb, quoted", () => {
    expect(templateFor("codex", ["-c", "model='x'"])!.line).toMatch(
      /^codex exec '-c' 'model='\\''x'\\''' --json /,
    );
  });
});

it("answers what opencode would ask a person about, which would end its turn as if it were done", () => {
  const { line, env } = templateFor("opencode", [])!;
  expect(line).toContain(" --auto ");
  expect(JSON.parse(env(PROGRAM)["OPENCODE_PERMISSION"] ?? "")).toEqual({
    external_directory: { "*": "deny", "/tmp/*": "allow" },
  });
});
