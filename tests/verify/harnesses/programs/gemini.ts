import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { headlessGemini } from "../../../../src/features/harnesses/real-canary/programs/gemini";
import { writeQuietSettings } from "../../../../src/features/harnesses/real-canary/programs/quiet-settings";
import type { AgentProgram } from "../program";
import { nested } from "./claude";

const EVENTS = [
  "SessionStart",
  "BeforeAgent",
  "BeforeTool",
  "AfterTool",
  "AfterAgent",
  "Notification",
  "SessionEnd",
];

export const gemini: AgentProgram = {
  ...headlessGemini,
  name: "gemini",
  title: "Gemini CLI",
  packages: [{ name: "@google/gemini-cli", version: "0.61.0" }],
  launcher: ({ folder }) => [
    process.execPath,
    join(folder, "node_modules/@google/gemini-cli/bundle/gemini.js"),
  ],
  tools: {
    ...headlessGemini.tools,
    shell: (command) => ({ tool: "run_shell_command", input: { command, description: "a step" } }),
    background: (command) => ({
      tool: "run_shell_command",
      input: { command, description: "a step", is_background: true },
    }),
    delegate: (prompt) => ({ tool: "invoke_agent", input: { agent_name: "generalist", prompt } }),
    await: null,
  },
  trust: {
    by: "the question at the start",
    demand: ({ home }) =>
      writeQuietSettings(join(home, ".gemini"), "gemini-api-key", { folderTrust: { enabled: true } }),
    async give({ home, repo }) {
      writeFileSync(join(home, ".gemini/trustedFolders.json"), JSON.stringify({ [repo]: "TRUST_FOLDER" }));
    },
  },
  settings: ".gemini/settings.json",
  ownSettings: (command) => ({
    path: ".gemini/settings.json",
    text: `// mine\n{\n   "hooks": { "BeforeTool": [ { "matcher": ".*", "hooks": [ { "name": "m", "type": "command", "command": ${JSON.stringify(command)} } ] } ] }, /* c */\n   "ui": {"hideBanner": true}\n}\n\n`,
  }),
  recordingSettings: (command) => ({
    path: ".gemini/settings.json",
    text: nested(EVENTS, (event) => ({ name: event, type: "command", command: `${command} ${event}` })),
  }),
};
