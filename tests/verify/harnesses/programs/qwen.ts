import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
  name: "qwen",
  title: "Qwen Code",
  harness: "qwen",
  packages: [
    { name: "@qwen-code/qwen-code", version: "0.24.4" },
    // It needs Node 22.
    { name: `node-${PLATFORM}`, version: "22.23.3" },
  ],
  prepare({ home }) {
    mkdirSync(join(home, ".qwen"), { recursive: true });
    // Folders that were trusted before.
    rmSync(join(home, ".qwen/trustedFolders.json"), { force: true });
    writeSettings(home, {});
  },
  start: ({ installed, port }, prompt) => {
    const modules = join(installed.folder, "node_modules");
    return {
      command: join(modules, `node-${PLATFORM}/bin/node`),
      args: [
        join(modules, "@qwen-code/qwen-code/cli-entry.js"),
        ...[prompt, "--auth-type", "openai", "-m", "scripted", "--approval-mode", "yolo"],
        // In a folder that is not trusted the mode does not count.
        ...["--allowed-tools", "write_file", "edit", "run_shell_command"],
      ],
      env: {
        OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
        OPENAI_API_KEY: "scripted",
        OPENAI_MODEL: "scripted",
      },
    };
  },
  tools: {
    write: (file_path, content) => ({ tool: "write_file", input: { file_path, content } }),
    async edit(talk, file_path, old_string, new_string) {
      await talk.use({ tool: "read_file", input: { file_path } });
      return talk.use({ tool: "edit", input: { file_path, old_string, new_string } });
    },
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
    demand: ({ home }) => writeSettings(home, { folderTrust: { enabled: true } }),
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

function writeSettings(home: string, security: object): void {
  const settings = {
    security: { auth: { selectedType: "openai" }, ...security },
    general: { enableAutoUpdate: false, disableAutoUpdate: true, disableUpdateNag: true },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
  };
  writeFileSync(join(home, ".qwen/settings.json"), JSON.stringify(settings));
}
