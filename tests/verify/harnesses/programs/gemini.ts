import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
  name: "gemini",
  title: "Gemini CLI",
  harness: "gemini",
  packages: [{ name: "@google/gemini-cli", version: "0.61.0" }],
  prepare({ home }) {
    mkdirSync(join(home, ".gemini"), { recursive: true });
    // Folders that were trusted before.
    rmSync(join(home, ".gemini/trustedFolders.json"), { force: true });
    writeSettings(home, {});
  },
  start: ({ installed, port }, prompt, isTrusting) => ({
    command: process.execPath,
    args: [
      join(installed.folder, "node_modules/@google/gemini-cli/bundle/gemini.js"),
      ...["-p", prompt, "-m", "gemini-2.5-pro", "--approval-mode", "yolo"],
    ],
    env: {
      GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${port}`,
      GEMINI_API_KEY: "scripted",
      ...(isTrusting ? { GEMINI_CLI_TRUST_WORKSPACE: "true" } : {}),
    },
  }),
  tools: {
    write: (file_path, content) => ({ tool: "write_file", input: { file_path, content } }),
    edit: (talk, file_path, old_string, new_string) =>
      talk.use({
        tool: "replace",
        input: { file_path, instruction: "change it", old_string, new_string },
      }),
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
    demand: ({ home }) => writeSettings(home, { folderTrust: { enabled: true } }),
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

function writeSettings(home: string, security: object): void {
  const settings = {
    security: { auth: { selectedType: "gemini-api-key" }, ...security },
    general: { enableAutoUpdate: false, disableAutoUpdate: true, disableUpdateNag: true },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
  };
  writeFileSync(join(home, ".gemini/settings.json"), JSON.stringify(settings));
}
