import { join } from "node:path";
import { type AgentProgram, PLATFORM } from "../program";

const EVENTS = [
  "SessionStart",
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "SubagentStart",
  "SubagentStop",
  "Stop",
  "SessionEnd",
];

export const claude: AgentProgram = {
  name: "claude",
  title: "Claude Code",
  harness: "claude",
  packages: [{ name: "@anthropic-ai/claude-code", version: "2.1.325" }],
  prepare() {},
  start: ({ installed, port }, prompt) => ({
    command: join(installed.folder, `node_modules/@anthropic-ai/claude-code-${PLATFORM}/claude`),
    args: [
      ...["-p", prompt, "--model", "claude-sonnet-4-5", "--permission-mode", "acceptEdits"],
      ...["--allowedTools", "Bash,Write,Edit,Read,Agent,NotebookEdit,EnterWorktree,ExitWorktree"],
    ],
    env: {
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
      ANTHROPIC_API_KEY: "scripted",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
    },
  }),
  tools: {
    write: (file_path, content) => ({ tool: "Write", input: { file_path, content } }),
    async edit(talk, file_path, old_string, new_string) {
      await talk.use({ tool: "Read", input: { file_path } });
      return talk.use({ tool: "Edit", input: { file_path, old_string, new_string } });
    },
    shell: (command) => ({ tool: "Bash", input: { command, description: "a step" } }),
    background: (command) => ({
      tool: "Bash",
      input: { command, description: "a step", run_in_background: true },
    }),
    delegate: (prompt) => ({
      tool: "Agent",
      input: { description: "a part", prompt, subagent_type: "general-purpose", run_in_background: false },
    }),
    await: null,
    worktrees: {
      enter: (name) => ({ tool: "EnterWorktree", input: { name } }),
      // It cannot tell by itself what is in a worktree that a hook has made, and wants to be told to go on.
      leave: () => ({ tool: "ExitWorktree", input: { action: "remove", discard_changes: true } }),
    },
  },
  trust: null,
  settings: ".claude/settings.local.json",
  ownSettings: (command) => ({
    path: ".claude/settings.local.json",
    text: `{\r\n\t"permissions": {"allow": ["Bash(ls:*)"]},\r\n\t"hooks": {"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": ${JSON.stringify(command)}}]}]}}`,
  }),
  recordingSettings: (command) => ({
    path: ".claude/settings.local.json",
    text: nested(EVENTS, (event) => ({ type: "command", command: `${command} ${event}` })),
  }),
};

/** Claude Code's shape, which Codex and Gemini CLI share. */
export function nested(events: readonly string[], hook: (event: string) => object): string {
  const hooks = Object.fromEntries(events.map((event) => [event, [{ hooks: [hook(event)] }]]));
  return JSON.stringify({ hooks });
}
