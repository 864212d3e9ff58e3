import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeQuietSettings } from "../../../../src/features/harnesses/real-canary/programs/quiet-settings";
import { headlessQwen } from "../../../../src/features/harnesses/real-canary/programs/qwen";
import { type AgentProgram, PLATFORM } from "../program";
import { nested } from "./claude";

const EVENTS = [
  "SessionStart",
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "SubagentStart",
  "SubagentStop",
  "Stop",
  "StopFailure",
  "SessionEnd",
];

export const qwen: AgentProgram = {
  ...headlessQwen,
  name: "qwen",
  title: "Qwen Code",
  packages: [
    { name: "@qwen-code/qwen-code", version: "0.24.4" },
    // It needs Node 22.
    { name: `node-${PLATFORM}`, version: "22.23.3" },
  ],
  launcher: ({ folder }) => [
    join(folder, `node_modules/node-${PLATFORM}/bin/node`),
    join(folder, "node_modules/@qwen-code/qwen-code/cli-entry.js"),
  ],
  tools: {
    ...headlessQwen.tools,
    shell: (command) => ({
      tool: "run_shell_command",
      input: { command, description: "a step", is_background: false },
    }),
    background: (command) => ({
      tool: "run_shell_command",
      input: { command, description: "a step", is_background: true },
    }),
    delegate: (prompt) => ({
      tool: "agent",
      input: { description: "a part", prompt, subagent_type: "general-purpose", run_in_background: false },
    }),
    await: null,
  },
  trust: {
    by: "the question at the start",
    demand: ({ home }) =>
      writeQuietSettings(join(home, ".qwen"), "openai", { folderTrust: { enabled: true } }),
    async give({ home, repo }) {
      writeFileSync(join(home, ".qwen/trustedFolders.json"), JSON.stringify({ [repo]: "TRUST_FOLDER" }));
    },
  },
  settings: ".qwen/settings.json",
  // Without the version it would write the file anew itself.
  ownSettings: (command) => ({
    path: ".qwen/settings.json",
    text: `// mine\n{\n   "hooks": { "PreToolUse": [ { "matcher": "*", "hooks": [ { "name": "m", "type": "command", "command": ${JSON.stringify(command)} } ] } ] }, /* c */\n   "ui": {"hideTips": true}, "$version": 4\n}\n\n`,
  }),
  recordingSettings: (command) => ({
    path: ".qwen/settings.json",
    text: nested(EVENTS, (event) => ({ name: event, type: "command", command: `${command} ${event}` })),
  }),
};
