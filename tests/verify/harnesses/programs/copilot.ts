import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AgentProgram, PLATFORM } from "../program";

const EVENTS = [
  "sessionStart",
  "userPromptSubmitted",
  "preToolUse",
  "postToolUse",
  "postToolUseFailure",
  "subagentStart",
  "subagentStop",
  "agentStop",
  "errorOccurred",
  "sessionEnd",
];

export const copilot: AgentProgram = {
  name: "copilot",
  title: "Copilot CLI",
  harness: "copilot",
  readsClaudeSettings: true,
  packages: [{ name: "@github/copilot", version: "1.0.102" }],
  prepare({ home }) {
    // Folders that were trusted before.
    rmSync(join(home, ".copilot/config.json"), { force: true });
  },
  start: ({ installed, port }, prompt, isTrusting) => ({
    command: join(installed.folder, `node_modules/@github/copilot-${PLATFORM}/copilot`),
    args: [
      ...["-p", prompt, "--allow-all-tools", "--allow-all-paths"],
      ...["--disable-builtin-mcps", "--no-auto-update"],
      ...(isTrusting ? ["--trust-folder"] : []),
    ],
    env: {
      COPILOT_OFFLINE: "true",
      COPILOT_AUTO_UPDATE: "false",
      COPILOT_PROVIDER_BASE_URL: `http://127.0.0.1:${port}/v1`,
      COPILOT_PROVIDER_API_KEY: "scripted",
      COPILOT_MODEL: "scripted",
    },
  }),
  tools: {
    write: (path, file_text) => ({ tool: "create", input: { path, file_text } }),
    edit: (talk, path, old_str, new_str) => talk.use({ tool: "edit", input: { path, old_str, new_str } }),
    shell: (command) => ({ tool: "bash", input: { command, description: "a step", mode: "sync" } }),
    background: (command) => ({
      tool: "bash",
      input: { command, description: "a step", mode: "async", detach: false },
    }),
    delegate: (prompt) => ({
      tool: "task",
      input: { description: "a part", prompt, agent_type: "general-purpose", name: "part", mode: "sync" },
    }),
    await: null,
  },
  trust: {
    by: "the question at the start, `--trust-folder`",
    async give({ home, repo }) {
      mkdirSync(join(home, ".copilot"), { recursive: true });
      writeFileSync(join(home, ".copilot/config.json"), JSON.stringify({ trustedFolders: [repo] }));
    },
  },
  settings: ".github/hooks/cotenant.json",
  ownSettings: (command) => ({
    path: ".github/hooks/mine.json",
    text: flat(["preToolUse"], () => command),
  }),
  recordingSettings: (command) => ({
    path: ".github/hooks/recording.json",
    text: flat(EVENTS, (event) => `${command} ${event}`),
  }),
};

function flat(events: readonly string[], line: (event: string) => string): string {
  const hooks = Object.fromEntries(events.map((event) => [event, [{ type: "command", bash: line(event) }]]));
  return JSON.stringify({ version: 1, hooks });
}
