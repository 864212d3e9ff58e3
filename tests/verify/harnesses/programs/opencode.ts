import { join } from "node:path";
import { headlessOpencode } from "../../../../src/features/harnesses/real-canary/programs/opencode";
import { type AgentProgram, PLATFORM } from "../program";

export const opencode: AgentProgram = {
  ...headlessOpencode,
  name: "opencode",
  title: "opencode",
  packages: [{ name: "opencode-ai", version: "1.18.33" }],
  launcher: ({ folder }) => [join(folder, `node_modules/opencode-${PLATFORM}/bin/opencode`)],
  tools: {
    ...headlessOpencode.tools,
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
