import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { HARNESSES } from "../../src/features/guard/harness";
import { readReport } from "../../src/features/guard/report";
import { readCommand } from "../../src/features/guard/shell/walk";
import { wishOf } from "../../src/features/guard/tools";
import { HARNESS_NAMES, type HarnessName } from "../../src/identity/harness";
import { ROOT } from "../house/source";

interface Sample {
  readonly event: string;
  readonly borrowed: boolean;
  readonly payload: unknown;
}

function samples(harness: HarnessName): Sample[] {
  const text = fs.readFileSync(path.join(ROOT, `testing/corpora/harness-events/${harness}.jsonl`), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Sample);
}

const SHELL = "echo hello > 'it s.txt' && sed -i s/a/b/ README.md";

describe("what each harness sends, as recorded", () => {
  it.each(HARNESS_NAMES)("%s: every event is understood, with who and where", (harness) => {
    const known = new Set(HARNESSES[harness].events.map(({ name }) => name));
    let understood = 0;
    for (const { event, borrowed, payload } of samples(harness)) {
      const report = readReport(borrowed ? "claude" : harness, event, payload);
      if (report === null) {
        expect(known.has(event), `${event} is registered, and not understood`).toBe(false);
        continue;
      }
      understood++;
      expect(report).toMatchObject({ sessionId: "<session>", cwd: "<root>" });
      if (!borrowed) expect(report.harness).toBe(harness);
    }
    expect(understood).toBeGreaterThan(6);
  });

  it.each(HARNESS_NAMES)("%s: every file that a tool is about to write is found", (harness) => {
    const files = new Set<string>();
    const commands = new Set<string>();
    for (const { event, borrowed, payload } of samples(harness)) {
      const report = readReport(borrowed ? "claude" : harness, event, payload);
      if (report?.moment !== "before") continue;
      const wish = wishOf(report);
      if (wish?.kind === "files") for (const file of wish.paths) files.add(file.replace(/^<root>\//, ""));
      if (wish?.kind !== "shell") continue;
      commands.add(wish.command);
      for (const { value } of readCommand(wish.command, { cwd: "/r", home: null }).writes)
        for (const file of value ?? []) files.add(file);
    }
    for (const file of ["src/new file.ts", "README.md", "b.txt", "old.txt", "a.ipynb", "it s.txt"])
      expect([...files]).toContain(file);
    expect([...commands]).toContain(SHELL);
  });

  it("knows Cursor and Copilot also where they run Claude Code's hooks", () => {
    for (const harness of ["cursor", "copilot"] as const)
      for (const { event, payload, borrowed } of samples(harness)) {
        const report = borrowed ? readReport("claude", event, payload) : null;
        // Copilot speaks Claude Code's own language there; nothing in it tells the two apart.
        if (report !== null && harness === "cursor")
          expect(report).toMatchObject({ harness, isBorrowed: true });
      }
  });
});

describe("what nobody expects", () => {
  it.each([
    ["no object", [1, 2]],
    ["nothing", null],
    ["text", "PreToolUse"],
    ["an event of tomorrow", { hook_event_name: "BeforeDreaming", session_id: "s" }],
    ["no event", { session_id: "s" }],
  ])("%s: is nothing of ours", (_, document) => {
    expect(readReport("claude", null, document)).toBeNull();
  });

  it("takes nothing that an object inherits", () => {
    const document = JSON.parse(
      '{"hook_event_name":"PreToolUse","__proto__":{"session_id":"x"},"tool_name":"constructor"}',
    );
    const report = readReport("claude", null, document)!;
    expect(report.sessionId).toBeNull();
    expect(wishOf(report)).toBeNull();
  });

  it("finds files in fields of the wrong type harmless", () => {
    for (const input of [
      null,
      7,
      [],
      { file_path: 7 },
      { file_path: null },
      { file_path: { path: "x" } },
      "text",
    ])
      expect(wishOf({ harness: "claude", tool: "Write", input })).toBeNull();
  });
});

describe("tools", () => {
  const files = (harness: HarnessName, tool: string, input: unknown) => {
    const wish = wishOf({ harness, tool, input });
    return wish?.kind === "files" ? wish.paths : null;
  };

  it.each<[HarnessName, string, unknown, string[] | null]>([
    ["claude", "NotebookEdit", { notebook_path: "/r/a.ipynb" }, ["/r/a.ipynb"]],
    ["claude", "MultiEdit", { file_path: "/r/a", edits: [{ old_string: "x" }] }, ["/r/a"]],
    ["claude", "Read", { file_path: "/r/a" }, null],
    ["claude", "TodoWrite", { todos: [] }, null],
    ["claude", "mcp__filesystem__write_file", { path: "/r/a", content: "" }, ["/r/a"]],
    ["claude", "mcp__filesystem__move_file", { source: "/r/a", destination: "/r/b" }, ["/r/a", "/r/b"]],
    // A file of that name is on another machine.
    ["claude", "mcp__github__create_or_update_file", { path: "src/a.ts" }, null],
    ["claude", "EditEverything", { files: ["a", { path: "b" }] }, ["a", "b"]],
    ["cursor", "Delete", { target_file: "a" }, ["a"]],
    ["cursor", "Write", { path: "C:\\src\\a.ts" }, ["C:/src/a.ts"]],
    ["copilot", "str_replace_editor", { command: "view", path: "/r/a" }, null],
    ["copilot", "str_replace_editor", { command: "create", path: "/r/a" }, ["/r/a"]],
    ["copilot", "apply_patch", "*** Begin Patch\n*** Add File: x\n+1\n*** End Patch", ["x"]],
    ["opencode", "patch", { patchText: "*** Begin Patch\n*** Delete File: y\n*** End Patch" }, ["y"]],
    [
      "codex",
      "Edit",
      { command: "*** Begin Patch\n*** Update File: z\n*** Move to: w\n*** End Patch" },
      ["z", "w"],
    ],
  ])("%s %s", (harness, tool, input, expected) => {
    expect(files(harness, tool, input)).toEqual(expected);
  });

  it.each<[HarnessName, string, unknown, string]>([
    ["codex", "Bash", { command: ["bash", "-lc", "echo x > y"] }, "echo x > y"],
    ["codex", "Bash", { command: ["rm", "it's"] }, `'rm' 'it'\\''s'`],
    ["cursor", "Shell", { command: "ls" }, "ls"],
    ["claude", "PowerShell", { command: "Set-Content a b" }, "Set-Content a b"],
  ])("%s %s is a shell", (harness, tool, input, command) => {
    expect(wishOf({ harness, tool, input })).toMatchObject({ kind: "shell", command });
  });
});

describe("subagents that come under ids of their own", () => {
  const copilot = { timestamp: 1, cwd: "/r", agentId: "child", parentAgentId: "session" };
  const opencode = { directory: "/r", sessionID: "child", parentID: "session", childID: "child" };
  it.each([
    ["copilot", "preToolUse", { ...copilot, sessionId: "child" }, "before"],
    ["copilot", "userPromptSubmitted", { ...copilot, sessionId: "child" }, "prompt"],
    ["copilot", "agentStop", { ...copilot, sessionId: "child" }, "done"],
    ["copilot", "subagentStop", { ...copilot, sessionId: "session" }, "done"],
    ["copilot", "errorOccurred", { ...copilot, sessionId: "child" }, "done"],
    ["opencode", "tool.execute.before", opencode, "before"],
    ["opencode", "session.idle", opencode, "done"],
    ["opencode", "session.deleted", opencode, "done"],
  ] as const)(
    "%s, %s: belong to their session, which goes on when they end",
    (harness, event, said, moment) => {
      expect(readReport(harness, event, said)).toMatchObject({
        sessionId: "session",
        subagent: "child",
        moment,
      });
    },
  );
});
