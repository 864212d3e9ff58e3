import { join } from "node:path";
import { headlessClaude } from "../../../../src/features/harnesses/real-canary/programs/claude";
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
  ...headlessClaude,
  name: "claude",
  title: "Claude Code",
  packages: [{ name: "@anthropic-ai/claude-code", version: "2.1.325" }],
  launcher: ({ folder }) => [join(folder, `node_modules/@anthropic-ai/claude-code-${PLATFORM}/claude`)],
  tools: {
    ...headlessClaude.tools,
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
