import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AgentProgram, PLATFORM } from "../program";

export const opencode: AgentProgram = {
  name: "opencode",
  title: "opencode",
  harness: "opencode",
  packages: [{ name: "opencode-ai", version: "1.18.33" }],
  prepare({ home, port }) {
    const folder = join(home, ".config/opencode");
    mkdirSync(folder, { recursive: true });
    const models = {
      scripted: { name: "scripted", tool_call: true, limit: { context: 200_000, output: 8_000 } },
    };
    const options = { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "scripted" };
    const settings = {
      autoupdate: false,
      share: "disabled",
      model: "scripted/scripted",
      small_model: "scripted/scripted",
      permission: { edit: "allow", bash: "allow", external_directory: "allow" },
      provider: {
        scripted: { npm: "@ai-sdk/openai-compatible", name: "scripted", options, models },
      },
    };
    writeFileSync(join(folder, "opencode.json"), JSON.stringify(settings));
  },
  start: ({ installed }, prompt) => ({
    command: join(installed.folder, `node_modules/opencode-${PLATFORM}/bin/opencode`),
    args: ["run", prompt, "-m", "scripted/scripted"],
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    },
  }),
  tools: {
    write: (filePath, content) => ({ tool: "write", input: { filePath, content } }),
    async edit(talk, filePath, oldString, newString) {
      await talk.use({ tool: "read", input: { filePath } });
      return talk.use({ tool: "edit", input: { filePath, oldString, newString } });
    },
    shell: (command) => ({ tool: "bash", input: { command, description: "a step" } }),
    // It has no way of its own: an agent that wants one writes it like this.
    background: (command) => ({
      tool: "bash",
      input: { command: `${command} >/dev/null 2>&1 &`, description: "a step" },
    }),
    delegate: (prompt) => ({
      tool: "task",
      input: { description: "a part", prompt, subagent_type: "general" },
    }),
    await: null,
  },
  trust: null,
  settings: ".opencode/plugins/cotenant.js",
  leavings: /^\.opencode(?:\/(?:node_modules|package(?:-lock)?\.json|bun\.lock|\.gitignore).*)?$/,
  ownSettings: (command) => ({
    path: ".opencode/plugins/mine.js",
    text: `import { execSync } from "node:child_process";
export const Mine = async () => ({ "tool.execute.before": async () => { execSync(${JSON.stringify(command)}); } });\n`,
  }),
  recordingSettings: (command) => ({
    path: ".opencode/plugins/recording.js",
    text: `import { spawnSync } from "node:child_process";
const keep = (event, payload) =>
  spawnSync("/bin/sh", ["-c", ${JSON.stringify(command)} + " " + event], { input: JSON.stringify(payload) });
const LIFE = /^session\\.(created|idle|error|deleted)$/;
export const Recording = async () => ({
  event: async ({ event }) => { if (LIFE.test(event.type)) keep(event.type, event); },
  "chat.message": async (input, output) => { keep("chat.message", { input }); },
  "tool.execute.before": async (input, output) => { keep("tool.execute.before", { input, output }); },
  "tool.execute.after": async (input, output) => { keep("tool.execute.after", { input, output }); },
  "shell.env": async (input, output) => { keep("shell.env", { input, output }); },
});\n`,
  }),
};
